"""Samples that a framework's loader holds in memory: read once, then taken from there by the same loader, also in other processes."""

import pickle
from collections.abc import Iterator

import numpy as np

from tierscope.loaders.base import Batch
from tierscope.loaders.held import HeldLoader, SharedSamples
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable


class Toy:
    """Hands out one batch per block, and says where each came from."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.from_memory = False

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        for step, block in enumerate(blocks):
            assert not self.from_memory or set(block.samples.tolist()) <= set(self.held)
            yield Batch(step, block.samples, (), 0 if self.from_memory else 5, 2)

    def hold(self, batch: Batch) -> None:
        self.held += [int(sample) for sample in batch.samples]

    def read_memory(self) -> None:
        self.from_memory = True

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [], Punctuality()


def block(*samples: int) -> Block:
    numbers = np.array(samples, np.int64)
    return Block(samples=numbers, files=numbers, inside=0 * numbers, tiers=(0 * numbers).astype(np.int8))


def test_everything_is_read_before_the_first_step_and_nothing_after_it() -> None:
    toy = Toy()
    loader = HeldLoader(toy, iter([block(0, 1), block(2, 3)]))
    first = list(loader.batches(iter([block(3, 0), block(1, 2)])))
    assert toy.held == [0, 1, 2, 3]
    assert [(batch.read_ns, batch.decode_ns) for batch in first] == [(10, 6), (0, 2)]
    later = list(loader.batches(iter([block(2, 1)])))
    assert [(batch.step, batch.read_ns) for batch in later] == [(0, 0)]
    assert toy.held == [0, 1, 2, 3]


def test_shared_samples_are_seen_through_a_copy_that_was_handed_over() -> None:
    mine = SharedSamples(np.array([3, 7, 9], np.int64), 8)
    theirs: SharedSamples = pickle.loads(pickle.dumps(mine))
    mine.put(7, memoryview(b"seven"))
    mine.put(9, memoryview(b"nine nin"))
    assert [bytes(theirs.get(sample)) for sample in (3, 7, 9)] == [b"", b"seven", b"nine nin"]
