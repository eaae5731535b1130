"""Times of the phases of a step: on a device by its own events, which cost no waiting until the step's end; else by the host's clock."""

import time
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


def seconds_between(begin: Any, end: Any) -> float:
    """Of two moments, when the device has been waited for."""
    return float(end - begin if isinstance(begin, float) else begin.elapsed_time(end) / 1e3)


class StepClock:
    """`mark` ends a phase; `close` waits for the device and gives the seconds of every phase since `open`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[str, Any]] = []

    def open(self) -> None:
        self._marks = [("", now(self._device))]

    def mark(self, phase: str) -> None:
        self._marks.append((phase, now(self._device)))

    def close(self) -> dict[str, float]:
        wait(self._device)
        seconds: dict[str, float] = {}
        for (_, before), (phase, after) in zip(self._marks, self._marks[1:], strict=False):
            seconds[phase] = seconds.get(phase, 0.0) + seconds_between(before, after)
        return seconds
