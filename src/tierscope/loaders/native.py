"""`data_loader: native`: the threads and their reading are in C, and wait for no interpreter. The order of reads, their sizes
and what is recorded are those of the loaders in Python. Samples are checked by as many threads in Python, behind the reading ones, so that
neither waits for the other; the checksums release the interpreter. Where only one read in many is compared with its checksum, and the format has no checks of
its own, whoever waits for the batch does that. The same threads preprocess, or `computation_threads` of their own behind
them, each its part of every batch.

`read_threads: 0` reads in the rank's own thread when a batch is asked for, as the inline loader does.
"""

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tierscope.errors import TierscopeError, UserError
from tierscope.formats import Format
from tierscope.loaders.base import Batch, SampleSource, Slots
from tierscope.loaders.cold_reads import ColdTally, CountedUses
from tierscope.loaders.preprocess import Floats
from tierscope.loaders.problems import check_samples, explain, preprocess_samples, truncated, verify_samples
from tierscope.loaders.verify import SampleChecks, chosen_between
from tierscope.native import engine as native
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.storage.cold import MAX_CHECKED
from tierscope.trace.native_lanes import engine_moved, lane_table
from tierscope.trace.recorder import LaneTable, Recording

_now = time.monotonic_ns
_WORD = 8  # bytes of a number in a column


@dataclass(frozen=True, slots=True)
class _Columns:
    """A block as C wants it: contiguous int64, with the addresses."""

    block: Block
    files: npt.NDArray[np.int64]
    inside: npt.NDArray[np.int64]
    tiers: npt.NDArray[np.int64]
    addresses: tuple[int, int, int]
    compared: list[int]  # with their checksums

    @classmethod
    def of(cls, block: Block, checks: SampleChecks | None) -> "_Columns":
        columns = [np.ascontiguousarray(column, np.int64) for column in (block.files, block.inside, block.tiers)]
        files, inside, tiers = columns
        addresses = files.ctypes.data, inside.ctypes.data, tiers.ctypes.data
        return cls(block, files, inside, tiers, addresses, checks.chosen(block.samples) if checks else [])


@dataclass(frozen=True, slots=True)
class _Flight:
    """A batch that is being read: samples start to stop of a block, into memory `number`."""

    step: int
    number: int
    columns: _Columns
    start: int
    stop: int

    @property
    def compared(self) -> list[int]:
        """Of its samples those that are compared with their checksums, by their places in the block."""
        return chosen_between(self.columns.compared, self.start, self.stop)


