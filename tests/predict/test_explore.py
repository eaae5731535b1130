"""The grid of improvements says what an estimate of every combination says."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.predicting import EXACT_PERCENTS, Process, measured, tables
from tests.traces import CLASSES, times_of
from tierscope.analysis.breakdown import SweepPoint, break_down
from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import cache_rate_of
from tierscope.predict.explore import GIB, Exploration, Prices, explore
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import estimate


def rate_of(point: SweepPoint) -> float:
    return cache_rate_of(point.sweep)


@dataclass(frozen=True)
class Question:
    """And its answer the slow way: an estimate of every combination, each with its points ordered by cache rate."""

    times: ClassTimes
    vary: dict[str, tuple[float, ...]]
    fixed: dict[str, float]
    goal: float
    answers: tuple[tuple[dict[str, float], list[SweepPoint]], ...]

    def met(self) -> list[tuple[dict[str, float], int, SweepPoint]]:
        """Every combination with every point at which it meets the goal."""
        return [
            (improve, index, point)
            for improve, points in self.answers
            for index, point in enumerate(points)
            if point.io.median <= self.goal
        ]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Times are exact, and the goal is often one of them."""
    times = draw(tables(most_points=4, most_runs=2))
    names = draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=3, unique=True))
    percents = st.lists(st.sampled_from(EXACT_PERCENTS), min_size=1, max_size=6 // len(names), unique=True)
    vary = {name: tuple(sorted(draw(percents))) for name in names}
    fixed = draw(st.dictionaries(st.sampled_from(CLASSES), st.sampled_from(EXACT_PERCENTS), max_size=2))
    before = break_down(times)
    answers = []
    for values in itertools.product(*vary.values()):
        improve = dict(zip(vary, values, strict=True))
        after = estimate(times, before, {**fixed, **improve}).after
        answers.append((improve, sorted(after.summary, key=rate_of)))
    seconds = sorted({point.io.median for _, points in answers for point in points})
    goal = draw(st.sampled_from([*seconds, seconds[0] / 2, seconds[-1] + 1.0]))
    return Question(times, vary, fixed, goal, tuple(answers))


def explored(question: Question, prices: Prices | None = None) -> Exploration:
    return explore(Processes.of(question.times), question.goal, question.vary, question.fixed, prices)


@settings(max_examples=examples(25))
@given(questions())
def test_every_combination_is_its_estimate(question: Question) -> None:
    found = explored(question)
    assert [found.combination(index) for index in range(len(found.chosen))] == [each for each, _ in question.answers]
    for index, (_, points) in enumerate(question.answers):
        meets = [place for place, point in enumerate(points) if point.io.median <= question.goal]
        assert found.chosen[index] == (meets[0] if meets else -1)
        seconds = [point.io.median for point in points]
        assert found.io_seconds[index] == (seconds[meets[0]] if meets else min(seconds))
    assert list(found.sweeps) == [point.sweep for point in question.answers[0][1]]


@settings(max_examples=examples(25))
@given(questions())
def test_options_are_those_that_no_other_beats(question: Question) -> None:
    """The Pareto front by its definition: improvements and the smallest rate, all of them no more and one less."""
    smallest: dict[tuple[float, ...], float] = {}
    for improve, _, point in question.met():
        key = tuple(improve.values())
        smallest[key] = min(smallest.get(key, np.inf), rate_of(point))
    respects = [(*key, rate) for key, rate in smallest.items()]
    front = {
        mine
        for mine in respects
        if not any(
            other != mine and all(theirs <= ours for theirs, ours in zip(other, mine, strict=True))
            for other in respects
        )
    }
    found = explored(question)
    options = [
        (*option.improve.values(), cache_rate_of(option.sweep)) for option in found.options
    ]  # fmt: skip
    assert len(options) == len(set(options))
    assert set(options) == front
    for option in found.options:
        assert option.io_seconds <= question.goal
        assert option.sweep == found.sweeps[option.point]
        assert option.cost is None
    sums = [(sum(option.improve.values()), cache_rate_of(option.sweep)) for option in found.options]
    assert sums == sorted(sums)


@settings(max_examples=examples(25))
@given(questions(), st.data())
def test_the_first_option_is_the_cheapest_of_all(question: Question, data: st.DataObject) -> None:
    """Where more cached files take more room, as they do for one kind of shuffle on one number of nodes."""
    points = question.answers[0][1]
    rooms = sorted(data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4)))
    held = [{"lfs": rooms[round(4 * rate_of(point))] * GIB} for point in points]
    amounts = st.integers(0, 5).map(float)
    percent = {name: data.draw(amounts) for name in question.vary}
    prices = Prices(percent, {"lfs": data.draw(amounts)}, held)
    costs = [
        sum(percent[name] * value for name, value in improve.items()) + prices.gib["lfs"] * held[point]["lfs"] / GIB
        for improve, point, _ in question.met()
    ]
    found = [option.cost for option in explored(question, prices).options]
    assert found[:1] == ([min(costs)] if costs else [])
    assert found == sorted(cost for cost in found if cost is not None)


