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
from tierscope.predict.copies import copy_of
from tierscope.predict.demand import least_seconds
from tierscope.predict.drawn import load_of, shuffled
from tierscope.predict.events import piece_bytes, readers_copy
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.save_bound import save_bound
from tierscope.predict.saves import SavePlan
from tierscope.spec.study import Study, System

DRAWS = 60
SHARE = 0.9  # of the draws that lie within the interval
DEVIATIONS = 1.645  # of a normal distribution, on either side of SHARE of it
_MANY_STATIONS = 3000
_SEED = 0x7E5C0


def relative(
    study: Study,
    stations: Stations,
    reading: Reading,
    outcome: Outcome,
    systems: Sequence[System] = (),
    saves: SavePlan | None = None,
    error: float | None = None,
    again: FloatArray | None = None,
) -> tuple[float, float]:
    """What low and high are of the simulated time; `systems`: the study's own with rates drawn from their uncertainty; `saves`: its checkpoints.

    `error`: of the model, where it is not the system's own; `again`: I/O times of the epoch simulated again (redrawn.py), which need no bound.
    """
    rng = np.random.default_rng((_SEED, study.seed))
    if again is None:
        here, drawn = _bounds(study, stations, reading, outcome, systems, saves, rng)
    else:
        here, drawn = float(outcome.wall_classes.sum(axis=(1, 2)).max()), again
    if not here:
        return 1.0, 1.0
    if outcome.sampling_error:
        drawn = drawn * rng.lognormal(0.0, outcome.sampling_error, len(drawn))
    if error := study.system.model_error if error is None else error:
        drawn = drawn * rng.lognormal(0.0, error, len(drawn))
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2]) / here
    return min(1.0, float(low)), max(1.0, float(high))


def _bounds(
    study: Study,
    stations: Stations,
    reading: Reading,
    outcome: Outcome,
    systems: Sequence[System],
    saves: SavePlan | None,
    rng: np.random.Generator,
) -> tuple[float, FloatArray]:
    """The epoch's bound, and that of every draw."""
    wanted = _reads(study, stations, reading, outcome)
    plain = _read_load(study, stations, reading, outcome, saves)
    here = max(least_seconds(stations, plain), _longest(study, _alone(stations, reading), wanted))
    here += _saving(study, stations, outcome, saves)
    if not here:
        return here, np.ones(1)
    count = DRAWS if stations.count < _MANY_STATIONS else DRAWS // 5
    samples: list[float] = []
    before: Stations | None = None
    hashed = {place: tier.hashed for place, tier in enumerate(stations.tiers)}  # files lie as they do here
    for drawn in _others(tuple(systems) or (study.system,), study.seed, count, keep=count == DRAWS):
        other = drawn.with_layouts(hashed)
        if drawn is not before:
            alone, saving, before = _alone(other, reading), _saving(study, other, outcome, saves), drawn
        ops = shuffled(wanted, len(reading.pieces), rng)
        load = load_of(study, other, reading, ops, rng, outcome.copies)
        read = max(least_seconds(other, load), _longest(study, alone, ops))
        samples.append(read + saving)
    return here, np.array(samples)


def _reads(study: Study, stations: Stations, reading: Reading, outcome: Outcome) -> npt.NDArray[np.int64]:
    """Opens and reads by (rank, tier, kind) without what copying adds to them."""
    ops = outcome.ops[:, :, :2].copy()
    if outcome.copies is not None:
        ops[:, 0, 0] -= outcome.copies
        if readers_copy(study):
            rest = copy_of(study, stations, reading.file_bytes, reading.sample_bytes).ops[-1]
            ops[:, -1, 1] -= outcome.copies * int(rest)
    return ops


def _saving(study: Study, stations: Stations, outcome: Outcome, saves: SavePlan | None) -> float:
    """Seconds that checkpoints which training stands still for take in all, by their bound."""
    if saves is None or outcome.saved is None or saves.background or not outcome.saved.begun:
        return 0.0
    return outcome.saved.begun * save_bound(study, stations, saves).seconds


def _read_load(study: Study, stations: Stations, reading: Reading, outcome: Outcome, saves: SavePlan | None) -> Load:
    """What reads alone ask of stations, as draws do: how much of a checkpoint behind training falls into an epoch is nobody's guess."""
    if saves is None or outcome.saved is None:
        return outcome.load
    if saves.background:
        ops = _reads(study, stations, reading, outcome).astype(np.float64)
        return load_of(study, stations, reading, ops, np.random.default_rng(_SEED), outcome.copies)
    bound = save_bound(study, stations, saves)
    return Load(
        seconds=np.maximum(0.0, outcome.load.seconds - outcome.saved.begun * bound.load.seconds), ops=outcome.load.ops
    )


def floor_seconds(
    study: Study, system: System, reading: Reading, outcome: Outcome, saves: SavePlan | None = None
) -> float:
    """What the bound makes of the same operations on another system; `saves`: its checkpoints."""
    stations = stations_of(system, study.seed)
    ops = _reads(study, stations, reading, outcome).astype(np.float64)
    load = load_of(study, stations, reading, ops, np.random.default_rng(_SEED), outcome.copies)
    read = max(least_seconds(stations, load), _longest(study, _alone(stations, reading), ops))
    return read + _saving(study, stations, outcome, saves)


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
    """Seconds of an operation by (tier, kind) if it ran alone: of mean servers, with all latencies."""
    pieces = piece_bytes(stations, reading)
    alone = np.zeros((len(stations.tiers), 2))
    if not reading.pieces:
        return alone
    for tier, queues in enumerate(stations.tiers):
        largest, whole = float(pieces[tier].max(axis=1).mean()), float(pieces[tier].sum(axis=1).mean())
        opening = [_service(stations, queues.metadata, 0.0)]
        reading_ = [_service(stations, queues.servers_first, largest)]
        reading_ += [
            _service(stations, first, whole) for first in (queues.node_link, queues.device_link, queues.gateway)
        ]
        if queues.open_bytes:
            opening.append(_service(stations, queues.servers_first, queues.open_bytes, ops=0.0))
        through = max(*reading_, whole * queues.stream_seconds)
        alone[tier] = max(opening) + queues.metadata_latency, through + queues.latency
    return alone


def _longest(study: Study, alone: FloatArray, ops: npt.NDArray[Any]) -> float:
    """The longest process if it ran alone."""
    threads = max(1, study.workload.reader.read_threads)
    return float((ops * alone).sum(axis=(1, 2)).max()) / threads


def _service(stations: Stations, first: int, nbytes: float, ops: float = 1.0) -> float:
    """Less what the station makes up for: who works elsewhere meanwhile finds it done."""
    if first == NONE:
        return 0.0
    at = stations.from_first(first)
    seconds = (ops * stations.per_op[at] + nbytes * stations.per_byte[at]) / (1 - stations.background[at])
    return float(np.maximum(0.0, seconds - stations.made_up[at]).mean())
