"""The one way to begin an operation: at all stations on its way at once, for readers, fetchers and fills alike."""

from typing import NamedTuple

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.heap import plan
from tierscope.predict.engine.inputs import ANOTHER_HASH, LOCKS, NONE, Records
from tierscope.predict.engine.state import Epoch
from tierscope.predict.engine.stations import join_queue, join_sharing, service

NO_DATA = -1  # the row of an open
_SHARED = -1.0  # a sharing station's answer: when it is done depends on who else comes


class Request(NamedTuple):
    """What moves, and where: an open (whose bytes may queue among the reads), a read, a write, or the write of a copy with the new entry that it makes."""

    node: int
    tier: int
    file: int
    row: int  # of Epoch.nbytes, or NO_DATA
    first_stripe: int  # on which the data begins
    opens: bool  # it asks the metadata server
    writes: bool  # data moves to the tier
    turns: float  # so many, one after another, are this one: each has the tier's latency
    size: float  # of its bytes: how many times those of the row


@inlined
def sample_size(epoch: Epoch, rank: int, sample: int) -> float:
    """Of the mean's."""
    return float(epoch.requests.sizes[rank, sample]) if epoch.requests.sizes.size > 0 else 1.0


@piece
def begin(epoch: Epoch, operation: Request, part: int, now: float) -> tuple[float, int]:
    """Join servers, links, the metadata server and the file's lock: when all FIFO stations are done, and how many sharing ones it waits for.

    `part`: the first of its parts at sharing stations, one for each visit.
    """
    tier, node, row = epoch.tiers[operation.tier], operation.node, operation.row
    stripes = epoch.nbytes.shape[2]
    device = node // tier.nodes_per_device
    end, shared = now, 0
    has_data = row != NO_DATA
    writes = operation.writes and has_data
    opened = tier.open_bytes if operation.opens else 0.0
    if has_data or opened > 0.0:
        ops, whole = epoch.ops[operation.tier, row] if has_data else 0.0, 0.0
        for stripe in range(stripes):
            nbytes = epoch.nbytes[operation.tier, row, stripe] * operation.size if has_data else 0.0
            if stripe == 0:
                nbytes += opened
            whole += nbytes
            if tier.servers_first != NONE and nbytes > 0.0:
                station = tier.servers_first + device * tier.servers + _server(tier, operation, stripe)
                done = _visit(epoch, station, ops, nbytes, writes, part + stripe, now)
                end, shared = max(end, done), shared + (done < 0.0)
        for link in range(3):
            first, place = _link(tier, node, link)
            if first != NONE:
                done = _visit(epoch, first + place, ops, whole, writes, part + stripes + link, now)
                end, shared = max(end, done), shared + (done < 0.0)
        if has_data:
            end = max(end, now + whole * tier.stream_seconds)
    if operation.opens and tier.metadata != NONE:
        station = tier.metadata + device * tier.metadata_servers + operation.file % tier.metadata_servers
        done = _visit(epoch, station, 1.0, 0.0, False, part + stripes + 3, now)
        end, shared = max(end, done), shared + (done < 0.0)
    if operation.opens and tier.locks != NONE:
        station = tier.locks + device * LOCKS + operation.file % LOCKS
        done = _visit(epoch, station, 1.0, 0.0, False, part + stripes + 4, now)
        end, shared = max(end, done), shared + (done < 0.0)
    return end, shared


@inlined
def _server(tier: Records, operation: Request, stripe: int) -> int:
    """Of the device's object servers the one that holds this stripe: files take turns, or lie where the hash says (plan/stations.py)."""
    if operation.first_stripe > 0:
        stripe = (stripe + operation.first_stripe) % tier.stripe_count
    file = operation.file
    if tier.hashed > 0:
        file = (file ^ (tier.hashed - 1) * ANOTHER_HASH) & 0xFFFFFFFF
        file = (((file >> 16) ^ file) * 0x45D9F3B) & 0xFFFFFFFF
        file = (((file >> 16) ^ file) * 0x45D9F3B) & 0xFFFFFFFF
        file = (file >> 16) ^ file
    return int((file + stripe) % tier.servers)


@inlined
def _link(tier: Records, node: int, number: int) -> tuple[int, int]:
    """The links of one kind, and which of them is on the node's way: its own, its device's, or its gateway."""
    if number == 0:
        return tier.node_link, node
    if number == 1:
        return tier.device_link, node // tier.nodes_per_device
    return tier.gateway, node // tier.nodes_per_gateway


@inlined
def _visit(epoch: Epoch, number: int, ops: float, nbytes: float, writes: bool, part: int, now: float) -> float:
    """When this station is done, or _SHARED."""
    station = epoch.stations[number]
    work = service(station, ops, nbytes, writes)
    station.worked += work
    station.served += int(ops)
    if not station.sharing:
        return join_queue(station, work, now)
    plan(epoch.heap, epoch.sizes.first_station + number, join_sharing(station, epoch.parts, part, work, now))
    return _SHARED