class NativeLoader:
    records: ClassVar[bool] = True

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        form, reach = source.format, source.reach
        self._source, self._batch_size = source, batch_size
        self._checks = source.check and form.has_checks
        if source.checks:
            source.checks.prepare()
        self._extents = affine_extents(form, source.samples_per_file)
        self._moves = reach.odirect and len(self._extents) == 1 and self._extents[0].step % native.DIRECT_ALIGN != 0
        batches = prefetch + 1 if threads else 1
        room = _direct_room(form, self._extents) if reach.odirect else 0
        self._memory = [
            Slots(batch_size, form.slot_bytes, source.usual_payload, room, source.pin) for _ in range(batches)
        ]
        self._engine = native.Engine(
            native.Setup(
                threads=threads,
                batch_size=batch_size,
                memory=[memory.address for memory in self._memory],
                slot_bytes=form.slot_bytes,
                stride=self._memory[0].stride,
                transfer_bytes=source.transfer_bytes,
                folders=_folders(source),
                extents=self._extents,
                stations=reach.stations or (None,) * len(source.files),
                board=reach.board,
                storage=reach.storage,
                io_engine=reach.io_engine,
                odirect=reach.odirect,
                buffered=source.buffered,
                epoch=recording.epoch,
                ops_fd=recording.sink.descriptor if recording.sink else -1,
                uses=source.cold.uses.left if source.cold and isinstance(source.cold.uses, CountedUses) else None,
                file_bytes=form.file_bytes,
                most_checked=MAX_CHECKED,
            )
        )
        self._live = recording.live
        if self._live is not None:
            self._live.follow(partial(engine_moved, self._engine))
        self._parts = source.preprocess_threads if source.preprocess and threads else 0
        checkers = threads if self._checks or source.preprocess or (source.checks and source.checks.every == 1) else 0
        self._checkers = ThreadPoolExecutor(checkers, "checker") if checkers else None
        self._preprocessors = ThreadPoolExecutor(self._parts, "preprocess") if self._parts else None
        self._finished = False

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        try:
            self._engine.start()
            yield from self._in_order(self._steps(blocks))
        finally:
            self._stop()

    def _stop(self) -> None:
        """No thread uses the engine afterwards; what was not begun is not read."""
        self._engine.close()
        for pool in (self._checkers, self._preprocessors):
            if pool:
                pool.shutdown(cancel_futures=True)
        if self._source.checks:
            self._source.checks.close()

    def _steps(self, blocks: Iterator[Block]) -> Iterator[tuple[_Columns, int, int]]:
        """Where in which block every batch begins and ends."""
        for block in blocks:
            columns, samples = _Columns.of(block, self._source.checks), len(block.samples)
            for start in range(0, samples, self._batch_size):
                yield columns, start, min(start + self._batch_size, samples)

    def _in_order(self, steps: Iterator[tuple[_Columns, int, int]]) -> Iterator[Batch]:
        free = list(range(len(self._memory)))
        flights: deque[tuple[int, Callable[[], Batch]]] = deque()
        launched = 0
        while True:
            if self._finished:
                raise TierscopeError("the epoch is finished: no more batches can be read")
            while free and (step := next(steps, None)) is not None:
                flight = self._launch(launched, free.pop(), *step)
                flights.append((flight.number, self._ready(flight)))
                launched += 1
            if not flights:
                return
            number, batch = flights.popleft()
            yield batch()
            free.append(number)

    def _launch(self, step: int, number: int, columns: _Columns, start: int, stop: int) -> _Flight:
        files, inside, tiers = columns.addresses
        skip = start * _WORD
        self._engine.submit(number, step, stop - start, (files + skip, inside + skip, tiers + skip))
        return _Flight(step, number, columns, start, stop)

    def _ready(self, flight: _Flight) -> Callable[[], Batch]:
        """Waits until the batch is read, checked and preprocessed."""
        if self._checkers is None:
            return partial(self._await, flight)
        checked = self._checkers.submit(self._await, flight).result
        if self._preprocessors is None:
            return checked
        parts = [self._preprocessors.submit(self._part, flight, checked, number) for number in range(self._parts)]
        return partial(_joined, checked, parts)

    def _part(self, flight: _Flight, checked: Callable[[], Batch], number: int) -> tuple[list[Floats], int]:
        """One thread's share of a batch."""
        payloads, places = checked().payloads, list(_places(flight))
        share = -(-len(payloads) // self._parts)
        part = slice(number * share, (number + 1) * share)
        return preprocess_samples(self._source, lambda: places[part], payloads[part])

    def _await(self, flight: _Flight) -> Batch:
        outcome = self._engine.wait(flight.number)
        if outcome.failed >= 0:
            raise self._problem(flight, outcome)
        read_ns, decode_ns = outcome.ended - outcome.began, 0
        slots, payloads = self._views(flight)
        compared = flight.compared
        if self._checks or compared:
            start = _now()
            if compared:
                self._compare(flight, compared, payloads)
            if self._checks:
                check_samples(self._source, _places(flight), slots)
            decode_ns = _now() - start
        arrays, preprocessed = (
            ([], 0) if self._parts else preprocess_samples(self._source, partial(_places, flight), payloads)
        )
        samples = flight.columns.block.samples[flight.start : flight.stop]
        return Batch(flight.step, samples, payloads, read_ns, decode_ns, preprocessed, arrays)

    def _compare(self, flight: _Flight, compared: Sequence[int], payloads: Sequence[memoryview]) -> None:
        columns = flight.columns
        samples = [int(columns.block.samples[at]) for at in compared]
        places = [(int(columns.files[at]), int(columns.inside[at]), int(columns.tiers[at])) for at in compared]
        verify_samples(self._source, samples, places, [payloads[at - flight.start] for at in compared])

    def _views(self, flight: _Flight) -> tuple[Sequence[memoryview], Sequence[memoryview]]:
        """Slots and payloads. O_DIRECT reads whole blocks: a sample may begin anywhere in its first."""
        memory, count = self._memory[flight.number], flight.stop - flight.start
        if not self._moves:
            return memory.slots[:count], memory.payloads[:count]
        (extent,) = self._extents
        offsets = extent.first + flight.columns.inside[flight.start : flight.stop] * extent.step
        return memory.shifted((offsets % native.DIRECT_ALIGN).tolist())

    def _problem(self, flight: _Flight, outcome: native.BatchOutcome) -> TierscopeError:
        at = flight.start + outcome.failed
        files = self._source.files[int(flight.columns.tiers[at])]
        path = files.path(int(flight.columns.files[at]))
        if outcome.operation == native.TRUNCATED:
            return truncated(path, int(flight.columns.inside[at]), outcome.offset, outcome.wanted, outcome.got)
        if self._source.reach.odirect and outcome.error == errno.EINVAL:
            return UserError(
                f"{files.tier_root}: its filesystem does not support O_DIRECT; set workload.reader.odirect: false"
            )
        return explain(OSError(outcome.error, os.strerror(outcome.error)), path)

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        self._finished = True
        self._stop()
        punctuality = Punctuality()
        if self._live is not None:
            self._live.now()  # the engine's last word
        lanes = self._engine.finish()
        for lane in lanes:
            punctuality.add(Punctuality(lane.limited_ops, lane.late_ops, lane.late_ns))
        if self._source.cold:
            self._source.cold.add([_tally(seen) for seen in self._engine.seen_pages])
        return [lane_table(lane, lane.number) for lane in lanes], punctuality


def _folders(source: SampleSource) -> list[native.Folder]:
    tiers = source.cold.tiers if source.cold else [None] * len(source.files)
    return [
        native.Folder(
            os.fsencode(f"{files.folder}/"),
            os.fsencode(files.suffix),
            files.subfolders,
            looks=tier is not None and tier.looks,
            evicts=tier is not None and tier.evicts,
        )
        for files, tier in zip(source.files, tiers, strict=True)
    ]


def _tally(seen: native.SeenPages) -> ColdTally:
    cached = None if seen.unknown else seen.resident_bytes
    return ColdTally(seen.files, seen.checked_bytes, cached, seen.nanoseconds)


def _joined(checked: Callable[[], Batch], parts: Sequence[Future[tuple[list[Floats], int]]]) -> Batch:
    batch, done = checked(), [part.result() for part in parts]
    arrays = [array for some, _ in done for array in some]
    return replace(batch, preprocess_ns=sum(nanoseconds for _, nanoseconds in done), arrays=arrays)


def _places(flight: _Flight) -> Iterator[tuple[int, int, int]]:
    columns, part = flight.columns, slice(flight.start, flight.stop)
    return zip(*(column[part].tolist() for column in (columns.files, columns.inside, columns.tiers)), strict=True)


def affine_extents(form: Format, samples_per_file: int) -> list[native.StridedExtent]:
    """The format's extents as first + inside × step, which is all that C has to know of a format."""
    last = samples_per_file - 1
    first, end = form.extents(0, 0), form.extents(last, 0)
    extents = [
        native.StridedExtent(a.offset, (b.offset - a.offset) // max(1, last), a.nbytes)
        for a, b in zip(first, end, strict=True)
    ]
    for inside in {min(1, last), last // 2, last}:
        expected = [(extent.first + inside * extent.step, extent.nbytes) for extent in extents]
        if [(extent.offset, extent.nbytes) for extent in form.extents(inside, 0)] != expected:
            raise TierscopeError(f"{type(form).__name__}: samples do not lie at equal distances")
    return extents


def _direct_room(form: Format, extents: Sequence[native.StridedExtent]) -> int:
    """Memory for a sample that is read in whole blocks; several extents are read behind the slot and copied into it."""
    align = native.DIRECT_ALIGN
    largest = max(-(-extent.nbytes // align) * align + align for extent in extents)
    return largest if len(extents) == 1 else -(-form.slot_bytes // align) * align + largest
