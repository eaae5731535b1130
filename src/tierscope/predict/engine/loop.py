"""The entry of the event engine, and its only loop over events."""

from typing import Any

import numpy as np

from tierscope.predict.engine.compiled import entry, piece, sources_digest
from tierscope.predict.engine.consumers import launch, take_turns
from tierscope.predict.engine.copies import advance_fetcher
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import EpochTimes, IntArray, LoaderInputs, Requests, StartInputs, SystemInputs
from tierscope.predict.engine.lanes import end_visit
from tierscope.predict.engine.readers import advance_reader, push_turn
from tierscope.predict.engine.state import BETWEEN, COMPUTED, Epoch, new_epoch


def run_epoch(requests: Requests, start: StartInputs, system: SystemInputs, loader: LoaderInputs) -> EpochTimes:
    """Simulate an epoch; `requests` are changed, see there."""
    epoch = new_epoch(requests, start, system, loader)
    _run(epoch, start.order)
    return EpochTimes(
        seconds=epoch.ranks["seconds"].copy(),
        stall=epoch.ranks["stall"].copy(),
        busy=epoch.busy,
        wall=epoch.wall if loader.threads > 1 else epoch.busy.copy(),
        steps=epoch.steps,
        worked=epoch.stations["worked"].copy(),
        served=epoch.stations["served"].copy(),
    )


@piece
def _begin(epoch: Epoch, order: IntArray) -> None:
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


def _kept_under(digest: str) -> Any:
    @entry
    def run(epoch: Epoch, order: IntArray) -> None:
        """Event by event, until there is none. Every entity whose event it is plans its next one, or forgets this one."""
        assert len(digest) > 0
        np.random.seed(epoch.loader.seed)
        _begin(epoch, order)
        heap, sizes, counts = epoch.heap, epoch.sizes, epoch.counts[0]
        while counts.events > 0:
            entity = heap.entities[0]
            now = heap.events[entity].when
            if entity < sizes.readers:
                advance_reader(epoch, entity, now)
            elif entity < sizes.lanes:
                advance_fetcher(epoch, entity, now)
            elif entity < sizes.first_station:
                forget(heap, entity)
                push_turn(epoch, entity - sizes.lanes, COMPUTED)
            else:
                end_visit(epoch, entity - sizes.first_station, now)
            if counts.turns > 0:
                take_turns(epoch, now)

    return run


_run = _kept_under(sources_digest())
