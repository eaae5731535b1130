"""Checkpoints without events: how long one takes at least, whom it keeps waiting, and what it asks of every station.

A rank's files are written one operation after another, each as long as its slowest station takes and the tier's latency. Stations that several ranks write to
at once are shared evenly: a rank is done there when it has got its own share beside all others that are not done before it. No save is shorter than either.
Saves behind training are spread evenly over the epoch: readers find stations the slower for it, and a save is the slower for what readers ask.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.plan.stations import NONE, Stations, laid_out
from tierscope.predict.engine.inputs import OPEN, READ, SYNC, WRITE
from tierscope.predict.outcome import FloatArray, Load
from tierscope.predict.saves import IntArray, SavePlan
from tierscope.spec.study import Study

_MOST_TAKEN = 0.99  # of a station's time


@dataclass(frozen=True, slots=True)
class SaveBound:
    """One checkpoint. Seconds by rank: until its files are written, and of what it does itself to make it count."""

    written: FloatArray
    commit: FloatArray
    drained: FloatArray  # by rank: of copying its files on, behind training
    busy: FloatArray  # by (writer or drain, rank, tier, kind)
    ops: IntArray
    nbytes: IntArray
    load: Load  # of writers
    drain_load: Load

    @property
    def seconds(self) -> float:
        """Until it counts, of the rank that takes longest."""
        return float((self.written.max() + self.commit.max()) if len(self.written) else 0.0)


@dataclass(frozen=True, slots=True)
class _Visits:
    """Operations at stations: `operations[i]` asks `work[i]` seconds of `stations[i]`."""

    stations: IntArray
    operations: IntArray
    work: FloatArray
    ops: FloatArray


def save_bound(study: Study, stations: Stations, plan: SavePlan, readers: FloatArray | None = None) -> SaveBound:
    """`readers`: the share of each station's time that others take meanwhile."""
    background = stations.background if readers is None else np.minimum(_MOST_TAKEN, stations.background + readers)
    visits = list(_visits(study, stations, plan))
    alone = _alone(stations, plan, visits, background)
    ranks, operations = len(plan.first), np.arange(len(plan.kinds))
    rank = plan.ranks
    is_drain = operations >= plan.end[rank]
    commits = (operations >= plan.commit[rank]) & ~is_drain
    busy = np.zeros((2, ranks, len(stations.tiers), 4))
    ops, nbytes = np.zeros(busy.shape, np.int64), np.zeros(busy.shape, np.int64)
    real = plan.kinds <= SYNC
    at = (is_drain[real].astype(np.int64), rank[real], plan.tiers[real], plan.kinds[real])
    np.add.at(ops, at, plan.turns[real].astype(np.int64))
    np.add.at(nbytes, at, plan.nbytes[real])
    own = {name: np.bincount(rank[some], alone[some], minlength=ranks).astype(np.float64) for name, some in (
        ("written", real & ~is_drain & ~commits), ("commit", real & commits), ("drained", real & is_drain))}  # fmt: skip
    written = np.maximum(
        own["written"], _shared(visits, rank, ~is_drain & ~commits, ranks, background, stations.made_up)
    )
    drained = np.maximum(own["drained"], _shared(visits, rank, is_drain, ranks, background, stations.made_up))
    longer = [written / np.maximum(own["written"], 1e-300), drained / np.maximum(own["drained"], 1e-300)]
    stretch = np.where(is_drain, longer[1][rank], np.where(commits, 1.0, longer[0][rank]))
    np.add.at(busy, at, (alone * stretch)[real])
    return SaveBound(
        written, own["commit"], drained, busy, ops, nbytes,
        _load(stations, visits, ~is_drain), _load(stations, visits, is_drain),
    )  # fmt: skip


