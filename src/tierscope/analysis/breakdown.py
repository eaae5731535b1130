"""The Breakdown: where the I/O time of the slowest process goes, at every point of a sweep.

The slowest process is what an epoch waits for. Its time is the maximum over ranks of READ + META + WRITE seconds, taken for
each (repetition, epoch) by itself; medians and intervals are over those maxima. The first epoch is special and kept apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tierscope.analysis.cases import case_of, in_case_order
from tierscope.analysis.comparable import amount_kind, amount_text, groups_of
from tierscope.analysis.first_batch import with_first_batches
from tierscope.analysis.simulated_intervals import epoch_interval, with_factors
from tierscope.analysis.slowest import Slowest, slowest_processes
from tierscope.analysis.staging_costs import with_staging
from tierscope.analysis.statistics import Interval, interval, middle, settled
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.told_by_runs import (
    Factors,
    epoch_factors,
    hit_rates,
    simulated_factors,
    staging_seconds,
    unidentified_points,
)
from tierscope.analysis.wording import ONLY_POINT
from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.shown import shown_value


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
    background_seconds: float | None = (
        None  # of checkpoints that the rank which writes longest writes while training goes on; no part of the I/O
    )
    epoch: Interval | None = None  # of the epoch's seconds; None: not known of every epoch
    unstalled_seconds: float | None = (
        None  # of the epoch, without what it stood still for I/O: no storage makes it shorter than that
    )
    stall_share: float | None = None  # waiting for data, of the epoch of the rank with the longest one
    au: float | None = None  # DLIO's accelerator utilisation, a share of 1: the mean over ranks and counted epochs
    slowest_au: float | None = None  # of the rank with the longest epoch
    staging_seconds: float | None = None  # to put the files there before training, as simulated
    break_even_epochs: int | None = None  # after which that paid off, against no cached files; None: never, or unknown
    first_batch: tuple[float, float] | None = (
        None  # seconds from the epoch's start: mean and max over ranks, as simulated
    )
    feasibility: Feasibility | None = None  # whether its files fit; None: nothing is known of it
    is_identified: bool = True  # by the figures of the system that it was simulated on

    @property
    def is_usable(self) -> bool:
        """What is in the middle of its intervals says something: they are no pair of bounds."""
        return self.is_identified and self.io.is_usable

    @property
    def is_possible(self) -> bool:
        """Nothing is known not to fit: it may be recommended."""
        return self.feasibility is None or self.feasibility.is_possible


@dataclass(frozen=True, slots=True)
class PointGroup:
    """Points of one case that read the same amount of data: only those are ranked against each other."""

    amount: float | None  # bytes of an epoch, or samples where bytes are not known; None: neither is
    points: tuple[SweepPoint, ...]
    best: SweepPoint  # of those that fit; of all, where none does
    smallest_equal: SweepPoint | None  # the smallest cache rate that cannot be told from the best
    amount_of: str | None = None  # payload, samples or read: two of a kind can be compared

    @property
    def amount_text(self) -> str:
        return amount_text(self.amount, self.amount_of)

    @property
    def case(self) -> str | None:
        return case_of(self.best.sweep)

    @property
    def possible(self) -> tuple[SweepPoint, ...]:
        """Those that may be recommended."""
        return tuple(point for point in self.points if point.is_possible)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """`best` and `smallest_equal` are those of the first group, which is of the first case and reads the most data; usually there is only one."""

    basis: str
    sweep_keys: tuple[str, ...]
    classes: tuple[str, ...]
    io_classes: tuple[str, ...]  # those that the I/O time is the sum of
    points: tuple[EpochPoint, ...]
    summary: tuple[SweepPoint, ...]
    best: SweepPoint
    smallest_equal: SweepPoint | None
    kinds: dict[str, tuple[int, int]]  # operations and bytes of each kind, of all ranks and epochs; empty: not known
    epoch: int | None = None  # the only one that was taken; None: those after the first
    ranked_by: str = "io"  # what is shortest at the best point: io, or the epoch where other things than I/O decide
    groups: tuple[PointGroup, ...] = ()


def value_text(name: str, value: Any) -> str:
    """A sweep value as people write it."""
    return shown_value(name, value)


def sweep_text(sweep: SweepValues) -> str:
    return ", ".join(f"{name} {value_text(name, value)}" for name, value in sweep.items()) or ONLY_POINT


def break_down(times: ClassTimes, ranked_by: str = "") -> Breakdown:
    """`ranked_by`: as of another breakdown, whose estimate this is."""
    slowest = in_case_order(times, slowest_processes(times))
    factors, of_epochs, unidentified = simulated_factors(times), epoch_factors(times), unidentified_points(times)
    hits = hit_rates(times)
    points: list[EpochPoint] = []
    summary: list[SweepPoint] = []
    for values, runs in slowest:
        by_epoch: dict[int, list[Slowest]] = {}
        for run in runs:
            by_epoch.setdefault(run.epoch, []).append(run)
        spreads = factors.get(tuple(values.values()), {})
        rates = hits.get(tuple(values.values()), {})
        points += [
            replace(_epoch_point(values, by_epoch[epoch], spreads, times.io_classes), hit_rate=rates.get(epoch))
            for epoch in sorted(by_epoch)
        ]
        counted = [rates[epoch] for epoch in counted_epochs(by_epoch) if epoch in rates]
        clocks = of_epochs.get(tuple(values.values()), {})
        point = _sweep_point(values, runs, (spreads, clocks), times.io_classes)
        summary.append(
            replace(
                point,
                hit_rate=_mean(counted),
                background_seconds=background_seconds(times, values),
                feasibility=times.feasibility.get(tuple(values.values())),
                is_identified=tuple(values.values()) not in unidentified,
            )
        )
    summary = with_first_batches(with_staging(summary, staging_seconds(times)), times.about)
    ranked_by, groups = _ranked(times, summary, ranked_by)
    return Breakdown(
        times.basis,
        times.sweep,
        times.classes,
        times.io_classes,
        tuple(points),
        tuple(summary),
        groups[0].best,
        groups[0].smallest_equal,
        times.kinds,
        times.epoch,
        ranked_by,
        groups,
    )


def _ranked_by(groups: Sequence[Sequence[SweepPoint]]) -> str:
    """The epoch, where I/O may be hidden behind compute, or what loaders do beside I/O (decompression, a library) turns the order around."""
    summary = [point for points in groups for point in points]
    decides = any(point.compute_seconds for point in summary) or any(_contradicted(points) for points in groups)
    return "epoch" if decides and all(point.epoch for point in summary) else "io"


def _contradicted(points: Sequence[SweepPoint]) -> bool:
    """Whether the point with the shortest I/O has an epoch that is longer than another's, by a tenth and beyond both intervals."""
    epoch = _best(points, "io").epoch
    others = [point.epoch for point in points if point.is_possible and point.epoch and epoch]
    return any(epoch and other.high < min(epoch.low, 0.9 * epoch.median) for other in others)


