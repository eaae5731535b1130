"""Files that somebody else may have put there, opened: a plain file, or an error at once. A leaf, so that anyone may use it."""

import errno
import os
import stat
from typing import BinaryIO

from tierscope.errors import AWAY, SHORT, StoppedError


def open_plain(path: str | os.PathLike[str], follow: bool = False) -> BinaryIO:
    """A file to read; what is none (a pipe that nobody writes to, a device) is an error, and is not waited for. `follow`: links may lead to it, as where a user named it."""
    links = 0 if follow else os.O_NOFOLLOW
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | links)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a plain file", os.fspath(path))
    return os.fdopen(fd, "rb")


def refuse_for_now(error: OSError, path: str) -> None:
    """What can be read later is not damaged: it must not be counted as such, and then removed."""
    if error.errno in AWAY or error.errno in SHORT:
        raise StoppedError(
            f"{path}: cannot be read: {error.strerror}; all records are kept, 'tierscope analyze' collects them when it can be read"
        ) from None
