import click

from tierscope.cli import common
from tierscope.cli.counting import classes_option, read_classes
from tierscope.errors import UserError


@click.command("characterise")
@click.argument("results", metavar="OUT | LOG…", nargs=-1, required=True, type=click.Path())
@common.log_tiers_option
@click.option(
    "--point", type=click.IntRange(min=0), metavar="N", help="Of a sweep: the run of point N; default the best."
)
@common.shared_options
@click.option("--force", is_flag=True, help="Show also logs that cannot be trusted.")
@classes_option
@common.json_option
def command(
    results: tuple[str, ...],
    tiers: tuple[str, ...],
    point: int | None,
    no_shared: bool,
    split_shared: bool,
    force: bool,
    classes: str,
    as_json: bool,
) -> None:
    """Show how a run reads: sizes, order, files, bandwidth by rank and over time, and how much I/O compute hides.

    OUT is the results directory of a study, a simulation, a trace or imported logs; LOG… are all logs of one job, or a directory of them.
    """
    from tierscope.commands.characterise import are_logs, characterise_path  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415
    from tierscope.spec.traced import read_rules  # noqa: PLC0415

    rules, logs = TierRules(read_rules(tiers)), are_logs(results)
    if logs and point is not None:
        raise UserError(f"{results[0]}: logs have no points; leave --point out")
    if not logs and (tiers or force or no_shared or split_shared):
        raise UserError(f"{results[0]}: is no log; --tier, --no-shared and --force are for those")
    common.refuse_both_shared(no_shared, split_shared)
    found = characterise_path(results, rules, point, force, not no_shared, read_classes(classes))
    if as_json:
        from tierscope.analysis.character_json import character_json  # noqa: PLC0415

        common.print_json(character_json(found.character, found.about, found.findings, found.conditions))
        return
    from tierscope.report.character import CharacterView  # noqa: PLC0415

    common.print_rich(CharacterView(found.name, found.where, found.character, found.findings, found.conditions))
