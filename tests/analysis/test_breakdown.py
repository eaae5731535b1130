"""The slowest process: first the maximum over ranks, then the median over repetitions."""

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.traces import CLASSES, TIERS, WITH_WRITES, times_of, trace_of, without_loop
from tierscope.analysis.breakdown import Breakdown, bottleneck, break_down
from tierscope.analysis.simulated_intervals import epoch_interval
from tierscope.analysis.statistics import SIMULATED, Interval
from tierscope.analysis.times import ClassTimes, counting_only, from_traces

Row = dict[str, Any]


def row(rank: int, seconds: float, class_: str = "GFS-READ", **more: Any) -> Row:
    return {"rank": rank, "class": class_, "seconds": float(seconds), **more}


def at_rates(seconds: Mapping[float, Mapping[int, list[float]]]) -> Breakdown:
    """Cache rate → epoch → I/O seconds of the slowest process in each repetition."""
    rows = [
        row(0, value, cache_rate=rate, epoch=epoch, repetition=repetition)
        for rate, epochs in seconds.items()
        for epoch, values in epochs.items()
        for repetition, value in enumerate(values, start=1)
    ]
    return break_down(times_of(rows, ["cache_rate"]))


def test_the_maximum_over_ranks_comes_before_the_median_over_repetitions() -> None:
    """Each repetition has another straggler. The median of each rank over repetitions is 1: that would hide them."""
    seconds = {1: [10.0, 1.0, 1.0], 2: [1.0, 8.0, 1.0], 3: [1.0, 1.0, 9.0]}
    rows = [
        row(rank, value, repetition=repetition) for repetition, v in seconds.items() for rank, value in enumerate(v)
    ]
    (point,) = break_down(times_of(rows)).points
    assert (point.io_seconds, point.slowest_rank) == (9.0, 2)
    assert (point.spread.low, point.spread.high, point.spread.n) == (8.0, 10.0, 3)
    assert (point.ranks, point.repetitions) == (3, 3)


def test_classes_are_those_of_one_process_not_maxima_of_each_class() -> None:
    rows = [row(0, 5.0), row(1, 2.0), row(1, 4.0, "GFS-META")]
    (point,) = break_down(times_of(rows)).points
    assert point.slowest_rank == 1
    assert point.classes == {"GFS-READ": 2.0, "GFS-META": 4.0, "LFS-READ": 0.0, "LFS-META": 0.0}
    assert point.bottleneck == "GFS-META"


def test_equally_slow_processes_give_the_first_rank() -> None:
    (point,) = break_down(times_of([row(rank, 3.0) for rank in (4, 2, 7)])).points
    assert point.slowest_rank == 2


def test_epochs_are_kept_apart() -> None:
    rows = [row(rank, 10 * epoch + rank, epoch=epoch) for epoch in (3, 1, 2) for rank in range(2)]
    found = break_down(times_of(rows))
    assert [(point.epoch, point.io_seconds) for point in found.points] == [(1, 11.0), (2, 21.0), (3, 31.0)]
    (summary,) = found.summary
    assert (summary.io.median, summary.io.low, summary.io.high) == (26.0, 21.0, 31.0)
    assert summary.first_epoch_io_seconds == 11.0
    assert summary.sweep == {}


def test_who_writes_longest_is_the_slowest() -> None:
    rows = [row(0, 1.0), row(0, 50.0, "GFS-WRITE"), row(1, 2.0)]
    found = break_down(times_of(rows, classes=WITH_WRITES))
    (point,) = found.points
    assert (point.io_seconds, point.slowest_rank, point.bottleneck) == (51.0, 0, "GFS-WRITE")
    assert found.io_classes == WITH_WRITES
    assert found.best.write_seconds == 50.0


def test_a_job_that_only_writes_has_io_time() -> None:
    (point,) = break_down(times_of([row(0, 464.0, "GFS-WRITE")], classes=WITH_WRITES)).points
    assert (point.io_seconds, point.bottleneck) == (464.0, "GFS-WRITE")


def test_writes_are_left_out_where_the_studys_definition_is_asked_for() -> None:
    rows = [row(0, 1.0), row(0, 50.0, "GFS-WRITE"), row(1, 2.0)]
    found = break_down(counting_only(times_of(rows, classes=WITH_WRITES), ("READ", "META")))
    (point,) = found.points
    assert (point.io_seconds, point.slowest_rank, point.bottleneck) == (2.0, 1, "GFS-READ")
    assert found.io_classes == CLASSES
    assert (point.classes["GFS-WRITE"], found.best.write_seconds) == (0.0, 50.0)


