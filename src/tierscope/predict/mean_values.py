"""Mean responses of a closed network by Schweitzer's approximation, phase by phase.

Stations answer those who are still there. Each phase ends when a part of them is done, and the rest go on with shorter queues: so stragglers are
served faster in the end. Of services that vary only the coefficient of variation is used.
"""

from dataclasses import dataclass

import numpy as np

from tierscope.plan.reading import Reading
from tierscope.plan.stations import LOCKS, NONE, Stations, TierQueues
from tierscope.predict.copies import Copy
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
_HARDLY = 1e-6  # of a service: what is left of one that was made up for


@dataclass(frozen=True, slots=True)
class _Group:
    """Stations of one kind of a tier. A node's operations spread evenly over those of its place."""

    tier: int
    kind: int  # 0 open, 1 read, 2 write
    first: int  # station
    share: float  # of the group's stations that one operation visits
    service: FloatArray  # by (place, number), of one operation
    spread: FloatArray  # the same shape: coefficient of variation (plan/variation.py)
    place: Counts  # of every node
    credit: FloatArray  # the same shape: seconds of idle time that each makes up for, or hands out early

    @property
    def remaining(self) -> FloatArray:
        """What a newcomer finds left of the service in progress, as a part of it."""
        return _STEADY + (1 - _STEADY) * self.spread**2


