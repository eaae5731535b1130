import click

from tierscope.cli import common


@click.command("compare")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@common.log_tiers_option
@click.option(
    "--point", type=click.IntRange(min=0), metavar="N", help="Of sweeps: the runs of point N; default the best."
)
@click.option("--force", is_flag=True, help="Compare also logs that cannot be trusted.")
@common.json_option
def command(first: str, second: str, tiers: tuple[str, ...], point: int | None, force: bool, as_json: bool) -> None:
    """Compare how two runs read: DLIO's cosine similarity, and the difference in each metric, (A − B) ÷ the larger.

    A and B are each the --out of a run, simulation, trace or import, a log (*.darshan, *.pfw), or a directory with the logs of one job.
    For example a real job's Darshan log and our emulation of it.
    """
    from tierscope.analysis.similarity import similarity  # noqa: PLC0415
    from tierscope.commands.characterise import are_logs, characterise_path  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415
    from tierscope.spec.traced import read_rules  # noqa: PLC0415

    rules = TierRules(read_rules(tiers))
    one, other = (
        characterise_path([path], rules, None if are_logs([path]) else point, force) for path in (first, second)
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
