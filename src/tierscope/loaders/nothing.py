"""Steps without reads: which samples it would be, and none of their bytes. For training on samples that the device makes itself."""

from collections.abc import Iterator

from tierscope.loaders.base import Batch
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable


class NoReads:
    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        step = 0
        for block in blocks:
            for start in range(0, len(block.samples), self._batch_size):
                yield Batch(step, block.samples[start : start + self._batch_size], (), 0, 0)
                step += 1

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [], Punctuality()
