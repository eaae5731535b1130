"""Cold reads: a file's pages leave the page cache through the descriptor that reads it, and the truth about whether they did.

Nobody opens a file to evict it: that would leave its name and inode in the client's caches just before its timed open. Pages can be evicted so
without privileges on most filesystems (not on tmpfs, whose pages are the files). Names and inodes: `storage/dropping.py`. Caches of servers are unknown.
"""

import contextlib
import ctypes
import functools
import os
import struct
from collections.abc import Callable

_CACHESTAT = 451  # the same number on every architecture of Linux ≥ 6.5
_STATS = struct.Struct("=5Q")
_WHOLE_FILE = struct.pack("=2Q", 0, 0)
_PAGE = os.sysconf("SC_PAGESIZE")
MAX_CHECKED = 256  # files per rank, tier and epoch


def evict(fd: int, /) -> None:
    """As far as it goes: pages that are not on the device yet, or are mapped, stay. Whether any did is to be looked at."""
    with contextlib.suppress(OSError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def resident(fd: int, nbytes: int, /) -> int | None:
    """Of an open file of so many bytes, those that are in the page cache; None: no way to tell."""
    pages = cached_pages(fd)
    return None if pages is None else min(nbytes, pages * _PAGE)


def cached_pages(fd: int) -> int | None:
    """Pages of an open file that are in the page cache; None where the kernel cannot say (Linux < 6.5)."""
    stats = ctypes.create_string_buffer(_STATS.size)
    result = _system_call()(_CACHESTAT, fd, _WHOLE_FILE, stats, 0)
    return int(_STATS.unpack(stats.raw)[0]) if result == 0 else None


@functools.cache
def _system_call() -> Callable[..., int]:
    call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    return call


def own_descriptors(path: str) -> list[int]:
    """Those that this process has of a file which somebody else's library opened in it. Opens nothing."""
    wanted, own = os.path.realpath(path), []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == wanted:
                own.append(int(name))
    return own
