"""Checksums of what is staged, into the table beside it (`storage/sums.py`).

They are of what is meant to be written, and never of what is read back: a bit that flips on its way to the disk, or there, is found when the sample is read.
Generated samples are slices of a pool: their checksums follow from those of the pool, for many samples at once and without reading them again.

Every rank notes those of the files that it writes in a part of its own; when all have written, one rank of those who share the files puts the parts and the
table that was there together, under another name first. What a killed staging leaves is dropped; checksums of files that are there are then
worked out again from what they must hold.
"""

import re
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tierscope.checksum import crc32c
from tierscope.dataset import content
from tierscope.formats import NOTHING, Format
from tierscope.native.sums import Slices, Sums
from tierscope.plan.permutation import IndexArray
from tierscope.spec.study import Study
from tierscope.storage.access import READ_FLAGS, Access
from tierscope.storage.base import Piece, Storage
from tierscope.storage.sums import HEADER_BYTES, NAME, NAMES, SampleSums, SumsLayout, stored_size

_PART = np.dtype([("entry", "<i8"), ("value", "<u4")])
_NUMBER = struct.Struct("<q")
_KEPT = 1 << 16  # entries in memory before they are written, and samples before their checksums are worked out
_READ = 1 << 16  # entries of a part that are read at a time
_AT_ONCE = 1 << 25  # entries of the table that are put together at a time


def sums_layout(study: Study, form: Format) -> SumsLayout | None:
    """Of the table of a study's dataset; None: it has no files of samples."""
    dataset = study.workload.dataset
    if form.reading == NOTHING:
        return None
    return SumsLayout(dataset.samples, dataset.num_files_train, sized=form.file_bytes_of(0) is None)


def salted_crc32c(number: int, stored: Piece) -> int:
    """The checksum of a sample in a dataset's table: CRC-32C of its number and its bytes. It is never 0, which stands for none."""
    return crc32c(stored, crc32c(_NUMBER.pack(number))) or 1


def generated_sums(pool: content.Pool, samples: IndexArray, sizes: IndexArray) -> Sums:
    """The same of samples as `content.payload` makes them."""
    sums, places = np.zeros(len(samples), np.uint32), np.arange(len(samples)) * _NUMBER.size
    numbers = Slices(memoryview(samples.astype("<i8").tobytes()), stepped=False)
    numbers.extend(sums, places, np.full_like(sizes, _NUMBER.size))
    numbers.extend(sums, places, np.minimum(sizes, _NUMBER.size))
    for starts, lengths in content.slices(samples, sizes):
        _pool_slices(pool).extend(sums, starts, lengths)
    return np.maximum(sums, 1)


@lru_cache(maxsize=1)
def _pool_slices(pool: content.Pool) -> Slices:
    return Slices(content.pool(*pool))


