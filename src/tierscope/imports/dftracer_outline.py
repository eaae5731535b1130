"""The first pass over a trace file of DFTracer: who wrote it, and where the epochs are.

An epoch's span is written when it ends, behind the operations within it, and maybe in the file of another process. So this looks for spans
before operations are summed up (`dftracer_sums.py`). It takes a tenth of the time of that, as all other lines are only searched, not read.
"""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from tierscope.errors import UserError
from tierscope.imports.dftracer_events import (
    COMPLETE,
    METADATA,
    UNIT_NS,
    Process,
    event_of,
    hashed,
    host_of,
    number,
    result,
    sensible,
)
from tierscope.imports.dftracer_files import FileDamage, blocks

MOST_SPANS = 100_000  # of one process
MOST_STRINGS = 4096
_WHO = ("HH", "SH", "CM", "PR", "start", "end")

Span = tuple[int, int, object]  # start and duration in nanoseconds, and what its arguments call the epoch


@dataclass(slots=True)
class Started:
    """What a process said of itself when its trace began."""

    at_ns: int
    parent: int | None
    version: str
    command: str  # hash
    folder: bytes  # hash


@dataclass(slots=True)
class Outline:
    """Of one file."""

    path: str
    unit: str = "US"
    versions: set[int] = field(default_factory=set)  # of the lines
    hosts: dict[str, str] = field(default_factory=dict)  # by hash
    strings: dict[str, str] = field(default_factory=dict)  # by hash
    started: dict[Process, Started] = field(default_factory=dict)
    processes: set[Process] = field(default_factory=set)
    ended: set[Process] = field(default_factory=set)
    ranks: dict[Process, int] = field(default_factory=dict)
    spans: dict[Process, list[Span]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Of processes that do not say it."""
        return next(iter(self.hosts)) if len(self.hosts) == 1 else ""

    @property
    def unit_ns(self) -> int:
        return UNIT_NS[self.unit]


def outline(path: str, epoch_span: str) -> Outline:
    outlined = Outline(path)
    names = {json.dumps(name, ensure_ascii=short)[1:-1] for name in (*_WHO, epoch_span) for short in (True, False)}
    either = b"|".join(re.escape(name.encode("utf-8", "replace")) for name in sorted(names))
    wanted = re.compile(rb'"name"\s*+:\s*+"(?:%s)"' % either)
    for block in blocks(path, FileDamage()):
        done = 0
        for match in wanted.finditer(block):
            if match.start() < done:  # the same line
                continue
            start, done = block.rfind(b"\n", 0, match.start()) + 1, block.index(b"\n", match.end()) + 1
            event = event_of(block[start:done])
            if event and event.get("ph") in METADATA:
                _note_metadata(outlined, event)
            elif event and event.get("ph") in COMPLETE:
                _note_complete(outlined, event, epoch_span)
    return _settled(outlined)


def _note_metadata(outlined: Outline, event: dict[str, Any]) -> None:
    args, kind = event["args"], event["name"]
    name, value = args.get("name"), hashed(args.get("value")).decode()
    process = (host_of(args, ""), event["pid"])
    if event.get("cat") != "dftracer" or not isinstance(name, str):
        return
    outlined.versions.add(1 if event["ph"] == "M" else 2)
    if kind == "HH" and len(outlined.hosts) < MOST_STRINGS:
        outlined.hosts[value] = name
        outlined.processes.add((value, event["pid"]))
    elif kind == "SH" and len(outlined.strings) < MOST_STRINGS:
        outlined.strings[value] = name
    elif kind == "PR" and name == "rank" and (rank := result(value)) is not None:
        outlined.ranks[process] = rank
    elif kind == "CM" and name == "time_metric":
        if value not in UNIT_NS:
            known = ", ".join(UNIT_NS)
            raise UserError(
                f"{outlined.path}: has times in {value[:40]!r}, but only {known} are supported; trace again with DFTRACER_TIME_METRIC=US"
            )
        outlined.unit = value


def _note_complete(outlined: Outline, event: dict[str, Any], epoch_span: str) -> None:
    name, args = event["name"], event["args"]
    process = (host_of(args, ""), event["pid"])
    ts, dur = number(event.get("ts")), number(event.get("dur"))
    if ts is None or dur is None:
        return
    if event.get("cat") == "dftracer" and name == "start":
        outlined.processes.add(process)
        outlined.started.setdefault(process, _started(args, ts))
    elif event.get("cat") == "dftracer" and name == "end":
        outlined.ended.add(process)
    elif name == epoch_span:
        _add_span(outlined, process, (ts, dur, args.get("epoch")), epoch_span)


def _settled(outlined: Outline) -> Outline:
    """What only the whole file says: the host of processes that did not name it, and the unit of times."""
    unit = outlined.unit_ns

    def settled(process: Process) -> Process:
        return (process[0] or outlined.host, process[1])

    outlined.processes = {settled(process) for process in outlined.processes}
    outlined.ended = {settled(process) for process in outlined.ended}
    outlined.ranks = {settled(process): rank for process, rank in outlined.ranks.items()}
    outlined.started = {
        settled(process): replace(start, at_ns=start.at_ns * unit) for process, start in outlined.started.items()
    }
    spans = outlined.spans.items()
    outlined.spans = {}
    for process, of_process in spans:
        good = [(ts * unit, dur * unit, epoch) for ts, dur, epoch in of_process if sensible(ts, dur, unit)]
        outlined.spans.setdefault(settled(process), []).extend(good)
    return outlined


def _started(args: dict[str, Any], ticks: int) -> Started:
    version, command = str(args.get("version", ""))[:40], hashed(args.get("cmd_hash")).decode()
    return Started(ticks, number(args.get("ppid")), version, command, hashed(args.get("cwd")))


def _add_span(outlined: Outline, process: Process, span: Span, name: str) -> None:
    spans = outlined.spans.setdefault(process, [])
    if len(spans) == MOST_SPANS:
        raise UserError(
            f"{outlined.path}: a process has more than {MOST_SPANS:,} spans called {name!r}, so they cannot be epochs; name the span of an epoch with --epoch-span"
        )
    spans.append(span)
