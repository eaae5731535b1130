"""`read_ahead: all`: whatever a rank may ever read is read into memory before its first step; later epochs read nothing."""

import mmap
import weakref
from collections.abc import Iterator

import numpy as np

from tierscope.loaders.base import Batch, Loader, Pin
from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable


class SamplesInMemory:
    """A rank's samples in memory: each at its own number among `samples`, which must be sorted."""

    def __init__(self, samples: IndexArray, largest: int, pin: Pin | None = None) -> None:
        self._samples, self._largest = samples, largest
        self._memory = memoryview(mmap.mmap(-1, max(1, len(samples) * largest)))
        self._lengths = np.zeros(len(samples), np.int64)
        if pin:
            weakref.finalize(self, pin(self._memory))

    def put(self, sample: int, payload: memoryview) -> None:
        at = int(np.searchsorted(self._samples, sample))
        start = at * self._largest
        self._memory[start : start + payload.nbytes] = payload
        self._lengths[at] = payload.nbytes

    def get(self, sample: int) -> memoryview:
        at = int(np.searchsorted(self._samples, sample))
        start = at * self._largest
        return self._memory[start : start + int(self._lengths[at])]


class AheadLoader:
    """One epoch: reads everything with a loader first, if that was not done yet; then hands it out."""

    def __init__(
        self, held: SamplesInMemory, batch_size: int, loader: Loader | None, everything: Iterator[Block]
    ) -> None:
        """`loader` None: all is there."""
        self._held, self._batch_size, self._loader, self._everything = held, batch_size, loader, everything

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        read_ns = decode_ns = preprocess_ns = 0
        if self._loader:
            for batch in self._loader.batches(self._everything):
                for sample, payload in zip(batch.samples, batch.payloads, strict=True):
                    self._held.put(int(sample), payload)
                read_ns, decode_ns = read_ns + batch.read_ns, decode_ns + batch.decode_ns
                preprocess_ns += batch.preprocess_ns
        step = 0
        for block in blocks:
            for start in range(0, len(block.samples), self._batch_size):
                samples = block.samples[start : start + self._batch_size]
                payloads = [self._held.get(sample) for sample in samples.tolist()]
                yield Batch(step, samples, payloads, read_ns, decode_ns, preprocess_ns)
                read_ns = decode_ns = preprocess_ns = 0  # all of it was before the first step
                step += 1

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return self._loader.finish() if self._loader else ([], Punctuality())
