"""Goals of I/O, epoch and AU by scaling: what a rank's epoch becomes, and that few ranks decide it."""

import statistics
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.clocked import Rank, clocked
from tests.traces import CLASSES, TIERS, times_of, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.metrics import point_metrics
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.errors import UserError
from tierscope.predict.explore import explore
from tierscope.predict.goals import Judge, epoch_rows, refuse_untold, told_kinds
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import estimate
from tierscope.report.estimates import limit_text
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.goal import Goal

# Of 10 s: 4 s of I/O, for 3 s of which the rank waits, and 6 s of compute.
WAITING: Rank = {"GFS-READ": 4.0, "epoch": 10.0, "stall": 3.0, "compute": 6.0}
# All of its I/O is hidden.
HIDDEN: Rank = {"GFS-READ": 4.0, "epoch": 10.0, "stall": 0.0, "compute": 9.0}


def after(times: ClassTimes, **improve: float) -> float | None:
    improvements = {name.replace("_", "-"): percent for name, percent in improve.items()}
    return estimate(times, break_down(times), improvements).after.best.epoch_seconds


@pytest.mark.parametrize(
    ("rank", "percent", "expected"),
    [
        (WAITING, 100.0, 8.0),  # what the I/O gains
        (WAITING, 1e6, 7.0),  # no shorter than without waiting, though 4 s of I/O are gone
        (WAITING, 0.0, 10.0),
        (WAITING, -50.0, 14.0),  # slower: as if none of it were hidden
        (HIDDEN, 1e6, 10.0),
        (HIDDEN, -50.0, 14.0),
        ({**HIDDEN, "checkpoint": 2.0}, 1e6, 8.0),  # training stands still for checkpoints too
    ],
)
def test_an_epoch_after_improvements(rank: Rank, percent: float, expected: float) -> None:
    times = clocked([({"cache_rate": 0.0}, [[rank]])])
    assert after(times, GFS_READ=percent) == pytest.approx(expected)


def test_busy_seconds_of_threads_gain_no_more_than_has_passed() -> None:
    """16 s of four threads in an epoch of 10 s: half of them is 5 s of it, not 8."""
    busy = {"GFS-READ": 16.0, "epoch": 10.0, "stall": 10.0}
    times = replace(clocked([({"cache_rate": 0.0}, [[busy]])]), basis="busy")
    assert after(times, GFS_READ=100.0) == pytest.approx(5.0)


rank_rows = st.fixed_dictionaries(
    {
        **{name: st.integers(0, 4096).map(lambda number: number / 1024) for name in CLASSES},
        "rest": st.floats(0, 5),
        "waits": st.floats(0, 1),
        "compute": st.floats(0.01, 1),
    }
)


def as_rank(drawn: dict[str, float]) -> Rank:
    io = sum(drawn[name] for name in CLASSES)
    epoch = io + drawn["rest"] + 0.1
    stall = drawn["waits"] * epoch
    compute = drawn["compute"] * (epoch - stall)
    return {**{name: drawn[name] for name in CLASSES}, "epoch": epoch, "stall": stall, "compute": compute}


random_times = st.lists(st.lists(rank_rows.map(as_rank), min_size=1, max_size=40), min_size=1, max_size=3).map(
    lambda epochs: clocked([({"cache_rate": 0.0}, epochs)])
)
percents = st.dictionaries(st.sampled_from(CLASSES), st.floats(-90, 10_000), max_size=4)


@settings(max_examples=examples(40), deadline=None)
@given(random_times, percents)
def test_the_reduced_ranks_give_the_maxima_of_all(times: ClassTimes, improve: dict[str, float]) -> None:
    processes = Processes.of(times)
    factors = processes.factors(improve)
    for point in processes.points:
        for epoch in point.epochs:
            assert epoch.clocks is not None
            io, scaled = epoch.seconds.sum(axis=1), epoch.seconds @ factors
            clocks = epoch.clocks
            each = np.maximum(clocks.epoch - clocks.standstill, clocks.epoch - (io - scaled))
            floor, rows = epoch_rows(epoch)
            assert max(floor, float((rows[:, 0] + rows[:, 1:] @ factors).max())) == pytest.approx(each.max(), rel=1e-12)


@settings(max_examples=examples(30), deadline=None)
@given(random_times, percents)
def test_the_grid_and_the_estimate_agree(times: ClassTimes, improve: dict[str, float]) -> None:
    processes = Processes.of(times)
    found = estimate(times, break_down(times), improve).after.summary[0]
    judge, once = Judge(processes, (), improve), np.ones((1, 1))
    (point,) = processes.points
    assert judge.values("io", point, once)[0] == pytest.approx(found.io.median, rel=1e-12)
    assert judge.values("epoch", point, once)[0] == pytest.approx(found.epoch_seconds, rel=1e-12)
    assert judge.values("au", point, once)[0] == pytest.approx(found.au, rel=1e-12)


STEPS = [(2.0, 1.0), (0.5, 1.0), (0.5, 1.0)]  # the first one waits longest, and does not count
STEPPED: Rank = {"GFS-READ": 3.0, "epoch": 6.0, "stall": 3.0, "compute": 3.0, "steps": STEPS}


