"""Checkpoints: a rank's writer works off the operations of one while the consumer stands still, or behind training; a drain copies it on behind that.

A consumer that comes to a checkpoint waits until the one before is written, copied on, and counts. What makes it count is done together where several
ranks write: they meet, whoever leads writes down what there is, they meet again. Then the next one is written, and training goes on, at once or when it counts.
"""

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import MEET, NONE, OPEN, SYNC, WRITE, Left, Records
from tierscope.predict.engine.lanes import begin_for_lane
from tierscope.predict.engine.operations import NO_DATA, Request
from tierscope.predict.engine.readers import push_turn
from tierscope.predict.engine.state import END_SAVE, IDLE, MEETING, NOT_ENDING, SAVED, SAVING, SETTLING, Epoch


@piece
def resume_saves(epoch: Epoch, number: int, left: Left) -> None:
    """A rank begins an epoch: what an earlier one left under way goes on."""
    save, start = epoch.saves[number], epoch.ranks[number].start
    save.unsettled = 1 if left.unsettled[number] else 0
    save.begun = start - left.since[number]
    if left.resumes[number] != NONE:
        save.timed = 1
        _run(epoch, epoch.sizes.first_writer + number, left.resumes[number], save.commit, start)
    if left.resumes_drain[number] != NONE:
        _run(epoch, epoch.sizes.first_drain + number, left.resumes_drain[number], save.drained, start)


@inlined
def is_due(epoch: Epoch, number: int) -> bool:
    """Whether the rank saves after the step that it has just done."""
    saving, save = epoch.saving[0], epoch.saves[number]
    if saving.every == 0 or save.first == save.end:
        return False
    return bool((saving.before + epoch.ranks[number].wanted + 1) % saving.every == 0)


@piece
def ends_with_save(epoch: Epoch, number: int, now: float) -> bool:
    """All steps are done: whether the rank has to stand still, first for a save that is due now, in the last epoch for what is under way."""
    saving, save = epoch.saving[0], epoch.saves[number]
    if save.first == save.end:
        return False
    if save.ending == NOT_ENDING and saving.at_end:
        save.ending = END_SAVE
        begin_save(epoch, number, True, now)
        return True
    if save.ending != SETTLING and saving.last:
        save.ending = SETTLING
        begin_save(epoch, number, False, now)
        return True
    return False


@piece
def begin_save(epoch: Epoch, number: int, launches: bool, now: float) -> None:
    """The consumer stands still; without `launches` only until nothing is under way."""
    save = epoch.saves[number]
    save.awaits, save.launches, save.stood = 1, launches, now
    _stand(epoch, number, now)


@piece
def _stand(epoch: Epoch, number: int, now: float) -> None:
    """What the consumer waits for next, if it waits for anything."""
    saving, save, sizes = epoch.saving[0], epoch.saves[number], epoch.sizes
    writer, drain = sizes.first_writer + number, epoch.lanes[sizes.first_drain + number]
    if save.awaits == 0 or epoch.lanes[writer].doing != IDLE:
        return
    if save.launches and drain.doing != IDLE:
        return
    if save.unsettled:
        save.unsettled = 0
        if save.commit < save.end:
            _run(epoch, writer, save.commit, save.end, now)
            return
    if save.launches:
        save.launches = 0
        save.number += 1
        save.timed, save.begun = 1, now
        save.unsettled = saving.background
        _run(epoch, writer, save.first, save.commit if saving.background else save.end, now)
        if not saving.background:
            return
    if save.ending == SETTLING and drain.doing != IDLE:
        return
    save.awaits = 0
    save.standstill += now - save.stood
    push_turn(epoch, number, SAVED)


@piece
def _run(epoch: Epoch, lane_number: int, first: int, end: int, now: float) -> None:
    """The lane works off these operations; it is told now, even if there are none."""
    lane = epoch.lanes[lane_number]
    lane.sample, lane.part_end, lane.doing = first - 1, end, SAVING
    lane.part_batch = NONE
    plan(epoch.heap, lane_number, now)


@piece
def advance_writer(epoch: Epoch, number: int, now: float) -> None:
    """A writer's or a drain's event: from one operation to the next; behind the last one the consumer may go on."""
    lane, sizes = epoch.lanes[number], epoch.sizes
    is_drain = number >= sizes.first_drain
    rank = number - (sizes.first_drain if is_drain else sizes.first_writer)
    save = epoch.saves[rank]
    if lane.part_batch != NONE:  # an operation is over
        _account(epoch, 1 if is_drain else 0, rank, lane, now)
    lane.sample += 1
    written = not is_drain and lane.sample == save.commit and lane.part_batch != NONE
    if written and save.end < save.drained:
        _run(epoch, sizes.first_drain + rank, save.end, save.drained, now)
    lane.part_batch = NONE
    if lane.sample < lane.part_end:
        if epoch.operations[lane.sample].kind == MEET:
            _meet(epoch, number, now)
        else:
            _begin(epoch, number, rank, now)
        return
    lane.doing = IDLE
    forget(epoch.heap, number)
    if not is_drain and save.timed:
        save.timed = 0
        epoch.longest[save.number] = max(epoch.longest[save.number], now - save.begun)
    _stand(epoch, rank, now)


@piece
def _meet(epoch: Epoch, number: int, now: float) -> None:
    """One more waits for all others; the last one lets all go on."""
    sizes, counts = epoch.sizes, epoch.counts[0]
    epoch.lanes[number].doing = MEETING
    forget(epoch.heap, number)
    counts.met += 1
    if counts.met == sizes.ranks:
        counts.met = 0
        for writer in range(sizes.first_writer, sizes.first_writer + sizes.ranks):
            epoch.lanes[writer].doing = SAVING
            plan(epoch.heap, writer, now)


@piece
def _begin(epoch: Epoch, number: int, rank: int, now: float) -> None:
    lane = epoch.lanes[number]
    operation = epoch.operations[lane.sample]
    lane.begun, lane.part_batch = now, lane.sample
    if operation.kind == SYNC:
        plan(epoch.heap, number, now + epoch.tiers[operation.tier].latency)
        return
    opens = operation.kind == OPEN
    row = NO_DATA if opens else operation.row
    node, writes = epoch.ranks[rank].node, operation.kind == WRITE
    request = Request(node, operation.tier, operation.file, row, 0, opens, writes, operation.turns, 1.0)
    begin_for_lane(epoch, number, request, now)


@inlined
def _account(epoch: Epoch, who: int, rank: int, lane: Records, now: float) -> None:
    operation = epoch.operations[lane.part_batch]
    saved = epoch.saved[who, rank, operation.tier, operation.kind]
    saved.busy += now - lane.begun
    saved.ops += int(operation.turns)
    saved.moved += operation.length
