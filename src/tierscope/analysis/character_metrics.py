"""The metrics that two runs are compared by, each with what it is made of: exact, within limits, or null with the reason."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tierscope.analysis.character_ops import Accesses, AccessOrder, SizeBin, log2_bin
from tierscope.spec.study import Study
from tierscope.trace.described_logs import Habit
from tierscope.trace.description import Imported, Simulated
from tierscope.trace.trace import Trace

# name → unit. DLIO's metrics of similarity, in its order.
METRICS = {
    "io_seconds": "s",
    "bytes": "B",
    "transfer_min": "B",
    "transfer_max": "B",
    "transfer_mean": "B",
    "transfer_median": "B",
    "bandwidth_per_operation": "B/s",
    "sequential_percent": "%",
    "consecutive_percent": "%",
    "files": "",
}
WRITE_METRICS = {  # beside them: DLIO's similarity is of reads only
    "writes": "",
    "write_mean": "B",
    "write_sequential_percent": "%",
    "write_consecutive_percent": "%",
}
EXACT = "exact"
SIZED = "sized"  # only of reads whose sizes are known


_NO_STDIO = "Darshan records no sizes or order for stdio"


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, the limits that it is known within, and what it is made of; a null has the reason instead."""

    value: float | None
    basis: str = EXACT
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def limits(self) -> tuple[float, float]:
        value = self.value or 0.0
        return value if self.low is None else self.low, value if self.high is None else self.high


@dataclass(frozen=True, slots=True)
class Sums:
    """`io_seconds` and `moved_bytes` are of the kinds that count."""

    io_seconds: float
    moved_bytes: int
    reads: int
    read_bytes: int
    read_seconds: float
    writes: int
    write_bytes: int
    write_seconds: float

    @classmethod
    def of(cls, io: pl.DataFrame, kinds: Sequence[str]) -> "Sums":
        reads, writes = (io.filter(pl.col("kind") == kind) for kind in ("read", "write"))
        moved = {"read": int(reads["bytes"].sum()), "write": int(writes["bytes"].sum())}
        writing = io.filter(pl.col("kind").is_in(("write", "sync")))
        return cls(
            math.fsum(io.filter(pl.col("kind").is_in(kinds))["busy_seconds"].to_list()),
            sum(nbytes for kind, nbytes in moved.items() if kind in kinds),
            int(reads["ops"].sum()),
            moved["read"],
            math.fsum(reads["busy_seconds"].to_list()),
            int(writes["ops"].sum()),
            moved["write"],
            math.fsum(writing["busy_seconds"].to_list()),
        )


def metrics_of(
    trace: Trace, sums: Sums, sizes: tuple[SizeBin, ...], seen: Accesses | None, files: Fact
) -> dict[str, Fact]:
    no_time = "reads took no time" if sums.reads else "nothing was read"
    rate = Fact(sums.read_bytes / sums.read_seconds) if sums.read_seconds > 0 else Fact(None, reason=no_time)
    facts = {
        "io_seconds": Fact(sums.io_seconds),
        "bytes": Fact(float(sums.moved_bytes)),
        **_transfers(trace, sums, sizes, seen),
        "bandwidth_per_operation": rate,
        "sequential_percent": share_of(trace, seen, sums, "reads", "sequential"),
        "consecutive_percent": share_of(trace, seen, sums, "reads", "consecutive"),
        "files": files,
    }
    return {name: facts[name] for name in METRICS}


def unseen(trace: Trace) -> str:
    """Why there are no single operations, nor counts of them, and what to do about it."""
    if isinstance(trace.about, Simulated):
        return "a simulation has no single operations"
    if trace.about.training and trace.io.is_empty():
        return "nothing was read"
    if not isinstance(trace.about, Imported):
        return "single operations were not kept; run or trace with --ops"
    if trace.about.facts.source == "dftracer":
        return "only sums are kept for DFTracer logs"
    return "only sums were kept, or no file on a tier was read; use the logs themselves"


def unsized(trace: Trace, seen: Accesses | None, reads: int) -> str:
    """Why sizes of reads are not known."""
    if seen is None or seen.basis != "counters":
        return "nothing was read" if seen is not None else unseen(trace)
    return _NO_STDIO if reads else "nothing was read"


def _transfers(trace: Trace, sums: Sums, sizes: tuple[SizeBin, ...], seen: Accesses | None) -> dict[str, Fact]:
    """The mean is known of any sums, and is of the same reads as the histogram. The others: exactly of single reads, within a bin of a histogram, or not."""
    mean = _mean(sums, _sized(trace, seen))
    places = ("transfer_min", "transfer_median", "transfer_max")
    if seen and seen.exact:
        within = {name: Fact(value, "operations") for name, value in zip(places, seen.exact, strict=True)}
    elif sizes:
        basis = seen.basis if seen else "counters" if isinstance(trace.about, Imported) else "histogram"
        within = dict(zip(places, _within(sizes, mean.value, basis), strict=True))
    else:
        within = {name: Fact(None, reason=mean.reason or unsized(trace, seen, sums.reads)) for name in places}
    return {"transfer_mean": mean, **within}


def _mean(sums: Sums, sized: tuple[int, int] | None) -> Fact:
    """Of those reads whose sizes are known, where that is not all of them."""
    if not sums.reads:
        return Fact(None, reason="nothing was read")
    if sized is None or not sized[0] or sized[0] >= sums.reads:
        return Fact(sums.read_bytes / sums.reads)
    return Fact(sized[1] / sized[0], SIZED)


