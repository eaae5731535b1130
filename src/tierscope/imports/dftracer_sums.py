"""The second pass over a trace file of DFTracer: operations by process, epoch, kind and file.

Memory grows with the number of these, never with that of events.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tierscope.errors import UserError
from tierscope.imports.dftracer_events import (
    CALLS,
    COMPLETE,
    FAST_CALLS,
    IO_CATEGORIES,
    LATEST_NS,
    LINE,
    LONGEST_NS,
    METADATA,
    MOST_BYTES,
    NOTHING,
    SUMMED,
    Process,
    bytes_of,
    event_of,
    file_of,
    hashed,
    host_of,
    number,
    result,
    times_of,
)
from tierscope.imports.dftracer_files import FileDamage, blocks

MOST_NAMES = 256  # of calls or spans that are told
NESTED_CALLS = 64  # that are remembered in case a call around them follows
MOST_THREADS = 1 << 16  # of a file
OUTSIDE = 0  # the number of no epoch

Interval = tuple[int, int, int]  # start and end in nanoseconds, number of the epoch
Recent = deque[tuple[int, int, list[int], int]]  # calls of a thread that were counted: start, end, where, bytes


@dataclass(slots=True)
class Task:
    """The second pass over one file. `epochs`: by process, in order and apart; None: the job has none, all is epoch 1."""

    path: str
    unit_ns: int
    host: str
    compute_span: str | None
    epochs: dict[Process, list[Interval]] | None
    others_epochs: list[Interval] = field(default_factory=list)  # of processes that the first pass did not see


@dataclass(slots=True)
class FileSums:
    """`cells`: operations, nanoseconds and bytes by process, epoch, number of the kind, and hash of the file."""

    path: str
    cells: dict[tuple[Process, int, int, bytes], list[int]] = field(default_factory=dict)
    compute: dict[tuple[Process, int], list[int]] = field(default_factory=dict)  # spans, nanoseconds
    names: dict[bytes, str] = field(default_factory=dict)  # of files, by hash
    spans: set[str] = field(default_factory=set)  # names of some
    compute_spans: set[str] = field(default_factory=set)
    other_calls: dict[str, int] = field(default_factory=dict)
    events: int = 0
    broken_lines: int = 0
    broken_last_line: bool = False
    cut: bool = False
    nested: int = 0
    summed: int = 0
    no_sizes: int = 0


def sum_up(task: Task) -> FileSums:
    summing = _Summing(task)
    damage = FileDamage()
    for block in blocks(task.path, damage):
        before = summing.sums.broken_lines
        summing.add(block)
        if damage.unended and summing.sums.broken_lines > before:
            summing.sums.broken_lines, summing.sums.broken_last_line = before, True
    summing.sums.broken_lines += damage.long_lines
    summing.sums.cut = damage.cut
    return summing.finished()


def is_compute(name: bytes, compute_span: str | None) -> bool:
    """Whether a span of this name is compute; None: by its usual name."""
    if compute_span is None:
        return name == b"compute" or name.endswith(b".compute")
    return name == compute_span.encode("utf-8", "replace")


class _Running:
    """A process while its file is read: its sums, and the epoch (or the gap between epochs) that it was in last."""

    __slots__ = ("_threads", "cells", "compute", "epoch", "high", "intervals", "low", "starts")

    def __init__(self, intervals: Sequence[Interval] | None) -> None:
        self.cells: dict[tuple[int, int, bytes | None], list[int]] = {}
        self.compute: dict[int, list[int]] = {}
        self._threads: dict[bytes, Recent] = {}
        self.intervals = intervals or []
        self.starts = [start for start, _, _ in self.intervals]
        self.low, self.high, self.epoch = (0, LATEST_NS + 1, 1) if intervals is None else (0, 0, OUTSIDE)

    def knows(self, tid: bytes) -> bool:
        return tid in self._threads

    def recent(self, tid: bytes) -> Recent:
        """Of a thread. Thread 0: threads are not told apart, and any two calls may overlap."""
        if tid not in self._threads:
            self._threads[tid] = deque(maxlen=NESTED_CALLS if tid != b"0" else 0)
        return self._threads[tid]

    def move_to(self, tick: int) -> None:
        place = bisect_right(self.starts, tick) - 1
        following = self.starts[place + 1] if place + 1 < len(self.starts) else LATEST_NS + 1
        start, end, epoch = self.intervals[place] if place >= 0 else (0, 0, OUTSIDE)
        if tick < end:
            self.low, self.high, self.epoch = start, end, epoch
        else:
            self.low, self.high, self.epoch = end, following, OUTSIDE


class _Summing:
    """Times are in ticks of the file until all is read."""

    def __init__(self, task: Task) -> None:
        self.sums = FileSums(task.path)
        self._task = task
        self._latest, self._longest = LATEST_NS // task.unit_ns, LONGEST_NS // task.unit_ns
        self._running: dict[Process, _Running] = {}
        self._lanes: dict[tuple[bytes, bytes, bytes | None], tuple[_Running | None, Recent]] = {}
        self._threads = 0
        self._skipped: set[bytes] = set()  # names of spans that are neither epochs nor compute

    def add(self, block: bytes) -> None:
        """The loop that all lines go through: rare ones are handed on, the others are done in place, which is twice as fast."""
        sums, lanes, latest, longest = self.sums, self._lanes, self._latest, self._longest
        events = 0
        for match in LINE.finditer(block):
            name, category, pid, tid, ts, dur, host, file, ret, *_ = match.groups()
            kind, moved = FAST_CALLS.get(name, (-1, False))
            if kind < 0 or category not in IO_CATEGORIES:
                self._add_rare(name, category, match)
                continue
            start, ticks = int(ts), int(dur)
            size = self._size(ret) if moved else 0
            try:
                running, recent = lanes[pid, tid, host]
            except KeyError:
                running, recent = lanes[pid, tid, host] = self._lane(pid, tid, host)
            if start > latest or ticks > longest or size > MOST_BYTES or running is None:
                sums.broken_lines += 1
                continue
            events += 1
            if recent and recent[-1][1] > start and self._is_nested(recent, start, start + ticks):
                continue
            if not running.low <= start < running.high:
                running.move_to(start)
            cell = running.cells.get((running.epoch, kind, file))
            if cell is None:
                cell = running.cells[running.epoch, kind, file] = [0, 0, 0]
            cell[0] += 1
            cell[1] += ticks
            cell[2] += size
            recent.append((start, start + ticks, cell, size))
        sums.events += events

    def _add_rare(self, name: bytes | None, category: bytes | None, match: re.Match[bytes]) -> None:
        path, hash_of_path, other = match.group(10, 11, 12)
        if path is not None:
            self.sums.events += 1
            self.sums.names[hash_of_path.strip(b'"')] = path.decode("utf-8", "replace")
        elif name in self._skipped and category not in IO_CATEGORIES:
            self.sums.events += 1
        else:
            self._add_event(event_of(other or match[0]))

    def _size(self, ret: bytes | None) -> int:
        """What a call returned is the bytes that it moved, unless it failed."""
        try:
            size = int(ret)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            returned = result(ret)
            self.sums.no_sizes += returned is None
            size = returned or 0
        return size if size > 0 else 0

    def _lane(self, pid: bytes, tid: bytes, host: bytes | None) -> tuple[_Running | None, Recent]:
        number_of = number(int(pid))
        if number_of is None:
            return None, deque()
        name = (host or b"").strip(b'"').decode("utf-8", "replace") or self._task.host
        running = self._of((name, number_of))
        return running, self._recent(running, tid)

    def _recent(self, running: _Running, tid: bytes) -> Recent:
        """Of a thread, unless there are more of them than any program has: each takes memory."""
        if not running.knows(tid):
            self._threads += 1
            if self._threads > MOST_THREADS:
                raise UserError(
                    f"{self._task.path}: contains more than {MOST_THREADS:,} threads; name the original DFTracer traces, one per process"
                )
        return running.recent(tid)

    def _count(self, running: _Running, tid: bytes, start: int, ticks: int, kind: int, file: bytes, size: int) -> None:
        """The same as in `add`, for what came by way of JSON."""
        recent = self._recent(running, tid)
        if self._is_nested(recent, start, start + ticks):
            return
        if not running.low <= start < running.high:
            running.move_to(start)
        cell = running.cells.setdefault((running.epoch, kind, file), [0, 0, 0])
        cell[0] += 1
        cell[1] += ticks
        cell[2] += size
        recent.append((start, start + ticks, cell, size))

    def _is_nested(self, recent: Recent, start: int, end: int) -> bool:
        """Whether the call is within the thread's last one; calls that are within this one are taken back.

        Who made the outer call waited for both, so only that one counts. Lines are in the order of their ends or, where a tool
        sorted them, of their starts.
        """
        while recent:
            first, last, cell, size = recent[-1]
            if last <= start or first >= end:  # one after the other
                return False
            if first <= start and end <= last:
                self.sums.nested += 1
                return True
            if first < start or last > end:  # they cross: clocks were set
                return False
            recent.pop()
            cell[0] -= 1
            cell[1] -= last - first
            cell[2] -= size
            self.sums.nested += 1
        return False

    def _of(self, process: Process) -> _Running:
        if process not in self._running:
            self._running[process] = _Running(self._intervals(process))
        return self._running[process]

    def _intervals(self, process: Process) -> list[Interval] | None:
        if self._task.epochs is None:
            return None
        unit = self._task.unit_ns
        epochs = self._task.epochs.get(process, self._task.others_epochs)
        return [(-(-start // unit), -(-end // unit), epoch) for start, end, epoch in epochs]

    def _add_event(self, event: dict[str, Any] | None) -> None:
        """Any line, by way of JSON."""
        if not event:
            self.sums.broken_lines += event is None
            return
        self.sums.events += 1
        name, category, phase = event["name"], event.get("cat"), event.get("ph")
        file_category = hashed(category) in IO_CATEGORIES
        if phase in METADATA:
            if name == "FH" and isinstance(path := event["args"].get("name"), str):
                self.sums.names[hashed(event["args"].get("value"))] = path
        elif phase in COMPLETE:
            good = self._add_call(event) if file_category else self._add_compute(event)
            self.sums.events -= not good
            self.sums.broken_lines += not good
        elif phase in SUMMED:
            self.sums.summed += file_category

    def _add_call(self, event: dict[str, Any]) -> bool:
        """Whether the line makes sense."""
        name, args = event["name"], event["args"]
        kind, moved = CALLS.get(hashed(name), (-1, NOTHING))
        if kind < 0:
            told = name if len(self.sums.other_calls) < MOST_NAMES or name in self.sums.other_calls else "…"
            self.sums.other_calls[told] = self.sums.other_calls.get(told, 0) + 1
            return True
        size, times = bytes_of(args, moved), times_of(event, self._task.unit_ns)
        if times is None or (size or 0) > MOST_BYTES:
            return False
        self.sums.no_sizes += size is None
        running = self._of((host_of(args, self._task.host), event["pid"]))
        tid = number(event.get("tid"))
        self._count(running, hashed(tid or 0), *times, kind, file_of(args), size or 0)
        return True

    def _add_compute(self, event: dict[str, Any]) -> bool:
        name = hashed(event["name"])
        if not is_compute(name, self._task.compute_span):
            if len(self._skipped) < MOST_NAMES:
                self._skipped.add(name)
                if event.get("cat") != "dftracer":
                    self.sums.spans.add(event["name"])
            return True
        times = times_of(event, self._task.unit_ns)
        if times is None:
            return False
        running = self._of((host_of(event["args"], self._task.host), event["pid"]))
        if not running.low <= times[0] < running.high:
            running.move_to(times[0])
        computed = running.compute.setdefault(running.epoch, [0, 0])
        computed[0] += 1
        computed[1] += times[1]
        if len(self.sums.compute_spans) < MOST_NAMES:
            self.sums.compute_spans.add(event["name"])
        return True

    def finished(self) -> FileSums:
        sums, unit = self.sums, self._task.unit_ns
        for process, running in self._running.items():
            for (epoch, kind, file), (ops, ticks, size) in running.cells.items():
                _add(sums.cells, (process, epoch, kind, (file or b"").strip(b'"')), (ops, ticks * unit, size))
            for epoch, (spans, ticks) in running.compute.items():
                sums.compute[process, epoch] = [spans, ticks * unit]
        return sums


def _add(cells: dict[Any, list[int]], key: object, values: Iterable[int]) -> None:
    sums = cells.setdefault(key, [0, 0, 0])
    for place, value in enumerate(values):
        sums[place] += value
