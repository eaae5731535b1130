"""The inner loop of an epoch: where its time goes."""

import time
from collections.abc import Iterator

import pytest

from tierscope.bench.group import Alone
from tierscope.bench.pull import pull
from tierscope.bench.work import EmulatedWork
from tierscope.loaders import Batch


def batches(count: int, wait: float = 0.0) -> Iterator[Batch]:
    for step in range(count):
        time.sleep(wait)
        yield Batch(step, [2 * step, 2 * step + 1], [memoryview(b"abc"), memoryview(b"de")], 7, 11, 13)


class Meeting(Alone):
    """The others are always later."""

    def __init__(self, late: float = 0.0) -> None:
        self.met, self._late = 0, late
        self.told: list[int] = []

    def meet(self) -> None:
        self.met += 1
        time.sleep(self._late)

    def progress(self, amount: int) -> None:
        self.told.append(amount)


def test_waiting_for_others_after_every_step_is_time_of_its_own() -> None:
    group = Meeting(0.003)
    tally = pull(batches(4), EmulatedWork(time.sleep, lambda: 0.001), group, meet=True)
    assert group.met == 4
    assert 4 * 0.003 <= tally.sync_seconds <= tally.seconds
    assert 4 * 0.001 <= tally.compute_seconds <= tally.seconds - tally.sync_seconds
    assert tally.stall_seconds < tally.seconds - tally.sync_seconds - tally.compute_seconds + 0.001


def test_nobody_is_waited_for_unless_asked() -> None:
    group = Meeting(1.0)
    assert pull(batches(3), EmulatedWork(time.sleep, lambda: 0.0), group).sync_seconds == 0
    assert group.met == 0


def test_what_is_done_after_a_step_is_told_how_many_are_done_and_timed() -> None:
    done: list[int] = []

    def after(steps: int) -> None:
        done.append(steps)
        time.sleep(0.002)

    tally = pull(batches(3), EmulatedWork(time.sleep, lambda: 0.0), Meeting(), after_step=after)
    assert done == [1, 2, 3]
    assert 3 * 0.002 <= tally.checkpoint_seconds <= tally.seconds
    assert tally.stall_seconds < tally.seconds - tally.checkpoint_seconds + 0.001


def test_sums_are_those_of_the_batches() -> None:
    group = Meeting()
    tally = pull(batches(5, 0.001), EmulatedWork(time.sleep, lambda: 0.0), group)
    assert (tally.samples, tally.payload_bytes) == (10, 25)
    assert tally.decode_seconds == pytest.approx(55e-9)
    assert tally.preprocess_seconds == pytest.approx(65e-9)
    assert tally.stall_seconds >= 0.005
    assert group.told == [2] * 5
    assert len(tally.steps) == 5


def test_every_step_has_its_own_time() -> None:
    seconds = iter([0.001, 0.004, 0.0, 0.002])
    tally = pull(batches(4), EmulatedWork(time.sleep, lambda: next(seconds)), Meeting())
    assert [value >= least for value, least in zip(tally.steps[:, 2], (0.001, 0.004, 0, 0.002), strict=True)] == [
        True
    ] * 4
    assert tally.steps[2, 2] == 0
    assert tally.compute_seconds == pytest.approx(tally.steps[:, 2].sum())
