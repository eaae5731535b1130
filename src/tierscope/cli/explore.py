from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import result_options
from tierscope.cli.priced import priced_with_units
from tierscope.cli.showing import all_option, shows_all
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting
    from tierscope.analysis.run_command import GivenStudy
    from tierscope.predict.exploration import Combination
    from tierscope.spec.goal import Goal


@click.command("explore")
@click.argument("result", metavar="OUT", type=click.Path())
@common.goal_option
@click.option(
    "--vary",
    multiple=True,
    metavar="CLASS=A:B:STEP",
    help="Percentages of additional throughput to try; also A,B,C. Two or more classes form a grid.",
)
@common.improve_option
@click.option(
    "--simulate",
    is_flag=True,
    help="OUT is a STUDY: simulate it with other keys, e.g. --vary gfs.servers=1,4,16 --vary nodes=64:256:64.",
)
@click.option(
    "--method",
    type=click.Choice(common.METHODS),
    default="auto",
    help="With --simulate: the method, as in 'tierscope simulate'; default auto.",
)
@common.system_option
@common.set_option
@click.option(
    "--cost",
    multiple=True,
    metavar="WHAT=PRICE/UNIT",
    help="Price of additional throughput or capacity: GFS-META=3/% for a measured class; with --simulate, for a varied key of the whole system: "
    "gfs.servers=20000/server, gfs.bandwidth=1500/GB/s, gfs.metadata_ops=800/kop/s, gfs.latency=50/%. lfs.capacity=90/TiB: for the bytes cached on all nodes, "
    "or for capacity if that varies.",
)
@click.option("--max-price", metavar="PRICE", help="Only options up to this price, in the currency of --cost.")
@click.option(
    "--most",
    metavar="KEY[=LIMIT]",
    help="With --simulate: find the largest ranks_per_node or nodes that storage can feed at --goal au=90%, or that meet --goal io=10min or epoch=1h if every rank reads as much as in the study; LIMIT: the largest to try.",
)
@click.option(
    "--tender",
    metavar="DIR",
    help="With --simulate: write the study of the first option, its required figures and an acceptance test (accept.sh) to DIR.",
)
@all_option
@common.json_option
@result_options
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
    max_price: str | None,
    most: str | None,
    tender: str | None,
    as_json: bool,
    counting: "Counting",
) -> None:
    """Find improvements that meet a goal, each with the smallest sufficient cache rate.

    For example: tierscope explore OUT --goal 4s --vary GFS-META=0:200:10 --vary LFS-READ=0:200:10

    For a planned system: tierscope explore --simulate STUDY --goal 4s --vary gfs.servers=1,4,16,60

    How many ranks can it feed: tierscope explore --simulate STUDY --most ranks_per_node --goal au=90%
    """
    with priced_with_units():
        if simulate:
            if counting.case is not None:
                raise UserError("--case cannot be combined with --simulate; use --set case=NAME")
            if improve or counting.basis or counting.epoch:
                raise UserError(
                    "--improve, --basis and --epoch cannot be combined with --simulate; use --vary and --set"
                )
            asked = _Asked(result, settings, system, vary, goal, cost, max_price, method, tender, as_json)
            _most(asked, most) if most is not None else _simulated(asked)
            return
        _refuse_simulated(system, settings, most, tender)
        _measured(result, goal, vary, improve, cost, max_price, as_json, counting)


def _refuse_simulated(system: str | None, settings: tuple[str, ...], most: str | None, tender: str | None) -> None:
    if system or settings or most or tender:
        raise UserError("--system, --set, --most and --tender require --simulate; add --simulate, or remove them")


