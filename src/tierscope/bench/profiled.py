"""A run that a site's profiler watches, seen from one rank: reads that it can see, and epochs that it can tell apart.

Our own timers are off then: two timers would measure each other.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from tierscope.errors import TierscopeError
from tierscope.storage.access import Punctuality, create

PRELOADED = "preloaded"  # our own library, in every process of a rank
NO_EPOCH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Watched:
    """Which profiler watches (a name of RECORDERS, or PRELOADED), and the folder below which its logs go."""

    profiler: str
    folder: str


class SeenDirectory:
    """The os module, but for reads: those of `os.preadv` are calls that not every profiler knows (preadv2), and pread is known to all."""

    open = staticmethod(os.open)
    create = staticmethod(create)
    pwrite = staticmethod(os.pwrite)
    sync = staticmethod(os.fsync)
    close = staticmethod(os.close)
    stat = staticmethod(os.stat)

    def __init__(self) -> None:
        self.punctuality = Punctuality()
        library = ctypes.CDLL(None, use_errno=True)
        self._pread = getattr(library, "pread64", None) or library.pread
        self._pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
        self._pread.restype = ctypes.c_ssize_t

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        (buffer,) = buffers
        size = buffer.nbytes
        memory = (ctypes.c_char * size).from_buffer(buffer)
        while (got := int(self._pread(fd, memory, size, offset))) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
        return got


class Frames(Protocol):
    """How a profiler is told of epochs while they happen."""

    def begin(self, epoch: int) -> None:
        """What follows is the epoch's."""

    def end(self) -> None:
        """What follows is no epoch's."""


class Unframed:
    """The profiler keeps times of its own, or knows one epoch only."""

    def begin(self, epoch: int) -> None:
        pass

    def end(self) -> None:
        pass


class PreloadedFrames:
    """Our own preloaded library is told which epoch it is; what happens between epochs is one that nobody looks at."""

    def __init__(self) -> None:
        try:
            self._mark = ctypes.CDLL(None).ts_mark_epoch
        except AttributeError:
            raise TierscopeError("the recorder's library was not preloaded into the rank") from None
        self.end()

    def begin(self, epoch: int) -> None:
        self._mark(epoch)

    def end(self) -> None:
        self._mark(NO_EPOCH)


class DarshanFrames:
    """One log for every epoch, in a folder of its own; what happens between epochs is in none."""

    def __init__(self, folder: str, initialize: Any, shutdown: Any) -> None:
        self._folder, self._initialize, self._shutdown = folder, initialize, shutdown
        initialize.argtypes, initialize.restype = (ctypes.c_int, ctypes.c_void_p), None
        shutdown.argtypes, shutdown.restype = (ctypes.c_int,), None
        shutdown(0)  # of what happened until here nobody wants a log

    def begin(self, epoch: int) -> None:
        folder = epoch_folder(self._folder, epoch)
        make_days(folder)
        os.environ["DARSHAN_LOGPATH"] = folder
        self._initialize(0, None)

    def end(self) -> None:
        self._shutdown(1)


def epoch_folder(folder: str, epoch: int) -> str:
    """In the order of names, epochs are in order."""
    return os.path.join(folder, f"epoch-{epoch:06d}")


def is_epoch_folder(name: str) -> bool:
    return name.startswith("epoch-")


def make_days(folder: str) -> None:
    """Darshan puts its logs below the day, and makes no folder for it. A run may last beyond midnight."""
    for day in (datetime.now(), datetime.now() + timedelta(days=1)):
        os.makedirs(os.path.join(folder, str(day.year), str(day.month), str(day.day)), exist_ok=True)


def frames_of(watched: Watched | None, epochs: int) -> Frames:
    if watched is not None and watched.profiler == PRELOADED:
        return PreloadedFrames()
    if watched is None or watched.profiler != "darshan":
        return Unframed()
    library = ctypes.CDLL(None)
    try:
        return DarshanFrames(watched.folder, library.darshan_core_initialize, library.darshan_core_shutdown)
    except AttributeError:
        if epochs > 1:  # the director asks before; it looked at the file, and this is what got loaded
            raise TierscopeError("Darshan's runtime library was not preloaded into the rank") from None
        return Unframed()
