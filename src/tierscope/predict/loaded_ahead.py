"""Simulate `read_ahead: all`: before the first step of the first epoch every rank reads whatever it may ever read; then nobody reads any more."""

from dataclasses import replace

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.stations import Stations
from tierscope.predict.client import mean_step_seconds
from tierscope.predict.events import MOST_STEPS
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.spec.study import Checkpoint, Statistics, Study


def loading_study(study: Study, plan: Plan) -> Study:
    """One epoch that reads what ranks load, as they do: in order, without a step between."""
    workload, everything = study.workload, plan.order.group_ranks == plan.ranks
    reader = replace(
        workload.reader,
        read_ahead="batches",
        shuffle="off" if everything else workload.reader.shuffle,
        file_access="shared",
        sample_shuffle="off",
        rank_reads="all" if everything else "share",
    )
    train = replace(workload.train, epochs=1, computation_time=0.0, total_training_steps=None)
    dataset = replace(workload.dataset, statistics=Statistics())
    workload = replace(workload, dataset=dataset, reader=reader, train=train, checkpoint=Checkpoint())
    system = replace(study.system, step_overhead=0.0, step_jitter=0.0)
    return replace(study, workload=workload, system=system)


def in_step(plan: Plan) -> Plan:
    """Every rank loads from the first sample on."""
    return replace(plan, order=replace(plan.order, staggered=False))


def with_steps(study: Study, plan: Plan, loaded: Outcome) -> Outcome:
    """The first epoch: what was loaded, and its steps behind that."""
    steps, step = plan.steps, mean_step_seconds(study)
    compute = study.workload.train.computation_time * steps
    seconds = loaded.seconds + step * steps
    return replace(
        loaded,
        seconds=seconds,
        stall=seconds - compute,
        compute=compute,
        steps=_steps(study, plan, loaded.seconds),
        first_batch=loaded.seconds,
        samples=plan.order.samples_per_rank,
        payload_bytes=plan.order.samples_per_rank * study.workload.dataset.record_length_bytes,
    )


def without_reads(study: Study, plan: Plan, stations: Stations) -> Outcome:
    """All later epochs: steps."""
    ranks, tiers = plan.ranks, len(stations.tiers)
    idle = Load(seconds=np.zeros(stations.count), ops=np.zeros(stations.count, np.int64))
    nothing = np.zeros((ranks, tiers, 3))
    none = np.zeros((ranks, tiers, 3), np.int64)
    outcome = Outcome(
        seconds=np.full(ranks, study.system.startup_time),
        stall=np.zeros(ranks),
        compute=0.0,
        busy=nothing,
        wall=nothing.copy(),
        ops=none,
        nbytes=none.copy(),
        steps=None,
        load=idle,
    )
    return with_steps(study, plan, outcome)


def _steps(study: Study, plan: Plan, loading: FloatArray) -> FloatArray | None:
    if plan.ranks * plan.steps > MOST_STEPS:
        return None
    steps = np.zeros((plan.ranks, plan.steps, 3))
    steps[:, :, 1] = mean_step_seconds(study) - study.workload.train.computation_time
    steps[:, :, 2] = study.workload.train.computation_time
    steps[:, 0, 0] = loading
    steps[:, 0, 1] += loading
    return steps
