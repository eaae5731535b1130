"""The Trace: what happened in one run, as two tables and a description of where they come from.

`io` has a row per (epoch, node, rank, lane, tier, kind of operation) with busy and wall seconds, operations, bytes
and histograms; `ranks` has a row per (epoch, rank) with its times; `cold` says what was still cached. All are kept as
one Parquet table, told apart by the column `record`, so that a run is one file that any engine can read.

Schema history
    1  first version
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.rank_trace import RankEpoch, RankTrace
from tierscope.trace.recorder import LaneTable

SCHEMA_VERSION = 1

COLUMNS: dict[str, Any] = {
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
}


PHASES = ("copy_seconds", "forward_seconds", "backward_seconds", "exchange_seconds", "optimizer_seconds")
LATER_COLUMNS = (
    "preprocess_seconds",
    "sync_seconds",
    "checkpoint_seconds",
    *PHASES,
)  # than the first runs of this schema


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """Which run of a study: the point's number in the sweep, and the repetition, counted from 1."""

    point: int
    repetition: int


@dataclass(frozen=True, slots=True)
class Trace:
    """`about` is plain data (JSON): the resolved study, the point, provenance, our own overhead, what it provides."""

    key: RunKey
    about: dict[str, Any]
    table: pl.DataFrame

    @property
    def io(self) -> pl.DataFrame:
        return self.table.filter(pl.col("record") == "io")

    @property
    def ranks(self) -> pl.DataFrame:
        return self.table.filter(pl.col("record") == "rank")

    @property
    def cold(self) -> pl.DataFrame:
        return self.table.filter(pl.col("record") == "cold")


def completed(part: pl.DataFrame, key: RunKey) -> pl.DataFrame:
    """Rows that were not made by ranks of ours, with all columns of a trace: null where nothing is known, zero for counts of our own recorder."""
    known = {"point": key.point, "repetition": key.repetition, "limited_ops": 0, "late_ops": 0, "late_seconds": 0.0}
    return part.select(
        pl.col(name).cast(dtype) if name in part.columns else pl.lit(known.get(name), dtype).alias(name)
        for name, dtype in COLUMNS.items()
    )


def gather(key: RunKey, about: dict[str, Any], tiers: list[str], ranks: list[RankTrace]) -> Trace:
    """One trace from what all ranks handed over."""
    rows: list[dict[str, Any]] = []
    for rank in ranks:
        for epoch in rank.epochs:
            common = {
                "point": key.point,
                "repetition": key.repetition,
                "epoch": epoch.epoch,
                "node": rank.node,
                "rank": rank.rank,
            }
            rows.append({**common, "record": "rank", **_rank_row(epoch)})
            for found in epoch.residency:
                cold = {
                    "tier": found.tier,
                    "checked_bytes": found.checked_bytes,
                    "resident_bytes": found.resident_bytes,
                }
                rows.append({**common, "record": "cold", **cold})
            for lane in epoch.lanes:
                rows += [{**common, "record": "io", **row} for row in lane_rows(lane, tiers)]
    return Trace(key, about, pl.DataFrame(rows, schema=COLUMNS))


def _rank_row(epoch: RankEpoch) -> dict[str, Any]:
    read, stall, compute = epoch.steps.T.tolist()
    return {
        "epoch_seconds": epoch.seconds,
        "samples": epoch.samples,
        "payload_bytes": epoch.payload_bytes,
        "stall_seconds": epoch.stall_seconds,
        "compute_seconds": epoch.compute_seconds,
        "decode_seconds": epoch.decode_seconds,
        "preprocess_seconds": epoch.preprocess_seconds,
        "sync_seconds": epoch.sync_seconds,
        "checkpoint_seconds": epoch.checkpoint_seconds,
        **{name: getattr(epoch.phases, name) for name in PHASES},
        "limited_ops": epoch.limited_ops,
        "late_ops": epoch.late_ops,
        "late_seconds": epoch.late_seconds,
        "order_digest": epoch.order_digest,
        "steps_per_entry": epoch.steps_per_entry,
        "step_read_seconds": read,
        "step_stall_seconds": stall,
        "step_compute_seconds": compute,
    }


def lane_rows(lane: LaneTable, tiers: list[str]) -> list[dict[str, Any]]:
    rows = []
    for cell in np.flatnonzero(lane.ops).tolist():
        tier, kind = divmod(cell, len(KINDS))
        bins = slice(cell * BINS, (cell + 1) * BINS)
        rows.append(
            {
                "lane": lane.lane,
                "tier": tiers[tier],
                "kind": KINDS[kind],
                "busy_seconds": lane.busy_ns[cell] / 1e9,
                "wall_seconds": lane.wall_ns[cell] / 1e9,
                "ops": int(lane.ops[cell]),
                "bytes": int(lane.nbytes[cell]),
                "size_histogram": np.trim_zeros(lane.sizes[bins], "b").tolist(),
                "latency_histogram": np.trim_zeros(lane.latencies[bins], "b").tolist(),
            }
        )
    return rows
