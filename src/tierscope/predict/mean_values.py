"""Mean responses of a closed network by Schweitzer's approximation, phase by phase.

Stations answer those who are still there. Each phase ends when a part of them is done, and the rest go on with shorter queues: so stragglers are
served faster in the end. Of services that vary only the coefficient of variation is used.
"""

from dataclasses import dataclass

import numpy as np

from tierscope.plan.reading import Reading
from tierscope.plan.stations import NONE, Stations, TierQueues
from tierscope.predict.demand import Counts, links_of, station_seconds
from tierscope.predict.events import piece_bytes
from tierscope.predict.outcome import FloatArray, Load
from tierscope.spec.study import Study

_ROUNDS = 300
_CLOSE = 3e-4
_DAMPING = 0.5
_PHASES = (16, 0.05, 0.4)  # with fewer operations than that per process times scatter more: shorter phases
_ALMOST = 0.25  # of an operation that a process has left, and it is done: operations are whole
# What is left of the service that a newcomer finds, where services do not vary; all of it where they are exponential. Random arrivals would
# find half; those of a closed network are more regular. Chosen on the Fugaku cases that `make validate` compares with events.
_STEADY = 0.3
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class _Group:
    """Stations of one kind of a tier. A node's operations spread evenly over those of its place."""

    tier: int
    kind: int  # 0 open, 1 read
    first: int  # station
    share: float  # of the group's stations that one operation visits
    service: FloatArray  # by (place, number), of one operation
    spread: FloatArray  # the same shape: coefficient of variation (plan/variation.py)
    place: Counts  # of every node


