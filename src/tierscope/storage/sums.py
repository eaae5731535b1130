"""The table of checksums beside a dataset's files: 4 bytes for every sample of the dataset, at its number; 0: it is not on this tier.

A checksum is CRC-32C of the sample's number and of what loaders hand over of it, so that a flipped bit, a cut file and a swapped sample all differ
(`formats/slices.py`). Where only content decides how large a file is, the sizes of all files follow, modulo 2^32. The table has a checksum of its own; it
is read as if somebody else had written it, four bytes at a time: it takes no memory, however large the dataset.
"""

import os
import struct
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from tierscope.checksum import crc32c
from tierscope.native import sums as native
from tierscope.storage.base import Storage

NAME = "samples.crc32c"
NAMES = r"samples\.crc32c(\.\d{6,})?(\.part)?"  # the table, and what becomes one
_MAGIC, _VERSION = b"TIERSCOPE-CRC32C", 1
_HEADER = struct.Struct("<16sIIQQI")  # magic, version, whether sizes follow, samples, files, checksum of the table
_OWN_SUM = struct.Struct("<I")  # of the header
HEADER_BYTES = 64
ENTRY_BYTES = 4
_WORD = struct.Struct("<I")
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class SumsLayout:
    """How many checksums and sizes a table holds. Numbers of entries: those of samples, then those of files."""

    samples: int
    files: int
    sized: bool

    @property
    def samples_per_file(self) -> int:
        return self.samples // self.files

    @property
    def entries(self) -> int:
        return self.samples + (self.files if self.sized else 0)

    @property
    def nbytes(self) -> int:
        return HEADER_BYTES + ENTRY_BYTES * self.entries

    def header(self, table_sum: int) -> bytes:
        known = _HEADER.pack(_MAGIC, _VERSION, self.sized, self.samples, self.files, table_sum)
        return (known + _OWN_SUM.pack(crc32c(known))).ljust(HEADER_BYTES, b"\0")


def stored_size(nbytes: int) -> int:
    """A file's size as an entry."""
    return nbytes & 0xFFFFFFFF or 1


class SampleSums:
    """A table that is open. Any thread may ask; it closes when it is forgotten."""

    def __init__(self, path: str, layout: SumsLayout, storage: Storage | None = None) -> None:
        """`storage` None: a file of the system. OSError, or ValueError with what is wrong with it."""
        self.path, self.layout = path, layout
        fd, nbytes = (
            native.open_table(path) if storage is None or storage.abilities.paths else _copied(storage, path, layout)
        )
        self._fd = fd
        self._close = weakref.finalize(self, native.close_table, fd)
        self._table_sum = self._checked(nbytes)
        with suppress(OSError):  # so that no read of it waits in the middle of a run
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)

    def _checked(self, nbytes: int) -> int:
        """The checksum that the table is said to have."""
        header = native.read_table(self._fd, HEADER_BYTES, 0)
        if len(header) < HEADER_BYTES or header[: len(_MAGIC)] != _MAGIC:
            raise ValueError("is not a table of checksums")
        table_sum: int
        _, version, _, _, _, table_sum = _HEADER.unpack_from(header)
        if version > _VERSION:
            raise ValueError(f"has version {version}, but this Tierscope supports {_VERSION}")
        if header != self.layout.header(table_sum) or nbytes != self.layout.nbytes:
            raise ValueError("is damaged, or belongs to another dataset")
        return table_sum

    def close(self) -> None:
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def intact(self) -> bool:
        """Whether the whole table is what was written; reads all of it."""
        crc = 0
        for at in range(0, self.layout.entries, _AT_ONCE):
            crc = crc32c(self.part(at, min(_AT_ONCE, self.layout.entries - at)), crc)
        return crc == self._table_sum

    def part(self, first: int, entries: int) -> bytes:
        return native.read_table(self._fd, entries * ENTRY_BYTES, HEADER_BYTES + first * ENTRY_BYTES)

    def _entry(self, number: int) -> int:
        entry = os.pread(self._fd, ENTRY_BYTES, HEADER_BYTES + number * ENTRY_BYTES)
        value: int = _WORD.unpack(entry)[0] if len(entry) == ENTRY_BYTES else 0
        return value

    def knows(self, file: int) -> bool:
        """All checksums of a file are there, or none."""
        return self._entry(file * self.layout.samples_per_file) != 0

    def size_of(self, file: int) -> int | None:
        """Modulo 2^32, as `stored_size` has it; None: it is not in the table."""
        return (self._entry(self.layout.samples + file) or None) if self.layout.sized else None

    def verify(self, samples: list[int], payloads: list[memoryview]) -> native.WrongSum | None:
        """The first of these samples that is not what was staged. OSError: the table cannot be read."""
        return native.verify(self._fd, HEADER_BYTES, samples, payloads)


def _copied(storage: Storage, path: str, layout: SumsLayout) -> tuple[int, int]:
    """A table that is no file of the system: a copy of it in memory."""
    whole = storage.read_document(path, layout.nbytes + 1)
    fd = os.memfd_create(NAME)
    with os.fdopen(os.dup(fd), "wb") as copy:
        copy.write(whole)
    return fd, len(whole)
