import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import CATEGORIES, result_options
from tierscope.cli.showing import all_option
from tierscope.cli.typed import typed_options
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.analysis import Analysis
    from tierscope.analysis.counting import Counting
    from tierscope.spec.goal import Goal


@click.command("analyze")
@click.argument("results", metavar="OUT | LOG…", nargs=-1, required=True, type=click.Path())
@common.log_tiers_option
@click.option(
    "--out", type=click.Path(file_okay=False), help="Logs only: save them as a result directory for other commands."
)
@click.option(
    "--epoch-gap", metavar="TIME", help="Logs only: a new epoch starts when no process has started for TIME, e.g. 10s."
)
@click.option(
    "--epoch-span",
    metavar="NAME",
    help="DFTracer logs only: the span that marks an epoch; default DLIOBenchmark._train.",
)
@click.option(
    "--compute-span",
    metavar="NAME",
    help="DFTracer logs only: the span that marks compute; default: spans named compute.",
)
@click.option(
    "--dxt",
    is_flag=True,
    help="Darshan logs only: use only the reads of extended tracing, which --epoch-gap can split.",
)
@common.shared_options
@click.option(
    "--force", is_flag=True, help="Also accept logs that cannot be trusted: damaged, or with impossible times or ranks."
)
@click.option("--metrics", is_flag=True, help="Print DLIO's metrics instead, as [METRIC] lines.")
@common.au_option
@click.option(
    "--goal",
    metavar="GOAL",
    help="io=4s, epoch=10min or au=90%: report whether it is met; exit with 1 if not.",
)
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(dir_okay=False),
    help="Also write the class times of every process to a CSV file.",
)
@click.option(
    "--export",
    "exports",
    multiple=True,
    type=(click.Choice(["perfetto", "parquet"]), click.Path(dir_okay=False)),
    metavar="FORMAT FILE",
    help="Also export as perfetto (for ui.perfetto.dev) or parquet (the class times).",
)
@all_option
@common.json_option
@result_options
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
    goal: str | None,
    csv_path: str | None,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
    counting: "Counting",
) -> None:
    """Show where the I/O time of the slowest process goes.

    OUT is the results directory of a study or trace, or a CSV with rank,epoch,class,seconds[,ops,bytes][,cache_rate,…].

    LOG… are all logs of one job, from Darshan (*.darshan) or DFTracer (*.pfw, *.pfw.gz), or a directory of them.
    """
    from tierscope.commands.analyze import LogRequest, analyze, analyze_logs, named_logs, refuse_goal_of_logs  # noqa: PLC0415
    from tierscope.imports.untiered import command_text  # noqa: PLC0415

    of_logs = bool(tiers or out or epoch_gap or epoch_span or compute_span or dxt or no_shared or split_shared or force)
    if metrics or au:
        if named_logs(results):
            raise UserError(f"{results[0]}: contains logs; --metrics and --au need the --out of 'tierscope run'")
        counted = counting.epoch or counting.basis or counting.case or len(counting.categories) < len(CATEGORIES)
        if csv_path or exports or goal or of_logs or counted:
            raise UserError("--metrics and --au can only be combined with --json; remove the other options")
        _show_metrics(results, au, as_json)
        return
    common.refuse_both_shared(no_shared, split_shared)
    wanted = _wanted(goal)
    kept = None
    logs = named_logs(results)
    if logs:
        refuse_goal_of_logs(logs, wanted)
        line = command_text("analyze", results, typed_options(results))
        asked = LogRequest(tiers, epoch_gap, not no_shared, dxt, epoch_span, compute_span, force, out, line)
        analysis, kept = analyze_logs(results, asked, counting, wanted)
    elif len(results) > 1:
        raise UserError(f"{results[1]}: only one result at a time; only logs (*.darshan, *.pfw) can be several")
    elif of_logs:
        raise UserError(
            f"{results[0]}: is not a log; a result takes only --basis, --epoch, --classes, --case, --goal, --csv, --export, --all and --json"
        )
    else:
        analysis = analyze(results[0], counting, goal=wanted)
    _refuse_untold(analysis, wanted)
    if csv_path:
        from tierscope.report.export import to_csv  # noqa: PLC0415

        to_csv(analysis.times, csv_path)
    for form, path in exports:
        from tierscope.report.export import export  # noqa: PLC0415

        export(analysis, results[0] if os.path.isdir(results[0]) and not logs else None, form, path)
    common.show_analysis(analysis, as_json)
    if kept and not as_json:
        common.say_where(kept)
    _judge(analysis, wanted)


def _wanted(goal: str | None) -> "Goal | None":
    from tierscope.spec.whatif import read_goal  # noqa: PLC0415

    return None if goal is None else read_goal(goal)


def _refuse_untold(analysis: "Analysis", goal: "Goal | None") -> None:
    """A goal that this result cannot be judged by is neither met nor missed."""
    if goal is not None:
        from tierscope.predict.goals import refuse_unjudged  # noqa: PLC0415

        refuse_unjudged(analysis.times, goal)


def _judge(analysis: "Analysis", goal: "Goal | None") -> None:
    """The exit code of an acceptance test: 0 where the goal is met, 1 where it is missed."""
    from tierscope.analysis.goals import is_goal_met  # noqa: PLC0415

    if goal is not None and not is_goal_met(analysis.breakdown, goal):
        click.get_current_context().exit(1)


def _show_metrics(results: tuple[str, ...], au: str | None, as_json: bool) -> None:
    """Nothing is written."""
    from tierscope.report.summary import summarise, wanted_before  # noqa: PLC0415

    if len(results) > 1:
        raise UserError(f"{results[1]}: only one result at a time; remove the others")
    wanted = wanted_before(results[0])
    common.show_metrics(summarise(results[0], replace(wanted, au=common.read_au(au)) if au else wanted), as_json)
