from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import counting_options
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting


@click.command("explore")
@click.argument("result", metavar="OUT", type=click.Path())
@common.goal_option
@click.option(
    "--vary",
    multiple=True,
    metavar="CLASS=A:B:STEP",
    help="Percent more throughput to try; also A,B,C. Two or more classes make a grid.",
)
@common.improve_option
@click.option(
    "--simulate",
    is_flag=True,
    help="OUT is a STUDY: simulate it with other keys, like --vary gfs.servers=1,4,16 --vary nodes=64:256:64.",
)
@click.option("--method", type=click.Choice(common.METHODS), default="bound", help="Of --simulate; default bound.")
@common.system_option
@common.set_option
@click.option(
    "--cost",
    multiple=True,
    metavar="CLASS=PRICE",
    help="Price of each percent more of a class; TIER-gib=PRICE: of each GiB cached on a tier, over all nodes.",
)
@common.json_option
@counting_options
def command(  # noqa: PLR0913, PLR0917  (one per option)
    result: str,
    goal: str | None,
    vary: tuple[str, ...],
    improve: tuple[str, ...],
    simulate: bool,
    method: str,
    system: str | None,
    settings: tuple[str, ...],
    cost: tuple[str, ...],
    as_json: bool,
    counting: "Counting",
) -> None:
    """Find the improvements that meet a goal, each with the smallest cache rate that it needs.

    For example: tierscope explore OUT --goal 4s --vary GFS-META=0:200:10 --vary LFS-READ=0:200:10

    Or of a system that nobody built: tierscope explore --simulate STUDY --goal 4s --vary gfs.servers=1,4,16,60
    """
    if simulate:
        if improve or counting.basis or counting.epoch:
            raise UserError(
                "--improve, --basis and --epoch are for measured results; with --simulate use --vary and --set"
            )
        _simulated(result, settings, system, vary, goal, cost, method, as_json)
        return
    if system or settings:
        raise UserError("--system and --set are for --simulate; add that, or leave them out")
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.explore import explored  # noqa: PLC0415

    analysis = analyze(result, counting)
    found, findings = explored(analysis, goal, vary, improve, cost)
    if as_json:
        from tierscope.analysis.to_json import epoch_json  # noqa: PLC0415
        from tierscope.predict.to_json import exploration_json  # noqa: PLC0415

        rate = analysis.study.placement.cache_rate if analysis.study else None
        shown = exploration_json(found, analysis.times.basis, rate, findings, analysis.conditions)
        common.print_json(shown | epoch_json(analysis.breakdown))
        return
    from tierscope.report.estimates import ExplorationView  # noqa: PLC0415

    common.print_rich(ExplorationView(analysis.name, found, findings, analysis.conditions, analysis.breakdown.epoch))


def _simulated(
    study: str,
    settings: tuple[str, ...],
    system: str | None,
    vary: tuple[str, ...],
    goal: str | None,
    cost: tuple[str, ...],
    method: str,
    as_json: bool,
) -> None:
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.predict.explore_simulated import ExplorationRequest, explore_simulated  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    with watching(as_json) as watch:
        loaded = load(study, settings, system, vary=vary)
        common.say_notes(loaded, watch.note)
        found = explore_simulated(loaded, ExplorationRequest(vary, goal, cost, method), watch)
    if as_json:
        from tierscope.predict.model_json import simulated_exploration_json  # noqa: PLC0415

        common.print_json(simulated_exploration_json(found))
        return
    from tierscope.report.models import SimulatedExplorationView  # noqa: PLC0415

    common.print_rich(SimulatedExplorationView(study, found))
