"""The Character: how a run reads, as VaniDL shows it (METHOD, DLIO): sizes, order, files, bandwidth over time and by rank, hidden I/O.

Of any trace: measured, imported or simulated. Sums are over all ranks and epochs of one run; a process that is no rank's is left out, as in the
breakdown. What a trace does not tell is null, with the reason; what it tells only within limits has them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tierscope.analysis.character_metrics import (
    Fact,
    Sums,
    WriteUse,
    files_of,
    metrics_of,
    sizes_of,
    unseen,
    unsized,
    writes_of,
)
from tierscope.analysis.character_ops import (
    Accesses,
    FileUse,
    FormatUse,
    OpList,
    SizeBin,
    accesses,
    op_lengths,
    ops_over,
)
from tierscope.analysis.character_time import TimeBins, Timeline, loop_lengths, loop_over
from tierscope.analysis.hidden import IO_KINDS, Hidden, hidden_of
from tierscope.analysis.latency import ClassLatency, latencies_in
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.description import Imported, StudyRun
from tierscope.trace.ops import BACKGROUND_LANE, CATEGORIES, CATEGORY
from tierscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class RankUse:
    """`bandwidth`: bytes over the seconds in which it read, wall where they are known, else busy. None: it read nothing, or in no time."""

    rank: int
    node: int | None
    reads: int
    read_bytes: int
    write_bytes: int
    io_seconds: float
    bandwidth: float | None


@dataclass(frozen=True, slots=True)
class TierUse:
    tier: str
    reads: int
    read_bytes: int
    read_seconds: float
    meta_seconds: float
    write_bytes: int
    write_seconds: float


@dataclass(frozen=True, slots=True)
class Character:
    """`missing`: by part (sizes, timeline, files, formats), why it is not there."""

    came: str  # measured, traced, imported or simulated
    epochs: int
    metrics: dict[str, Fact]
    aggregate_bandwidth: Fact  # all bytes over the time in which the slowest rank of each epoch did I/O
    io_percent: Fact  # of the epochs' time
    ranks: tuple[RankUse, ...]
    bandwidth_basis: str  # of ranks: wall or busy seconds
    tiers: tuple[TierUse, ...]
    sizes: tuple[SizeBin, ...]
    timeline: Timeline | None
    hidden: Hidden
    writes: WriteUse
    files: tuple[FileUse, ...]
    formats: tuple[FormatUse, ...]
    missing: dict[str, str]
    latency: dict[str, ClassLatency]  # by class


@dataclass(frozen=True, slots=True)
class TraceExtras:
    """What there is beside a trace: lists of operations, names of files in them, or what its logs' own counters tell."""

    ops: Sequence[OpList] = ()
    names: Mapping[int, str] | None = None
    counted: Accesses | None = None


def characterise(trace: Trace, beside: TraceExtras | None = None, categories: Sequence[str] = CATEGORIES) -> Character:
    """`categories`: what makes up the I/O time, as in the breakdown."""
    beside = beside or TraceExtras()
    kinds = [kind for kind, category in CATEGORY.items() if category in categories]
    study = _study(trace)
    form = study.workload.dataset.format if study else None
    seen = accesses(beside.ops, beside.names, form) if beside.ops and beside.counted is None else beside.counted
    io = trace.io.drop_nulls("rank").filter(pl.col("lane") != BACKGROUND_LANE)
    sums = Sums.of(io, kinds)
    sizes = sizes_of(trace, io, seen)
    timeline = _timeline(trace, io, beside.ops)
    missing = dict(_missing(trace, sums.reads, sizes, timeline, seen, form))
    return Character(
        came=trace.about.kind,
        epochs=trace.ranks["epoch"].n_unique(),
        metrics=metrics_of(trace, sums, sizes, seen, files_of(trace, study, seen)),
        aggregate_bandwidth=_aggregate(io, sums, kinds),
        io_percent=_io_percent(trace, io, kinds),
        ranks=tuple(_ranks(trace, io, kinds)),
        bandwidth_basis=_basis(io),
        tiers=tuple(_tiers(trace, io)),
        sizes=sizes,
        timeline=timeline,
        hidden=hidden_of(trace),
        writes=writes_of(trace, sums, seen),
        files=seen.largest if seen else (),
        formats=_formats(sums, form, study, seen),
        missing=missing,
        latency=latencies_in(trace),
    )


def _study(trace: Trace) -> Study | None:
    text = trace.about.study if isinstance(trace.about, StudyRun) else None
    return None if text is None else parse_study(text, "the study of a run")


def _basis(io: pl.DataFrame) -> str:
    return "busy" if io["wall_seconds"].has_nulls() else "wall"


def _aggregate(io: pl.DataFrame, sums: Sums, kinds: Sequence[str]) -> Fact:
    basis = _basis(io)
    longest = (
        io.filter(pl.col("kind").is_in(kinds))
        .group_by("epoch", "rank")
        .agg(pl.col(f"{basis}_seconds").sum().alias("seconds"))
        .group_by("epoch")
        .agg(pl.col("seconds").max())
    )
    seconds = float(longest["seconds"].sum())
    return Fact(sums.moved_bytes / seconds, basis) if seconds > 0 else Fact(None, reason="I/O took no time")


