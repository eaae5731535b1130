"""Latency percentiles as tables: every figure a range, with no more digits than a bin of the histogram allows."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from tierscope.analysis.latency import PERCENTILES, ClassLatency, LatencyRange, LatencySummary
from tierscope.report.parts import Column
from tierscope.units import SECOND_UNITS

_DIGITS = 2


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """A class, or below it a kind of operation: how many, and the range of each percentile."""

    name: str
    cells: tuple[str, ...]
    is_kind: bool


def latency_headers() -> list[str]:
    return ["", "operations", *PERCENTILES]


def latency_rows(latencies: Mapping[str, ClassLatency]) -> Iterator[LatencyRow]:
    """Classes whose latencies are known; the kinds of one that has several."""
    for name, latency in latencies.items():
        if latency.whole.ranges:
            yield LatencyRow(name, _cells(latency.whole), is_kind=False)
            kinds = latency.kinds if len(latency.kinds) > 1 else {}
            yield from (LatencyRow(f"{name} {kind}", _cells(summary), is_kind=True) for kind, summary in kinds.items())


def latency_missing(latencies: Mapping[str, ClassLatency]) -> dict[str, str]:
    """Why there are none, for one class or more; empty: all are known."""
    reasons: dict[str, list[str]] = {}
    for name, latency in latencies.items():
        if not latency.whole.ranges:
            reasons.setdefault(latency.whole.reason, []).append(name)
    return {f"latency of {', '.join(names)}": reason for reason, names in reasons.items()}


def latency_columns(latencies: Mapping[str, ClassLatency]) -> list[Column]:
    """For the terminal; empty: nothing is known."""
    rows = list(latency_rows(latencies))
    if not rows:
        return []
    names = [Text(f"  {row.name.rpartition(' ')[2]}" if row.is_kind else row.name) for row in rows]
    cells = zip(*(row.cells for row in rows), strict=True)
    drops = (1, 0, 2, 0, 0)  # without room the number of operations goes first, then p90
    return [
        Column("", names, right=False),
        *(
            Column(header, [Text(text) for text in column], drop=drop)
            for header, column, drop in zip(latency_headers()[1:], cells, drops, strict=True)
        ),
    ]


def _cells(summary: LatencySummary) -> tuple[str, ...]:
    return f"{summary.operations:,}", *(range_text(bounds) for bounds in summary.ranges.values())


def range_text(bounds: LatencyRange) -> str:
    """`0.52–1.1 ms`: rounded outwards, so that the range still holds what it held."""
    if bounds.high_seconds is None:
        return f"≥ {_rounded(bounds.low_seconds, math.floor)} s"
    unit = next((unit for unit in ("s", "ms", "µs") if bounds.high_seconds >= SECOND_UNITS[unit]), "ns")
    factor = SECOND_UNITS[unit]
    low, high = _rounded(bounds.low_seconds / factor, math.floor), _rounded(bounds.high_seconds / factor, math.ceil)
    return f"{low}–{high} {unit}" if bounds.low_seconds else f"< {high} {unit}"


def _rounded(value: float, direction: Callable[[float], int]) -> str:
    places = _DIGITS - 1 - math.floor(math.log10(value)) if value else 0
    return f"{direction(value * 10**places) / 10**places:,.{max(0, places)}f}"
