import click

from tierscope.cli import common
from tierscope.cli.counting import classes_option, read_classes
from tierscope.cli.typed import typed_options


@click.command("compare")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@common.log_tiers_option
@click.option(
    "--point", type=click.IntRange(min=0), metavar="N", help="The runs of sweep point N; default: the best points."
)
@common.shared_options
@click.option(
    "--force", is_flag=True, help="Also accept logs that cannot be trusted: damaged, or with impossible times or ranks."
)
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
    """Compare the I/O of two runs: cosine similarity as in DLIO, and the difference of each metric, (A − B) ÷ the larger.

    A and B are the --out of a run, simulation, trace or import, a log (*.darshan, *.pfw), or a directory with the logs of one job.
    For example, the Darshan log of a real job and its emulation.
    """
    from tierscope.analysis.similarity import similarity  # noqa: PLC0415
    from tierscope.commands.characterise import are_logs, characterise_path  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415
    from tierscope.imports.untiered import command_text  # noqa: PLC0415
    from tierscope.spec.traced import read_rules  # noqa: PLC0415

    common.refuse_both_shared(no_shared, split_shared)
    rules, categories = TierRules(read_rules(tiers)), read_classes(classes)
    asked = command_text("compare", (first, second), typed_options((first, second)))
    this, other = (
        characterise_path([path], rules, None if are_logs([path]) else point, force, not no_shared, categories, asked)
        for path in (first, second)
    )
    likeness = similarity(this.character, other.character)
    if as_json:
        from tierscope.analysis.character_json import similarity_json  # noqa: PLC0415

        common.print_json(similarity_json(likeness, (this.about, other.about), (this.findings, other.findings)))
        return
    from rich.text import Text  # noqa: PLC0415

    from tierscope.analysis.severity import CRITICAL, severity_of  # noqa: PLC0415
    from tierscope.report.findings import top_sentence  # noqa: PLC0415
    from tierscope.report.parts import title_label  # noqa: PLC0415
    from tierscope.report.similarity import ComparedRun, SimilarityView  # noqa: PLC0415

    sides = [ComparedRun(run.path, run.name, run.where, title_label(run.conditions)) for run in (this, other)]
    wrong = [
        Text(f"{label}: {top_sentence(finding)}", style="bold")
        for label, run in (("A", this), ("B", other))
        for finding in run.findings
        if severity_of(finding) == CRITICAL
    ]
    common.print_rich(*wrong, SimilarityView((sides[0], sides[1]), likeness))
