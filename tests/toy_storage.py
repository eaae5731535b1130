"""A kind of storage that Tierscope does not know, in one file: all files of a tier are rows of one SQLite database somewhere else.

So nothing is where its path says: whoever asks the system for a file of such a tier does not find it.
"""

import errno
import fcntl
import hashlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from tierscope.storage.access import Access, Punctuality
from tierscope.storage.base import FILE, FOLDER, Abilities, FileFacts, Piece, StorageSpace, TierPlace

HOME = "TOY_STORAGE_HOME"
TOTAL_BYTES = 1 << 30


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class Table:
    """path → kind, content, version. A connection for every question: there is no file before something is written."""

    def __init__(self, root: str) -> None:
        self.file = os.path.join(os.environ[HOME], hashlib.sha256(root.encode()).hexdigest()[:16])

    def ask(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        if not os.path.exists(self.file):
            return []
        with self._connected() as rows:
            return rows.execute(text, values).fetchall()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """One transaction. It outlasts any process, but no power cut: waiting for the disk took most of the tests' time."""
        with closing(sqlite3.connect(self.file, timeout=60)) as rows:
            rows.execute("pragma synchronous = off")
            with rows:
                yield rows

    def begin(self) -> None:
        with self._connected() as rows:
            rows.execute("create table if not exists rows (path text primary key, kind text, data blob, version int)")

    def kind(self, path: str) -> str | None:
        found = self.ask("select kind from rows where path = ?", path)
        return found[0][0] if found else None

    def put(self, path: str, data: bytes | bytearray) -> None:
        if self.used_bytes() + len(data) > TOTAL_BYTES:
            raise os_error(errno.ENOSPC, path)
        if self.kind(os.path.dirname(path)) != FOLDER:
            raise os_error(errno.ENOENT, path)
        self.ask(
            "insert into rows values (?, ?, ?, 1) on conflict (path) do update set data = excluded.data, version = version + 1",
            *(path, FILE, bytes(data)),
        )

    def used_bytes(self) -> int:
        found = self.ask("select coalesce(sum(length(data)), 0) from rows")
        return int(found[0][0]) if found else 0

    def rename(self, old: str, new: str) -> None:
        if self.kind(old) is None:
            raise os_error(errno.ENOENT, old)
        if self.kind(new) == FOLDER:
            raise os_error(errno.ENOTEMPTY, new)
        with self._connected() as rows:  # all of it or nothing
            rows.execute("delete from rows where path = ?", (new,))
            rows.execute(
                "update rows set path = ? || substr(path, ?) where path = ? or substr(path, 1, ?) = ?",
                (new, len(old) + 1, old, len(old) + 1, f"{old}/"),
            )

    def remove(self, path: str) -> None:
        kind = self.kind(path)
        if kind != FILE:
            raise os_error(errno.EISDIR if kind else errno.ENOENT, path)
        self.ask("delete from rows where path = ?", path)


class ToyAccess:
    """One thread's. What is written is in the table when the file is synced or closed."""

    def __init__(self, table: Table) -> None:
        self.punctuality = Punctuality()
        self._table, self._numbers = table, itertools.count(1)
        self._open: dict[int, tuple[str, bytearray | None]] = {}

    def _add(self, path: str, written: bytearray | None) -> int:
        number = next(self._numbers)
        self._open[number] = path, written
        return number

    def open(self, path: str, flags: int, /) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise os_error(errno.EINVAL, path)
        if self._table.kind(path) != FILE:
            raise os_error(errno.ENOENT, path)
        return self._add(path, None)

    def create(self, path: str, /) -> int:
        self._table.put(path, b"")
        return self._add(path, bytearray())

    def open_folder(self, path: str, /) -> int:
        if self._table.kind(path) != FOLDER:
            raise os_error(errno.ENOENT, path)
        return self._add(path, None)

    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
        _, written = self._open[fd]
        assert written is not None
        written.extend(bytes(max(0, offset + data.nbytes - len(written))))
        written[offset : offset + data.nbytes] = data
        return data.nbytes

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        got = 0
        for buffer in buffers:
            found = self._table.ask(
                "select substr(data, ?, ?) from rows where path = ?", offset + got + 1, buffer.nbytes, self._open[fd][0]
            )
            part: bytes = (found[0][0] or b"") if found else b""
            buffer[: len(part)] = part
            got += len(part)
        return got

    def size(self, fd: int, /) -> int:
        return int(self._table.ask("select length(data) from rows where path = ?", self._open[fd][0])[0][0])

    def sync(self, fd: int, /) -> None:
        path, written = self._open[fd]
        if written is not None:
            self._table.put(path, written)

    def close(self, fd: int, /) -> None:
        self.sync(fd)
        del self._open[fd]

    def evict(self, fd: int, /) -> None:
        raise NotImplementedError("nobody asks what cannot be done")

    def resident(self, fd: int, nbytes: int, /) -> int | None:
        return None

    def rename(self, old: str, new: str, /) -> None:
        self._table.rename(old, new)

    def remove(self, path: str, /) -> None:
        self._table.remove(path)

    def leave(self) -> None:
        pass


class ToyStorage:
    abilities: ClassVar[Abilities] = Abilities(
        paths=False,
        evict=False,
        direct_io=False,
        striping=False,
        share_hosts=False,
        why={
            "paths": "its files are rows of a database",
            "evict": "the database keeps pages as it likes",
            "direct_io": "its files are rows of a database",
            "striping": "it has no object servers",
            "share_hosts": "the database is on one host",
        },
    )

    def __init__(self, place: TierPlace, /) -> None:
        self.root = place.root
        self._table = Table(place.root)

    def open_access(self) -> Access:
        return ToyAccess(Table(self.root))

    def make_folder(self, path: str, /) -> None:
        path = path.rstrip("/")
        if not f"{path}/".startswith(f"{self.root}/"):
            raise os_error(errno.EACCES, path)
        self._table.begin()
        parts = path[len(self.root) :].split("/")
        for depth in range(1, len(parts) + 1):
            folder = self.root + "/".join(parts[:depth])
            if self._table.kind(folder) == FILE:
                raise os_error(errno.EEXIST if folder == path else errno.ENOTDIR, folder)
            self._table.ask("insert or ignore into rows values (?, ?, null, 1)", folder, FOLDER)

    def entries(self, folder: str, /) -> dict[str, str]:
        kind = self._table.kind(folder)
        if kind != FOLDER:
            raise os_error(errno.ENOTDIR if kind else errno.ENOENT, folder)
        found = self._table.ask(
            "select path, kind from rows where substr(path, 1, ?) = ?", len(folder) + 1, f"{folder}/"
        )
        inside = ((path[len(folder) + 1 :], kind) for path, kind in found)
        return {name: kind for name, kind in inside if "/" not in name}

    def look(self, path: str, /) -> FileFacts | None:
        found = self._table.ask("select kind, coalesce(length(data), 0), version from rows where path = ?", path)
        return FileFacts(found[0][0], found[0][1], (found[0][2],)) if found else None

    def write(self, path: str, make: Callable[[], Sequence[Piece]], replace: bool = False, /) -> int:
        if not replace and self._table.kind(path) is not None:
            raise os_error(errno.EEXIST, path)
        whole = b"".join(make())
        self._table.put(path, whole)
        return len(whole)

    def read_document(self, path: str, most: int = 1 << 20, /) -> bytes:
        found = self._table.ask("select kind, substr(data, 1, ?) from rows where path = ?", most, path)
        if not found:
            raise os_error(errno.ENOENT, path)
        if found[0][0] != FILE:
            raise os_error(errno.EINVAL, path)
        return found[0][1] or b""

    def write_document(self, path: str, content: bytes, /) -> None:
        self._table.put(path, content)

    def rename(self, old: str, new: str, /) -> None:
        self._table.rename(old, new)

    def remove(self, path: str, /) -> None:
        self._table.remove(path)

    def remove_folder(self, path: str, /) -> None:
        if self.entries(path):
            raise os_error(errno.ENOTEMPTY, path)
        self._table.ask("delete from rows where path = ?", path)
        if path == self.root:
            for name in (self._table.file, f"{self._table.file}.lock"):
                if os.path.exists(name):
                    os.unlink(name)

    def tidy(self, folder: str, /) -> None:
        pass  # documents are whole or not there

    def sync(self, folder: str, /) -> None:
        if self._table.kind(folder) is None:
            raise os_error(errno.ENOENT, folder)

    def space(self, path: str, /) -> StorageSpace:
        free = TOTAL_BYTES - self._table.used_bytes()
        return StorageSpace(self.root, TOTAL_BYTES, free, None, 1)

    def device(self, path: str, /) -> int | str:
        return self._table.file

    def lock(self, path: str, /) -> Callable[[], None]:
        """One for the whole tier is enough here."""
        fd = os.open(f"{self._table.file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        if self._table.kind(path) is None:
            self._table.put(path, b"")
        return lambda: os.close(fd)
