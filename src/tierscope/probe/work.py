"""What one process of the probe does: one kind of operation on its files, and when each began and ended.

All prepare, then begin at the same instant. Reads are one call for a whole file that was opened before: what an open costs is not in them.
"""

import contextlib
import errno
import gc
import itertools
import os
import resource
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tierscope.dataset import content
from tierscope.errors import TierscopeError, VanishedDataError
from tierscope.storage import cold

WRITE = "write"
KINDS = (WRITE, "open", "stat", "read", "nothing")
MOST_OPERATIONS = 200_000  # of a process in one repetition
_MOST_LOOKED_AT = 32  # files of a process whose pages are counted
_SPARE_FILES = 64
_SEED = 20220513
_FULL = (errno.ENOSPC, errno.EDQUOT)
Times = npt.NDArray[np.int64]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ProbeJob:
    """`files`: numbers of files of `nbytes` in the folder. After so many `seconds` no more operations begin."""

    kind: str
    folder: str
    nbytes: int
    files: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """Begin and end of every operation, in nanoseconds of the host's clock."""

    starts: Times
    ends: Times
    on_processor: float = 0.0  # share of the time in which it computed, or waited for a core to do so
    checked_bytes: int = 0
    cached_bytes: int | None = 0  # of those checked just before; None: no way to tell
    full: bool = False  # a writer that found no more room


def path_of(folder: str, nbytes: int, file: int) -> str:
    return f"{folder}/{nbytes}/{file:06d}.bin"


def open_files_limit() -> int:
    """How many files a process may hold open; as many as the system grants."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(1, min(soft, 1 << 20) - _SPARE_FILES)


def perform(job: ProbeJob, wait_for_start: Callable[[], int]) -> ProbeTimes:
    """`wait_for_start` returns at the common start, with its time in nanoseconds."""
    paths = [path_of(job.folder, job.nbytes, file) for file in job.files]
    match job.kind:
        case "write":
            content.pool(_SEED)
            return _write(job, paths, wait_for_start())
        case "read":
            return _read(job, paths, wait_for_start)
        case "open":
            return _repeat(_open_and_close, itertools.cycle(paths), job.seconds, wait_for_start)
        case "stat":
            return _repeat(os.stat, itertools.cycle(paths), job.seconds, wait_for_start)
        case "nothing":
            return _repeat(_nothing, itertools.repeat(""), job.seconds, wait_for_start)
        case other:
            raise TierscopeError(f"no kind of operation: {other}")


def _write(job: ProbeJob, paths: Sequence[str], start: int) -> ProbeTimes:
    """One file at least, then until there is no more time, or no more room. A file that is not whole is removed."""
    starts, ends = array("q"), array("q")
    full = False
    deadline = start + int(job.seconds * 1e9)
    for number, path in zip(job.files, paths, strict=True):
        op_start = time.monotonic_ns()
        if starts and op_start >= deadline:
            break
        try:
            _write_file(path, content.payload(_SEED, number, job.nbytes))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(path)
            if error.errno not in _FULL:
                raise
            full = True
            break
        starts.append(op_start)
        ends.append(time.monotonic_ns())
    return ProbeTimes(np.array(starts), np.array(ends), full=full)


def _write_file(path: str, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)


def _read(job: ProbeJob, paths: Sequence[str], wait_for_start: Callable[[], int]) -> ProbeTimes:
    room = memoryview(bytearray(job.nbytes))

    def read_whole(fd: int) -> None:
        got = os.preadv(fd, [room], 0)
        while got < job.nbytes:
            more = os.preadv(fd, [room[got:]], got)
            if not more:
                raise VanishedDataError(f"{job.folder}: a file was truncated by another program; rerun the command")
            got += more

    fds: list[int] = []
    try:
        for path in paths:
            fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            cold.evict(fds[-1])
        checked, cached = _in_page_cache(fds[:_MOST_LOOKED_AT])
        done = _repeat(read_whole, fds, job.seconds, wait_for_start)
    finally:
        for fd in fds:
            os.close(fd)
    return ProbeTimes(done.starts, done.ends, done.on_processor, checked, cached)


def _in_page_cache(fds: Sequence[int]) -> tuple[int, int | None]:
    """Bytes of these files, and those of them that are there; None: no way to tell."""
    sizes = [os.fstat(fd).st_size for fd in fds]
    cached = [cold.resident(fd, size) for fd, size in zip(fds, sizes, strict=True)]
    return sum(sizes), None if None in cached else sum(known for known in cached if known is not None)


def _open_and_close(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def _nothing(_: str) -> None:
    pass


def _repeat(
    operation: Callable[[Item], object], items: Iterable[Item], seconds: float, wait_for_start: Callable[[], int]
) -> ProbeTimes:
    starts, ends = array("q"), array("q")
    clock = time.monotonic_ns
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        deadline = wait_for_start() + int(seconds * 1e9)
        before, first = _processor_ns(), clock()
        for item in itertools.islice(items, MOST_OPERATIONS):
            op_start = clock()
            operation(item)
            end = clock()
            starts.append(op_start)
            ends.append(end)
            if end >= deadline:
                break
        spent, last = _processor_ns() - before, clock()
    finally:
        if was_enabled:
            gc.enable()
    return ProbeTimes(np.array(starts), np.array(ends), min(1.0, spent / max(1, last - first)))


def _processor_ns() -> int:
    """Time on a core and, where the kernel tells, time of waiting for one."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/schedstat", encoding="ascii") as file:
        on_core, waiting = file.read().split()[:2]
        return int(on_core) + int(waiting)
    return time.process_time_ns()
