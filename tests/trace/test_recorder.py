"""The recorder against brute force: what was done is what it says, to the nanosecond."""

import itertools
import random
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import empty_lane
from tierscope.trace import recorder
from tierscope.trace.ops import BINS, CLOSE, KINDS, OP_ROW, OPEN, READ, STAT
from tierscope.trace.recorder import Lane, LaneTable, OpSink, WallClock

TIERS = 2
ARRAYS = ("ops", "nbytes", "busy_ns", "wall_ns", "sizes", "latencies")


class FakeClock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


@contextmanager
def fake_time(ring: int | None = None) -> Iterator[FakeClock]:
    """A clock that a test sets, and perhaps a small ring, so that it overflows soon."""
    clock = FakeClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "_now", clock)
        if ring is not None:
            patch.setattr(recorder, "_RING", ring)
        yield clock


class Op(NamedTuple):
    tier: int
    kind: int
    step: int
    file: int
    offset: int
    nbytes: int
    pause: int
    busy: int


OPS = st.builds(
    Op,
    tier=st.integers(0, TIERS - 1),
    kind=st.integers(0, len(KINDS) - 1),
    step=st.integers(0, 2**40),
    file=st.integers(0, 2**40),
    offset=st.integers(0, 2**40),
    nbytes=st.integers(0, 2**50),
    pause=st.integers(0, 100),
    busy=st.integers(0, 2**50),
)


def random_ops(count: int, seed: int = 1) -> list[Op]:
    draw = random.Random(seed).randrange
    return [
        Op(draw(TIERS), draw(len(KINDS)), draw(99), draw(10**6), draw(10**6), draw(2**20), draw(50), draw(2**30))
        for _ in range(count)
    ]


def record(lane: Lane, clock: FakeClock, ops: Sequence[Op]) -> list[int]:
    """Do the operations on the fake clock; when each began."""
    starts = []
    for op in ops:
        clock.now += op.pause
        starts.append(clock.now)
        lane.step = op.step
        lane.begin()
        clock.now += op.busy
        lane.end(op.tier, op.kind, op.file, op.offset, op.nbytes)
    return starts


def account(ops: Sequence[Op], number: int = 0) -> LaneTable:
    """The same table by plain counting; a lane alone has all the wall time."""
    table = empty_lane(number, TIERS)
    for op in ops:
        cell = op.tier * len(KINDS) + op.kind
        table.ops[cell] += 1
        table.nbytes[cell] += op.nbytes
        table.busy_ns[cell] += op.busy
        table.wall_ns[cell] += op.busy
        table.sizes[cell * BINS + min(BINS - 1, op.nbytes.bit_length())] += 1
        table.latencies[cell * BINS + min(BINS - 1, op.busy.bit_length())] += 1
    return table


def assert_same(found: LaneTable, expected: LaneTable) -> None:
    assert found.lane == expected.lane
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


