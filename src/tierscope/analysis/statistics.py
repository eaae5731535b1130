"""Statistics of few values: medians that are values, means where means are asked for, and intervals that claim no more than the data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

ROUNDING = 1e-12  # a time that meets a goal exactly does so, in whichever order its parts are added up
DIGITS = 12  # that two sums of the same numbers share
SIMULATED = "90% simulated"  # of draws, not of measurements
USABLE = (
    2.0  # times from the low to the high end of a simulated interval: beyond that it is a pair of bounds, not an answer
)
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

    @property
    def is_usable(self) -> bool:
        """A decision can be taken on the value in the middle: what was measured is what it is, what was simulated must not be anything."""
        return self.kind != SIMULATED or self.high <= USABLE * self.low

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


_NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below
_STUDENT = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)


def student_quantile(freedom: float) -> float:
    """97.5 % of Student's distribution lie below; degrees of freedom may be broken, as Welch's are."""
    if freedom < 1:
        raise ValueError("an interval of a mean needs at least two values")
    if freedom < len(_STUDENT):
        below = int(freedom)
        low, high = (math.log(value) for value in _STUDENT[below - 1 : below + 1])
        return math.exp(low + (high - low) * (1 / freedom - 1 / below) / (1 / (below + 1) - 1 / below))
    z, n = _NORMAL, freedom  # Cornish and Fisher's expansion
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


@dataclass(frozen=True, slots=True)
class Mean:
    """With the 95 % interval of Student, or without any where one value cannot have one."""

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def limits(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def mean_of(values: Sequence[float]) -> Mean:
    """Of rates, which are never below 0, however wide the interval of few values is."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Mean(mean, None, None, n)
    half = student_quantile(n - 1) * math.sqrt(_variance(values, mean) / n)
    return Mean(mean, max(0.0, mean - half), mean + half, n)


def difference_of(first: Sequence[float], second: Sequence[float]) -> Mean:
    """Mean of the first minus that of the second, with Welch's 95 % interval: their variances may differ."""
    means = [math.fsum(values) / len(values) for values in (first, second)]
    n = min(len(first), len(second))
    value = means[0] - means[1]
    if n < 2:
        return Mean(value, None, None, n)
    parts = [_variance(values, mean) / len(values) for values, mean in zip((first, second), means, strict=True)]
    whole = math.fsum(parts)
    if not whole:
        return Mean(value, value, value, n)
    freedom = whole**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True))
    half = student_quantile(freedom) * math.sqrt(whole)
    return Mean(value, value - half, value + half, n)


def _variance(values: Sequence[float], mean: float) -> float:
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
