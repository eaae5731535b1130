"""Simulate an epoch without events: the bottleneck bound, and mean values for what lies above it.

No process can be done before its own operations are, were it alone, and the last one not before the busiest station is: that is the bound.
Which class the time goes to, and what the stragglers still do when others are done, comes from mean values: Schweitzer's
approximation of a closed network gives the response of every station to those who are still there; each phase ends when a part of
them is done, and the rest go on with shorter queues.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tierscope.plan.plan import Plan
from tierscope.plan.stations import NONE, Stations, TierQueues
from tierscope.predict.copies import copy_of
from tierscope.predict.drawn import load_of, shuffled
from tierscope.predict.events import counted, counted_by_readers, first_stripes, piece_bytes
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.predict.schedule import Reading, Schedule
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
_MOST_TAKEN = 0.99  # of a station's time
_HALVINGS = 5  # of the share that is fetched ahead in time
_KEEPS_UP = 0.01  # so much longer than readers fetchers may take
Counts = npt.NDArray[np.int64]


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
    network = Network(study, stations, reading)
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
    network = Network(study, stations, reading)
    busy, rest = _drained(network, study, ops, samples)
    load = loads(study, stations, reading, replace(schedule, fills=None, fetched=None))
    if schedule.copied is not None:
        copies = copy_loads(study, stations, reading, schedule)
        load = Load(seconds=load.seconds + np.where(load.ops > 0, copies.seconds, 0.0), ops=load.ops)
        around = max(least_seconds(stations, load), float(busy.sum(axis=(1, 2)).max()) / threads + beside)
        slowed = Network(study, _beside_others(stations, copies, around), reading)
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
    busy = Network(alone, _beside_others(stations, readers, least), reading).drain(ops, 0.0)
    return max(least, float(busy.sum(axis=(1, 2)).max()) / max(1, study.workload.reader.read_threads))


def _beside_others(stations: Stations, others: Load, seconds: float) -> Stations:
    """The stations as they serve those who share them with this work, spread evenly over so many seconds."""
    if not seconds:
        return stations
    return replace(stations, background=np.minimum(_MOST_TAKEN, stations.background + others.seconds / seconds))


def _beside(study: Study, samples: int) -> float:
    """Seconds of an epoch that a reading thread spends on neither reading nor waiting for compute."""
    return study.system.process_overhead * samples / max(1, study.workload.reader.read_threads)


def _drained(network: "Network", study: Study, ops: Counts, samples: int) -> tuple[FloatArray, float]:
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


def loads(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> Load:
    """Work and operations that the schedule asks of every station."""
    load = _Load(stations)
    nodes = np.repeat(np.arange(schedule.shape[0]) // study.system.ranks_per_node, schedule.shape[1])
    files, tiers, opens = schedule.files.reshape(-1), schedule.tiers.reshape(-1), schedule.opens.reshape(-1)
    pieces, stripes_of = piece_bytes(stations, reading), first_stripes(stations, reading, schedule)
    for number in range(len(stations.tiers)):
        here = tiers == number
        load.add_opens(number, nodes[here & opens], files[here & opens])
        first = 0 if schedule.inside is None else stripes_of.reshape(-1)[here]
        load.add_data(number, nodes[here], files[here], pieces[number], first=first)
    if schedule.copied is None:
        return Load(seconds=load.seconds, ops=load.ops)
    copies = copy_loads(study, stations, reading, schedule)
    return Load(seconds=load.seconds + copies.seconds, ops=load.ops + copies.ops)


def copy_loads(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> Load:
    """What copying to the near tier asks: fetching ahead, and filling behind readers' backs."""
    load = _Load(stations)
    nodes = np.repeat(np.arange(schedule.shape[0]) // study.system.ranks_per_node, schedule.shape[1])
    files, home = schedule.files.reshape(-1), len(stations.tiers) - 1
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
    if schedule.fetched is not None:
        here = schedule.fetched.reshape(-1)
        load.add_opens(home, nodes[here], files[here])
        load.add_data(home, nodes[here], files[here], piece_bytes(stations, reading)[home])
    if schedule.fills is not None and copy.ops[home]:
        here = schedule.fills.reshape(-1)
        load.add_data(home, nodes[here], files[here], copy.nbytes[home : home + 1], int(copy.ops[home]))
    if schedule.copied is not None:
        here = schedule.copied.reshape(-1)
        load.add_opens(0, nodes[here], files[here])
        load.add_data(0, nodes[here], files[here], copy.nbytes[:1], int(copy.ops[0]))
    return Load(seconds=load.seconds, ops=load.ops)


class _Load:
    """Work and operations of stations, as they add up."""

    def __init__(self, stations: Stations) -> None:
        self._stations = stations
        self.seconds = np.zeros(stations.count)
        self.ops = np.zeros(stations.count, np.int64)

    def _add(self, numbers: Counts, per_visit: int, nbytes: float) -> None:
        stations = self._stations
        visits = np.bincount(numbers, minlength=stations.count)
        self.ops += visits * per_visit
        self.seconds += visits * (per_visit * stations.per_op + nbytes * stations.per_byte)

    def add_opens(self, tier: int, node: Counts, file: Counts) -> None:
        queues = self._stations.tiers[tier]
        if queues.metadata != NONE:
            device = node // queues.nodes_per_device
            self._add(queues.metadata + device * queues.metadata_servers + file % queues.metadata_servers, 1, 0.0)

    def add_data(
        self,
        tier: int,
        node: Counts,
        file: Counts,
        pieces: FloatArray,
        times: int | None = None,
        first: Counts | int = 0,
    ) -> None:
        """Bytes by (piece, stripe); `times`: operations of all of them together, else one for each piece; `first`: stripe of each sample."""
        queues = self._stations.tiers[tier]
        if queues.servers_first != NONE:
            for stripe in range(queues.stripe_count):
                parts = pieces[:, stripe]
                visits = times or int((parts > 0).sum())
                owner = (
                    node // queues.nodes_per_device * queues.servers
                    + (file + (first + stripe) % queues.stripe_count) % queues.servers
                )
                if visits and (not stripe or parts.any()):
                    self._add(queues.servers_first + owner, visits, float(parts.sum()))
        for link, place in _links(queues, node):
            self._add(link + place, times or len(pieces), float(pieces.sum()))


def least_seconds(stations: Stations, load: Load) -> float:
    """No epoch is shorter: the busiest station's work, and the latency behind its last operation."""
    return float(station_seconds(stations, load).max(initial=0.0))


def station_seconds(stations: Stations, load: Load) -> FloatArray:
    """When each station is done at the earliest, with the latency behind it."""
    found: FloatArray = load.seconds / (1 - stations.background) + np.where(load.ops > 0, stations.latency, 0.0)
    return found


def _links(queues: TierQueues, node: Counts) -> list[tuple[int, Counts]]:
    """(first station, which one of them) of every link on the way of these nodes."""
    found = (
        (queues.node_link, node),
        (queues.device_link, node // queues.nodes_per_device),
        (queues.gateway, node // queues.nodes_per_gateway),
    )
    return [(first, place) for first, place in found if first != NONE]


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


class Network:
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
        for first, place in _links(queues, nodes):
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
