"""The queues of a system's emulated tiers as each node meets them. What they are and who shares which: `plan/stations.py`.

A queue that serves one after another is one number on the board. One that serves all at once has room there for the operations
of every reading thread at the same time, and for those that others may have waiting (`storage/sharing.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tierscope.native.stations import Station, TierStations
from tierscope.plan.stations import LOCKS, NONE, Stations, TierQueues, stations_of
from tierscope.spec.study import System
from tierscope.storage import sharing

__all__ = ["Station", "StationMap", "TierStations", "map_stations"]

_SPARE = 32  # operations of clients that failed, and others' when there are few


@dataclass(frozen=True, slots=True)
class StationMap:
    """All queues of a system: `views[tier][node]`, None for a tier that is not emulated. `count`: numbers on the board."""

    count: int
    views: tuple[tuple[TierStations, ...] | None, ...]


def map_stations(system: System, seed: int, read_threads: int = 1) -> StationMap:
    emulated = [tier.emulate for tier in system.tiers]
    modelled = stations_of(system, seed, emulated)
    clients = system.ranks * max(1, read_threads)
    rooms = [
        _room(clients, float(background)) if shares else 0
        for shares, background in zip(modelled.sharing, modelled.background, strict=True)
    ]
    numbers = list(accumulate((sharing.slots(room) if room else 1 for room in rooms), initial=0))
    stations = [_station(modelled, place, numbers[place], room) for place, room in enumerate(rooms)]
    return StationMap(
        numbers[-1],
        tuple(
            _views(queues, stations, system.nodes) if is_emulated else None
            for queues, is_emulated in zip(modelled.tiers, emulated, strict=True)
        ),
    )


def _room(clients: int, background: float) -> int:
    """Others' operations beside so many clients are clients × background / (1 − background) on average; four times that and some."""
    return clients + _SPARE + math.ceil(4 * (clients + 1) * background / (1 - background))


def _station(modelled: Stations, place: int, number: int, room: int) -> Station:
    per_op, per_byte, write_per_op, write_per_byte = (
        float(column[place]) * 1e9
        for column in (modelled.per_op, modelled.per_byte, modelled.write_per_op, modelled.write_per_byte)
    )
    variation, background = float(modelled.variation[place]), float(modelled.background[place])
    early = (round(float(column[place]) * 1e9) for column in (modelled.credit, modelled.period))
    return Station(number, per_op, per_byte, variation, background, room, write_per_op, write_per_byte, *early)


def _views(queues: TierQueues, stations: Sequence[Station], nodes: int) -> tuple[TierStations, ...]:
    devices = []  # nodes that share one share its tuples too
    for node in range(0, nodes, queues.nodes_per_device):
        metadata = [queues.metadata_of(node, file) for file in range(queues.metadata_servers)]
        servers = [queues.server_of(node, file) for file in range(queues.servers)]
        locks = [queues.lock_of(node, file) for file in range(LOCKS)]
        kinds = (metadata, servers, locks)
        devices.append([tuple(stations[place] for place in places if place != NONE) for places in kinds])
    views = []
    for node in range(nodes):
        metadata_of, servers_of, locks_of = devices[node // queues.nodes_per_device]
        links = tuple(stations[place] for place in queues.links_of(node))
        views.append(
            TierStations(
                metadata=metadata_of,
                locks=locks_of,
                servers=servers_of,
                links=links,
                latency_ns=round(queues.latency * 1e9),
                metadata_latency_ns=round(queues.metadata_latency * 1e9),
                stripe_count=queues.stripe_count if servers_of else 1,
                stripe_size=queues.stripe_size,
                open_bytes=round(queues.open_bytes) if servers_of or links else 0,
                stream_ns=queues.stream_seconds * 1e9,
                hashed=bool(queues.hashed),
            )
        )
    return tuple(views)
