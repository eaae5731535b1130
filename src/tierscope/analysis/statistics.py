"""Statistics of few values: medians that are values, and intervals that claim no more than the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

ROUNDING = 1e-12  # a time that meets a goal exactly does so, in whichever order its parts are added up
DIGITS = 12  # that two sums of the same numbers share
SIMULATED = "90% simulated"  # of draws, not of measurements
FEW = 6  # below this no order statistic covers the median with 95 %


@dataclass(frozen=True, slots=True)
class Interval:
    """`kind` is "range" (all values, when they are few) or "95%" (order statistics around the median), or SIMULATED."""

    median: float
    low: float
    high: float
    n: int
    kind: str

    @property
    def has_spread(self) -> bool:
        """Whether low and high say more than the median: a single measurement has no spread."""
        return self.n > 1 or self.kind == SIMULATED

    def overlaps(self, other: "Interval") -> bool:
        return self.low <= other.high and other.low <= self.high


def settled(seconds: float) -> float:
    """For comparing: sums of the same times are the same, in whichever order they were added up."""
    return float(f"{seconds:.{DIGITS}g}")


def middle(items: Sequence[T], key: Sequence[float]) -> list[T]:
    """The one or two items in the middle of the order of their keys: what a median is made of."""
    order = sorted(range(len(items)), key=lambda index: key[index])
    half = len(order) // 2
    chosen = order[half : half + 1] if len(order) % 2 else order[half - 1 : half + 1]
    return [items[index] for index in chosen]


def interval(values: Sequence[float]) -> Interval:
    """The median with a distribution-free 95 % interval, or with the range when there are fewer than six values."""
    ordered = sorted(values)
    n = len(ordered)
    chosen = middle(ordered, ordered)
    median = sum(chosen) / len(chosen)
    if n < FEW:
        return Interval(median, ordered[0], ordered[-1], n, "range")
    below = _rank_of_interval(n)
    return Interval(median, ordered[below], ordered[n - 1 - below], n, "95%")


def _rank_of_interval(n: int) -> int:
    """The largest k for which the k-th smallest and k-th largest value still cover the median with 95 %."""
    below, ways, tail = 0, 1, 1  # of 2**n ways in which values fall to either side, those in one tail
    while (below + 1) * 2 < n:
        ways = ways * (n - below) // (below + 1)
        if 2 * (tail + ways) * 20 > 2**n:
            break
        below, tail = below + 1, tail + ways
    return below
