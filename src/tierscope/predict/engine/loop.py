"""The entry of the event engine, and its only loop over events."""

from typing import Any

import numpy as np

from tierscope.predict.engine.compiled import entry, piece, sources_digest
from tierscope.predict.engine.consumers import launch, take_turns
from tierscope.predict.engine.copies import advance_fetcher
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import (
    NONE,
    EpochTimes,
    IntArray,
    Left,
    LoaderInputs,
    Requests,
    SaveInputs,
    SaveTimes,
    StartInputs,
    SystemInputs,
)
from tierscope.predict.engine.lanes import end_visit
from tierscope.predict.engine.ranges import INSIDE, Outside, check_ranges, first_outside
from tierscope.predict.engine.readers import advance_reader, push_turn
from tierscope.predict.engine.savers import advance_writer, resume_saves
from tierscope.predict.engine.shapes import check_shapes
from tierscope.predict.engine.state import BETWEEN, COMPUTED, IDLE, Epoch, new_epoch


def run_epoch(
    requests: Requests, start: StartInputs, system: SystemInputs, loader: LoaderInputs, saving: SaveInputs
) -> EpochTimes:
    """Simulate an epoch; `requests` are changed, see there."""
    check_shapes(requests, start, system, loader, saving)
    epoch = new_epoch(requests, start, system, loader, saving)
    check_ranges(_run(epoch, start.order, saving.left))
    return EpochTimes(
        seconds=epoch.ranks["seconds"].copy(),
        stall=epoch.ranks["stall"].copy(),
        busy=epoch.busy,
        wall=epoch.wall if loader.threads > 1 else epoch.busy.copy(),
        steps=epoch.steps,
        worked=epoch.stations["worked"].copy(),
        served=epoch.stations["served"].copy(),
        saved=_saved(epoch, saving) if epoch.sizes.saves else None,
    )


def _saved(epoch: Epoch, saving: SaveInputs) -> SaveTimes:
    """With what the next epoch has to go on with. An operation that is under way when the last rank is done is ended then."""
    sizes, saves, saved = epoch.sizes, epoch.saves, epoch.saved
    now = float((epoch.ranks["start"] + epoch.ranks["seconds"]).max())
    going_on = []
    for who, (first, end) in enumerate(((sizes.first_writer, saving.commit), (sizes.first_drain, saving.drained))):
        lanes = epoch.lanes[first : first + sizes.ranks]
        for rank in np.flatnonzero((lanes["doing"] != IDLE) & (lanes["part_batch"] != NONE)):
            operation = lanes["part_batch"][rank]
            at = (who, rank, saving.tiers[operation], saving.kinds[operation])
            saved["busy"][at] += max(0.0, now - lanes["begun"][rank])
            saved["ops"][at] += int(saving.turns[operation])
            saved["moved"][at] += saving.nbytes[operation]
        behind = lanes["sample"] + 1
        going_on.append(np.where((lanes["doing"] != IDLE) & (behind < end), behind, NONE))
        if not who:  # what is written with the last operation of this epoch is copied on in the next one
            written = (lanes["doing"] != IDLE) & (behind == end)
    drains = written & (saving.end < saving.drained)
    going_on[1] = np.where(drains, saving.end, going_on[1])
    return SaveTimes(
        standstill=saves["standstill"].copy(),
        longest=epoch.longest[epoch.longest > 0],
        busy=saved["busy"].copy(),
        ops=saved["ops"].copy(),
        nbytes=saved["moved"].copy(),
        left=Left(going_on[0], going_on[1], saves["unsettled"] > 0, now - saves["begun"]),
    )


@piece
def _begin(epoch: Epoch, order: IntArray, left: Left) -> None:
    """Every rank has memory for its first batches, and its threads begin when it does."""
    for number in order:
        for _ in range(min(epoch.sizes.slots, epoch.sizes.batches)):
            launch(epoch, number)
        for lane in range(number * epoch.loader.threads, (number + 1) * epoch.loader.threads):
            epoch.lanes[lane].doing = BETWEEN
            plan(epoch.heap, lane, epoch.ranks[number].start)
            if epoch.sizes.fetches:
                epoch.lanes[epoch.sizes.readers + lane].doing = BETWEEN
                plan(epoch.heap, epoch.sizes.readers + lane, epoch.ranks[number].start)
        if epoch.sizes.saves:
            resume_saves(epoch, number, left)


def _kept_under(digest: str) -> Any:
    @entry
    def run(epoch: Epoch, order: IntArray, left: Left) -> Outside:
        """Event by event, until there is none. Every entity whose event it is plans its next one, or forgets this one."""
        assert len(digest) > 0
        outside = first_outside(epoch, order, left)
        if outside[0] != INSIDE:
            return outside
        np.random.seed(epoch.loader.seed)
        _begin(epoch, order, left)
        heap, sizes, counts = epoch.heap, epoch.sizes, epoch.counts[0]
        while counts.events > 0:
            entity = heap.entities[0]
            now = heap.events[entity].when
            if entity < sizes.readers:
                advance_reader(epoch, entity, now)
            elif entity < sizes.first_writer:
                advance_fetcher(epoch, entity, now)
            elif entity < sizes.lanes:
                advance_writer(epoch, entity, now)
            elif entity < sizes.first_station:
                forget(heap, entity)
                push_turn(epoch, entity - sizes.lanes, COMPUTED)
            else:
                end_visit(epoch, entity - sizes.first_station, now)
            if counts.turns > 0:
                take_turns(epoch, now)
        return outside

    return run


_run = _kept_under(sources_digest())
