import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import result_options
from tierscope.cli.showing import all_option, print_result_findings
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting


@click.command("report")
@click.argument("result", metavar="OUT", type=click.Path())
@common.goal_option
@common.improve_option
@click.option(
    "--out", type=click.Path(file_okay=False), help="Output directory; default: OUT, or FILE-report for a CSV."
)
@click.option(
    "--beside",
    metavar="OUT2",
    multiple=True,
    type=click.Path(),
    help="Another result of the same sweep to compare with, point by point; repeatable.",
)
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@all_option
@result_options
def command(
    result: str,
    goal: str | None,
    improve: tuple[str, ...],
    out: str | None,
    beside: tuple[str, ...],
    show: bool,
    counting: "Counting",
) -> None:
    """Write an interactive page (report.html) and figures (figures/*.svg, *.png).

    The page is one file and works offline. --improve and --goal set what the page and figures show first.
    --beside compares OUT with other results, point by point: a simulation of the same study, or other measurements.
    """
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.report import besides_of, report_folder, write_report  # noqa: PLC0415
    from tierscope.spec.whatif import read_goal, read_improvements  # noqa: PLC0415

    analysis = analyze(result, counting)
    improvements = read_improvements(improve, analysis.times.io_classes)
    wanted = read_goal(goal) if goal is not None else None
    if wanted is not None:
        from tierscope.predict.goals import refuse_untold  # noqa: PLC0415

        refuse_untold(analysis.times, wanted)
    if "" in beside:
        raise UserError("--beside is empty; name a result or a CSV, or remove it")
    laid = besides_of(analysis, [analyze(other, counting) for other in beside], (result, *beside))
    written = write_report(analysis, report_folder(result, out), wanted, improvements, laid, result=result)
    common.say_page(written)
    print_result_findings(analysis.findings)
    for compared in laid:
        from tierscope.report.beside import BesideView  # noqa: PLC0415

        common.print_rich("", BesideView(compared))
    if show and not webbrowser.open(Path(os.path.abspath(written.page)).as_uri()):
        click.echo("no browser found; open the page on another machine", err=True)
