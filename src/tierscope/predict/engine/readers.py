"""A reading thread's event: an operation, a sample or a part of a batch is over, and the next one begins."""

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.copies import after_sample, copy_on, must_wait
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import NONE, OPEN, READ
from tierscope.predict.engine.lanes import begin_for_lane, start_clock, stop_clock
from tierscope.predict.engine.operations import NO_DATA, Request, sample_size
from tierscope.predict.engine.state import (
    AWAITING,
    BETWEEN,
    COMPLETE,
    COPY_REST,
    IDLE,
    OPENING,
    READING,
    Epoch,
)


@piece
def advance_reader(epoch: Epoch, number: int, now: float) -> None:
    """From one operation to the next."""
    lane, requests, sizes = epoch.lanes[number], epoch.requests, epoch.sizes
    rank, doing = number // epoch.loader.threads, lane.doing
    if doing >= OPENING or doing <= COPY_REST:
        if _goes_on(epoch, number, now):
            return
        lane.sample += 1
        lane.doing = BETWEEN
        if epoch.loader.overhead > 0.0:
            plan(epoch.heap, number, now + epoch.loader.overhead * sample_size(epoch, rank, lane.sample - 1))
            return
    if doing == AWAITING:
        stop_clock(epoch, number, sizes.home, int(READ), now)
    elif lane.sample >= lane.part_end:
        _end_part(epoch, number, now)
        if not _take_part(epoch, number, now):
            lane.doing = IDLE
            forget(epoch.heap, number)
            return
    if sizes.reads == 0:  # samples are made in memory
        lane.sample = lane.part_end
        plan(epoch.heap, number, now)
    elif _reads(epoch, rank, lane.sample) == 0:  # it lies in the buffer
        lane.sample += 1
        lane.doing = BETWEEN
        plan(epoch.heap, number, now + epoch.loader.overhead * sample_size(epoch, rank, lane.sample - 1))
    elif not (sizes.fetches and must_wait(epoch, number, now)):
        _begin(epoch, number, NO_DATA if requests.opens[rank, lane.sample] else 0, now)


@inlined
def _goes_on(epoch: Epoch, number: int, now: float) -> bool:
    """An operation for its sample is over: whether there is another one."""
    lane, requests, sizes = epoch.lanes[number], epoch.requests, epoch.sizes
    rank, doing = number // epoch.loader.threads, lane.doing
    if doing >= OPENING:
        kind = OPEN if doing == OPENING else READ
        stop_clock(epoch, number, int(requests.tiers[rank, lane.sample]), kind, now)
        row = doing - READING + 1
        if row < _reads(epoch, rank, lane.sample):
            _begin(epoch, number, row, now)
            return True
        if sizes.fetches or sizes.fills:
            after_sample(epoch, rank, lane.sample, now)
    return sizes.fills and epoch.loader.copies and copy_on(epoch, number, now)


@inlined
def _begin(epoch: Epoch, number: int, row: int, now: float) -> None:
    """Open its sample's file, or read this row of it."""
    requests, lane = epoch.requests, epoch.lanes[number]
    rank = number // epoch.loader.threads
    tier, file = int(requests.tiers[rank, lane.sample]), requests.files[rank, lane.sample]
    first_stripe = requests.first_stripes[rank, lane.sample] if requests.first_stripes.size > 0 else 0
    lane.doing = READING + row
    start_clock(epoch, number, now)
    size = 1.0
    if requests.counts.size > 0 and row != NO_DATA:
        place = requests.offsets[rank, lane.sample] + row * requests.request_bytes
        first_stripe = place // epoch.tiers[tier].stripe_size % epoch.tiers[tier].stripe_count
        if row == requests.counts[rank, lane.sample] - 1:
            size = float(requests.lasts[rank, lane.sample])
    if row >= epoch.sizes.reads:
        row %= epoch.sizes.reads
    if row != NO_DATA and requests.sizes.size > 0 and requests.counts.size == 0:
        size = _piece_size(epoch, rank, lane.sample, row)
    operation = Request(epoch.ranks[rank].node, tier, file, row, first_stripe, row == NO_DATA, False, 1.0, size)
    begin_for_lane(epoch, number, operation, now)


@inlined
def _reads(epoch: Epoch, rank: int, sample: int) -> int:
    """Of the sample: a larger one takes more of them, not larger ones."""
    if epoch.requests.counts.size > 0:
        return int(epoch.requests.counts[rank, sample])
    if epoch.requests.sizes.size == 0:
        return epoch.sizes.reads
    return max(1, int(epoch.requests.sizes[rank, sample] * epoch.sizes.reads + 0.5))


@piece
def _piece_size(epoch: Epoch, rank: int, sample: int, row: int) -> float:
    """The sample's bytes in equal reads: how many times those of this row."""
    tier = int(epoch.requests.tiers[rank, sample])
    usual = 0.0
    for stripe in range(epoch.nbytes.shape[2]):
        usual += epoch.nbytes[tier, row, stripe]
    nbytes = epoch.requests.sizes[rank, sample] * epoch.sizes.sample_bytes / _reads(epoch, rank, sample)
    return nbytes / usual if usual > 0.0 else 1.0


@piece
def _end_part(epoch: Epoch, number: int, now: float) -> None:
    """The lane has read its part, if it had one. A consumer that waits for this batch acts once it is complete."""
    lane, rank = epoch.lanes[number], number // epoch.loader.threads
    batch = lane.part_batch
    if batch == NONE:
        return
    slot = epoch.slots[rank, batch % epoch.sizes.slots]
    slot.parts_left -= 1
    slot.read_ended = now
    lane.part_batch = NONE
    if slot.parts_left == 0 and batch == epoch.ranks[rank].wanted:
        push_turn(epoch, rank, COMPLETE)


@piece
def _take_part(epoch: Epoch, number: int, now: float) -> bool:
    """The next part of a batch that has memory, if there is one."""
    lane, rank = epoch.lanes[number], epoch.ranks[number // epoch.loader.threads]
    batch = rank.next_batch
    if batch >= rank.launched:
        return False
    size, share = batch_size(epoch, batch), part_size(epoch, batch)
    start = rank.next_part * share
    lane.sample = batch * epoch.loader.batch + start
    lane.part_end = batch * epoch.loader.batch + min(start + share, size)
    lane.part_batch = batch
    slot = epoch.slots[number // epoch.loader.threads, batch % epoch.sizes.slots]
    slot.read_begun = min(slot.read_begun, now)
    rank.next_part += 1
    if start + share >= size:
        rank.next_batch += 1
        rank.next_part = 0
    return True


@inlined
def push_turn(epoch: Epoch, rank: int, why: int) -> None:
    """This rank's consumer acts before the next event."""
    turn = epoch.turns[epoch.counts[0].turns]
    turn.rank, turn.why = rank, why
    epoch.counts[0].turns += 1


@inlined
def batch_size(epoch: Epoch, batch: int) -> int:
    """Samples: the last batch may be short."""
    return min(epoch.loader.batch, epoch.sizes.samples - batch * epoch.loader.batch)


@inlined
def part_size(epoch: Epoch, batch: int) -> int:
    """Samples of each thread's part of a batch; the last part may be short."""
    if epoch.loader.whole_batches:
        return batch_size(epoch, batch)
    return (batch_size(epoch, batch) + epoch.loader.threads - 1) // epoch.loader.threads