def measure_of(point: SweepPoint, ranked_by: str) -> Interval:
    """What the point is ranked by."""
    return point.epoch if ranked_by == "epoch" and point.epoch is not None else point.io


def _ranked(times: ClassTimes, summary: list[SweepPoint], given: str) -> tuple[str, tuple[PointGroup, ...]]:
    places, amounts = groups_of(times, [tuple(point.sweep.values()) for point in summary])
    groups, kind = [tuple(summary[index] for index in indices) for indices in places], amount_kind(times)
    ranked_by = _ranked_by(groups) if not given else given if all(point.epoch for point in summary) else "io"
    bests = [_best(points, ranked_by) for points in groups]
    return ranked_by, tuple(
        PointGroup(amounts[indices[0]], points, best, _smallest_equal(points, best, ranked_by), kind)
        for indices, points, best in zip(places, groups, bests, strict=True)
    )


def _best(points: Sequence[SweepPoint], ranked_by: str) -> SweepPoint:
    """Of those that fit, if any does. Of equals the one with the shorter I/O, then the smaller cache rate; then the first, which has the smaller values."""

    def key(point: SweepPoint) -> tuple[float, float, float]:
        measured = settled(measure_of(point, ranked_by).median)
        return measured, settled(point.io.median), cache_rate_of(point.sweep)

    return min([point for point in points if point.is_possible] or points, key=key)


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


