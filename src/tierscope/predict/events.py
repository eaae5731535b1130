"""Simulate an epoch with the discrete-event engine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierscope.errors import UserError
from tierscope.plan.permutation import IndexArray
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, stripes
from tierscope.predict.copies import copy_of
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

MOST_STEPS = 4_000_000  # of all ranks; beyond, steps are not kept


@dataclass(frozen=True, slots=True)
class Options:
    step_barrier: bool = False
    seed: int = 0


def simulate(study: Study, stations: Stations, reading: Reading, schedule: Schedule, options: Options) -> Outcome:
    reader, train, system = study.workload.reader, study.workload.train, study.system
    ranks, samples = schedule.shape
    threads, prefetch = (reader.read_threads, reader.prefetch_size) if reader.read_threads else (1, 0)
    batches = -(-samples // reader.batch_size)
    keep_steps = ranks * batches <= MOST_STEPS
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
    nothing = np.zeros((0, 0), np.bool_)
    if schedule.fetched is not None:  # what comes of it depends on who is first
        schedule = replace(schedule, tiers=schedule.tiers.copy(), fetched=schedule.fetched.copy())
    seconds, stall, busy, wall, steps, worked, served = engine()(
        schedule.tiers,
        schedule.files,
        schedule.opens,
        np.arange(ranks, dtype=np.int64) // system.ranks_per_node,
        np.zeros(ranks),
        np.random.default_rng(options.seed).permutation(ranks),  # all begin together: nobody is always first
        _queues(stations),
        np.array([(tier.metadata_latency, tier.latency) for tier in stations.tiers]),
        piece_bytes(stations, reading),
        stations.per_op,
        stations.per_byte,
        stations.variation,
        stations.sharing,
        1.0 - stations.background,
        reader.batch_size,
        threads,
        prefetch,
        train.computation_time,
        system.process_overhead,
        options.step_barrier,
        keep_steps,
        options.seed & 0xFFFFFFFF,
        nothing if schedule.fills is None else schedule.fills,
        nothing if schedule.fetched is None else schedule.fetched,
        np.zeros(0, np.int64) if schedule.window is None else schedule.window,
        copy.nbytes,
        copy.ops,
        first_stripes(stations, reading, schedule),
    )
    ops, nbytes = counted(schedule, len(stations.tiers), reading)
    return Outcome(
        seconds=seconds,
        stall=stall,
        compute=train.computation_time * batches,
        busy=busy,
        wall=wall,
        ops=ops,
        nbytes=nbytes,
        steps=steps if keep_steps else None,
        load=Load(seconds=worked, ops=served),
        copies=schedule.copies,
        samples=samples,
        payload_bytes=samples * study.workload.dataset.record_length_bytes,
        hit_rate=schedule.hit_rate(len(stations.tiers)),
    )


def engine() -> Any:
    try:
        from tierscope.predict.engine import run_epoch  # noqa: PLC0415  (numba is an extra, and slow to import)
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise UserError(
            "the event engine needs numba; pip install 'tierscope[predict]', or use --method bound"
        ) from None
    return run_epoch


def _queues(stations: Stations) -> Any:
    return np.array(
        [
            (
                tier.nodes_per_device,
                tier.nodes_per_gateway,
                tier.metadata,
                tier.metadata_servers,
                tier.servers_first,
                tier.servers,
                tier.node_link,
                tier.device_link,
                tier.gateway,
                tier.stripe_count,
            )
            for tier in stations.tiers
        ],
        np.int64,
    )


def piece_bytes(stations: Stations, reading: Reading) -> FloatArray:
    """Bytes by (tier, read of a sample, stripe)."""
    most = max(tier.stripe_count for tier in stations.tiers)
    found = np.zeros((len(stations.tiers), len(reading.pieces), most))
    for number, tier in enumerate(stations.tiers):
        for piece, (offset, nbytes) in enumerate(reading.pieces):
            found[number, piece, : tier.stripe_count] = stripes(offset, nbytes, tier.stripe_count, tier.stripe_size)
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
