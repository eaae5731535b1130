"""How much I/O is hidden behind compute.

Of one rank in one epoch, with W the wall seconds of its reads and metadata (instants in which at least one was under way) and S the seconds that its
training loop stood still for data:

    hidden = 1 − S / W, within 0 and 1, if it computed; 0, if it did not: then there was nothing to hide behind

S also holds what a loader does to data after it was read, so this is no more than what was hidden. Null where compute, S or W is not known or W is
0. Over ranks and epochs: all hidden seconds over all W. The slowest rank of an epoch is the one with most busy seconds of I/O, as everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tierscope.trace.ops import CATEGORY, LOADING
from tierscope.trace.trace import Trace

BASIS = "1 − stall ÷ I/O wall seconds"
IO_KINDS = [kind for kind, category in CATEGORY.items() if category in LOADING]


@dataclass(frozen=True, slots=True)
class RankHidden:
    epoch: int
    rank: int
    io_wall_seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Hidden:
    """`share` is None where `reason` says why. `slowest`: of every epoch. Epoch 0: not told apart."""

    share: float | None
    reason: str = ""
    by_rank: tuple[RankHidden, ...] = ()
    slowest: tuple[RankHidden, ...] = ()
    basis: str = BASIS

    @property
    def slowest_share(self) -> float | None:
        return weighted(self.slowest)


def hidden_of(trace: Trace) -> Hidden:
    io = (
        trace.io.drop_nulls("rank")
        .filter(pl.col("kind").is_in(IO_KINDS))
        .group_by("epoch", "rank")
        .agg(
            pl.col("busy_seconds").sum(),
            pl.when(pl.col("wall_seconds").has_nulls())
            .then(None)
            .otherwise(pl.col("wall_seconds").sum())
            .alias("wall"),
        )
    )
    loop = trace.ranks.select("epoch", "rank", "compute_seconds", "stall_seconds")
    rows = loop.join(io, on=["epoch", "rank"]).filter(pl.col("busy_seconds") > 0).sort("epoch", "rank")
    if reason := _reason(rows):
        return Hidden(None, reason)
    computed = pl.col("compute_seconds") > 0
    share = pl.when(computed).then((1 - pl.col("stall_seconds") / pl.col("wall")).clip(0.0, 1.0)).otherwise(0.0)
    known = rows.filter(pl.col("wall") > 0).with_columns(share=share)
    slowest = known.sort("epoch", "busy_seconds", "rank", descending=[False, True, False]).unique(
        "epoch", keep="first", maintain_order=True
    )
    by_rank = _rows(known)
    return Hidden(weighted(by_rank), "", by_rank, _rows(slowest))


def _reason(rows: pl.DataFrame) -> str:
    if rows.is_empty():
        return "no I/O was recorded"
    if rows["compute_seconds"].has_nulls():
        return "it has no compute times"
    if rows["stall_seconds"].has_nulls():
        return "it has no stall times"
    if rows["wall"].has_nulls():
        return "it has no wall seconds of I/O, so overlapping operations cannot be distinguished"
    return "" if rows["wall"].sum() > 0 else "I/O took no time"


def _rows(table: pl.DataFrame) -> tuple[RankHidden, ...]:
    return tuple(RankHidden(*row) for row in table.select("epoch", "rank", "wall", "share").iter_rows())


def weighted(rows: Sequence[RankHidden]) -> float | None:
    """The share of all of them; None: they did no I/O."""
    whole = sum(row.io_wall_seconds for row in rows)
    return sum(row.share * row.io_wall_seconds for row in rows) / whole if whole > 0 else None
