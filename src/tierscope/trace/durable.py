"""Writing so that a kill at any moment leaves either the old file or the new one."""

import ctypes
import os


def write_file(path: str, content: bytes) -> None:
    """Temporary name, fsync, rename, fsync of the directory."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    publish(temporary, path)


def publish(temporary: str, path: str) -> None:
    """Give a finished, synced file its final name, durably."""
    os.replace(temporary, path)
    sync_directory(os.path.dirname(path) or ".")


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
