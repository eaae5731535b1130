"""One thread's way to the files of a tier, with the signatures of the os module.

`Directory` is the os module itself, so that a real tier costs nothing extra. `Nothing` answers at once without
touching storage: what a loader costs on it is the loader's own overhead. `NullDevice` asks the kernel for nothing.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(slots=True)
class Punctuality:
    """Of an emulated tier: operations that a rate limits, those of them that really took longer, and by how much."""

    limited_ops: int = 0
    late_ops: int = 0
    late_ns: int = 0

    def add(self, other: "Punctuality") -> None:
        self.limited_ops += other.limited_ops
        self.late_ops += other.late_ops
        self.late_ns += other.late_ns


def create(path: str, /) -> int:
    """A new, empty file to write to."""
    return os.open(path, _WRITE_FLAGS, 0o644)


class Access(Protocol):
    punctuality: Punctuality

    def open(self, path: str, flags: int, /) -> int: ...
    def create(self, path: str, /) -> int: ...
    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int: ...
    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int: ...
    def sync(self, fd: int, /) -> None: ...
    def close(self, fd: int, /) -> None: ...
    def stat(self, path: str, /) -> os.stat_result: ...


class Directory:
    def __init__(self) -> None:
        self.punctuality = Punctuality()

    open = staticmethod(os.open)
    create = staticmethod(create)
    pwrite = staticmethod(os.pwrite)
    preadv = staticmethod(os.preadv)
    sync = staticmethod(os.fsync)
    close = staticmethod(os.close)
    stat = staticmethod(os.stat)


class Nothing:
    def __init__(self) -> None:
        self.punctuality = Punctuality()

    def open(self, _path: str, _flags: int, /) -> int:
        return -1

    def create(self, path: str, /) -> int:
        raise NotImplementedError(path)

    def pwrite(self, _fd: int, _data: memoryview, _offset: int, /) -> int:
        raise NotImplementedError

    def preadv(self, _fd: int, buffers: Sequence[memoryview], _offset: int, /) -> int:
        return buffers[0].nbytes

    def sync(self, _fd: int, /) -> None:
        raise NotImplementedError

    def close(self, _fd: int, /) -> None:
        pass

    def stat(self, path: str, /) -> os.stat_result:
        raise NotImplementedError(path)


class NullDevice(Nothing):
    """Real system calls that do no work: what threads lose to one another between them is the interpreter's lock."""

    def open(self, _path: str, flags: int, /) -> int:
        return os.open(os.devnull, flags)

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        os.preadv(fd, buffers, offset)
        return buffers[0].nbytes

    def close(self, fd: int, /) -> None:
        os.close(fd)
