"""What runs say of themselves beside their times: intervals of simulations, hit rates, what staging takes."""

from typing import Any

from tierscope.analysis.times import ClassTimes
from tierscope.trace.description import Simulated, StudyRun

Factors = dict[int, tuple[float, float]]


def simulated_factors(times: ClassTimes) -> dict[tuple[Any, ...], Factors]:
    """Sweep values → epoch → what low and high are of a simulated time."""
    factors: dict[tuple[Any, ...], Factors] = {}
    for about in times.about:
        if isinstance(about, Simulated):
            factors.setdefault(tuple(about.sweep.values()), {}).update(about.spread)
    return factors


def epoch_factors(times: ClassTimes) -> dict[tuple[Any, ...], Factors]:
    """The same of the epoch's seconds; none of simulations by earlier versions."""
    factors: dict[tuple[Any, ...], Factors] = {}
    for about in times.about:
        if isinstance(about, Simulated) and about.epoch_spread:
            factors.setdefault(tuple(about.sweep.values()), {}).update(about.epoch_spread)
    return factors


def unidentified_points(times: ClassTimes) -> set[tuple[Any, ...]]:
    """Sweep values of simulations of which the system's figures say nothing."""
    return {tuple(about.sweep.values()) for about in times.about if isinstance(about, Simulated) and about.unidentified}


def hit_rates(times: ClassTimes) -> dict[tuple[Any, ...], dict[int, float | None]]:
    """Sweep values → epoch → hit rate, of simulations."""
    rates: dict[tuple[Any, ...], dict[int, float | None]] = {}
    for about in times.about:
        if isinstance(about, StudyRun) and about.hit_rate:
            rates.setdefault(tuple(about.sweep.values()), {}).update(about.hit_rate)
    return rates


def staging_seconds(times: ClassTimes) -> dict[tuple[Any, ...], float]:
    """Sweep values → what it takes to stage, of simulations."""
    return {
        tuple(about.sweep.values()): about.staging_seconds
        for about in times.about
        if isinstance(about, Simulated) and about.staging_seconds is not None
    }
