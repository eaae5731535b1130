"""A folder that was entered to be cleaned: what is in it, and what of that goes.

Where files are files of the system, folders are entered by descriptor and never through a link, so that nobody can lead us elsewhere meanwhile, and
what is mounted inside is somebody else's. On other storages there is neither: paths are all there is.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from tierscope.output.documents import MOST_BYTES, DocumentSource
from tierscope.plain_files import open_plain
from tierscope.storage.base import FOLDER, FileFacts, Storage
from tierscope.storage.directory import facts_of

_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class EnteredFolder(DocumentSource, Protocol):
    """`path`: what users know it by. Documents are files that are right in it. Errors are OSErrors."""

    path: str

    def identity(self) -> str:
        """Another one when another folder has its name."""

    def names(self) -> list[str]: ...

    def inside(self) -> Iterator[tuple[str, FileFacts]]:
        """Names, sorted, with what is known of each."""

    def enter(self, name: str) -> "EnteredFolder | None":
        """A folder in it; None: it is not on the same device or mount."""

    def remove(self, name: str) -> int | None:
        """A file; its bytes. None: it is in use by the system. FileNotFoundError: it is gone."""

    def remove_folder(self, name: str) -> None:
        """One that is empty, or else it stays."""

    def leave(self) -> None: ...


def enter_directory(path: str) -> "OpenDirectory":
    return OpenDirectory(os.open(path, _ENTER), path)


def enter(storage: Storage | None, path: str) -> EnteredFolder:
    """`storage` None: a directory of this system."""
    if storage is None or storage.abilities.paths:
        return enter_directory(path)
    return FolderByPath(storage, path)


def remove_root(storage: Storage | None, path: str) -> None:
    """A folder that is empty now; one that is not, or where something is mounted, stays."""
    with suppress(OSError):
        if storage is None or storage.abilities.paths:
            os.rmdir(path)
        else:
            storage.remove_folder(path)


def hold(storage: Storage | None, path: str) -> Callable[[], None] | None:
    """The lock of a folder, if there is one; BlockingIOError: somebody is using it. None: nobody ever did."""
    if storage is not None and not storage.abilities.paths:
        return storage.lock(path) if storage.look(path) is not None else None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None  # or it is not a lock of ours
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:
        pass  # a filesystem without locks
    return lambda: os.close(fd)


class OpenDirectory:
    def __init__(self, fd: int, path: str) -> None:
        self._fd, self.path = fd, path

    def identity(self) -> str:
        return str(os.fstat(self._fd).st_ino)

    def names(self) -> list[str]:
        return sorted(os.listdir(self._fd))

    def inside(self) -> Iterator[tuple[str, FileFacts]]:
        for name in self.names():
            with suppress(FileNotFoundError):
                yield name, facts_of(os.stat(name, dir_fd=self._fd, follow_symlinks=False))

    def enter(self, name: str) -> "OpenDirectory | None":
        fd = os.open(name, _ENTER, dir_fd=self._fd)
        if mount_of(fd) != mount_of(self._fd):
            os.close(fd)
            return None
        return OpenDirectory(fd, os.path.join(self.path, name))

    def read_document(self, path: str, most: int = MOST_BYTES, /) -> bytes:
        with open_plain(f"/proc/self/fd/{self._fd}/{os.path.basename(path)}") as source:
            return source.read(most)

    def remove(self, name: str) -> int | None:
        nbytes = os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_size
        try:
            os.unlink(name, dir_fd=self._fd)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return None  # something is mounted on it
        return nbytes

    def remove_folder(self, name: str) -> None:
        with suppress(OSError):
            os.rmdir(name, dir_fd=self._fd)

    def leave(self) -> None:
        os.close(self._fd)


def mount_of(fd: int) -> str:
    """The mount that a descriptor is on: one for every mount, also of the same filesystem at another place."""
    path = f"/proc/self/fdinfo/{fd}"
    with open(path, encoding="ascii") as about:
        found = next((line for line in about if line.startswith("mnt_id:")), None)
    if found is None:
        raise OSError(errno.ENOTSUP, "this system does not say what is mounted where", path)
    return found


class FolderByPath:
    def __init__(self, storage: Storage, path: str) -> None:
        self._storage, self.path = storage, path
        found = storage.look(path)
        if found is None or found.kind != FOLDER:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def identity(self) -> str:
        return self.path

    def names(self) -> list[str]:
        return sorted(self._storage.entries(self.path))

    def inside(self) -> Iterator[tuple[str, FileFacts]]:
        for name in self.names():
            if (found := self._storage.look(f"{self.path}/{name}")) is not None:
                yield name, found

    def enter(self, name: str) -> "FolderByPath":
        return FolderByPath(self._storage, f"{self.path}/{name}")

    def read_document(self, path: str, most: int = MOST_BYTES, /) -> bytes:
        return self._storage.read_document(path, most)

    def remove(self, name: str) -> int | None:
        path = f"{self.path}/{name}"
        found = self._storage.look(path)
        self._storage.remove(path)
        return found.nbytes if found else 0

    def remove_folder(self, name: str) -> None:
        with suppress(OSError):
            self._storage.remove_folder(f"{self.path}/{name}")

    def leave(self) -> None:
        pass
