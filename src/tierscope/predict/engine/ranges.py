"""Numbers by which compiled code finds rows of tables, checked there before the first event: behind the end of a table it would use whatever lies there.

Numbers of files and places in them are none: a file's server is the remainder of a division.
"""

from tierscope.errors import TierscopeError
from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.inputs import LOCKS, MEET, NONE, READ, WRITE, IntArray, Left
from tierscope.predict.engine.state import Epoch

# Place in _NAMES, the number, the least that it may be, the first that is too large.
Outside = tuple[int, int, int, int]
_NAMES = (
    *("", "requests.tiers", "start.nodes", "start.order", "a second place in start.order"),
    *("a divisor in system.tiers", "system.tiers.metadata", "system.tiers.servers_first", "system.tiers.node_link"),
    *("system.tiers.device_link", "system.tiers.gateway", "system.tiers.locks"),
    *("saving.first", "saving.commit", "saving.end", "saving.drained", "saving.left.resumes"),
    *("saving.left.resumes_drain", "saving.kinds", "saving.tiers", "saving.rows", "a checkpoint beyond saving.most"),
)
(
    INSIDE, _TIER, _NODE, _RANK, _TWICE, _DIVISOR, _METADATA, _SERVER, _NODE_LINK, _DEVICE_LINK, _GATEWAY, _LOCK,
    _FIRST, _COMMIT, _END, _DRAINED, _RESUMES, _RESUMES_DRAIN, _KIND, _SAVED_TIER, _ROW, _SAVE,
) = range(len(_NAMES))  # fmt: skip
_MUCH = 2**62


def check_ranges(outside: Outside) -> None:
    """What `first_outside` has found."""
    name, number, low, end = outside
    if name != INSIDE:
        allowed = f"{low} to {end - 1}" if end < _MUCH else f"{low} or more"
        must_be = f"must be {allowed}" if low < end else "there must be none"
        raise TierscopeError(f"event engine: {_NAMES[name]} leads to {number}; {must_be}")


@piece
def first_outside(epoch: Epoch, order: IntArray, left: Left) -> Outside:
    """The first number that leads out of its table; its name is `INSIDE` where there is none."""
    outside = _of_ranks(epoch, order)
    if outside[0] == INSIDE:
        outside = _of_tiers(epoch)
    if outside[0] == INSIDE:
        outside = _of_samples(epoch)
    if outside[0] == INSIDE and epoch.sizes.saves:
        outside = _of_savers(epoch, left)
        if outside[0] == INSIDE:
            outside = _of_operations(epoch)
    return outside


@inlined
def _unless(outside: Outside, name: int, number: int, low: int, end: int) -> Outside:
    """What was outside before, or else this."""
    if outside[0] != INSIDE or low <= number < end:
        return outside
    return name, number, low, end


@inlined
def _all_inside() -> Outside:
    return INSIDE, 0, 0, 0


@piece
def _of_ranks(epoch: Epoch, order: IntArray) -> Outside:
    outside = _all_inside()
    for number in range(epoch.sizes.ranks):
        outside = _unless(outside, _NODE, epoch.ranks[number].node, 0, _MUCH)
        outside = _unless(outside, _RANK, order[number], 0, epoch.sizes.ranks)
        if outside[0] != INSIDE:
            return outside
        turn = epoch.turns[order[number]]  # nobody has a turn yet: room for a mark
        outside = _unless(outside, _TWICE, order[number], 0, epoch.sizes.ranks if turn.why == 0 else 0)
        turn.why = 1
    return outside


@piece
def _of_tiers(epoch: Epoch) -> Outside:
    """Stations of a tier are there for all nodes that have a rank."""
    outside, last = _all_inside(), 0
    for number in range(epoch.sizes.ranks):
        last = max(last, epoch.ranks[number].node)
    for number in range(len(epoch.tiers)):
        tier = epoch.tiers[number]
        least = min(tier.nodes_per_device, tier.nodes_per_gateway, tier.metadata_servers)
        least = min(least, tier.servers, tier.stripe_count, tier.stripe_size)
        outside = _unless(outside, _DIVISOR, least, 1, _MUCH)
        if outside[0] != INSIDE:
            return outside
        devices = last // tier.nodes_per_device + 1
        outside = _stations(epoch, outside, _METADATA, tier.metadata, devices * tier.metadata_servers)
        outside = _stations(epoch, outside, _SERVER, tier.servers_first, devices * tier.servers)
        outside = _stations(epoch, outside, _NODE_LINK, tier.node_link, last + 1)
        outside = _stations(epoch, outside, _DEVICE_LINK, tier.device_link, devices)
        outside = _stations(epoch, outside, _GATEWAY, tier.gateway, last // tier.nodes_per_gateway + 1)
        outside = _stations(epoch, outside, _LOCK, tier.locks, devices * LOCKS)
    return outside


@inlined
def _stations(epoch: Epoch, outside: Outside, name: int, first: int, count: int) -> Outside:
    """So many from the first one on; none, where that is NONE."""
    if first == NONE:
        return outside
    stations = len(epoch.stations)
    return _unless(_unless(outside, name, first, 0, stations), name, first + count - 1, 0, stations)


@piece
def _of_samples(epoch: Epoch) -> Outside:
    outside, tiers = _all_inside(), epoch.requests.tiers
    for rank in range(epoch.sizes.ranks):
        for sample in range(epoch.sizes.samples):
            outside = _unless(outside, _TIER, tiers[rank, sample], 0, epoch.sizes.home + 1)
    return outside


@piece
def _of_savers(epoch: Epoch, left: Left) -> Outside:
    """Marks in the operations of a checkpoint come in order; and as many checkpoints are due as there is room for."""
    outside, end, saving = _all_inside(), len(epoch.operations), epoch.saving[0]
    for rank in range(epoch.sizes.ranks):
        save = epoch.saves[rank]
        outside = _unless(outside, _FIRST, save.first, 0, end + 1)
        outside = _unless(outside, _COMMIT, save.commit, save.first, end + 1)
        outside = _unless(outside, _END, save.end, save.commit, end + 1)
        outside = _unless(outside, _DRAINED, save.drained, save.end, end + 1)
        outside = _unless(outside, _RESUMES, left.resumes[rank], NONE, end)
        outside = _unless(outside, _RESUMES_DRAIN, left.resumes_drain[rank], NONE, end)
    due = saving.at_end
    if saving.every > 0:
        due += (saving.before + epoch.sizes.batches) // saving.every - saving.before // saving.every
    return _unless(outside, _SAVE, due, 0, len(epoch.longest))


@piece
def _of_operations(epoch: Epoch) -> Outside:
    outside, rows = _all_inside(), epoch.nbytes.shape[1]
    for number in range(len(epoch.operations)):
        operation = epoch.operations[number]
        outside = _unless(outside, _KIND, operation.kind, 0, MEET + 1)
        outside = _unless(outside, _SAVED_TIER, operation.tier, 0, epoch.sizes.home + 1)
        if operation.kind in (READ, WRITE):
            outside = _unless(outside, _ROW, operation.row, 0, rows)
    return outside
