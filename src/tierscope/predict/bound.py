"""Simulate an epoch without events: the bottleneck bound (demand.py), and mean values (mean_values.py) for what lies above it.

No process can be done before its own operations are if it ran alone, and the last one not before the busiest station is: that is the bound.
Which class the time goes to, and what the stragglers still do when others are done, comes from mean values of a closed network.
"""

from dataclasses import replace

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations
from tierscope.predict.client import batches_ahead, mean_step_seconds, whole_batches
from tierscope.predict.copies import copy_of
from tierscope.predict.demand import Counts, copy_loads, least_seconds, loads, station_seconds
from tierscope.predict.drawn import load_of, shuffled
from tierscope.predict.events import Saving, counted, counted_by_readers, readers_copy
from tierscope.predict.mean_values import ClosedNetwork
from tierscope.predict.outcome import FloatArray, Load, Outcome, three_kinds
from tierscope.predict.saved_epoch import beside_saves, with_saves
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

_MOST_TAKEN = 0.99  # of a station's time
_HALVINGS = 5  # of the share that is fetched ahead in time
_MOSTLY_FILLED = 0.95  # of all copies
_KEEPS_UP = 0.01  # so much longer than readers fetchers may take


def simulate(
    study: Study, stations: Stations, reading: Reading, schedule: Schedule, saving: Saving | None = None
) -> Outcome:
    """The epoch of this very schedule; what varies from operation to operation is taken at its mean."""
    if schedule.fetched is not None:
        schedule = _in_time(study, stations, reading, schedule)
    ops, nbytes = counted(study, stations, reading, schedule)
    load = loads(study, stations, reading, schedule)
    busy, (seconds, stall, compute) = _readers(study, stations, reading, schedule)
    threads, beside = max(1, study.workload.reader.read_threads), beside_reads(study, schedule.shape[1])
    startup = study.system.startup_time
    if saving is not None and (served := beside_saves(study, stations, saving, float(seconds.max()))) is not stations:
        busy, (seconds, stall, compute) = _readers(study, served, reading, schedule)
    if schedule.fetched is not None:
        seconds = seconds * max(1.0, least_seconds(stations, load) / float(seconds.max()))
        stall = seconds - compute
    busy = three_kinds(busy)
    plain = Outcome(
        seconds=seconds,
        stall=stall,
        compute=compute,
        busy=busy,
        wall=busy / threads,
        ops=ops,
        nbytes=nbytes,
        steps=None,
        load=load,
        copies=schedule.copies,
        samples=schedule.shape[1],
        payload_bytes=schedule.shape[1] * study.workload.dataset.record_length_bytes,
        hit_rate=schedule.hit_rate(len(stations.tiers)),
        first_batch=_first_batch(study, schedule.shape[1], busy.sum(axis=(1, 2)) / threads + beside) + startup,
    )
    return plain if saving is None else with_saves(study, stations, plain, saving)


def simulate_drawn(
    study: Study, stations: Stations, reading: Reading, plan: Plan, seed: int, saving: Saving | None = None
) -> Outcome:
    """An epoch that is too large to lay out: how many of each rank's files are on which tier is drawn, as a global shuffle would deal them."""
    samples, ranks = plan.order.samples_per_rank, plan.ranks
    shares = np.diff([0, *plan.placement.bounds]) / plan.placement.files
    rng = np.random.default_rng(seed)
    dealt = rng.multinomial(samples, shares, size=ranks)
    reads = np.rint(dealt * reading.reads_per_sample).astype(np.int64)
    ops = np.stack([dealt * bool(reading.pieces), reads], axis=2)
    nbytes = np.stack([np.zeros_like(dealt), dealt * reading.sample_bytes], axis=2)
    outcome = simulate_counts(study, stations, reading, (ops, nbytes, samples), rng, saving)
    outcome = replace(outcome, hit_rate=float(1 - shares[-1]))
    return outcome if saving is None else with_saves(study, stations, outcome, saving)


