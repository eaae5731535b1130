"""The all-reduce of gradients, timed bucket by bucket; it goes on during backward."""

import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

_SETTLED_SECONDS = 30.0


class Exchange:
    """As torch's hook for its data-parallel wrapper: the average over ranks, as without a hook."""

    def __init__(self, device: torch.device, size: int) -> None:
        self._device, self._size = device, size
        self._seconds = 0.0
        self._events: list[tuple[Any, Any]] = []
        self._held: list[weakref.ref[Callable[..., Any]]] = []  # what the library's threads will still let go of

    def reduce(self, _state: object, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer().div_(self._size)
        begin = self._now()
        future = distributed.all_reduce(buffer, async_op=True).get_future()

        def done(reduced: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            self._events.append((begin, self._now()))
            return reduced.value()[0]

        self._held = [held for held in self._held if held() is not None]
        self._held.append(weakref.ref(done))
        return future.then(done)

    def _now(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def turn(self) -> float:
        """Seconds since the last call, buckets summed."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            seconds = sum(begin.elapsed_time(end) / 1e3 for begin, end in self._events)
        else:
            seconds = sum(end - begin for begin, end in self._events)
        self._events = []
        return float(seconds)

    def settle(self) -> None:
        """Before the group of ranks is left: its threads take the interpreter's lock to let go of what was called, and leaving waits for them with that lock."""
        deadline = time.monotonic() + _SETTLED_SECONDS
        while any(held() is not None for held in self._held) and time.monotonic() < deadline:
            time.sleep(0.001)
