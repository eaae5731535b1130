import os
import webbrowser
from pathlib import Path

import click

from tierscope.cli import common


@click.command("report")
@click.argument("result", metavar="OUT", type=click.Path())
@click.option("--goal", metavar="TIME", help="I/O time per epoch to reach, like 4s; default: the study's.")
@common.improve_option
@click.option(
    "--out", type=click.Path(file_okay=False), help="Another directory; default: OUT, or FILE-report of a CSV."
)
@common.basis_option
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
def command(result: str, goal: str | None, improve: tuple[str, ...], out: str | None, basis: str, show: bool) -> None:
    """Write a page to play with (report.html) and figures for papers (figures/*.svg, *.png).

    The page is one file that needs no network. --improve and --goal are what it and the figures show at first.
    """
    from tierscope.spec.whatif import read_goal, read_improvements  # noqa: PLC0415
    from tierscope.studies.analyze import analyze  # noqa: PLC0415
    from tierscope.studies.report import report_folder, write_report  # noqa: PLC0415

    analysis = analyze(result, basis)
    improvements = read_improvements(improve, analysis.times.io_classes)
    seconds = read_goal(goal) if goal is not None else None
    written = write_report(analysis, report_folder(result, out), seconds, improvements)
    common.say_page(written)
    if show and not webbrowser.open(Path(os.path.abspath(written.page)).as_uri()):
        click.echo("there is no browser here; copy the page to where one is", err=True)
