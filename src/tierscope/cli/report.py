import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import counting_options
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting


@click.command("report")
@click.argument("result", metavar="OUT", type=click.Path())
@common.goal_option
@common.improve_option
@click.option(
    "--out", type=click.Path(file_okay=False), help="Another directory; default: OUT, or FILE-report of a CSV."
)
@click.option(
    "--beside",
    metavar="OUT2",
    type=click.Path(),
    help="Another result of the same sweep, like a simulation: errors by point.",
)
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@counting_options
def command(
    result: str,
    goal: str | None,
    improve: tuple[str, ...],
    out: str | None,
    beside: str | None,
    show: bool,
    counting: "Counting",
) -> None:
    """Write a page to play with (report.html) and figures for papers (figures/*.svg, *.png).

    The page is one file that needs no network. --improve and --goal are what it and the figures show at first.
    --beside lays another result next to OUT, point by point: usually `tierscope simulate` of the same study.
    """
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.report import beside_of, report_folder, write_report  # noqa: PLC0415
    from tierscope.spec.whatif import read_goal, read_improvements  # noqa: PLC0415

    analysis = analyze(result, counting)
    improvements = read_improvements(improve, analysis.times.io_classes)
    wanted = read_goal(goal) if goal is not None else None
    if wanted is not None:
        from tierscope.predict.goals import refuse_untold  # noqa: PLC0415

        refuse_untold(analysis.times, wanted)
    if beside == "":
        raise UserError("--beside is empty; give a result or a CSV, or leave it out")
    laid = None if beside is None else beside_of(analysis, analyze(beside, counting), (result, beside))
    written = write_report(analysis, report_folder(result, out), wanted, improvements, laid, result=result)
    common.say_page(written)
    if laid is not None:
        from tierscope.report.beside import BesideView  # noqa: PLC0415

        common.print_rich("", BesideView(laid))
    if show and not webbrowser.open(Path(os.path.abspath(written.page)).as_uri()):
        click.echo("there is no browser here; copy the page to where one is", err=True)
