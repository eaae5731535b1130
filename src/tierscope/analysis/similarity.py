"""How alike two runs read: DLIO's cosine, and what it cannot show.

Both values of a metric are divided by the larger of the two; the similarity is the cosine of the two vectors. It looks at directions only: where every metric of one is
half the other's it is 1. So each metric's signed difference (A − B) ÷ larger is given too, and the largest of them. A metric that is zero in both
is alike (1 in both vectors).

Where one is known from single reads and the other only within a bin, each is taken where its limits come nearest to the other's: the difference is at
least that (`at_least`). A metric that either lacks is left out, and named.
"""

import math
from dataclasses import dataclass

from tierscope.analysis.character_metrics import METRICS, Fact
from tierscope.analysis.characterise import Character


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of both; `difference` is (first − second) ÷ the larger."""

    name: str
    first: float
    second: float
    difference: float
    at_least: bool = False  # one of them is known within limits only


@dataclass(frozen=True, slots=True)
class UncomparedMetric:
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Similarity:
    """`cosine` and `largest` are None where no metric is in both."""

    cosine: float | None
    metrics: tuple[Compared, ...]
    largest: Compared | None
    left_out: tuple[UncomparedMetric, ...]


def similarity(first: Character, second: Character) -> Similarity:
    compared: list[Compared] = []
    left_out: list[UncomparedMetric] = []
    for name in METRICS:
        one, other = first.metrics[name], second.metrics[name]
        reasons = [f"{side}: {fact.reason}" for side, fact in (("A", one), ("B", other)) if fact.value is None]
        if one.value is None or other.value is None:
            left_out.append(UncomparedMetric(name, "; ".join(reasons)))
        else:
            compared.append(_compare(name, one, other))
    largest = max(compared, key=lambda each: abs(each.difference), default=None)
    return Similarity(_cosine(compared), tuple(compared), largest, tuple(left_out))


def _compare(name: str, one: Fact, other: Fact) -> Compared:
    first, second = one.value or 0.0, other.value or 0.0
    at_least = one.basis != other.basis and (one.low is not None or other.low is not None)
    if at_least:
        first, second = _nearest(one.limits, other.limits)
    top = max(first, second)
    return Compared(name, first, second, (first - second) / top if top > 0 else 0.0, at_least)


def _nearest(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The two values within these limits that are nearest to each other."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if low <= high:
        return low, low
    return (one[0], other[1]) if one[0] > other[1] else (one[1], other[0])


def _cosine(compared: list[Compared]) -> float | None:
    if not compared:
        return None
    pairs = [_scaled(each.first, each.second) for each in compared]
    dot = math.fsum(one * other for one, other in pairs)
    first, second = (math.sqrt(math.fsum(pair[side] ** 2 for pair in pairs)) for side in (0, 1))
    return min(1.0, dot / (first * second)) if first and second else 0.0


def _scaled(first: float, second: float) -> tuple[float, float]:
    top = max(first, second)
    return (first / top, second / top) if top > 0 else (1.0, 1.0)
