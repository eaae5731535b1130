"""The queues that a system's emulated tiers consist of: who shares which, and how long each serves.

    metadata server   one per device; an open or stat takes 1/metadata_ops of it, a close nothing
    object server     `servers` per device; a read takes 1/read_ops + bytes/bandwidth of the one that holds the file
    gateway           one per `gateway_shared_by` nodes; a read takes bytes/gateway_bandwidth of it

A device serves `device_shared_by` nodes. Object servers differ in speed by `variation`, drawn once per seed.
Rates that are not given do not limit. Data streams through server and gateway at once: a read ends when both are done.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.native.stations import Station, TierStations
from tierscope.spec.study import System, Tier

__all__ = ["Station", "StationMap", "TierStations", "map_stations"]


@dataclass(frozen=True, slots=True)
class StationMap:
    """All queues of a system: `views[tier][node]`, None for a tier that is not emulated."""

    count: int
    views: tuple[tuple[TierStations, ...] | None, ...]


def map_stations(system: System, seed: int) -> StationMap:
    numbers = iter(range(1 << 62))
    views = tuple(_tier_views(tier, system.nodes, seed, numbers) if tier.emulate else None for tier in system.tiers)
    return StationMap(next(numbers), views)


def _tier_views(tier: Tier, nodes: int, seed: int, numbers: Iterator[int]) -> tuple[TierStations, ...]:
    shared_by = tier.device_shared_by or (1 if tier.visible_to == "node" else nodes)
    devices = [_device(tier, index, seed, numbers) for index in range(-(-nodes // shared_by))]
    gateways: list[Station | None] = [None]
    per_gateway = nodes
    if tier.gateway_bandwidth:
        per_gateway = tier.gateway_shared_by or nodes
        gateways = [Station(next(numbers), 0, 1e9 / tier.gateway_bandwidth) for _ in range(-(-nodes // per_gateway))]
    latency_ns = round(tier.latency * 1e9)
    return tuple(
        TierStations(*devices[node // shared_by], gateways[node // per_gateway], latency_ns) for node in range(nodes)
    )


def _device(
    tier: Tier, index: int, seed: int, numbers: Iterator[int]
) -> tuple[Station | None, tuple[Station | None, ...]]:
    metadata = Station(next(numbers), 1e9 / tier.metadata_ops, 0) if tier.metadata_ops else None
    servers: list[Station | None] = []
    for server in range(tier.servers):
        speed = _speed(tier.variation, f"{seed}/{tier.name}/{index}/{server}")
        per_op = 1e9 / tier.read_ops / speed if tier.read_ops else 0.0
        per_byte = 1e9 / tier.bandwidth / speed if tier.bandwidth else 0.0
        servers.append(Station(next(numbers), per_op, per_byte) if per_op or per_byte else None)
    return metadata, tuple(servers)


def _speed(variation: float, name: str) -> float:
    """A server's speed relative to the configured rate: normal, never below a tenth."""
    return max(0.1, random.Random(name).gauss(1.0, variation)) if variation else 1.0