class Kept(OpSink):
    """The list of operations in memory."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.appended: list[int] = []

    def append(self, rows: npt.NDArray[np.void]) -> None:
        self.rows += rows.tolist()
        self.appended.append(len(rows))


def expected_rows(ops: Sequence[Op], starts: Sequence[int], epoch: int, lane: int) -> list[tuple[int, ...]]:
    return [
        (epoch, lane, op.step, op.tier, op.kind, op.file, op.offset, op.nbytes, start, op.busy)
        for op, start in zip(ops, starts, strict=True)
    ]


@given(st.lists(OPS, max_size=60), st.integers(1, 9))
def test_sums_and_histograms_equal_a_plain_count(ops: list[Op], ring: int) -> None:
    with fake_time(ring) as clock:
        lane = Lane(3, TIERS)
        record(lane, clock, ops)
        assert_same(lane.finish(), account(ops, 3))


def test_rings_of_the_real_size_overflow_without_loss() -> None:
    ops, sink = random_ops(2 * recorder._RING + 17), Kept()
    with fake_time() as clock:
        lane = Lane(0, TIERS, sink=sink)
        starts = record(lane, clock, ops)
        assert sink.appended == [recorder._RING] * 2  # flushed on the way, not only at the end
        assert_same(lane.finish(), account(ops))
    assert sink.rows == expected_rows(ops, starts, 1, 0)


def test_the_list_reaches_its_file(tmp_path: Path) -> None:
    ops, path = random_ops(100), tmp_path / "rank.ops"
    sink = OpSink(str(path))
    with fake_time() as clock:
        lane = Lane(5, TIERS, epoch=4, sink=sink)
        starts = record(lane, clock, ops)
        lane.finish()
    sink.close()
    assert np.fromfile(path, OP_ROW).tolist() == expected_rows(ops, starts, 4, 5)


@pytest.mark.parametrize(
    ("value", "bin_"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11), (2**60, BINS - 1)]
)
def test_a_bin_counts_one_power_of_two(value: int, bin_: int) -> None:
    with fake_time() as clock:
        lane = Lane(0, 1)
        record(lane, clock, [Op(0, STAT, 0, 0, 0, value, 0, value)])
        table = lane.finish()
    for histogram in (table.sizes, table.latencies):
        assert np.flatnonzero(histogram).tolist() == [STAT * BINS + bin_]


FILES = st.lists(
    st.tuples(
        st.integers(0, TIERS - 1),
        st.integers(0, 2**40),
        st.integers(0, 2**40),
        st.tuples(*(st.integers(0, 2**30) for _ in range(3))),
    ),
    max_size=30,
)


@given(FILES, st.integers(1, 9))
def test_a_whole_file_is_an_open_a_read_and_a_close(
    files: list[tuple[int, int, int, tuple[int, int, int]]], ring: int
) -> None:
    sinks = [Kept(), Kept()]
    with fake_time(ring) as clock:
        whole, framed = (Lane(1, TIERS, epoch=2, sink=sink) for sink in sinks)
        for step, (tier, file, nbytes, (opening, reading, closing)) in enumerate(files):
            whole.step = framed.step = step
            t0 = clock.now
            t1, t2, t3 = t0 + opening, t0 + opening + reading, t0 + opening + reading + closing
            whole.whole_file(tier, file, nbytes, t0, t1, t2, t3)
            for kind, size, end in ((OPEN, 0, t1), (READ, nbytes, t2), (CLOSE, 0, t3)):
                framed.begin()
                clock.now = end
                framed.end(tier, kind, file, 0, size)
        assert_same(whole.finish(), framed.finish())
    assert sorted(sinks[0].rows) == sorted(sinks[1].rows)
    assert len(sinks[0].rows) == 3 * len(files)


@given(st.lists(st.lists(OPS, max_size=20), min_size=1, max_size=3), st.integers(1, 9))
def test_the_list_has_every_operation_as_recorded(lanes: list[list[Op]], ring: int) -> None:
    sink, expected = Kept(), []
    with fake_time(ring) as clock:
        for number, ops in enumerate(lanes):
            lane = Lane(number, TIERS, epoch=7, sink=sink)
            starts = record(lane, clock, ops)
            lane.finish()
            expected += expected_rows(ops, starts, 7, number)
    assert sink.rows == expected


class Span(NamedTuple):
    """One operation: a lane, and from when to when."""

    lane: int
    start: int
    end: int


def walls(spans: Sequence[Span]) -> list[int]:
    """The recorder's wall nanoseconds of each operation; a lane's spans must be in order. A tier for each tells them apart."""
    events = [(at, span.lane, index, ending) for index, span in enumerate(spans) for ending, at in enumerate(span[1:])]
    with fake_time() as time:
        clock = WallClock()
        lanes = {span.lane: Lane(span.lane, len(spans), clock=clock) for span in spans}
        for at, lane, index, ending in sorted(events):
            time.now = at
            if ending:
                lanes[lane].end(index, READ, 0, 0, 0)
            else:
                lanes[lane].begin()
        tables = {number: lane.finish() for number, lane in lanes.items()}
    for index, span in enumerate(spans):
        assert tables[span.lane].busy_ns[index * len(KINDS) + READ] == span.end - span.start
    return [int(tables[span.lane].wall_ns[index * len(KINDS) + READ]) for index, span in enumerate(spans)]


def shares(spans: Sequence[Span]) -> list[Fraction]:
    """Each instant shared equally by the operations then active, by definition."""
    edges = sorted({edge for span in spans for edge in span[1:]})
    share = [Fraction(0)] * len(spans)
    for low, high in itertools.pairwise(edges):
        active = [index for index, span in enumerate(spans) if span.start <= low and high <= span.end]
        for index in active:
            share[index] += Fraction(high - low, len(active))
    return share


def covered(spans: Sequence[Span]) -> int:
    """The length of the union."""
    total, reached = 0, 0
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([Span(0, 0, 10)], [10]),
        ([Span(0, 0, 10), Span(1, 20, 30)], [10, 10]),
        ([Span(0, 0, 10), Span(1, 10, 30)], [10, 20]),
        ([Span(0, 0, 12), Span(1, 0, 12)], [6, 6]),
        ([Span(0, 0, 12), Span(1, 6, 18)], [9, 9]),
        ([Span(0, 0, 30), Span(1, 6, 24), Span(2, 12, 18)], [20, 8, 2]),
        ([Span(0, 0, 10), Span(1, 5, 5)], [10, 0]),
        ([Span(0, 0, 10), Span(0, 10, 20), Span(1, 0, 20)], [5, 5, 10]),
    ],
)
def test_wall_time_by_hand(spans: list[Span], expected: list[int]) -> None:
    assert walls(spans) == expected


@st.composite
def schedules(draw: st.DrawFn) -> list[Span]:
    """Up to four lanes, each with one operation after another; multiples of 12 can be shared by 1 to 4 exactly."""
    spans = []
    for lane in range(draw(st.integers(1, 4))):
        now = 0
        for pause, busy in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=6)):
            now += 12 * pause
            spans.append(Span(lane, now, now + 12 * busy))
            now += 12 * busy
    return spans


@given(schedules())
def test_wall_time_shares_each_instant(spans: list[Span]) -> None:
    found = walls(spans)
    assert found == shares(spans)
    assert sum(found) == covered(spans)
    assert all(wall <= span.end - span.start for wall, span in zip(found, spans, strict=True))


def test_wall_time_of_real_threads_is_no_more_than_the_clock_gave() -> None:
    clock, ops = WallClock(), 300

    def work(lane: Lane) -> None:
        barrier.wait()
        for _ in range(ops):
            lane.begin()
            sum(range(50))
            lane.end(0, READ, 0, 0, 0)

    lanes = [Lane(number, 1, clock=clock) for number in range(4)]
    barrier = threading.Barrier(len(lanes))
    threads = [threading.Thread(target=work, args=(lane,)) for lane in lanes]
    begun = recorder._now()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = recorder._now() - begun
    tables = [lane.finish() for lane in lanes]
    assert [int(table.ops.sum()) for table in tables] == [ops] * len(lanes)
    assert 0 < sum(int(table.wall_ns.sum()) for table in tables) <= elapsed
    assert all(int(table.wall_ns.sum()) <= int(table.busy_ns.sum()) for table in tables)


def test_an_abandoned_operation_leaves_no_record_and_frees_the_clock() -> None:
    sink = Kept()
    with fake_time() as time:
        clock = WallClock()
        failing, other = Lane(0, 1, clock=clock, sink=sink), Lane(1, 1, clock=clock, sink=sink)
        time.now = 0
        failing.begin()
        time.now = 6
        other.begin()
        time.now = 12
        failing.abandon()
        time.now = 24
        other.end(0, READ, 5, 0, 10)
        assert not any(np.any(getattr(failing.finish(), name)) for name in ARRAYS)
        assert other.finish().wall_ns[READ] == 6 // 2 + 12  # alone again after the other one failed
    assert [row[5] for row in sink.rows] == [5]


def test_a_lane_goes_on_after_an_abandoned_operation() -> None:
    ops = random_ops(5)
    with fake_time() as time:
        lane = Lane(0, TIERS)
        lane.begin()
        time.now += 100
        lane.abandon()
        record(lane, time, ops)
        assert_same(lane.finish(), account(ops))


def test_memory_does_not_grow_with_operations() -> None:
    clock = WallClock()

    def peak(lane: Lane, ops: int) -> int:
        tracemalloc.reset_peak()
        for number in range(ops):
            lane.begin()
            lane.end(0, READ, number, 0, number)
            lane.whole_file(1, number, number, 0, 1, 2, 3)
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        lane = Lane(0, TIERS, clock=clock)
        few = peak(lane, recorder._RING + 1)
        assert peak(lane, 10 * recorder._RING) <= few + 4096
    finally:
        tracemalloc.stop()


def test_the_cost_of_recording_is_measured() -> None:
    framed, whole = recorder.cost_per_op_seconds(repeats=200)
    assert 0 < framed < 1e-3
    assert 0 < whole < 1e-3


def test_readings_taken_before_may_be_given() -> None:
    """Where one operation ends as the next begins, one look at the clock serves both."""
    with fake_time():
        given, framed = Lane(0, TIERS), Lane(0, TIERS)
        given.begin(100)
        given.end(0, OPEN, 0, 0, 0, 130)
        given.begin(130)
        given.end(0, READ, 0, 0, 50, 200)
    with fake_time() as clock:
        record(framed, clock, [Op(0, OPEN, 0, 0, 0, 0, 0, 30), Op(0, READ, 0, 0, 0, 50, 0, 70)])
        assert_same(given.finish(), framed.finish())
