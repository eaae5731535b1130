"""LMDB: a database per file, samples under their numbers. It reads by mapping the file into memory: what touches the pages is the read."""

import struct
from collections.abc import Sequence

import lmdb

from tierscope.formats.base import LIBRARY, Buffer, Format, Handle, Opened

_KEY = struct.Struct(">Q")
_PAGE = 4096
_WRITTEN_AT_ONCE = 1000


class Lmdb(Format):
    suffix = ".lmdb"
    reading = LIBRARY
    ragged = True
    has_checks = False

    @property
    def file_bytes(self) -> int:
        return self._pages(self.shape.record_bytes)

    def file_bytes_of(self, file: int) -> None:  # noqa: ARG002
        return None

    def _pages(self, record: int) -> int:
        """Values go to pages of their own unless two of them fit one, with room for the tree."""
        each = -(-(record + 16) // _PAGE) * _PAGE if record > _PAGE // 2 - 32 else record + 32
        return 16 * _PAGE + self.shape.samples_per_file * (each + 48)

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def write(self, path: str, payloads: Sequence[Sequence[Buffer]]) -> None:
        room = 2 * self._pages(self.shape.most) + (1 << 20)
        with lmdb.open(path, map_size=room, subdir=False, lock=False, sync=False) as database:
            for first in range(0, len(payloads), _WRITTEN_AT_ONCE):
                with database.begin(write=True) as transaction:
                    for inside, payload in enumerate(payloads[first : first + _WRITTEN_AT_ONCE], first):
                        transaction.put(_KEY.pack(inside), b"".join(payload), append=True)

    def open(self, opened: Opened) -> Handle:
        return _Handle(opened)


class _Handle:
    def __init__(self, opened: Opened) -> None:
        try:
            self._database = lmdb.open(opened.path, subdir=False, lock=False, readonly=True, readahead=False)
        except lmdb.Error as error:
            raise ValueError(f"not an LMDB file: {error}") from None
        self._transaction = self._database.begin(buffers=True)
        self._timed = opened.timed

    def read(self, inside: int, slot: memoryview) -> int:
        try:
            found = self._transaction.get(_KEY.pack(inside))
        except lmdb.Error as error:
            raise ValueError(f"cannot be read by LMDB: {error}") from None
        if found is None or len(found) > slot.nbytes:
            raise ValueError(f"sample {inside} is not in it, or too long")
        value = memoryview(found)

        def copy() -> None:
            slot[: value.nbytes] = value

        self._timed(value.nbytes, copy)
        return value.nbytes

    def close(self) -> None:
        self._transaction.abort()
        self._database.close()
