"""Cold reads: take our files out of the page cache before an epoch, and say how much was still in it.

Every rank evicts what it is about to read, on its own host: no more opens than an epoch has reads, at any scale. Pages can
be evicted so without privileges on most filesystems (not on tmpfs, whose pages are the files). Metadata cannot: on the
contrary, opening a file to evict its pages leaves its name and inode in the client's caches. Caches of servers are unknown.
"""

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator

import numpy as np

from tierscope.plan.plan import Reads
from tierscope.storage.files import DatasetFiles

_CACHESTAT = 451  # the same number on every architecture of Linux ≥ 6.5
_STATS = struct.Struct("=5Q")
_PAGE = os.sysconf("SC_PAGESIZE")
MAX_CHECKED = 256  # files per rank and tier


def coming_reads(plan: Reads, rank: int, epoch: int, tier: int, files: DatasetFiles) -> Iterator[str]:
    """The files that a rank will read from a tier in an epoch; neighbours in one file are named once."""
    for block in plan.reads(rank, epoch):
        for file in np.unique(block.files[block.tiers == tier]).tolist():
            yield files.path(file)


def evict(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # its reader will name it
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def resident(paths: Iterable[str]) -> tuple[int, int | None]:
    """(bytes checked, bytes of them in the page cache), over the first MAX_CHECKED paths; None: no way to tell."""
    checked = cached = 0
    for number, path in enumerate(paths):
        if number == MAX_CHECKED:
            break
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            size = os.fstat(fd).st_size
            pages = cached_pages(fd)
        finally:
            os.close(fd)
        if pages is None:
            return checked + size, None
        checked += size
        cached += min(size, pages * _PAGE)
    return checked, cached


def cached_pages(fd: int) -> int | None:
    """Pages of an open file that are in the page cache; None where the kernel cannot say (Linux < 6.5)."""
    whole_file = struct.pack("=2Q", 0, 0)
    stats = ctypes.create_string_buffer(_STATS.size)
    result = ctypes.CDLL(None, use_errno=True).syscall(_CACHESTAT, fd, whole_file, stats, 0)
    return int(_STATS.unpack(stats.raw)[0]) if result == 0 else None
