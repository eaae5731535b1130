"""A run that a site's profiler watches, seen from one rank: epochs that it can tell apart.

Our own timers are off then: two timers would measure each other.
"""

import ctypes
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from tierscope.errors import TierscopeError

PRELOADED = "preloaded"  # our own library, in every process of a rank
NO_EPOCH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Watched:
    """Which profiler watches (a name of RECORDERS, or PRELOADED), and the folder below which its logs go."""

    profiler: str
    folder: str


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