@pytest.mark.parametrize("rate", [0.5, 0.75])
def test_the_cheapest_may_be_a_point_of_no_smaller_rate_that_takes_less_room(rate: float) -> None:
    """A local shuffle holds every file once, a global one on every node; both meet the goal."""
    rows: list[dict[str, Any]] = [
        {"rank": 0, "class": "GFS-READ", "seconds": 4.0, "shuffle": "global", "cache_rate": 0.5},
        {"rank": 0, "class": "GFS-READ", "seconds": 4.0, "shuffle": "local", "cache_rate": rate},
    ]
    processes = Processes.of(times_of(rows, ["shuffle", "cache_rate"]))
    rooms = {"global": 8 * GIB, "local": 1 * GIB}
    prices = Prices({}, {"lfs": 1.0}, [{"lfs": rooms[str(point.sweep["shuffle"])]} for point in processes.points])
    option = explore(processes, 4.0, {"GFS-READ": (0.0,)}, prices=prices).options[0]
    assert (option.sweep["shuffle"], option.cost) == ("local", 1.0)


@settings(max_examples=examples(25))
@given(questions())
def test_met_without_is_the_first_point_that_meets_the_goal_as_it_is(question: Question) -> None:
    points = sorted(break_down(question.times).summary, key=rate_of)
    meets = [index for index, point in enumerate(points) if point.io.median <= question.goal]
    assert explored(question).met_without == (meets[0] if meets else None)


RATES: dict[float, list[Process]] = {
    0.75: [{"GFS-META": 2.0, "LFS-READ": 6.0}],
    0.25: [{"GFS-META": 8.0, "LFS-READ": 2.0}],
    0.50: [{"GFS-META": 4.0, "LFS-READ": 4.0}],
}
BOTH = {"GFS-META": (0.0, 100.0, 300.0), "LFS-READ": (0.0, 100.0)}


def of_rates(goal: float, fixed: Mapping[str, float] | None = None, prices: Prices | None = None) -> Exploration:
    return explore(Processes.of(measured(RATES)), goal, BOTH, fixed, prices)


def test_by_hand() -> None:
    """Times at 25, 50 and 75 %, in the order of the product, the last class varying fastest."""
    found = of_rates(5.0)
    #  META  READ    25 %  50 %  75 %
    #     0     0     10     8     8
    #     0   100      9     6     5
    #   100     0      6     6     7
    #   100   100      5     4     4
    #   300     0      4     5   6.5
    #   300   100      3     3   3.5
    assert found.chosen.tolist() == [-1, 2, -1, 0, 0, 0]
    assert found.io_seconds.tolist() == [8.0, 5.0, 6.0, 5.0, 4.0, 3.0]
    assert [sweep["cache_rate"] for sweep in found.sweeps] == [0.25, 0.5, 0.75]
    assert [(tuple(option.improve.values()), option.point) for option in found.options] == [
        ((0.0, 100.0), 2),
        ((100.0, 100.0), 0),
        ((300.0, 0.0), 0),
    ]
    assert found.met_without is None
    assert of_rates(8.0).met_without == 1


def test_without_prices_the_least_improvement_in_all_comes_first() -> None:
    backwards = {"LFS-READ": BOTH["LFS-READ"], "GFS-META": BOTH["GFS-META"]}
    found = explore(Processes.of(measured(RATES)), 5.0, backwards)
    assert [tuple(option.improve.values()) for option in found.options] == [(100.0, 0.0), (100.0, 100.0), (0.0, 300.0)]


def test_fixed_improvements_hold_for_all_but_what_varies_is_not_fixed() -> None:
    found = of_rates(5.0, {"GFS-META": 900.0, "LFS-META": 50.0})
    assert found.fixed == {"LFS-META": 50.0}
    assert found.io_seconds.tolist() == of_rates(5.0).io_seconds.tolist()
    far = explore(Processes.of(measured(RATES)), 5.0, {"LFS-READ": BOTH["LFS-READ"]}, {"GFS-META": 300.0})
    assert far.io_seconds.tolist() == [4.0, 3.0]
    assert far.chosen.tolist() == [0, 0]


def test_a_goal_that_nothing_meets_gives_no_option_but_the_shortest_times() -> None:
    found = of_rates(2.9)
    assert found.chosen.tolist() == [-1] * 6
    assert found.io_seconds.tolist() == [8.0, 5.0, 6.0, 4.0, 4.0, 3.0]
    assert (found.options, found.met_without) == ((), None)


def test_exactly_the_goal_is_met() -> None:
    assert of_rates(3.0).chosen.tolist() == [-1, -1, -1, -1, -1, 0]
    assert of_rates(3.0 - 1e-9).chosen.max() == -1


