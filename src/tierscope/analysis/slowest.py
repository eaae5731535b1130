"""The slowest process of every epoch of every run: what an epoch waits for.

It is the one with the longest I/O time: the sum of the classes that count. Of equals it is the one with the smallest number.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from tierscope.analysis.clocks import has_compute, with_clocks
from tierscope.analysis.statistics import DIGITS
from tierscope.analysis.times import ClassTimes, category_of
from tierscope.jsonable import SweepValues

_RANKS, _WRITE, _IO = "\0ranks", "\0write", "\0io"  # no swept key can be called that


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest process of one epoch of one run."""

    repetition: int
    epoch: int
    rank: int
    ranks: int
    io_seconds: float
    classes: dict[str, float]
    ops: dict[str, int | None]
    moved_bytes: dict[str, int | None]
    write_seconds: float  # the longest of any rank: the slowest may not be the one that writes most
    figures: "EpochFigures"


def slowest_processes(times: ClassTimes) -> list[tuple[SweepValues, list[Slowest]]]:
    """For each point of the sweep in order, the slowest process of every (repetition, epoch)."""
    keys = times.keys
    io_classes = times.io_classes
    writes = [name for name in times.classes if category_of(name) == "WRITE"]
    wide = times.by_process("seconds").with_columns(pl.sum_horizontal(pl.lit(0.0), *writes).alias(_WRITE))
    chosen = (
        wide.with_columns(pl.sum_horizontal(io_classes).round_sig_figs(DIGITS).alias(_IO))
        .sort([*keys, _IO, "rank"], descending=[False] * len(keys) + [True, False])
        .group_by(keys, maintain_order=True)
        .agg(pl.first("rank", *times.classes), pl.len().alias(_RANKS), pl.max(_WRITE))
    )
    more = _epoch_figures(times)
    counts = _counts(times, chosen)
    by_point: dict[tuple[Any, ...], list[Slowest]] = {}
    for row in chosen.iter_rows(named=True):
        key = tuple(row[name] for name in keys)
        counted = counts.get(key, {})
        by_point.setdefault(key[: len(times.sweep)], []).append(
            Slowest(
                repetition=row["repetition"],
                epoch=row["epoch"],
                rank=row["rank"],
                ranks=row[_RANKS],
                io_seconds=math.fsum(row[name] for name in io_classes),
                classes={name: row[name] for name in times.classes},
                ops={name: counted.get(name, (None, None))[0] for name in times.classes},
                moved_bytes={name: counted.get(name, (None, None))[1] for name in times.classes},
                write_seconds=row[_WRITE],
                figures=more.get(key, EpochFigures()),
            )
        )
    return [(dict(zip(times.sweep, values, strict=True)), runs) for values, runs in by_point.items()]


def _counts(times: ClassTimes, chosen: pl.DataFrame) -> dict[tuple[Any, ...], dict[str, tuple[int | None, int | None]]]:
    """(point, repetition, epoch) → class → operations and bytes of the chosen rank."""
    keys = times.keys
    rows = chosen.select([*keys, "rank"]).join(times.table, on=[*keys, "rank"], how="left", nulls_equal=True)
    counts: dict[tuple[Any, ...], dict[str, tuple[int | None, int | None]]] = {}
    for row in rows.iter_rows(named=True):
        counts.setdefault(tuple(row[name] for name in keys), {})[row["class"]] = (row["ops"], row["bytes"])
    return counts


class EpochFigures(NamedTuple):
    """Of one epoch, each the longest of any rank; None: not known. The two of prefetch bound training that synchronises every step."""

    epoch_seconds: float | None = None
    compute_seconds: float | None = None
    endless_prefetch_seconds: float | None = None  # max over ranks of the sum over steps
    no_prefetch_seconds: float | None = None  # sum over steps of the max over ranks
    checkpoint_seconds: float | None = None
    unstalled_seconds: float | None = None  # max over ranks of the epoch without what it stood still for I/O
    stall_share: float | None = None  # waiting for data, of the epoch of the rank with the longest one
    au: float | None = None  # DLIO's: the mean over ranks; a share of 1
    slowest_au: float | None = None  # of the rank with the longest epoch


def _epoch_figures(times: ClassTimes) -> dict[tuple[Any, ...], EpochFigures]:
    """(point, repetition, epoch) → its figures."""
    if times.epochs.is_empty():
        return {}
    keys = times.keys
    share = pl.max_horizontal(pl.col("au_compute"), 0.0) / pl.col("au_seconds")
    au = pl.when(pl.col("au_seconds").is_not_null()).then(pl.when(pl.col("au_seconds") > 0).then(share).otherwise(0.0))
    epochs = with_clocks(times.epochs).with_columns(
        (au if has_compute(times.epochs) else pl.lit(None, pl.Float64)).alias("au"),
        (pl.col("epoch_seconds") - pl.col("standstill_seconds")).alias("unstalled"),
    )
    known = pl.col("stall_seconds").null_count() + pl.col("epoch_seconds").null_count() == 0
    last = pl.col("epoch_seconds").arg_max()  # the rank that the epoch waits for
    longest = (
        epochs.sort([*keys, "rank"])
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("epoch_seconds", "compute_seconds", "checkpoint_seconds", "unstalled").max(),
            pl.col("step_read_seconds").list.sum().max().alias("endless"),
            pl.when(known, pl.col("epoch_seconds").sum() > 0)
            .then(pl.col("stall_seconds").get(last) / pl.col("epoch_seconds").get(last))
            .alias("stall_share"),
            pl.col("au").mean(),
            pl.col("au").get(last).alias("slowest_au"),
        )
    )
    per_step = (
        times.epochs.select([*keys, "step_read_seconds"])
        .drop_nulls("step_read_seconds")
        .with_columns(pl.int_ranges(pl.col("step_read_seconds").list.len()).alias("step"))
        .explode("step_read_seconds", "step")
        .group_by([*keys, "step"], maintain_order=True)  # or sums would differ in their last digit from call to call
        .agg(pl.col("step_read_seconds").max())
        .group_by(keys, maintain_order=True)
        .agg(pl.col("step_read_seconds").sum().alias("none"))
    )
    joined = longest.join(per_step, on=keys, how="left", nulls_equal=True)
    return {
        tuple(row[name] for name in keys): EpochFigures(
            row["epoch_seconds"],
            row["compute_seconds"],
            row["endless"],
            row["none"],
            row["checkpoint_seconds"],
            row["unstalled"],
            row["stall_share"],
            row["au"],
            row["slowest_au"],
        )
        for row in joined.iter_rows(named=True)
    }
