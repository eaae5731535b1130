"""The next event of every entity: a binary heap by (time, order of planning).

Entities are numbers: lanes, consumers and sharing stations. Each has one event at most, so planning another one moves it.
"""

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.inputs import NONE
from tierscope.predict.engine.state import Heap


@piece
def plan(heap: Heap, entity: int, time: float) -> None:
    """The entity's next event is at this time, instead of the one that it had."""
    event, counts = heap.events[entity], heap.counts[0]
    earlier = time < event.when
    event.when = time
    event.order = counts.planned
    counts.planned += 1
    if event.place < 0:
        heap.entities[counts.events] = entity
        counts.events += 1
        _up(heap, counts.events - 1)
    elif earlier:
        _up(heap, event.place)
    else:
        _down(heap, event.place)


@piece
def forget(heap: Heap, entity: int) -> None:
    """The entity has no next event."""
    event, counts = heap.events[entity], heap.counts[0]
    place = event.place
    if place < 0:
        return
    event.place = NONE
    counts.events -= 1
    last = heap.entities[counts.events]
    if last != entity:
        heap.entities[place] = last
        heap.events[last].place = place
        _up(heap, place)
        _down(heap, heap.events[last].place)


@inlined
def _before(heap: Heap, a: int, b: int) -> bool:
    this, other = heap.events[a], heap.events[b]
    return bool(this.when < other.when or (this.when == other.when and this.order < other.order))


@piece
def _up(heap: Heap, place: int) -> None:
    entity = heap.entities[place]
    while place > 0:
        parent = (place - 1) >> 1
        other = heap.entities[parent]
        if not _before(heap, entity, other):
            break
        heap.entities[place] = other
        heap.events[other].place = place
        place = parent
    heap.entities[place] = entity
    heap.events[entity].place = place


@piece
def _down(heap: Heap, place: int) -> None:
    size = heap.counts[0].events
    entity = heap.entities[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap, heap.entities[child + 1], heap.entities[child]):
            child += 1
        other = heap.entities[child]
        if not _before(heap, other, entity):
            break
        heap.entities[place] = other
        heap.events[other].place = place
        place = child
    heap.entities[place] = entity
    heap.events[entity].place = place
