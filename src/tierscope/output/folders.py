"""A folder that was entered to be emptied: what is in it, and what of that goes.

Directories of the system are entered by descriptor and never through a link, so that nobody can lead us elsewhere meanwhile, and what is mounted
inside is somebody else's. What other storages have instead: `storage/folders.py`.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from tierscope.output.documents import MOST_BYTES, DocumentSource, FileFacts, facts_of
from tierscope.output.durable import enter_folder
from tierscope.plain_files import open_plain

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


def enter_directory(path: str, root: str | None = None) -> "OpenDirectory":
    """`root`: only below it are links refused; None: the directory itself must be none."""
    return OpenDirectory(os.open(path, _ENTER) if root is None else enter_folder(path, root), path)


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
        with open_plain(os.path.basename(path), dir_fd=self._fd) as source:
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
        mount_line = next((line for line in about if line.startswith("mnt_id:")), None)
    if mount_line is None:
        raise OSError(errno.ENOTSUP, "this system does not report its mounts", path)
    return mount_line
