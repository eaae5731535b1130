"""`--for STUDY` of `calibrate` and `probe`: which further measurements would settle a study."""

from typing import TYPE_CHECKING

import click

from tierscope.errors import UserError
from tierscope.units import counted

if TYPE_CHECKING:
    from tierscope.jsonable import JsonObject
    from tierscope.predict.settle import Settling
    from tierscope.spec.known import KnownSystem
    from tierscope.spec.study import Study

for_option = click.option(
    "--for",
    "for_study",
    metavar="STUDY",
    help="Also list which points of STUDY to measure so that all of it can be simulated.",
)


def study_to_settle(name: str | None) -> "Study | None":
    """Read before anything is measured or fitted: a misspelt name costs nothing then."""
    if name is None:
        return None
    from tierscope.predict.case import FITTED_POLICIES  # noqa: PLC0415
    from tierscope.spec.load import load_study  # noqa: PLC0415

    study = load_study(name)
    if study.placement.policy not in FITTED_POLICIES or "placement.policy" in study.changing:
        raise UserError(
            f"--for {name}: placement.policy is {study.placement.policy}, or varies; rates can only be fitted to runs with {' or '.join(FITTED_POLICIES)}: "
            f"set one of them in the study"
        )
    return study


def settled(known: "KnownSystem", study: "Study | None") -> "Settling | None":
    from tierscope.predict.settle import settle  # noqa: PLC0415

    return None if study is None else settle(known, study)


def say_settling(settling: "Settling | None", name: str | None) -> None:
    """The commands to run next."""
    if settling is None or name is None:
        return
    if not settling.points:
        click.echo(f"For {settling.study}: every point is identified; nothing needs to be measured.")
        return
    from tierscope.analysis.run_command import GivenStudy, run_command  # noqa: PLC0415

    click.echo(
        f"For {settling.study}: not identified: {settling.open_points} of {counted(settling.asked, 'point')}. Measure at least:"
    )
    for point in settling.points:
        click.echo(f"• {run_command(point.sweep, GivenStudy(name, swept=settling.swept))}")
        for why in point.tells:
            click.echo(f"    {why}")


def settling_json(settling: "Settling | None") -> "JsonObject":
    if settling is None:
        return {}
    points = [{"sweep": dict(point.sweep), "tells": list(point.tells)} for point in settling.points]
    return {
        "settling": {"study": settling.study, "asked": settling.asked, "open": settling.open_points, "measure": points}
    }
