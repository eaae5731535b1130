"""The Character of runs made by hand: every number is known beforehand, sums are conserved, and what is not known says why."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import OP_BYTES, trace_of, traced, without_loop
from tierscope.analysis.character_metrics import METRICS, limited
from tierscope.analysis.character_ops import AccessOrder, OpList, SizeBin, accesses, suffix_of
from tierscope.analysis.character_time import BINS, TimeBins
from tierscope.analysis.characterise import Character, TraceExtras, characterise
from tierscope.analysis.hidden import hidden_of
from tierscope.output.op_list import SCHEMA
from tierscope.trace.trace import Trace

TWO_RANKS = {
    (0, 1): {"GFS-READ": 2.0, "GFS-META": 1.0, "LFS-READ": 0.5},
    (1, 1): {"GFS-READ": 4.0, "LFS-META": 1.0},
}


def ops(*rows: tuple[Any, ...]) -> OpList:
    """(rank, lane, kind, file, offset, bytes, start, seconds) in epoch 1, on tier gfs."""
    full = [(rank, lane, 1, 0, "gfs", kind, *rest) for rank, lane, kind, *rest in rows]
    return OpList(pl.DataFrame(full, SCHEMA, orient="row").lazy())


def values(character: Character) -> dict[str, float | None]:
    return {name: fact.value for name, fact in character.metrics.items()}


def test_a_hand_made_run() -> None:
    found = characterise(trace_of(TWO_RANKS))
    assert list(found.metrics) == list(METRICS)
    metrics = values(found)
    assert metrics["io_seconds"] == pytest.approx(8.5)
    assert metrics["bytes"] == 3 * OP_BYTES
    assert metrics["bandwidth_per_operation"] == pytest.approx(300 / 6.5)
    # All reads are in one bin, so the mean stands for each of them, within the bin.
    for name in ("transfer_min", "transfer_median", "transfer_max", "transfer_mean"):
        assert metrics[name] == 100.0
    assert found.metrics["transfer_min"].limits == (64.0, 127.0)
    assert found.sizes == (SizeBin(64, 128, 3),)
    assert [(one.rank, one.read_bytes) for one in found.ranks] == [(0, 200), (1, 100)]
    assert [one.bandwidth for one in found.ranks] == pytest.approx([200 / 2.5, 25.0])
    assert [(one.tier, one.reads, one.read_seconds, one.meta_seconds) for one in found.tiers] == [
        ("lfs", 1, 0.5, 1.0),
        ("gfs", 2, 6.0, 1.0),
    ]
    assert found.aggregate_bandwidth.value == pytest.approx(300 / 5.0)
    assert found.io_percent.value == pytest.approx(100 * 8.5 / 20)


def test_what_is_not_known_says_why() -> None:
    found = characterise(trace_of(TWO_RANKS))
    for name in ("sequential_percent", "consecutive_percent", "files"):
        assert found.metrics[name].value is None
        assert "--ops" in found.metrics[name].reason
    assert set(found.missing) == {"files", "formats"}
    command = characterise(without_loop(trace_of(TWO_RANKS, about=traced())))
    assert command.timeline is None
    assert "--ops" in command.missing["timeline"]
    assert command.hidden.reason == "it has no compute times"


def test_a_run_that_read_nothing() -> None:
    found = characterise(trace_of({(0, 1): {"GFS-META": 1.0}}))
    assert values(found)["bytes"] == 0
    assert found.metrics["transfer_mean"].reason == "nothing was read"
    assert found.metrics["bandwidth_per_operation"].reason == "nothing was read"
    assert found.ranks[0].bandwidth is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(0, 50)), min_size=1, max_size=20))
def test_bytes_are_conserved(reads: list[tuple[int, int, int]]) -> None:
    """Over ranks, tiers and time: what was read is the same in every view."""
    classes: dict[tuple[int, int], dict[str, float]] = {}
    for rank, epoch, spent in reads:
        classes.setdefault((rank, epoch), {})["GFS-READ" if spent % 2 else "LFS-READ"] = spent / 10
    found = characterise(trace_of(classes, seconds=3.0))
    total = found.metrics["bytes"].value
    assert sum(one.read_bytes for one in found.ranks) == total
    assert sum(one.read_bytes for one in found.tiers) == total
    assert found.timeline is not None
    assert sum(found.timeline.bytes_per_second) * found.timeline.bin_seconds == pytest.approx(total)


# Hidden I/O


def hiding(stall: float, compute: float, read: float = 4.0, wall_share: float = 1.0) -> Trace:
    seconds = {(0, 1): {"GFS-READ": read}}
    return trace_of(seconds, wall_share=wall_share, stall_seconds=stall, compute_seconds=compute)


@pytest.mark.parametrize(
    ("stall", "compute", "share"),
    [
        (4.0, 0.0, 0.0),  # nothing to hide behind
        (0.5, 0.0, 0.0),  # prefetched, and yet there was no compute
        (0.0, 9.0, 1.0),  # full overlap
        (1.0, 9.0, 0.75),
        (4.0, 9.0, 0.0),
        (6.0, 9.0, 0.0),  # the loader does more than read
    ],
)
def test_hidden_is_what_did_not_stall(stall: float, compute: float, share: float) -> None:
    assert hidden_of(hiding(stall, compute)).share == pytest.approx(share)


def test_operations_that_overlap_count_once() -> None:
    """Four busy seconds in two of wall time: a stall of one is half of them."""
    assert hidden_of(hiding(1.0, 9.0, wall_share=0.5)).share == pytest.approx(0.5)


def test_the_slowest_rank_is_told_apart() -> None:
    fast = hiding(0.0, 9.0, read=1.0).table
    slow = hiding(3.0, 9.0, read=3.0).table.with_columns(rank=pl.lit(1, pl.Int32))
    found = hidden_of(Trace(hiding(0, 0).key, hiding(0, 0).about, pl.concat([fast, slow])))
    assert found.share == pytest.approx(0.25)  # one of four seconds
    assert [(one.rank, one.share) for one in found.slowest] == [(1, 0.0)]
    assert found.slowest_share == 0.0


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("compute_seconds", "it has no compute times"),
        ("stall_seconds", "it has no stall times"),
        ("wall_seconds", "it has no wall seconds"),
    ],
)
def test_hidden_is_null_where_a_part_is_unknown(column: str, reason: str) -> None:
    trace = hiding(1.0, 1.0)
    without = trace.table.with_columns(pl.lit(None, pl.Float64).alias(column))
    found = hidden_of(Trace(trace.key, trace.about, without))
    assert found.share is None
    assert reason in found.reason


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0.001, 10), st.floats(0.01, 1))
def test_hidden_is_a_share(stall: float, compute: float, read: float, wall: float) -> None:
    share = hidden_of(hiding(stall, compute, read, wall)).share
    assert share is not None
    assert 0 <= share <= 1


# Single operations


def test_sequential_and_consecutive_reads() -> None:
    listed = ops(
        (0, 0, "open", 7, 0, 0, 0.0, 0.1),
        (0, 0, "read", 7, 0, 10, 1.0, 0.5),  # the first follows none
        (0, 0, "read", 7, 10, 10, 2.0, 0.5),  # consecutive
        (0, 0, "read", 7, 50, 10, 3.0, 0.5),  # sequential
        (0, 0, "read", 7, 5, 30, 4.0, 0.5),  # back
        (0, 1, "read", 7, 0, 10, 4.5, 0.5),  # another thread
        (0, 0, "close", 7, 0, 0, 5.0, 0.1),
        (0, 0, "open", 7, 0, 0, 6.0, 0.1),
        (0, 0, "read", 7, 0, 10, 7.0, 0.5),  # opened anew
        (None, 0, "read", 7, 10, 10, 8.0, 0.5),  # no rank's
        (0, 0, "write", 7, 0, 10, 9.0, 0.5),
        (0, 0, "write", 7, 10, 10, 10.0, 0.5),  # consecutive
    )
    found = accesses([listed], {7: "/gfs/a.npz"}, None)
    assert found is not None
    assert found.reads == AccessOrder(6, 2, 1)  # METHOD: shares are of all reads, as DLIO has them
    assert found.writes == AccessOrder(2, 1, 1)
    assert found.exact == (10.0, 10.0, 30.0)
    assert (found.files, found.formats[0].name, found.formats[0].reads) == (1, "npz", 6)
    assert (found.largest[0].name, found.largest[0].read_bytes, found.largest[0].ranks) == ("/gfs/a.npz", 80, 1)


def test_order_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(1)
    rows = [
        (
            int(rank),
            0,
            ("open", "read", "read", "read", "close")[int(kind)],
            int(file),
            10 * int(place),
            10,
            float(at),
            0.1,
        )
        for at, (rank, kind, file, place) in enumerate(dice.integers(0, (2, 5, 3, 4), (400, 4)))
    ]
    whole = accesses([ops(*rows)], None, "raw")
    monkeypatch.setattr("tierscope.analysis.character_ops._ROWS", 17)
    assert accesses([ops(*rows)], None, "raw") == whole


def test_a_median_between_two() -> None:
    listed = ops(*((0, 0, "read", 1, 0, size, float(size), 0.1) for size in (10, 20, 40, 100)))
    found = accesses([listed], None, None)
    assert found is not None
    assert found.exact == (10.0, 30.0, 100.0)


def test_operations_say_when_bytes_came() -> None:
    """Two nodes whose clocks differ: time counts from each one's first operation."""
    lists = [ops((0, 0, "read", 1, 0, 600, 100.0, 5.0)), ops((1, 0, "read", 2, 0, 600, 9000.0, 10.0))]
    trace = trace_of({(0, 1): {"GFS-READ": 5.0}, (1, 1): {"GFS-READ": 10.0}}, seconds=10.0, compute_seconds=2.0)
    timeline = characterise(trace, TraceExtras(lists)).timeline
    assert timeline is not None
    assert timeline.basis == "operations"
    assert timeline.seconds == pytest.approx(10.0)
    assert timeline.bytes_per_second[:60] == pytest.approx([180.0] * 60)
    assert timeline.bytes_per_second[60:] == pytest.approx([60.0] * 60)
    assert timeline.in_flight is not None
    assert timeline.in_flight[0] == pytest.approx(2.0)
    assert timeline.computing is not None
    assert sum(timeline.computing) * timeline.bin_seconds == pytest.approx(4.0)