def simulate_counts(
    study: Study,
    stations: Stations,
    reading: Reading,
    counts: "DrawnCounts",
    rng: np.random.Generator,
    saving: Saving | None = None,
) -> Outcome:
    """Of operations and bytes by (rank, tier, kind) and a rank's samples, whoever counted them: which files they read is drawn.

    `saving`: goes on beside it, and is not in the outcome.
    """
    ops, nbytes, samples = counts
    load = load_of(study, stations, reading, shuffled(ops, len(reading.pieces), rng), rng)
    served = stations if saving is None else beside_saves(study, stations, saving, _around(study, stations, load))
    network = ClosedNetwork(study, served, reading)
    threads = max(1, study.workload.reader.read_threads)
    beside = beside_reads(study, samples)
    busy, rest = _drained(network, study, ops, samples)
    busy = _begun_with_stock(served, load, busy, threads, beside + rest)
    network.hold(busy, ops, load, beside + rest)
    seconds, stall, compute = _with_compute(study, samples, busy.sum(axis=(1, 2)) / threads + beside)
    busy = three_kinds(busy)
    return Outcome(
        seconds=seconds,
        stall=stall,
        compute=compute,
        busy=busy,
        wall=busy / threads,
        ops=three_kinds(ops),
        nbytes=three_kinds(nbytes),
        steps=None,
        load=load,
        samples=samples,
        payload_bytes=samples * study.workload.dataset.record_length_bytes,
        first_batch=_first_batch(study, samples, busy.sum(axis=(1, 2)) / threads + beside) + study.system.startup_time,
    )


DrawnCounts = tuple[Counts, Counts, int]  # operations and bytes by (rank, tier, kind), and a rank's samples
_Times = tuple[FloatArray, FloatArray, float]  # seconds, stall, compute


