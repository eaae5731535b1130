"""`storage: directory`: a directory of this system, on whatever file system it is. The default, and what every other kind is compared with."""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from tierscope.output import durable
from tierscope.output.documents import PlainDirectories, entry_kind, facts_of
from tierscope.output.walk import remove_leftovers
from tierscope.storage.access import Access, Directory
from tierscope.storage.base import Abilities, FileFacts, Piece, StorageSpace, TierPlace

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PIECES = 512
_MOST_FOLDERS = 64  # that are kept open
_BLOCK = 4096  # network filesystems call their transfer size a block


class DirectoryStorage(PlainDirectories):
    """Its root may be a link; below it no link is followed. Files are made by one thread at a time."""

    abilities: ClassVar[Abilities] = Abilities(paths=True, evict=True, direct_io=True, striping=True, share_hosts=True)

    def __init__(self, place: TierPlace, /) -> None:
        self.root = place.root
        self._folders: dict[str, int] = {}  # descriptors of those that files were written to last

    def __del__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        while self._folders:
            os.close(self._folders.popitem()[1])

    def make_folder(self, path: str, /) -> None:
        os.makedirs(self.root, exist_ok=True)
        try:
            durable.make_folders(path, self.root)
        except NotADirectoryError as error:
            if error.filename != path:
                raise
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None

    def write_document(self, path: str, content: bytes, /) -> None:
        durable.write_file(path, content, self.root, make=False)

    def open_access(self) -> Access:
        return Directory()

    def entries(self, folder: str, /) -> dict[str, str]:
        if folder == self.root:
            return super().entries(folder)
        fd = os.open(folder, _LIST)
        try:
            with os.scandir(fd) as scanned:
                return {entry.name: entry_kind(entry) for entry in scanned}
        finally:
            os.close(fd)

    def look(self, path: str, /) -> FileFacts | None:
        try:
            return facts_of(os.lstat(path))
        except FileNotFoundError:
            return None

    def write(self, path: str, make: Callable[[], Sequence[Piece]], replace: bool = False, /) -> int:
        """A file that is there is never emptied, which may have other names: another takes its place."""
        folder, _, name = path.rpartition("/")
        really = _replace if replace else _write_new
        known = self._folders.get(folder)
        try:
            try:
                return really(self._enter(folder) if known is None else known, name, make)
            except FileNotFoundError:
                if known is None:
                    raise
            return really(self._enter(folder), name, make)  # it was removed meanwhile, and made again
        except OSError as error:
            if not isinstance(error, FileExistsError):
                self._forget()  # nothing keeps a disk that failed from being unmounted
            if error.filename is not None:
                error.filename, error.filename2 = path, None
            raise

    def _enter(self, path: str) -> int:
        """Once for many files."""
        if path in self._folders or len(self._folders) >= _MOST_FOLDERS:
            self._forget()
        self._folders[path] = entered = durable.enter_folder(path, self.root)
        return entered

    def rename(self, old: str, new: str, /) -> None:
        (before, name), (after, called) = os.path.split(old), os.path.split(new)
        with durable.opened_folder(before, self.root) as source:
            if after == before:
                os.replace(name, called, src_dir_fd=source, dst_dir_fd=source)
                return
            with durable.opened_folder(after, self.root) as target:
                os.replace(name, called, src_dir_fd=source, dst_dir_fd=target)

    def remove(self, path: str, /) -> None:
        folder, name = os.path.split(path)
        with durable.opened_folder(folder, self.root) as fd:
            os.unlink(name, dir_fd=fd)

    def remove_folder(self, path: str, /) -> None:
        if path == self.root:
            os.rmdir(path)
            return
        folder, name = os.path.split(path)
        with durable.opened_folder(folder, self.root) as fd:
            os.rmdir(name, dir_fd=fd)

    def tidy(self, folder: str, /) -> None:
        remove_leftovers(folder)

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

    def lock(self, path: str, /) -> Callable[[], None]:
        fd = durable.lock_file(path)
        return lambda: os.close(fd)


def _write_new(folder: int, name: str, make: Callable[[], Sequence[Piece]]) -> int:
    fd = os.open(name, _NEW, 0o644, dir_fd=folder)
    try:
        return _write_pieces(fd, make())
    finally:
        os.close(fd)


def _replace(folder: int, name: str, make: Callable[[], Sequence[Piece]]) -> int:
    temporary = durable.temporary_name()
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    try:
        written = _write_new(folder, temporary, make)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return written


def nearest_folder(path: str) -> str:
    """The directory, or the nearest one above it that is there."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    return path


def _write_pieces(fd: int, pieces: Sequence[Piece]) -> int:
    total = 0
    for start in range(0, len(pieces), _MAX_PIECES):
        some = pieces[start : start + _MAX_PIECES]
        wanted = sum(map(len, some))
        total += wanted
        written = os.writev(fd, some)
        if written < wanted:  # a signal, a quota or a very large write: go on behind it
            rest = memoryview(b"".join(some))[written:]
            while len(rest):
                rest = rest[os.write(fd, rest) :]
    return total
