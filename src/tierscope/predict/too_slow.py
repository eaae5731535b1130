"""What in a study makes it slower than was measured: no key that is fitted to a table makes anything faster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.predict.identified import MATTERS
from tierscope.predict.measured_table import EPOCH, FIRST_MAX, FIRST_MEAN, MeasuredFigures
from tierscope.predict.missing_rates import MOVES
from tierscope.predict.table_fit import CLIENT
from tierscope.predict.table_intervals import PredictedFigure
from tierscope.predict.table_points import TablePoint
from tierscope.spec.figures import Number, number_keys, numbers
from tierscope.spec.study import System

_SECONDS = (FIRST_MEAN, FIRST_MAX, EPOCH)
_RATES = (
    *("bandwidth", "read_ops", "metadata_ops", "node_bandwidth", "device_bandwidth"),
    *("gateway_bandwidth", "stream_bandwidth"),
)
_COSTS = ("latency", "metadata_latency")  # of an operation


@dataclass(frozen=True, slots=True)
class TooSlow:
    """The row that is farthest off, and the key without which most of that is gone; None: no single one. `without`: what the figure is then."""

    point: MeasuredFigures
    figure: str
    measured: float
    predicted: float
    key: str | None = None
    value: str = ""
    reads: int = 0  # of a sample
    without: float = 0.0


def too_slow(points: Sequence[TablePoint], system: System, figures: Sequence[PredictedFigure]) -> TooSlow | None:
    """`figures`: what the fitted system makes of the points. None: it is about as fast as was measured, or faster."""
    worst = max(figures, key=lambda row: _times(row.figure, row.predicted, row.measured))
    off = _times(worst.figure, worst.predicted, worst.measured)
    if off < MATTERS:
        return None
    (point,) = (point for point in points if point.measured is worst.point)
    without = {path: point.simulate(other, 1)[worst.figure][0] for path, other in _each_removed(system)}
    said = TooSlow(worst.point, worst.figure, worst.measured, worst.predicted, reads=len(point.reading.pieces))
    path = min(without, key=lambda key: _times(worst.figure, without[key], worst.measured), default=None)
    if path is None or _times(worst.figure, worst.predicted, without[path]) < MATTERS:
        return said
    value = number_keys(system)[path].kind.format(numbers(system)[path])
    return replace(said, key=path.removeprefix("tiers."), value=value, without=without[path])


def _times(figure: str, predicted: float, measured: float) -> float:
    """As long as was measured."""
    return predicted / measured if figure in _SECONDS else measured / max(predicted, 1e-9)


def _each_removed(system: System) -> Iterator[tuple[str, System]]:
    """The system without one of its costs or limits; not where nothing would be left that reading takes time by."""
    given: Mapping[str, Number | None] = numbers(system)
    for key in CLIENT:
        if given[key]:
            yield key, replace(system, **{key: 0.0})  # type: ignore[arg-type]
    for place, tier in enumerate(system.tiers):
        for key in (*_RATES, *_COSTS):
            path = f"tiers.{tier.name}.{key}"
            if given[path]:
                free = replace(tier, **{key: 0.0 if key in _COSTS else None})  # type: ignore[arg-type]
                if any(getattr(free, left) for left in (*MOVES, "latency")):
                    yield path, replace(system, tiers=(*system.tiers[:place], free, *system.tiers[place + 1 :]))
