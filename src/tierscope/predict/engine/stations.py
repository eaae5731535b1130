"""Stations: what serves operations, one after another (FIFO) or all at once (processor sharing).

A FIFO station is one number: the time at which it will be free; with credit that may lie behind the clock. A sharing station is a clock of the work that each of those present receives; it
runs slower the more are there. A part that joins is done when the clock has advanced by its work, so the next to be done is the one with the smallest
target: the root of a skew heap of all parts present. Only sharing stations have events.
"""

import numpy as np

from tierscope.predict.engine.compiled import inlined, piece
from tierscope.predict.engine.heap import forget, plan
from tierscope.predict.engine.inputs import NONE, Records
from tierscope.predict.engine.state import Heap


@inlined
def service(station: Records, ops: float, nbytes: float, writes: bool) -> float:
    """Seconds of work, by the rule of plan/variation.py where the station varies."""
    if writes:
        seconds = ops * station.write_per_op + nbytes * station.write_per_byte
    else:
        seconds = ops * station.per_op + nbytes * station.per_byte
    if station.log_deviation > 0.0:
        seconds *= np.random.lognormal(station.log_mean, station.log_deviation)
    return float(seconds)


@inlined
def join_queue(station: Records, work: float, now: float) -> float:
    """One more for a FIFO station: when it is done. One that was idle makes up for its credit: a token bucket. One with a period allows all of that at its beginning."""
    if station.period > 0.0:
        begun = np.floor(now / station.period) * station.period
        station.free = max(begun - station.credit, station.free) + work / station.speed
        return float(max(now, (np.ceil(station.free / station.period) - 1.0) * station.period))
    station.free = max(now - station.credit, station.free) + work / station.speed
    return float(max(now, station.free))


@piece
def join_sharing(station: Records, parts: Records, part: int, work: float, now: float) -> float:
    """One more for a sharing station: when it is done with its next part, if nobody else comes."""
    if station.present > 0:
        station.clock += (now - station.updated) * station.speed / station.present
    station.updated = now
    parts[part].target = station.clock + work
    parts[part].left = parts[part].right = NONE
    station.root = _merge(parts, station.root, part)
    station.present += 1
    return now + _until_next(station, parts)


@piece
def leave_sharing(station: Records, parts: Records, heap: Heap, entity: int, now: float) -> int:
    """A sharing station's event: which part it is done with. `entity`: the station in the heap."""
    part = station.root
    station.clock = parts[part].target
    station.updated = now
    station.root = _merge(parts, parts[part].left, parts[part].right)
    station.present -= 1
    if station.present > 0:
        plan(heap, entity, now + _until_next(station, parts))
    else:
        forget(heap, entity)
    return int(part)


@inlined
def _until_next(station: Records, parts: Records) -> float:
    return float((parts[station.root].target - station.clock) * station.present / station.speed)


@inlined
def _sooner(parts: Records, a: int, b: int) -> bool:
    return bool(parts[a].target < parts[b].target or (parts[a].target == parts[b].target and a < b))


@piece
def _merge(parts: Records, a: int, b: int) -> int:
    """Two skew heaps made one: its root."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _sooner(parts, b, a):
        a, b = b, a
    root = current = a
    while True:
        rest = parts[current].right
        parts[current].right = parts[current].left
        if rest < 0:
            parts[current].left = b
            return root
        if _sooner(parts, b, rest):
            rest, b = b, rest
        parts[current].left = rest
        current = rest
