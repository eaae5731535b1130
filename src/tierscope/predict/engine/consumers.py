"""A rank's consumer: it takes batches in order, computes, may wait for all other ranks, and frees the batch's memory for the next one.

Only compute and checkpoints take time. Whatever else a consumer's turn leads to, for its own rank or behind the step barrier for all, is worked off before the next
event. Turns are a stack: a rank whose next batch is complete already goes on before the others.
"""

import numpy as np

from tierscope.predict.engine.compiled import piece
from tierscope.predict.engine.heap import plan
from tierscope.predict.engine.readers import advance_reader, batch_size, part_size, push_turn
from tierscope.predict.engine.savers import begin_save, ends_with_save, is_due
from tierscope.predict.engine.state import BETWEEN, COMPLETE, IDLE, NOT_ENDING, PASSED, SAVED, Epoch


@piece
def take_turns(epoch: Epoch, now: float) -> None:
    """All consumers that are to act, and those that are to because of it."""
    loader, counts = epoch.loader, epoch.counts[0]
    while counts.turns > 0:
        counts.turns -= 1
        rank, why = epoch.turns[counts.turns].rank, epoch.turns[counts.turns].why
        if why == COMPLETE:
            seconds = loader.compute
            if loader.jitter > 0.0:
                seconds += np.random.exponential(loader.jitter)
            _take_batch(epoch, rank, seconds, now)
            if seconds > 0.0:
                plan(epoch.heap, epoch.sizes.lanes + rank, now + seconds)
                continue
        if loader.step_barrier and why < PASSED:
            _wait_for_all(epoch)
            continue
        if epoch.sizes.saves:
            if why == SAVED and epoch.saves[rank].ending != NOT_ENDING:
                _end(epoch, rank, now)
                continue
            if why != SAVED and is_due(epoch, rank):
                begin_save(epoch, rank, True, now)
                continue
        _free_batch(epoch, rank, now)


@piece
def launch(epoch: Epoch, number: int) -> None:
    """The rank's next batch has memory: its parts can be taken."""
    rank = epoch.ranks[number]
    share = part_size(epoch, rank.launched)
    slot = epoch.slots[number, rank.launched % epoch.sizes.slots]
    slot.parts_left = (batch_size(epoch, rank.launched) + share - 1) // share
    slot.read_begun = np.inf
    rank.launched += 1


@piece
def _take_batch(epoch: Epoch, number: int, seconds: float, now: float) -> None:
    """`seconds`: of its step."""
    rank = epoch.ranks[number]
    slot = epoch.slots[number, rank.wanted % epoch.sizes.slots]
    stalled = now - rank.asked
    rank.stall += stalled
    if epoch.loader.keep_steps:
        epoch.steps[number, rank.wanted, 0] = slot.read_ended - slot.read_begun
        epoch.steps[number, rank.wanted, 1] = stalled
        epoch.steps[number, rank.wanted, 2] = seconds


@piece
def _wait_for_all(epoch: Epoch) -> None:
    """One more at the step barrier; the last one lets all pass, in their order."""
    ranks, counts = epoch.sizes.ranks, epoch.counts[0]
    counts.at_barrier += 1
    if counts.at_barrier == ranks:
        counts.at_barrier = 0
        for rank in range(ranks - 1, -1, -1):
            push_turn(epoch, rank, PASSED)


@piece
def _free_batch(epoch: Epoch, number: int, now: float) -> None:
    """Its memory takes the next batch, for which idle readers wait, and the consumer wants the one behind it."""
    rank, threads = epoch.ranks[number], epoch.loader.threads
    launches = rank.launched < epoch.sizes.batches
    if launches:
        launch(epoch, number)
    rank.wanted += 1
    rank.asked = now
    if rank.wanted == epoch.sizes.batches:
        _end(epoch, number, now)
    elif epoch.slots[number, rank.wanted % epoch.sizes.slots].parts_left == 0:
        push_turn(epoch, number, COMPLETE)
    if launches:
        for lane in range(number * threads, (number + 1) * threads):
            if epoch.lanes[lane].doing == IDLE:
                epoch.lanes[lane].doing = BETWEEN
                advance_reader(epoch, lane, now)


@piece
def _end(epoch: Epoch, number: int, now: float) -> None:
    """The rank's last step is done, and the epoch is over for it, unless it stands still for a checkpoint."""
    if epoch.sizes.saves and ends_with_save(epoch, number, now):
        return
    rank = epoch.ranks[number]
    rank.seconds = now - rank.start
    epoch.counts[0].done += 1
    if epoch.counts[0].done == epoch.sizes.until:
        epoch.counts[0].events = 0  # what is still written goes on in the next epoch
