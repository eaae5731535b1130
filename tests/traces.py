"""Traces and class times made by hand: known seconds in, so that a test knows what must come out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tierscope.analysis.times import ClassTimes
from tierscope.trace.columns import COLUMNS
from tierscope.trace.decode import decode_description
from tierscope.trace.described_logs import DFTracerJob, LogFacts
from tierscope.trace.description import (
    CheckpointSummary,
    DescribedTier,
    Description,
    Imported,
    Measured,
    ProfiledLogs,
    Simulated,
    Traced,
    TrainingSummary,
)
from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.rank_trace import RankEpoch, RankTrace
from tierscope.trace.recorder import LaneTable
from tierscope.trace.trace import RunKey, Trace, gather

TIERS = ["lfs", "gfs"]  # nearest first, as in a study
CLASSES = ("GFS-READ", "GFS-META", "LFS-READ", "LFS-META")
WITH_WRITES = (*CLASSES, "GFS-WRITE")
KIND_OF = {"READ": "read", "META": "open", "WRITE": "write"}
OP_BYTES = 100  # of each read and write below
RANKS_PER_NODE = 2

Cell = tuple[str, str]  # tier, kind


def empty_lane(number: int = 0, tiers: int = len(TIERS)) -> LaneTable:
    cells = tiers * len(KINDS)
    sums = (np.zeros(cells, np.int64) for _ in range(4))
    histograms = (np.zeros(cells * BINS, np.int64) for _ in range(2))
    return LaneTable(number, *sums, *histograms)


def lane_of(busy_seconds: Mapping[Cell, float], number: int = 0, wall_share: float = 1.0) -> LaneTable:
    """One operation in each of the given cells."""
    table = empty_lane(number)
    for (tier, kind), seconds in busy_seconds.items():
        cell = TIERS.index(tier) * len(KINDS) + KINDS.index(kind)
        table.ops[cell] = 1
        table.nbytes[cell] = OP_BYTES if kind in ("read", "write") else 0
        table.busy_ns[cell] = round(seconds * 1e9)
        table.wall_ns[cell] = round(seconds * wall_share * 1e9)
        table.sizes[cell * BINS + int(table.nbytes[cell]).bit_length()] = 1
        table.latencies[cell * BINS + int(table.busy_ns[cell]).bit_length()] = 1
    return table


def rank_epoch(epoch: int = 1, **changes: Any) -> RankEpoch:
    plain: dict[str, Any] = {
        "epoch": epoch,
        "seconds": 10.0,
        "samples": 100,
        "payload_bytes": 100 * OP_BYTES,
        "stall_seconds": 9.0,
        "compute_seconds": 0.0,
        "decode_seconds": 0.0,
        "limited_ops": 0,
        "late_ops": 0,
        "late_seconds": 0.0,
        "order_digest": "0" * 32,
        "steps_per_entry": 1,
        "steps": np.zeros((0, 3)),
        "lanes": (),
        "residency": (),
    }
    return RankEpoch(**{**plain, **changes})


def described_by(plain: Mapping[str, Any]) -> Description:
    """A description from the keys of schema version 1, as far as they matter to a test: what is missing has its default."""
    of_kind: dict[str, Any] = {"spread": {}} if plain.get("kind") == "simulated" else {}
    return decode_description({"schema_version": 1, **of_kind, **plain}, "mend it")


def nothing_simulated() -> Simulated:
    """The description of a simulation, to be given a table."""
    tiers = tuple(DescribedTier(name=name) for name in TIERS)
    return Simulated(study=None, point=0, sweep={}, tiers=tiers, method="bound", spread={})


def trace_of(
    classes: Mapping[tuple[int, int], Mapping[str, float]],
    *,
    point: int = 0,
    repetition: int = 1,
    sweep: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] | None = None,
    wall_share: float = 1.0,
    **changes: Any,
) -> Trace:
    """(rank, epoch) → class → busy seconds, as one operation each. `about`: see `described_by`. `changes` go to every RankEpoch.

    Nothing about it is remarkable: it gives no finding.
    """
    ranks: dict[int, list[RankEpoch]] = {}
    for (rank, epoch), seconds in classes.items():
        cells = {(name[:3].lower(), KIND_OF[name[4:]]): value for name, value in seconds.items()}
        lanes = (lane_of(cells, wall_share=wall_share),)
        ranks.setdefault(rank, []).append(rank_epoch(epoch, **{"lanes": lanes, **changes}))
    whole = {
        "sweep": dict(sweep or {}),
        "tiers": [{"name": tier, "emulated": False} for tier in TIERS],
        "point": point,
        "trimmed_samples": 0,
        "compute": "none",
        "metadata_cache": "cold",
        "overhead": {"harness_seconds_per_sample": 0.0},
        **(about or {}),
    }
    handed = [RankTrace(rank, rank // RANKS_PER_NODE, tuple(epochs)) for rank, epochs in ranks.items()]
    return gather(RunKey(point, repetition), described_by(whole), TIERS, handed)


LOOP = (
    *("epoch_seconds", "samples", "payload_bytes", "stall_seconds", "compute_seconds", "decode_seconds"),
    *("order_digest", "steps_per_entry", "step_read_seconds", "step_stall_seconds", "step_compute_seconds"),
)


def without_loop(trace: Trace) -> Trace:
    """The same from somebody who did not see the program's loop: no epoch times, samples or steps."""
    nothing = [pl.lit(None, COLUMNS[name]).alias(name) for name in LOOP]
    return Trace(trace.key, trace.about, trace.table.with_columns(nothing))


