"""How tiers are used, as far as the sums of a trace tell: opens, reads, their bytes and sizes in an epoch.

An importer that sees single files counts more (trace/imports). What sums cannot tell is None, not zero: how many files there are, which of them were
read again, what went through streams or jumped, on which servers files lie. Opens are None too where a log has one number for all metadata.
"""

import polars as pl

from tierscope.trace.described_logs import Habit


def habits_of(io: pl.DataFrame) -> dict[str, Habit]:
    """By tier, of the epoch in which most was opened and read there. `io` is a trace's."""
    ranked = io.drop_nulls("rank")
    reading, opening = pl.col("kind") == "read", pl.col("kind") == "open"
    busiest = (
        ranked.filter(reading | opening)
        .group_by("tier", "epoch")
        .agg(
            pl.col("ops").filter(opening).sum().alias("opens"),
            pl.col("ops").filter(reading).sum().alias("reads"),
            pl.col("bytes").filter(reading).sum().alias("read_bytes"),
        )
        .sort(pl.col("opens") + pl.col("reads"), "epoch", descending=[True, False])
        .unique("tier", keep="first", maintain_order=True)
    )
    without_opens = set(ranked.filter(pl.col("kind") == "meta")["tier"])
    habits: dict[str, Habit] = {}
    for tier, epoch, opens, reads, read_bytes in busiest.iter_rows():
        histograms = ranked.filter(reading & (pl.col("tier") == tier) & (pl.col("epoch") == epoch))["size_histogram"]
        habits[tier] = Habit(
            opens=None if tier in without_opens else opens,
            reads=reads,
            read_bytes=read_bytes,
            sizes=None if histograms.has_nulls() else _sizes(histograms),
        )
    return habits


def _sizes(histograms: pl.Series) -> tuple[tuple[int, int], ...]:
    """How many reads were smaller than each limit, and not smaller than the one before."""
    bins = pl.DataFrame(
        {"count": histograms, "bin": pl.select(pl.int_ranges(histograms.list.len())).to_series()}
    ).explode("count", "bin")
    summed = bins.drop_nulls().group_by("bin").agg(pl.col("count").sum()).sort("bin")
    return tuple((1 << number, count) for number, count in summed.rows())
