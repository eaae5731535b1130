"""The queues that a system's tiers consist of: who shares which, and how long each serves.

    metadata server   `metadata_servers` per device; an open or stat takes 1/metadata_ops of the file's one, a close nothing
    lock of a file    an open also takes 1/file_open_ops of it: processes that open one and the same file do so in turn. Files share `LOCKS` of them by
                      number, which costs files that differ next to nothing: the metadata server has far more to do than any of so many
    object server     `servers` per device; a read takes 1/read_ops + bytes/bandwidth of each that holds a part of it, a write
                      1/write_ops + bytes/write_bandwidth, or as much as a read where those are not given
    links             a node's own, a device's, a gateway's: a read or a write takes bytes/bandwidth of each on its way

An open may queue among the reads (`open_bytes`), a server may make up for idle time (`credit`) or hand out what it allows
in portions (`quota_period`: what would be done in a period is done at its beginning), and a read takes at least
bytes/stream_bandwidth, whoever else reads.

A device serves `device_shared_by` nodes, a gateway `gateway_shared_by`. Object servers differ in speed by `variation`, drawn once
per seed. Rates that are not given do not limit. Data streams through servers and links at once: a read ends when all
are done. What emulates a tier and what simulates it start from here, so that they mean the same system.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.spec.study import System, Tier

FloatArray = npt.NDArray[np.float64]
NONE = -1  # no such station: no rate limits
LOCKS = 64  # of a device
MOST_STATIONS = 200_000  # each is a queue of its own
ANOTHER_HASH = 0x9E3779B1  # times the number of a layout, to set it apart from others
_WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TierQueues:
    """Where a tier's stations begin (NONE: it has no such), and how nodes and files find theirs."""

    name: str
    nodes_per_device: int
    nodes_per_gateway: int
    metadata: int
    metadata_servers: int
    servers_first: int
    servers: int
    node_link: int
    device_link: int
    gateway: int
    stripe_count: int
    stripe_size: int
    latency: float
    metadata_latency: float
    open_bytes: float = 0.0
    stream_seconds: float = 0.0  # of a byte, outside queues; 0: streams are not limited
    hashed: int = 0  # 0: files take turns on servers; else they lie at random, in another way for every number
    locks: int = NONE

    def metadata_of(self, node: int, file: int) -> int:
        if self.metadata == NONE:
            return NONE
        return self.metadata + node // self.nodes_per_device * self.metadata_servers + file % self.metadata_servers

    def lock_of(self, node: int, file: int) -> int:
        return NONE if self.locks == NONE else self.locks + node // self.nodes_per_device * LOCKS + file % LOCKS

    def server_of(self, node: int, file: int, stripe: int = 0) -> int:
        """The server that holds a stripe of a file: files take turns, or lie where their number's hash says."""
        if self.servers_first == NONE:
            return NONE
        place: int = laid_out(file, self.hashed)
        return self.servers_first + node // self.nodes_per_device * self.servers + (place + stripe) % self.servers

    def links_of(self, node: int) -> list[int]:
        links = (
            (self.node_link, node),
            (self.device_link, node // self.nodes_per_device),
            (self.gateway, node // self.nodes_per_gateway),
        )
        return [first + place for first, place in links if first != NONE]


@dataclass(frozen=True, slots=True)
class Stations:
    """All stations of a system by number: seconds of service per operation and per byte, and how they serve."""

    tiers: tuple[TierQueues, ...]
    per_op: FloatArray  # of opens and reads
    per_byte: FloatArray
    write_per_op: FloatArray
    write_per_byte: FloatArray
    variation: FloatArray  # of each service
    sharing: npt.NDArray[np.bool_]  # serves all at once instead of one after another
    background: FloatArray  # share of its time that others take
    latency: FloatArray  # of an operation that it served, behind it
    credit: FloatArray  # seconds of idle time that it makes up for
    stock: FloatArray  # of these, what it has when an epoch begins
    period: FloatArray  # seconds in which it hands out what it allows, all at once; 0: no portions
    names: tuple[tuple[int, str], ...]  # (first number, what it is), in order

    @property
    def count(self) -> int:
        return len(self.per_op)

    @property
    def made_up(self) -> FloatArray:
        """Seconds by which an operation that finds a station idle is done early: all credit, and half a period on average."""
        return self.credit + self.period / 2

    def rates(self, writes: bool) -> tuple[FloatArray, FloatArray]:
        """Seconds per operation and per byte, of reads (and opens) or of writes. A metadata server's are the same."""
        return (self.write_per_op, self.write_per_byte) if writes else (self.per_op, self.per_byte)

    def from_first(self, first: int) -> slice:
        """All of the kind that begins there, of all devices; NONE: none."""
        if first == NONE:
            return slice(0, 0)
        return slice(first, min((start for start, _ in self.names if start > first), default=self.count))

    def with_stock(self, share: float) -> "Stations":
        """An epoch begins with so much of all credit: a part of an epoch has its part of it."""
        return replace(self, stock=self.credit * share) if self.credit.any() else self

    def with_layouts(self, hashed: Mapping[int, int]) -> "Stations":
        """With files of these tiers, by number, laid out over their servers in another way."""
        tiers = tuple(replace(tier, hashed=hashed.get(place, tier.hashed)) for place, tier in enumerate(self.tiers))
        return replace(self, tiers=tiers)

    def name_of(self, number: int) -> str:
        """`gfs metadata server 0`, for people."""
        first, name = [(first, name) for first, name in self.names if first <= number][-1]
        return f"{name} {number - first}"


@dataclass(frozen=True, slots=True)
class _Row:
    per_op: float
    per_byte: float
    write_per_op: float
    write_per_byte: float
    variation: float
    sharing: bool
    background: float
    latency: float
    credit: float = 0.0
    period: float = 0.0


class _Builder:
    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.names: list[tuple[int, str]] = []

    def add(self, name: str, rows: Sequence[_Row]) -> int:
        """The number of the first of them; NONE when none of them limits."""
        if not any(row.per_op or row.per_byte or row.write_per_op or row.write_per_byte for row in rows):
            return NONE
        first = len(self.rows)
        self.names.append((first, name))
        self.rows += rows
        return first


def stations_of(system: System, seed: int, tiers: Sequence[bool] | None = None) -> Stations:
    """The stations of all tiers, or of those that are marked; the others have none."""
    if (count := count_servers(system)) > MOST_STATIONS:
        widest = max(system.tiers, key=lambda tier: _servers(tier, system.nodes))
        raise UserError(
            f"system.tiers.{widest.name}.servers = {widest.servers} and metadata_servers = {widest.metadata_servers} with system.nodes = "
            f"{system.nodes} make {count:,} servers; at most {MOST_STATIONS:,} are supported: lower one of them"
        )
    builder = _Builder()
    queues = tuple(
        _tier(builder, tier, system.nodes, seed) if tiers is None or tiers[number] else _no_queues(tier)
        for number, tier in enumerate(system.tiers)
    )
    rows = builder.rows
    return Stations(
        queues,
        np.array([row.per_op for row in rows]),
        np.array([row.per_byte for row in rows]),
        np.array([row.write_per_op for row in rows]),
        np.array([row.write_per_byte for row in rows]),
        np.array([row.variation for row in rows]),
        np.array([row.sharing for row in rows], np.bool_),
        np.array([row.background for row in rows]),
        np.array([row.latency for row in rows]),
        np.array([row.credit for row in rows]),
        np.array([row.credit for row in rows]),
        np.array([row.period for row in rows]),
        tuple(builder.names),
    )


def count_servers(system: System) -> int:
    """Of all devices of all tiers."""
    return sum(_servers(tier, system.nodes) for tier in system.tiers)


def _servers(tier: Tier, nodes: int) -> int:
    return -(-nodes // _nodes_per_device(tier, nodes)) * (tier.servers + tier.metadata_servers)


def _nodes_per_device(tier: Tier, nodes: int) -> int:
    return tier.device_shared_by or (1 if tier.visible_to == "node" else nodes)


def _tier(builder: _Builder, tier: Tier, nodes: int, seed: int) -> TierQueues:
    per_device = _nodes_per_device(tier, nodes)
    per_gateway = tier.gateway_shared_by or nodes
    devices, gateways = -(-nodes // per_device), -(-nodes // per_gateway)
    sharing = tier.discipline == "sharing"

    def metadata_server() -> _Row:
        per_op = 1 / tier.metadata_ops if tier.metadata_ops else 0.0
        return _Row(per_op, 0.0, per_op, 0.0, tier.metadata_variation, sharing, tier.background, tier.metadata_latency)

    def locks() -> list[_Row]:
        if not tier.file_open_ops:
            return []
        per_op = 1 / tier.file_open_ops
        return [_Row(per_op, 0.0, per_op, 0.0, 0.0, False, 0.0, tier.metadata_latency)] * (devices * LOCKS)

    def server(name: str) -> _Row:
        speed = _speed(tier.variation, name)
        per_op = 1 / tier.read_ops / speed if tier.read_ops else 0.0
        per_byte = 1 / tier.bandwidth / speed if tier.bandwidth else 0.0
        write_per_op = 1 / tier.write_ops / speed if tier.write_ops else per_op
        write_per_byte = 1 / tier.write_bandwidth / speed if tier.write_bandwidth else per_byte
        rates = (per_op, per_byte, write_per_op, write_per_byte)
        early = (tier.credit, tier.quota_period)
        return _Row(*rates, tier.service_variation, sharing, tier.background, tier.latency, *early)

    def links(bandwidth: float | None, count: int) -> list[_Row]:
        if not bandwidth:
            return []
        return [_Row(0.0, 1 / bandwidth, 0.0, 1 / bandwidth, 0.0, False, 0.0, tier.latency)] * count

    def servers() -> list[_Row]:
        if not tier.variation:
            return [server("")] * (devices * tier.servers)
        return [
            server(f"{seed}/{tier.name}/{device}/{number}")
            for device in range(devices)
            for number in range(tier.servers)
        ]

    return TierQueues(
        name=tier.name,
        nodes_per_device=per_device,
        nodes_per_gateway=per_gateway,
        metadata=builder.add(f"{tier.name} metadata server", [metadata_server()] * (devices * tier.metadata_servers)),
        metadata_servers=tier.metadata_servers,
        servers_first=builder.add(f"{tier.name} server", servers()),
        servers=tier.servers,
        node_link=builder.add(f"{tier.name} link of node", links(tier.node_bandwidth, nodes)),
        device_link=builder.add(f"{tier.name} link of device", links(tier.device_bandwidth, devices)),
        gateway=builder.add(f"{tier.name} gateway", links(tier.gateway_bandwidth, gateways)),
        locks=builder.add(f"{tier.name} lock of file", locks()),
        stripe_count=min(tier.stripe_count, tier.servers),
        stripe_size=tier.stripe_size,
        latency=tier.latency,
        metadata_latency=tier.metadata_latency,
        open_bytes=float(tier.open_bytes),
        stream_seconds=1 / tier.stream_bandwidth if tier.stream_bandwidth else 0.0,
        hashed=int(tier.layout == "hash"),
    )


def _no_queues(tier: Tier) -> TierQueues:
    return TierQueues(tier.name, 1, 1, NONE, 1, NONE, tier.servers, NONE, NONE, NONE, 1, tier.stripe_size, 0.0, 0.0)


def _speed(variation: float, name: str) -> float:
    """A server's speed relative to the configured rate: normal, never below a tenth."""
    return max(0.1, random.Random(name).gauss(1.0, variation)) if variation else 1.0


def mixed(file: Any) -> Any:
    """A file's number as a hash would have it, of a number or an array of them: neighbours lie anywhere."""
    bits = file & _WORD
    for _ in range(2):
        bits = (((bits >> 16) ^ bits) * 0x45D9F3B) & _WORD
    return (bits >> 16) ^ bits


def laid_out(file: Any, hashed: int) -> Any:
    """The number by which a file, or an array of them, finds its first server; `hashed`: that of its tier."""
    return mixed(file ^ (hashed - 1) * ANOTHER_HASH) if hashed else file


def stripes(offset: int, nbytes: int, count: int, size: int) -> list[int]:
    """Bytes of a read on each of the `count` servers that a file is spread over."""
    if count == 1:
        return [nbytes]
    end = offset + nbytes
    return [_below(end, number, count, size) - _below(offset, number, count, size) for number in range(count)]


def _below(position: int, number: int, count: int, size: int) -> int:
    """Bytes of stripe `number` before a position of the file."""
    rounds, rest = divmod(position, count * size)
    return rounds * size + min(max(rest - number * size, 0), size)