def _visits(study: Study, stations: Stations, plan: SavePlan) -> Iterator[_Visits]:
    rank = plan.ranks
    nodes = rank // study.system.ranks_per_node
    moves = np.isin(plan.kinds, (READ, WRITE))
    for tier, queues in enumerate(stations.tiers):
        device = nodes // queues.nodes_per_device
        opened = np.flatnonzero((plan.kinds == OPEN) & (plan.tiers == tier))
        if queues.metadata != NONE and len(opened):
            place = device[opened] * queues.metadata_servers + plan.files[opened] % queues.metadata_servers
            number = queues.metadata + place
            yield _Visits(number, opened, stations.per_op[number], np.ones(len(opened)))
        files = laid_out(plan.files, queues.hashed)
        links = [
            (first, place)
            for first, place in (
                (queues.node_link, nodes),
                (queues.device_link, device),
                (queues.gateway, nodes // queues.nodes_per_gateway),
            )
            if first != NONE
        ]
        if queues.open_bytes and len(opened):
            ways = [first + place[opened] for first, place in links]
            if queues.servers_first != NONE:
                owner = device[opened] * queues.servers + files[opened] % queues.servers
                ways.append(queues.servers_first + owner)
            for number in ways:
                yield _Visits(number, opened, queues.open_bytes * stations.per_byte[number], np.zeros(len(opened)))
        moved = np.flatnonzero(moves & (plan.tiers == tier))
        if not len(moved):
            continue
        split, counted = plan.splits[tier, plan.rows[moved]], plan.row_ops[tier, plan.rows[moved]]
        for stripe in range(queues.stripe_count if queues.servers_first != NONE else 0):
            here = split[:, stripe] > 0
            owner = device[moved] * queues.servers + (files[moved] + stripe) % queues.servers
            yield _moving(
                stations, plan, moved[here], queues.servers_first + owner[here], counted[here], split[here, stripe]
            )
        for first, place in links:
            yield _moving(stations, plan, moved, first + place[moved], counted, split.sum(axis=1))


def _moving(
    stations: Stations, plan: SavePlan, operations: IntArray, numbers: IntArray, ops: FloatArray, nbytes: FloatArray
) -> _Visits:
    writes = plan.kinds[operations] == WRITE
    reading, writing = (
        ops * per_op[numbers] + nbytes * per_byte[numbers]
        for per_op, per_byte in (stations.rates(False), stations.rates(True))
    )
    return _Visits(numbers, operations, np.where(writes, writing, reading), ops)


def _alone(stations: Stations, plan: SavePlan, visits: list[_Visits], background: FloatArray) -> FloatArray:
    """Seconds of each operation, were nobody else there who saves."""
    longest = np.zeros(len(plan.kinds))
    for visited in visits:
        seconds = visited.work / (1 - background[visited.stations]) - stations.made_up[visited.stations]
        np.maximum.at(longest, visited.operations, seconds)
    moved = np.flatnonzero(np.isin(plan.kinds, (READ, WRITE)))
    streams = np.array([tier.stream_seconds for tier in stations.tiers])[plan.tiers[moved]]
    whole = plan.splits[plan.tiers[moved], plan.rows[moved]].sum(axis=1)
    longest[moved] = np.maximum(longest[moved], whole * streams)
    latencies = np.array([(tier.metadata_latency, tier.latency) for tier in stations.tiers])
    opens, real = plan.kinds == OPEN, plan.kinds <= SYNC
    longest[opens] += latencies[plan.tiers[opens], 0]
    others = real & ~opens
    longest[others] += plan.turns[others] * latencies[plan.tiers[others], 1]
    return longest


def _shared(
    visits: list[_Visits],
    rank: IntArray,
    some: npt.NDArray[np.bool_],
    ranks: int,
    background: FloatArray,
    credit: FloatArray,
) -> FloatArray:
    """By rank: when the last of its stations is done with these operations of it, all ranks beginning together and served evenly."""
    seconds = np.zeros(ranks)
    numbers, who, work = (
        np.concatenate([np.zeros(0, dtype), *parts])
        for dtype, parts in (
            (np.int64, [visited.stations[some[visited.operations]] for visited in visits]),
            (np.int64, [rank[visited.operations[some[visited.operations]]] for visited in visits]),
            (np.float64, [visited.work[some[visited.operations]] for visited in visits]),
        )
    )
    if not len(numbers):
        return seconds
    pairs, inverse = np.unique(numbers.astype(np.int64) * ranks + who.astype(np.int64), return_inverse=True)
    station, owner = pairs // ranks, pairs % ranks
    demand = np.bincount(inverse, work).astype(np.float64) / (1 - background[station])
    order = np.lexsort((demand, station))
    station, owner, demand = station[order], owner[order], demand[order]
    starts = np.flatnonzero(np.r_[True, station[1:] != station[:-1]])
    sizes = np.diff(np.r_[starts, len(station)])
    place = np.arange(len(station)) - np.repeat(starts, sizes)
    summed = np.cumsum(demand)
    before = np.repeat(summed[starts] - demand[starts], sizes)
    done = summed - before + demand * (np.repeat(sizes, sizes) - place - 1)
    np.maximum.at(seconds, owner, done - credit[station])
    return seconds


def _load(stations: Stations, visits: list[_Visits], some: npt.NDArray[np.bool_]) -> Load:
    seconds, ops = np.zeros(stations.count), np.zeros(stations.count)
    for visited in visits:
        here = some[visited.operations]
        np.add.at(seconds, visited.stations[here], visited.work[here])
        np.add.at(ops, visited.stations[here], visited.ops[here])
    return Load(seconds=seconds, ops=np.ceil(ops).astype(np.int64))
