"""Samples on their way to an accelerator: fetched by the device from the memory that they were read into, while it computes earlier steps.

The loader's memory is pinned (page-locked), so that a copy is the device's own work, on a stream of its own. Casting is the device's too. Memory of a batch may be used
again when its copies are done; the device has memory for some batches, so that the host is as many steps ahead of it at most.
Samples that are small, compressed or smaller than the network's input are gathered in pinned memory first: a copy of each by itself would take longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from tierscope.errors import UserError
from tierscope.loaders import Batch
from tierscope.train.samples import StoredSamples
from tierscope.units import about_bytes

AHEAD = 3  # batches in the device's memory
_BY_ITSELF_BYTES = 64 << 10


def pin(memory: memoryview) -> Callable[[], None]:
    """Page-locks memory where it lies; returns what undoes it."""
    address, runtime = np.frombuffer(memory, np.uint8).ctypes.data, torch.cuda.cudart()
    error = int(runtime.cudaHostRegister(address, memory.nbytes, 0))
    if error:
        raise UserError(
            f"cannot pin {about_bytes(memory.nbytes)} of memory for the device (CUDA error {error}); "
            "lower workload.reader.prefetch_size or batch_size, or raise the limit of locked memory (ulimit -l)"
        )

    def release() -> None:
        runtime.cudaHostUnregister(address)

    return release


@dataclass(frozen=True, slots=True)
class _Room:
    """Memory of a batch on the device. `copied`, `used`: when its copies, and what casts them, are done."""

    rows: torch.Tensor
    copied: torch.cuda.Event
    used: torch.cuda.Event


class PinnedCopies:
    """Give it a batch, then tell the device what to do with what it returns, then `release` the batch."""

    def __init__(self, stored: StoredSamples, batch_size: int, device: torch.device) -> None:
        self._stored, self._batch_size, self._device = stored, batch_size, device
        self._stream = torch.cuda.Stream(device)
        self._rooms: list[_Room] = []
        self._gathered: torch.Tensor | None = None
        self._turn = 0

    def __call__(self, batch: Batch) -> torch.Tensor:
        count, kind = len(batch.samples), self._stored.kind(batch)
        room = self._next_room(kind.row_bytes)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(room.used)
            if self._one_by_one(batch, kind.row_bytes):
                for row, payload in zip(room.rows, batch.payloads, strict=False):
                    sample = torch.frombuffer(payload, dtype=torch.uint8, count=kind.row_bytes)
                    row.copy_(sample, non_blocking=True)
            else:
                rows = self._memory(kind.row_bytes)
                self._stored.gather(batch, rows.numpy())
                room.rows[:count].copy_(rows[:count], non_blocking=True)
            room.copied.record(self._stream)
        torch.cuda.current_stream(self._device).wait_event(room.copied)
        inputs = kind.cast(room.rows[:count])
        room.used.record()
        return inputs

    @property
    def nbytes(self) -> int:
        """Of the device's memory."""
        return sum(room.rows.nbytes for room in self._rooms)

    def release(self) -> None:
        """Until the last batch's memory may be used again."""
        if self._rooms:
            self._rooms[self._turn - 1].copied.synchronize()

    def _one_by_one(self, batch: Batch, row_bytes: int) -> bool:
        if row_bytes < _BY_ITSELF_BYTES or batch.arrays or self._stored.decodes:
            return False
        return all(payload.nbytes >= row_bytes and not payload.readonly for payload in batch.payloads)

    def _next_room(self, row_bytes: int) -> _Room:
        if not self._rooms or self._rooms[0].rows.shape[1] != row_bytes:
            shape = (self._batch_size, row_bytes)
            self._rooms = [
                _Room(
                    torch.empty(shape, dtype=torch.uint8, device=self._device),
                    torch.cuda.Event(),
                    torch.cuda.Event(),
                )
                for _ in range(AHEAD)
            ]
        self._turn = (self._turn + 1) % AHEAD
        return self._rooms[self._turn - 1]

    def _memory(self, row_bytes: int) -> torch.Tensor:
        if self._gathered is None or self._gathered.shape[1] != row_bytes:
            self._gathered = torch.empty((self._batch_size, row_bytes), dtype=torch.uint8, pin_memory=True)
        return self._gathered