def traced(**changes: Any) -> dict[str, Any]:
    """The description (see `described_by`) of a traced command of which there is nothing to say."""
    plain = {
        "kind": "traced",
        "command": ["python", "train.py"],
        "exit_code": 0,
        "marked": True,
        "span_seconds": 3.0,
        "tiers": [{"name": tier, "emulated": False, "prefixes": [f"/{tier}"]} for tier in TIERS],
        "mapped": {},
        "damaged_files": [],
        "overhead": {"recorder_seconds_per_op": None},
    }
    return {**plain, **changes}


def times_of(
    rows: Sequence[Mapping[str, Any]], sweep: Sequence[str] = (), classes: Sequence[str] = CLASSES
) -> ClassTimes:
    """Class times as from a CSV. A row needs rank, class, seconds and the swept values; the rest has defaults."""
    plain = {"repetition": 1, "epoch": 1, "node": None, "ops": None, "bytes": None}
    order = [*sweep, "repetition", "epoch", "node", "rank", "class", "seconds", "ops", "bytes"]
    whole = {"node": pl.Int64, "ops": pl.Int64, "bytes": pl.Int64, "seconds": pl.Float64}
    table = pl.DataFrame([{**plain, **row} for row in rows], schema_overrides=whole).select(order)
    return ClassTimes(table, pl.DataFrame(), tuple(sweep), tuple(classes), "busy")


def as_measured(trace: Trace) -> Measured:
    assert isinstance(trace.about, Measured)
    return trace.about


def as_simulated(trace: Trace) -> Simulated:
    assert isinstance(trace.about, Simulated)
    return trace.about


def as_traced(trace: Trace) -> Traced:
    assert isinstance(trace.about, Traced)
    return trace.about


def as_imported(trace: Trace) -> Imported:
    assert isinstance(trace.about, Imported)
    return trace.about


def dftracer_job(facts: LogFacts) -> DFTracerJob:
    assert facts.dftracer is not None
    return facts.dftracer


def profiled_logs(trace: Trace) -> ProfiledLogs:
    logs = as_measured(trace).logs
    assert logs is not None
    return logs


def training_of(trace: Trace) -> TrainingSummary:
    assert trace.about.training is not None
    return trace.about.training


def checkpoint_of(trace: Trace) -> CheckpointSummary:
    assert trace.about.checkpoint is not None
    return trace.about.checkpoint


def rate_of(trace: Trace) -> float:
    rate = trace.about.sweep["cache_rate"]
    assert isinstance(rate, float)
    return rate