def _io_percent(trace: Trace, io: pl.DataFrame, kinds: Sequence[str]) -> Fact:
    if io["wall_seconds"].has_nulls():
        return Fact(None, reason="it has no wall seconds of I/O")
    if trace.ranks["epoch_seconds"].has_nulls():
        return Fact(None, reason="it has no epoch times")
    whole = float(trace.ranks["epoch_seconds"].sum())
    wall = float(io.filter(pl.col("kind").is_in(kinds))["wall_seconds"].sum())
    return Fact(min(100.0, 100 * wall / whole), "wall") if whole > 0 else Fact(None, reason="epochs took no time")


def _ranks(trace: Trace, io: pl.DataFrame, kinds: Sequence[str]) -> Iterator[RankUse]:
    """Every rank, also one that read nothing."""
    reading, writing = pl.col("kind") == "read", pl.col("kind") == "write"
    seconds = pl.col(f"{_basis(io)}_seconds")
    used = io.group_by("rank").agg(
        pl.col("ops").filter(reading).sum().alias("reads"),
        pl.col("bytes").filter(reading).sum().alias("read_bytes"),
        pl.col("bytes").filter(writing).sum().alias("write_bytes"),
        pl.col("busy_seconds").filter(pl.col("kind").is_in(kinds)).sum().alias("io_seconds"),
        seconds.filter(reading).sum().alias("reading"),
    )
    everybody = trace.ranks.select("rank", "node").unique("rank", keep="first")
    rows = everybody.join(used, on="rank", how="left").sort("rank")
    for row in rows.iter_rows(named=True):
        spent, read = row.pop("reading"), row["read_bytes"]
        known = {name: value or 0 for name, value in row.items() if name not in ("rank", "node")}
        yield RankUse(row["rank"], row["node"], **known, bandwidth=read / spent if read and spent else None)


def _tiers(trace: Trace, io: pl.DataFrame) -> Iterator[TierUse]:
    def of(kinds: list[str], column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("kind").is_in(kinds)).sum()

    meta = [kind for kind in IO_KINDS if kind != "read"]
    used = io.group_by("tier").agg(
        of(["read"], "ops").alias("reads"),
        of(["read"], "bytes").alias("read_bytes"),
        of(["read"], "busy_seconds").alias("read_seconds"),
        of(meta, "busy_seconds").alias("meta_seconds"),
        of(["write"], "bytes").alias("write_bytes"),
        of(["write", "sync"], "busy_seconds").alias("write_seconds"),
    )
    order = {tier.name: place for place, tier in enumerate(trace.about.tiers)}
    rows = sorted(used.iter_rows(named=True), key=lambda row: (order.get(row["tier"], len(order)), row["tier"]))
    yield from (TierUse(**row) for row in rows)


def _timeline(trace: Trace, io: pl.DataFrame, ops: Sequence[OpList]) -> Timeline | None:
    of_loop, of_ops = loop_lengths(trace.ranks), op_lengths(ops)
    axis = TimeBins.of({epoch: max(of_loop.get(epoch, 0.0), of_ops.get(epoch, 0.0)) for epoch in {*of_loop, *of_ops}})
    if axis is None:
        return None
    moved = io.filter(pl.col("kind") == "read").group_by("epoch", "rank").agg(pl.col("bytes").sum())
    loop = loop_over(axis, trace.ranks, moved) if of_loop else None
    if of_ops:
        read, busy = ops_over(axis, ops)
        basis, in_flight = "operations", busy
    elif loop is not None:
        basis, read, in_flight = loop.basis, loop.moved, None

    def rate(amounts: Any) -> tuple[float, ...] | None:
        return None if amounts is None else tuple(float(amount) for amount in amounts / axis.bin_seconds)

    return Timeline(
        basis,
        axis.bin_seconds,
        axis.starts,
        rate(read) or (),
        rate(in_flight),
        rate(loop.computing) if loop else None,
        rate(loop.stalled) if loop else None,
    )


def _formats(sums: Sums, form: str | None, study: Study | None, seen: Accesses | None) -> tuple[FormatUse, ...]:
    if seen is not None:
        return seen.formats
    if form is None or study is None:
        return ()
    files = study.workload.dataset.num_files_train
    return (FormatUse(form, files, sums.reads, sums.read_bytes, sums.read_seconds),)


def _missing(
    trace: Trace,
    reads: int,
    sizes: tuple[SizeBin, ...],
    timeline: Timeline | None,
    seen: Accesses | None,
    form: str | None,
) -> Iterator[tuple[str, str]]:
    reason = unseen(trace)
    if not sizes:
        yield "sizes", unsized(trace, seen, reads)
    if timeline is None:
        darshan = isinstance(trace.about, Imported) and trace.about.facts.source == "darshan"
        yield (
            "timeline",
            "it has no timestamps; Darshan records them with extended tracing (DXT)" if darshan else reason,
        )
    if seen is None:
        yield "files", reason
    if form is None and (seen is None or not seen.formats):
        yield "formats", reason
