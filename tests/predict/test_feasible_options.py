"""No option that is recommended anywhere exceeds a capacity; what cannot be told is said."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.planning import held_on_worst_node, loaded, systems
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.feasible import about_feasibility
from tierscope.analysis.goals import is_goal_met
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.errors import UserError
from tierscope.jsonable import cache_rate_of
from tierscope.plan.file_format import make_format
from tierscope.plan.policies import room_of
from tierscope.plan.room import feasibility_of
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.explore import explore
from tierscope.predict.explore_simulated import ExplorationRequest, explore_simulated
from tierscope.predict.processes import Processes
from tierscope.predict.simulation import simulate_point
from tierscope.spec import sweep
from tierscope.spec.goal import Goal
from tierscope.spec.load import Loaded
from tierscope.spec.study import Study
from tierscope.trace.trace import RunKey
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

FILE = make_format(loaded().study).file_bytes


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    """Intervals are for other tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tierscope.predict.spread.DRAWS", 3)
        yield


def explored(found: Loaded, goal: str, vary: tuple[str, ...], **more: Any) -> SimulatedExploration:
    return explore_simulated(found, ExplorationRequest(vary, goal, more.pop("cost", ()), "bound", **more), Silent())


def exceeds(study: Study) -> bool:
    """Counted the slow way; what is filled as it is read stops when it is full."""
    tier = study.system.tiers[0]
    if tier.capacity is None:
        return False
    if study.placement.policy != "pinned":
        each = make_format(study).file_bytes
        return room_of(study, each) * each > tier.capacity
    return held_on_worst_node(study) > tier.capacity


@settings(max_examples=examples(36))
@given(systems(), st.sampled_from(["1ms", "30ms", "1h"]))
def test_no_recommended_option_exceeds_a_capacity(system: dict[str, Any], goal: str) -> None:
    vary = ("gfs.servers=1,4",)
    found = explored(loaded(vary, **system), goal, vary)
    recommended = [*found.pareto, *(remedy.option for remedy in found.remedies)]
    assert found.pareto or found.remedies or goal != "1h"
    for option in recommended:
        assert option.study is not None
        assert not exceeds(option.study)
        assert option.feasibility.is_possible
    for option in found.combinations:
        assert option.study is not None
        assert option.is_recommended <= (not exceeds(option.study))
        assert option.feasibility.fits == "unknown" or option.feasibility.is_possible != exceeds(option.study)


def simulated(study: Study) -> ClassTimes:
    points = list(sweep.points(study))
    traces = [simulate_point(RunKey(point.index, 1), point, "bound", lambda _: None) for point in points]
    fits = {tuple(point.sweep.values()): feasibility_of(point.study) for point in points}
    return replace(from_traces(traces, [tier.name for tier in study.system.tiers]), feasibility=fits)


@settings(max_examples=examples(30))
@given(systems())
def test_no_best_point_exceeds_a_capacity_where_any_fits(system: dict[str, Any]) -> None:
    study = loaded(**system).study
    times = simulated(study)
    studies = {tuple(point.sweep.values()): point.study for point in sweep.points(study)}
    breakdown = break_down(times)
    for group in breakdown.groups:
        fitting = [point for point in group.points if not exceeds(studies[tuple(point.sweep.values())])]
        chosen = [group.best, *([group.smallest_equal] if group.smallest_equal else [])]
        assert all(point in fitting for point in chosen) or not fitting
    options = explore(Processes.of(times), 3600.0, {"GFS-META": (0.0, 100.0)}).options
    assert all(not exceeds(studies[tuple(option.sweep.values())]) for option in options)


def test_the_shortest_is_not_recommended_where_it_does_not_fit() -> None:
    """The architect's question in small: all of it cached would be best, and a node has room for a quarter."""
    study = loaded(capacity=f"{16 * FILE} B").study
    times = simulated(study)
    assert cache_rate_of(break_down(replace(times, feasibility={})).best.sweep) > 0.25
    breakdown = break_down(times)
    assert breakdown.best.sweep == {"cache_rate": 0.25}
    (finding,) = about_feasibility(breakdown, simulated=True)
    assert finding.kind == "does_not_fit"
    assert "per node do not fit on lfs, which holds" in finding.text
    longest = max(point.io.median for point in breakdown.groups[0].possible)
    assert is_goal_met(breakdown, Goal("io", longest))
    best = min(point.io.median for point in breakdown.groups[0].possible)
    assert not is_goal_met(breakdown, Goal("io", best * 0.99))


def test_a_capacity_that_is_not_given_is_said_and_not_taken_as_endless() -> None:
    breakdown = break_down(simulated(loaded().study))
    (finding,) = about_feasibility(breakdown, simulated=True)
    assert finding.text.startswith("capacity of lfs is not set: whether ")
    assert finding.text.endswith(" per node fit is unknown")
    assert about_feasibility(breakdown, simulated=False) == []
    vary = ("gfs.servers=1,4",)
    option = explored(loaded(vary, rates="50%"), "1h", vary).pareto[0]
    assert (option.feasibility.fits, option.is_recommended) == ("unknown", True)


def test_nothing_is_recommended_where_nothing_fits() -> None:
    vary = ("gfs.servers=1,4",)
    found = explored(loaded(vary, capacity="1 B", rates="50%, 100%"), "1h", vary)
    assert found.pareto == ()
    assert all(each.met and not each.is_recommended for each in found.combinations)
    (finding,) = about_feasibility(
        break_down(simulated(loaded(capacity="1 B", rates="50%, 100%").study)), simulated=True
    )
    assert finding.kind == "no_point_fits"


def cheapest(found: SimulatedExploration) -> Combination:
    return found.pareto[0]


def test_a_limit_below_the_cheapest_that_fits_names_it() -> None:
    vary = ("gfs.metadata_ops=2000,8000", "gfs.servers=2,8")
    cost = ("gfs.metadata_ops=1000/kop/s", "gfs.servers=20/server")
    found = explored(loaded(vary, rates="0%"), "20ms", vary, cost=cost)
    price = cheapest(found).cost
    assert price is not None
    assert price > 0
    assert explored(loaded(vary, rates="0%"), "20ms", vary, cost=cost, max_price=str(price)).pareto[0].cost == price
    with pytest.raises(
        UserError, match=rf"cheapest option that fits and meets the goal costs {price:,.6g} \(metadata_ops = "
    ) as refused:
        explored(loaded(vary, rates="0%"), "20ms", vary, cost=cost, max_price=str(price - 1))
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match="nothing has a price"):
        explored(loaded(vary, rates="0%"), "20ms", vary, max_price="5")