def _sized(trace: Trace, seen: Accesses | None) -> tuple[int, int] | None:
    """How many reads the histogram is of, and their bytes; None: all."""
    if seen is not None:
        return seen.sized
    habits = _counted_habits(trace)
    if not habits or any(habit.stdio_reads is None or habit.stdio_bytes is None for habit in habits):
        return None
    reads = sum(habit.reads - (habit.stdio_reads or 0) for habit in habits)
    return reads, sum(habit.read_bytes - (habit.stdio_bytes or 0) for habit in habits)


def _within(sizes: tuple[SizeBin, ...], mean: float | None, basis: str) -> Iterator[Fact]:
    """Smallest, median, largest. Where all are in one bin, the mean stands for them; else the bin's limits and their geometric middle."""
    total = sum(size.reads for size in sizes)
    upto, median = 0, sizes[-1]
    for size in sizes:
        upto += size.reads
        if 2 * upto >= total:
            median = size
            break
    for place, size_bin in enumerate((sizes[0], median, sizes[-1])):
        low, high = float(size_bin.low), float(size_bin.high - 1) if size_bin.high is not None else math.inf
        alone = len(sizes) == 1 and mean is not None and low <= mean <= high
        middle = math.sqrt(max(low, 1.0) * high) if high > 0 and math.isfinite(high) else low
        value = mean if alone else (low, middle, high if math.isfinite(high) else low)[place]
        yield Fact(value, basis, low, high if math.isfinite(high) else None)


def share_of(trace: Trace, seen: Accesses | None, sums: Sums, what: str, which: str) -> Fact:
    """METHOD: of all reads, as DLIO has it; or of all writes."""
    if seen is None:
        return Fact(None, reason=unseen(trace))
    order: AccessOrder = getattr(seen, what)
    moved, done = (sums.read_bytes, "read") if what == "reads" else (sums.write_bytes, "written")
    if not order.count:
        return Fact(None, reason=_NO_STDIO if moved else f"nothing was {done}")
    return Fact(100 * getattr(order, which) / order.count, seen.basis)


@dataclass(frozen=True, slots=True)
class WriteUse:
    """Writes beside the reads, which the metrics are of."""

    writes: int
    write_bytes: int
    write_seconds: float
    mean: Fact
    sequential_percent: Fact
    consecutive_percent: Fact

    @property
    def metrics(self) -> dict[str, Fact]:
        """By the names of WRITE_METRICS."""
        facts = (Fact(float(self.writes)), self.mean, self.sequential_percent, self.consecutive_percent)
        return dict(zip(WRITE_METRICS, facts, strict=True))


def writes_of(trace: Trace, sums: Sums, seen: Accesses | None) -> WriteUse:
    """Without syncs, which Darshan's sums count as writes too: its counters tell them apart."""
    count = sums.writes if seen is None or seen.all_writes is None else seen.all_writes
    mean = Fact(sums.write_bytes / count) if count else Fact(None, reason="nothing was written")
    shares = [
        share_of(trace, seen, sums, "writes", which) if count else mean for which in ("sequential", "consecutive")
    ]
    if seen is None and isinstance(trace.about, Imported) and trace.about.facts.source == "darshan" and count:
        mean = Fact(None, reason="a kept Darshan log counts syncs among the writes; characterise the log itself")
    return WriteUse(count, sums.write_bytes, sums.write_seconds, mean, *shares)


def files_of(trace: Trace, study: Study | None, seen: Accesses | None) -> Fact:
    if seen is not None:
        return Fact(float(seen.files), seen.basis)
    if study is not None:
        return Fact(float(study.workload.dataset.num_files_train), "study")
    counts = [habit.files for habit in _counted_habits(trace)]
    known = [count for count in counts if count is not None]
    if known and len(known) == len(counts):
        return Fact(float(sum(known)), "counters")
    return Fact(None, reason=unseen(trace))


def sizes_of(trace: Trace, io: pl.DataFrame, seen: Accesses | None) -> tuple[SizeBin, ...]:
    """Of single reads, of the recorder's histograms, or of a log's counters; empty: not known."""
    if seen is not None:
        return seen.sizes
    histograms = io.filter((pl.col("kind") == "read") & (pl.col("ops") > 0))["size_histogram"]
    if len(histograms) and not histograms.has_nulls():
        return tuple(log2_bin(place, reads) for place, reads in _binned(histograms) if reads)
    return tuple(_counted_sizes(trace))


def _binned(histograms: pl.Series) -> list[tuple[int, int]]:
    bins = pl.DataFrame({"reads": histograms}).select("reads", pl.int_ranges(pl.col("reads").list.len()).alias("place"))
    summed = bins.explode("reads", "place").drop_nulls().group_by("place").agg(pl.col("reads").sum())
    return summed.sort("place").rows()


def _counted_habits(trace: Trace) -> list[Habit]:
    """What an importer counted, by tier; none where nobody did."""
    return list((trace.about.habits or {}).values()) if isinstance(trace.about, Imported) else []


def _counted_sizes(trace: Trace) -> Iterator[SizeBin]:
    """Of an import that was kept: limits and counts of every tier."""
    counts: dict[int | None, int] = {}
    for limit, reads in (pair for habit in _counted_habits(trace) for pair in habit.sizes or ()):
        counts[limit] = counts.get(limit, 0) + reads
    yield from limited(counts)


def limited(counts: Mapping[int | None, int]) -> Iterator[SizeBin]:
    """Bins as Darshan has them: reads of at most each limit, and of more than the one before; None: no limit."""
    low = 0
    for limit in sorted(counts, key=lambda limit: math.inf if limit is None else limit):
        if counts[limit]:
            yield SizeBin(low, None if limit is None else limit + 1, counts[limit])
        low = low if limit is None else limit + 1
