"""LMDB: a database per file, samples under their numbers. It reads by mapping the file into memory: what touches the pages is the read.

That is the lookup as much as the copy: py-lmdb touches every page of a value before it hands it over. Both are timed as one read.
The system reads ahead in the mapping, as is LMDB's default: without it, a value that is not in the page cache comes from storage one page at a time.

LMDB believes what a file says: pages that lie about where others are can end the process. A file that was cut off is found when it is opened.
"""

import errno
import os
import struct
import threading
from collections.abc import Sequence

import lmdb

from tierscope.formats import LIBRARY
from tierscope.formats.base import Buffer, Format, Handle, Opened, Shape
from tierscope.units import counted

_KEY = struct.Struct(">Q")
_PAGE = 4096
_WRITTEN_AT_ONCE = 1000
_MOST_BYTES = 2**32 - 2**12


class Lmdb(Format):
    suffix = ".lmdb"
    reading = LIBRARY
    ragged = True
    has_checks = False

    def __init__(self, shape: Shape) -> None:
        if shape.most > _MOST_BYTES:
            raise ValueError("a value of LMDB must stay below 4 GiB; lower record_length_bytes")
        super().__init__(shape)
        self._databases = _Databases()

    @property
    def file_bytes(self) -> int:
        return self._pages(self.shape.record_bytes)

    def file_bytes_of(self, file: int) -> None:  # noqa: ARG002
        return None

    def _pages(self, record: int) -> int:
        """Values go to pages of their own unless two of them fit one, with room for the tree."""
        per_value = -(-(record + 16) // _PAGE) * _PAGE if record > _PAGE // 2 - 32 else record + 32
        return 16 * _PAGE + self.shape.samples_per_file * (per_value + 48)

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def write(self, path: str, payloads: Sequence[Sequence[Buffer]]) -> None:
        room = 2 * self._pages(self.shape.most) + (1 << 20)
        try:
            with lmdb.open(path, map_size=room, subdir=False, lock=False, sync=False) as database:
                for first in range(0, len(payloads), _WRITTEN_AT_ONCE):
                    with database.begin(write=True) as transaction:
                        for inside, payload in enumerate(payloads[first : first + _WRITTEN_AT_ONCE], first):
                            transaction.put(_KEY.pack(inside), b"".join(payload), append=True)
        except lmdb.Error as error:  # a full disk is an input/output error to it
            disk = os.statvfs(path if os.path.exists(path) else os.path.dirname(path) or ".")
            if isinstance(error, lmdb.DiskError) or disk.f_bavail * disk.f_frsize < room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise OSError(str(error)) from error

    def open(self, opened: Opened) -> Handle:
        return _Handle(opened, self._databases, self.shape.samples_per_file)


class _Databases:
    """Those that are open. LMDB allows one of a file in a process, so threads that read the same file share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[lmdb.Environment, int]] = {}

    def take(self, path: str) -> lmdb.Environment:
        with self._lock:
            database, users = self._open.get(path) or (self._opened(path), 0)
            self._open[path] = database, users + 1
            return database

    def give_back(self, path: str) -> None:
        with self._lock:
            database, users = self._open.pop(path)
            if users > 1:
                self._open[path] = database, users - 1
            else:
                database.close()

    @staticmethod
    def _opened(path: str) -> lmdb.Environment:
        """Touching what lies behind the end of a file that was cut off would end the process."""
        try:
            database = lmdb.open(path, subdir=False, lock=False, readonly=True)
        except lmdb.Error as error:
            raise ValueError(f"not an LMDB file: {error}") from None
        needed = (database.info()["last_pgno"] + 1) * database.stat()["psize"]
        file_bytes = os.stat(path).st_size
        if file_bytes < needed:
            database.close()
            raise ValueError(f"not a complete LMDB file: {file_bytes} of {needed} bytes")
        return database


class _Handle:
    def __init__(self, opened: Opened, databases: _Databases, samples: int) -> None:
        self._path, self._databases, self._timed = opened.path, databases, opened.timed
        database = databases.take(opened.path)
        entries = database.stat()["entries"]
        if entries != samples:
            databases.give_back(opened.path)
            raise ValueError(
                f"it has {entries} {'entry' if entries == 1 else 'entries'}, not {counted(samples, 'sample')} of this dataset"
            )
        self._transaction = database.begin(buffers=True)

    def read(self, inside: int, slot: memoryview) -> int:
        return self._timed(lambda: self._copied(inside, slot))

    def _copied(self, inside: int, slot: memoryview) -> int:
        try:
            value = self._transaction.get(_KEY.pack(inside))
        except lmdb.Error as error:
            raise ValueError(f"cannot be read by LMDB: {error}") from None
        if value is None or len(value) > slot.nbytes:
            raise ValueError(f"sample {inside} is not in it, or too long")
        slot[: len(value)] = value
        return len(value)

    def close(self) -> None:
        self._transaction.abort()
        self._databases.give_back(self._path)