def test_steps_give_a_coarser_bandwidth() -> None:
    """Two steps: waits 1 s and computes 3 s, then waits 3 s and computes 1 s; each has half of the bytes."""
    steps = np.array([[1.0, 1.0, 3.0], [3.0, 3.0, 1.0]])
    trace = trace_of({(0, 1): {"GFS-READ": 4.0}}, seconds=8.0, steps=steps, stall_seconds=4.0, compute_seconds=4.0)
    timeline = characterise(trace).timeline
    assert timeline is not None
    assert timeline.basis == "steps"
    assert timeline.in_flight is None
    assert timeline.bytes_per_second == pytest.approx([12.5] * BINS)
    assert timeline.stalled == pytest.approx([1.0] * 15 + [0.0] * 45 + [1.0] * 45 + [0.0] * 15, abs=1e-9)


def test_epochs_lie_one_after_another() -> None:
    trace = trace_of({(0, 1): {"GFS-READ": 1.0}, (0, 2): {"GFS-READ": 1.0}}, seconds=4.0)
    timeline = characterise(trace).timeline
    assert timeline is not None
    assert timeline.basis == "epochs"
    assert timeline.epoch_starts == {1: 0.0, 2: 4.0}
    assert timeline.bytes_per_second == pytest.approx([25.0] * BINS)


