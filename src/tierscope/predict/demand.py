"""What a schedule asks of every station: operations, seconds of work, and the bottleneck bound that follows from them.

No epoch is shorter than its busiest station needs. Services that vary are taken at their mean.
"""

import numpy as np
import numpy.typing as npt

from tierscope.plan.reading import Reading
from tierscope.plan.stations import LOCKS, NONE, Stations, TierQueues, laid_out
from tierscope.predict.copies import copy_of
from tierscope.predict.events import first_stripes, piece_bytes
from tierscope.predict.outcome import FloatArray, Load
from tierscope.predict.runs import run_reads
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

Counts = npt.NDArray[np.int64]


def loads(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> Load:
    """Work and operations that the schedule asks of every station."""
    load = _Load(stations)
    nodes = np.repeat(np.arange(schedule.shape[0]) // study.system.ranks_per_node, schedule.shape[1])
    files, tiers, opens = schedule.files.reshape(-1), schedule.tiers.reshape(-1), schedule.opens.reshape(-1)
    pieces, stripes_of = piece_bytes(stations, reading), first_stripes(stations, reading, schedule)
    runs = run_reads(reading, schedule)
    for number, queues in enumerate(stations.tiers):
        here = tiers == number
        load.add_opens(number, nodes[here & opens], files[here & opens])
        first: Counts | int = 0
        if runs is not None:  # a read at a time, instead of a sample
            of_sample = np.repeat(np.arange(len(files)), np.where(here, runs.counts.reshape(-1), 0))
            first = runs.stripes(reading, of_sample, queues.stripe_size, queues.stripe_count)
            load.add_data(number, nodes[of_sample], files[of_sample], pieces[number], first=first)
            continue
        if stripes_of.size:
            first = stripes_of.reshape(-1)[here]
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
        load.add_data(0, nodes[here], files[here], copy.nbytes[:1], int(copy.ops[0]), writes=True)
    return Load(seconds=load.seconds, ops=load.ops)


class _Load:
    """Work and operations of stations, as they add up."""

    def __init__(self, stations: Stations) -> None:
        self._stations = stations
        self.seconds = np.zeros(stations.count)
        self.ops = np.zeros(stations.count, np.int64)

    def _add(self, numbers: Counts, per_visit: int, nbytes: float, writes: bool = False) -> None:
        self._add_visits(np.bincount(numbers, minlength=self._stations.count), per_visit, nbytes, writes)

    def _add_visits(self, visits: Counts, per_visit: int, nbytes: float, writes: bool) -> None:
        per_op, per_byte = self._stations.rates(writes)
        self.ops += visits * per_visit
        self.seconds += visits * (per_visit * per_op + nbytes * per_byte)

    def add_opens(self, tier: int, node: Counts, file: Counts) -> None:
        queues = self._stations.tiers[tier]
        if queues.metadata != NONE:
            device = node // queues.nodes_per_device
            self._add(queues.metadata + device * queues.metadata_servers + file % queues.metadata_servers, 1, 0.0)
        if queues.locks != NONE:
            self._add(queues.locks + node // queues.nodes_per_device * LOCKS + file % LOCKS, 1, 0.0)
        if queues.open_bytes and queues.servers_first != NONE:
            self._add(queues.servers_first + _owners(queues, node, file, 0), 0, queues.open_bytes)
        for link, place in links_of(queues, node) if queues.open_bytes else ():
            self._add(link + place, 0, queues.open_bytes)

    def add_data(
        self,
        tier: int,
        node: Counts,
        file: Counts,
        pieces: FloatArray,
        times: int | None = None,
        first: Counts | int = 0,
        writes: bool = False,
    ) -> None:
        """Bytes by (piece, stripe); `times`: operations of all of them together, else one for each piece; `first`: stripe of each sample."""
        queues = self._stations.tiers[tier]
        if queues.servers_first != NONE:
            owners = _OwnersOfStripes(queues, node, file, first)
            for stripe in range(queues.stripe_count):
                parts = pieces[:, stripe]
                visits = times or int((parts > 0).sum())
                if visits and (not stripe or parts.any()):
                    self._add_visits(owners.visits(stripe, self._stations.count), visits, float(parts.sum()), writes)
        for link, place in links_of(queues, node):
            self._add(link + place, times or len(pieces), float(pieces.sum()), writes)


def least_seconds(stations: Stations, load: Load) -> float:
    """No epoch is shorter: the busiest station's work, and the latency behind its last operation."""
    return float(station_seconds(stations, load).max(initial=0.0))


def station_seconds(stations: Stations, load: Load) -> FloatArray:
    """When each station is done at the earliest, with the latency behind it; what it makes up for was idle before the epoch."""
    worked = np.maximum(0.0, load.seconds / (1 - stations.background) - stations.stock)
    seconds: FloatArray = worked + np.where(load.ops > 0, stations.latency, 0.0)
    return seconds


def _owners(queues: TierQueues, node: Counts, file: Counts, stripe: Counts | int) -> Counts:
    """The server of each file's stripe, counted from the tier's first."""
    place = laid_out(file, queues.hashed)
    owners: Counts = node // queues.nodes_per_device * queues.servers + (place + stripe) % queues.servers
    return owners


class _OwnersOfStripes:
    """How many samples have a stripe on each server. Files are looked at once: the next stripe is on the next server of the same device."""

    def __init__(self, queues: TierQueues, node: Counts, file: Counts, first: Counts | int) -> None:
        self._queues = queues
        owners = _owners(queues, node, file, 0)
        devices = int(owners.max(initial=0)) // queues.servers + 1
        kinds = 1 if isinstance(first, int) else queues.stripe_count
        self._first = first if isinstance(first, int) else 0
        start = 0 if isinstance(first, int) else first % queues.stripe_count
        counted = np.bincount(start * (devices * queues.servers) + owners, minlength=kinds * devices * queues.servers)
        self._counts = counted.reshape(kinds, devices, queues.servers)  # by the sample's first stripe

    def visits(self, stripe: int, stations: int) -> Counts:
        queues = self._queues
        visits = np.zeros(stations, np.int64)
        here = visits[queues.servers_first : queues.servers_first + self._counts[0].size]
        for start, counts in enumerate(self._counts, self._first):
            here += np.roll(counts, (start + stripe) % queues.stripe_count, axis=1).reshape(-1)
        return visits


def links_of(queues: TierQueues, node: Counts) -> list[tuple[int, Counts]]:
    """(first station, which one of them) of every link on the way of these nodes."""
    links = (
        (queues.node_link, node),
        (queues.device_link, node // queues.nodes_per_device),
        (queues.gateway, node // queues.nodes_per_gateway),
    )
    return [(first, place) for first, place in links if first != NONE]
