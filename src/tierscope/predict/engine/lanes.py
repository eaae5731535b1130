"""Threads in an operation: when it ends, how long they were busy, and how much wall time that is.

Threads of a rank that are busy at the same time share the wall time equally: the rank's wall clock runs at one over the number of its threads in
an operation, and an operation's wall seconds are what the clock advances meanwhile. So they add up to the time in which any thread was
busy. With one thread wall is busy, and no clock is kept.
"""

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import Records
from tierscope.predict.engine.operations import NO_DATA, Request, begin
from tierscope.predict.engine.state import Epoch
from tierscope.predict.engine.stations import leave_sharing


@inlined
def begin_for_lane(epoch: Epoch, number: int, operation: Request, now: float) -> None:
    """The lane's next event is the end of this operation, as soon as that is known."""
    lane, tier = epoch.lanes[number], epoch.tiers[operation.tier]
    lane.latency = tier.metadata_latency if operation.row == NO_DATA else operation.turns * tier.latency
    end, shared = begin(epoch, operation, number * epoch.sizes.visits, now)
    lane.waiting = shared
    if shared > 0:
        lane.ready = end
        forget(epoch.heap, number)
    else:
        plan(epoch.heap, number, end + lane.latency)


@piece
def end_visit(epoch: Epoch, number: int, now: float) -> None:
    """A sharing station's event: it is done with a part of an operation. The last part ends the operation."""
    entity = epoch.sizes.first_station + number
    part = leave_sharing(epoch.stations[number], epoch.parts, epoch.heap, entity, now)
    owner = part // epoch.sizes.visits
    if owner >= epoch.sizes.lanes:
        return  # a fill, and nobody waits for it
    lane = epoch.lanes[owner]
    lane.waiting -= 1
    lane.ready = max(lane.ready, now)
    if lane.waiting == 0:
        plan(epoch.heap, owner, lane.ready + lane.latency)


@inlined
def start_clock(epoch: Epoch, number: int, now: float) -> None:
    """This reader is busy from now on."""
    lane = epoch.lanes[number]
    lane.begun = now
    if epoch.loader.threads > 1:
        rank = epoch.ranks[number // epoch.loader.threads]
        _advance(rank, now)
        rank.active += 1
        lane.wall_begun = rank.wall_clock


@inlined
def stop_clock(epoch: Epoch, number: int, tier: int, kind: int, now: float) -> None:
    """It was busy until now, with this."""
    lane, owner = epoch.lanes[number], number // epoch.loader.threads
    epoch.busy[owner, tier, kind] += now - lane.begun
    if epoch.loader.threads > 1:
        rank = epoch.ranks[owner]
        _advance(rank, now)
        rank.active -= 1
        epoch.wall[owner, tier, kind] += rank.wall_clock - lane.wall_begun


@inlined
def _advance(rank: Records, now: float) -> None:
    if rank.active > 0:
        rank.wall_clock += (now - rank.wall_updated) / rank.active
    rank.wall_updated = now
