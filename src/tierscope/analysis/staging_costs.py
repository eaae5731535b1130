"""What staging costs, and after how many epochs a cache rate was worth it."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierscope.analysis.statistics import ROUNDING

if TYPE_CHECKING:  # which calls us
    from tierscope.analysis.breakdown import Breakdown, SweepPoint


def with_staging(summary: "list[SweepPoint]", seconds: dict[tuple[Any, ...], float]) -> "list[SweepPoint]":
    """The points with what staging takes, and when it pays against the point without cached files that is the same otherwise."""

    def others(point: "SweepPoint") -> tuple[Any, ...]:
        return tuple(value for name, value in point.sweep.items() if name != "cache_rate")

    bare = {others(point): point.epoch_seconds for point in summary if point.sweep.get("cache_rate") == 0}
    sweep_points: list[SweepPoint] = []
    for point in summary:
        staging = seconds.get(tuple(point.sweep.values()))
        without = bare.get(others(point))
        pays = None
        if staging is not None and without is not None and point.epoch_seconds is not None:
            pays = break_even_epochs(staging, without, point.epoch_seconds)
        sweep_points.append(replace(point, staging_seconds=staging, break_even_epochs=pays))
    return sweep_points


def rates_at_best(breakdown: "Breakdown") -> "list[SweepPoint]":
    """The points of all cache rates, where all else is as at the best one; none where no cache rate was swept."""
    best = breakdown.best.sweep
    others = [name for name in best if name != "cache_rate"]
    if "cache_rate" not in best:
        return []
    return [point for point in breakdown.summary if all(point.sweep[name] == best[name] for name in others)]


def break_even_epochs(staging: float, without: float, epoch: float) -> int | None:
    """The fewest epochs after which staging and shorter epochs take no longer than epochs without it; None: it never pays."""
    if not staging:
        return 0
    gain = without - epoch
    if gain <= without * ROUNDING:
        return None
    return math.ceil(staging / gain * (1 - ROUNDING))
