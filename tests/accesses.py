"""Ways to the files of a tier that count what they are asked for, or misbehave as storage may."""

import os
import threading
import time
from collections.abc import Callable, Sequence

from tierscope.storage.access import Directory, Punctuality


class Counting:
    """A directory; everything that any thread asks of it is noted. One may serve all threads and tiers."""

    def __init__(self) -> None:
        self.punctuality = Punctuality()
        self.opened: list[str] = []
        self.reads: list[tuple[int, int]] = []  # (offset, bytes that came)
        self.created: list[str] = []
        self.writes: list[tuple[int, int]] = []  # (offset, bytes that went)
        self.closes = 0
        self.left = False  # given back
        self.syncs = 0
        self.open_fds: set[int] = set()
        self.paths: dict[int, str] = {}  # of descriptors, as they were opened last
        self.evicted: list[str] = []
        self.looked: list[str] = []
        self.threads: set[int] = set()
        self.lock = threading.Lock()

    def open(self, path: str, flags: int, /) -> int:
        fd = os.open(path, flags)
        with self.lock:
            self.opened.append(path)
            self.open_fds.add(fd)
            self.paths[fd] = path
            self.threads.add(threading.get_ident())
        return fd

    def create(self, path: str, /) -> int:
        fd = Directory.create(path)
        with self.lock:
            self.created.append(path)
            self.open_fds.add(fd)
        return fd

    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
        wrote = os.pwrite(fd, data, offset)
        with self.lock:
            self.writes.append((offset, wrote))
        return wrote

    def sync(self, fd: int, /) -> None:
        os.fsync(fd)
        with self.lock:
            self.syncs += 1

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        got = os.preadv(fd, buffers, offset)
        with self.lock:
            self.reads.append((offset, got))
        return got

    def open_folder(self, path: str, /) -> int:
        fd = Directory.open_folder(path)
        with self.lock:
            self.open_fds.add(fd)
        return fd

    def evict(self, fd: int, /) -> None:
        assert fd in self.open_fds
        Directory.evict(fd)
        with self.lock:
            self.evicted.append(self.paths[fd])

    def resident(self, fd: int, nbytes: int, /) -> int | None:
        assert fd in self.open_fds
        with self.lock:
            self.looked.append(self.paths[fd])
        return Directory.resident(fd, nbytes)

    size = staticmethod(Directory.size)
    rename = staticmethod(Directory.rename)
    remove = staticmethod(Directory.remove)

    def leave(self) -> None:
        self.left = True

    def close(self, fd: int, /) -> None:
        with self.lock:
            self.open_fds.remove(fd)
            self.closes += 1
        os.close(fd)


class Short(Counting):
    """Gives at most so many bytes per read, as signals and some filesystems make reads do."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        return super().preadv(fd, [buffers[0][: self._most]], offset)


class Failing(Counting):
    """Raises an error in the operation of this name, after so many of them went well."""

    def __init__(self, operation: str, error: BaseException, after: int = 0) -> None:
        super().__init__()
        self._operation, self._error, self._left = operation, error, after

    def _meet(self, operation: str) -> None:
        if operation != self._operation:
            return
        with self.lock:
            self._left -= 1
            failed = self._left < 0
        if failed:
            raise self._error

    def open(self, path: str, flags: int, /) -> int:
        self._meet("open")
        return super().open(path, flags)

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        self._meet("preadv")
        return super().preadv(fd, buffers, offset)

    def create(self, path: str, /) -> int:
        self._meet("create")
        return super().create(path)

    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
        self._meet("pwrite")
        return super().pwrite(fd, data, offset)

    def close(self, fd: int, /) -> None:
        super().close(fd)  # Linux frees the descriptor even when close reports an error
        self._meet("close")


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether the condition came true; only a test that fails waits that long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True
