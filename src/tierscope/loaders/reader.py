"""Reading samples: open, read, close, check; each operation recorded. The inner loop of every loader of ours.

A file that the plan wants on the nearest tier too is copied there by the thread that read it, when it was read and checked: create,
write, close, recorded as operations of that tier. The thread's next read waits for it, and so does the batch. Simulated readers do not wait for
their copies, which only take time of the tier's stations.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tierscope.formats import LIBRARY, NOTHING, WHOLE
from tierscope.loaders.base import SampleSource, StepSamples
from tierscope.loaders.buffered import ReadBuffer, Run, runs_of
from tierscope.loaders.collective import CollectiveFiles
from tierscope.loaders.library import LibraryFiles
from tierscope.loaders.preprocess import Floats
from tierscope.loaders.problems import (
    broken,
    check_samples,
    explain,
    explain_copy,
    preprocess_samples,
    truncated,
    verify_samples,
)
from tierscope.storage.access import READ_FLAGS, Punctuality
from tierscope.trace.ops import CLOSE, OPEN, READ, WRITE
from tierscope.trace.recorder import Lane

_now = time.monotonic_ns
_NEAREST = 0  # tier


@dataclass(frozen=True, slots=True)
class ReadSamples:
    """Samples that were read: when that began, ended, and when checking ended."""

    start: int
    read: int
    checked: int
    payloads: Sequence[memoryview]

    @property
    def read_ns(self) -> int:
        return self.read - self.start

    @property
    def check_ns(self) -> int:
        return self.checked - self.read


class SampleReader:
    """One thread's reader: its ways to the tiers and its lane."""

    def __init__(self, source: SampleSource, lane: Lane) -> None:
        self.lane = lane
        self._source = source
        self._accesses = source.open_accesses()
        self._checks = source.check and source.format.has_checks
        if source.checks:
            source.checks.prepare()
        self._reading = source.format.reading
        self._library = LibraryFiles(source, self._accesses, lane) if self._reading == LIBRARY else None
        self._collective = CollectiveFiles(source, lane) if source.together else None
        self._buffer = ReadBuffer() if source.buffered else None
        self._whole_files = False
        if source.uniform:
            extents = source.format.extents(0, 0)
            single_read = len(extents) == 1 and extents[0].nbytes <= source.transfer_bytes
            plain = source.samples_per_file == 1 and source.cold is None
            self._whole_files = plain and single_read and lane.alone

    def close(self) -> Punctuality:
        """Give up the ways to the tiers; how well the emulated ones kept their times."""
        punctuality = Punctuality()
        for access in self._accesses:
            punctuality.add(access.punctuality)
            access.leave()
        if self._source.checks:
            self._source.checks.close()
        return punctuality

    def part(self) -> None:
        """At the end of an epoch that went well: close what ranks have open together."""
        if self._collective:
            self._collective.close()

    def rest(self) -> None:
        """At the end of an epoch, whatever happened in it: nothing of this rank alone stays open."""
        if self._library:
            self._library.close()

    def read(self, work: StepSamples, slots: Sequence[memoryview], payloads: Sequence[memoryview]) -> ReadSamples:
        """Fill a slot per sample, check it, and copy what is to be kept. `payloads`: of these slots, where all samples lie alike."""
        start = _now()
        self.lane.step = work.step
        filled: Sequence[memoryview] = slots  # as much of each slot as was read
        if self._collective:
            filled = payloads = self._read_by(self._collective, work, slots)
        elif self._whole_files:
            self._read_whole_files(work, slots)
        elif self._reading == WHOLE:
            filled = payloads = self._read_to_end(work, slots)
        elif self._library:
            filled = payloads = self._read_by(self._library, work, slots)
        elif self._reading == NOTHING:
            filled = payloads = self._make(work, slots)
        else:
            self._read_extents(work, slots)
            if not self._source.uniform:
                filled, payloads = self._filled(work, slots)
        read_done = _now()
        self._check(work, filled, payloads)
        checked = _now()
        for file, fills, slot in zip(work.files, work.fills, filled, strict=False):
            if fills:
                self._copy(file, slot)
        return ReadSamples(start, read_done, checked, payloads)

    def _check(self, work: StepSamples, filled: Sequence[memoryview], payloads: Sequence[memoryview]) -> None:
        if chosen := work.compared:
            places = [(work.files[at], work.inside[at], work.tiers[at]) for at in chosen]
            verify_samples(self._source, [work.samples[at] for at in chosen], places, [payloads[at] for at in chosen])
        if self._checks:
            check_samples(self._source, zip(work.files, work.inside, work.tiers, strict=True), filled)

    def preprocess(self, work: StepSamples, payloads: Sequence[memoryview]) -> tuple[list[Floats], int]:
        def places() -> Iterator[tuple[int, int, int]]:
            return zip(work.files, work.inside, work.tiers, strict=True)

        return preprocess_samples(self._source, places, payloads)

    def _filled(self, work: StepSamples, slots: Sequence[memoryview]) -> tuple[list[memoryview], list[memoryview]]:
        """What of each slot was read, and the payload in it, where samples differ."""
        form = self._source.format
        filled, payloads = [], []
        for file, inside, slot in zip(work.files, work.inside, slots, strict=True):
            filled.append(slot[: sum(extent.nbytes for extent in form.extents(inside, file))])
            payloads.append(slot[form.payload(inside, file)])
        return filled, payloads

    def _read_to_end(self, work: StepSamples, slots: Sequence[memoryview]) -> list[memoryview]:
        """Files of one sample whose size is found by reading until there is no more, as readers of such files do."""
        lane, contents = self.lane, []
        for file, tier, slot in zip(work.files, work.tiers, slots, strict=True):
            access, path, fd, done = self._accesses[tier], self._source.files[tier].path(file), -1, 0
            try:
                lane.begin()
                fd = access.open(path, READ_FLAGS)
                lane.end(tier, OPEN, file, 0, 0)
                self._opened(tier, file, fd)
                while True:
                    lane.begin()
                    got = access.preadv(fd, (slot[done : done + self._source.transfer_bytes],), done)
                    lane.end(tier, READ, file, done, got)
                    done += got
                    if not got or done == slot.nbytes:
                        break
                closing, fd = fd, -1
                self._close(tier, file, closing, 1)
            except OSError as error:
                lane.abandon()
                raise explain(error, path) from None
            finally:
                if fd >= 0:
                    access.close(fd)
            if not done:
                raise broken(self._source, (file, 0, tier), "it is empty")
            contents.append(slot[:done])
        return contents

    @staticmethod
    def _read_by(
        files: LibraryFiles | CollectiveFiles, work: StepSamples, slots: Sequence[memoryview]
    ) -> list[memoryview]:
        places = zip(work.files, work.inside, work.tiers, slots, strict=True)
        return [slot[: files.read(file, inside, tier, slot)] for file, inside, tier, slot in places]

    def _make(self, work: StepSamples, slots: Sequence[memoryview]) -> list[memoryview]:
        make = self._source.make_payload
        assert make is not None, "a format without files needs someone to make its samples"
        return [slot[: make(sample, slot)] for sample, slot in zip(work.samples, slots, strict=True)]

    def _copy(self, file: int, whole: memoryview) -> None:
        """A file gets its name when it is complete, as part of its close; it need not survive the machine, so it is not synced."""
        access, lane = self._accesses[_NEAREST], self.lane
        files = self._source.files[_NEAREST]
        path, unfinished = files.path(file), files.unfinished(file)
        fd, done = -1, 0
        try:
            lane.begin()
            fd = access.create(unfinished)
            lane.end(_NEAREST, OPEN, file, 0, 0)
            while done < whole.nbytes:
                lane.begin()
                wrote = access.pwrite(fd, whole[done : done + self._source.transfer_bytes], done)
                lane.end(_NEAREST, WRITE, file, done, wrote)
                done += wrote
            lane.begin()
            closing, fd = fd, -1
            access.close(closing)
            access.rename(unfinished, path)
            lane.end(_NEAREST, CLOSE, file, 0, 0)
        except OSError as error:
            lane.abandon()
            with contextlib.suppress(OSError):
                access.remove(unfinished)
            raise explain_copy(error, path) from None
        finally:
            if fd >= 0:
                access.close(fd)

    def _read_whole_files(self, work: StepSamples, slots: Sequence[memoryview]) -> None:
        """The short way for files of one sample that fit one transfer: four clock readings per file."""
        paths = [files.path for files in self._source.files]
        accesses = self._accesses
        record = self.lane.whole_file
        now = _now
        access, fd, path = accesses[0], -1, ""
        try:
            for file, tier, slot in zip(work.files, work.tiers, slots, strict=False):
                access = accesses[tier]
                path = paths[tier](file)
                t0 = now()
                fd = access.open(path, READ_FLAGS)
                t1 = now()
                got = access.preadv(fd, (slot,), 0)
                t2 = now()
                if got != slot.nbytes:
                    self._read_rest(tier, file, fd, path, slot, got, (t0, t1, t2))
                    closing, fd = fd, -1
                    self._close(tier, file, closing, 1)
                    continue
                closing, fd = fd, -1
                access.close(closing)
                record(tier, file, got, t0, t1, t2, now())
        except OSError as error:
            raise explain(error, path) from None
        finally:
            if fd >= 0:
                access.close(fd)

    def _read_rest(
        self, tier: int, file: int, fd: int, path: str, slot: memoryview, got: int, times: tuple[int, int, int]
    ) -> None:
        """A first read gave less than the file, as a filesystem may: note the open and it, and go on behind it."""
        opening, reading, read = times
        self.lane.begin(opening)
        self.lane.end(tier, OPEN, file, 0, 0, reading)
        self.lane.begin(reading)
        self.lane.end(tier, READ, file, 0, got, read)
        if got == 0:
            raise truncated(path, 0, 0, slot.nbytes, 0)
        self._read_extent(tier, (file, 0), fd, path, 0, slot, got)

    def _read_extents(self, work: StepSamples, slots: Sequence[memoryview]) -> None:
        """The general way: any number of extents and transfers; neighbours in one file share an open."""
        lane = self.lane
        open_file, open_tier, fd, path, reads = -1, -1, -1, "", 0
        access = self._accesses[0]
        runs = runs_of(self._source.format, work) if self._buffer else []
        try:
            for at, (file, inside, tier, slot) in enumerate(
                zip(work.files, work.inside, work.tiers, slots, strict=False)
            ):
                if (file, tier) != (open_file, open_tier):
                    if open_file >= 0:
                        closing, open_file = open_file, -1
                        self._close(open_tier, closing, fd, reads)
                    access = self._accesses[tier]
                    path = self._source.files[tier].path(file)
                    lane.begin()
                    fd = access.open(path, READ_FLAGS)
                    lane.end(tier, OPEN, file, 0, 0)
                    open_file, open_tier, reads = file, tier, 0
                    self._opened(tier, file, fd)
                    if self._buffer:
                        self._buffer.clear()
                reads += 1
                if self._buffer:
                    self._cut(self._buffer, tier, (file, inside), fd, path, runs[at], slot)
                    continue
                filled = 0
                for extent in self._source.format.extents(inside, file):
                    part = slot[filled : filled + extent.nbytes]
                    self._read_extent(tier, (file, inside), fd, path, extent.offset, part)
                    filled += extent.nbytes
            if open_file >= 0:
                closing, open_file = open_file, -1
                self._close(open_tier, closing, fd, reads)
        except OSError as error:
            lane.abandon()
            raise explain(error, path) from None
        finally:
            if open_file >= 0:
                access.close(fd)

    def _opened(self, tier: int, file: int, fd: int) -> None:
        """Between two operations: no part of either."""
        if self._source.cold:
            self._source.cold.opened(self._accesses[tier], fd, tier, file)

    def _close(self, tier: int, file: int, fd: int, reads: int) -> None:
        """`reads`: samples that came through this descriptor."""
        if self._source.cold:
            self._source.cold.closing(self._accesses[tier], fd, tier, file, reads)
        self.lane.begin()
        self._accesses[tier].close(fd)
        self.lane.end(tier, CLOSE, file, 0, 0)

    def _cut(
        self,
        buffer: ReadBuffer,
        tier: int,
        sample: tuple[int, int],
        fd: int,
        path: str,
        run: Run,
        slot: memoryview,
    ) -> None:
        """A sample from what is held of its file; what is missing is read a transfer at a time, up to the end of the run."""
        lane, preadv, done = self.lane, self._accesses[tier].preadv, 0
        into = slot[: run.extent.nbytes]
        while (done := buffer.take(run.extent.offset, into, done)) < into.nbytes:
            offset = run.extent.offset + done
            piece = buffer.room(min(self._source.transfer_bytes, run.end - offset), into[done:])
            lane.begin()
            got = preadv(fd, (piece,), offset)
            lane.end(tier, READ, sample[0], offset, got)
            if got == 0:
                raise truncated(path, sample[1], run.extent.offset, into.nbytes, done)
            done += buffer.filled(offset, got)

    def _read_extent(
        self, tier: int, sample: tuple[int, int], fd: int, path: str, offset: int, into: memoryview, done: int = 0
    ) -> None:
        """`sample`: file, and number inside it."""
        lane, preadv = self.lane, self._accesses[tier].preadv
        while done < into.nbytes:
            piece = into[done : done + self._source.transfer_bytes]
            lane.begin()
            got = preadv(fd, (piece,), offset + done)
            lane.end(tier, READ, sample[0], offset + done, got)
            if got == 0:
                raise truncated(path, sample[1], offset, into.nbytes, done)
            done += got