class StagedSums:
    """Of one share of a dataset: the table as it was, and one rank's part of the new one. Errors are OSErrors."""

    def __init__(self, storage: Storage, folder: str, layout: SumsLayout, part: int, pool: content.Pool) -> None:
        self._storage, self._folder, self.layout, self._pool = storage, folder, layout, pool
        self._files, self._sizes = (
            array("q"),
            array("q"),
        )  # of generated samples, whose checksums are not worked out yet
        self._part = f"{folder}/{NAME}.{part:06d}.part"
        self._entries, self._values = array("q"), array("I")
        self._out: _Output | None = None
        self._known: SampleSums | None = None
        self._looked = False

    @property
    def _table(self) -> SampleSums | None:
        if not self._looked:
            self._looked, self._known = True, _opened(self._storage, self._folder, self.layout)
        return self._known

    def knows(self, file: int) -> bool:
        return self._table is not None and self._table.knows(file)

    def has_size(self, file: int, nbytes: int) -> bool:
        """Whether a file is as large as it was written; of one that the table does not know: whether it is not empty."""
        known = self._table.size_of(file) if self._table else None
        return nbytes > 0 if known is None else stored_size(nbytes) == known

    def add_generated(self, file: int, sizes: Sequence[int]) -> None:
        """A file whose samples are handed over as they were generated."""
        self._files.append(file)
        self._sizes.extend(sizes)
        if len(self._sizes) >= _KEPT:
            self._flush()

    def add_encoded(self, file: int, stored: Sequence[Piece]) -> None:
        """A file whose samples are handed over as they were encoded."""
        first = file * self.layout.samples_per_file
        self._entries.extend(range(first, first + len(stored)))
        self._values.extend([salted_crc32c(number, piece) for number, piece in enumerate(stored, first)])
        if len(self._entries) >= _KEPT:
            self._flush()

    def add_size(self, file: int, nbytes: int) -> None:
        """Of a file whose size only its content decides."""
        if self.layout.sized:
            self._entries.append(self.layout.samples + file)
            self._values.append(stored_size(nbytes))

    def finish(self) -> None:
        """All was added."""
        self._flush()
        if self._out:
            self._out.close()

    def _flush(self) -> None:
        per_file, sizes = self.layout.samples_per_file, np.array(self._sizes, np.int64)
        samples = np.add.outer(np.array(self._files, np.int64) * per_file, np.arange(per_file)).ravel()
        for at in range(0, len(samples), _KEPT):
            some = samples[at : at + _KEPT]
            self._write(some, generated_sums(self._pool, some, sizes[at : at + _KEPT]))
        if self._entries:
            self._write(np.array(self._entries, np.int64), np.array(self._values, np.uint32))
        del self._files[:], self._sizes[:], self._entries[:], self._values[:]

    def _write(self, entries: IndexArray, values: Sums) -> None:
        if self._out is None:
            with suppress(FileNotFoundError):
                self._storage.remove(self._part)
            self._out = _Output(self._storage, self._part)
        rows = np.empty(len(entries), _PART)
        rows["entry"], rows["value"] = entries, values
        self._out.write(rows.tobytes())

    def distrust(self) -> None:
        """Drop the parts that a killed staging left, and a table that is not what was written; for one rank of those who share it."""
        for path in self._parts():
            self._storage.remove(path)
        if self._table is None or not self._table.intact():
            self.drop()

    def drop(self) -> None:
        self._known = None
        with suppress(FileNotFoundError):
            self._storage.remove(f"{self._folder}/{NAME}")

    def _parts(self) -> list[str]:
        """And a table that was not finished."""
        names = (name for name in sorted(self._storage.entries(self._folder)) if name != NAME)
        return [f"{self._folder}/{name}" for name in names if re.fullmatch(NAMES, name)]

    def merge(self) -> None:
        """When all ranks have finished: what they added and what was there become the table; for one rank of those who share it."""
        layout, storage, unfinished = self.layout, self._storage, f"{self._folder}/{NAME}.part"
        parts = [path for path in self._parts() if path != unfinished]
        if not parts:
            return
        with suppress(FileNotFoundError):
            storage.remove(unfinished)
        out, table_sum, access = _Output(storage, unfinished, HEADER_BYTES), 0, storage.open_access()
        try:
            for first in range(0, layout.entries, _AT_ONCE):
                piece = _put_together(access, parts, self._table, first, min(_AT_ONCE, layout.entries - first))
                table_sum = crc32c(piece, table_sum)
                out.write(piece)
            out.write(layout.header(table_sum), 0)
        finally:
            out.close()
            access.leave()
        storage.rename(unfinished, f"{self._folder}/{NAME}")
        for path in parts:
            storage.remove(path)
        self._looked = False


class _Output:
    """A file that is written from its beginning to its end."""

    def __init__(self, storage: Storage, path: str, start: int = 0) -> None:
        self._access = storage.open_access()
        self._fd, self._at = self._access.create(path), start

    def write(self, data: bytes, at: int | None = None) -> None:
        """Behind what was written, or elsewhere."""
        rest, start = memoryview(data), self._at if at is None else at
        while rest:
            wrote = self._access.pwrite(self._fd, rest, start)
            rest, start = rest[wrote:], start + wrote
        self._at = max(self._at, start)

    def close(self) -> None:
        self._access.close(self._fd)
        self._access.leave()


def _put_together(access: Access, parts: Sequence[str], before: SampleSums | None, first: int, entries: int) -> bytes:
    values = np.zeros(entries, "<u4")
    if before is not None:
        values[:] = np.frombuffer(before.part(first, entries), "<u4")
    for path in parts:
        for rows in _rows(access, path):
            inside = rows[(rows["entry"] >= first) & (rows["entry"] < first + entries)]
            values[inside["entry"] - first] = inside["value"]
    return values.tobytes()


def _rows(access: Access, path: str) -> Iterator[npt.NDArray[np.void]]:
    buffer, fd, at = memoryview(bytearray(_READ * _PART.itemsize)), access.open(path, READ_FLAGS), 0
    try:
        while got := _fill(access, fd, buffer, at):
            yield np.frombuffer(buffer[: got // _PART.itemsize * _PART.itemsize], _PART)
            at += got
    finally:
        access.close(fd)


def _fill(access: Access, fd: int, buffer: memoryview, at: int) -> int:
    done = 0
    while done < buffer.nbytes and (got := access.preadv(fd, (buffer[done:],), at + done)):
        done += got
    return done


def _opened(storage: Storage, folder: str, layout: SumsLayout) -> SampleSums | None:
    """What cannot be used is not there: it is made anew."""
    try:
        return SampleSums(f"{folder}/{NAME}", layout, storage)
    except (OSError, ValueError):
        return None
