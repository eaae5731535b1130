"""Phases of steps on a device that is behind its host, with moments that a test makes."""

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
import torch

from tierscope.train import clock
from tierscope.train.clock import StepClock

pytestmark = pytest.mark.torch


class Moment:
    """As an event of a device: `passed` when the device came to it."""

    done_until = 0.0

    def __init__(self, at: float) -> None:
        self.at = at

    def query(self) -> bool:
        return self.at <= Moment.done_until

    def elapsed_time(self, end: "Moment") -> float:
        return (end.at - self.at) * 1e3


def run(monkeypatch: pytest.MonkeyPatch, device: list[float], host: list[float], steps: int) -> StepClock:
    """`device`: two moments of each step. `host`: when it is made, then when it comes to each step and leaves it."""
    moments: Iterator[Moment] = map(Moment, device)
    seconds = iter(host)
    monkeypatch.setattr(clock, "now", lambda _: next(moments))
    monkeypatch.setattr(clock, "wait", lambda _: None)
    monkeypatch.setattr("tierscope.train.clock.time.perf_counter", lambda: next(seconds))
    made = StepClock(torch.device("cpu"))
    for _ in range(steps):
        made.open()
        made.mark("forward")
        made.close()
    return made


def test_waiting_that_the_device_does_not_notice_is_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    Moment.done_until = 0.0
    # The device computes from 1 to 5 and from 5 to 9 without a pause; meanwhile the host waited three seconds for the second batch.
    made = run(monkeypatch, [1, 5, 5, 9], [0, 1, 1.5, 4.5, 4.6, 9], 2)
    assert made.take() == pytest.approx({"forward": 8.0})
    assert made.overlapped_seconds == pytest.approx(3.0)


def test_waiting_while_the_device_idles_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    Moment.done_until = 0.0
    made = run(monkeypatch, [1, 2, 5, 9], [0, 1, 2, 5, 5.1, 9], 2)
    assert made.take() == pytest.approx({"forward": 5.0})
    assert made.overlapped_seconds == pytest.approx(0.0)


def test_steps_that_are_done_are_added_up_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    Moment.done_until = 100.0
    made = run(monkeypatch, [1, 2, 2, 3, 3, 4], [0, 1, 2, 2, 3, 3, 4, 5], 3)
    assert not made._steps
    assert made.take() == pytest.approx({"forward": 3.0})
