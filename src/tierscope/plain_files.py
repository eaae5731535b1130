"""Opening a file to read as a plain file: a pipe, a device, a socket or a directory of that name is an error at once, never waited for.

What the user names on the command line may be a link (`follow`); what lies in a result or on a tier may not. Errors are OSErrors: EINVAL for what
is no plain file or no name of a file, ELOOP for a link, EFBIG for more than `most_bytes`; `strerror` says so in words that follow a path and "cannot be read: ".
"""

import errno
import os
import stat
from dataclasses import dataclass
from typing import BinaryIO

from tierscope.errors import AWAY, SHORT, StoppedError
from tierscope.units import about_bytes

DIRECTORY = "a directory"
_KINDS = (
    (stat.S_ISDIR, DIRECTORY),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_plain(
    path: str | os.PathLike[str], follow: bool = False, *, most_bytes: int | None = None, dir_fd: int | None = None
) -> BinaryIO:
    """A file to read."""
    return os.fdopen(plain_descriptor(path, follow=follow, most_bytes=most_bytes, dir_fd=dir_fd), "rb")


def plain_descriptor(
    path: str | os.PathLike[str], follow: bool = False, *, most_bytes: int | None = None, dir_fd: int | None = None
) -> int:
    """The same as a descriptor. It is looked at before it is opened: to open a device or a pipe may already do something."""
    _refuse_others(_status(path, follow, dir_fd), path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    fd = os.open(path, flags, dir_fd=dir_fd)
    try:
        status = os.fstat(fd)  # it may have been swapped meanwhile
        _refuse_others(status, path)
        if most_bytes is not None and status.st_size > most_bytes:
            sizes = f"{about_bytes(status.st_size)}, and at most {about_bytes(most_bytes)} are read"
            raise OSError(errno.EFBIG, f"is too large ({sizes})", os.fspath(path))
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_plain(
    path: str | os.PathLike[str], most_bytes: int, *, follow: bool = False, dir_fd: int | None = None
) -> bytes:
    """All of a file; also one that grows meanwhile gives no more than `most_bytes`, but an error (EFBIG)."""
    with open_plain(path, follow=follow, most_bytes=most_bytes, dir_fd=dir_fd) as source:
        content = source.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"is too large (at most {about_bytes(most_bytes)} are read)", os.fspath(path))
    return content


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells a file that was changed while it was read from one that was not."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, fd: int) -> "FileState":
        status = os.fstat(fd)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def not_plain(mode: int) -> str | None:
    """What such a thing is, where it is no plain file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")


def _status(path: str | os.PathLike[str], follow: bool, dir_fd: int | None) -> os.stat_result:
    try:
        return os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
    except ValueError:  # a NUL, or what is no Unicode: from Python, where names come from anywhere
        raise OSError(errno.EINVAL, "is not a name that a file can have", os.fspath(path)) from None


def _refuse_others(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a link, and links are not followed", os.fspath(path))
    kind = not_plain(status.st_mode)
    if kind:
        raise OSError(errno.EINVAL, f"is not a regular file but {kind}", os.fspath(path))


def refuse_for_now(error: OSError, path: str) -> None:
    """What can be read later is not damaged: it must not be counted as such, and then removed."""
    if error.errno in AWAY or error.errno in SHORT:
        raise StoppedError(
            f"{path}: cannot be read: {error.strerror}; all records are kept; run 'tierscope analyze' when it can be read"
        ) from None
