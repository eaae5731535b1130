"""What ranks note of themselves while they run: the recorder's own counts, in memory that only their own host can reach."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.bench.live import WAITING, LiveBoard, Pulse, joined, publish, publishing
from tierscope.trace.live_totals import LiveTotals
from tierscope.trace.ops import READ, WRITE
from tierscope.trace.recorder import Lane, Recording

OPS = st.tuples(st.integers(0, 1), st.sampled_from([READ, WRITE]), st.integers(0, 10**6))


@given(st.lists(OPS, max_size=50), st.lists(st.tuples(st.integers(0, 1), st.integers(0, 10**6)), max_size=50))
def test_a_lane_tells_what_it_will_hand_over(ops: list[tuple[int, int, int]], files: list[tuple[int, int]]) -> None:
    """Before its ring is summed up and after."""
    lane = Lane(0, 2)
    for tier, kind, nbytes in ops:
        lane.begin(at=0)
        lane.end(tier, kind, 0, 0, nbytes, at=1)
    for tier, nbytes in files:
        lane.whole_file(tier, 0, nbytes, 0, 1, 2, 3)
    read, written, count = np.zeros(2, int), np.zeros(2, int), np.zeros(2, int)
    for tier, kind, nbytes in ops:
        (read if kind == READ else written)[tier] += nbytes
        count[tier] += 1
    for tier, nbytes in files:
        read[tier] += nbytes
        count[tier] += 3
    for _ in range(2):
        moved = lane.moved()
        assert moved is not None
        assert moved.T.tolist() == [read.tolist(), written.tolist(), count.tolist()]
        lane.finish()


def test_totals_go_on_from_epoch_to_epoch_and_never_back() -> None:
    totals = LiveTotals(1)
    for epoch in (1, 2, 3):
        recording = Recording(1, epoch, live=totals)
        (lane,) = recording.lanes(1)
        for _ in range(3000):  # more than a ring
            lane.begin(at=0)
            lane.end(0, READ, 0, 0, 10, at=1)
        assert totals.now()[0].tolist() == [30_000 * epoch, 0, 3000 * epoch]
        lane.finish()
        totals.end_epoch()
    assert totals.now()[0].tolist() == [90_000, 0, 9000]


def test_while_sums_are_made_the_last_value_counts() -> None:
    totals, answers = LiveTotals(1), iter([np.array([[5, 0, 1]]), None, np.array([[7, 0, 2]])])
    totals.follow(lambda: next(answers))
    assert [totals.now()[0, 0] for _ in range(3)] == [5, 5, 7]


@pytest.fixture
def board() -> LiveBoard:
    return LiveBoard(3, 2, 0.01)


def test_a_row_is_read_as_it_was_written(board: LiveBoard) -> None:
    rows = joined(board.at)
    assert rows is not None
    totals = LiveTotals(2)
    totals.follow(lambda: np.array([[1, 2, 3], [4, 5, 6]]))
    publish(rows, 1, Pulse(2, 77, WAITING), totals)
    first, second, third = board.states()
    assert (first, third) == (None, None)
    assert second is not None
    assert (second.rank, second.epoch, second.samples, second.doing) == (1, 2, 77, WAITING)
    assert second.moved == ((1, 2, 3), (4, 5, 6))
    rows["sequence"][1] += 1  # in the middle of a write
    assert board.states()[1] is None
    board.close()


def test_a_board_of_another_host_is_not_believed(board: LiveBoard) -> None:
    """The same path may lead to anything there."""
    for other in (
        replace(board.at, boot="another"),
        replace(board.at, token=b"x" * 16),
        replace(board.at, ranks=4),
        replace(board.at, path="/proc/1/fd/999999"),
    ):
        assert joined(other) is None
        with publishing(other, 0, Pulse(), LiveTotals(2)):
            pass
    assert board.states() == (None, None, None)
    board.close()


def test_the_last_row_is_that_of_the_end(board: LiveBoard) -> None:
    pulse = Pulse()
    with publishing(board.at, 0, pulse, LiveTotals(2)):
        pulse.samples = 5
    state = board.states()[0]
    assert state is not None
    assert state.samples == 5
    board.close()
