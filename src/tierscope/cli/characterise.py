import click

from tierscope.cli import common
from tierscope.cli.counting import classes_option, read_classes
from tierscope.cli.showing import all_option, shows_all
from tierscope.cli.typed import typed_options
from tierscope.errors import UserError


@click.command("characterise")
@click.argument("results", metavar="OUT | LOG…", nargs=-1, required=True, type=click.Path())
@common.log_tiers_option
@click.option(
    "--point", type=click.IntRange(min=0), metavar="N", help="The run of sweep point N; default: the best point."
)
@common.shared_options
@click.option(
    "--force", is_flag=True, help="Also accept logs that cannot be trusted: damaged, or with impossible times or ranks."
)
@click.option(
    "--timeline",
    "timelines",
    multiple=True,
    metavar="[RANK=]FILE",
    help="Logs only: a rank's trace by torch's or TensorFlow's profiler (Chrome JSON, also .gz), to see which I/O compute hides.",
)
@click.option(
    "--compute-span",
    metavar="NAME",
    help="Spans that are compute, in --timeline or DFTracer logs; default: tierscope.phase, kernels, CPU operators; spans named compute.",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Draw I/O and compute of the ranks on one time axis, as SVG.",
)
@classes_option
@all_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    results: tuple[str, ...],
    tiers: tuple[str, ...],
    point: int | None,
    no_shared: bool,
    split_shared: bool,
    force: bool,
    timelines: tuple[str, ...],
    compute_span: str | None,
    figure: str | None,
    classes: str,
    as_json: bool,
) -> None:
    """Show how a run reads: sizes, order, files, bandwidth by rank and over time, and how much I/O compute hides.

    OUT is the results directory of a study, a simulation, a trace or imported logs; LOG… are all logs of one job, or a directory of them.
    """
    from tierscope.commands.characterise import TimelineRequest, are_logs, characterise_path  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415
    from tierscope.imports.untiered import command_text  # noqa: PLC0415
    from tierscope.spec.traced import read_rules  # noqa: PLC0415

    rules, logs = TierRules(read_rules(tiers)), are_logs(results)
    if logs and point is not None:
        raise UserError(f"{results[0]}: logs have no points; remove --point")
    if not logs and (tiers or force or no_shared or split_shared):
        raise UserError(f"{results[0]}: is not a log; remove --tier, --no-shared and --force")
    if not logs and (timelines or compute_span or figure):
        raise UserError(f"{results[0]}: is not a log; remove --timeline, --compute-span and --figure")
    common.refuse_both_shared(no_shared, split_shared)
    beside = TimelineRequest(timelines, compute_span)
    asked = command_text("characterise", results, typed_options(results))
    run = characterise_path(results, rules, point, force, not no_shared, read_classes(classes), asked, beside)
    if figure is not None:
        from tierscope.report.merged import draw_to_file  # noqa: PLC0415

        draw_to_file(run.merged, run.name, figure)
    if as_json:
        from tierscope.analysis.character_json import character_json, merged_json  # noqa: PLC0415

        known = character_json(run.character, run.about, run.findings, run.conditions)
        common.print_json({**known, "merged": merged_json(run.merged)} if run.merged else known)
        return
    from tierscope.report.character import CharacterView  # noqa: PLC0415

    common.print_rich(CharacterView(run.name, run.where, run.character, run.findings, run.conditions, shows_all()))
    if run.merged:
        from tierscope.report.merged import MergedView  # noqa: PLC0415

        common.print_rich(MergedView(run.merged))
