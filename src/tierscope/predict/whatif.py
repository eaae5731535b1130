"""What if a class were faster: the simple scaling of the Hierarchy study, step 3, and when not to believe it.

Of the epoch, per rank: epoch' = max(epoch − standstill, epoch − (io − io')). It can become no shorter than what it has without waiting for I/O, and by no more
than the I/O does. Where I/O takes longer, between epoch (all of that is hidden) and epoch + (io' − io); the longer one is taken.

Assumptions: N % more throughput makes every operation of the class that much shorter, for every process, at every point; and nothing
else changes. So what one class waits for another, and what a class does when it gets more load, are not in it: see the warnings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tierscope.analysis.breakdown import Breakdown, break_down, sweep_text
from tierscope.analysis.clocks import has_clocks, with_clocks
from tierscope.analysis.groups import group_alone, same_group
from tierscope.analysis.statistics import settled
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding
from tierscope.jsonable import SweepValues
from tierscope.predict.ceilings import KnownCeilings, exceeded, unknown_classes
from tierscope.predict.goals import Judge
from tierscope.predict.hull import Floats
from tierscope.predict.processes import Processes, factor
from tierscope.spec.goal import IO

WARNINGS = (  # all kinds that an estimate may have
    *("bottleneck_moves", "stops_mattering", "no_ceilings", "one_point"),
    *("beyond_ops", "beyond_bytes", "idle_beyond_ops", "idle_beyond_bytes"),
)
STEPS = (10.0, 50.0, 100.0)
SHOWN_STEP = 50.0  # percent more of a class, by which classes are ordered
_CLOCK = ("epoch_seconds", "stall_seconds", "compute_seconds")
_UNKNOWN = (
    "step_read_seconds",
    "step_stall_seconds",
    "step_compute_seconds",
    "checkpoint_seconds",
)  # after improvements
LITTLE = 0.05  # a class that could not take more than this off the time does not matter


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What the best time would change by, in percent, if one class alone were improved: of I/O, or of the epoch where there is compute (`measure`).

    The best point may be another one then.
    """

    class_name: str
    change_percent: dict[float, float]  # by improvement
    limit_percent: float  # if it took no time at all
    measure: str = "io"
    limit_sweep: SweepValues | None = None  # where the best point is then; None: where it is
    limit_is_nothing: bool = False  # no I/O is left there


@dataclass(frozen=True, slots=True)
class Estimate:
    """`improvements` in percent by class; `after` is what `before` would have been with them, its epochs too, where their times are known.

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

    @property
    def epoch_change_percent(self) -> float | None:
        """Of the best points' epochs; None: they are not known."""
        before, after = self.before.best.epoch_seconds, self.after.best.epoch_seconds
        return None if before is None or after is None else change_percent(before, after)


def estimate(times: ClassTimes, before: Breakdown, improvements: Mapping[str, float]) -> Estimate:
    """Of the first group of points; usually there is only one."""
    after = break_down(scaled(times, improvements), before.ranked_by)
    return estimates(Processes.of(times, before.ranked_by), before, improvements, after, most=1)[0]


def estimates(
    processes: Processes,
    before: Breakdown,
    improvements: Mapping[str, float],
    after: Breakdown,
    most: int | None = None,
) -> tuple[Estimate, ...]:
    """Of each group of points that are ranked against each other, or of so many. `after`: the breakdown of the scaled times."""
    known = KnownCeilings()
    return tuple(
        _estimate(
            processes.in_group_of(group.best.sweep),
            group_alone(before, group),
            group_alone(after, same_group(after, group)),
            improvements,
            known,
        )
        for group in before.groups[:most]
    )


def _estimate(
    processes: Processes, before: Breakdown, after: Breakdown, improvements: Mapping[str, float], known: KnownCeilings
) -> Estimate:
    best = next(point for point in processes.points if point.sweep == after.best.sweep)
    same = best.slowest_ranks(processes.factors({})) == best.slowest_ranks(processes.factors(improvements))
    return Estimate(
        improvements=dict(improvements),
        before=before,
        after=after,
        change_percent=change_percent(before.best.io.median, after.best.io.median),
        slowest_rank_changed=not same,
        bottleneck_moved=before.best.bottleneck != after.best.bottleneck,
        warnings=tuple(_warnings(processes, before, after, improvements, known)),
        sensitivity=tuple(sensitivity(processes)),
    )


def scaled(times: ClassTimes, improvements: Mapping[str, float]) -> ClassTimes:
    """The same times with every class as much shorter as it was improved."""
    factors = {name: factor(improvements.get(name, 0.0)) for name in times.classes}
    by_class = pl.col("class").replace_strict(factors, return_dtype=pl.Float64)
    table = times.table.with_columns(pl.col("seconds") * by_class)
    return replace(times, table=table, epochs=_scaled_epochs(times, table))


