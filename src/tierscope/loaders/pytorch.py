"""`data_loader: pytorch`: torch's DataLoader reads, in worker processes of its own.

Workers read a sample at a time and collate batches to one tensor, as datasets of its users do; batches come in plan order. `read_threads` is the number of workers (0: in the
rank's own process), `prefetch_size` that of batches which each of them has ready. Workers live as long as the rank: starting them (and
importing torch in each) is no part of an epoch. They evict files as our own loaders do; which read of a file is its first and its last is told them, in plan order. What they read passes none of our recorders in Python: ranks are started with the
preload library (`measure/preloaded.py`).
"""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from tierscope.errors import StoppedError, TierscopeError, UserError
from tierscope.formats import Format
from tierscope.helper_process import isolated_children
from tierscope.loaders.base import Batch, SampleSource, Slots, StepSamples
from tierscope.loaders.cold_reads import ColdReads, ColdTally, ColdTier
from tierscope.loaders.held import SharedSamples
from tierscope.loaders.preprocess import Floats, Preprocess
from tierscope.loaders.reader import SampleReader
from tierscope.loaders.verify import SampleChecks
from tierscope.plan.plan import Block
from tierscope.spec.study import Reader
from tierscope.storage.access import Directory, Punctuality
from tierscope.storage.files import DatasetFiles
from tierscope.trace.recorder import LaneTable, Recording
from tierscope.units import about_bytes

_SHARED_MEMORY = "/dev/shm"  # where torch hands batches over
_FROM_WORKER = "Original Traceback"
_now = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class _Place:
    """What a worker is asked for."""

    step: int
    sample: tuple[int, int, int, int]  # its number, its file, its number inside it, tier
    compared: bool  # with its checksum
    edges: tuple[bool, bool]  # whether this is the first read of its file, and the last
    held: bool = False  # it is in memory


@dataclass(frozen=True, slots=True)
class _Item:
    sample: int
    payload: torch.Tensor
    array: torch.Tensor | None
    start_ns: int
    end_ns: int
    check_ns: int
    preprocess_ns: int
    tallies: tuple[ColdTally, ...] = ()


Tensors: TypeAlias = "torch.Tensor | list[torch.Tensor]"  # of samples: one where all have the same size


@dataclass(frozen=True, slots=True)
class _Collated:
    """A batch as it is handed over."""

    samples: list[int]
    payloads: Tensors
    arrays: Tensors
    read_ns: int
    check_ns: int
    preprocess_ns: int
    tallies: list[tuple[ColdTally, ...]]

    def pin_memory(self) -> "_Collated":
        """Called by torch's own thread, where pinning is asked for."""
        return replace(self, payloads=_pinned(self.payloads), arrays=_pinned(self.arrays))


def _pinned(tensors: Tensors) -> Tensors:
    return tensors.pin_memory() if isinstance(tensors, torch.Tensor) else [tensor.pin_memory() for tensor in tensors]


class _ToldUses:
    """Of the file that is read now; and of one that stays open until another is needed, as files of libraries do."""

    def __init__(self) -> None:
        self._first = False
        self._done: set[int] = set()

    def tell(self, file: int, first: bool, last: bool) -> None:
        self._first = first
        if last:
            self._done.add(file)

    def opened(self, _file: int, /) -> bool:
        return self._first

    def closing(self, file: int, _reads: int, /) -> bool:
        done = file in self._done
        self._done.discard(file)
        return done


class _Samples(Dataset[_Item]):  # type: ignore[misc]
    """The dataset as a worker has it; its reader is made where it is used first."""

    def __init__(self, source: SampleSource, preprocess: tuple[str, float]) -> None:
        self._format: Format = source.format
        self._files: tuple[DatasetFiles, ...] = source.files
        self._tier_names, self._transfer = source.tier_names, source.transfer_bytes
        self._samples_per_file, self._check = source.samples_per_file, source.check
        self._checks = source.checks
        self.held = SharedSamples(source.held, source.format.slot_bytes) if source.held is not None else None
        self._preprocess = preprocess
        self._cold_tiers: tuple[ColdTier, ...] = source.cold.tiers if source.cold else ()
        self._cold: ColdReads | None = None
        self._told = _ToldUses()
        self._reader: SampleReader | None = None
        self._slots: Slots | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None, "_slots": None, "_cold": None}

    def _begin(self) -> tuple[SampleReader, Slots]:
        if self._reader is None or self._slots is None:
            mode, seconds = self._preprocess
            self._cold = ColdReads(self._cold_tiers, self._format.file_bytes_of) if self._cold_tiers else None
            source = SampleSource(
                format=self._format,
                files=self._files,
                tier_names=self._tier_names,
                transfer_bytes=self._transfer,
                samples_per_file=self._samples_per_file,
                open_accesses=lambda: tuple(Directory() for _ in self._files),
                check=self._check,
                checks=self._checks,
                preprocess=Preprocess(mode, seconds, self._format) if mode != "none" else None,
                cold=self._cold,
            )
            self._reader = SampleReader(source, Recording(len(self._files), silent=True).lanes(1)[0])
            self._slots = Slots(1, self._format.slot_bytes, source.usual_payload)
        return self._reader, self._slots

    def __getitem__(self, place: _Place) -> _Item:
        reader, slots = self._begin()
        sample, file, inside, tier = place.sample
        work = StepSamples(place.step, [sample], [file], [inside], [tier], compared=[0] if place.compared else ())
        if place.held and self.held:
            return self._from_memory(reader, work, self.held.get(sample))
        self._told.tell(file, *place.edges)
        if self._cold:
            self._cold.begin(self._told)
        done = reader.read(work, slots.slots, slots.payloads)
        arrays, preprocess_ns = reader.preprocess(work, done.payloads)
        payload = torch.frombuffer(bytearray(done.payloads[0]), dtype=torch.uint8)
        array = torch.from_numpy(arrays[0]) if arrays else None
        tallies = tuple(self._cold.tallies) if self._cold else ()
        return _Item(sample, payload, array, done.start, done.read, done.check_ns, preprocess_ns, tallies)

    def _from_memory(self, reader: SampleReader, work: StepSamples, stored: memoryview) -> _Item:
        start = _now()
        payload = torch.frombuffer(bytearray(stored), dtype=torch.uint8)
        copied = _now()
        arrays, preprocess_ns = reader.preprocess(work, [stored])
        array = torch.from_numpy(arrays[0]) if arrays else None
        return _Item(work.samples[0], payload, array, start, copied, 0, preprocess_ns)


