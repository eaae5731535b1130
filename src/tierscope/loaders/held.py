"""`data: memory` with a loader of a framework: it reads everything once before the first step, and takes samples from memory from then on.

Storage costs nothing then, and the loader's own work is all there: workers, decoding, collating, hand-over between processes.
"""

import mmap
import os
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from tierscope.loaders.base import Batch, EpochLoader
from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable

_COUNT_BYTES = 8


class SharedSamples:
    """Samples in memory that worker processes see too, however they are started. `samples` must be sorted."""

    def __init__(self, samples: IndexArray, largest: int) -> None:
        self._samples, self._largest = samples, largest
        self._fd = os.memfd_create("tierscope-samples")
        os.ftruncate(self._fd, max(1, len(samples)) * (largest + _COUNT_BYTES))
        self._map()

    def _map(self) -> None:
        count = len(self._samples)
        memory = mmap.mmap(self._fd, 0)
        self._lengths = np.frombuffer(memory, np.int64, count)
        self._memory = memoryview(memory)[count * _COUNT_BYTES :]

    def __getstate__(self) -> tuple[Any, ...]:
        return self._samples, self._largest, f"/proc/{os.getpid()}/fd/{self._fd}"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._samples, self._largest, path = state
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._map()

    def put(self, sample: int, payload: memoryview) -> None:
        at = int(np.searchsorted(self._samples, sample))
        self._memory[at * self._largest : at * self._largest + payload.nbytes] = payload
        self._lengths[at] = payload.nbytes

    def get(self, sample: int) -> memoryview:
        at = int(np.searchsorted(self._samples, sample))
        return self._memory[at * self._largest : at * self._largest + int(self._lengths[at])]


class HoldingLoader(EpochLoader, Protocol):
    """A loader that can take samples from memory."""

    def hold(self, batch: Batch, /) -> None:
        """Keep the samples of a batch that it read."""

    def read_memory(self) -> None:
        """From now on samples come from what it holds."""


class HeldLoader:
    """All epochs. `everything`: what the rank may ever read."""

    def __init__(self, loader: HoldingLoader, everything: Iterator[Block]) -> None:
        self._loader = loader
        self._everything: Iterator[Block] | None = everything

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        read_ns = decode_ns = 0
        if self._everything is not None:
            for batch in self._loader.batches(self._everything):
                self._loader.hold(batch)
                read_ns, decode_ns = read_ns + batch.read_ns, decode_ns + batch.decode_ns
            self._everything = None
            self._loader.read_memory()
        for batch in self._loader.batches(blocks):
            batch.read_ns, batch.decode_ns = batch.read_ns + read_ns, batch.decode_ns + decode_ns
            read_ns = decode_ns = 0  # all of it was before the first step
            yield batch

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return self._loader.finish()
