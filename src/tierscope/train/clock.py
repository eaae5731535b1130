"""Times of the phases of a step: on a device by its own events, which cost no waiting until the step's end; else by the host's clock."""

import time
from typing import Any

import torch


class StepClock:
    """`mark` ends a phase; `close` waits for the device and gives the seconds of every phase since `open`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[str, Any]] = []

    def _now(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def open(self) -> None:
        self._marks = [("", self._now())]

    def mark(self, phase: str) -> None:
        self._marks.append((phase, self._now()))

    def close(self) -> dict[str, float]:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        seconds: dict[str, float] = {}
        for (_, before), (phase, after) in zip(self._marks, self._marks[1:], strict=False):
            passed = before.elapsed_time(after) / 1e3 if self._device.type == "cuda" else after - before
            seconds[phase] = seconds.get(phase, 0.0) + passed
        return seconds
