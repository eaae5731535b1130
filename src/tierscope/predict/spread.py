"""How far an epoch's time may be from what was simulated: other shuffles, other devices of the same kind, other services, other rates.

Each draw shuffles anew, draws the speeds of servers, the work of each station and, where rates were fitted, the rates; what
becomes of the bound (bound.py) stands for what becomes of the epoch.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.plan.stations import NONE, Stations, stations_of
from tierscope.predict.bound import least_seconds
from tierscope.predict.copies import copy_of
from tierscope.predict.events import piece_bytes
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.schedule import Reading
from tierscope.spec.study import Study, System

DRAWS = 60
SHARE = 0.9  # of the draws that lie within the interval
_MANY_STATIONS = 3000
_SEED = 0x7E5C0


def relative(
    study: Study, stations: Stations, reading: Reading, outcome: Outcome, systems: Sequence[System] = ()
) -> tuple[float, float]:
    """What low and high are of the simulated time; `systems`: the study's own with rates drawn from their uncertainty."""
    here = max(least_seconds(stations, outcome.load), _longest(study, stations, reading, outcome.ops))
    if not here:
        return 1.0, 1.0
    rng = np.random.default_rng((_SEED, study.seed))
    count = DRAWS if stations.count < _MANY_STATIONS else DRAWS // 5
    found: list[float] = []
    for other in _others(tuple(systems) or (study.system,), study.seed, count):
        ops = _shuffled(outcome.ops, len(reading.pieces), rng)
        load = _load(study, other, reading, outcome, ops, rng)
        found.append(max(least_seconds(other, load), _longest(study, other, reading, ops)))
    drawn = np.array(found)
    if study.system.model_error:
        drawn *= rng.lognormal(0.0, study.system.model_error, len(drawn))
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2]) / here
    return min(1.0, float(low)), max(1.0, float(high))


@lru_cache(maxsize=8)
def _others(systems: tuple[System, ...], seed: int, count: int) -> tuple[Stations, ...]:
    return tuple(stations_of(systems[number % len(systems)], seed + number + 1) for number in range(count))


def _shuffled(ops: npt.NDArray[np.int64], pieces: int, rng: np.random.Generator) -> FloatArray:
    """Operations of every (rank, tier, kind) after another shuffle: who reads what changes, not what is read in all."""
    samples = ops[:, :, 1] // pieces
    totals = samples.sum(axis=0)
    shares = totals / max(1, int(totals.sum()))
    drawn = rng.multinomial(samples.sum(axis=1), shares).astype(np.float64)
    drawn = np.maximum(0.0, drawn - (drawn.sum(axis=0) - totals) / len(drawn))
    opens = ops[:, :, 0].sum(axis=0) / np.maximum(1, totals)  # of a sample
    return np.stack([drawn * opens, drawn * pieces], axis=2)


def _longest(study: Study, stations: Stations, reading: Reading, ops: npt.NDArray[Any]) -> float:
    """The longest process, were it alone: of mean servers, with all latencies."""
    pieces = piece_bytes(stations, reading)
    alone = np.zeros((len(stations.tiers), 2))
    for tier, queues in enumerate(stations.tiers):
        largest, whole = float(pieces[tier].max(axis=1).mean()), float(pieces[tier].sum(axis=1).mean())
        opening = [_service(stations, queues.metadata, 0.0)]
        reading_ = [_service(stations, queues.servers_first, largest)]
        reading_ += [
            _service(stations, first, whole) for first in (queues.node_link, queues.device_link, queues.gateway)
        ]
        alone[tier] = max(opening) + queues.metadata_latency, max(reading_) + queues.latency
    threads = max(1, study.workload.reader.read_threads)
    return float((ops * alone).sum(axis=(1, 2)).max()) / threads


def _service(stations: Stations, first: int, nbytes: float) -> float:
    if first == NONE:
        return 0.0
    ends = [start for start, _ in stations.names if start > first]
    at = slice(first, ends[0] if ends else stations.count)
    return float(((stations.per_op[at] + nbytes * stations.per_byte[at]) / (1 - stations.background[at])).mean())


