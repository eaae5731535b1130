"""One thread's way to the files of a tier, with the signatures of the os module.

`Directory` is the os module itself, so that a real tier costs nothing extra. `Nothing` answers at once without
touching storage: what a loader costs on it is the loader's own overhead.
"""

import os
from collections.abc import Sequence
from typing import Protocol

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC


class Access(Protocol):
    late_ops: int
    late_ns: int

    def open(self, path: str, flags: int, /) -> int: ...
    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def stat(self, path: str, /) -> os.stat_result: ...


class Directory:
    late_ops = 0
    late_ns = 0
    open = staticmethod(os.open)
    preadv = staticmethod(os.preadv)
    close = staticmethod(os.close)
    stat = staticmethod(os.stat)


class Nothing:
    late_ops = 0
    late_ns = 0

    def open(self, _path: str, _flags: int, /) -> int:
        return -1

    def preadv(self, _fd: int, buffers: Sequence[memoryview], _offset: int, /) -> int:
        return buffers[0].nbytes

    def close(self, _fd: int, /) -> None:
        pass

    def stat(self, path: str, /) -> os.stat_result:
        raise NotImplementedError(path)
