"""Checksums of what is staged, into the table beside it (`storage/sums.py`).

Every rank notes those of the files that it writes in a part of its own; when all have written, one rank of those who share the files puts the parts and the
table that was there together, under another name first. What a killed staging leaves is dropped; checksums of files that are there are then
worked out again from what they must hold.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from tierscope.formats import NOTHING, Format
from tierscope.formats.slices import salted_crc32c
from tierscope.spec.study import Study
from tierscope.storage.access import READ_FLAGS, Access
from tierscope.storage.base import Piece, Storage
from tierscope.storage.sums import HEADER_BYTES, NAME, NAMES, SampleSums, SumsLayout, stored_size

_PART = np.dtype([("entry", "<i8"), ("value", "<u4")])
_KEPT = 1 << 16  # entries in memory before they are written
_READ = 1 << 16  # entries of a part that are read at a time
_AT_ONCE = 1 << 25  # entries of the table that are put together at a time


def sums_layout(study: Study, form: Format) -> SumsLayout | None:
    """Of the table of a study's dataset; None: it has no files of samples."""
    dataset = study.workload.dataset
    if form.reading == NOTHING:
        return None
    return SumsLayout(dataset.samples, dataset.num_files_train, sized=form.file_bytes_of(0) is None)


class StagedSums:
    """Of one share of a dataset: the table as it was, and one rank's part of the new one. Errors are OSErrors."""

    def __init__(self, storage: Storage, folder: str, layout: SumsLayout, part: int) -> None:
        self._storage, self._folder, self.layout = storage, folder, layout
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

    def add(self, file: int, stored: Sequence[Sequence[Piece]], nbytes: int, alike: bool) -> None:
        """A file's samples, as loaders will hand them over. `alike`: all samples are of one length."""
        first = file * self.layout.samples_per_file
        self._entries.extend(range(first, first + len(stored)))
        self._values.extend([salted_crc32c(number, pieces, alike) for number, pieces in enumerate(stored, first)])
        if self.layout.sized:
            self._entries.append(self.layout.samples + file)
            self._values.append(stored_size(nbytes))
        if len(self._entries) >= _KEPT:
            self._flush()

    def finish(self) -> None:
        """All was added."""
        self._flush()
        if self._out:
            self._out.close()

    def _flush(self) -> None:
        if not self._entries:
            return
        if self._out is None:
            with suppress(FileNotFoundError):
                self._storage.remove(self._part)
            self._out = _Output(self._storage, self._part)
        rows = np.empty(len(self._entries), _PART)
        rows["entry"], rows["value"] = self._entries, self._values
        self._out.write(rows.tobytes())
        del self._entries[:], self._values[:]

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
