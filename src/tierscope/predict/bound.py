"""Simulate an epoch without events: the bottleneck bound (demand.py), and mean values (mean_values.py) for what lies above it.

No process can be done before its own operations are, were it alone, and the last one not before the busiest station is: that is the bound.
Which class the time goes to, and what the stragglers still do when others are done, comes from mean values of a closed network.
"""

from dataclasses import replace

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations
from tierscope.predict.demand import Counts, copy_loads, least_seconds, loads
from tierscope.predict.drawn import load_of, shuffled
from tierscope.predict.events import counted, counted_by_readers
from tierscope.predict.mean_values import ClosedNetwork
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

_MOST_TAKEN = 0.99  # of a station's time
_HALVINGS = 5  # of the share that is fetched ahead in time
_KEEPS_UP = 0.01  # so much longer than readers fetchers may take


def simulate(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> Outcome:
    """The epoch of this very schedule; what varies from operation to operation is taken at its mean."""
    if schedule.fetched is not None:
        schedule = _in_time(study, stations, reading, schedule)
    ops, nbytes = counted(schedule, len(stations.tiers), reading)
    load = loads(study, stations, reading, schedule)
    busy, (seconds, stall, compute) = _readers(study, stations, reading, schedule)
    if schedule.fetched is not None:
        seconds = seconds * max(1.0, least_seconds(stations, load) / float(seconds.max()))
        stall = seconds - compute
    return Outcome(
        seconds=seconds,
        stall=stall,
        compute=compute,
        busy=busy,
        wall=busy / max(1, study.workload.reader.read_threads),
        ops=ops,
        nbytes=nbytes,
        steps=None,
        load=load,
        copies=schedule.copies,
        samples=schedule.shape[1],
        payload_bytes=schedule.shape[1] * study.workload.dataset.record_length_bytes,
        hit_rate=schedule.hit_rate(len(stations.tiers)),
    )


def simulate_drawn(study: Study, stations: Stations, reading: Reading, plan: Plan, seed: int) -> Outcome:
    """An epoch that is too large to lay out: how many of each rank's files are on which tier is drawn, as a global shuffle would deal them."""
    samples, ranks = plan.order.samples_per_rank, plan.ranks
    bounds = plan.placement.bounds
    shares = np.diff([0, *bounds]) / plan.placement.files
    rng = np.random.default_rng(seed)
    dealt = rng.multinomial(samples, shares, size=ranks)
    ops = np.stack([dealt, dealt * len(reading.pieces)], axis=2)
    nbytes = np.stack([np.zeros_like(dealt), dealt * reading.sample_bytes], axis=2)
    load = load_of(study, stations, reading, shuffled(ops, len(reading.pieces), rng), rng)
    network = ClosedNetwork(study, stations, reading)
    threads = max(1, study.workload.reader.read_threads)
    beside = _beside(study, samples)
    busy, rest = _drained(network, study, ops, samples)
    network.hold(busy, ops, load, beside + rest)
    seconds, stall, compute = _with_compute(study, samples, busy.sum(axis=(1, 2)) / threads + beside)
    return Outcome(
        seconds=seconds,
        stall=stall,
        compute=compute,
        busy=busy,
        wall=busy / threads,
        ops=ops,
        nbytes=nbytes,
        steps=None,
        load=load,
        samples=samples,
        payload_bytes=samples * study.workload.dataset.record_length_bytes,
        hit_rate=float(1 - shares[-1]),
    )


_Times = tuple[FloatArray, FloatArray, float]  # seconds, stall, compute


def _readers(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> tuple[FloatArray, _Times]:
    """Busy seconds of the readers, and what becomes of their epoch; they do not wait for copies, but share stations with them."""
    threads, samples = max(1, study.workload.reader.read_threads), schedule.shape[1]
    beside = _beside(study, samples)
    ops, _ = counted_by_readers(schedule, len(stations.tiers), reading)
    network = ClosedNetwork(study, stations, reading)
    busy, rest = _drained(network, study, ops, samples)
    load = loads(study, stations, reading, replace(schedule, fills=None, fetched=None))
    if schedule.copied is not None:
        copies = copy_loads(study, stations, reading, schedule)
        load = Load(seconds=load.seconds + np.where(load.ops > 0, copies.seconds, 0.0), ops=load.ops)
        around = max(least_seconds(stations, load), float(busy.sum(axis=(1, 2)).max()) / threads + beside)
        slowed = ClosedNetwork(study, _beside_others(stations, copies, around), reading)
        busy, rest = _drained(slowed, study, ops, samples)
    network.hold(busy, ops, load, beside + rest)
    return busy, _with_compute(study, samples, busy.sum(axis=(1, 2)) / threads + beside)


def _in_time(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> Schedule:
    """With as large a share of what may be fetched ahead as fetchers manage while readers read; the rest is read where it is.

    An upper bound of the epoch: where writing and reading the copies is what takes longest, readers overtake fetchers more often than that.
    """
    low, high = 0.0, 1.0
    share = 1.0
    for _ in range(_HALVINGS):
        tried = _thinned(schedule, share, len(stations.tiers) - 1)
        _, (seconds, _, _) = _readers(study, stations, reading, tried)
        if _fetching(study, stations, reading, tried) <= (1 + _KEEPS_UP) * float(seconds.max()):
            low = share
        else:
            high = share
        if low >= high:
            break
        share = (low + high) / 2
    return _thinned(schedule, low, len(stations.tiers) - 1)


def _thinned(schedule: Schedule, share: float, home: int) -> Schedule:
    """Every rank fetches this share of what it may fetch ahead, evenly spread."""
    assert schedule.fetched is not None
    number = schedule.fetched.cumsum(axis=1)
    kept = schedule.fetched & (np.floor(number * share) > np.floor((number - 1) * share))
    tiers = np.where(schedule.fetched & ~kept, home, schedule.tiers).astype(np.int8)
    return replace(schedule, tiers=tiers, fetched=kept if kept.any() else None)


def _fetching(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> float:
    """Seconds that the slowest rank's fetchers take, beside readers; a write takes as long as a read."""
    if schedule.fetched is None:
        return 0.0
    fetched = schedule.fetched.sum(axis=1)
    ops = np.zeros((len(fetched), len(stations.tiers), 2), np.int64)
    for tier in (0, len(stations.tiers) - 1):
        ops[:, tier, 0] = fetched
        ops[:, tier, 1] = fetched * len(reading.pieces)
    least = least_seconds(stations, loads(study, stations, reading, schedule))
    readers = loads(study, stations, reading, replace(schedule, fills=None, fetched=None))
    alone = replace(study, system=replace(study.system, process_overhead=0.0))
    busy = ClosedNetwork(alone, _beside_others(stations, readers, least), reading).drain(ops, 0.0)
    return max(least, float(busy.sum(axis=(1, 2)).max()) / max(1, study.workload.reader.read_threads))


def _beside_others(stations: Stations, others: Load, seconds: float) -> Stations:
    """The stations as they serve those who share them with this work, spread evenly over so many seconds."""
    if not seconds:
        return stations
    return replace(stations, background=np.minimum(_MOST_TAKEN, stations.background + others.seconds / seconds))


def _beside(study: Study, samples: int) -> float:
    """Seconds of an epoch that a reading thread spends on neither reading nor waiting for compute."""
    return study.system.process_overhead * samples / max(1, study.workload.reader.read_threads)


def _drained(network: ClosedNetwork, study: Study, ops: Counts, samples: int) -> tuple[FloatArray, float]:
    """Busy seconds, and those that a reading thread rests: while a step computes, where nothing is read ahead.

    Where it is, threads read whenever there is memory, and many at once; that they also rest then is not in it.
    """
    reader, beside = study.workload.reader, _beside(study, samples)
    compute = study.workload.train.computation_time * -(-samples // reader.batch_size)
    rest = compute if not (reader.prefetch_size and reader.read_threads) else 0.0
    return network.drain(ops, beside + rest), rest


def _with_compute(study: Study, samples: int, reads: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Reads ahead hide behind compute, all but those of the first batch; without reading ahead nothing hides."""
    reader, step = study.workload.reader, study.workload.train.computation_time
    batches = -(-samples // reader.batch_size)
    compute = step * batches
    ahead = reader.prefetch_size if reader.read_threads else 0
    if not compute or not ahead:
        return reads + compute, reads, compute
    seconds = np.maximum(reads + step, reads / batches + compute)
    return seconds, seconds - compute, compute
