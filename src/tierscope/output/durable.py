"""Writing so that a kill at any moment leaves either the old file or the new one."""

import ctypes
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def write_file(path: str, content: bytes) -> None:
    """Temporary name, fsync, rename, fsync of the directory."""
    with replacing(path) as temporary, open(temporary, "wb") as out:
        out.write(content)


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name to write to: it becomes `path`, durably, when the block ends well, and goes away when not."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # of a process that had our number, or a trap: nothing is written through a link
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666))
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
        sync_directory(os.path.dirname(path) or ".")
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            error.filename = path  # what the reader knows it by
        raise


def lock_file(path: str) -> int:
    """A descriptor that holds the lock of a file until it is closed, or the process ends.

    BlockingIOError if somebody else holds it. A filesystem without locks gives none, and the descriptor all the same.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:
        pass
    return fd


def remove_leftovers(folder: str) -> None:
    """Drop what killed writers left behind; only for a folder that nobody else writes to now."""
    remove_files(folder, r".+\.\d+\.tmp")


def remove_files(folder: str, names: str) -> None:
    """Plain files with such names go; a folder that is a link is an error (NotADirectoryError), and not followed."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        for name in os.listdir(fd):
            if re.fullmatch(names, name) and stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)


def sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_filesystem(path: str) -> None:
    """Everything written to the filesystem of this directory reaches its device (one call for many files)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)
    finally:
        os.close(fd)


def boot_id() -> str:
    """Changes when the machine restarts, and with it the page cache is lost."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return "unknown"