def test_without_io_there_is_no_bottleneck() -> None:
    assert bottleneck(dict.fromkeys(CLASSES, 0.0), CLASSES) is None
    assert bottleneck({**dict.fromkeys(CLASSES, 0.0), "GFS-WRITE": 1.0}, CLASSES) is None
    assert bottleneck({**dict.fromkeys(CLASSES, 0.0), "GFS-WRITE": 1.0}, WITH_WRITES) == "GFS-WRITE"
    found = break_down(times_of([row(0, 0.0)]))
    assert found.points[0].bottleneck is None
    assert found.best.bottleneck is None


class TestBest:
    def test_the_first_epoch_does_not_count_beside_others(self) -> None:
        found = at_rates({0.0: {1: [1.0], 2: [6.0], 3: [8.0]}, 0.5: {1: [90.0], 2: [5.0], 3: [6.0]}})
        assert found.best.sweep == {"cache_rate": 0.5}
        assert found.best.io.median == 5.5
        assert found.best.first_epoch_io_seconds == 90.0

    def test_the_first_epoch_counts_when_alone(self) -> None:
        found = at_rates({0.0: {1: [2.0]}, 0.5: {1: [1.0]}})
        assert (found.best.sweep, found.best.io.median) == ({"cache_rate": 0.5}, 1.0)

    def test_all_repetitions_of_later_epochs_count_alike(self) -> None:
        found = at_rates({0.0: {1: [99.0] * 3, 2: [1.0, 2.0, 9.0], 3: [3.0, 8.0, 7.0]}})
        assert (found.best.io.n, found.best.io.median, found.best.io.kind) == (6, 5.0, "95%")

    @pytest.mark.parametrize("order", list(itertools.permutations([0.75, 0.25, 0.5])))
    def test_ties_go_to_the_smaller_rate(self, order: tuple[float, ...]) -> None:
        found = at_rates({rate: {1: [2.0 if rate == 0.5 else 1.0]} for rate in order})
        assert found.best.sweep == {"cache_rate": 0.25}

    def test_ties_go_to_the_smaller_rate_whatever_else_is_swept(self) -> None:
        rows = [
            row(0, 1.0, threads=1, cache_rate=0.9),
            row(0, 1.0, threads=2, cache_rate=0.1),
            row(0, 1.5, threads=2, cache_rate=0.0),
        ]
        assert break_down(times_of(rows, ["threads", "cache_rate"])).best.sweep == {"threads": 2, "cache_rate": 0.1}

    def test_other_sweeps_have_a_best_too(self) -> None:
        rows = [row(0, value, format=name) for name, value in (("npz", 3.0), ("raw", 1.0), ("tfrecord", 2.0))]
        found = break_down(times_of(rows, ["format"]))
        assert found.best.sweep == {"format": "raw"}
        assert found.smallest_equal is None


class TestSmallestEqual:
    def test_ranges_that_overlap_cannot_be_told_apart(self) -> None:
        found = at_rates(
            {
                0.1: {1: [3.0, 4.0]},
                0.2: {1: [1.3, 1.9]},
                0.3: {1: [1.1, 1.5]},
                0.4: {1: [1.0, 1.35]},
                0.5: {1: [1.2, 1.3]},
            }
        )
        assert found.best.sweep == {"cache_rate": 0.4}
        assert found.smallest_equal is not None
        assert found.smallest_equal.sweep == {"cache_rate": 0.2}

    def test_the_best_itself_when_all_others_differ(self) -> None:
        found = at_rates({0.0: {1: [2.0]}, 0.5: {1: [1.0]}, 1.0: {1: [3.0]}})
        assert found.smallest_equal is found.best

    def test_other_swept_keys_stay_as_at_the_best(self) -> None:
        rows = [
            row(0, seconds, threads=threads, cache_rate=rate, repetition=repetition)
            for (threads, rate), pair in {
                (1, 0.0): (1.1, 1.2),
                (4, 0.1): (1.4, 1.5),
                (4, 0.2): (1.0, 1.3),
                (4, 0.3): (0.9, 1.1),
            }.items()
            for repetition, seconds in enumerate(pair, start=1)
        ]
        found = break_down(times_of(rows, ["threads", "cache_rate"]))
        assert found.best.sweep == {"threads": 4, "cache_rate": 0.3}
        assert found.smallest_equal is not None
        assert found.smallest_equal.sweep == {"threads": 4, "cache_rate": 0.2}


