"""When something was under way: a union of spans of time, in whole nanoseconds of some clock.

A union takes any number of spans in bounded memory. Where even its disjoint spans are too many, the smallest gaps between them are closed: `closed_ns` is what that adds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]
MOST_SPANS = 1 << 20
_AT_ONCE = 1 << 16  # spans that wait to be united


@dataclass(frozen=True, slots=True)
class TimeSpans:
    """Disjoint and in order."""

    starts: Nanoseconds
    ends: Nanoseconds
    closed_ns: int = 0

    @property
    def total_ns(self) -> int:
        return int((self.ends - self.starts).sum())

    @property
    def extent(self) -> tuple[int, int] | None:
        """From the first start to the last end; None: there are none."""
        return (int(self.starts[0]), int(self.ends[-1])) if len(self.starts) else None

    def shifted(self, by_ns: int) -> "TimeSpans":
        return TimeSpans(self.starts + by_ns, self.ends + by_ns, self.closed_ns)

    def within(self, low: int, high: int) -> "TimeSpans":
        starts, ends = np.clip(self.starts, low, high), np.clip(self.ends, low, high)
        kept = starts < ends
        return TimeSpans(starts[kept], ends[kept], self.closed_ns)

    def overlap_ns(self, other: "TimeSpans") -> int:
        """How long both are under way."""
        return int((other.covered_before(self.ends) - other.covered_before(self.starts)).sum())

    def covered_before(self, times: Nanoseconds) -> Nanoseconds:
        """How much of the time before each of these is covered."""
        if not len(self.starts):
            return np.zeros(len(times), np.int64)
        upto = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        place = np.searchsorted(self.starts, times, side="right") - 1
        at = np.maximum(place, 0)
        inside = np.minimum(times, self.ends[at]) - self.starts[at]
        return np.where(place < 0, 0, upto[at] + inside)

    def without(self, other: "TimeSpans") -> "TimeSpans":
        """What of these is under way while the other is not."""
        edges = np.unique(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        if len(edges) < 2:
            return self
        starts, ends = edges[:-1], edges[1:]
        mine, theirs = (spans.covered_before(ends) - spans.covered_before(starts) > 0 for spans in (self, other))
        return _united(starts[mine & ~theirs], ends[mine & ~theirs], self.closed_ns)


NO_SPANS = TimeSpans(np.zeros(0, np.int64), np.zeros(0, np.int64))


class SpanUnion:
    """Spans that come in any order."""

    def __init__(self, most: int = MOST_SPANS) -> None:
        self._most = most
        self._new: list[tuple[int, int]] = []
        self._known = NO_SPANS

    def add(self, start: int, end: int) -> None:
        self._new.append((start, end))
        if len(self._new) >= _AT_ONCE:
            self._settle()

    def add_all(self, starts: Nanoseconds, ends: Nanoseconds) -> None:
        self._settle()
        known = self._known
        self._known = self._bounded(
            _united(np.concatenate([known.starts, starts]), np.concatenate([known.ends, ends]), known.closed_ns)
        )

    def spans(self) -> TimeSpans:
        self._settle()
        return self._known

    def _settle(self) -> None:
        if self._new:
            new = np.array(self._new, np.int64)
            self._new = []
            self.add_all(new[:, 0], new[:, 1])

    def _bounded(self, spans: TimeSpans) -> TimeSpans:
        if len(spans.starts) <= self._most:
            return spans
        gaps = spans.starts[1:] - spans.ends[:-1]
        open_gaps = np.ones(len(gaps), bool)
        smallest = np.argpartition(gaps, len(gaps) - self._most // 2)[: len(gaps) - self._most // 2]
        open_gaps[smallest] = False
        starts = spans.starts[np.concatenate([[True], open_gaps])]
        ends = spans.ends[np.concatenate([open_gaps, [True]])]
        return TimeSpans(starts, ends, spans.closed_ns + int(gaps[smallest].sum()))


def union_of(spans: Iterable[tuple[int, int]]) -> TimeSpans:
    union = SpanUnion()
    for start, end in spans:
        union.add(start, end)
    return union.spans()


def together(unions: Iterable[TimeSpans]) -> TimeSpans:
    union = SpanUnion()
    closed = 0
    for spans in unions:
        union.add_all(spans.starts, spans.ends)
        closed += spans.closed_ns
    return replace(union.spans(), closed_ns=union.spans().closed_ns + closed)


def _united(starts: Nanoseconds, ends: Nanoseconds, closed_ns: int) -> TimeSpans:
    kept = starts < ends
    order = np.argsort(starts[kept], kind="stable")
    starts, ends = starts[kept][order], ends[kept][order]
    if not len(starts):
        return TimeSpans(starts, ends, closed_ns)
    reach = np.maximum.accumulate(ends)
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return TimeSpans(starts[first], reach[last], closed_ns)
