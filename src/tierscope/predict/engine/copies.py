"""Copies of files from the last tier to tier 0: fills by a reader or behind its back, and fetches ahead of it.

A fill is written once the sample is read: by the reader itself, as ranks do it, which makes the copy, writes it, and goes on with its next sample then; or behind
its back, and nobody waits for it. Every rank has as many fetching threads as reading ones. They copy its files in the order in
which they are read, beginning with batches that the readers have no memory for yet, at most `window` files ahead. A reader whose file is on its
way waits for it: time of reading the last tier. A file that nobody has begun to fetch is read from the last tier. What is still being
written when the last rank is done is not waited for.
"""

from tierscope.predict.engine.compiled import piece
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import OPEN, READ, WRITE
from tierscope.predict.engine.lanes import begin_for_lane, start_clock, stop_clock
from tierscope.predict.engine.operations import NO_DATA, Request, begin, sample_size
from tierscope.predict.engine.state import (
    AWAITING,
    BETWEEN,
    COPY_OPEN,
    COPY_REST,
    COPY_WRITE,
    IDLE,
    NOT_BEGUN,
    ON_ITS_WAY,
    OPENING,
    READING,
    THERE,
    Epoch,
)


@piece
def advance_fetcher(epoch: Epoch, number: int, now: float) -> None:
    """A fetcher's event: it opens its file, reads it, writes it to tier 0, and chooses the next one."""
    lane, sizes = epoch.lanes[number], epoch.sizes
    rank = (number - sizes.readers) // epoch.loader.threads
    if lane.doing == READING + sizes.reads:
        _arrive(epoch, rank, lane.sample, now)
        lane.doing = BETWEEN
    if lane.doing == BETWEEN:
        if not _may_fetch(epoch, rank):
            lane.doing = IDLE
            forget(epoch.heap, number)
            return
        lane.sample = _take_next(epoch, rank)
    lane.doing += 1
    row = lane.doing - READING
    writes = row == sizes.reads
    tier = 0 if writes else sizes.home
    node, file = epoch.ranks[rank].node, epoch.requests.files[rank, lane.sample]
    size = sample_size(epoch, rank, lane.sample)
    begin_for_lane(epoch, number, Request(node, tier, file, row, 0, writes or row == NO_DATA, writes, 1.0, size), now)


@piece
def _may_fetch(epoch: Epoch, number: int) -> bool:
    """Whether a file is left to fetch, and room for it; `next_fetch` is the next one then."""
    rank, samples = epoch.ranks[number], epoch.sizes.samples
    sample = max(rank.next_fetch, min(samples, rank.launched * epoch.loader.batch))
    while sample < samples and not epoch.requests.fetched[number, sample]:
        sample += 1
    rank.next_fetch = sample
    return bool(sample < samples and rank.ahead < rank.window)


@piece
def _take_next(epoch: Epoch, number: int) -> int:
    rank = epoch.ranks[number]
    sample = rank.next_fetch
    epoch.fetch[number, sample] = ON_ITS_WAY
    rank.next_fetch += 1
    rank.ahead += 1
    return int(sample)


@piece
def _arrive(epoch: Epoch, rank: int, sample: int, now: float) -> None:
    """The file is on tier 0: a reader that waits for it goes on."""
    epoch.fetch[rank, sample] = THERE
    for number in range(rank * epoch.loader.threads, (rank + 1) * epoch.loader.threads):
        reader = epoch.lanes[number]
        if reader.doing == AWAITING and reader.sample == sample:
            plan(epoch.heap, number, now)


@piece
def must_wait(epoch: Epoch, number: int, now: float) -> bool:
    """A reader comes to a sample: whether it waits for a fetcher. What nobody has begun to fetch it reads itself."""
    requests, lane = epoch.requests, epoch.lanes[number]
    rank = number // epoch.loader.threads
    if requests.fetched[rank, lane.sample] and epoch.fetch[rank, lane.sample] == NOT_BEGUN:
        requests.fetched[rank, lane.sample] = False
        requests.tiers[rank, lane.sample] = epoch.sizes.home
    if epoch.fetch[rank, lane.sample] != ON_ITS_WAY:
        return False
    lane.doing = AWAITING
    start_clock(epoch, number, now)
    forget(epoch.heap, number)
    return True


@piece
def after_sample(epoch: Epoch, rank: int, sample: int, now: float) -> None:
    """A sample is read: there is room to fetch another file, or its own file is filled."""
    if epoch.sizes.fetches and epoch.requests.fetched[rank, sample]:
        epoch.ranks[rank].ahead -= 1
        first, threads = epoch.sizes.readers + rank * epoch.loader.threads, epoch.loader.threads
        for number in range(first, first + threads):
            if epoch.lanes[number].doing == IDLE:
                epoch.lanes[number].doing = BETWEEN
                plan(epoch.heap, number, now)
    elif epoch.sizes.fills and not epoch.loader.copies and epoch.requests.fills[rank, sample]:
        _fill(epoch, rank, sample, now)


@piece
def _fill(epoch: Epoch, rank: int, sample: int, now: float) -> None:
    """The copy is written with a new entry; the rest of the file, if there is one, is read from what is open already."""
    node, file = epoch.ranks[rank].node, epoch.requests.files[rank, sample]
    size = sample_size(epoch, rank, sample)
    row, counts = epoch.sizes.reads, epoch.counts[0]
    for writes in (True, False):
        tier = 0 if writes else epoch.sizes.home
        if writes or epoch.ops[tier, row] > 0.0:
            begin(epoch, Request(node, tier, file, row, 0, writes, writes, 1.0, size), counts.parts, now)
            counts.parts += epoch.sizes.visits


@piece
def copy_on(epoch: Epoch, number: int, now: float) -> bool:
    """A reader that copies the file of the sample that it has read: whether there is more to do for it."""
    lane, sizes = epoch.lanes[number], epoch.sizes
    rank, row = number // epoch.loader.threads, sizes.reads
    if lane.doing >= OPENING:
        if not epoch.requests.fills[rank, lane.sample]:
            return False
        lane.doing = COPY_REST if epoch.ops[sizes.home, row] > 0.0 else COPY_OPEN
    elif lane.doing == COPY_WRITE:
        stop_clock(epoch, number, 0, WRITE, now)
        return False
    elif lane.doing == COPY_OPEN:
        stop_clock(epoch, number, 0, OPEN, now)
        lane.doing = COPY_WRITE
    else:
        stop_clock(epoch, number, sizes.home, READ, now)
        lane.doing = COPY_OPEN
    opens, writes = lane.doing == COPY_OPEN, lane.doing == COPY_WRITE
    tier = sizes.home if lane.doing == COPY_REST else 0
    turns = 1.0 if opens else epoch.ops[tier, row]
    node, file = epoch.ranks[rank].node, epoch.requests.files[rank, lane.sample]
    start_clock(epoch, number, now)
    size = sample_size(epoch, rank, lane.sample)
    operation = Request(node, tier, file, NO_DATA if opens else row, 0, opens, writes, turns, size)
    begin_for_lane(epoch, number, operation, now)
    return True
