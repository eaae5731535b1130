"""A trace of torch's or TensorFlow's profiler as compute of one rank: which spans computed, its marks, and what its clock is.

What counts as compute, the first of these that there is: spans of the name that the user gives; `tierscope.phase("compute")`; kernels of an accelerator (torch's category
`kernel`; TensorFlow's processes `/device:…`, less lines that repeat others); torch's operators on the CPU outside of its loader. TensorFlow's host threads wait in spans of the same
kind as those they compute in, so without an accelerator there must be a phase or a name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from tierscope.analysis.merged_timeline import ProfiledCompute
from tierscope.analysis.time_spans import SpanUnion, TimeSpans
from tierscope.clock_marks import PHASE_NAME, SPAN_NAME
from tierscope.errors import UserError
from tierscope.imports.chrome_json import ChromeTrace
from tierscope.jsonable import JsonObject
from tierscope.units import closest

PHASE = f"{PHASE_NAME}compute"
_MOST_MARKS = 1024
_MOST_NAMES = 256
_MOST_TRACKS = 1 << 16
_LATEST_US = 4e15  # the year 2096: sums and differences of two times fit into 64 bits of nanoseconds
_CALENDAR_US = 1e15  # older torch has epoch time in every event: 2001 and later
_LONGEST_US = 366 * 86_400e6
_REPEATING = frozenset(
    ("Steps", "TensorFlow Name Scope", "Framework Name Scope", "Source code", "XLA Modules", "TensorFlow Ops")
)
_LOADER = "DataLoader"
_BASE_TIME, _JOB = "baseTimeNanoseconds", "distributedInfo"
_MOST_NAME = 200  # characters of a name that is kept
_FIX = "export it again with torch.profiler or TensorFlow's profiler"


def read_profile(path: str, compute_span: str | None) -> ProfiledCompute:
    reading = _Reading(path, compute_span)
    trace = ChromeTrace(path, (_BASE_TIME, _JOB))
    for number, event in enumerate(trace.events(), start=1):
        reading.add(event, number)
    return reading.profile(trace.header)


@dataclass(slots=True)
class _Reading:
    path: str
    compute_span: str | None
    named: SpanUnion = field(default_factory=SpanUnion)
    phases: SpanUnion = field(default_factory=SpanUnion)
    kernels: SpanUnion = field(default_factory=SpanUnion)
    operators: SpanUnion = field(default_factory=SpanUnion)
    loading: SpanUnion = field(default_factory=SpanUnion)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    devices: set[object] = field(default_factory=set)  # pids
    repeating: set[tuple[object, object]] = field(default_factory=set)  # pid and tid
    first_ns: int | None = None
    last_ns: int = 0

    def add(self, event: JsonObject, number: int) -> None:
        phase = event.get("ph")
        if phase == "M":
            self._add_label(event)
        elif phase == "X":
            start, end = self._times(event, number)
            self.first_ns = start if self.first_ns is None else min(self.first_ns, start)
            self.last_ns = max(self.last_ns, end)
            name, category = event.get("name"), event.get("cat")
            if not isinstance(name, str):
                self._refuse(number, "name", name)
            self._add_span(name, category, (_plain(event.get("pid")), _plain(event.get("tid"))), start, end)

    def _add_span(self, name: str, category: object, track: tuple[object, object], start: int, end: int) -> None:
        on_device = track[0] in self.devices
        copied = on_device or (isinstance(category, str) and category.startswith("gpu_"))  # of a host's span
        if name == self.compute_span and not copied:
            self.named.add(start, end)
        if name.startswith(SPAN_NAME) and not copied:
            self._add_mark(name.removeprefix(SPAN_NAME), start, end)
        elif name == PHASE and not copied:
            self.phases.add(start, end)
        elif category == "kernel" or (on_device and track not in self.repeating):
            self.kernels.add(start, end)
        elif _LOADER in name:
            self.loading.add(start, end)
        elif category == "cpu_op":
            self.operators.add(start, end)
        elif len(self.names) < _MOST_NAMES:
            self.names.add(name[:_MOST_NAME])

    def _add_mark(self, token: str, start: int, end: int) -> None:
        if len(token) > _MOST_NAME:
            raise UserError(
                f"{self.path}: has a mark {SPAN_NAME}{token[:40]}… with a name of {len(token):,} characters; {_FIX}"
            )
        if token in self.marks:
            raise UserError(
                f"{self.path}: has two marks {SPAN_NAME}{token[:40]}; a mark's name must be its own: use tierscope.mark_clock"
            )
        if len(self.marks) >= _MOST_MARKS:
            raise UserError(
                f"{self.path}: has more than {_MOST_MARKS:,} marks; a few at the start and the end are enough"
            )
        self.marks[token] = start, end

    def _add_label(self, event: JsonObject) -> None:
        args = event.get("args")
        label = args.get("name") if isinstance(args, Mapping) else None
        if not isinstance(label, str) or len(self.devices) + len(self.repeating) > _MOST_TRACKS:
            return
        if event.get("name") == "process_name" and label.startswith("/device:"):
            self.devices.add(_plain(event.get("pid")))
        elif event.get("name") == "thread_name" and label in _REPEATING:
            self.repeating.add((_plain(event.get("pid")), _plain(event.get("tid"))))

    def _times(self, event: JsonObject, number: int) -> tuple[int, int]:
        start, long = event.get("ts"), event.get("dur", 0)
        for key, value, low, high in (("ts", start, -_LATEST_US, _LATEST_US), ("dur", long, 0, _LONGEST_US)):
            good = isinstance(value, int | float) and not isinstance(value, bool)
            if not good or not low <= value <= high:  # type: ignore[operator]
                self._refuse(number, key, value)
        assert start is not None
        return round(start * 1e3), round((start + long) * 1e3)

    def _refuse(self, number: int, key: str, value: object) -> NoReturn:
        raise UserError(f"{self.path}: event {number}: {key} = {str(value)[:40]!r} cannot be; {_FIX}")

    def profile(self, header: JsonObject) -> ProfiledCompute:
        if self.first_ns is None:
            raise UserError(f"{self.path}: has no spans (events with ph X and dur); {_FIX}")
        compute, basis = self._compute()
        return ProfiledCompute(
            self.path,
            compute,
            basis,
            (self.first_ns, self.last_ns),
            self.marks,
            self._epoch_ns(header.get(_BASE_TIME)),
            _rank(header.get(_JOB)),
        )

    def _compute(self) -> tuple[TimeSpans, str]:
        if self.compute_span is not None:
            named = self.named.spans()
            if not len(named.starts):
                guess = closest(self.compute_span, self.names)
                hint = (
                    f"did you mean {guess}?"
                    if guess
                    else f"spans: {', '.join(name[:40] for name in sorted(self.names)[:5]) or 'none'}"
                )
                raise UserError(f"{self.path}: no span is named {self.compute_span!r} (--compute-span); {hint}")
            return named, f"spans {self.compute_span}"
        for union, basis in ((self.phases, PHASE), (self.kernels, "kernels of the accelerator")):
            if len((spans := union.spans()).starts):
                return spans, basis
        operators = self.operators.spans().without(self.loading.spans())
        if not len(operators.starts):
            raise UserError(
                f"{self.path}: which of its spans are compute is unknown; name them with --compute-span NAME, "
                'or run them in tierscope.phase("compute")'
            )
        return operators, "operators on the CPU outside the loader"

    def _epoch_ns(self, base: object) -> int | None:
        """The calendar's time of the trace's zero."""
        if base is None:
            return 0 if (self.first_ns or 0) >= _CALENDAR_US * 1e3 else None
        if isinstance(base, bool) or not isinstance(base, int) or not 0 <= base <= _LATEST_US * 1e3:
            raise UserError(f"{self.path}: {_BASE_TIME} = {str(base)[:40]!r} cannot be; {_FIX}")
        return base


def _rank(info: object) -> int | None:
    """Of a distributed job, as torch has it."""
    rank = info.get("rank") if isinstance(info, Mapping) else None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 2**31 else None


def _plain(value: object) -> object:
    """Of what numbers processes and threads: only what can be looked up."""
    if isinstance(value, str):
        return value[:_MOST_NAME]
    return value if isinstance(value, int) else None
