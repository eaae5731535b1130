"""What a loader is given and what it gives."""

import contextlib
import mmap
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from tierscope.formats import EXTENTS, Format
from tierscope.loaders.cold_reads import ColdReads
from tierscope.loaders.preprocess import Floats, Preprocess
from tierscope.loaders.verify import SampleChecks, chosen_between
from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Block
from tierscope.spec.study import Reader
from tierscope.storage.access import Access, Punctuality
from tierscope.storage.files import DatasetFiles
from tierscope.storage.stations import TierStations
from tierscope.trace.recorder import LaneTable, Recording

Pin = Callable[
    [memoryview], Callable[[], None]
]  # keeps memory where a device can fetch it by itself; returns what lets go of it

_HUGE_PAGE = 2 << 20
_MADV_POPULATE_WRITE = 23


@dataclass(frozen=True, slots=True)
class Reach:
    """How a loader that reads without accesses of Python gets to the tiers."""

    stations: tuple[TierStations | None, ...] = ()  # of each tier that is emulated; empty: none is
    board: str | None = None  # path of their shared queues
    io_engine: str = "pread"
    odirect: bool = False  # past the page cache
    storage: str = "files"  # or "nothing", "null device": as the accesses of that name


class SharedFile(Protocol):
    """A file that several ranks have open together. `size`: bytes in it."""

    size: int

    def read(self, offset: int, into: memoryview, /) -> int:
        """Bytes at an offset, any number of them or none: a call that all ranks make, each for its own."""

    def close(self) -> None: ...


class Together(Protocol):
    """Those ranks that see the same file on a tier. Whatever one of them does here, all must do, in the same order."""

    communicator: Any  # MPI's

    def open(self, path: str, /) -> SharedFile: ...


@dataclass(frozen=True, slots=True)
class SampleSource:
    """Where samples come from, as one node sees it; `files[t]` and `tier_names[t]` belong to tier t."""

    format: Format
    files: tuple[DatasetFiles, ...]
    tier_names: tuple[str, ...]
    transfer_bytes: int
    samples_per_file: int
    open_accesses: Callable[[], tuple[Access, ...]]  # one thread's ways to the tiers
    check: bool = True  # let the format look at what was read, where it can find anything
    checks: SampleChecks | None = None  # which samples are compared with their checksums; None: there are no checksums
    reach: Reach = Reach()
    preprocess: Preprocess | None = None
    preprocess_threads: int = 0  # 0: those that read
    together: tuple[Together, ...] = ()  # of each tier, where ranks read collectively; else empty
    cold: ColdReads | None = None  # of the epoch that is read; None: page caches are left alone
    pin: Pin | None = None  # where batches go on to an accelerator
    options: Reader | None = None  # what the study says of the reader, for loaders of others
    held: IndexArray | None = None  # samples that a framework's loader keeps in memory (`held.py`); None: none
    feeds_network: bool = False  # which computes in the rank's process, with threads that a loader must leave alone
    make_payload: Callable[[int, memoryview], int] | None = (
        None  # of a format without files: the sample into the memory
    )
    buffered: bool = False  # samples that follow one another in a file are cut from reads of transfer_bytes

    @property
    def uniform(self) -> bool:
        """All samples are read and lie in memory alike."""
        return self.format.reading == EXTENTS and self.format.shape.alike

    @property
    def usual_payload(self) -> slice:
        """Where a sample is inside its memory, if all are alike."""
        return self.format.payload(0, 0) if self.uniform else slice(None)


@dataclass(slots=True)
class Batch:
    """Samples of one step. The memory is reused: what is needed beyond the next batch must be copied."""

    step: int
    samples: Sequence[int] | IndexArray
    payloads: Sequence[memoryview]
    read_ns: int  # from the first thread that began to read it to the last that ended
    decode_ns: int  # time spent checking it, threads summed
    preprocess_ns: int = 0  # time spent preprocessing it, threads summed
    arrays: Sequence[Floats] = ()  # what preprocessing made of it, if it makes anything


class EpochLoader(Protocol):
    """Batches of one epoch, in plan order."""

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        """One epoch. May be called once per loader."""

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        """After an epoch: what each lane recorded, and how well emulated tiers kept their times."""


class Loader(EpochLoader, Protocol):
    """With memory that does not grow with the dataset."""

    records: ClassVar[bool]  # whether all it reads passes through our recorder, as emulated tiers need it

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class StepSamples:
    """Samples of one step to be read; sample i of it goes to slot i.

    `fills`: whether its file is copied to the nearest tier; empty: none is. `compared`: which of them with their checksums.
    """

    step: int
    samples: list[int]
    files: list[int]
    inside: list[int]
    tiers: list[int]
    fills: Sequence[bool] = ()
    compared: Sequence[int] = ()

    def part(self, start: int, stop: int) -> "StepSamples":
        return StepSamples(
            self.step,
            self.samples[start:stop],
            self.files[start:stop],
            self.inside[start:stop],
            self.tiers[start:stop],
            self.fills[start:stop],
            [at - start for at in self.compared if start <= at < stop] if self.compared else (),
        )


def split_steps(blocks: Iterator[Block], batch_size: int, checks: SampleChecks | None = None) -> Iterator[StepSamples]:
    """The steps of an epoch; blocks hold whole batches, but for the last one."""
    step = 0
    for block in blocks:
        columns = [block.samples.tolist(), block.files.tolist(), block.inside.tolist(), block.tiers.tolist()]
        fills: Sequence[bool] = () if block.fills is None or not block.fills.any() else block.fills.tolist()
        chosen = checks.chosen(block.samples) if checks else []
        for start in range(0, len(columns[0]), batch_size):
            part = slice(start, start + batch_size)
            samples, files, inside, tiers = (column[part] for column in columns)
            compared = [at - start for at in chosen_between(chosen, start, start + batch_size)]
            yield StepSamples(step, samples, files, inside, tiers, fills[part], compared)
            step += 1


class Slots:
    """Reused memory for one batch: a page-aligned piece per sample, and a view of the payload in each.

    The pages are there from the start: otherwise the first reads into them would be charged for making them.
    """

    def __init__(self, samples: int, slot_bytes: int, payload: slice, room: int = 0, pin: Pin | None = None) -> None:
        """`room`: bytes for each sample, where a reader needs more of them than the slot. `pin`: it goes on to an accelerator."""
        self._samples, self._slot_bytes, self._payload = samples, slot_bytes, payload
        self.stride = -(-max(room, slot_bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = _present_memory(max(self.stride * samples, 1))
        self._whole = memoryview(self._memory)
        self.address: int = np.frombuffer(self._memory, np.uint8).ctypes.data
        self.slots, self.payloads = self.shifted([0] * samples)
        if pin:
            weakref.finalize(self, pin(self._whole))

    def shifted(self, shifts: Sequence[int]) -> tuple[list[memoryview], list[memoryview]]:
        """Slots and payloads of as many samples, each so many bytes after the start of its piece."""
        starts = [number * self.stride + shift for number, shift in enumerate(shifts)]
        slots = [self._whole[start : start + self._slot_bytes] for start in starts]
        return slots, [slot[self._payload] for slot in slots]


def _present_memory(nbytes: int) -> mmap.mmap:
    """Anonymous memory whose pages are there, large ones where the system has them: copying to it is faster then."""
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= _HUGE_PAGE:
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    try:
        memory.madvise(_MADV_POPULATE_WRITE)
    except OSError:  # Linux before 5.14
        pages = -(-nbytes // mmap.PAGESIZE)
        memory[:: mmap.PAGESIZE] = bytes(pages)
    return memory