def _load(
    study: Study,
    stations: Stations,
    reading: Reading,
    outcome: Outcome,
    shuffled: FloatArray,
    rng: np.random.Generator,
) -> Load:
    """What these operations ask of every station."""
    nodes = shuffled.reshape(-1, study.system.ranks_per_node, *shuffled.shape[1:]).sum(axis=1)
    ops, seconds = np.zeros(stations.count), np.zeros(stations.count)
    pieces = piece_bytes(stations, reading)
    place = np.arange(len(nodes))
    files = study.workload.dataset.num_files_train
    for tier, queues in enumerate(stations.tiers):
        device = place // queues.nodes_per_device
        opens, reads = (np.bincount(device, nodes[:, tier, kind]) for kind in (0, 1))
        samples = reads / len(reading.pieces)
        if queues.metadata != NONE:
            visits = _spread_over(opens, queues.metadata_servers, files, rng)
            _add(ops, seconds, stations, queues.metadata, visits, 1, 0.0)
        if queues.servers_first != NONE:
            touched = float((pieces[tier] > 0).sum())  # visits of servers for one sample
            visits = _spread_over(samples * touched, queues.servers, files * touched, rng)
            _add(ops, seconds, stations, queues.servers_first, visits, 1, float(pieces[tier].sum()) / touched)
        for first, owner in (
            (queues.node_link, place),
            (queues.device_link, device),
            (queues.gateway, place // queues.nodes_per_gateway),
        ):
            if first != NONE:
                visits = np.bincount(owner, nodes[:, tier, 1]).astype(np.float64)
                _add(ops, seconds, stations, first, visits, 1, reading.sample_bytes / len(reading.pieces))
    if outcome.copies is not None:
        _add_copies(ops, seconds, study, stations, reading, outcome.copies, rng)
    noise = stations.variation / np.sqrt(np.maximum(ops, 1))
    worked = seconds * np.maximum(0.0, rng.normal(1.0, noise))
    return Load(seconds=worked, ops=np.ceil(ops).astype(np.int64))


def _add_copies(
    ops: FloatArray,
    seconds: FloatArray,
    study: Study,
    stations: Stations,
    reading: Reading,
    copies: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    """Writes to the near tier."""
    copy, queues = copy_of(study, stations, reading.file_bytes, reading.sample_bytes), stations.tiers[0]
    nodes = copies.reshape(-1, study.system.ranks_per_node).sum(axis=1)
    place = np.arange(len(nodes))
    device = place // queues.nodes_per_device
    on_device = np.bincount(device, nodes)
    times, nbytes = int(copy.ops[0]), float(copy.nbytes[0].sum())
    files = study.workload.dataset.num_files_train
    if queues.metadata != NONE:
        visits = _spread_over(on_device, queues.metadata_servers, files, rng)
        _add(ops, seconds, stations, queues.metadata, visits, 1, 0.0)
    if queues.servers_first != NONE:
        visits = _spread_over(on_device * queues.stripe_count, queues.servers, files * queues.stripe_count, rng)
        _add(ops, seconds, stations, queues.servers_first, visits, times, nbytes / queues.stripe_count)
    for first, owner in (
        (queues.node_link, place),
        (queues.device_link, device),
        (queues.gateway, place // queues.nodes_per_gateway),
    ):
        if first != NONE:
            visits = np.bincount(owner, nodes).astype(np.float64)
            _add(ops, seconds, stations, first, visits, times, nbytes)


def _spread_over(counts: npt.NDArray[Any], width: int, of: float, rng: np.random.Generator) -> FloatArray:
    """Over servers that hold equal shares of `of`: who reads all of them asks each for as many."""
    mean = counts[:, None] / width
    scatter = np.sqrt(mean * (1 - 1 / width) * np.maximum(0.0, 1 - counts[:, None] / max(of, 1.0)))
    drawn: FloatArray = np.maximum(0.0, rng.normal(mean, scatter, (len(counts), width))).reshape(-1)
    return drawn


def _add(
    ops: FloatArray, seconds: FloatArray, stations: Stations, first: int, visits: FloatArray, each: int, nbytes: float
) -> None:
    at = slice(first, first + len(visits))
    ops[at] += visits * each
    seconds[at] += visits * (each * stations.per_op[at] + nbytes * stations.per_byte[at])
