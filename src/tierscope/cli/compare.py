import shlex

import click

from tierscope.cli import common
from tierscope.cli.counting import classes_option, read_classes


@click.command("compare")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@common.log_tiers_option
@click.option(
    "--point", type=click.IntRange(min=0), metavar="N", help="Of sweeps: the runs of point N; default the best."
)
@common.shared_options
@click.option("--force", is_flag=True, help="Compare also logs that cannot be trusted.")
@classes_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    first: str,
    second: str,
    tiers: tuple[str, ...],
    point: int | None,
    no_shared: bool,
    split_shared: bool,
    force: bool,
    classes: str,
    as_json: bool,
) -> None:
    """Compare how two runs read: DLIO's cosine similarity, and the difference in each metric, (A − B) ÷ the larger.

    A and B are each the --out of a run, simulation, trace or import, a log (*.darshan, *.pfw), or a directory with the logs of one job.
    For example a real job's Darshan log and our emulation of it.
    """
    from tierscope.analysis.similarity import similarity  # noqa: PLC0415
    from tierscope.commands.characterise import are_logs, characterise_path  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415
    from tierscope.spec.traced import read_rules  # noqa: PLC0415

    common.refuse_both_shared(no_shared, split_shared)
    rules, categories = TierRules(read_rules(tiers)), read_classes(classes)
    asked = f"compare {shlex.join((first, second))}"
    one, other = (
        characterise_path([path], rules, None if are_logs([path]) else point, force, not no_shared, categories, asked)
        for path in (first, second)
    )
    found = similarity(one.character, other.character)
    if as_json:
        from tierscope.analysis.character_json import similarity_json  # noqa: PLC0415

        common.print_json(similarity_json(found, (one.about, other.about), (one.findings, other.findings)))
        return
    from tierscope.report.character import ComparedRun, SimilarityView  # noqa: PLC0415
    from tierscope.report.parts import title_label  # noqa: PLC0415

    sides = [ComparedRun(each.path, each.name, each.where, title_label(each.conditions)) for each in (one, other)]
    common.print_rich(SimilarityView((sides[0], sides[1]), found))
