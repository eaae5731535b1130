"""The columns of a trace's table. `record` says what a row is about: io, rank or cold."""

from typing import Any

import polars as pl

TraceRow = dict[str, Any]  # a row by column, before it is in a table

COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "record": pl.String,  # io, rank or cold
    "point": pl.Int32,
    "repetition": pl.Int32,
    "epoch": pl.Int32,
    "node": pl.Int32,
    "rank": pl.Int32,
    "lane": pl.Int32,
    "tier": pl.String,
    "kind": pl.String,
    "busy_seconds": pl.Float64,
    "wall_seconds": pl.Float64,
    "ops": pl.Int64,
    "bytes": pl.Int64,
    "size_histogram": pl.List(pl.Int64),
    "latency_histogram": pl.List(pl.Int64),
    "epoch_seconds": pl.Float64,
    "samples": pl.Int64,
    "payload_bytes": pl.Int64,
    "stall_seconds": pl.Float64,
    "compute_seconds": pl.Float64,
    "decode_seconds": pl.Float64,
    "preprocess_seconds": pl.Float64,
    "sync_seconds": pl.Float64,
    "checkpoint_seconds": pl.Float64,
    "copy_seconds": pl.Float64,
    "forward_seconds": pl.Float64,
    "backward_seconds": pl.Float64,
    "exchange_seconds": pl.Float64,
    "optimizer_seconds": pl.Float64,
    "limited_ops": pl.Int64,
    "late_ops": pl.Int64,
    "late_seconds": pl.Float64,
    "order_digest": pl.String,
    "steps_per_entry": pl.Int64,
    "step_read_seconds": pl.List(pl.Float64),
    "step_stall_seconds": pl.List(pl.Float64),
    "step_compute_seconds": pl.List(pl.Float64),
    "checked_bytes": pl.Int64,
    "resident_bytes": pl.Int64,
    "evict_seconds": pl.Float64,
}


PHASES = ("copy_seconds", "forward_seconds", "backward_seconds", "exchange_seconds", "optimizer_seconds")
LATER_COLUMNS = (
    "preprocess_seconds",
    "sync_seconds",
    "checkpoint_seconds",
    *PHASES,
    "evict_seconds",
)  # than the first runs of this schema
