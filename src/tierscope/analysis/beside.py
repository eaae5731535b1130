"""Two results of the same sweep side by side: what was measured and what was simulated for it, or two that were measured.

Points belong together when all swept values are the same. What a simulation is off by is an error; between two others it is a difference, and one of them is faster
only where their intervals are apart. Where they read different amounts of data, or had other numbers of ranks, they are not compared at all.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint
from tierscope.analysis.comparable import TOLERANCE
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import ROUNDING, SIMULATED, interval, settled
from tierscope.errors import UserError
from tierscope.jsonable import SweepValues, point_key
from tierscope.units import counted


@dataclass(frozen=True, slots=True)
class ComparedResult:
    """One of the two results. `word` and `label` say where its times come from, in short and in full."""

    name: str
    where: str  # as the user called it
    word: str
    label: str

    @classmethod
    def of(cls, name: str, where: str, given: Conditions, from_csv: bool) -> "ComparedResult":
        if from_csv:  # nobody says whether that was measured
            return cls(name, where, "CSV", "from a CSV")
        if given.simulated:
            return cls(name, where, "simulated", f"simulated ({', '.join(given.simulated)})")
        label = f"measured with {', '.join(given.profilers)}" if given.profilers else "measured"
        if given.emulated:
            return cls(name, where, "emulated", f"{label}, emulated tiers: {', '.join(given.emulated)}")
        return cls(name, where, "measured", label)


@dataclass(frozen=True, slots=True)
class BesidePoint:
    """One point of the sweep in both results. `apart`: why they cannot be compared; empty: they can."""

    first: SweepPoint
    second: SweepPoint
    apart: str = ""

    @property
    def sweep(self) -> SweepValues:
        return self.first.sweep

    @property
    def error_percent(self) -> float | None:
        """Second ÷ first − 1; None: there is no ratio to a time of zero, or they cannot be compared."""
        if self.apart:
            return None
        before, after = self.first.io.median, self.second.io.median
        if before > 0:
            return 100 * (after / before - 1)
        return None if after > 0 else 0.0

    @property
    def gap_seconds(self) -> float:
        """What the second takes more than the first."""
        return self.second.io.median - self.first.io.median

    @property
    def is_told(self) -> bool:
        """Whether one is faster: both have intervals, and these do not overlap."""
        first, second = self.first.io, self.second.io
        return not self.apart and first.has_spread and second.has_spread and not first.overlaps(second)

    @property
    def same_bottleneck(self) -> bool:
        return self.first.bottleneck == self.second.bottleneck

    @property
    def covered(self) -> bool | None:
        """Whether the first's time lies within the second's simulated interval; None: the second was not simulated."""
        within = self.second.io
        if within.kind != SIMULATED or self.apart:
            return None
        return within.low * (1 - ROUNDING) <= self.first.io.median <= within.high * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Beside:
    """`left_out`: how many points only the first and only the second has; `differing`: keys of their studies that are not the same.

    `called`: names that tell them from further results, too; None: as short as tells the two apart.
    """

    first: ComparedResult
    second: ComparedResult
    sweep_keys: tuple[str, ...]
    points: tuple[BesidePoint, ...]
    left_out: tuple[int, int]
    differing: tuple[str, ...] = ()
    called: tuple[str, str] | None = None

    @property
    def is_prediction(self) -> bool:
        """Whether the second says what the first should have been: then it has errors, and nothing is faster."""
        return self.second.word == "simulated" != self.first.word

    @property
    def compared(self) -> tuple[BesidePoint, ...]:
        return tuple(point for point in self.points if not point.apart)

    @property
    def errors(self) -> list[float]:
        return [error for point in self.points if (error := point.error_percent) is not None]

    @property
    def median_error(self) -> float | None:
        """Of their sizes, in percent."""
        return interval([abs(error) for error in self.errors]).median if self.errors else None

    @property
    def worst(self) -> BesidePoint | None:
        """The point with the largest error."""
        known = [point for point in self.points if point.error_percent is not None]
        return max(known, key=lambda point: abs(point.error_percent or 0.0), default=None)

    @property
    def coverage(self) -> tuple[int, int]:
        """How many points are covered, and of how many that is known."""
        known = [covered for point in self.points if (covered := point.covered) is not None]
        return sum(known), len(known)


def lay_beside(
    first: Breakdown, second: Breakdown, sides: tuple[ComparedResult, ComparedResult], differing: Iterable[str] = ()
) -> Beside:
    if set(first.sweep_keys) != set(second.sweep_keys):
        theirs, ours = (", ".join(breakdown.sweep_keys) or "nothing" for breakdown in (second, first))
        raise UserError(
            f"--beside {sides[1].where}: sweeps {theirs}, but {sides[0].where} sweeps {ours}; use a result, or a CSV, with the same sweep keys"
        )
    keys = first.sweep_keys
    before, after = (_by_values(breakdown.summary, keys) for breakdown in (first, second))
    told = _Told.of(first), _Told.of(second)
    points = tuple(
        BesidePoint(point, after[values], _apart(told[0].at(point), told[1].at(after[values])))
        for values, point in before.items()
        if values in after
    )
    if not points:
        raise UserError(
            f"--beside {sides[1].where}: no point of its sweep has the same values of {', '.join(keys)} as one of {sides[0].where}; "
            "use a result with common points"
        )
    left_out = len(first.summary) - len(points), len(second.summary) - len(points)
    return Beside(*sides, keys, points, left_out, tuple(differing))


@dataclass(frozen=True, slots=True)
class _Told:
    """What decides whether points can be compared, by their values: how many ranks, and which group."""

    ranks: dict[Any, int]
    groups: dict[Any, PointGroup]

    @classmethod
    def of(cls, breakdown: Breakdown) -> "_Told":
        ranks: dict[Any, int] = {}
        for epoch in breakdown.points:
            key = point_key(epoch.sweep)
            ranks[key] = max(epoch.ranks, ranks.get(key, 0))
        return cls(ranks, {point_key(point.sweep): group for group in breakdown.groups for point in group.points})

    def at(self, point: SweepPoint) -> tuple[int, PointGroup]:
        key = point_key(point.sweep)
        return self.ranks[key], self.groups[key]


def _apart(before: tuple[int, PointGroup], after: tuple[int, PointGroup]) -> str:
    ranks, groups = (before[0], after[0]), (before[1], after[1])
    amounts = [group.amount for group in groups if group.amount is not None]
    reasons = []
    same_kind = groups[0].amount_of == groups[1].amount_of
    if len(amounts) == 2 and same_kind and min(amounts) < max(amounts) * (1 - TOLERANCE):
        reasons.append("read {} and {} per epoch".format(*(group.amount_text for group in groups)))
    if ranks[0] != ranks[1]:
        reasons.append(f"have {counted(ranks[0], 'rank')} and {ranks[1]}")
    return f"they {', and '.join(reasons)}" if reasons else ""


def _by_values(summary: Iterable[SweepPoint], keys: tuple[str, ...]) -> dict[tuple[Any, ...], SweepPoint]:
    points: dict[tuple[Any, ...], SweepPoint] = {}
    for point in summary:
        points.setdefault(tuple(_comparable(point.sweep[key]) for key in keys), point)
    return points


def _comparable(value: Any) -> Any:
    """The same for what means the same: a CSV makes fractions of whole numbers, and text of all where one is text."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    try:
        number = float(value)
    except (TypeError, ValueError):
        text = str(value)
        return text.lower() if text.lower() in ("true", "false", "none") else text
    return settled(number) if math.isfinite(number) else str(value)