@pytest.mark.parametrize("seconds", [(0.1, 0.2, 0.3), (0.1, 0.3, 0.7), (0.1, 0.4, 0.7), (0.3, 0.3, 0.3)])
def test_a_goal_of_just_what_was_measured_is_met_however_sums_are_rounded(seconds: tuple[float, ...]) -> None:
    times = measured({0.5: [dict(zip(CLASSES, seconds, strict=False))]})
    measured_seconds = break_down(times).best.io.median
    assert round(measured_seconds, 9) == round(sum(seconds), 9)
    for name in CLASSES:
        found = explore(Processes.of(times), measured_seconds, {name: (0.0, 50.0)})
        assert found.met_without == 0
        assert found.chosen.tolist() == [0, 0]
        assert found.options[0].improve == {name: 0.0}


def test_a_goal_of_just_what_was_estimated_is_met_however_sums_are_rounded() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        times = measured({0.5: [dict(zip(CLASSES, generator.uniform(0, 5, 4).round(2).tolist(), strict=True))]})
        after = estimate(times, break_down(times), {"GFS-READ": 50.0}).after.best.io.median
        assert explore(Processes.of(times), after, {"GFS-READ": (0.0, 50.0)}).chosen.tolist() == [-1, 0]


def test_prices_decide_the_order() -> None:
    """Of the three options at 5 s: 100 % more reads at 75 %, or more metadata at 25 %."""
    percent = {"GFS-META": 1.0, "LFS-READ": 1.0}
    found = of_rates(5.0, prices=Prices(percent))
    assert [(option.cost, option.point) for option in found.options] == [(100.0, 2), (200.0, 0), (300.0, 0)]
    # With room at 9 for each of 10, 20 and 30 GiB: 100 + 100 + 90, then 100 + 270, then 300 + 90
    found = of_rates(5.0, prices=Prices(percent, {"lfs": 9.0}, [{"lfs": n * GIB} for n in (10, 20, 30)]))
    assert [(option.cost, option.point) for option in found.options] == [(290.0, 0), (370.0, 2), (390.0, 0)]
    found = of_rates(5.0, prices=Prices({"LFS-READ": 9.0}))
    assert [(option.cost, tuple(option.improve.values())) for option in found.options] == [
        (0.0, (300.0, 0.0)),
        (900.0, (0.0, 100.0)),
        (900.0, (100.0, 100.0)),
    ]


def test_one_point_without_a_rate() -> None:
    rows = [{"rank": 0, "class": "GFS-READ", "seconds": 4.0}, {"rank": 1, "class": "GFS-META", "seconds": 3.0}]
    found = explore(Processes.of(times_of(rows)), 3.0, {"GFS-READ": (0.0, 100.0, 300.0)})
    assert found.chosen.tolist() == [-1, 0, 0]
    assert found.io_seconds.tolist() == [4.0, 3.0, 3.0]
    (option,) = found.options
    assert (option.improve, option.sweep, option.io_seconds) == ({"GFS-READ": 100.0}, {}, 3.0)


def test_an_option_says_when_not_to_believe_it() -> None:
    """GFS-READ serves 10 a second at most; twice the GFS-META would have it serve 10 in 0.75 s."""
    times = measured({0.5: [{"GFS-META": (0.5, 10, 0), "GFS-READ": (0.5, 10, 0)}], 0.9: [{"GFS-META": (9.0, 1, 0)}]})
    vary = {"GFS-META": (0.0, 100.0)}
    (option,) = explore(Processes.of(times), 0.8, vary).options
    (warning,) = option.warnings
    assert (warning.kind, warning.evidence["class"]) == ("beyond_ops", "GFS-READ")
    assert warning.evidence["implied_seconds"] == 1.0
    (option,) = explore(Processes.of(times), 1.0, vary).options
    assert (option.improve, option.warnings) == ({"GFS-META": 0.0}, ())


def test_many_processes_are_as_few_that_matter() -> None:
    generator = np.random.default_rng(7)
    rows = [
        {"rank": rank, "class": name, "seconds": float(seconds), "cache_rate": rate}
        for rate in (0.0, 0.5)
        for rank in range(400)
        for name, seconds in zip(CLASSES, generator.integers(500, 1500, 4), strict=True)
    ]
    times = times_of(rows, ["cache_rate"])
    before = break_down(times)
    vary = dict.fromkeys(CLASSES[:3], (0.0, 100.0, 300.0))
    found = explore(Processes.of(times), 3000.0, vary)
    for index in range(0, 27, 5):
        after = estimate(times, before, found.combination(index)).after
        meets = [point.io.median for point in after.summary if point.io.median <= 3000.0]
        assert found.io_seconds[index] == (meets[0] if meets else after.best.io.median)
    assert {-1, 0} <= set(found.chosen.tolist())
