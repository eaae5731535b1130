"""Many Darshan logs at once, each read in a process that may die on it (`darshan_worker.py`)."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.imports.darshan_library import COUNTERS, FILE_MODULES, INSTALL, SEGMENT, TIMES, library_path
from tierscope.imports.darshan_worker import HEAD

PATIENCE_SECONDS = 120.0  # for one log
MOST_COUNTED = 1 << 50  # of bytes or operations in one record; sums of them stay numbers
MOST_SECONDS = 1e9
MOST_RANKS = 1 << 20
OLD = "is a log of Darshan 1 or 2, which the library of Darshan 3 does not read"
_MOST_HEAD_BYTES = 1 << 28
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileRecords:
    """Records of one module: of which file (an index into the log's paths), by which rank (−1: shared by all), and what was done."""

    files: npt.NDArray[np.intp]
    ranks: npt.NDArray[np.int64]
    counters: npt.NDArray[np.int64]  # columns: COUNTERS
    times: npt.NDArray[np.float64]  # columns: TIMES

    def __len__(self) -> int:
        return len(self.files)

    def counter(self, name: str) -> npt.NDArray[np.int64]:
        """Below zero Darshan means that it did not count; what is absurd counts as nothing."""
        column = self.counters[:, COUNTERS.index(name)]
        return np.where((column < 0) | (column > MOST_COUNTED), 0, column)

    def seconds(self, name: str) -> npt.NDArray[np.float64]:
        """What no clock can have shown counts as nothing."""
        column = self.times[:, TIMES.index(name)]
        return np.where((column >= 0) & (column <= MOST_SECONDS), column, 0.0)

    def impossible(self) -> npt.NDArray[np.bool_]:
        """Records with a time below zero, or with a number that cannot be."""
        spent = self.times[:, : TIMES.index("F_META_TIME") + 1]
        times_are_good = ((spent >= 0) & (spent <= MOST_SECONDS)).all(axis=1)
        counts_are_good = (self.counters <= MOST_COUNTED).all(axis=1)
        return np.asarray(~(times_are_good & counts_are_good))


@dataclass(frozen=True, slots=True)
class Segments:
    """Every traced read: of which file, by which rank, where in it and when (seconds since the log's start)."""

    files: npt.NDArray[np.intp]
    ranks: npt.NDArray[np.int64]
    reads: npt.NDArray[Any]  # of darshan_library.SEGMENT


class Striped(NamedTuple):
    """How a file lies on Lustre."""

    stripe_bytes: int
    servers: list[int]


@dataclass(frozen=True, slots=True)
class DarshanLog:
    """What one log holds. `stripes`: by file, what Lustre told; `complaints`: what the library said while reading."""

    path: str
    job: dict[str, Any]
    mounts: list[tuple[str, str]]
    modules: dict[str, dict[str, Any]]
    paths: list[str]
    stripes: dict[int, Striped]
    records: dict[str, FileRecords]  # by module
    complaints: list[str]
    segments: Segments | None = None  # None: not asked for, or not traced


@dataclass(frozen=True, slots=True)
class UnreadableLog:
    path: str
    reason: str


def processes_of(log: DarshanLog) -> int:
    return max(1, min(int(log.job["processes"]), MOST_RANKS))


def read_logs(
    paths: Sequence[str], workers: int | None = None, segments: bool = False
) -> Iterator[DarshanLog | UnreadableLog]:
    """In the order of the paths. `segments`: with every read that extended tracing (DXT) recorded."""
    library = library_path()
    if library is None:
        raise UserError(f"reading Darshan logs needs PyDarshan's library; {INSTALL}")
    count = max(1, min(len(paths), workers or len(os.sched_getaffinity(0))))
    pool = _Workers(library, segments)
    with ThreadPoolExecutor(count) as threads:
        try:
            yield from threads.map(pool.read, paths)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            pool.close()  # a thread may wait for a worker that hangs
            threads.shutdown()
            pool.close()


class _DeadWorkerError(Exception):
    """A worker ended without an answer, or had to be ended."""


class _Workers:
    """One worker for each thread that reads; a dead one is replaced."""

    def __init__(self, library: str, segments: bool) -> None:
        self._library, self._segments = library, segments
        self._mine = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []

    def read(self, path: str) -> DarshanLog | UnreadableLog:
        if problem := _at_first_sight(path):
            return UnreadableLog(path, problem)
        try:
            head, arrays = self._ask_twice(path)
        except _DeadWorkerError as died:
            return UnreadableLog(path, f"{died}: it is damaged")
        if "error" in head:
            said = (line.removeprefix("Error: ").rstrip(".") for line in head["complaints"][:1])
            return UnreadableLog(path, "; ".join([head["error"], *said]))
        return _log(path, head, arrays)

    def _ask_twice(self, path: str) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
        """A worker may die of what an earlier log did to it: then a fresh one is asked."""
        served = self._worker() in self._served
        try:
            return self._ask(path)
        except _DeadWorkerError:
            if not served:
                raise
            return self._ask(path)

    def _ask(self, path: str) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
        worker = self._worker()
        slow = threading.Event()

        def give_up() -> None:
            slow.set()
            worker.kill()

        patience = threading.Timer(PATIENCE_SECONDS, give_up)
        patience.start()
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps({"path": path, "segments": self._segments}).encode() + b"\n")
            worker.stdin.flush()
            answer = _receive(worker.stdout)
        except (EOFError, OSError, ValueError):
            worker.kill()
            worker.wait()  # else it might be taken for alive, and asked again
            reason = f"took longer than {PATIENCE_SECONDS:g} s" if slow.is_set() else "made Darshan's own library crash"
            raise _DeadWorkerError(reason) from None
        finally:
            patience.cancel()
        self._served.add(worker)
        return answer

    @property
    def _served(self) -> set[subprocess.Popen[bytes]]:
        """This thread's workers that answered before."""
        found: set[subprocess.Popen[bytes]] = self._mine.__dict__.setdefault("served", set())
        return found

    def _worker(self) -> subprocess.Popen[bytes]:
        worker: subprocess.Popen[bytes] | None = getattr(self._mine, "worker", None)
        if worker is None or worker.poll() is not None:
            command = [sys.executable, "-m", "tierscope.imports.darshan_worker", self._library]
            worker = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
                pipesize=_PIPE_BYTES,
            )
            self._mine.worker = worker
            self._all.append(worker)
        return worker

    def close(self) -> None:
        while self._all:
            worker = self._all.pop()
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _at_first_sight(path: str) -> str:
    """What is wrong with a file that is no log of today; empty: nothing."""
    try:
        with open(path, "rb") as log:
            start = log.read(4)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not start:
        return "is empty"
    if start.startswith((b"\x1f\x8b", b"BZh")):
        return OLD
    return ""


