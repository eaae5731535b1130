"""`storage: directory`: a directory of this system, on whatever file system it is. The default, and what every other kind is compared with."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from tierscope.output import durable
from tierscope.output.documents import PlainDirectories, entry_kind
from tierscope.storage import cold
from tierscope.storage.access import Access, Directory
from tierscope.storage.base import FILE, FOLDER, LINK, OTHER, Abilities, FileFacts, Piece, StorageSpace, TierPlace

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PIECES = 512
_BLOCK = 4096  # network filesystems call their transfer size a block


class DirectoryStorage(PlainDirectories):
    """Its root may be a link; below it no link is followed."""

    abilities: ClassVar[Abilities] = Abilities(paths=True, evict=True, direct_io=True, striping=True, share_hosts=True)

    def __init__(self, place: TierPlace, /) -> None:
        self.root = place.root

    def open_access(self) -> Access:
        return Directory()

    def entries(self, folder: str, /) -> dict[str, str]:
        if folder == self.root:
            return super().entries(folder)
        fd = os.open(folder, _LIST)
        try:
            with os.scandir(fd) as found:
                return {entry.name: entry_kind(entry) for entry in found}
        finally:
            os.close(fd)

    def look(self, path: str, /) -> FileFacts | None:
        try:
            return facts_of(os.lstat(path))
        except FileNotFoundError:
            return None

    def write(self, path: str, make: Callable[[], Sequence[Piece]], replace: bool = False, /) -> int:
        fd = os.open(path, _CREATE | (os.O_TRUNC if replace else os.O_EXCL), 0o644)
        try:
            return _write_pieces(fd, make())
        finally:
            os.close(fd)

    def rename(self, old: str, new: str, /) -> None:
        os.replace(old, new)

    def remove(self, path: str, /) -> None:
        os.unlink(path)

    def remove_folder(self, path: str, /) -> None:
        os.rmdir(path)

    def tidy(self, folder: str, /) -> None:
        durable.remove_leftovers(folder)

    def sync(self, folder: str, /) -> None:
        """The whole file system: one call for many files."""
        durable.sync_filesystem(folder)

    def space(self, path: str, /) -> StorageSpace:
        there = nearest_folder(path)
        disk = os.statvfs(there)
        return StorageSpace(
            place=there,
            total_bytes=disk.f_blocks * disk.f_frsize,
            free_bytes=disk.f_bavail * disk.f_frsize,
            free_files=disk.f_favail if disk.f_files else None,
            block_bytes=min(disk.f_frsize, _BLOCK),
        )

    def device(self, path: str, /) -> int | str:
        return os.stat(nearest_folder(path)).st_dev

    def evict(self, paths: Iterable[str], /) -> None:
        cold.evict(paths)

    def resident(self, paths: Iterable[str], /) -> tuple[int, int | None]:
        return cold.resident(paths)

    def lock(self, path: str, /) -> Callable[[], None]:
        fd = durable.lock_file(path)
        return lambda: os.close(fd)


def facts_of(found: os.stat_result) -> FileFacts:
    mode = found.st_mode
    kind = FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else LINK if stat.S_ISLNK(mode) else OTHER
    return FileFacts(kind, found.st_size, (found.st_ino, found.st_size, found.st_mtime_ns))


def nearest_folder(path: str) -> str:
    """The directory, or the nearest one above it that is there."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    return path


def _write_pieces(fd: int, pieces: Sequence[Piece]) -> int:
    total = 0
    for start in range(0, len(pieces), _MAX_PIECES):
        some = pieces[start : start + _MAX_PIECES]
        wanted = sum(len(piece) for piece in some)
        total += wanted
        written = os.writev(fd, some)
        if written < wanted:  # a signal, a quota or a very large write: go on behind it
            rest = memoryview(b"".join(some))[written:]
            while len(rest):
                rest = rest[os.write(fd, rest) :]
    return total