def _readers(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> tuple[FloatArray, _Times]:
    """Busy seconds of the readers, and what becomes of their epoch; they do not wait for others' copies, but share stations with them.

    Readers that copy do so first, until there is no more room: that and what comes after are two epochs in one.
    """
    samples = schedule.shape[1]
    first, *later = _filled_and_full(study, schedule)
    busy = _reading(study, stations, reading, first)
    for part in later:
        busy = busy + _reading(study, stations.with_stock(0.0), reading, part)
    threads, beside = max(1, study.workload.reader.read_threads), beside_reads(study, samples)
    return busy, _with_compute(study, samples, busy.sum(axis=(1, 2)) / threads + beside)


def _filled_and_full(study: Study, schedule: Schedule) -> list[Schedule]:
    """While readers copy most of their files, and when they hardly do any more; one schedule where that is all the same."""
    if schedule.fills is None or not readers_copy(study) or not schedule.fills.any():
        return [schedule]
    done = np.cumsum(schedule.fills.sum(axis=0))
    end = 1 + int(np.searchsorted(done, _MOSTLY_FILLED * done[-1]))
    samples = schedule.shape[1]
    return [schedule] if end > _MOSTLY_FILLED * samples else [schedule.some(0, end), schedule.some(end, samples)]


def _reading(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> FloatArray:
    """Busy seconds of the readers."""
    threads, samples = max(1, study.workload.reader.read_threads), schedule.shape[1]
    beside = beside_reads(study, samples)
    copying = schedule.fills is not None and readers_copy(study)
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes) if copying else None
    ops, _ = counted_by_readers(study, stations, reading, schedule)
    ops = ops if copying else ops[:, :, :2]
    network = ClosedNetwork(study, stations, reading, copy)
    busy, rest = _drained(network, study, ops, samples)
    mine = schedule if copying else replace(schedule, fills=None, fetched=None)
    load = loads(study, stations, reading, mine)
    if schedule.copied is not None and not copying:
        copies = copy_loads(study, stations, reading, schedule)
        load = Load(seconds=load.seconds + np.where(load.ops > 0, copies.seconds, 0.0), ops=load.ops)
        around = max(least_seconds(stations, load), float(busy.sum(axis=(1, 2)).max()) / threads + beside)
        slowed = ClosedNetwork(study, _beside_others(stations, copies, around), reading)
        busy, rest = _drained(slowed, study, ops, samples)
    busy = _begun_with_stock(stations, load, busy, threads, beside + rest)
    network.hold(busy, ops, load, beside + rest)
    return busy


def _begun_with_stock(stations: Stations, load: Load, busy: FloatArray, threads: int, beside: float) -> FloatArray:
    """Less what servers make up for once, at the beginning: all of it where they are what takes longest, as they work at least.

    Mean values know only what idle servers make up for again and again.
    """
    if not stations.stock.any():
        return busy
    worked, left = (station_seconds(some, load) for some in (stations.with_stock(0.0), stations))
    longest = int(busy.sum(axis=(1, 2)).argmax())
    around = float(busy[longest].sum()) / threads + beside
    remaining = busy.copy()
    for number, queues in enumerate(stations.tiers):
        own, here = float(busy[longest, number].sum()) / threads, stations.from_first(queues.servers_first)
        if own and around and len(worked[here]):
            most = float(worked[here].max())
            gained = (most - float(left[here].max())) * min(1.0, most / around)
            remaining[:, number] *= max(0.0, 1 - gained / own)
    return remaining


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
    """Seconds that the slowest rank's fetchers take, beside readers; here a write takes as long as a read."""
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


def _around(study: Study, stations: Stations, load: Load) -> float:
    """About how long an epoch is."""
    reader = study.workload.reader
    samples = study.workload.dataset.samples // study.system.ranks
    compute = study.workload.train.computation_time * -(-samples // reader.batch_size)
    return max(compute, least_seconds(stations, load))


def _beside_others(stations: Stations, others: Load, seconds: float) -> Stations:
    """The stations as they serve those who share them with this work, spread evenly over so many seconds."""
    if not seconds:
        return stations
    return replace(stations, background=np.minimum(_MOST_TAKEN, stations.background + others.seconds / seconds))


def beside_reads(study: Study, samples: int) -> float:
    """Seconds of an epoch that a reading thread spends on neither reading nor waiting for compute."""
    return study.system.process_overhead * samples / max(1, study.workload.reader.read_threads)


def _drained(network: ClosedNetwork, study: Study, ops: Counts, samples: int) -> tuple[FloatArray, float]:
    """Busy seconds, and those that a reading thread rests: while a step computes, where nothing is read ahead.

    Where it is, threads read whenever there is memory, and many at once; that they also rest then is not in it.
    """
    reader, beside = study.workload.reader, beside_reads(study, samples)
    compute = mean_step_seconds(study) * -(-samples // reader.batch_size)
    rest = compute if not batches_ahead(study) else 0.0
    return network.drain(ops, beside + rest), rest


def _with_compute(study: Study, samples: int, reads: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Reads ahead hide behind compute, all but those of the first batch; without reading ahead nothing hides."""
    reader, step, startup = study.workload.reader, mean_step_seconds(study), study.system.startup_time
    batches = -(-samples // reader.batch_size)
    compute = study.workload.train.computation_time * batches
    ahead = batches_ahead(study)
    if not step or not ahead:
        seconds = reads + step * batches + startup
    else:
        seconds = np.maximum(reads + step, _first_batch(study, samples, reads) + step * batches) + startup
    return seconds, seconds - compute, compute


def _first_batch(study: Study, samples: int, reads: FloatArray) -> FloatArray:
    """Until a rank's first batch is there, once it reads: all threads read it, or one does beside others that read the next ones."""
    batches = -(-samples // study.workload.reader.batch_size)
    at_once = min(batches, study.workload.reader.read_threads) if whole_batches(study) else 1
    return reads * at_once / batches
