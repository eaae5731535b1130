"""The clock of every rank in every epoch: how long the epoch was, how long it stood still for I/O, and what its accelerator utilisation is made of.

AU is DLIO's: compute seconds over seconds, both of the steps that count (the first one does not) and without checkpoints. Where a result does not
tell steps apart (`au_is_whole`), it is that of the whole epoch.
"""

import polars as pl

from tierscope.spec.dlio_making import MetricOptions

AU_PARTS = ("au_compute", "au_seconds", "au_stall")
_NEEDED = ("epoch_seconds", "stall_seconds", "compute_seconds")


def with_clocks(epochs: pl.DataFrame, wanted: MetricOptions = MetricOptions()) -> pl.DataFrame:  # noqa: B008  (frozen)
    """Rows of ranks with `standstill_seconds` (waiting for data, and for checkpoints) and what AU is made of; null: not known."""
    if epochs.is_empty() or AU_PARTS[0] in epochs.columns:
        return epochs
    checkpoints = pl.col("checkpoint_seconds").fill_null(0.0)
    computes, stalls = pl.col("step_compute_seconds"), pl.col("step_stall_seconds")
    per_entry = pl.col("steps_per_entry").fill_null(1)
    start, end = (
        (per_entry - 1 + steps) // per_entry for steps in (wanted.exclude_start_steps, wanted.exclude_end_steps)
    )
    count = computes.list.len().cast(pl.Int64) - start - end
    has_steps = (computes.list.len().fill_null(0) > 0) & (stalls.list.len().fill_null(0) > 0)
    counted = [column.list.slice(start, pl.max_horizontal(count, 0)).list.sum() for column in (computes, stalls)]
    outside = computes.list.sum() + stalls.list.sum() - counted[0] - counted[1]
    whole = (pl.col("compute_seconds"), pl.col("epoch_seconds") - checkpoints, pl.col("stall_seconds"))
    by_steps = (counted[0], pl.col("epoch_seconds") - checkpoints - outside, counted[1])
    parts = [
        pl.when(~has_steps).then(plain).when(count > 0).then(exact).alias(name)
        for name, plain, exact in zip(AU_PARTS, whole, by_steps, strict=True)
    ]
    standstill = (pl.col("stall_seconds") + checkpoints).alias("standstill_seconds")
    return epochs.with_columns(standstill, *parts, (~has_steps).alias("au_is_whole"))


def has_clocks(epochs: pl.DataFrame) -> bool:
    """Whether epoch and stall are known of every rank in every epoch."""
    return not epochs.is_empty() and not any(epochs[name].has_nulls() for name in _NEEDED[:2])


def has_compute(epochs: pl.DataFrame) -> bool:
    return not epochs.is_empty() and bool((epochs["compute_seconds"].fill_null(0.0) > 0).any())
