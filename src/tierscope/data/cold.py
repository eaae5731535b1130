"""Cold reads: take our files out of the page cache before an epoch, and say how much was still in it.

Pages can be evicted file by file without privileges on most filesystems (not on tmpfs, whose pages are the files). What
cannot be evicted so is metadata: dentries, inodes and a client's locks stay warm, as do all caches of servers.
"""

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator

from tierscope.plan.plan import Plan
from tierscope.tiers.files import DatasetFiles

_CACHESTAT = 451  # the same number on every architecture of Linux ≥ 6.5
_STATS = struct.Struct("=5Q")
_PAGE = os.sysconf("SC_PAGESIZE")
MAX_CHECKED = 2048


def paths_to_evict(
    plan: Plan, tier: int, node: int | None, files: DatasetFiles, part: int, parts: int
) -> Iterator[str]:
    """This process's part of the files that are read from a tier, as one node sees it."""
    for block in plan.files_on(tier, node, part, parts):
        read_here = block[
            plan.placement.tiers_of(block) == tier
        ]  # the last tier also holds what is read from nearer ones
        for file in read_here.tolist():
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
