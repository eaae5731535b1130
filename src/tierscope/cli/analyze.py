import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import CATEGORIES, counting_options
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting


@click.command("analyze")
@click.argument("results", metavar="OUT | LOG…", nargs=-1, required=True, type=click.Path())
@common.log_tiers_option
@click.option(
    "--out", type=click.Path(file_okay=False), help="Of logs: keep what was read as a result, for other commands."
)
@click.option(
    "--epoch-gap", metavar="TIME", help="Of logs: an epoch begins where no process had begun for so long, like 10s."
)
@click.option(
    "--epoch-span", metavar="NAME", help="Of DFTracer's logs: the span that is an epoch; default DLIOBenchmark._train."
)
@click.option(
    "--compute-span", metavar="NAME", help="Of DFTracer's logs: the span that is compute; default those called compute."
)
@click.option(
    "--dxt", is_flag=True, help="Of Darshan logs: only the reads of extended tracing, which --epoch-gap can tell apart."
)
@common.shared_options
@click.option("--force", is_flag=True, help="Show also logs that cannot be trusted.")
@click.option("--metrics", is_flag=True, help="Of a run: print DLIO's metrics instead, as [METRIC] lines.")
@common.au_option
@click.option("--csv", "csv_path", type=click.Path(dir_okay=False), help="Also write the class times of every process.")
@click.option(
    "--export",
    "exports",
    multiple=True,
    type=(click.Choice(["perfetto", "parquet"]), click.Path(dir_okay=False)),
    metavar="FORMAT FILE",
    help="Also write it for other programs: perfetto (ui.perfetto.dev opens it) or parquet (the class times).",
)
@common.json_option
@counting_options
def command(  # noqa: PLR0913, PLR0917  (one per option)
    results: tuple[str, ...],
    tiers: tuple[str, ...],
    out: str | None,
    epoch_gap: str | None,
    epoch_span: str | None,
    compute_span: str | None,
    dxt: bool,
    no_shared: bool,
    split_shared: bool,
    force: bool,
    metrics: bool,
    au: str | None,
    csv_path: str | None,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
    counting: "Counting",
) -> None:
    """Show where the I/O time of the slowest process goes.

    OUT is the results directory of a study or a trace, or a CSV with rank,epoch,class,seconds[,ops,bytes][,cache_rate,…].

    LOG… are all logs of one job: Darshan's (*.darshan) or DFTracer's (*.pfw, *.pfw.gz).
    """
    from tierscope.commands.analyze import analyze, analyze_import  # noqa: PLC0415
    from tierscope.imports.logs import source_of  # noqa: PLC0415

    if metrics or au:
        if (
            csv_path
            or exports
            or tiers
            or out
            or epoch_gap
            or epoch_span
            or compute_span
            or dxt
            or no_shared
            or split_shared
            or force
            or counting.epoch
            or counting.basis
            or len(counting.categories) < len(CATEGORIES)
        ):
            raise UserError("--metrics and --au go with --json only; leave the other options out")
        _show_metrics(results, au, as_json)
        return
    common.refuse_both_shared(no_shared, split_shared)
    kept = None
    if any(source_of(path) for path in results):
        from tierscope.imports.logs import ImportOptions, import_logs, keep  # noqa: PLC0415
        from tierscope.imports.paths import TierRules  # noqa: PLC0415
        from tierscope.spec.traced import read_rules  # noqa: PLC0415
        from tierscope.spec.whatif import read_duration  # noqa: PLC0415

        gap = read_duration("--epoch-gap", epoch_gap) if epoch_gap else None
        rules = TierRules(read_rules(tiers))
        trace = import_logs(results, ImportOptions(rules, gap, not no_shared, dxt, epoch_span, compute_span, force))
        analysis = analyze_import(trace, counting)
        kept = keep(trace, out) if out else None
    elif len(results) > 1:
        raise UserError(f"{results[1]}: one result at a time; several are given only of logs (*.darshan, *.pfw)")
    elif tiers or out or epoch_gap or epoch_span or compute_span or dxt or no_shared or split_shared or force:
        raise UserError(
            f"{results[0]}: is no log; --basis, --epoch, --classes, --csv and --json are all that there is for it"
        )
    else:
        analysis = analyze(results[0], counting)
    if csv_path:
        from tierscope.report.export import to_csv  # noqa: PLC0415

        to_csv(analysis.times, csv_path)
    for form, path in exports:
        from tierscope.report.export import export  # noqa: PLC0415

        export(analysis, results[0] if os.path.isdir(results[0]) else None, form, path)
    common.show_analysis(analysis, as_json)
    if kept and not as_json:
        common.say_where(kept)


def _show_metrics(results: tuple[str, ...], au: str | None, as_json: bool) -> None:
    """Nothing is written."""
    from tierscope.report.summary import summarise, wanted_before  # noqa: PLC0415

    if len(results) > 1:
        raise UserError(f"{results[1]}: one result at a time")
    wanted = wanted_before(results[0])
    common.show_metrics(summarise(results[0], replace(wanted, au=common.read_au(au)) if au else wanted), as_json)
