"""How far an epoch's time may be from what was simulated: other shuffles, other devices of the same kind, other services, other rates.

Each draw shuffles anew, draws the speeds of servers, the work of each station and, where rates were fitted, the rates; what
becomes of the bound (demand.py) stands for what becomes of the epoch.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.plan.reading import Reading
from tierscope.plan.stations import NONE, Stations, stations_of
from tierscope.predict.demand import least_seconds
from tierscope.predict.drawn import load_of, shuffled
from tierscope.predict.events import piece_bytes
from tierscope.predict.outcome import FloatArray, Outcome
from tierscope.spec.study import Study, System

DRAWS = 60
SHARE = 0.9  # of the draws that lie within the interval
_MANY_STATIONS = 3000
_SEED = 0x7E5C0


def relative(
    study: Study, stations: Stations, reading: Reading, outcome: Outcome, systems: Sequence[System] = ()
) -> tuple[float, float]:
    """What low and high are of the simulated time; `systems`: the study's own with rates drawn from their uncertainty."""
    here = max(least_seconds(stations, outcome.load), _longest(study, _alone(stations, reading), outcome.ops))
    if not here:
        return 1.0, 1.0
    rng = np.random.default_rng((_SEED, study.seed))
    count = DRAWS if stations.count < _MANY_STATIONS else DRAWS // 5
    found: list[float] = []
    before: Stations | None = None
    for other in _others(tuple(systems) or (study.system,), study.seed, count, keep=count == DRAWS):
        if other is not before:
            alone, before = _alone(other, reading), other
        ops = shuffled(outcome.ops, len(reading.pieces), rng)
        load = load_of(study, other, reading, ops, rng, outcome.copies)
        found.append(max(least_seconds(other, load), _longest(study, alone, ops)))
    drawn = np.array(found)
    if study.system.model_error:
        drawn *= rng.lognormal(0.0, study.system.model_error, len(drawn))
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2]) / here
    return min(1.0, float(low)), max(1.0, float(high))


def _others(systems: tuple[System, ...], seed: int, count: int, keep: bool) -> Iterable[Stations]:
    """`keep`: for later epochs and runs; many stations would take more memory than making them anew takes time."""
    return _kept(systems, seed, count) if keep else _made(systems, seed, count)


@lru_cache(maxsize=8)
def _kept(systems: tuple[System, ...], seed: int, count: int) -> tuple[Stations, ...]:
    return tuple(_made(systems, seed, count))


def _made(systems: tuple[System, ...], seed: int, count: int) -> Iterator[Stations]:
    """Where no server's speed is drawn, all draws of a system are the same."""
    steady: dict[int, Stations] = {}
    for draw in range(count):
        number = draw % len(systems)
        system = systems[number]
        if any(tier.variation for tier in system.tiers):
            yield stations_of(system, seed + draw + 1)
        else:
            yield steady.get(number) or steady.setdefault(number, stations_of(system, seed))


def _alone(stations: Stations, reading: Reading) -> FloatArray:
    """Seconds of an operation by (tier, kind) were it alone: of mean servers, with all latencies."""
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
    return alone


def _longest(study: Study, alone: FloatArray, ops: npt.NDArray[Any]) -> float:
    """The longest process, were it alone."""
    threads = max(1, study.workload.reader.read_threads)
    return float((ops * alone).sum(axis=(1, 2)).max()) / threads


def _service(stations: Stations, first: int, nbytes: float) -> float:
    if first == NONE:
        return 0.0
    ends = [start for start, _ in stations.names if start > first]
    at = slice(first, ends[0] if ends else stations.count)
    return float(((stations.per_op[at] + nbytes * stations.per_byte[at]) / (1 - stations.background[at])).mean())
