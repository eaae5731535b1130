"""`data_loader: pytorch`: torch's DataLoader reads, in worker processes of its own.

Workers read a sample at a time, as datasets of its users do; batches come in plan order. `read_threads` is the number of workers (0: in the
rank's own process), `prefetch_size` that of batches which each of them has ready. Workers live as long as the rank: starting them (and
importing torch in each) is no part of an epoch. They evict files as our own loaders do; which read of a file is its first and its last is told them, in plan order. What they read passes none of our recorders in Python: ranks are started with the
preload library (`measure/preloaded.py`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tierscope.formats import Format
from tierscope.helper_process import isolated_children
from tierscope.loaders.base import Batch, SampleSource, Slots, StepSamples
from tierscope.loaders.cold_reads import ColdReads, ColdTally, ColdTier
from tierscope.loaders.preprocess import Floats, Preprocess
from tierscope.loaders.reader import SampleReader
from tierscope.loaders.verify import SampleChecks
from tierscope.plan.plan import Block
from tierscope.spec.study import Reader
from tierscope.storage.access import Directory, Punctuality
from tierscope.storage.files import DatasetFiles
from tierscope.trace.recorder import LaneTable, Recording

_now = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class _Place:
    """What a worker is asked for."""

    step: int
    sample: tuple[int, int, int, int]  # its number, its file, its number inside it, tier
    compared: bool  # with its checksum
    edges: tuple[bool, bool]  # whether this is the first read of its file, and the last


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
        self._told.tell(file, *place.edges)
        if self._cold:
            self._cold.begin(self._told)
        work = StepSamples(place.step, [sample], [file], [inside], [tier], compared=[0] if place.compared else ())
        done = reader.read(work, slots.slots, slots.payloads)
        arrays, preprocess_ns = reader.preprocess(work, done.payloads)
        payload = torch.frombuffer(bytearray(done.payloads[0]), dtype=torch.uint8)
        array = torch.from_numpy(arrays[0]) if arrays else None
        tallies = tuple(self._cold.tallies) if self._cold else ()
        return _Item(sample, payload, array, done.start, done.read, done.check_ns, preprocess_ns, tallies)


@dataclass(slots=True)
class _Steps:
    """Batches of places, of whichever epoch is being read."""

    batch_size: int
    checks: SampleChecks | None
    cold: ColdReads | None
    blocks: Iterator[Block] = field(default_factory=lambda: iter(()))

    def __iter__(self) -> Iterator[list[_Place]]:
        step = 0
        for block in self.blocks:
            columns = (column.tolist() for column in (block.samples, block.files, block.inside, block.tiers))
            places = list(zip(*columns, strict=True))
            compared = set(self.checks.chosen(block.samples) if self.checks else ())
            for start in range(0, len(places), self.batch_size):
                batch = places[start : start + self.batch_size]
                yield [
                    _Place(step, place, at in compared, self._edges(place[1])) for at, place in enumerate(batch, start)
                ]
                step += 1

    def _edges(self, file: int) -> tuple[bool, bool]:
        uses = self.cold.uses if self.cold else None
        return (uses.opened(file), uses.closing(file, 1)) if uses else (False, False)


def _collate(items: list[_Item]) -> list[_Item]:
    return items


class TorchLoader:
    records: ClassVar[bool] = False

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        del recording
        options = source.options or Reader()
        self._cold = source.cold
        self._steps = _Steps(batch_size, source.checks, source.cold)
        workers: dict[str, Any] = {}
        if threads:
            workers = {
                "prefetch_factor": max(1, prefetch),
                "persistent_workers": True,
                "multiprocessing_context": options.multiprocessing_context,
            }
        torch.set_num_threads(1)
        self._loader: DataLoader[Any] = DataLoader(
            _Samples(source, (options.preprocess, options.preprocess_time)),
            batch_sampler=self._steps,
            num_workers=threads,
            collate_fn=_collate,
            pin_memory=options.pin_memory and torch.cuda.is_available(),
            **workers,
        )
        with isolated_children():
            for _ in self._loader:  # of nothing: workers start, and stay
                pass

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        self._steps.blocks = blocks
        for step, items in enumerate(self._loader):
            if self._cold:
                for item in items:
                    self._cold.add(item.tallies)
            arrays: list[Floats] = [item.array.numpy() for item in items if item.array is not None]
            yield Batch(
                step,
                np.array([item.sample for item in items], np.int64),
                [memoryview(item.payload.numpy()) for item in items],
                max(item.end_ns for item in items) - min(item.start_ns for item in items),
                sum(item.check_ns for item in items),
                sum(item.preprocess_ns for item in items),
                arrays,
            )
        self._steps.checks = self._steps.checks and self._steps.checks.next()

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [], Punctuality()
