"""What if a class were faster: the simple scaling of the Hierarchy study, step 3, and when not to believe it.

Assumptions: N % more throughput makes every operation of the class that much shorter, for every process, at every point; and nothing
else changes. So what one class waits for another, and what a class does when it gets more load, are not in it: see the warnings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tierscope.analysis.breakdown import Breakdown, break_down, sweep_text
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding
from tierscope.predict.ceilings import ceilings, exceeded, unknown_classes
from tierscope.predict.processes import Processes, factor

WARNINGS = (  # all kinds that an estimate may have
    *("bottleneck_moves", "stops_mattering", "no_ceilings", "one_point"),
    *("beyond_ops", "beyond_bytes", "idle_beyond_ops", "idle_beyond_bytes"),
)
STEPS = (10.0, 50.0, 100.0)
LITTLE = 0.05  # a class that could not take more than this off the time does not matter


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What the best I/O time would change by, in percent, if one class alone were improved."""

    class_name: str
    change_percent: dict[float, float]  # by improvement
    limit_percent: float  # if it took no time at all


@dataclass(frozen=True, slots=True)
class Estimate:
    """`improvements` in percent by class; `after` is what `before` would have been with them. No epoch times: nobody measured them.

    `slowest_rank_changed`: in any epoch that counts, at the point that is best then.
    """

    improvements: dict[str, float]
    before: Breakdown
    after: Breakdown
    change_percent: float
    slowest_rank_changed: bool
    bottleneck_moved: bool
    warnings: tuple[Finding, ...]
    sensitivity: tuple[Sensitivity, ...]


def estimate(times: ClassTimes, before: Breakdown, improvements: Mapping[str, float]) -> Estimate:
    after = break_down(scaled(times, improvements))
    processes = Processes.of(times)
    best = next(point for point in processes.points if point.sweep == after.best.sweep)
    same = best.slowest_ranks(processes.factors({})) == best.slowest_ranks(processes.factors(improvements))
    return Estimate(
        improvements=dict(improvements),
        before=before,
        after=after,
        change_percent=change_percent(before.best.io.median, after.best.io.median),
        slowest_rank_changed=not same,
        bottleneck_moved=before.best.bottleneck != after.best.bottleneck,
        warnings=tuple(_warnings(processes, before, after, improvements)),
        sensitivity=tuple(sensitivity(processes)),
    )


def scaled(times: ClassTimes, improvements: Mapping[str, float]) -> ClassTimes:
    """The same times with every class as much shorter as it was improved."""
    factors = {name: factor(improvements.get(name, 0.0)) for name in times.classes}
    by_class = pl.col("class").replace_strict(factors, return_dtype=pl.Float64)
    table = times.table.with_columns(pl.col("seconds") * by_class)
    return replace(times, table=table, epochs=times.epochs.clear())


def change_percent(before: float, after: float) -> float:
    return 100 * (after / before - 1) if before else 0.0


def sensitivity(processes: Processes) -> Iterator[Sensitivity]:
    """For each class by itself. The last figure is the most that any money spent on it can give."""
    best = processes.io_seconds(np.ones((1, len(processes.classes)))).min()
    for column, name in enumerate(processes.classes):
        factors = np.ones((len(STEPS) + 1, len(processes.classes)))
        factors[:, column] = [*(factor(step) for step in STEPS), 0.0]
        changes = [change_percent(float(best), float(after)) for after in processes.io_seconds(factors).min(axis=0)]
        yield Sensitivity(name, dict(zip(STEPS, changes, strict=False)), changes[-1])


def _warnings(
    processes: Processes, before: Breakdown, after: Breakdown, improvements: Mapping[str, float]
) -> Iterator[Finding]:
    """When not to believe the estimate."""
    if not any(improvements.values()):
        return
    if before.best.bottleneck != after.best.bottleneck:
        moved = {
            "before": before.best.bottleneck or "nothing",
            "before_where": sweep_text(before.best.sweep),
            "after": after.best.bottleneck or "nothing",
            "after_where": sweep_text(after.best.sweep),
        }
        yield Finding("bottleneck_moves", moved)
    yield from _spent(processes, after.best.io.median, improvements)
    if all(percent <= 0 for percent in improvements.values()):
        return  # then nothing has to serve more than it did
    yield from untold(processes, improvements)
    if len(processes.points) < 2:
        return
    point = next(index for index, point in enumerate(processes.points) if point.sweep == after.best.sweep)
    yield from exceeded(ceilings(processes), point, after.best.io.median, improvements)


def untold(processes: Processes, improvements: Mapping[str, float]) -> Iterator[Finding]:
    """Why it cannot be told whether other classes would have to serve more than they ever did."""
    others = [name for name in processes.classes if improvements.get(name, 0.0) <= 0]
    if others and len(processes.points) < 2:
        yield Finding("one_point", {})
    elif unknown := [name for name in unknown_classes(processes) if name in others]:
        yield Finding("no_ceilings", {"classes": unknown})


def _spent(processes: Processes, io_seconds: float, improvements: Mapping[str, float]) -> Iterator[Finding]:
    """Improved classes of which more would gain next to nothing."""
    for column, name in enumerate(processes.classes):
        if improvements.get(name, 0.0) > 0:
            factors = processes.factors(improvements)[None, :]
            factors[0, column] = 0.0
            left = -change_percent(io_seconds, float(processes.io_seconds(factors).min()))
            if left < 100 * LITTLE:
                yield Finding("stops_mattering", {"class": name, "percent": max(0.0, left)})
