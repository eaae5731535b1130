"""What importers hand over: sums of what every process of a job did, by epoch, tier and kind of operation.

META cannot always be told apart into open, close, stat and seek: then its kind is `meta`. Wall seconds are not known from any log, so they are null.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tierscope.analysis.merged_timeline import RankOperations
from tierscope.trace.described_logs import Habit, LogFacts
from tierscope.trace.description import DescribedTier, Imported
from tierscope.trace.trace import RunKey, Trace, completed

SUMS: dict[str, pl.DataType | type[pl.DataType]] = {
    "epoch": pl.Int32,
    "rank": pl.Int32,
    "tier": pl.String,
    "kind": pl.String,
    "busy_seconds": pl.Float64,
    "ops": pl.Int64,
    "bytes": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class ImportedEpoch:
    """A rank's epoch; None: not known."""

    rank: int
    epoch: int
    node: int = 0
    seconds: float | None = None
    compute_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GatheredLogs:
    """`sums` has the columns of SUMS; the rest goes into the trace's description, where findings look for it."""

    sums: pl.DataFrame
    ranks: list[ImportedEpoch]
    tiers: list[str]
    facts: LogFacts
    habits: dict[str, Habit] | None = None
    command: str = ""
    operations: tuple[RankOperations, ...] = ()  # when ranks did I/O, where that was asked for


def to_trace(gathered: GatheredLogs) -> Trace:
    """One run at one point, as if we had recorded it."""
    nodes = pl.DataFrame(
        [(epoch.rank, epoch.node) for epoch in gathered.ranks], {"rank": pl.Int32, "node": pl.Int32}, orient="row"
    ).unique("rank", keep="first", maintain_order=True)
    summed = (
        gathered.sums.group_by("epoch", "rank", "tier", "kind", maintain_order=True)
        .agg(pl.col("busy_seconds", "ops", "bytes").sum())
        .filter((pl.col("ops") > 0) | (pl.col("busy_seconds") != 0) | (pl.col("bytes") > 0))
        .join(nodes, on="rank", how="left")
        .with_columns(record=pl.lit("io"), lane=pl.lit(0, pl.Int32))
    )
    ranks = pl.DataFrame(
        {
            "record": ["rank"] * len(gathered.ranks),
            "epoch": [epoch.epoch for epoch in gathered.ranks],
            "rank": [epoch.rank for epoch in gathered.ranks],
            "node": [epoch.node for epoch in gathered.ranks],
            "epoch_seconds": [epoch.seconds for epoch in gathered.ranks],
            "compute_seconds": [epoch.compute_seconds for epoch in gathered.ranks],
        }
    )
    key = RunKey(0, 1)
    parts = [completed(part, key) for part in (ranks, summed)]
    about = Imported(
        tiers=tuple(DescribedTier(name=name) for name in gathered.tiers),
        command=gathered.command,
        facts=gathered.facts,
        habits=gathered.habits,
    )
    return Trace(key, about, pl.concat(parts))


def sums_of(rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), SUMS, orient="row")
