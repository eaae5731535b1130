"""Measured epochs as cases to fit to: what a run's plan had every rank read and write, and how long that took."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from tierscope.analysis.breakdown import counted_epochs, sweep_text
from tierscope.errors import UserError
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches
from tierscope.plan.reading import reading_of
from tierscope.predict.case import Case
from tierscope.predict.events import saving_of
from tierscope.predict.rates import without_rates
from tierscope.predict.schedule import lay_out
from tierscope.spec.dump import identity
from tierscope.spec.study import Study
from tierscope.trace.ops import BACKGROUND_LANE, CATEGORY, CHECKPOINT_LANES
from tierscope.trace.trace import Trace

_PLACES = {"META": 0, "READ": 1, "WRITE": 2}


def cases_of_run(trace: Trace, study: Study, out: str) -> list[Case]:
    """Every counted epoch of a run; rates that the study configures are removed before anything looks. `out`: where it lies, among several."""
    bare = replace(study, system=without_rates(study.system))
    reading = reading_of(study)
    plan = Plan.of(bare, reading.file_bytes)
    caches = None if bare.placement.policy == "pinned" else Caches(bare, plan, reading.file_bytes)
    values = dict(trace.about.sweep)
    where = sweep_text(values)
    name = f"{out}: {where}" if out else where
    ranks = trace.ranks
    cases = []
    for epoch in sorted(counted_epochs(ranks["epoch"].to_list())):
        busy = _busy(trace, study, epoch)
        if not busy.any():
            raise UserError(
                f"{name or 'a run'}: its I/O took no time in epoch {epoch}, so rates cannot be fitted; use results with real reads"
            )
        reads = _busy(trace, study, epoch, reading_only=True)
        beside = _beside(ranks.filter(pl.col("epoch") == epoch), reads, study)
        schedule, saving = lay_out(bare, plan, epoch, caches), saving_of(bare, plan, epoch)
        if not reading.pieces:  # samples are made in memory
            schedule = replace(schedule, opens=np.zeros_like(schedule.opens))
        point = identity(bare)
        cases.append(Case(bare, reading, schedule, busy, beside, name=name, point=point, sweep=values, saving=saving))
    return cases


def _busy(trace: Trace, study: Study, epoch: int, reading_only: bool = False) -> Any:
    """By (rank, tier, kind), without what is written behind training; `reading_only`: without any checkpoint."""
    tiers = {tier.name: number for number, tier in enumerate(study.system.tiers)}
    busy = np.zeros((study.system.ranks, len(tiers), 3))
    apart = CHECKPOINT_LANES if reading_only else (BACKGROUND_LANE,)
    here = (pl.col("epoch") == epoch) & ~pl.col("lane").is_in(apart)
    rows = trace.io.filter(here).select("rank", "tier", "kind", "busy_seconds")
    for rank, tier, kind, seconds in rows.iter_rows():
        place = _PLACES.get(CATEGORY[kind])
        if place is not None and rank is not None:
            busy[rank, tiers[tier], place] += seconds
    return busy


def _beside(ranks: pl.DataFrame, busy: Any, study: Study) -> float:
    """Seconds per sample that a rank spent on neither I/O nor waiting for compute; where threads overlap, unknown: nothing."""
    reader, train = study.workload.reader, study.workload.train
    if reader.read_threads > 1 or train.computation_time or ranks["epoch_seconds"].null_count():
        return 0.0
    ordered = ranks.sort("rank")
    stood = ordered["checkpoint_seconds"].fill_null(0.0).to_numpy()
    rest = ordered["epoch_seconds"].to_numpy() - stood - busy.sum(axis=(1, 2))
    return max(0.0, float(np.median(rest / np.maximum(1, ordered["samples"].to_numpy()))))