def bottleneck(classes: dict[str, float], io_classes: Iterable[str]) -> str | None:
    """The largest class of the I/O time; None when there was no I/O."""
    largest = max(io_classes, key=lambda name: classes[name])
    return largest if classes[largest] > 0 else None


def _epoch_point(sweep: SweepValues, runs: list[Slowest], factors: Factors, io_classes: tuple[str, ...]) -> EpochPoint:
    times = [run.io_seconds for run in runs]
    epoch = runs[0].epoch
    spread = with_factors(interval(times), [factors[epoch]] if epoch in factors else [])
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
        bottleneck=bottleneck(classes, io_classes),
        spread=spread,
        step_seconds=(endless, none) if endless is not None and none is not None else None,
        checkpoint_seconds=_median([run.figures.checkpoint_seconds for run in runs]) or None,
    )


def counted_epochs(epochs: Iterable[int]) -> set[int]:
    """METHOD: the first epoch is special, so it counts only when it is alone."""
    numbers = set(epochs)
    return {epoch for epoch in numbers if epoch >= 2} or numbers


def _sweep_point(
    sweep: SweepValues, runs: list[Slowest], factors: tuple[Factors, Factors], io_classes: tuple[str, ...]
) -> SweepPoint:
    """`factors`: of simulations, what low and high are of the I/O time, and of the epoch."""
    epochs = counted_epochs(run.epoch for run in runs)
    later = [run for run in runs if run.epoch in epochs]
    first = [run.io_seconds for run in runs if run.epoch == 1]
    classes = _middle_classes(later)
    stood = _mean([run.figures.checkpoint_seconds for run in later]) or None
    whole = _mean([run.figures.epoch_seconds for run in later])
    drawn, clocks = ([some[epoch] for epoch in sorted(epochs) if epoch in some] for some in factors)
    io = with_factors(interval([run.io_seconds for run in later]), drawn)
    unstalled = _median([run.figures.unstalled_seconds for run in later])
    return SweepPoint(
        sweep=sweep,
        io=io,
        classes=classes,
        bottleneck=bottleneck(classes, io_classes),
        epoch_seconds=_median([run.figures.epoch_seconds for run in later]),
        compute_seconds=_median([run.figures.compute_seconds for run in later]),
        write_seconds=interval([run.write_seconds for run in later]).median,
        first_epoch_io_seconds=interval(first).median if first else None,
        checkpoint_seconds=stood,
        checkpoint_share=stood / whole if stood and whole else None,
        epoch=epoch_interval([run.figures.epoch_seconds for run in later], io, unstalled, clocks),
        unstalled_seconds=unstalled,
        stall_share=_mean([run.figures.stall_share for run in later]),
        au=_mean([run.figures.au for run in later]),
        slowest_au=_mean([run.figures.slowest_au for run in later]),
    )


def background_seconds(times: ClassTimes, sweep: SweepValues) -> float | None:
    """The median over counted epochs, as of the I/O time; None: nothing was written in the background."""
    if times.background.is_empty():
        return None
    rows = times.background.filter(pl.lit(True), *(pl.col(name).eq_missing(value) for name, value in sweep.items()))
    longest = rows.group_by("repetition", "epoch").agg(pl.col("seconds").max())
    counted = counted_epochs(longest["epoch"].to_list())
    return _median(longest.filter(pl.col("epoch").is_in(counted))["seconds"].to_list())


def _smallest_equal(summary: Sequence[SweepPoint], best: SweepPoint, ranked_by: str) -> SweepPoint | None:
    if "cache_rate" not in best.sweep or not measure_of(best, ranked_by).is_usable:
        return None
    others = {name: value for name, value in best.sweep.items() if name != "cache_rate"}
    equal = [
        point
        for point in summary
        if all(point.sweep[name] == value for name, value in others.items())
        and point.is_possible >= best.is_possible
        and measure_of(point, ranked_by).overlaps(measure_of(best, ranked_by))
    ]
    return min(equal, key=lambda point: cache_rate_of(point.sweep))
