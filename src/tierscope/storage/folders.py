"""Folders of a tier that were entered to be emptied, wherever its files lie.

Where these are files of the system, folders are entered as `output/folders.py` has it. On other storages there are neither links nor mounts: paths
are all there is.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from tierscope.output.documents import MOST_BYTES, FileFacts
from tierscope.output.folders import EnteredFolder, enter_directory
from tierscope.storage.base import FOLDER, Storage


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


class FolderByPath:
    def __init__(self, storage: Storage, path: str) -> None:
        self._storage, self.path = storage, path
        facts = storage.look(path)
        if facts is None or facts.kind != FOLDER:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def identity(self) -> str:
        return self.path

    def names(self) -> list[str]:
        return sorted(self._storage.entries(self.path))

    def inside(self) -> Iterator[tuple[str, FileFacts]]:
        for name in self.names():
            if (facts := self._storage.look(f"{self.path}/{name}")) is not None:
                yield name, facts

    def enter(self, name: str) -> "FolderByPath":
        return FolderByPath(self._storage, f"{self.path}/{name}")

    def read_document(self, path: str, most: int = MOST_BYTES, /) -> bytes:
        return self._storage.read_document(path, most)

    def remove(self, name: str) -> int | None:
        path = f"{self.path}/{name}"
        facts = self._storage.look(path)
        self._storage.remove(path)
        return facts.nbytes if facts else 0

    def remove_folder(self, name: str) -> None:
        with suppress(OSError):
            self._storage.remove_folder(f"{self.path}/{name}")

    def leave(self) -> None:
        pass
