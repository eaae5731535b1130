"""A rank that is slower than all others, again and again: its node is the news, and not the storage that all share.

METHOD: a rank's own time is its epoch without waiting for others after steps. It is a straggler where in most epochs of all points and
repetitions it is the slowest and takes at least twice the median of the others. Chance picks another rank every time, and a
server that is slow for one rank's files another one in the next shuffle.
"""

import polars as pl

from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding

FACTOR = 2.0
MOST = 0.5  # of the epochs, and more
FEWEST_EPOCHS = 2
FEWEST_RANKS = 3
SHORTEST_SECONDS = 0.05  # that it is behind: shorter epochs are noise


def about_stragglers(times: ClassTimes) -> list[Finding]:
    if not any(about.get("kind") == "measured" for about in times.about):
        return []
    own = pl.col("epoch_seconds") - pl.col("sync_seconds").fill_null(0.0)
    ranks = times.epochs.drop_nulls(["epoch_seconds", "rank"]).with_columns(own=own)
    behind = _slowest(ranks, times.keys)
    if len(behind) < FEWEST_EPOCHS:
        return []
    late = behind.filter(
        pl.col("own") >= FACTOR * pl.col("others"), pl.col("own") - pl.col("others") >= SHORTEST_SECONDS
    )
    if late.is_empty():
        return []
    (rank, epochs) = late["rank"].value_counts(sort=True).row(0)
    if epochs <= MOST * len(behind):
        return []
    mine = late.filter(pl.col("rank") == rank)
    factor = (mine["own"] / mine["others"].clip(1e-9)).median()
    evidence = {
        "rank": int(rank),
        "node": int(mine["node"].mode().sort()[0]),
        "factor": float(factor),  # type: ignore[arg-type]
        "epochs": int(epochs),
        "of": len(behind),
    }
    return [Finding("straggler", evidence)]


def _slowest(ranks: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Of every epoch that enough ranks took part in: its slowest rank, and the median of the others."""
    ordered = ranks.sort([*keys, "own", "rank"], descending=[False] * len(keys) + [True, False], nulls_last=True)
    grouped = ordered.group_by(keys, maintain_order=True).agg(
        pl.len().alias("ranks"),
        pl.col("rank", "node", "own").first(),
        pl.col("own").slice(1).median().alias("others"),
    )
    return grouped.filter(pl.col("ranks") >= FEWEST_RANKS)
