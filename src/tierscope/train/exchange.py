"""The all-reduce of gradients, timed bucket by bucket; it goes on during backward."""

import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

from tierscope.train.clock import now, seconds_between, wait

_SETTLED_SECONDS = 30.0


class Exchange:
    """As torch's hook for its data-parallel wrapper: the average over ranks, as without a hook."""

    def __init__(self, device: torch.device, size: int) -> None:
        self._device, self._size = device, size
        self._events: list[tuple[Any, Any]] = []
        self._held: list[weakref.ref[Callable[..., Any]]] = []  # what the library's threads will still let go of

    def reduce(self, _state: object, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer().div_(self._size)
        start = now(self._device)
        future = distributed.all_reduce(buffer, async_op=True).get_future()

        def done(reduced: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            self._events.append((start, now(self._device)))
            return reduced.value()[0]

        self._held = [held for held in self._held if held() is not None]
        self._held.append(weakref.ref(done))
        return future.then(done)

    def turn(self) -> float:
        """Seconds since the last call, buckets summed."""
        wait(self._device)
        taken, self._events = self._events, []
        return sum(seconds_between(start, end) for start, end in taken)

    def settle(self) -> None:
        """Before the group of ranks is left: its threads take the interpreter's lock to let go of what was called, and leaving waits for them with that lock."""
        deadline = time.monotonic() + _SETTLED_SECONDS
        while any(held() is not None for held in self._held) and time.monotonic() < deadline:
            time.sleep(0.001)
