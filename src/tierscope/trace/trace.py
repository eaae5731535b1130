"""The Trace: what happened in one run, as two tables and a description of where they come from.

`io` has a row per (epoch, node, rank, lane, tier, kind of operation) with busy and wall seconds, operations, bytes
and histograms; `ranks` has a row per (epoch, rank) with its times; `cold` says what was still cached. All are kept as
one Parquet table, told apart by the column `record`, so that a run is one file that any engine can read.

Schema history of the file
    1  first version; a description was a dictionary, and later columns may be missing
    2  a description is one of four kinds (trace/description.py): all that an import found is below `facts` or `logs`, what a recorder
       found below `records`, own cost is `own_cost`, and what is not known is null; read as ever is version 1 (trace/upgrade.py)
    3  own cost of a traced command may tell what stats and opens by path take longer
    4  an import shows files on no known tier as a tier, counts shared records and writes, and sums up by class what is apart; records of a traced
       command tell what re-reads say about its epochs; `coverage` of what was measured or traced: what the kernel counted beside what was seen
    5  a training's loader is named, with its workers; records of a traced command tell what worker processes of a loader did
    6  an import names the MPI programs of one job; coverage has writable mappings apart; a simulation has the spread of epochs and says whether its system
       was calibrated, a training has its device's memory
    7  a simulation says of which tiers the layout of files was drawn
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from tierscope.trace.columns import COLUMNS, PHASES, TraceRow
from tierscope.trace.description import Description
from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.rank_trace import RankEpoch, RankTrace
from tierscope.trace.recorder import LaneTable

SCHEMA_VERSION = 7


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """Which run of a study: the point's number in the sweep, and the repetition, counted from 1."""

    point: int
    repetition: int


@dataclass(frozen=True, slots=True)
class Trace:
    """`about` says where it comes from: the study and the point, provenance, our own cost, what it provides."""

    key: RunKey
    about: Description
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


def gather(key: RunKey, about: Description, tiers: list[str], ranks: list[RankTrace]) -> Trace:
    """One trace from what all ranks handed over."""
    rows: list[TraceRow] = []
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
            for resident in epoch.residency:
                cold = {
                    "tier": resident.tier,
                    "checked_bytes": resident.checked_bytes,
                    "resident_bytes": resident.resident_bytes,
                    "evict_seconds": resident.evict_seconds,
                }
                rows.append({**common, "record": "cold", **cold})
            for lane in epoch.lanes:
                rows += [{**common, "record": "io", **row} for row in lane_rows(lane, tiers)]
    return Trace(key, about, pl.DataFrame(rows, schema=COLUMNS))


def _rank_row(epoch: RankEpoch) -> TraceRow:
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


def lane_rows(lane: LaneTable, tiers: list[str]) -> list[TraceRow]:
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
