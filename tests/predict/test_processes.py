"""Arrays of processes say the same as the breakdown of the scaled table."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.predicting import EXACT_PERCENTS, improvements, tables
from tests.traces import CLASSES, WITH_WRITES, times_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import cache_rate_of
from tierscope.predict.processes import Processes, factor, largest
from tierscope.predict.whatif import scaled


def row(rank: int, seconds: float, class_: str = "GFS-READ", **more: Any) -> dict[str, Any]:
    return {"rank": rank, "class": class_, "seconds": seconds, **more}


def by_breakdown(times: ClassTimes, improve: dict[str, float]) -> dict[tuple[Any, ...], float]:
    return {tuple(point.sweep.values()): point.io.median for point in break_down(scaled(times, improve)).summary}


def by_processes(processes: Processes, improve: dict[str, float]) -> dict[tuple[Any, ...], float]:
    seconds = processes.io_seconds(processes.factors(improve)[None, :])
    assert seconds.shape == (len(processes.points), 1)
    sweeps = [tuple(point.sweep.values()) for point in processes.points]
    return dict(zip(sweeps, seconds[:, 0].tolist(), strict=True))


@settings(max_examples=examples(60))
@given(tables(), improvements(st.sampled_from(EXACT_PERCENTS)))
def test_io_seconds_are_those_of_the_scaled_breakdown(times: ClassTimes, improve: dict[str, float]) -> None:
    assert by_processes(Processes.of(times), improve) == by_breakdown(times, improve)


@settings(max_examples=examples(40))
@given(tables(), improvements(st.floats(-90, 10_000)))
def test_any_improvement_gives_the_same_up_to_rounding(times: ClassTimes, improve: dict[str, float]) -> None:
    assert by_processes(Processes.of(times), improve) == pytest.approx(by_breakdown(times, improve), rel=1e-12)


@settings(max_examples=examples(40))
@given(tables(), st.lists(st.sampled_from([0.0, 0.125, 1.0, 4.0]), min_size=5, max_size=5))
def test_those_that_can_be_the_slowest_give_the_same(times: ClassTimes, factors: list[float]) -> None:
    processes = Processes.of(times)
    reduced = processes.reduced()
    rows = np.array([factors, [1.0] * 5])
    assert reduced.io_seconds(rows).tolist() == processes.io_seconds(rows).tolist()
    assert [point.sweep for point in reduced.points] == [point.sweep for point in processes.points]


def test_reducing_keeps_ranks_with_their_times_and_what_all_did() -> None:
    generator = np.random.default_rng(1)
    rows = [
        row(rank, float(generator.integers(1000, 2000)), name, ops=3, epoch=epoch)
        for epoch in (2, 3)
        for rank in range(100)
        for name in CLASSES
    ]
    processes = Processes.of(times_of(rows))
    factors = np.exp2(generator.integers(-5, 5, (500, 4)).astype(np.float64))
    assert processes.reduced().io_seconds(factors).tolist() == processes.io_seconds(factors).tolist()
    (before,), (after,) = processes.points, processes.reduced().points
    for whole, part in zip(before.epochs, after.epochs, strict=True):
        assert len(whole.ranks) == 100 > len(part.ranks) == len(part.seconds)
        assert part.seconds.tolist() == whole.seconds[part.ranks].tolist()  # ranks count from zero, so they are rows
        assert part.ops.tolist() == whole.ops.tolist() == [300.0] * 4


def test_the_first_epoch_counts_only_when_it_is_alone() -> None:
    rows = [
        row(0, 9.0, key="both", epoch=1),
        row(0, 1.0, key="both", epoch=2),
        row(0, 3.0, key="both", epoch=3),
        row(0, 5.0, key="one", epoch=1, repetition=1),
        row(0, 7.0, key="one", epoch=1, repetition=2),
        row(0, 8.0, key="some", epoch=1, repetition=1),  # ended early, the other did not
        row(0, 8.0, key="some", epoch=1, repetition=2),
        row(0, 2.0, key="some", epoch=2, repetition=2),
    ]
    processes = Processes.of(times_of(rows, ["key"]))
    counted = {
        point.sweep["key"]: [(times.repetition, times.epoch) for times in point.epochs] for point in processes.points
    }
    assert counted == {"both": [(1, 2), (1, 3)], "one": [(1, 1), (2, 1)], "some": [(2, 2)]}
    assert by_processes(processes, {}) == {("both",): 2.0, ("one",): 6.0, ("some",): 2.0}


def test_points_are_ordered_by_cache_rate_and_equals_as_in_the_breakdown() -> None:
    grid = [(threads, rate) for threads in (2, 1, 16) for rate in (0.5, 0.0, 1.0)]
    times = times_of(
        [row(0, 1.0, threads=threads, cache_rate=rate) for threads, rate in grid], ["threads", "cache_rate"]
    )
    sweeps = [point.sweep for point in Processes.of(times).points]
    assert sweeps == sorted((point.sweep for point in break_down(times).summary), key=cache_rate_of)
    assert [tuple(sweep.values()) for sweep in sweeps[:4]] == [(1, 0.0), (2, 0.0), (16, 0.0), (1, 0.5)]


def test_writing_is_a_class_like_others() -> None:
    rows = [row(0, 1.0, ops=2, bytes=10), row(0, 50.0, "GFS-WRITE", ops=7, bytes=70)]
    processes = Processes.of(times_of(rows, classes=WITH_WRITES))
    ((epoch,),) = (point.epochs for point in processes.points)
    assert processes.classes == WITH_WRITES
    assert epoch.seconds.tolist() == [[1.0, 0.0, 0.0, 0.0, 50.0]]
    assert epoch.served("ops").tolist() == [2.0, 0.0, 0.0, 0.0, 7.0]
    assert epoch.served("bytes").tolist() == [10.0, 0.0, 0.0, 0.0, 70.0]


def test_operations_and_bytes_are_of_all_processes_and_unknown_where_one_is() -> None:
    rows = [
        row(0, 1.0, ops=2, bytes=10),
        row(4, 9.0, ops=3, bytes=None),
        row(0, 1.0, "LFS-READ", ops=None, bytes=5),
        row(7, 1.0, "GFS-META", epoch=2, ops=4, bytes=0),
    ]
    ((later,),) = (
        point.epochs for point in Processes.of(times_of(rows)).points
    )  # that of the first epoch is no matter
    assert (later.ops.tolist(), later.moved_bytes.tolist()) == ([0.0, 4.0, 0.0, 0.0], [0.0] * 4)
    ((epoch,),) = (point.epochs for point in Processes.of(times_of(rows[:3])).points)
    assert epoch.ranks.tolist() == [0, 4]
    np.testing.assert_array_equal(epoch.ops, [5.0, 0.0, np.nan, 0.0])
    np.testing.assert_array_equal(epoch.moved_bytes, [np.nan, 0.0, 5.0, 0.0])


@pytest.mark.parametrize(("percent", "expected"), [(0, 1.0), (50, 100 / 150), (100, 0.5), (300, 0.25), (-50, 2.0)])
def test_more_throughput_is_less_time(percent: float, expected: float) -> None:
    assert factor(percent) == expected
    processes = Processes(CLASSES, ())
    assert processes.factors({"GFS-META": percent}).tolist() == [1.0, expected, 1.0, 1.0]


@pytest.mark.parametrize("count", [1, 8191, 8192, 8193, 20_000])
def test_any_number_of_factors_is_looked_at(count: int) -> None:
    generator = np.random.default_rng(count)
    times = generator.integers(0, 100, (7, 3)).astype(np.float64)
    factors = generator.integers(0, 100, (count, 3)).astype(np.float64)
    assert largest(times, factors).tolist() == (factors @ times.T).max(axis=1).tolist()