def _scaled_epochs(times: ClassTimes, table: pl.DataFrame) -> pl.DataFrame:
    """Rows of ranks with the epochs that scaled class times give; what nobody can tell is null."""
    epochs = times.epochs
    if epochs.is_empty():
        return epochs
    unknown = [pl.lit(None, epochs.schema[name]).alias(name) for name in _UNKNOWN if name in epochs.columns]
    if not has_clocks(epochs):
        untold = (pl.lit(None, pl.Float64).alias(name) for name in _CLOCK)
        return epochs.with_columns(*unknown, *untold)
    before, after = (_io_of_ranks(times, some, name) for some, name in ((times.table, "\0before"), (table, "\0after")))
    keys = [*times.keys, "rank"]
    joined = with_clocks(epochs).join(before, on=keys, how="left", nulls_equal=True, maintain_order="left")
    joined = joined.join(after, on=keys, how="left", nulls_equal=True, maintain_order="left")
    fits = (
        pl.when(pl.col("\0before") > pl.col("epoch_seconds"))
        .then(pl.col("epoch_seconds") / pl.col("\0before"))
        .otherwise(1.0)
    )
    saved = ((pl.col("\0before") - pl.col("\0after")) * fits).fill_null(
        0.0
    )  # of threads that were busy at once, no more than has passed
    epoch, whole = pl.col("epoch_seconds"), pl.col("au_seconds")
    shorter = pl.max_horizontal(epoch - pl.col("standstill_seconds"), epoch - saved)
    share = pl.when(epoch > 0).then(whole / epoch).otherwise(0.0)
    counted = pl.max_horizontal(whole - pl.col("au_stall"), whole - saved * share)
    return joined.with_columns(
        *unknown,
        shorter.alias("epoch_seconds"),
        counted.alias("au_seconds"),
        *((pl.col(name) - (epoch - shorter)).clip(0.0).alias(name) for name in ("stall_seconds", "standstill_seconds")),
        (pl.col("au_stall") - (whole - counted)).clip(0.0).alias("au_stall"),
    ).drop("\0before", "\0after")


def _io_of_ranks(times: ClassTimes, table: pl.DataFrame, name: str) -> pl.DataFrame:
    rows = table.filter(pl.col("class").is_in(times.io_classes))
    return rows.group_by([*times.keys, "rank"], maintain_order=True).agg(pl.col("seconds").sum().alias(name))


def change_percent(before: float, after: float) -> float:
    return 100 * (after / before - 1) if before else 0.0


def sensitivity(processes: Processes) -> Iterator[Sensitivity]:
    """For each class by itself. The last figure is the most that any money spent on it can give."""
    processes = processes.comparable()
    kind = processes.ranked_by
    judge = Judge(processes, processes.classes, {})

    def times(factors: Floats) -> Floats:
        directions = np.column_stack([np.ones(len(factors)), factors])
        return np.array([judge.values(kind, point, directions) for point in processes.points])

    now = times(np.ones((1, len(processes.classes))))[:, 0]
    best = _first_least(now)
    for column, name in enumerate(processes.classes):
        factors = np.ones((len(STEPS) + 1, len(processes.classes)))
        factors[:, column] = [*(factor(step) for step in STEPS), 0.0]
        after = times(factors)
        changes = [change_percent(float(now[best]), float(seconds)) for seconds in after.min(axis=0)]
        then = _first_least(after[:, -1])
        moved = (
            None if settled(float(after[then, -1])) == settled(float(after[best, -1])) else processes.points[then].sweep
        )
        left = judge.values(IO, processes.points[best if moved is None else then], _without(column, processes))[0]
        yield Sensitivity(
            name, dict(zip(STEPS, changes, strict=False)), changes[-1], kind, moved, bool(left <= 0 < now[best])
        )


def by_gain(rows: Iterable[Sensitivity], seconds: Mapping[str, float]) -> list[Sensitivity]:
    """The class that matters most first: by what half as much again of it takes off, then by the most that it could.

    `seconds`: of every class at the best point. Where compute hides all I/O, no class takes anything off the epoch: these decide then.
    """

    def gain(row: Sensitivity) -> tuple[float, float, float]:
        seconds_there = seconds.get(row.class_name, 0.0)
        return round(row.change_percent[SHOWN_STEP], 9), round(row.limit_percent, 9), -seconds_there

    return sorted(rows, key=gain)


def classes_by_gain(processes: Processes, breakdown: Breakdown) -> list[str]:
    """Of the group of points with the best one: the two that a grid is about first."""
    best = breakdown.best
    rows = by_gain(sensitivity(processes.in_group_of(best.sweep)), best.classes)
    return [row.class_name for row in rows]


def _without(column: int, processes: Processes) -> Floats:
    factors = np.ones((1, 1 + len(processes.classes)))
    factors[0, 1 + column] = 0.0
    return factors


def _first_least(values: Floats) -> int:
    """Of equals the first: it has the smaller cache rate."""
    known = [settled(float(value)) for value in values]
    return known.index(min(known))


def _warnings(
    processes: Processes, before: Breakdown, after: Breakdown, improvements: Mapping[str, float], known: KnownCeilings
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
    yield from exceeded(known.of(processes), point, after.best.io.median, improvements)


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
            left = -change_percent(io_seconds, float(processes.comparable().io_seconds(factors).min()))
            if left < 100 * LITTLE:
                yield Finding("stops_mattering", {"class": name, "percent": max(0.0, left)})
