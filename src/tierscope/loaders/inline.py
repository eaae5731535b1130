"""`read_threads: 0`: the rank reads a batch itself when it asks for it. Nothing overlaps; the simplest baseline."""

from collections.abc import Iterator
from typing import ClassVar

from tierscope.loaders.base import Batch, SampleSource, Slots, split_steps
from tierscope.loaders.reader import SampleReader
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable, Recording


class InlineLoader:
    records: ClassVar[bool] = True

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        del threads, prefetch  # it has neither
        self._batch_size, self._checks = batch_size, source.checks
        self._slots = Slots(batch_size, source.format.slot_bytes, source.usual_payload, pin=source.pin)
        self._reader = SampleReader(source, *recording.lanes(1))

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        try:
            for work in split_steps(blocks, self._batch_size, self._checks):
                count = len(work.samples)
                done = self._reader.read(work, self._slots.slots[:count], self._slots.payloads[:count])
                arrays, preprocessed = self._reader.preprocess(work, done.payloads)
                yield Batch(work.step, work.samples, done.payloads, done.read_ns, done.check_ns, preprocessed, arrays)
            self._reader.part()
        finally:
            self._reader.rest()

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [self._reader.lane.finish()], self._reader.close()
