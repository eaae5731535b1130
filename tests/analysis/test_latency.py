"""Latency percentiles: ranges of the merged histograms, which hold the exact percentiles of the operations that they were counted from."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import TIERS, rank_epoch, trace_of
from tierscope.analysis.latency import (
    PERCENTILES,
    ClassLatency,
    LatencyRange,
    latencies_at,
    latencies_in,
    latency_json,
    summarise,
)
from tierscope.analysis.times import from_csv, from_traces
from tierscope.output.op_list import open_ops
from tierscope.output.store import RunStore
from tierscope.report.latency import latency_columns, latency_missing, latency_rows, range_text
from tierscope.trace.ops import BINS, CLOSE, KINDS, OPEN, READ
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.recorder import Lane, LaneTable
from tierscope.trace.trace import RunKey, Trace, gather

GOLDEN = Path(__file__).parents[1] / "golden" / "results"
LATENCY = st.integers(0, 2**45)


def recorded(latencies: list[int], kind: int = READ) -> LaneTable:
    lane = Lane(0, len(TIERS))
    for latency in latencies:
        lane.begin(at=0)
        lane.end(1, kind, 0, 0, 10, at=latency)
    return lane.finish()


def run_of(*lanes: LaneTable) -> Trace:
    """A rank for each lane, which are in different epochs."""
    about = trace_of({(0, 1): {"GFS-READ": 1.0}}).about
    ranks = [RankTrace(rank, 0, (rank_epoch(rank + 1, lanes=(lane,)),), "inline") for rank, lane in enumerate(lanes)]
    return gather(RunKey(0, 1), about, TIERS, ranks)


def exact(latencies: list[int], percent: int) -> int:
    return sorted(latencies)[max(0, math.ceil(len(latencies) * percent / 100) - 1)]


def holds(found: LatencyRange, seconds: float) -> bool:
    return found.low_seconds <= seconds and (found.high_seconds is None or seconds < found.high_seconds)


@given(st.lists(st.lists(LATENCY, min_size=1, max_size=30), min_size=1, max_size=4))
def test_the_range_holds_the_exact_percentile_of_all_ranks_together(by_rank: list[list[int]]) -> None:
    found = latencies_in(run_of(*map(recorded, by_rank)))["GFS-READ"].whole
    every = [latency for latencies in by_rank for latency in latencies]
    assert found.operations == len(every)
    for name, percent in PERCENTILES.items():
        assert holds(found.ranges[name], exact(every, percent) / 1e9), name
        each = found.ranges[name]
        assert not each.low_seconds or each.high_seconds == 2 * each.low_seconds  # no wider than a bin


def test_percentiles_of_ranks_are_not_averaged() -> None:
    """Nine ranks with one fast operation each and one with a hundred slow ones: the median operation is slow."""
    found = latencies_in(run_of(*(recorded([1_000]) for _ in range(9)), recorded([1_000_000] * 100)))
    assert holds(found["GFS-READ"].whole.ranges["p50"], 1e-3)


def test_an_exact_power_of_two_is_in_the_bin_above() -> None:
    for number in range(1, 40):
        (found,) = {
            latencies_in(run_of(recorded([1 << number])))["GFS-READ"].whole.ranges[name] for name in PERCENTILES
        }
        assert holds(found, (1 << number) / 1e9)


def test_the_last_bin_has_no_upper_end() -> None:
    found = latencies_in(run_of(recorded([1 << 60])))["GFS-READ"].whole.ranges["max"]
    assert found == LatencyRange((1 << BINS - 2) / 1e9, None)
    assert range_text(found) == "≥ 70,000 s"


def test_of_a_kept_list_of_operations() -> None:
    """Beside the raw operations of a real run, class by class and kind by kind."""
    trace = RunStore(str(GOLDEN / "measured")).load(RunKey(1, 1))
    ops = pl.concat(
        [open_ops(str(path), trace).collect() for path in sorted((GOLDEN / "measured/ops").glob("0001-r1-*"))]
    )
    found = latencies_in(trace)
    kinds = {(name, kind): each for name, one in found.items() for kind, each in one.kinds.items()}
    assert len(kinds) == 6
    for (name, kind), summary in kinds.items():
        rows = ops.filter(pl.col("tier") == name.partition("-")[0].lower(), pl.col("kind") == kind)
        assert summary.operations == len(rows) > 0
        for percentile, percent in PERCENTILES.items():
            seconds = np.percentile(rows["seconds"], percent, method="inverted_cdf")
            assert holds(summary.ranges[percentile], float(seconds)), (name, kind, percentile)


def test_slow_opens_do_not_hide_behind_fast_closes() -> None:
    """Half of META is closes: its median says nothing of opens, so kinds stand below their class."""
    found = latencies_in(run_of(recorded([1_000] * 60, CLOSE), recorded([5_000_000] * 40, OPEN)))["GFS-META"]
    assert holds(found.whole.ranges["p50"], 1e-6)
    assert holds(found.kinds["open"].ranges["p50"], 5e-3)
    assert [row.name for row in latency_rows({"GFS-META": found})] == ["GFS-META", "GFS-META close", "GFS-META open"]


def test_a_histogram_that_does_not_count_every_operation_is_not_believed() -> None:
    lane = recorded([100] * 5)
    lane.ops[len(KINDS) + READ] = 9
    found = latencies_in(run_of(lane, recorded([100])))["GFS-READ"].whole
    assert (found.operations, found.ranges) == (10, {})
    assert found.reason.startswith("known of 1 of 10 operations only")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("imported_darshan", "an import keeps sums of operations, not the time of each"),
        ("imported_dftracer", "an import keeps sums of operations, not the time of each"),
        ("profiled", "dftracer gave sums of operations, not the time of each"),
        ("simulated", "a simulation has no single operations"),
    ],
)
def test_without_histograms_there_is_null_and_a_reason(result: str, reason: str) -> None:
    found = latencies_in(RunStore(str(GOLDEN / result)).load(RunKey(0, 1)))
    assert found
    (content,) = {str({**each, "operations": 0, "kinds": {}}) for each in latency_json(found).values()}
    assert "'p50': None" in content
    assert "'max': None" in content
    assert reason in content
    assert latency_columns(found) == []
    assert list(latency_missing(found)) == [f"latency of {', '.join(found)}"]


def test_points_of_a_sweep_are_not_mixed_and_repetitions_are() -> None:
    cached, uncached = {"cache_rate": 0.5}, {"cache_rate": 0.0}
    traces = [
        trace_of(
            {(0, 1): {"GFS-READ": 8.0}, (0, 2): {"GFS-READ": seconds}},
            sweep=sweep,
            point=point,
            repetition=repetition,
        )
        for point, (sweep, seconds) in enumerate([(cached, 1e-3), (uncached, 1.0)])
        for repetition in (1, 2)
    ]
    times = from_traces(traces, TIERS)
    for sweep, seconds in ((cached, 1e-3), (uncached, 1.0)):
        found = latencies_at(times, sweep, {2})["GFS-READ"].whole
        assert found.operations == 2
        assert holds(found.ranges["max"], seconds)
        assert latencies_at(times, sweep, {2})["LFS-META"] == ClassLatency(summarise({}, ""))
    assert latencies_at(times, cached, {1, 2})["GFS-READ"].whole.operations == 4


def test_times_from_a_csv_have_none(tmp_path: Path) -> None:
    table = tmp_path / "times.csv"
    table.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1.0\n")
    found = latency_json(latencies_at(from_csv(str(table)), {}, {1}))
    assert found["GFS-READ"]["operations"] is None
    assert "CSV" in found["GFS-READ"]["reason"]


@given(st.integers(0, BINS - 2))
def test_a_range_in_words_holds_the_range(number: int) -> None:
    each = LatencyRange.of_bin(number)
    text = range_text(each)
    number_text, unit = text.removeprefix("< ").rsplit(" ", 1)
    factor = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit]
    low, _, high = number_text.replace(",", "").rpartition("–")
    assert float(low or 0) * factor <= each.low_seconds * (1 + 1e-12)
    assert each.high_seconds is not None
    assert float(high) * factor >= each.high_seconds * (1 - 1e-12)
    assert all(len(part.replace(".", "").strip("0,")) <= 2 for part in (low.replace(",", ""), high))
