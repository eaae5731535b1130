"""Simulate an epoch with the discrete-event engine."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tierscope.errors import UserError
from tierscope.plan.permutation import IndexArray
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, TierQueues, stripes
from tierscope.plan.variation import log_parameters
from tierscope.predict.copies import copy_of
from tierscope.predict.engine.inputs import TIER, EpochTimes, LoaderInputs, Records, Requests, StartInputs, SystemInputs
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

MOST_PARTS = 1_000_000  # of one sample, on every tier
MOST_STEPS = 4_000_000  # of all ranks; beyond, steps are not kept


@dataclass(frozen=True, slots=True)
class EventOptions:
    step_barrier: bool = False
    seed: int = 0


def simulate(study: Study, stations: Stations, reading: Reading, schedule: Schedule, options: EventOptions) -> Outcome:
    train = study.workload.train
    samples = schedule.shape[1]
    if schedule.fetched is not None:  # what comes of it depends on who is first
        schedule = replace(schedule, tiers=schedule.tiers.copy(), fetched=schedule.fetched.copy())
    loader = _loader(study, schedule, options)
    result = times(study, stations, reading, schedule, options)
    ops, nbytes = counted(schedule, len(stations.tiers), reading)
    return Outcome(
        seconds=result.seconds,
        stall=result.stall,
        compute=train.computation_time * -(-samples // loader.batch),
        busy=result.busy,
        wall=result.wall,
        ops=ops,
        nbytes=nbytes,
        steps=result.steps if loader.keep_steps else None,
        load=Load(seconds=result.worked, ops=result.served),
        copies=schedule.copies,
        samples=samples,
        payload_bytes=samples * study.workload.dataset.record_length_bytes,
        hit_rate=schedule.hit_rate(len(stations.tiers)),
    )


def times(study: Study, stations: Stations, reading: Reading, schedule: Schedule, options: EventOptions) -> EpochTimes:
    """What the engine says, for those who simulate the same schedule many times; it is changed where files are fetched ahead."""
    found: EpochTimes = engine()(
        _requests(stations, reading, schedule),
        _start(study, schedule, options),
        _system(study, stations, reading),
        _loader(study, schedule, options),
    )
    return found


def engine() -> Any:
    try:
        from tierscope.predict.engine.loop import run_epoch  # noqa: PLC0415  (numba is an extra, and slow to import)
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise UserError(
            "the event engine needs numba; pip install 'tierscope[predict]', or use --method bound"
        ) from None
    return run_epoch


def _requests(stations: Stations, reading: Reading, schedule: Schedule) -> Requests:
    nothing = np.zeros((0, 0), np.bool_)
    return Requests(
        tiers=schedule.tiers,
        files=schedule.files,
        opens=schedule.opens,
        first_stripes=first_stripes(stations, reading, schedule),
        fills=nothing if schedule.fills is None else schedule.fills,
        fetched=nothing if schedule.fetched is None else schedule.fetched,
    )


def _start(study: Study, schedule: Schedule, options: EventOptions) -> StartInputs:
    """All ranks begin together: who is first depends on the seed, so that nobody always is."""
    ranks = schedule.shape[0]
    return StartInputs(
        nodes=np.arange(ranks, dtype=np.int64) // study.system.ranks_per_node,
        seconds=np.zeros(ranks),
        order=_order(ranks, options.seed).copy(),
        window=np.zeros(0, np.int64) if schedule.window is None else schedule.window,
    )


@lru_cache(maxsize=256)
def _order(ranks: int, seed: int) -> IndexArray:
    return np.random.default_rng(seed).permutation(ranks)


def _system(study: Study, stations: Stations, reading: Reading) -> SystemInputs:
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
    tiers, reads = len(stations.tiers), len(reading.pieces)
    nbytes, ops = np.empty((tiers, reads + 1, copy.nbytes.shape[1])), np.ones((tiers, reads + 1))
    nbytes[:, :reads], nbytes[:, reads], ops[:, reads] = piece_bytes(stations, reading), copy.nbytes, copy.ops
    log_mean, log_deviation = log_parameters(stations.variation)
    return SystemInputs(
        tiers=_tiers(stations.tiers),
        nbytes=nbytes,
        ops=ops,
        per_op=stations.per_op,
        per_byte=stations.per_byte,
        log_mean=log_mean,
        log_deviation=log_deviation,
        sharing=stations.sharing,
        speed=1.0 - stations.background,
    )


@lru_cache(maxsize=64)
def _tiers(tiers: tuple[TierQueues, ...]) -> Records:
    return np.array([tuple(getattr(tier, name) for name in TIER.fields or ()) for tier in tiers], TIER)


def _loader(study: Study, schedule: Schedule, options: EventOptions) -> LoaderInputs:
    reader = study.workload.reader
    ranks, samples = schedule.shape
    threads, prefetch = (reader.read_threads, reader.prefetch_size) if reader.read_threads else (1, 0)
    return LoaderInputs(
        batch=reader.batch_size,
        threads=threads,
        prefetch=prefetch,
        compute=float(study.workload.train.computation_time),
        overhead=float(study.system.process_overhead),
        step_barrier=options.step_barrier,
        keep_steps=ranks * -(-samples // reader.batch_size) <= MOST_STEPS,
        seed=options.seed & 0xFFFFFFFF,
    )


def piece_bytes(stations: Stations, reading: Reading) -> FloatArray:
    """Bytes by (tier, read of a sample, stripe); not to be changed."""
    return _piece_bytes(tuple((tier.stripe_count, tier.stripe_size) for tier in stations.tiers), reading)


@lru_cache(maxsize=8)
def _piece_bytes(layouts: tuple[tuple[int, int], ...], reading: Reading) -> FloatArray:
    most = max(count for count, _ in layouts)
    if (parts := most * len(reading.pieces)) > MOST_PARTS:
        raise UserError(
            f"workload.reader.transfer_size splits a sample into {len(reading.pieces):,} reads, and stripe_count each of them into "
            f"{most:,} parts: {parts:,} in all; more than {MOST_PARTS:,} are not simulated: raise transfer_size, or lower stripe_count"
        )
    found = np.zeros((len(layouts), len(reading.pieces), most))
    for number, (count, size) in enumerate(layouts):
        for piece, (offset, nbytes) in enumerate(reading.pieces):
            found[number, piece, :count] = stripes(offset, nbytes, count, size)
    found.flags.writeable = False
    return found


def first_stripes(stations: Stations, reading: Reading, schedule: Schedule) -> IndexArray:
    """On which stripe of its file each sample begins, seen from the first sample's; empty: all on that. From there it is split as the first is."""
    if schedule.inside is None:
        return np.zeros((0, 0), np.int64)
    sizes, counts = (
        np.array(some)[schedule.tiers]
        for some in zip(*((tier.stripe_size, tier.stripe_count) for tier in stations.tiers), strict=True)
    )
    first = reading.pieces[0][0]
    found: IndexArray = ((first + schedule.inside * reading.stride) // sizes - first // sizes) % counts
    return found


def counted(schedule: Schedule, tiers: int, reading: Reading) -> tuple[Any, Any]:
    """Operations and bytes of every (rank, tier, kind); those of fetching ahead are its rank's, those of copying behind its back are nobody's."""
    ops, nbytes = counted_by_readers(schedule, tiers, reading)
    if schedule.fetched is not None:
        fetched = schedule.fetched.sum(axis=1)
        ops[:, -1, 0] += fetched
        ops[:, -1, 1] += fetched * len(reading.pieces)
        nbytes[:, -1, 1] += fetched * reading.sample_bytes
    return ops, nbytes


def counted_by_readers(schedule: Schedule, tiers: int, reading: Reading) -> tuple[Any, Any]:
    ranks, _ = schedule.shape
    ops = np.zeros((ranks, tiers, 2), np.int64)
    nbytes = np.zeros_like(ops)
    for tier in range(tiers):
        here = schedule.tiers == tier
        ops[:, tier, 0] = (here & schedule.opens).sum(axis=1)
        samples = here.sum(axis=1)
        ops[:, tier, 1] = samples * len(reading.pieces)
        nbytes[:, tier, 1] = samples * reading.sample_bytes
    return ops, nbytes