def _receive(source: IO[bytes]) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    (length,) = HEAD.unpack(_exactly(source, HEAD.size))
    if length > _MOST_HEAD_BYTES:
        raise ValueError
    head = json.loads(_exactly(source, length))
    arrays = []
    for described in head.pop("arrays"):
        dtype, shape = np.dtype(described["dtype"]), described["shape"]
        content = _exactly(source, dtype.itemsize * int(np.prod(shape)))
        arrays.append(np.frombuffer(content, dtype).reshape(shape))
    return head, arrays


def _exactly(source: IO[bytes], length: int) -> bytes:
    content = source.read(length)
    if len(content) != length:
        raise EOFError
    return content


def _log(path: str, head: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> DarshanLog:
    *of_modules, numbers, joined = arrays
    traced = of_modules[3 * len(FILE_MODULES) :]
    of_modules = of_modules[: 3 * len(FILE_MODULES)]
    paths = joined.tobytes().decode("utf-8", "replace").split("\0") if len(numbers) else []
    order = np.argsort(numbers)
    records = {}
    for module, start in zip(FILE_MODULES, range(0, len(of_modules), 3), strict=True):
        heads, counters, times = of_modules[start : start + 3]
        files = _index(numbers, order, heads[:, 0].astype(np.uint64), paths)
        records[module] = FileRecords(files, heads[:, 1], counters.T, times.T)
    places = {number: place for place, number in enumerate(numbers.tolist())} if head["stripes"] else {}
    stripes = {
        places[int(file)]: Striped(size, servers)
        for file, (size, servers) in head["stripes"].items()
        if int(file) in places
    }
    mounts = [(str(mount), str(kind)) for mount, kind in head["mounts"]]
    segments = (
        Segments(_index(numbers, order, traced[0], paths), traced[1], traced[2].view(SEGMENT)) if traced else None
    )
    return DarshanLog(path, head["job"], mounts, head["modules"], paths, stripes, records, head["complaints"], segments)


def _index(
    numbers: npt.NDArray[np.uint64], order: npt.NDArray[np.intp], wanted: npt.NDArray[np.uint64], paths: list[str]
) -> npt.NDArray[np.intp]:
    """Places of the wanted numbers; a file without a name gets one that says so."""
    if not len(wanted):
        return np.zeros(0, np.intp)
    if not len(numbers):
        paths.append("")
        return np.zeros(len(wanted), np.intp)
    found = order[np.searchsorted(numbers, wanted, sorter=order).clip(max=len(numbers) - 1)]
    unknown = numbers[found] != wanted
    if unknown.any():
        paths.append("")
        found = np.where(unknown, len(paths) - 1, found)
    return np.asarray(found, np.intp)