@given(
    st.lists(
        st.tuples(st.floats(-1, 12), st.floats(0, 12), st.floats(0, 1e9)),
        max_size=30,
    )
)
def test_spreading_loses_nothing(intervals: Sequence[tuple[float, float, float]]) -> None:
    axis = TimeBins.of({1: 10.0})
    assert axis is not None
    starts, longs, amounts = np.array(intervals, float).reshape(-1, 3).T
    found = axis.spread(starts, starts + longs, amounts)
    assert found.sum() == pytest.approx(amounts.sum(), rel=1e-6, abs=1e-3)
    assert (found >= -1e-3).all()


def test_bins_of_counters_hold_their_upper_limit() -> None:
    """Darshan counts a read of 1 MiB below 1 MiB."""
    found = list(limited({100: 2, 1024: 0, 1 << 20: 3, None: 1}))
    assert found == [SizeBin(0, 101, 2), SizeBin(1025, (1 << 20) + 1, 3), SizeBin((1 << 20) + 1, None, 1)]


@pytest.mark.parametrize(
    ("path", "suffix"),
    [("/a/b.NPZ", "npz"), ("/a/b.tar.gz", "tar.gz"), ("/a.b/c", "(none)"), ("/a/.hidden", "(none)"), ("", "(none)")],
)
def test_endings_of_names(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix


def test_ranks_that_did_nothing_are_there() -> None:
    found = characterise(trace_of({(0, 1): {"GFS-READ": 1.0}, (1, 1): {}}))
    assert [(one.rank, one.read_bytes) for one in found.ranks] == [(0, 100), (1, 0)]