def _measured(
    result: str,
    goal: str | None,
    vary: tuple[str, ...],
    improve: tuple[str, ...],
    cost: tuple[str, ...],
    max_price: str | None,
    as_json: bool,
    counting: "Counting",
) -> None:
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.explore import explored  # noqa: PLC0415

    analysis = analyze(result, counting)
    groups, findings = explored(analysis, goal, vary, improve, cost, max_price)
    if as_json:
        from tierscope.analysis.to_json import epoch_json  # noqa: PLC0415
        from tierscope.predict.to_json import exploration_json  # noqa: PLC0415

        rate = analysis.study.placement.cache_rate if analysis.study else None
        shown = exploration_json(groups, analysis.times.basis, rate, findings, analysis.conditions)
        common.print_json(shown | epoch_json(analysis.breakdown))
        return
    from tierscope.report.estimates import ExplorationView  # noqa: PLC0415

    epoch = analysis.breakdown.epoch
    common.print_rich(ExplorationView(analysis.name, groups, findings, analysis.conditions, epoch, shows_all()))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Of a study that is simulated."""

    study: str
    settings: tuple[str, ...]
    system: str | None
    vary: tuple[str, ...]
    goal: str | None
    cost: tuple[str, ...]
    max_price: str | None
    method: str
    tender: str | None
    as_json: bool

    @property
    def given(self) -> "GivenStudy":
        from tierscope.analysis.run_command import GivenStudy  # noqa: PLC0415

        return GivenStudy(self.study, self.settings, self.system)


def _simulated(asked: _Asked) -> None:
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.simulate import refuse_generate_only  # noqa: PLC0415
    from tierscope.predict.explore_simulated import ExplorationRequest, explore_simulated  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    wanted = ExplorationRequest(asked.vary, asked.goal, asked.cost, asked.method, asked.max_price)
    with watching(asked.as_json) as watch:
        loaded = load(asked.study, asked.settings, asked.system, vary=asked.vary)
        refuse_generate_only(loaded, asked.study)
        common.say_notes(loaded, watch.note)
        _check_tender(asked.tender, [case.name for case in loaded.study.cases])
        exploration = explore_simulated(loaded, wanted, watch)
    if asked.as_json:
        from tierscope.predict.plan_json import simulated_exploration_json  # noqa: PLC0415

        common.print_json(simulated_exploration_json(exploration))
    else:
        from tierscope.report.models import SimulatedExplorationView  # noqa: PLC0415

        common.print_rich(SimulatedExplorationView(asked.study, exploration, asked.given))
    if asked.tender is not None:
        from tierscope.commands.explore import one_option  # noqa: PLC0415

        _write_tender(asked, one_option(asked.tender, exploration), exploration.goal)


def _most(asked: _Asked, most: str) -> None:
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.simulate import refuse_generate_only  # noqa: PLC0415
    from tierscope.predict.searches import find_most  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    if asked.vary or asked.cost or asked.max_price is not None:
        raise UserError("--most cannot be combined with --vary, --cost or --max-price; remove them")
    with watching(asked.as_json) as watch:
        loaded = load(asked.study, asked.settings, asked.system)
        refuse_generate_only(loaded, asked.study)
        common.say_notes(loaded, watch.note)
        _check_tender(asked.tender)
        fed = find_most(loaded, most, asked.goal, asked.method, watch)
    if asked.as_json:
        from tierscope.predict.plan_json import largest_fed_json  # noqa: PLC0415

        common.print_json(largest_fed_json(fed))
    else:
        from tierscope.report.plans import LargestFedView  # noqa: PLC0415

        common.print_rich(LargestFedView(asked.study, fed, asked.given))
    if asked.tender is not None:
        _write_tender(asked, fed.safe, fed.goal)


def _check_tender(folder: str | None, cases: Sequence[str] = ()) -> None:
    """Before anything takes long."""
    if folder is not None:
        from tierscope.commands.explore import check_tender, refuse_cases  # noqa: PLC0415

        check_tender(folder)
        refuse_cases(folder, cases)


def _write_tender(asked: _Asked, option: "Combination | None", goal: "Goal") -> None:
    from tierscope.commands.explore import write_tender  # noqa: PLC0415

    assert asked.tender is not None
    path = write_tender(asked.tender, option, goal)
    if not asked.as_json:
        common.say_written(path)