def test_au_is_dlios_the_mean_over_ranks_without_the_first_step() -> None:
    slow: Rank = {**STEPPED, "epoch": 8.0, "stall": 5.0, "steps": [(2.0, 1.0), (0.5, 1.0), (2.5, 1.0)]}
    times = clocked([({"cache_rate": 0.0}, [[STEPPED, slow]])])
    best = break_down(times).best
    assert best.au == pytest.approx(statistics.fmean([2 / 3, 2 / 5]))
    assert best.slowest_au == pytest.approx(2 / 5)
    processes = Processes.of(times)
    assert explore(processes, Goal("au", 0.5), {"GFS-READ": (0.0,)}).met_without == 0
    assert explore(processes, Goal("au", 0.6), {"GFS-READ": (0.0,)}).met_without is None
    gone = explore(processes, Goal("au", 0.99), {"GFS-READ": (0.0, 1e6)})
    assert gone.values[1] > gone.values[0]
    assert all((option.au or 0.0) >= 0.99 for option in gone.options)


def test_au_is_that_of_the_metrics_of_the_same_run() -> None:
    steps = np.array([[0.1, 2.0, 1.0], [0.1, 0.5, 1.0], [0.1, 0.5, 1.0]])
    trace = trace_of(
        {(rank, epoch): {"GFS-READ": 3.0} for rank in range(2) for epoch in (1, 2)},
        seconds=6.0, stall_seconds=3.0, compute_seconds=3.0, steps=steps,
    )  # fmt: skip
    (metrics,) = point_metrics([trace], MetricOptions())
    times = from_traces([trace], TIERS)
    assert break_down(times).best.au == pytest.approx(statistics.fmean(metrics.au) / 100, rel=1e-12)


def test_goals_that_cannot_be_told_are_one_line() -> None:
    csv = times_of([{"rank": 0, "class": "GFS-READ", "seconds": 2.0}])
    idle = clocked([({"cache_rate": 0.0}, [[{"GFS-READ": 1.0, "epoch": 2.0, "stall": 1.0}]])])
    refuse_untold(csv, Goal("io", 1.0))
    refuse_untold(idle, Goal("epoch", 1.0))
    for times, goal, words in (
        (csv, Goal("epoch", 1.0), "an epoch goal needs"),
        (csv, Goal("au", 0.9), "an AU goal needs"),
        (idle, Goal("au", 0.9), "needs compute, but this result has none"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            refuse_untold(times, goal)
        assert "\n" not in str(caught.value)
    assert told_kinds(Processes.of(csv)) == ("io",)
    assert told_kinds(Processes.of(idle)) == ("io", "epoch")


@pytest.mark.parametrize("goal", [Goal("io", 1.9), Goal("epoch", 7.0), Goal("au", 0.55)])
def test_another_thread_for_the_same_operations_never_makes_a_goal_harder(goal: Goal) -> None:
    """By scaling: what one thread needs as an improvement is enough for two and four."""
    needed = []
    for threads in (1, 2, 4):
        io = 8.0 / threads
        rank: Rank = {"GFS-READ": io, "epoch": 4.0 + io, "stall": io, "compute": 4.0}
        found = explore(Processes.of(clocked([({}, [[rank]])], ())), goal, {"GFS-READ": tuple(range(0, 1001, 10))})
        needed.append(found.options[0].improve["GFS-READ"] if found.met_without is None else 0.0)
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1]


def test_points_that_read_less_do_not_meet_a_goal_for_the_others() -> None:
    small: Rank = {"GFS-READ": 0.1, "epoch": 0.2, "stall": 0.1, "payload": 10}
    large: Rank = {"GFS-READ": 4.0, "epoch": 5.0, "stall": 4.0, "payload": 1000}
    times = clocked([({"files": 4}, [[small]]), ({"files": 400}, [[large]])], ("files",))
    found = explore(Processes.of(times), 1.0, {"GFS-READ": (0.0, 300.0)})
    assert found.sweeps == ({"files": 400},)
    assert found.met_without is None
    assert found.options[0].improve == {"GFS-READ": 300.0}
    assert times.epochs.filter(pl.col("files") == 4).height == 1


def test_at_most_says_where_the_best_is_then() -> None:
    """Without GFS-META the best is at no cached files; without LFS-READ nothing is left where all are cached."""
    far: Rank = {"GFS-META": 9.0, "GFS-READ": 1.0, "epoch": 10.0, "stall": 10.0}
    near: Rank = {"LFS-READ": 4.0, "epoch": 4.0, "stall": 4.0}
    times = clocked([({"cache_rate": 0.0}, [[far]]), ({"cache_rate": 1.0}, [[near]])])
    by_class = {each.class_name: each for each in estimate(times, break_down(times), {}).sensitivity}
    assert by_class["GFS-META"].limit_percent == pytest.approx(-75.0)
    assert limit_text(by_class["GFS-META"]) == "the best moves to cache_rate 0%"
    assert by_class["LFS-READ"].limit_percent == -100.0
    assert limit_text(by_class["LFS-READ"]) == "no I/O is left"
    assert limit_text(by_class["GFS-READ"]) == ""


def test_where_io_is_hidden_no_class_is_worth_money() -> None:
    times = clocked([({"cache_rate": 0.0}, [[HIDDEN]])])
    (read,) = (each for each in estimate(times, break_down(times), {}).sensitivity if each.class_name == "GFS-READ")
    assert (read.measure, read.limit_percent) == ("epoch", 0.0)
