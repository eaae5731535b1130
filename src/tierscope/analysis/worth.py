"""What a sweep can change at all: how much shorter the epoch is at its best point, and whether I/O is hidden behind compute."""

from dataclasses import dataclass

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, sweep_text
from tierscope.jsonable import cache_rate_of

HIDDEN_SHARE = 0.05  # of an epoch that the slowest rank waits, and of what a sweep takes off: less is next to nothing


@dataclass(frozen=True, slots=True)
class Worth:
    """By how much of itself the epoch of `reference` is shorter at the best point; `low` and `high` from both intervals. n: of the fewer values."""

    reference: SweepPoint
    gain: float
    low: float
    high: float
    n: int


def worth_of(breakdown: Breakdown, group: PointGroup) -> Worth | None:
    """Against the smallest cache rate, where that was swept and all else is as at the best point; else against the longest epoch. None: no compute, or
    nothing else that fits to compare with."""
    best = group.best
    if breakdown.ranked_by != "epoch" or best.epoch is None or len(group.possible) < 2 or not best.is_possible:
        return None
    reference = _reference(group)
    if reference.epoch is None or not reference.epoch.low > 0:
        return None
    was, now = reference.epoch, best.epoch
    if reference is best:
        return Worth(reference, 0.0, 0.0, 0.0, now.n)
    gains = (1 - end / start for end, start in ((now.median, was.median), (now.high, was.low), (now.low, was.high)))
    gain, low, high = (max(0.0, value) for value in gains)
    return Worth(reference, gain, min(low, gain), max(high, gain), min(was.n, now.n))


def hides_io(point: SweepPoint) -> bool:
    """Whether the rank that the epoch waits for stands still for next to nothing of it."""
    return point.stall_share is not None and point.stall_share + (point.checkpoint_share or 0.0) < HIDDEN_SHARE


def _reference(group: PointGroup) -> SweepPoint:
    best = group.best
    others = {name: value for name, value in best.sweep.items() if name != "cache_rate"}
    rates = [point for point in group.possible if all(point.sweep[name] == others[name] for name in others)]
    if "cache_rate" in best.sweep and len(rates) > 1:
        return min(rates, key=lambda point: cache_rate_of(point.sweep))
    return max(group.possible, key=lambda point: point.epoch.median if point.epoch else 0.0)


def worth_sentence(breakdown: Breakdown, group: PointGroup) -> str:
    """Empty: nothing is known of it."""
    worth = worth_of(breakdown, group)
    if worth is None:
        return ""
    best = group.best
    by_rate = "cache_rate" in best.sweep and {**best.sweep, "cache_rate": 0} == {
        **worth.reference.sweep,
        "cache_rate": 0,
    }
    caching = "Caching" if len(group.possible) == len(group.points) else "Caching what fits"
    why = _why(best, worth.gain)
    if worth.gain < _LEAST:
        return f"{caching if by_rate else 'The sweep'} does not shorten the epoch{why}."
    low, high, n = _percent(worth.low), _percent(worth.high), f"n = {worth.n}"
    gain, spread = f"{_percent(worth.gain)} %", n if low == high else f"{low}\u2013{high} %, {n}"
    if by_rate:
        return f"{caching} shortens the epoch by {gain} ({spread}){why}."
    return f"The epoch is {gain} shorter at {sweep_text(best.sweep)} than at {sweep_text(worth.reference.sweep)} ({spread}){why}."


_LEAST = 0.0005


def _why(best: SweepPoint, gain: float) -> str:
    """Why it is next to nothing, or why it is no more."""
    if hides_io(best):
        return ": compute hides I/O" if gain < HIDDEN_SHARE else "; at the best point compute hides the I/O"
    if gain >= HIDDEN_SHARE:
        return ""
    paused = best.checkpoint_share or 0.0
    if paused > (best.stall_share or 0.0):
        return f": checkpoints pause training for {_percent(paused)} % of it"
    return ", although ranks wait for data"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0095 or share < _LEAST else f"{100 * share:.1f}"