def test_a_grid_has_every_point_in_order() -> None:
    grid = list(itertools.product([1, 2, 8], [0.0, 0.5, 1.0]))
    rows = [
        row(rank, rank + threads * rate, threads=threads, cache_rate=rate) for threads, rate in grid for rank in (0, 1)
    ]
    random.Random(1).shuffle(rows)
    found = break_down(times_of(rows, ["threads", "cache_rate"]))
    assert [tuple(point.sweep.values()) for point in found.points] == grid
    assert [point.io_seconds for point in found.points] == [1 + threads * rate for threads, rate in grid]
    assert found.sweep_keys == ("threads", "cache_rate")


@pytest.mark.parametrize("name", ["io_seconds", "ranks", "rank_count", "len", "index", "seconds_sum", "none"])
def test_any_name_can_be_swept(name: str) -> None:
    found = break_down(times_of([{**row(0, 1.0), name: 5}, {**row(0, 2.0), name: 6}], [name]))
    assert [(point.sweep, point.io_seconds, point.ranks) for point in found.points] == [
        ({name: 5}, 1.0, 1),
        ({name: 6}, 2.0, 1),
    ]


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Whole milliseconds of some ranks, epochs and repetitions at some cache rates; not everybody has every class."""
    rates, repetitions, epochs, ranks = (draw(st.integers(1, limit)) for limit in (3, 7, 3, 4))
    seed = draw(st.integers(0, 2**32))
    generator = random.Random(seed)
    return [
        row(rank, generator.randrange(1, 5000) / 1024, class_, cache_rate=rate / 4, repetition=repetition, epoch=epoch)
        for rate in range(rates)
        for repetition in range(1, repetitions + 1)
        for epoch in range(1, epochs + 1)
        for rank in range(ranks)
        for class_ in generator.sample(WITH_WRITES, generator.randrange(1, 6))
    ]


def broken_down(rows: list[Row]) -> Breakdown:
    return break_down(times_of(rows, ["cache_rate"], WITH_WRITES))


def by_hand(rows: list[Row]) -> dict[tuple[float, int], float]:
    """(cache rate, epoch) → median over repetitions of the maximum over ranks, in plain Python."""
    sums: dict[tuple[float, int, int], dict[int, float]] = {}
    for item in rows:
        ranks = sums.setdefault((item["cache_rate"], item["epoch"], item["repetition"]), {})
        ranks[item["rank"]] = ranks.get(item["rank"], 0.0) + item["seconds"]
    maxima: dict[tuple[float, int], list[float]] = {}
    for (rate, epoch, _), of_ranks in sums.items():
        maxima.setdefault((rate, epoch), []).append(max(of_ranks.values()))
    return {key: float(np.median(values)) for key, values in maxima.items()}


@settings(max_examples=examples(50))
@given(tables())
def test_the_breakdown_is_what_plain_python_finds(rows: list[Row]) -> None:
    found = {(point.sweep["cache_rate"], point.epoch): point.io_seconds for point in broken_down(rows).points}
    assert found == by_hand(rows)


@settings(max_examples=examples(50))
@given(tables())
def test_classes_add_up_to_the_io_time(rows: list[Row]) -> None:
    found = broken_down(rows)
    for classes, seconds in [
        *((point.classes, point.io_seconds) for point in found.points),
        *((point.classes, point.io.median) for point in found.summary),
    ]:
        assert math.fsum(classes.values()) == pytest.approx(seconds)


@settings(max_examples=examples(50))
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], generator: random.Random) -> None:
    shuffled = generator.sample(rows, len(rows))
    assert broken_down(shuffled) == broken_down(rows)


@settings(max_examples=examples(50))
@given(tables(), st.permutations(range(4)))
def test_names_of_ranks_do_not_matter(rows: list[Row], names: list[int]) -> None:
    renamed = broken_down([{**item, "rank": names[item["rank"]]} for item in rows])
    for point, original in zip(renamed.points, broken_down(rows).points, strict=True):
        assert (point.io_seconds, point.ranks, point.spread) == (original.io_seconds, original.ranks, original.spread)


@settings(max_examples=examples(50))
@given(tables(), st.sampled_from([0.25, 2.0, 1024.0]))
def test_twice_the_seconds_are_twice_the_result(rows: list[Row], factor: float) -> None:
    scaled = broken_down([{**item, "seconds": item["seconds"] * factor} for item in rows])
    original = broken_down(rows)
    for point, before in zip(scaled.points, original.points, strict=True):
        assert point.io_seconds == before.io_seconds * factor
        assert point.classes == {name: value * factor for name, value in before.classes.items()}
        assert (point.slowest_rank, point.bottleneck) == (before.slowest_rank, before.bottleneck)
    assert scaled.best.sweep == original.best.sweep


def steps_of(per_rank: Sequence[Sequence[float]]) -> ClassTimes:
    """A run in which each rank has its own time in each step."""
    times = from_traces([trace_of({(rank, 1): {} for rank in range(len(per_rank))})], TIERS)
    return replace(times, epochs=times.epochs.with_columns(pl.Series("step_read_seconds", per_rank)))


def test_training_in_step_lies_between_two_bounds() -> None:
    (point,) = break_down(steps_of([[1.0, 5.0], [4.0, 1.0]])).points
    assert point.step_seconds == (6.0, 9.0)  # the slower rank alone; the slower rank of every step


@given(st.lists(st.lists(st.integers(0, 1000), min_size=3, max_size=3), min_size=1, max_size=4))
def test_endless_prefetch_is_never_slower_than_none(ranks: list[list[int]]) -> None:
    (point,) = break_down(steps_of([[float(value) for value in steps] for steps in ranks])).points
    assert point.step_seconds is not None
    endless, none = point.step_seconds
    assert endless == max(sum(steps) for steps in ranks)
    assert none == sum(max(steps) for steps in zip(*ranks, strict=True))
    assert endless <= none


def test_an_epoch_lasts_as_long_as_its_longest_rank() -> None:
    runs = [trace_of({(rank, 1): {"GFS-READ": 1.0} for rank in range(3)}, repetition=number) for number in (1, 2, 3)]
    times = from_traces(runs, TIERS)
    seconds = pl.Series("epoch_seconds", [4.0, 6.0, 4.0, 9.0, 9.0, 9.0, 1.0, 2.0, 5.0])
    (point,) = break_down(replace(times, epochs=times.epochs.with_columns(seconds))).points
    assert point.epoch_seconds == 6.0  # the median of 6, 9 and 5
    assert break_down(times_of([row(0, 1.0)])).points[0].epoch_seconds is None


def test_what_nobody_saw_is_unknown_not_zero() -> None:
    trace = without_loop(trace_of({(0, 1): {"GFS-READ": 1.0}, (0, 2): {"GFS-READ": 2.0}}))
    found = break_down(from_traces([trace], TIERS))
    assert [point.epoch_seconds for point in found.points] == [None, None]
    assert [point.step_seconds for point in found.points] == [None, None]
    assert found.best.epoch_seconds is None
    assert found.best.io.median == 2.0


def test_one_point_without_a_sweep() -> None:
    found = break_down(from_traces([trace_of({(0, 1): {"LFS-READ": 0.5}})], TIERS))
    assert (found.sweep_keys, found.best.sweep, found.best.io.median) == ((), {}, 0.5)
    assert found.best.bottleneck == "LFS-READ"
    assert found.smallest_equal is None
    assert len(found.points) == len(found.summary) == 1


@pytest.mark.parametrize("values", [(None, 2, 16), (1, 2**40, 2**62), ("raw", "npz", "x"), (False, True, None)])
def test_any_kind_of_value_can_be_swept(values: tuple[Any, ...]) -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": 1.0 + point}}, point=point, sweep={"key": value}, steps=np.ones((2, 3)))
        for point, value in enumerate(values)
    ]
    found = break_down(from_traces(traces, TIERS))
    seconds = [next(p.io_seconds for p in found.points if p.sweep["key"] == value) for value in values]
    assert seconds == [1.0, 2.0, 3.0]
    assert all(point.step_seconds == (2.0, 2.0) and point.epoch_seconds == 10.0 for point in found.points)


@settings(max_examples=examples(50))
@given(st.floats(1e-6, 1e6), st.floats(0.0, 1e3), st.floats(0.5, 1.0), st.floats(1.0, 2.0))
@example(0.6149620852226976, 0.001, 1.0, 1.0)
def test_an_interval_of_simulated_epochs_holds_their_median(io: float, more: float, low: float, high: float) -> None:
    """Else the best point could be told from itself."""
    spread = Interval(io, io * low, io * high, 1, SIMULATED)
    found = epoch_interval([io + more], spread, more, [])
    assert found is not None
    assert found.low <= found.median <= found.high
