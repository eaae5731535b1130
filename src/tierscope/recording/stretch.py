"""A stretch of a recorded process: what its rank did between two moments, as a trace of its own.

Recorded sums only grow, so a stretch is the difference of two looks at them (`looks.py`). What is under way at either moment counts where it ends.
"""

import os
from collections.abc import Iterable
from typing import Any

import polars as pl
from msgspec import structs

from tierscope.recording.collect import Collected, collect
from tierscope.recording.traced import read_description
from tierscope.trace.columns import COLUMNS, TraceRow
from tierscope.trace.description import MappedSums, PhaseSums, Records, Traced
from tierscope.trace.trace import RunKey, Trace

_KEY = ("epoch", "node", "rank", "tier", "kind")
_SUMS = ("busy_seconds", "wall_seconds", "ops", "bytes")
_HISTOGRAMS = ("size_histogram", "latency_histogram")
_RANK_SUMS = ("compute_seconds", "limited_ops", "late_ops", "late_seconds")
_COUNTS = (
    *("mapped_ops", "outside_ops", "outside_seconds", "lost_ops", "lost_rows", "cut_lanes"),
    *("unrecorded_processes", "unrecorded_ops"),
)


def stretch_of(folder: str, before: str, after: str, seconds: float, pid: int) -> tuple[Trace, Traced]:
    """`folder`: where it is recorded; `before`, `after`: of the two looks. Only the rank of process `pid` is in it, with all its processes."""
    about = read_description(os.path.dirname(os.path.dirname(folder)))
    tiers = [tier.name for tier in about.tiers]
    first, last = (collect(folder, tiers, lambda _: True) for folder in (before, after))
    rank = _rank_of(last, pid)
    rows = _differences(_rows(first, "io", rank), _rows(last, "io", rank))
    ranks = _rank_rows(_rows(first, "rank", rank), _rows(last, "rank", rank), rows, seconds)
    common = {"point": 0, "repetition": 1}
    table = pl.DataFrame([{**common, **row} for row in (*ranks, *rows)], schema=COLUMNS)
    described = Traced(
        recorder=about.recorder,
        command=about.command,
        tiers=about.tiers,
        epochs=about.epochs,
        provenance=about.provenance,
        provides=tuple(provided for provided in last.provides if provided != "epochs"),
        records=_record_differences(first.records, last.records),
    )
    return Trace(RunKey(0, 1), described, table), described


def _rank_of(collected: Collected, pid: int) -> int | None:
    """None: it has touched no tier, so that nobody can tell which of several ranks it is."""
    ranks = {process.rank for process in collected.processes}
    own = {process.rank for process in collected.processes if process.head.pid == pid}
    return next(iter(own), next(iter(ranks)) if len(ranks) == 1 else None)


def _rows(collected: Collected, record: str, rank: int | None) -> list[TraceRow]:
    of_rank = pl.lit(True) if rank is None else pl.col("rank").eq_missing(pl.lit(rank))
    rows: list[TraceRow] = collected.table.filter((pl.col("record") == record) & of_rank).to_dicts()
    return rows


def _differences(before: Iterable[TraceRow], after: Iterable[TraceRow]) -> list[TraceRow]:
    """By rank, epoch, tier and kind; lanes are summed up, for their numbers may change while a process lives."""
    old, differences = _summed(before), []
    for key, sums in _summed(after).items():
        less = old.get(key, {})
        row = {name: max(0, sums[name] - less.get(name, 0)) for name in _SUMS}
        row |= {name: _shorter(sums[name], less.get(name, [])) for name in _HISTOGRAMS}
        if row["ops"]:
            differences.append({"record": "io", "lane": 0, **dict(zip(_KEY, key, strict=True)), **row})
    return differences


def _summed(rows: Iterable[TraceRow]) -> dict[tuple[Any, ...], TraceRow]:
    by_key: dict[tuple[Any, ...], TraceRow] = {}
    for row in rows:
        sums = by_key.setdefault(
            tuple(row[name] for name in _KEY), dict.fromkeys(_SUMS, 0) | {n: [] for n in _HISTOGRAMS}
        )
        for name in _SUMS:
            sums[name] += row[name] or 0
        for name in _HISTOGRAMS:
            sums[name] = _longer(sums[name], row[name] or [])
    return by_key


def _longer(first: list[int], second: list[int]) -> list[int]:
    width = max(len(first), len(second))
    return [a + b for a, b in zip(_filled(first, width), _filled(second, width), strict=True)]


def _shorter(all_of_it: list[int], less: list[int]) -> list[int]:
    return [max(0, a - b) for a, b in zip(all_of_it, _filled(less, len(all_of_it)), strict=True)]


def _filled(values: list[int], width: int) -> list[int]:
    return [*values, *[0] * (width - len(values))][:width]


def _rank_rows(before: list[TraceRow], after: list[TraceRow], rows: list[TraceRow], seconds: float) -> list[TraceRow]:
    """Epochs in which something was done; a stretch within one epoch is that epoch's time, of several nobody can tell the parts."""
    done = {(row["rank"], row["epoch"]) for row in rows if row["rank"] is not None}
    old = {(row["rank"], row["epoch"]): row for row in before}
    rank_rows = []
    for row in after:
        key = (row["rank"], row["epoch"])
        less = old.get(key, {})
        sums = {name: None if row[name] is None else row[name] - (less.get(name) or 0) for name in _RANK_SUMS}
        if key in done or (not done and row is after[-1]):
            kept = {name: row[name] for name in ("epoch", "node", "rank")}
            only = len({epoch for _, epoch in done}) <= 1
            rank_rows.append({"record": "rank", **kept, **sums, "epoch_seconds": seconds if only else None})
    return rank_rows


def _record_differences(before: Records, after: Records) -> Records:
    counts = {name: max(0, getattr(after, name) - getattr(before, name)) for name in _COUNTS}
    phases = {
        name: PhaseSums(
            seconds=max(0.0, sums.seconds - (old.seconds if old else 0.0)), count=sums.count - (old.count if old else 0)
        )
        for name, sums in after.phases.items()
        for old in (before.phases.get(name),)
    }
    mapped = {
        name: MappedSums(ops=sums.ops - (old.ops if old else 0), bytes=sums.bytes - (old.bytes if old else 0))
        for name, sums in after.mapped.items()
        for old in (before.mapped.get(name),)
    }
    return structs.replace(
        after,
        **counts,
        phases={name: sums for name, sums in phases.items() if sums.count > 0},
        mapped={name: sums for name, sums in mapped.items() if sums.ops > 0},
        span_seconds=None,
        still_running=0,
        under_way_ops=0,
        under_way_seconds=0.0,
    )
