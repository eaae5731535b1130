"""How alike two runs read: DLIO's cosine, and what it cannot show.

Both values of a metric are divided by the larger of the two; the similarity is the cosine of the two vectors. It looks at directions only: where every metric of one is
half the other's it is 1. So each metric's signed difference (A − B) ÷ larger is given too, and the largest of them. A metric that is zero in both
is alike (1 in both vectors).

The cosine hardly shows one metric: with n metrics, n − 1 of them equal, it is at least √((n − 1)/n) whatever the last one is. So every metric also has the cosine of the
others (`cosine_without`), which tells what holds it down; metrics that differ twofold or more are named (`far_apart`); and runs of different scale are told, since I/O time,
bytes and files grow with it.

Where one is known from single reads and the other only within a bin, each is taken where its limits come nearest to the other's: the difference is at
least that (`at_least`). A metric that either lacks is left out, and named.

Writes are in none of DLIO's metrics but the I/O time and the bytes. Where there are any, they are compared beside the cosine (`writes`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tierscope.analysis.character_metrics import Fact, WriteUse

FAR = 2.0  # larger ÷ smaller, from which on a metric is named
AMOUNTS = ("io_seconds", "bytes", "files")  # grow with ranks, epochs and data; the others do not
_RISE = 0.0005  # of the cosine, that is worth a word


class Comparable(Protocol):
    """What is looked at of a run; Character has it."""

    @property
    def metrics(self) -> Mapping[str, Fact]: ...
    @property
    def writes(self) -> WriteUse: ...
    @property
    def ranks(self) -> Sequence[object]: ...
    @property
    def epochs(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of both; `difference` is (first − second) ÷ the larger."""

    name: str
    first: float
    second: float
    difference: float
    at_least: bool = False  # one of them is known within limits only
    cosine_without: float | None = None  # of all other metrics; None: there are none

    @property
    def ratio(self) -> float:
        """The larger over the smaller; infinite where only one is zero."""
        low, high = sorted((self.first, self.second))
        return high / low if low > 0 else math.inf if high > 0 else 1.0


@dataclass(frozen=True, slots=True)
class RunScale:
    ranks: int
    epochs: int


@dataclass(frozen=True, slots=True)
class UncomparedMetric:
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Similarity:
    """`cosine` and `largest` are None where no metric is in both. `scales`: of the first and the second."""

    cosine: float | None
    metrics: tuple[Compared, ...]
    largest: Compared | None
    left_out: tuple[UncomparedMetric, ...]
    scales: tuple[RunScale, RunScale]
    writes: tuple[Compared, ...] = ()  # in no cosine

    @property
    def held_down_by(self) -> tuple[Compared, ...]:
        """Metrics without which the cosine would be higher, the one that costs most first."""
        lowering = [metric for metric in self.metrics if self.rise(metric) >= _RISE]
        return tuple(sorted(lowering, key=self.rise, reverse=True))

    def rise(self, metric: Compared) -> float:
        """By how much the cosine would rise without a metric; negative: it would fall."""
        return 0.0 if metric.cosine_without is None or self.cosine is None else metric.cosine_without - self.cosine

    @property
    def far_apart(self) -> tuple[Compared, ...]:
        """Metrics that differ twofold or more, the most different first."""
        far = (metric for metric in (*self.metrics, *self.writes) if metric.ratio >= FAR)
        return tuple(sorted(far, key=lambda metric: -metric.ratio))

    @property
    def same_scale(self) -> bool:
        """As many ranks and epochs, and not twice the bytes."""
        return self.scales[0] == self.scales[1] and not any(metric.name == "bytes" for metric in self.far_apart)

    @property
    def habits(self) -> tuple[Compared, ...]:
        """The metrics that do not grow with scale."""
        return tuple(metric for metric in self.metrics if metric.name not in AMOUNTS)

    @property
    def cosine_of_habits(self) -> float | None:
        return cosine_of(self.habits)

    @property
    def least_for_one(self) -> float | None:
        """How low the cosine can be if all metrics but one are equal."""
        n = len(self.metrics)
        return math.sqrt((n - 1) / n) if n else None


def similarity(first: Comparable, second: Comparable) -> Similarity:
    compared, left_out = _compared(first.metrics, second.metrics)
    writes: list[Compared] = []
    if first.writes.writes or second.writes.writes:
        writes, unknown = _compared(first.writes.metrics, second.writes.metrics)
        left_out += unknown if first.writes.writes and second.writes.writes else []
    explained = tuple(
        replace(metric, cosine_without=cosine_of([*compared[:place], *compared[place + 1 :]]))
        for place, metric in enumerate(compared)
    )
    largest = max((*explained, *writes), key=lambda metric: abs(metric.difference), default=None)
    scales = RunScale(len(first.ranks), first.epochs), RunScale(len(second.ranks), second.epochs)
    return Similarity(cosine_of(compared), explained, largest, tuple(left_out), scales, tuple(writes))


def _compared(first: Mapping[str, Fact], second: Mapping[str, Fact]) -> tuple[list[Compared], list[UncomparedMetric]]:
    """What both have, and what either lacks."""
    compared: list[Compared] = []
    left_out: list[UncomparedMetric] = []
    for name, this in first.items():
        other = second[name]
        reasons = [f"{side}: {fact.reason}" for side, fact in (("A", this), ("B", other)) if fact.value is None]
        if this.value is None or other.value is None:
            left_out.append(UncomparedMetric(name, "; ".join(reasons)))
        else:
            compared.append(_compare(name, this, other))
    return compared, left_out


def _compare(name: str, this: Fact, other: Fact) -> Compared:
    first, second = this.value or 0.0, other.value or 0.0
    at_least = this.basis != other.basis and (this.low is not None or other.low is not None)
    if at_least:
        first, second = _nearest(this.limits, other.limits)
    top = max(first, second)
    return Compared(name, first, second, (first - second) / top if top > 0 else 0.0, at_least)


def _nearest(this: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The two values within these limits that are nearest to each other."""
    low, high = max(this[0], other[0]), min(this[1], other[1])
    if low <= high:
        return low, low
    return (this[0], other[1]) if this[0] > other[1] else (this[1], other[0])


def cosine_of(compared: Sequence[Compared]) -> float | None:
    """D-E-1 of these metrics; None: there are none."""
    if not compared:
        return None
    pairs = [_scaled(metric.first, metric.second) for metric in compared]
    dot = math.fsum(this * other for this, other in pairs)
    first, second = (math.sqrt(math.fsum(pair[side] ** 2 for pair in pairs)) for side in (0, 1))
    return min(1.0, dot / (first * second)) if first and second else 0.0


def _scaled(first: float, second: float) -> tuple[float, float]:
    top = max(first, second)
    return (first / top, second / top) if top > 0 else (1.0, 1.0)