class ClosedNetwork:
    """Mean responses of a closed network: the ranks' reading threads are its customers."""

    def __init__(self, study: Study, stations: Stations, reading: Reading) -> None:
        self._stations, self._system = stations, study.system
        self._threads = max(1, study.workload.reader.read_threads)
        self._latencies = np.array([(tier.metadata_latency, tier.latency) for tier in stations.tiers])
        self._groups: list[_Group] = []
        pieces = piece_bytes(stations, reading)
        nodes = np.arange(study.system.nodes)
        for number, queues in enumerate(stations.tiers):
            self._add_tier(number, queues, pieces[number], nodes)
        self._queues = [np.zeros_like(group.service) for group in self._groups]

    def _add_tier(self, number: int, queues: TierQueues, pieces: FloatArray, nodes: Counts) -> None:
        device = nodes // queues.nodes_per_device
        devices = int(device[-1]) + 1
        if queues.metadata != NONE:
            self._add(number, 0, queues.metadata, (devices, queues.metadata_servers), 0.0, device)
        if queues.servers_first != NONE:
            part = float(pieces.max(axis=1).mean())  # the largest is waited for
            self._add(number, 1, queues.servers_first, (devices, queues.servers), part, device, _touched(pieces))
        mean = float(pieces.sum(axis=1).mean())
        for first, place in links_of(queues, nodes):
            self._add(number, 1, first, (int(place[-1]) + 1, 1), mean, place)

    def _add(
        self,
        tier: int,
        kind: int,
        first: int,
        shape: tuple[int, int],
        nbytes: float,
        place: Counts,
        touched: float = 1.0,
    ) -> None:
        at = slice(first, first + shape[0] * shape[1])
        stations = self._stations
        service = (stations.per_op[at] + nbytes * stations.per_byte[at]) / (1 - stations.background[at])
        spread = stations.variation[at].reshape(shape)
        self._groups.append(_Group(tier, kind, first, touched / shape[1], service.reshape(shape), spread, place))

    def drain(self, ops: Counts, beside: float) -> FloatArray:
        """All operations done: busy seconds by (rank, tier, kind). `beside`: what each reading thread does besides, in seconds."""
        left = ops.astype(np.float64)
        overhead = np.full(len(ops), beside * self._threads)
        busy = np.zeros_like(left)
        active = np.arange(len(ops))
        few, short, long_phase = _PHASES
        phase = short if float(ops.sum(axis=(1, 2)).mean()) < few else long_phase
        while len(active):
            response = self._responses(left, overhead, active)[active // self._system.ranks_per_node]
            seconds = left[active] * response
            need = (seconds.sum(axis=(1, 2)) + overhead[active]) / self._threads
            last = len(active) <= 2 or bool((need <= need[0]).all() and (need >= need[0]).all())
            long = float(need.max() if last else np.quantile(need, phase))
            done = np.minimum(1.0, long / np.maximum(need, _TINY))
            done[(1 - done) * left[active].sum(axis=(1, 2)) < _ALMOST] = 1.0
            busy[active] += seconds * done[:, None, None]
            left[active] *= (1 - done)[:, None, None]
            overhead[active] *= 1 - done
            active = active[done < 1]
        return busy

    def hold(self, busy: FloatArray, ops: Counts, load: Load, beside: float) -> None:
        """The bound holds: of those who use a station, the last is not done before it is. Changes `busy`."""
        node = np.arange(len(busy)) // self._system.ranks_per_node
        limits = station_seconds(self._stations, load)
        for group in self._groups:
            least = limits[group.first : group.first + group.service.size].reshape(group.service.shape).max(axis=1)
            uses = np.flatnonzero(ops[:, group.tier, group.kind])
            place = group.place[node[uses]]
            longest = np.zeros(len(least))
            np.maximum.at(longest, place, busy[uses].sum(axis=(1, 2)) / self._threads)
            factor = np.maximum(1.0, (least - beside) / np.maximum(longest, _TINY))
            busy[uses] *= factor[place][:, None, None]

    def _responses(self, left: FloatArray, overhead: FloatArray, active: Counts) -> FloatArray:
        """Seconds of an operation by (node, tier, kind), while these ranks are there with what they have left."""
        nodes, per_node = self._system.nodes, self._system.ranks_per_node
        node = active // per_node
        here = np.bincount(node, minlength=nodes) * float(self._threads)
        todo, beside = left[active], overhead[active]
        response = np.zeros((nodes, *left.shape[1:]))
        present = [
            np.bincount(group.place, here * self._asks(group, todo, node), minlength=len(group.service)).astype(
                np.float64
            )
            for group in self._groups
        ]
        for _ in range(_ROUNDS):
            before = response
            answers = [
                _answer(group, queue, customers)
                for group, queue, customers in zip(self._groups, self._queues, present, strict=True)
            ]
            response = np.zeros_like(before)
            for group, answer in zip(self._groups, answers, strict=True):
                mean = answer.mean(axis=1)[group.place]
                np.maximum(response[:, group.tier, group.kind], mean, out=response[:, group.tier, group.kind])
            response += self._latencies
            lanes = (todo * response[node]).sum(axis=(1, 2)) + beside
            pace = self._threads / np.maximum(lanes, _TINY)
            for number, (group, answer) in enumerate(zip(self._groups, answers, strict=True)):
                flow = np.bincount(node, todo[:, group.tier, group.kind] * pace, minlength=nodes)
                arriving = np.bincount(group.place, flow, minlength=len(group.service))
                found = arriving[:, None] * group.share * answer
                self._queues[number] = _DAMPING * self._queues[number] + (1 - _DAMPING) * found
            if float(np.abs(response - before).max()) <= _CLOSE * float(response.max()):
                break
        return response

    @staticmethod
    def _asks(group: _Group, todo: FloatArray, node: Counts) -> FloatArray:
        """1 for nodes with a rank that has such operations left, else 0."""
        wants = np.bincount(node, todo[:, group.tier, group.kind], minlength=len(group.place))
        return (wants > 0).astype(np.float64)


def _touched(pieces: FloatArray) -> float:
    """Servers that a read keeps busy, in units of its largest part."""
    return float((pieces.sum(axis=1) / np.maximum(pieces.max(axis=1), 1.0)).mean())


def _answer(group: _Group, queue: FloatArray, customers: FloatArray) -> FloatArray:
    """Response of each station to one that finds the others' queue, and in it one that is partly served."""
    seen = queue * np.maximum(0.0, 1 - 1 / np.maximum(customers, 1.0))[:, None]
    in_service = np.minimum(1.0, seen)
    left = _STEADY + (1 - _STEADY) * group.spread**2
    return group.service * (1 + (seen - in_service) + in_service * left)
