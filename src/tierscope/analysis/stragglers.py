"""A node or a rank that is slower than all others, again and again: it is the news, and not the storage that all share.

METHOD: a rank's own time is its epoch without waiting for others after steps; a node's, with several ranks, that of its fastest one.
Either is a straggler where in most epochs of all points and repetitions it is the slowest and takes at least twice the median of the
others. Chance picks another one every time, and a server that is slow for one rank's files another one in the next shuffle.
"""

import polars as pl

from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding
from tierscope.trace.description import Measured

FACTOR = 2.0
MOST = 0.5  # of the epochs, and more
FEWEST_EPOCHS = 2
FEWEST = 3  # ranks, or nodes: of two nobody knows which one is usual
SHORTEST_SECONDS = 0.05  # that it is behind: shorter epochs are noise


def about_stragglers(times: ClassTimes) -> list[Finding]:
    if not any(isinstance(about, Measured) for about in times.about):
        return []
    own = pl.col("epoch_seconds") - pl.col("sync_seconds").fill_null(0.0)
    ranks = times.epochs.drop_nulls(["epoch_seconds", "rank"]).with_columns(own=own)
    several = ranks.group_by([*times.keys, "node"]).agg(pl.col("own").min(), pl.len()).filter(pl.col("len") > 1)
    behind = _behind(several, times.keys, "node")
    if behind:
        return [Finding("straggling_node", behind)]
    behind = _behind(ranks, times.keys, "rank")
    if not behind:
        return []
    node = ranks.filter(pl.col("rank") == behind["rank"])["node"].mode().sort()[0]
    return [Finding("straggler", {**behind, "node": int(node)})]


def _behind(members: pl.DataFrame, keys: list[str], name: str) -> dict[str, int | float] | None:
    """Which of the ranks or nodes is behind, by how much, and how often; None: none of them, or not often."""
    slowest = _slowest(members, keys, name)
    late = slowest.filter(
        pl.col("own") >= FACTOR * pl.col("others"), pl.col("own") - pl.col("others") >= SHORTEST_SECONDS
    )
    if late.is_empty() or len(slowest) < FEWEST_EPOCHS:
        return None
    (which, epochs) = late[name].value_counts(sort=True).row(0)
    if epochs <= MOST * len(slowest):
        return None
    its = late.filter(pl.col(name) == which)
    factor = (its["own"] / its["others"].clip(1e-9)).median()
    return {name: int(which), "factor": float(factor), "epochs": int(epochs), "of": len(slowest)}  # type: ignore[arg-type]


def _slowest(members: pl.DataFrame, keys: list[str], name: str) -> pl.DataFrame:
    """Of every epoch that enough of them took part in: the slowest, and the median of the others."""
    ordered = members.sort([*keys, "own", name], descending=[False] * len(keys) + [True, False], nulls_last=True)
    grouped = ordered.group_by(keys, maintain_order=True).agg(
        pl.len().alias("members"),
        pl.col(name, "own").first(),
        pl.col("own").slice(1).median().alias("others"),
    )
    return grouped.filter(pl.col("members") >= FEWEST)
