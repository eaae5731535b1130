"""A third pass over a trace file of DFTracer, where compute and I/O are set beside each other: when each process did I/O, and when it computed.

Calls within calls need no care here: a union of spans counts time once. Bounded in memory, as analysis/time_spans says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tierscope.analysis.time_spans import SpanUnion, TimeSpans
from tierscope.imports.dftracer_events import (
    CALLS,
    COMPLETE,
    IO_CATEGORIES,
    LATEST_NS,
    LINE,
    LONGEST_NS,
    NOTHING,
    Process,
    event_of,
    file_of,
    hashed,
    host_of,
    number,
    times_of,
)
from tierscope.imports.dftracer_files import FileDamage, blocks
from tierscope.imports.dftracer_sums import is_compute
from tierscope.trace.ops import KINDS

_READ = KINDS.index("read")


@dataclass(frozen=True, slots=True)
class SpanTask:
    """`left_out`: hashes of files that are no data; `marks`: tokens by the hash of their file."""

    path: str
    unit_ns: int
    host: str
    compute_span: str | None
    left_out: frozenset[bytes]
    marks: Mapping[bytes, str]


@dataclass(frozen=True, slots=True)
class ProcessSpans:
    io: TimeSpans
    compute: TimeSpans
    marks: dict[str, tuple[int, int]]


@dataclass(slots=True)
class _Gathered:
    io: SpanUnion = field(default_factory=SpanUnion)
    compute: SpanUnion = field(default_factory=SpanUnion)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)


def spans_of(task: SpanTask) -> dict[Process, ProcessSpans]:
    by_process: dict[Process, _Gathered] = {}
    for block in blocks(task.path, FileDamage()):
        for match in LINE.finditer(block):
            name, category, pid, _, ts, dur, host, file, *_ = match.groups()
            if name is None:
                _add_event(task, by_process, match.group(12) or b"")
                continue
            kind = CALLS.get(name, (-1, NOTHING))[0] if category in IO_CATEGORIES else -1
            computes = kind < 0 and category not in IO_CATEGORIES and is_compute(name, task.compute_span)
            if kind < 0 and not computes:
                continue
            start, long = int(ts) * task.unit_ns, int(dur) * task.unit_ns
            process = (host or b"").strip(b'"').decode("utf-8", "replace") or task.host, number(int(pid)) or 0
            key = None if computes else (kind, (file or b"").strip(b'"'))
            _add(task, by_process.setdefault(process, _Gathered()), key, start, long)
    return {
        process: ProcessSpans(gathered.io.spans(), gathered.compute.spans(), gathered.marks)
        for process, gathered in by_process.items()
    }


def _add(task: SpanTask, gathered: _Gathered, call: tuple[int, bytes] | None, start: int, long: int) -> None:
    """`call`: kind and file; None: a compute span."""
    if start > LATEST_NS or long > LONGEST_NS:
        return
    if call is None:
        gathered.compute.add(start, start + long)
        return
    kind, file = call
    if kind == _READ and file in task.marks:
        gathered.marks.setdefault(task.marks[file], (start, start + long))
    if file not in task.left_out:
        gathered.io.add(start, start + long)


def _add_event(task: SpanTask, by_process: dict[Process, _Gathered], line: bytes) -> None:
    """A line of another shape, by way of JSON."""
    event = event_of(line)
    if not event or event.get("ph") not in COMPLETE:
        return
    times, pid = times_of(event, task.unit_ns), event.get("pid")
    if times is None or not isinstance(pid, int):
        return
    name, in_files = hashed(event["name"]), hashed(event.get("cat")) in IO_CATEGORIES
    kind = CALLS.get(name, (-1, NOTHING))[0] if in_files else -1
    if kind < 0 and (in_files or not is_compute(name, task.compute_span)):
        return
    process = host_of(event["args"], task.host), pid
    call = None if kind < 0 else (kind, file_of(event["args"]))
    start, long = (ticks * task.unit_ns for ticks in times)
    _add(task, by_process.setdefault(process, _Gathered()), call, start, long)
