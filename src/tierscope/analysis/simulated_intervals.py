"""Intervals of what was simulated: I/O time, epoch, AU and first batch, all from the same draws."""

from typing import TYPE_CHECKING

from tierscope.analysis.statistics import SIMULATED, Interval, interval

if TYPE_CHECKING:  # which calls us
    from tierscope.analysis.breakdown import SweepPoint


def with_factors(values: Interval, factors: list[tuple[float, float]]) -> Interval:
    """An interval of what else might have come out, where values were simulated."""
    if not factors:
        return values
    low, high = (sum(pair[side] for pair in factors) / len(factors) for side in (0, 1))
    return Interval(values.median, values.median * low, values.median * high, values.n, SIMULATED)


def epoch_interval(
    seconds: list[float | None], io: Interval, unstalled: float | None, factors: list[tuple[float, float]]
) -> Interval | None:
    """Of a simulation that does not say its own (`factors`): what becomes of the epoch where all of the I/O's spread shows in it, and no less than it has without waiting."""
    known = [value for value in seconds if value is not None]
    if not known or len(known) < len(seconds):
        return None
    spread = interval(known)
    if io.kind != SIMULATED or factors:
        return with_factors(spread, factors)
    low = max(spread.median - (io.median - io.low), min(unstalled or 0.0, spread.median))
    return Interval(spread.median, low, spread.median + (io.high - io.median), spread.n, SIMULATED)


def au_interval(point: "SweepPoint") -> Interval | None:
    """AU at the ends of the epoch's interval; None: it is not known, or was measured."""
    epoch = point.epoch
    if point.au is None or epoch is None or epoch.kind != SIMULATED or not epoch.low:
        return None
    low, high = point.au * epoch.median / epoch.high, min(1.0, point.au * epoch.median / epoch.low)
    return Interval(point.au, min(low, point.au), max(high, point.au), epoch.n, SIMULATED)


def first_batch_interval(point: "SweepPoint") -> Interval | None:
    """The longest wait for a first batch, which is as uncertain as the I/O time; None: it is not known."""
    io = point.io
    if point.first_batch is None or io.kind != SIMULATED or not io.median:
        return None
    longest = point.first_batch[1]
    return Interval(longest, longest * io.low / io.median, longest * io.high / io.median, io.n, SIMULATED)
