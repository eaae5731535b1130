"""When bytes were read and ranks computed: intervals spread over bins of time.

Epochs lie one after another, each as long as its longest rank: nodes' clocks are not compared, only distances from an epoch's start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

BINS = 120

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeBins:
    """Where epochs begin, and bins of equal width over all of them."""

    starts: dict[int, float]
    bin_seconds: float

    @classmethod
    def of(cls, lengths: Mapping[int, float]) -> "TimeBins | None":
        """None: no time passed."""
        starts, end = {}, 0.0
        for epoch in sorted(lengths):
            starts[epoch] = end
            end += lengths[epoch]
        return cls(starts, end / BINS) if end > 0 and np.isfinite(end) else None

    def spread(self, starts: Floats, ends: Floats, amounts: Floats) -> Floats:
        """Amounts by bin, each divided evenly over its interval; what lasts no time is in one bin."""
        width = self.bin_seconds
        low, high = (np.clip(places / width, 0.0, BINS) for places in (starts, ends))
        first, last = (np.minimum(places.astype(np.int64), BINS - 1) for places in (low, high))
        inside = first == last
        per_bin = np.bincount(first[inside], amounts[inside], BINS).astype(np.float64)
        low, high, first, last, amounts = (column[~inside] for column in (low, high, first, last, amounts))
        rate = amounts / (high - low)
        per_bin += np.bincount(first, rate * (first + 1 - low), BINS) + np.bincount(last, rate * (high - last), BINS)
        steps = np.bincount(first + 1, rate, BINS + 1) - np.bincount(last, rate, BINS + 1)
        whole = np.cumsum(steps)[:BINS]
        return np.asarray(per_bin + np.maximum(whole, 0.0), np.float64)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Compute and I/O over the same time, by bin. `basis`: operations, steps or epochs, whichever says when bytes came.

    `in_flight`, `computing` and `stalled` are numbers of operations and of ranks, on average; None: not known.
    """

    basis: str
    bin_seconds: float
    epoch_starts: dict[int, float]
    bytes_per_second: tuple[float, ...]
    in_flight: tuple[float, ...] | None = None
    computing: tuple[float, ...] | None = None
    stalled: tuple[float, ...] | None = None

    @property
    def seconds(self) -> float:
        return self.bin_seconds * len(self.bytes_per_second)


def loop_lengths(ranks: pl.DataFrame) -> dict[int, float]:
    """Seconds of every epoch's longest rank; without those that nobody knows."""
    known = ranks.drop_nulls("epoch_seconds").group_by("epoch").agg(pl.col("epoch_seconds").max())
    return {int(epoch): float(seconds) for epoch, seconds in known.iter_rows() if np.isfinite(seconds)}


@dataclass(frozen=True, slots=True)
class Loop:
    """What ranks did at which time, as far as their own loop tells."""

    basis: str
    moved: Floats
    computing: Floats | None
    stalled: Floats | None


def loop_over(axis: TimeBins, ranks: pl.DataFrame, moved: pl.DataFrame) -> Loop:
    """`moved`: bytes that each rank read, by epoch and rank.

    By steps where they are known: each has an equal part of its rank's bytes, and waits before it computes. Time that
    the steps do not tell (synchronisation, checkpoints) is divided over them. Else evenly over the epoch.
    """
    starts = pl.col("epoch").replace_strict(axis.starts, default=None, return_dtype=pl.Float64)
    rows = (
        ranks.drop("bytes")
        .join(moved, on=["epoch", "rank"], how="left")
        .with_columns(pl.col("bytes").fill_null(0).cast(pl.Float64), epoch_start=starts)
    )
    rows = rows.drop_nulls(["epoch_start", "epoch_seconds"])
    by_step = rows.filter(pl.col("step_stall_seconds").list.len().fill_null(0) > 0)
    stepped = len(by_step) == len(rows) > 0 and bool(_told(by_step).min() > 0)  # type: ignore[operator]
    entries = _steps(by_step) if stepped else _epochs(rows)
    start, computed, end = (entries[name].to_numpy() for name in ("start", "computed", "end"))
    stall, compute = entries["stall"], entries["compute"]
    return Loop(
        "steps" if stepped else "epochs",
        axis.spread(start, end, entries["bytes"].to_numpy()),
        None if compute.has_nulls() else axis.spread(computed, end, compute.to_numpy()),
        None if stall.has_nulls() else axis.spread(start, entries["stalled"].to_numpy(), stall.to_numpy()),
    )


def _told(rows: pl.DataFrame) -> pl.Series:
    """Seconds that a rank's steps tell."""
    return rows["step_stall_seconds"].list.sum() + rows["step_compute_seconds"].list.sum()


def _epochs(rows: pl.DataFrame) -> pl.DataFrame:
    end = pl.col("epoch_start") + pl.col("epoch_seconds")
    return rows.select(
        "bytes",
        start="epoch_start",
        stalled=end,
        computed="epoch_start",
        end=end,
        stall="stall_seconds",
        compute="compute_seconds",
    )


def _steps(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each entry of the lists; several steps in one are not told apart."""
    told = _told(rows)
    lists = rows.select(
        "epoch_start",
        "steps_per_entry",
        pl.col("bytes") / pl.col("step_stall_seconds").list.len(),
        (pl.col("epoch_seconds") / told).alias("stretch"),
        pl.col("step_stall_seconds").alias("stall"),
        pl.col("step_compute_seconds").alias("compute"),
        pl.int_range(pl.len()).alias("row"),
    ).explode("stall", "compute")
    long = pl.col("stretch") * (pl.col("stall") + pl.col("compute"))
    end = pl.col("epoch_start") + long.cum_sum().over("row")
    split = end - long + pl.col("stretch") * pl.col("stall")
    single = pl.col("steps_per_entry") == 1
    return lists.select(
        "bytes",
        "stall",
        "compute",
        start=end - long,
        stalled=pl.when(single).then(split).otherwise(end),
        computed=pl.when(single).then(split).otherwise(end - long),
        end=end,
    )