@dataclass(slots=True)
class _Steps:
    """Batches of places, of whichever epoch is being read."""

    batch_size: int
    checks: SampleChecks | None
    cold: ColdReads | None
    blocks: Iterator[Block] = field(default_factory=lambda: iter(()))
    held: bool = False  # samples are in memory

    def __iter__(self) -> Iterator[list[_Place]]:
        step = 0
        for block in self.blocks:
            columns = (column.tolist() for column in (block.samples, block.files, block.inside, block.tiers))
            places = list(zip(*columns, strict=True))
            compared = set(self.checks.chosen(block.samples) if self.checks and not self.held else ())
            for start in range(0, len(places), self.batch_size):
                batch = places[start : start + self.batch_size]
                yield [
                    _Place(step, place, at in compared, self._edges(place[1]), self.held)
                    for at, place in enumerate(batch, start)
                ]
                step += 1

    def _edges(self, file: int) -> tuple[bool, bool]:
        uses = self.cold.uses if self.cold and not self.held else None
        return (uses.opened(file), uses.closing(file, 1)) if uses else (False, False)


def _collate(items: list[_Item]) -> _Collated:
    return _Collated(
        [item.sample for item in items],
        _stacked([item.payload for item in items]),
        _stacked([item.array for item in items if item.array is not None]),
        max(item.end_ns for item in items) - min(item.start_ns for item in items),
        sum(item.check_ns for item in items),
        sum(item.preprocess_ns for item in items),
        [item.tallies for item in items if item.tallies],
    )


def _stacked(tensors: list[torch.Tensor]) -> Tensors:
    """As torch does it by itself: in memory that the rank shares, where this is a worker."""
    alike = tensors and all(tensor.shape == tensors[0].shape for tensor in tensors)
    return default_collate(tensors) if alike else tensors


class TorchLoader:
    records: ClassVar[bool] = False

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        del recording
        options = source.options or Reader()
        self._cold = source.cold
        self._steps = _Steps(batch_size, source.checks, source.cold)
        self._samples = _Samples(source, (options.preprocess, options.preprocess_time))
        workers: dict[str, Any] = {}
        if threads:
            ahead = max(1, prefetch)
            _check_shared_memory((threads * ahead + 1) * batch_size * source.format.slot_bytes)
            workers = {
                "prefetch_factor": ahead,
                "persistent_workers": True,
                "multiprocessing_context": options.multiprocessing_context,
            }
        if not source.feeds_network:
            torch.set_num_threads(1)
        self._loader: DataLoader[Any] = DataLoader(
            self._samples,
            batch_sampler=self._steps,
            num_workers=threads,
            collate_fn=_collate,
            pin_memory=options.pin_memory and torch.cuda.is_available(),
            **workers,
        )
        with isolated_children(), _plain_errors():
            for _ in self._loader:  # of nothing: workers start, and stay
                pass

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        self._steps.blocks = blocks
        handed_over = iter(self._loader)
        for step in itertools.count():
            with _plain_errors():
                batch = next(handed_over, None)
            if batch is None:
                break
            if self._cold:
                for tallies in batch.tallies:
                    self._cold.add(tallies)
            arrays: list[Floats] = [array.numpy() for array in batch.arrays]
            yield Batch(
                step,
                np.array(batch.samples, np.int64),
                [memoryview(payload.numpy()) for payload in batch.payloads],
                batch.read_ns,
                batch.check_ns,
                batch.preprocess_ns,
                arrays,
            )
        self._steps.checks = self._steps.checks and self._steps.checks.next()

    def hold(self, batch: Batch) -> None:
        assert self._samples.held is not None
        for sample, payload in zip(batch.samples, batch.payloads, strict=True):
            self._samples.held.put(int(sample), payload)

    def read_memory(self) -> None:
        self._steps.held = True

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [], Punctuality()


def _check_shared_memory(needed: int) -> None:
    """Where it is too small, a worker is killed by SIGBUS in the middle of a run."""
    with contextlib.suppress(OSError):
        about = os.statvfs(_SHARED_MEMORY)
        free = about.f_bavail * about.f_frsize
        if needed > free:
            raise UserError(
                f"workload.reader.data_loader = pytorch; its workers hand over batches in {_SHARED_MEMORY}, up to {about_bytes(needed)} at a time, but {about_bytes(free)} are free; "
                f"lower batch_size, read_threads or prefetch_size, or mount a larger {_SHARED_MEMORY}"
            )


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """An error of a worker as it would be without one: torch puts the worker's traceback into its text."""
    try:
        yield
    except TierscopeError as error:
        if _FROM_WORKER not in str(error):
            raise
        last = str(error).strip().splitlines()[-1]
        raise type(error)(last.partition(": ")[2] or last) from None
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise StoppedError(f"{str(error).splitlines()[0]}; finished runs are kept; rerun to continue") from None