class ClosedNetwork:
    """Mean responses of a closed network: the ranks' reading threads are its customers."""

    def __init__(self, study: Study, stations: Stations, reading: Reading, copy: Copy | None = None) -> None:
        """`copy`: what readers write to the near tier themselves; then there is a third kind of operation."""
        self._stations, self._system = stations, study.system
        self._threads = max(1, study.workload.reader.read_threads)
        self._files = study.workload.dataset.num_files_train
        kinds = 2 if copy is None else 3
        self._latencies = np.array(
            [(tier.metadata_latency, tier.latency, tier.latency)[:kinds] for tier in stations.tiers]
        )
        self._groups: list[_Group] = []
        self._streams = np.zeros_like(self._latencies)  # the least that an operation takes, whoever else is there
        pieces = piece_bytes(stations, reading)
        nodes = np.arange(study.system.nodes)
        for number, queues in enumerate(stations.tiers):
            if reading.pieces:
                self._add_tier(number, queues, pieces[number], nodes)
        if copy is not None and copy.ops[0]:
            self._add_writes(stations.tiers[0], copy, nodes)
        self._queues = [np.zeros_like(group.service) for group in self._groups]
        self._remaining = [group.remaining for group in self._groups]
        self._has_credit = [bool(group.credit.any()) for group in self._groups]
        self._beside = [  # of every group: the others at the same stations
            [place for place, other in enumerate(self._groups) if other.first == group.first and place != number]
            for number, group in enumerate(self._groups)
        ]
        self._flows: dict[
            int, FloatArray
        ] = {}  # by a group's first station: share of time that its stations with credit work

    def _add_tier(self, number: int, queues: TierQueues, pieces: FloatArray, nodes: Counts) -> None:
        device = nodes // queues.nodes_per_device
        devices = int(device[-1]) + 1
        if queues.metadata != NONE:
            self._add(number, 0, queues.metadata, (devices, queues.metadata_servers), 0.0, device)
        if queues.locks != NONE:
            self._add_locks(number, queues, device)
        if queues.servers_first != NONE:
            part = float(pieces.max(axis=1).mean())  # the largest is waited for
            self._add(number, 1, queues.servers_first, (devices, queues.servers), part, device, _touched(pieces))
            if queues.open_bytes:
                self._add(
                    number, 0, queues.servers_first, (devices, queues.servers), queues.open_bytes, device, ops=0.0
                )
        mean = float(pieces.sum(axis=1).mean())
        for first, place in links_of(queues, nodes):
            self._add(number, 1, first, (int(place[-1]) + 1, 1), mean, place)
            if queues.open_bytes:
                self._add(number, 0, first, (int(place[-1]) + 1, 1), queues.open_bytes, place, ops=0.0)
        self._streams[number, 1] = queues.stream_seconds * mean

    def _add_locks(self, number: int, queues: TierQueues, device: Counts) -> None:
        """Of as many files as there are: of one shared file there is one lock."""
        used = min(LOCKS, self._files)
        at = (np.arange(int(device[-1]) + 1)[:, None] * LOCKS + np.arange(used)).reshape(-1) + queues.locks
        service = self._stations.per_op[at].reshape(-1, used)
        nothing = np.zeros_like(service)
        self._groups.append(_Group(number, 0, queues.locks, 1 / used, service, nothing, device, nothing))

    def _add_writes(self, queues: TierQueues, copy: Copy, nodes: Counts) -> None:
        """Of the nearest tier."""
        device = nodes // queues.nodes_per_device
        part, mean = (float(size) / float(copy.ops[0]) for size in (copy.nbytes[0].max(), copy.nbytes[0].sum()))
        if queues.servers_first != NONE:
            shape = (int(device[-1]) + 1, queues.servers)
            self._add(0, 2, queues.servers_first, shape, part, device, mean / max(part, 1.0))
        for first, place in links_of(queues, nodes):
            self._add(0, 2, first, (int(place[-1]) + 1, 1), mean, place)
        self._streams[0, 2] = queues.stream_seconds * mean

    def _add(
        self,
        tier: int,
        kind: int,
        first: int,
        shape: tuple[int, int],
        nbytes: float,
        place: Counts,
        touched: float = 1.0,
        ops: float = 1.0,
    ) -> None:
        at = slice(first, first + shape[0] * shape[1])
        stations = self._stations
        per_op, per_byte = stations.rates(writes=kind == 2)
        service = (ops * per_op[at] + nbytes * per_byte[at]) / (1 - stations.background[at])
        spread, credit = stations.variation[at].reshape(shape), stations.made_up[at].reshape(shape)
        self._groups.append(
            _Group(tier, kind, first, touched / shape[1], service.reshape(shape), spread, place, credit)
        )

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
        # What no round changes is computed before the first: rounds are many, and their arrays small.
        others_seen = [np.maximum(0.0, 1 - 1 / np.maximum(customers, 1.0))[:, None] for customers in present]
        wanted = [todo[:, group.tier, group.kind] for group in self._groups]
        for _ in range(_ROUNDS):
            before = response
            answers = [self._answer(number, seen) for number, seen in enumerate(others_seen)]
            response = np.empty_like(before)
            response[:] = self._streams
            for group, answer in zip(self._groups, answers, strict=True):
                slowest = response[:, group.tier, group.kind]
                np.maximum(slowest, _mean_of_row(answer)[group.place], out=slowest)
            response += self._latencies
            lanes = np.add.reduce(todo * response[node], axis=(1, 2)) + beside
            pace = self._threads / np.maximum(lanes, _TINY)
            flows: dict[int, FloatArray] = {}
            for number, (group, answer) in enumerate(zip(self._groups, answers, strict=True)):
                flow = np.bincount(node, wanted[number] * pace, minlength=nodes)
                arriving = np.bincount(group.place, flow, minlength=len(group.service))[:, None] * group.share
                if self._has_credit[number]:
                    flows[group.first] = flows.get(group.first, 0.0) + arriving * group.service
                self._queues[number] = _DAMPING * self._queues[number] + (1 - _DAMPING) * (arriving * answer)
            for first, work in flows.items():
                self._flows[first] = _DAMPING * self._flows.get(first, work) + (1 - _DAMPING) * work
            if float(np.abs(response - before).max()) <= _CLOSE * float(response.max()):
                break
        return response

    def _answer(self, number: int, others_seen: FloatArray) -> FloatArray:
        """Response of each station to one that finds the others' queue, and in it one that is partly served."""
        group = self._groups[number]
        seen = self._queues[number] * others_seen
        in_service = np.minimum(1.0, seen)
        answer: FloatArray = group.service * (1 + (seen - in_service) + in_service * self._remaining[number])
        if self._beside[number]:
            answer = answer + self._others(number)
        return self._made_up(number, answer) if self._has_credit[number] else answer

    def _others(self, number: int) -> FloatArray | float:
        """Seconds of what operations of one kind find of the other kinds at the same stations."""
        return sum((self._queues[place] * self._groups[place].service for place in self._beside[number]), start=0.0)

    def _made_up(self, number: int, answer: FloatArray) -> FloatArray:
        """Less the idle time that stations make up for: the more, the less they are busy."""
        group = self._groups[number]
        busy = np.minimum(1.0, self._flows.get(group.first, np.zeros_like(answer)))
        seconds: FloatArray = np.maximum(_HARDLY * group.service, answer - group.credit * (1 - busy))
        return seconds

    @staticmethod
    def _asks(group: _Group, todo: FloatArray, node: Counts) -> FloatArray:
        """1 for nodes with a rank that has such operations left, else 0."""
        wants = np.bincount(node, todo[:, group.tier, group.kind], minlength=len(group.place))
        return (wants > 0).astype(np.float64)


def _touched(pieces: FloatArray) -> float:
    """Servers that a read keeps busy, in units of its largest part."""
    return float((pieces.sum(axis=1) / np.maximum(pieces.max(axis=1), 1.0)).mean())


def _mean_of_row(answer: FloatArray) -> FloatArray:
    """The same as `answer.mean(axis=1)`, at a fraction of the cost for a few stations."""
    mean: FloatArray = answer[:, 0] if answer.shape[1] == 1 else np.add.reduce(answer, axis=1) / answer.shape[1]
    return mean
