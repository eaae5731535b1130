"""What a loader is given and what it gives."""

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tierscope.formats import Format
from tierscope.plan.plan import Block
from tierscope.tiers.access import Access, Punctuality
from tierscope.tiers.files import DatasetFiles
from tierscope.trace.recorder import Lane, LaneTable


@dataclass(frozen=True, slots=True)
class Source:
    """Where samples come from, as one node sees it; `files[t]` and `tier_names[t]` belong to tier t."""

    format: Format
    files: tuple[DatasetFiles, ...]
    tier_names: tuple[str, ...]
    transfer_bytes: int
    samples_per_file: int
    open_accesses: Callable[[], tuple[Access, ...]]  # one thread's ways to the tiers
    close_accesses: Callable[[tuple[Access, ...]], None] = field(default=lambda _: None)
    check: bool = True  # verify what was read, where the format can


@dataclass(slots=True)
class Batch:
    """Samples of one step. The memory is reused: what is needed beyond the next batch must be copied."""

    step: int
    samples: Sequence[int]
    payloads: Sequence[memoryview]
    read_ns: int  # from the first thread that began to read it to the last that ended
    decode_ns: int  # time spent checking it, threads summed


class Loader(Protocol):
    """Batches in plan order, with memory that does not grow with the dataset."""

    def __init__(
        self, source: Source, batch_size: int, threads: int, prefetch: int, new_lane: Callable[[int], Lane]
    ) -> None: ...

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        """One epoch. May be called once per loader."""

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        """After an epoch: what each lane recorded, and how well emulated tiers kept their times."""


@dataclass(frozen=True, slots=True)
class Work:
    """Samples of one step to be read; sample i of it goes to slot i."""

    step: int
    samples: list[int]
    files: list[int]
    inside: list[int]
    tiers: list[int]

    def part(self, start: int, stop: int) -> "Work":
        return Work(
            self.step,
            self.samples[start:stop],
            self.files[start:stop],
            self.inside[start:stop],
            self.tiers[start:stop],
        )


def split_steps(blocks: Iterator[Block], batch_size: int) -> Iterator[Work]:
    """The steps of an epoch; blocks hold whole batches, but for the last one."""
    step = 0
    for block in blocks:
        columns = [block.samples.tolist(), block.files.tolist(), block.inside.tolist(), block.tiers.tolist()]
        for start in range(0, len(columns[0]), batch_size):
            yield Work(step, *(column[start : start + batch_size] for column in columns))
            step += 1


class Slots:
    """Reused memory for one batch: a page-aligned piece per sample, and a view of the payload in each.

    The pages are there from the start: otherwise the first reads into them would be charged for making them.
    """

    def __init__(self, samples: int, slot_bytes: int, payload: slice) -> None:
        stride = -(-slot_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        self._memory = mmap.mmap(-1, max(stride * samples, 1), flags=flags)
        whole = memoryview(self._memory)
        self.slots = [whole[start : start + slot_bytes] for start in range(0, stride * samples, stride)]
        self.payloads = [slot[payload] for slot in self.slots]
