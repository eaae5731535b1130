"""The Breakdown: where the I/O time of the slowest process goes, at every point of a sweep.

The slowest process is what an epoch waits for. Its time is the maximum over ranks of READ + META seconds, taken for
each (repetition, epoch) by itself; medians and intervals are over those maxima. The first epoch is special and kept apart.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from tierscope.analysis.staging_costs import with_staging
from tierscope.analysis.statistics import DIGITS, SIMULATED, Interval, interval, middle, settled
from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.trace.description import Simulated, StudyRun
from tierscope.trace.ops import IO_CATEGORIES
from tierscope.units import format_fraction

_RANKS, _WRITE, _IO = "\0ranks", "\0write", "\0io"  # no swept key can be called that


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest process of one epoch of one run."""

    repetition: int
    epoch: int
    rank: int
    ranks: int
    io_seconds: float
    classes: dict[str, float]
    ops: dict[str, int | None]
    moved_bytes: dict[str, int | None]
    write_seconds: float  # the longest of any rank: the slowest by reads and metadata may not be the one that writes
    figures: "_Figures"


@dataclass(frozen=True, slots=True)
class EpochPoint:
    """One epoch at one point of the sweep; the median over repetitions."""

    sweep: SweepValues
    epoch: int
    ranks: int
    repetitions: int
    slowest_rank: int
    io_seconds: float
    epoch_seconds: float | None
    compute_seconds: float | None
    classes: dict[str, float]
    ops: dict[str, int | None]  # of the slowest rank, as the classes
    moved_bytes: dict[str, int | None]
    bottleneck: str | None
    spread: Interval
    step_seconds: tuple[float, float] | None
    checkpoint_seconds: float | None = None  # that training stood still for them; None: not at all, or not known
    hit_rate: float | None = None  # share of samples that nobody went to the last tier for


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of the sweep: the epochs after the first (or the first, if it is alone) of all repetitions."""

    sweep: SweepValues
    io: Interval
    classes: dict[str, float]
    bottleneck: str | None
    epoch_seconds: float | None
    compute_seconds: float | None
    write_seconds: float  # of the rank that wrote longest
    first_epoch_io_seconds: float | None
    checkpoint_seconds: float | None = None  # the mean of the counted epochs: not each of them need have any
    checkpoint_share: float | None = None  # of the epoch
    hit_rate: float | None = None  # the mean of the counted epochs
    staging_seconds: float | None = None  # to put the files there before training, as simulated
    break_even_epochs: int | None = None  # after which that paid off, against no cached files; None: never, or unknown


@dataclass(frozen=True, slots=True)
class Breakdown:
    basis: str
    sweep_keys: tuple[str, ...]
    classes: tuple[str, ...]
    points: tuple[EpochPoint, ...]
    summary: tuple[SweepPoint, ...]
    best: SweepPoint
    smallest_equal: SweepPoint | None  # the smallest cache rate that cannot be told from the best
    kinds: dict[str, tuple[int, int]]  # operations and bytes of each kind, of all ranks and epochs; empty: not known
    epoch: int | None = None  # the only one that was taken; None: those after the first


def value_text(name: str, value: Any) -> str:
    """A sweep value as people write it."""
    if name.rpartition(".")[2] == "cache_rate" and isinstance(value, int | float):
        return format_fraction(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def sweep_text(sweep: SweepValues) -> str:
    return ", ".join(f"{name} {value_text(name, value)}" for name, value in sweep.items()) or "the only point"


def break_down(times: ClassTimes) -> Breakdown:
    slowest = _slowest(times)
    factors = _simulated_factors(times)
    hits = _hit_rates(times)
    points: list[EpochPoint] = []
    summary: list[SweepPoint] = []
    for values, runs in slowest:
        by_epoch: dict[int, list[Slowest]] = {}
        for run in runs:
            by_epoch.setdefault(run.epoch, []).append(run)
        spreads = factors.get(tuple(values.values()), {})
        found = hits.get(tuple(values.values()), {})
        points += [
            replace(_epoch_point(values, by_epoch[epoch], spreads), hit_rate=found.get(epoch))
            for epoch in sorted(by_epoch)
        ]
        counted = [found[epoch] for epoch in counted_epochs(by_epoch) if epoch in found]
        summary.append(replace(_sweep_point(values, runs, spreads), hit_rate=_mean(counted)))
    summary = with_staging(summary, _staging_seconds(times))
    # Of equals the smaller cache rate; then the first, which has the smaller values.
    best = min(summary, key=lambda point: (settled(point.io.median), point.sweep.get("cache_rate", 0)))
    return Breakdown(
        times.basis,
        times.sweep,
        times.classes,
        tuple(points),
        tuple(summary),
        best,
        _smallest_equal(summary, best),
        times.kinds,
        times.epoch,
    )


def _slowest(times: ClassTimes) -> list[tuple[SweepValues, list[Slowest]]]:
    """For each point of the sweep in order, the slowest process of every (repetition, epoch)."""
    keys = times.keys
    io_classes = times.io_classes
    writes = [name for name in times.classes if name not in io_classes]
    wide = times.by_process("seconds").with_columns(pl.sum_horizontal(pl.lit(0.0), *writes).alias(_WRITE))
    chosen = (
        wide.with_columns(pl.sum_horizontal(io_classes).round_sig_figs(DIGITS).alias(_IO))
        .sort([*keys, _IO, "rank"], descending=[False] * len(keys) + [True, False])
        .group_by(keys, maintain_order=True)
        .agg(pl.first("rank", *times.classes), pl.len().alias(_RANKS), pl.max(_WRITE))
    )
    more = _epoch_figures(times)
    counts = _counts(times, chosen)
    found: dict[tuple[Any, ...], list[Slowest]] = {}
    for row in chosen.iter_rows(named=True):
        key = tuple(row[name] for name in keys)
        counted = counts.get(key, {})
        found.setdefault(key[: len(times.sweep)], []).append(
            Slowest(
                repetition=row["repetition"],
                epoch=row["epoch"],
                rank=row["rank"],
                ranks=row[_RANKS],
                io_seconds=math.fsum(row[name] for name in io_classes),
                classes={name: row[name] for name in times.classes},
                ops={name: counted.get(name, (None, None))[0] for name in times.classes},
                moved_bytes={name: counted.get(name, (None, None))[1] for name in times.classes},
                write_seconds=row[_WRITE],
                figures=more.get(key, _Figures()),
            )
        )
    return [(dict(zip(times.sweep, values, strict=True)), runs) for values, runs in found.items()]


def _counts(times: ClassTimes, chosen: pl.DataFrame) -> dict[tuple[Any, ...], dict[str, tuple[int | None, int | None]]]:
    """(point, repetition, epoch) → class → operations and bytes of the chosen rank."""
    keys = times.keys
    rows = chosen.select([*keys, "rank"]).join(times.table, on=[*keys, "rank"], how="left", nulls_equal=True)
    found: dict[tuple[Any, ...], dict[str, tuple[int | None, int | None]]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(tuple(row[name] for name in keys), {})[row["class"]] = (row["ops"], row["bytes"])
    return found


class _Figures(NamedTuple):
    """Of one epoch, each the longest of any rank; None: not known. The two of prefetch bound training that synchronises every step."""

    epoch_seconds: float | None = None
    compute_seconds: float | None = None
    endless_prefetch_seconds: float | None = None  # max over ranks of the sum over steps
    no_prefetch_seconds: float | None = None  # sum over steps of the max over ranks
    checkpoint_seconds: float | None = None


def _epoch_figures(times: ClassTimes) -> dict[tuple[Any, ...], _Figures]:
    """(point, repetition, epoch) → its figures."""
    if times.epochs.is_empty():
        return {}
    keys = times.keys
    longest = times.epochs.group_by(keys).agg(
        pl.col("epoch_seconds", "compute_seconds", "checkpoint_seconds").max(),
        pl.col("step_read_seconds").list.sum().max().alias("endless"),
    )
    per_step = (
        times.epochs.select([*keys, "step_read_seconds"])
        .drop_nulls("step_read_seconds")
        .with_columns(pl.int_ranges(pl.col("step_read_seconds").list.len()).alias("step"))
        .explode("step_read_seconds", "step")
        .group_by([*keys, "step"], maintain_order=True)  # or sums would differ in their last digit from call to call
        .agg(pl.col("step_read_seconds").max())
        .group_by(keys, maintain_order=True)
        .agg(pl.col("step_read_seconds").sum().alias("none"))
    )
    joined = longest.join(per_step, on=keys, how="left", nulls_equal=True)
    return {
        tuple(row[name] for name in keys): _Figures(
            row["epoch_seconds"], row["compute_seconds"], row["endless"], row["none"], row["checkpoint_seconds"]
        )
        for row in joined.iter_rows(named=True)
    }


_Factors = dict[int, tuple[float, float]]


def _simulated_factors(times: ClassTimes) -> dict[tuple[Any, ...], _Factors]:
    """Sweep values → epoch → what low and high are of a simulated time."""
    found: dict[tuple[Any, ...], _Factors] = {}
    for about in times.about:
        if isinstance(about, Simulated):
            found.setdefault(tuple(about.sweep.values()), {}).update(about.spread)
    return found


def _hit_rates(times: ClassTimes) -> dict[tuple[Any, ...], dict[int, float | None]]:
    """Sweep values → epoch → hit rate, of simulations."""
    found: dict[tuple[Any, ...], dict[int, float | None]] = {}
    for about in times.about:
        if isinstance(about, StudyRun) and about.hit_rate:
            found.setdefault(tuple(about.sweep.values()), {}).update(about.hit_rate)
    return found


def _staging_seconds(times: ClassTimes) -> dict[tuple[Any, ...], float]:
    return {
        tuple(about.sweep.values()): about.staging_seconds
        for about in times.about
        if isinstance(about, Simulated) and about.staging_seconds is not None
    }


def _with_factors(values: Interval, factors: list[tuple[float, float]]) -> Interval:
    """An interval of what else might have come out, where values were simulated."""
    if not factors:
        return values
    low, high = (sum(pair[side] for pair in factors) / len(factors) for side in (0, 1))
    return Interval(values.median, values.median * low, values.median * high, values.n, SIMULATED)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return interval(known).median if known else None


def _middle_classes(runs: list[Slowest]) -> dict[str, float]:
    """Class times that add up to the median: those of the middle run, or the mean of the middle two."""
    chosen = middle(runs, [settled(run.io_seconds) for run in runs])
    return {name: sum(run.classes[name] for run in chosen) / len(chosen) for name in chosen[0].classes}


def bottleneck(classes: dict[str, float]) -> str | None:
    """The largest of READ and META; None when there was no I/O."""
    io = {name: seconds for name, seconds in classes.items() if name.rpartition("-")[2] in IO_CATEGORIES}
    largest = max(io, key=lambda name: io[name])
    return largest if io[largest] > 0 else None


def _epoch_point(sweep: SweepValues, runs: list[Slowest], factors: _Factors) -> EpochPoint:
    times = [run.io_seconds for run in runs]
    epoch = runs[0].epoch
    spread = _with_factors(interval(times), [factors[epoch]] if epoch in factors else [])
    classes = _middle_classes(runs)
    chosen = middle(runs, [settled(seconds) for seconds in times])
    endless = _mean([run.figures.endless_prefetch_seconds for run in chosen])
    none = _mean([run.figures.no_prefetch_seconds for run in chosen])
    return EpochPoint(
        sweep=sweep,
        epoch=epoch,
        ranks=max(run.ranks for run in runs),
        repetitions=len(runs),
        slowest_rank=chosen[0].rank,
        io_seconds=spread.median,
        epoch_seconds=_median([run.figures.epoch_seconds for run in runs]),
        compute_seconds=_median([run.figures.compute_seconds for run in runs]),
        classes=classes,
        ops=chosen[0].ops,
        moved_bytes=chosen[0].moved_bytes,
        bottleneck=bottleneck(classes),
        spread=spread,
        step_seconds=(endless, none) if endless is not None and none is not None else None,
        checkpoint_seconds=_median([run.figures.checkpoint_seconds for run in runs]) or None,
    )


def counted_epochs(epochs: Iterable[int]) -> set[int]:
    """METHOD: the first epoch is special, so it counts only when it is alone."""
    found = set(epochs)
    return {epoch for epoch in found if epoch >= 2} or found


def _sweep_point(sweep: SweepValues, runs: list[Slowest], factors: _Factors) -> SweepPoint:
    epochs = counted_epochs(run.epoch for run in runs)
    later = [run for run in runs if run.epoch in epochs]
    first = [run.io_seconds for run in runs if run.epoch == 1]
    classes = _middle_classes(later)
    stood = _mean([run.figures.checkpoint_seconds for run in later]) or None
    whole = _mean([run.figures.epoch_seconds for run in later])
    return SweepPoint(
        sweep=sweep,
        io=_with_factors(
            interval([run.io_seconds for run in later]),
            [factors[epoch] for epoch in sorted(epochs) if epoch in factors],
        ),
        classes=classes,
        bottleneck=bottleneck(classes),
        epoch_seconds=_median([run.figures.epoch_seconds for run in later]),
        compute_seconds=_median([run.figures.compute_seconds for run in later]),
        write_seconds=interval([run.write_seconds for run in later]).median,
        first_epoch_io_seconds=interval(first).median if first else None,
        checkpoint_seconds=stood,
        checkpoint_share=stood / whole if stood and whole else None,
    )


def _smallest_equal(summary: list[SweepPoint], best: SweepPoint) -> SweepPoint | None:
    if "cache_rate" not in best.sweep:
        return None
    others = {name: value for name, value in best.sweep.items() if name != "cache_rate"}
    equal = [
        point
        for point in summary
        if all(point.sweep[name] == value for name, value in others.items()) and point.io.overlaps(best.io)
    ]
    return min(equal, key=lambda point: cache_rate_of(point.sweep))
