"""Two results of the same sweep side by side: usually what was measured, and what was simulated for it.

Points belong together when all swept values are the same. The error is that of the second against the first.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tierscope.analysis.breakdown import Breakdown, SweepPoint
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import ROUNDING, SIMULATED, interval, settled
from tierscope.errors import UserError
from tierscope.jsonable import SweepValues


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
    """One point of the sweep in both results."""

    first: SweepPoint
    second: SweepPoint

    @property
    def sweep(self) -> SweepValues:
        return self.first.sweep

    @property
    def error_percent(self) -> float | None:
        """Second ÷ first − 1; None: there is no ratio to a time of zero."""
        before, after = self.first.io.median, self.second.io.median
        if before > 0:
            return 100 * (after / before - 1)
        return None if after > 0 else 0.0

    @property
    def same_bottleneck(self) -> bool:
        return self.first.bottleneck == self.second.bottleneck

    @property
    def covered(self) -> bool | None:
        """Whether the first's time lies within the second's simulated interval; None: the second was not simulated."""
        within = self.second.io
        if within.kind != SIMULATED:
            return None
        return within.low * (1 - ROUNDING) <= self.first.io.median <= within.high * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Beside:
    """`left_out`: how many points only the first and only the second has; `differing`: keys of their studies that are not the same."""

    first: ComparedResult
    second: ComparedResult
    sweep_keys: tuple[str, ...]
    points: tuple[BesidePoint, ...]
    left_out: tuple[int, int]
    differing: tuple[str, ...] = ()

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
        theirs, ours = (", ".join(each.sweep_keys) or "nothing" for each in (second, first))
        raise UserError(
            f"--beside {sides[1].where}: swept is {theirs}, but {ours} in {sides[0].where}; give a result (or a CSV with columns) of the same sweep keys"
        )
    keys = first.sweep_keys
    before, after = (_by_values(each.summary, keys) for each in (first, second))
    points = tuple(BesidePoint(point, after[values]) for values, point in before.items() if values in after)
    if not points:
        raise UserError(
            f"--beside {sides[1].where}: no point of its sweep has the same values of {', '.join(keys)} as one of {sides[0].where}; "
            "give a result that shares some"
        )
    left_out = len(first.summary) - len(points), len(second.summary) - len(points)
    return Beside(*sides, keys, points, left_out, tuple(differing))


def _by_values(summary: Iterable[SweepPoint], keys: tuple[str, ...]) -> dict[tuple[Any, ...], SweepPoint]:
    found: dict[tuple[Any, ...], SweepPoint] = {}
    for point in summary:
        found.setdefault(tuple(_comparable(point.sweep[key]) for key in keys), point)
    return found


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
