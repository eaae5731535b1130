"""What a schedule asks of every station: operations, seconds of work, and the bottleneck bound that follows from them.

No epoch is shorter than its busiest station needs. Services that vary are taken at their mean.
"""

import numpy as np
import numpy.typing as npt

from tierscope.plan.reading import Reading
from tierscope.plan.stations import NONE, Stations, TierQueues
from tierscope.predict.copies import copy_of
from tierscope.predict.events import first_stripes, piece_bytes
from tierscope.predict.outcome import FloatArray, Load
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

Counts = npt.NDArray[np.int64]


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
        for link, place in links_of(queues, node):
            self._add(link + place, times or len(pieces), float(pieces.sum()))


def least_seconds(stations: Stations, load: Load) -> float:
    """No epoch is shorter: the busiest station's work, and the latency behind its last operation."""
    return float(station_seconds(stations, load).max(initial=0.0))


def station_seconds(stations: Stations, load: Load) -> FloatArray:
    """When each station is done at the earliest, with the latency behind it."""
    found: FloatArray = load.seconds / (1 - stations.background) + np.where(load.ops > 0, stations.latency, 0.0)
    return found


def links_of(queues: TierQueues, node: Counts) -> list[tuple[int, Counts]]:
    """(first station, which one of them) of every link on the way of these nodes."""
    found = (
        (queues.node_link, node),
        (queues.device_link, node // queues.nodes_per_device),
        (queues.gateway, node // queues.nodes_per_gateway),
    )
    return [(first, place) for first, place in found if first != NONE]
