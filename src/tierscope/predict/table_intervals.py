"""What is predicted for the points of a measured table, with intervals: how far shuffles are apart, what the model is off, and what is not known of the system.

A system that was fitted to few rows is known by its draws: fits that are about as good, also by other keys. Where they lead apart, as where figures are
assumed, or where more is asked of storage than the rows show it to give, a point is not identified, and its interval is a pair of bounds.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.analysis.statistics import USABLE
from tierscope.predict.identified import MATTERS, DrawnTimes, no_faster, only_seen, too_wide
from tierscope.predict.measured_table import SHARE, MeasuredFigures
from tierscope.predict.spread import DEVIATIONS
from tierscope.predict.spread import SHARE as OF_DRAWS
from tierscope.predict.table_points import TablePoint
from tierscope.spec.figures import numbers
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import System

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PredictedFigure:
    """A figure of a point: what was measured (with its standard error) and what is predicted, with a 90 % interval.

    `unidentified`: why nothing that is known of the system tells it; low and high are bounds then.
    """

    point: MeasuredFigures
    figure: str
    measured: float
    standard_error: float
    predicted: float
    low: float
    high: float
    unidentified: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Relative; of AU the difference of shares."""
        difference = self.predicted - self.measured
        return difference if self.figure == SHARE else difference / self.measured


def predict_points(
    points: Sequence[TablePoint], system: System, known: KnownSystem | None = None
) -> tuple[PredictedFigure, ...]:
    """`known`: what is known of the system; None: its figures are taken as they are."""
    return tuple(figure for point in points for figure in _Prediction.of(point, system, known).figures())


def residuals(points: Sequence[TablePoint], system: System) -> Mapping[tuple[str, str], float]:
    """(Point, figure) → error, as PredictedFigure has it."""
    return {(predicted.point.name, predicted.figure): predicted.error for predicted in predict_points(points, system)}


@dataclass(frozen=True, slots=True)
class _Prediction:
    """A point on the system, on its draws (an epoch of each), and on the system were storage no faster than it was seen to be."""

    point: TablePoint
    known: KnownSystem | None
    model_error: float
    simulated: Mapping[str, Sequence[float]]
    systems: tuple[System, ...]
    drawn: tuple[Mapping[str, Sequence[float]], ...]
    limited: Mapping[str, Mapping[str, Sequence[float]]]

    @classmethod
    def of(cls, point: TablePoint, system: System, known: KnownSystem | None) -> "_Prediction":
        measured = known.measured if known else None
        distance = 1.0 if measured is None else measured.times_the_error(1.0, point.measured.ranks, 0.0)
        systems = drawn_systems(system, known) if known else ()
        kept = {other: point.simulate(other, 1) for other in dict.fromkeys(systems)}
        return cls(
            point,
            known,
            min(1.0, system.model_error * distance),
            point.simulate(system),
            systems,
            tuple(kept[other] for other in systems),
            {} if known is None else _limited(point, system, known),
        )

    def figures(self) -> Iterator[PredictedFigure]:
        for figure, (measured, error) in self.point.measured.figures.items():
            if figure in self.simulated:
                value = statistics.fmean(self.simulated[figure])
                (low, high), reasons = self._interval(figure, value)
                yield PredictedFigure(self.point.measured, figure, measured, error, value, low, high, reasons)

    def _interval(self, figure: str, value: float) -> tuple[Ends, tuple[str, ...]]:
        values = [self.simulated[figure], *(of_limited[figure] for of_limited in self.limited.values())]
        (low, high), *others = [_within(epochs, self.model_error, figure) for epochs in values]
        worse = {
            why: ends
            for why, ends, epochs in zip(self.limited, others, values[1:], strict=True)
            if _times(value, statistics.fmean(epochs)) > MATTERS
        }
        drawn_low, drawn_high = self._drawn_ends(figure)
        low, high = (
            value * math.exp(-math.hypot(math.log(value / low), drawn_low)),
            value * math.exp(math.hypot(math.log(high / value), drawn_high)),
        )
        low, high = (
            min([low, *(ends[0] for ends in worse.values())]),
            max([high, *(ends[1] for ends in worse.values())]),
        )
        reasons = tuple(worse) or tuple(self._untold(figure))
        if not reasons and high > USABLE * low:
            reasons = (
                f"the model itself may be {100 * self.model_error:.0f} % off here, by how far it is off the rows that it was fitted to",
            )
        return (low, min(1.0, high) if figure == SHARE else high), reasons

    def _drawn_ends(self, figure: str) -> Ends:
        """How far the draws reach below and above the system itself, in logarithms."""
        if not self.drawn:
            return 0.0, 0.0
        here = math.log(self.simulated[figure][0])
        logs = [math.log(of_draw[figure][0]) - here for of_draw in self.drawn]
        low, high = np.quantile(logs, [(1 - OF_DRAWS) / 2, (1 + OF_DRAWS) / 2])
        return max(0.0, -float(low)), max(0.0, float(high))

    def _untold(self, figure: str) -> list[str]:
        """Figures that are only known to within so much that the draws are too far apart; and other keys that fit about as well."""
        if self.known is None or not self.drawn:
            return []
        reasons = self._other_keys(figure)
        drawn = DrawnTimes(self.systems, np.log([of_draw[figure][0] for of_draw in self.drawn]))
        return reasons or too_wide(self.known, drawn)

    def _other_keys(self, figure: str) -> list[str]:
        """Keys that fit the rows about as well as what was fitted, and say something else of a number of ranks that has no row."""
        known = self.known
        if known is None or known.measured is None or not known.measured.is_other_crowd(self.point.measured.ranks):
            return []
        base, here = numbers(known.system), self.simulated[figure][0]
        others: dict[str, None] = {}
        for draw, of_draw in zip(known.draws, self.drawn, strict=False):
            if _times(of_draw[figure][0], here) > MATTERS:
                others |= dict.fromkeys(path for path, value in draw.items() if value and not base[path])
        fitted = [path for path, drawn in known.figures.items() if drawn.kind == "fitted" and base[path]]
        if not others or not fitted:
            return []
        names, instead = (
            " and ".join(path.removeprefix("tiers.") for path in paths) for paths in (fitted, sorted(others))
        )
        return [f"the rows that were fitted do not tell {names} from {instead}, and other numbers of ranks do"]


def _times(value: float, other: float) -> float:
    return max(value / other, other / value)


def _limited(point: TablePoint, system: System, known: KnownSystem) -> dict[str, dict[str, list[float]]]:
    """Why it may be worse → the point, were storage no faster than it was seen to be."""
    simulated: dict[str, dict[str, list[float]]] = {}
    for key in known.measured.served if known.measured else ():
        assert known.measured is not None
        limited = no_faster(system, key, known.measured)
        if limited is not None:
            simulated[only_seen(system.tiers[-1].name, key, known.measured)] = point.simulate(limited)
    return simulated


def _within(values: Sequence[float], model_error: float, figure: str) -> Ends:
    """Of what was simulated from shuffle to shuffle, and of the model's error: relative; of AU in shares."""
    mean = statistics.fmean(values)
    spread = statistics.stdev(values) / mean if len(values) > 1 and mean else 0.0
    reach = DEVIATIONS * math.hypot(spread, model_error)
    if figure == SHARE:
        return max(1e-9, mean - reach), min(1.0, mean + reach)
    return mean / (1 + reach), mean * (1 + reach)
