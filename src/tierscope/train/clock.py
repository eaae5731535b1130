"""Times of the phases of a step: on a device by its own events, for which nobody waits before the epoch's end; else by the host's clock."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch


def now(device: torch.device) -> Any:
    """A moment: an event in what the device is told to do, or the host's seconds."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def wait(device: torch.device) -> None:
    """Until the device has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_between(start: Any, end: Any) -> float:
    """Of two moments that have passed on the device."""
    return float(end - start if isinstance(start, float) else start.elapsed_time(end) / 1e3)


def _has_passed(moment: Any) -> bool:
    return isinstance(moment, float) or bool(moment.query())


@dataclass(frozen=True, slots=True)
class _Step:
    """`waited`: seconds that the host was away before it, waiting for the batch."""

    marks: list[tuple[str, Any]]
    waited: float


class StepClock:
    """`mark` ends a phase of a step, `close` what the host does for it. Seconds of steps that the device has done are added up; of the few others the moments are kept.

    The host tells a device what to do before it is done with earlier steps. While it computed these, the host waited for
    a batch at no cost: `overlapped_seconds`.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[str, Any]] = []
        self._steps: deque[_Step] = deque()
        self._left = time.perf_counter()
        self._waited = 0.0
        self._end: Any = None  # of the step that was added up last
        self._seconds: dict[str, float] = {}
        self.overlapped_seconds = 0.0

    def open(self) -> None:
        self._waited = time.perf_counter() - self._left
        self._marks = [("", now(self._device))]

    def mark(self, phase: str) -> None:
        self._marks.append((phase, now(self._device)))

    def close(self) -> None:
        self._steps.append(_Step(self._marks, self._waited))
        while self._steps and _has_passed(self._steps[0].marks[-1][1]):
            self._add_up(self._steps.popleft())
        self._left = time.perf_counter()

    def settle(self) -> None:
        """Waits for the device, which is no waiting for a batch."""
        wait(self._device)
        self._left = time.perf_counter()

    def take(self) -> dict[str, float]:
        """Seconds of every phase since the last call. Waits for the device."""
        wait(self._device)
        while self._steps:
            self._add_up(self._steps.popleft())
        taken, self._seconds, self._end = self._seconds, {}, None
        self._left = time.perf_counter()
        return taken

    def _add_up(self, step: _Step) -> None:
        for (_, before), (phase, after) in zip(step.marks, step.marks[1:], strict=False):
            self._seconds[phase] = self._seconds.get(phase, 0.0) + seconds_between(before, after)
        if self._end is not None:
            idle = seconds_between(self._end, step.marks[0][1])
            self.overlapped_seconds += max(0.0, step.waited - idle)
        self._end = step.marks[-1][1]
