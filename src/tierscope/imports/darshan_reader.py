"""Many Darshan logs at once, each read in a process that may die on it (`darshan_worker.py`)."""

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierscope.errors import MissingResourceError, UserError
from tierscope.helper_process import ONE_THREAD, Helper, HelperGroup, asked_in_threads, threads_with_helpers
from tierscope.imports.darshan_library import COUNTERS, FILE_MODULES, INSTALL, SEGMENT, TIMES, library_path
from tierscope.imports.darshan_worker import HEAD, ROOM_BYTES, ROOM_PER_BYTE
from tierscope.plain_files import open_plain
from tierscope.shortage import address_space, memory_advice, missing_resource, shortage

PATIENCE_SECONDS = 120.0  # for one log
MOST_COUNTED = 1 << 50  # of bytes or operations in one record; sums of them stay numbers
MOST_SECONDS = 1e9
MOST_RANKS = 1 << 20
OLD = "is a log of Darshan 1 or 2, which Darshan 3's library cannot read"
CRASHED = "crashes Darshan's own library: it is damaged"
_MOST_HEAD_BYTES = 1 << 28
# Darshan numbers a record by a hash of its name. An anonymised log has another name, but the same number.
STREAM_NUMBERS = {
    14734109647742566553: "<STDIN>",
    15920181672442173319: "<STDOUT>",
    7238257241479193519: "<STDERR>",
}
WORKER = "tierscope.imports.darshan_worker"


@dataclass(frozen=True, slots=True)
class FileRecords:
    """Records of one module: of which file (an index into the log's paths), by which rank (−1: shared by all), and what was done."""

    files: npt.NDArray[np.intp]
    ranks: npt.NDArray[np.int64]
    counters: npt.NDArray[np.int64]  # columns: COUNTERS
    times: npt.NDArray[np.float64]  # columns: TIMES

    def __len__(self) -> int:
        return len(self.files)

    def chosen(self, which: npt.NDArray[np.bool_]) -> "FileRecords":
        if which.all():
            return self  # as nearly always, and many columns
        return FileRecords(self.files[which], self.ranks[which], self.counters[which], self.times[which])

    def counter(self, name: str) -> npt.NDArray[np.int64]:
        """Below zero Darshan means that it did not count; what is absurd counts as nothing."""
        column = self.counters[:, COUNTERS.index(name)]
        return np.where((column < 0) | (column > MOST_COUNTED), 0, column)

    def counters_as_they_are(self, name: str) -> npt.NDArray[np.int64]:
        return self.counters[:, COUNTERS.index(name)]

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
    if library_path() is None:
        raise UserError(f"reading Darshan logs needs PyDarshan's library; {INSTALL}")
    count = max(1, min(len(paths), workers or len(os.sched_getaffinity(0))))
    with threads_with_helpers(count) as (threads, helpers):
        yield from asked_in_threads(threads, _Workers(segments, helpers).read, paths)


class _DeadWorkerError(Exception):
    """A worker ended without an answer, or had to be ended."""


class _Workers:
    """One worker for each thread that reads; a dead one is replaced."""

    def __init__(self, segments: bool, helpers: HelperGroup) -> None:
        self._segments, self._helpers = segments, helpers
        self._mine = threading.local()

    def read(self, path: str) -> DarshanLog | UnreadableLog:
        if problem := _at_first_sight(path):
            return UnreadableLog(path, problem)
        try:
            head, arrays = self._ask_twice(path)
        except _DeadWorkerError as died:
            return UnreadableLog(path, str(died))
        if head.get("short"):
            raise MissingResourceError(f"{path}: {head['error']}; {memory_advice()}")
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
            worker.process.kill()

        patience = threading.Timer(PATIENCE_SECONDS, give_up)
        patience.start()
        try:
            worker.input.write(json.dumps({"path": path, "segments": self._segments}).encode() + b"\n")
            worker.input.flush()
            answer = _receive(worker.output)
        except (EOFError, OSError, ValueError) as error:
            crashed = CRASHED if isinstance(error, ValueError) else _how_it_died(worker, path)
            worker.kill()  # else it might be taken for alive, and asked again
            hung = f"took longer than {PATIENCE_SECONDS:g} s: it is damaged"
            raise _DeadWorkerError(hung if slow.is_set() else crashed) from None
        finally:
            patience.cancel()
        self._served.add(worker)
        return answer

    @property
    def _served(self) -> set[Helper]:
        """This thread's workers that answered before."""
        served: set[Helper] = self._mine.__dict__.setdefault("served", set())
        return served

    def _worker(self) -> Helper:
        worker: Helper | None = getattr(self._mine, "worker", None)
        if worker is None or not worker.alive():
            worker = Helper(WORKER, needed_for="reading Darshan logs", variables=ONE_THREAD)
            self._helpers.add(worker)
            worker.expect_greeting()
            self._mine.worker = worker
        return worker


def _at_first_sight(path: str) -> str:
    """What is wrong with a file that is no log of today; empty: nothing."""
    try:
        with open_plain(path, follow=True) as log:
            start = log.read(4)
    except OSError as error:
        if lacking := missing_resource(f"{path}: cannot be read", error):
            raise lacking from None
        return f"cannot be read: {error.strerror}"
    if not start:
        return "is empty"
    if start.startswith((b"\x1f\x8b", b"BZh")):
        return OLD
    return ""


def _how_it_died(worker: Helper, path: str) -> str:
    """Of a log, unless memory was short: a library that gets none may crash as well."""
    if worker.ended_by(signal.SIGKILL):
        return f"its reader was killed, probably out of memory; {memory_advice()}"
    if lacking := shortage(worker.said()):
        return f"cannot be read: {lacking}"
    allowed, wanted = address_space(), 2 * ROOM_BYTES + ROOM_PER_BYTE * _size(path)
    short = f", or memory ran out: {memory_advice()}" if allowed is not None and allowed < wanted else ""
    return CRASHED + short


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


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
    for place in np.flatnonzero(np.isin(numbers, np.array([*STREAM_NUMBERS], np.uint64))).tolist():
        paths[place] = STREAM_NUMBERS[int(numbers[place])]
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
    places = order[np.searchsorted(numbers, wanted, sorter=order).clip(max=len(numbers) - 1)]
    unknown = numbers[places] != wanted
    if unknown.any():
        paths.append("")
        places = np.where(unknown, len(paths) - 1, places)
    return np.asarray(places, np.intp)
