"""Latency percentiles of classes and kinds of operation, from the recorder's histograms.

Histograms of all ranks, lanes, epochs and repetitions are added up, and a percentile is looked up in the sum; percentiles of parts are never averaged. A percentile is the
latency of one operation (nearest rank): the smallest that at least that share of the operations did not exceed.

Bins are powers of two nanoseconds (`trace/ops.py`), so every figure is a range of a factor of two, low ≤ latency < high, and never a single number.
Costs one pass over the rows of a trace; memory grows with epochs × kinds × 48 bins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.trace.description import Description, Imported, Measured, Simulated
from tierscope.trace.latency_counts import latency_counts
from tierscope.trace.ops import BACKGROUND_LANE, BINS, CATEGORIES
from tierscope.trace.trace import Trace

PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
NO_OPERATIONS = "no operations"
NOTE = "Latencies are counted in powers of two: every figure is a range, low ≤ latency < high."
_CSV = "a CSV of times has no single operations"
_KEYS = ("class", "kind", "bin")


@dataclass(frozen=True, slots=True)
class LatencyRange:
    """low ≤ latency < high; `high_seconds` None: no limit, the last bin counts all that is longer."""

    low_seconds: float
    high_seconds: float | None

    @classmethod
    def of_bin(cls, number: int) -> "LatencyRange":
        low = (1 << number - 1) / 1e9 if number else 0.0
        return cls(low, None if number == BINS - 1 else (1 << number) / 1e9)


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """`ranges` by the names of PERCENTILES; empty: not known, for the reason. `operations` None: not even their number is."""

    operations: int | None
    ranges: Mapping[str, LatencyRange] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClassLatency:
    """All operations of a class, and of each kind in it: META is opens and closes, which may differ by orders of magnitude."""

    whole: LatencySummary
    kinds: Mapping[str, LatencySummary] = field(default_factory=dict)


Latencies = dict[str, ClassLatency]  # by class


def percentile_ranges(counts: Mapping[int, int]) -> dict[str, LatencyRange]:
    """`counts`: operations by bin, at least one."""
    total = sum(counts.values())
    ranges = {}
    for name, percent in PERCENTILES.items():
        wanted, seen = -(-total * percent // 100), 0
        for number in sorted(counts):
            seen += counts[number]
            if seen >= wanted:
                ranges[name] = LatencyRange.of_bin(number)
                break
    return ranges


def summarise(counts: Mapping[int | None, int], reason: str) -> LatencySummary:
    """`counts`: operations by bin; None: of those that no histogram tells of, for which `reason` is given."""
    total, unknown = sum(counts.values()), counts.get(None, 0)
    if not total:
        return LatencySummary(0, reason=NO_OPERATIONS)
    if unknown:
        part = "" if unknown == total else f"known of {total - unknown:,} of {total:,} operations only: "
        return LatencySummary(total, reason=f"{part}{reason}")
    return LatencySummary(
        total, percentile_ranges({number: count for number, count in counts.items() if number is not None})
    )


def latencies_of(counts: pl.DataFrame, classes: Sequence[str], reason: str) -> Latencies:
    """`counts`: rows of `latency_counts`, of whatever is to be taken together."""
    by_kind: dict[str, dict[str, dict[int | None, int]]] = {name: {} for name in classes}
    summed = counts.group_by(_KEYS).agg(pl.col("count").sum()).sort(_KEYS)
    for name, kind, number, count in summed.iter_rows():
        by_kind.setdefault(name, {}).setdefault(kind, {})[number] = count
    return {name: _class_latency(kinds, reason) for name, kinds in by_kind.items()}


def _class_latency(kinds: Mapping[str, Mapping[int | None, int]], reason: str) -> ClassLatency:
    whole: dict[int | None, int] = {}
    for counts in kinds.values():
        for number, count in counts.items():
            whole[number] = whole.get(number, 0) + count
    return ClassLatency(summarise(whole, reason), {kind: summarise(of_kind, reason) for kind, of_kind in kinds.items()})


def latencies_in(trace: Trace) -> Latencies:
    """Of one run, all its ranks and epochs, nearest tier first; checkpoints written in the background are apart, as in the breakdown."""
    io = trace.io.drop_nulls("rank").filter(pl.col("lane") != BACKGROUND_LANE)
    known = [f"{name.upper()}-{category}" for name in trace.about.tier_names for category in CATEGORIES]
    latencies = latencies_of(latency_counts(io), known, reason_of(trace.about))
    return {name: latency for name, latency in latencies.items() if latency.whole.operations}


def latencies_at(times: ClassTimes, sweep: SweepValues, epochs: set[int]) -> Latencies:
    """At one point of a sweep, these epochs of all repetitions."""
    if not times.runs:
        return {name: ClassLatency(LatencySummary(None, reason=_CSV)) for name in times.classes}
    at = [pl.col(name).eq_missing(pl.lit(value)) for name, value in sweep.items()]
    reason = next(reason_of(about) for about in times.about if tuple(about.sweep.values()) == tuple(sweep.values()))
    return latencies_of(times.latency.filter(pl.col("epoch").is_in(epochs), *at), times.classes, reason)


def reason_of(about: Description) -> str:
    """Why operations may have no latencies, by where they come from."""
    if isinstance(about, Simulated):
        return "a simulation has no single operations"
    if isinstance(about, Imported):
        return "an import keeps sums of operations, not the time of each"
    if isinstance(about, Measured) and about.profiler:
        return f"{about.profiler} gave sums of operations, not the time of each"
    return "the run has no histograms of them"


def latency_json(latencies: Latencies) -> JsonObject:
    return {
        name: {
            **_summary_json(latency.whole),
            "kinds": {kind: _summary_json(summary) for kind, summary in latency.kinds.items()},
        }
        for name, latency in latencies.items()
    }


def _summary_json(summary: LatencySummary) -> JsonObject:
    ranges = {name: asdict(summary.ranges[name]) if summary.ranges else None for name in PERCENTILES}
    return {"operations": summary.operations, **ranges, **({} if summary.ranges else {"reason": summary.reason})}
