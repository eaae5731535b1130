"""One thread's way to the files of a tier, with the signatures of the os module.

`Directory` is the os module itself, so that a real tier costs nothing extra; `SeenDirectory` the same with reads that any profiler sees.
`Nothing` answers at once without touching storage: what a loader costs on it is the loader's own overhead. `NullDevice` asks the kernel for nothing.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tierscope.storage import cold

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


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
    """A new, empty file to write to. One that was left under this name goes, and is not emptied: it may have other names. A link is ELOOP."""
    try:
        return os.open(path, _NEW_FLAGS, 0o644)
    except FileExistsError:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
    os.unlink(path)
    return os.open(path, _NEW_FLAGS, 0o644)


def open_folder(path: str, /) -> int:
    """A folder whose entries are to be synced."""
    return os.open(path, _FOLDER_FLAGS)


def size(fd: int, /) -> int:
    """Bytes of an open file."""
    return os.fstat(fd).st_size


class Access(Protocol):
    """What a loader or a checkpoint may ask of open files. Errors are OSErrors with the numbers of the system; handles are whole numbers.

    `open` may be given READ_FLAGS only. `rename` puts a finished file in the place of another. `leave`: nobody asks for anything afterwards.
    `evict` takes an open file out of caches as far as that goes; it is not asked of a storage that cannot. `resident`: of an open file of so
    many bytes, those in a cache of this host; None: no way to tell.
    """

    punctuality: Punctuality

    def open(self, path: str, flags: int, /) -> int: ...
    def create(self, path: str, /) -> int: ...
    def open_folder(self, path: str, /) -> int: ...
    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int: ...
    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int: ...
    def size(self, fd: int, /) -> int: ...
    def sync(self, fd: int, /) -> None: ...
    def close(self, fd: int, /) -> None: ...
    def evict(self, fd: int, /) -> None: ...
    def resident(self, fd: int, nbytes: int, /) -> int | None: ...
    def rename(self, old: str, new: str, /) -> None: ...
    def remove(self, path: str, /) -> None: ...
    def leave(self) -> None: ...


class Directory:
    def __init__(self) -> None:
        self.punctuality = Punctuality()

    open = staticmethod(os.open)
    create = staticmethod(create)
    open_folder = staticmethod(open_folder)
    pwrite = staticmethod(os.pwrite)
    preadv = staticmethod(os.preadv)
    size = staticmethod(size)
    sync = staticmethod(os.fsync)
    close = staticmethod(os.close)
    evict = staticmethod(cold.evict)
    resident = staticmethod(cold.resident)
    rename = staticmethod(os.replace)
    remove = staticmethod(os.unlink)
    stat = staticmethod(os.stat)

    def leave(self) -> None:
        pass


class SeenDirectory(Directory):
    """Its reads are calls of pread, which every profiler knows; those of `os.preadv` (preadv2) not all do."""

    def __init__(self) -> None:
        super().__init__()
        library = ctypes.CDLL(None, use_errno=True)
        self._pread = getattr(library, "pread64", None) or library.pread
        self._pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
        self._pread.restype = ctypes.c_ssize_t

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:  # type: ignore[override]
        (buffer,) = buffers
        nbytes = buffer.nbytes
        memory = (ctypes.c_char * nbytes).from_buffer(buffer)
        while (got := int(self._pread(fd, memory, nbytes, offset))) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
        return got


class Nothing:
    """Reads only."""

    def __init__(self) -> None:
        self.punctuality = Punctuality()

    def open(self, _path: str, _flags: int, /) -> int:
        return -1

    def create(self, path: str, /) -> int:
        raise NotImplementedError(path)

    def open_folder(self, path: str, /) -> int:
        raise NotImplementedError(path)

    def pwrite(self, _fd: int, _data: memoryview, _offset: int, /) -> int:
        raise NotImplementedError

    def preadv(self, _fd: int, buffers: Sequence[memoryview], _offset: int, /) -> int:
        return buffers[0].nbytes

    def size(self, _fd: int, /) -> int:
        raise NotImplementedError

    def sync(self, _fd: int, /) -> None:
        raise NotImplementedError

    def close(self, _fd: int, /) -> None:
        pass

    def evict(self, _fd: int, /) -> None:
        raise NotImplementedError

    def resident(self, _fd: int, _nbytes: int, /) -> int | None:
        raise NotImplementedError

    def rename(self, old: str, _new: str, /) -> None:
        raise NotImplementedError(old)

    def remove(self, path: str, /) -> None:
        raise NotImplementedError(path)

    def leave(self) -> None:
        pass


class NullDevice(Nothing):
    """Real system calls that do no work: what threads lose to one another between them is the interpreter's lock."""

    def open(self, _path: str, flags: int, /) -> int:
        return os.open(os.devnull, flags)

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        os.preadv(fd, buffers, offset)
        return buffers[0].nbytes

    def close(self, fd: int, /) -> None:
        os.close(fd)
