"""Samples that someone else's library reads: it is given a file object whose every read goes through the tier's access, and is recorded.

A file stays open until the thread needs another one, or the epoch ends: opening it again for every batch is not what users of these libraries do.
"""

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any

from tierscope.errors import DamagedDataError
from tierscope.formats import Handle, Opened
from tierscope.loaders.base import SampleSource
from tierscope.loaders.problems import broken, explain
from tierscope.storage.access import READ_FLAGS, Access
from tierscope.trace.ops import CLOSE, OPEN, READ
from tierscope.trace.recorder import Lane


class RecordedFile(io.RawIOBase):
    """A file that is open for reading. Closing it closes nothing: whoever opened the descriptor does.

    `failed`: told of every read that fails, since a library may make another error of it.
    """

    def __init__(
        self, access: Access, lane: Lane, tier: int, file: int, fd: int, failed: Callable[[OSError], None]
    ) -> None:
        super().__init__()
        self._failed = failed
        self._access, self._lane, self._tier, self._file, self._fd = access, lane, tier, file, fd
        self._at, self._size = 0, access.size(fd)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        into = memoryview(buffer).cast("B")
        if not into.nbytes:
            return 0
        self._lane.begin()
        try:
            got = self._access.preadv(self._fd, (into,), self._at)
        except OSError as error:
            self._lane.abandon()
            self._failed(error)
            raise
        self._lane.end(self._tier, READ, self._file, self._at, got)
        self._at += got
        return got


class LibraryFiles:
    """One thread's open file."""

    def __init__(self, source: SampleSource, accesses: tuple[Access, ...], lane: Lane) -> None:
        self._source, self._accesses, self._lane = source, accesses, lane
        self._open: tuple[int, int, int, Handle] | None = None  # file, tier, descriptor
        self._reads = 0  # of samples, through it
        self._errors: list[OSError] = []  # of the system, in the sample that is read now

    def read(self, file: int, inside: int, tier: int, slot: memoryview) -> int:
        """A sample into the memory; its bytes."""
        self._errors.clear()
        try:
            handle = self._handle(file, tier)
            self._reads += 1
            return handle.read(inside, slot)
        except (ValueError, OSError) as error:
            path = self._source.files[tier].path(file)
            if self._errors:
                raise explain(self._errors[0], path) from None
            if isinstance(error, ValueError):
                raise broken(self._source, (file, inside, tier), str(error)) from None
            if error.errno is None:  # the library's own word for a file that it does not understand
                raise broken(self._source, (file, inside, tier), str(error).partition("\n")[0]) from None
            raise explain(error, path) from None

    def _handle(self, file: int, tier: int) -> Handle:
        if self._open and self._open[:2] == (file, tier):
            return self._open[3]
        self.close()
        path, access, lane = self._source.files[tier].path(file), self._accesses[tier], self._lane
        lane.begin()
        try:
            fd = access.open(path, READ_FLAGS)
        except OSError:
            lane.abandon()
            raise
        lane.end(tier, OPEN, file, 0, 0)
        if self._source.cold:
            self._source.cold.opened(access, fd, tier, file)
        try:
            opened = Opened(
                path, lambda: RecordedFile(access, lane, tier, file, fd, self._errors.append), self._timed(tier, file)
            )
            handle = self._source.format.open(opened)
        except BaseException:
            access.close(fd)
            raise
        self._open, self._reads = (file, tier, fd, handle), 0
        return handle

    def _timed(self, tier: int, file: int) -> Callable[[Callable[[], int]], int]:
        lane = self._lane

        def timed(work: Callable[[], int]) -> int:
            lane.begin()
            try:
                nbytes = work()
            except BaseException:
                lane.abandon()
                raise
            lane.end(tier, READ, file, 0, nbytes)
            return nbytes

        return timed

    def close(self) -> None:
        if self._open is None:
            return
        (file, tier, fd, handle), self._open = self._open, None
        with contextlib.suppress(ValueError, OSError, DamagedDataError):  # it was only read
            handle.close()
        if self._source.cold:  # nothing is mapped any more
            self._source.cold.closing(self._accesses[tier], fd, tier, file, self._reads)
        self._lane.begin()
        try:
            self._accesses[tier].close(fd)
        except OSError as error:
            self._lane.abandon()
            raise explain(error, self._source.files[tier].path(file)) from None
        self._lane.end(tier, CLOSE, file, 0, 0)
