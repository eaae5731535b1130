"""Class times as arrays: what an estimate or a grid of them is computed on, thousands of times over."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tierscope.analysis.breakdown import counted_epochs
from tierscope.analysis.cases import case_of
from tierscope.analysis.clocks import AU_PARTS, has_clocks, has_compute, with_clocks
from tierscope.analysis.comparable import groups_of
from tierscope.analysis.statistics import settled
from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.predict.hull import Floats, upper_hull
from tierscope.spec.whatif import LEAST, MOST

LIMITS = (LEAST, MOST)
_CHUNK = 8192  # directions looked at together: what they give stays in the processor's cache


@dataclass(frozen=True, slots=True)
class ProcessClocks:
    """Of every process of an epoch, in the order of its times: seconds of the epoch, and how long it stood still for I/O.

    For its AU: compute, seconds and stalls of the steps that count; nan: not known.
    """

    epoch: Floats
    standstill: Floats
    au_compute: Floats
    au_seconds: Floats
    au_stall: Floats


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """One epoch of one repetition: the class times of every process, and what all of them did together (nan: not known)."""

    repetition: int
    epoch: int
    ranks: npt.NDArray[np.int64]
    seconds: Floats  # processes × classes
    ops: Floats  # by class
    moved_bytes: Floats
    clocks: ProcessClocks | None = None  # None: not known

    @property
    def on_clock(self) -> Floats:
        """Class seconds as parts of the epoch: of threads that were busy at once, no more than has passed."""
        assert self.clocks is not None
        sums = self.seconds.sum(axis=1)
        share = np.divide(self.clocks.epoch, sums, out=np.ones_like(sums), where=sums > self.clocks.epoch)
        seconds: Floats = self.seconds * share[:, None]
        return seconds

    def served(self, kind: str) -> Floats:
        """`kind` is ops or bytes."""
        return self.ops if kind == "ops" else self.moved_bytes


@dataclass(frozen=True, slots=True)
class PointTimes:
    """One point of the sweep: the epochs that count there."""

    sweep: SweepValues
    epochs: tuple[ProcessTimes, ...]
    group: int = 0  # of points that are ranked against each other; 0: the one that is asked about
    is_possible: bool = True  # its files fit, for all that is known

    def slowest_ranks(self, factors: Floats) -> list[int]:
        """Of every epoch; of equals the first."""
        return [int(times.ranks[_settled(times.seconds @ factors).argmax()]) for times in self.epochs]


@dataclass(frozen=True, slots=True)
class Processes:
    """`points` are ordered by cache rate, else as in the breakdown: of equals, the first is the one to choose. `ranked_by`: as of a breakdown."""

    classes: tuple[str, ...]
    points: tuple[PointTimes, ...]
    ranked_by: str = "io"

    @classmethod
    def of(cls, times: ClassTimes, ranked_by: str = "") -> "Processes":
        """`ranked_by`: as of the breakdown of these times; else the epoch counts where there is compute."""
        classes = times.io_classes
        seconds = times.by_process("seconds").sort([*times.keys, "rank"])
        counts = {
            tuple(row[name] for name in times.keys): row
            for row in _totals(times).iter_rows(named=True)
        }  # fmt: skip
        clocks = _clocks(times)
        by_point: dict[tuple[Any, ...], list[ProcessTimes]] = {}
        for part in seconds.partition_by(times.keys, maintain_order=True):
            key = part.select(times.keys).row(0)
            total = counts[key]
            by_point.setdefault(key[:-2], []).append(
                ProcessTimes(
                    repetition=key[-2],
                    epoch=key[-1],
                    ranks=part["rank"].to_numpy(),
                    seconds=part.select(classes).to_numpy(),
                    ops=_known(total[f"\0ops {name}"] for name in classes),
                    moved_bytes=_known(total[f"\0bytes {name}"] for name in classes),
                    clocks=clocks.get(key),
                )
            )
        groups, _ = groups_of(times, list(by_point))
        group_of = {index: number for number, group in enumerate(groups) for index in group}
        points = [
            PointTimes(
                dict(zip(times.sweep, values, strict=True)),
                _counted(epochs),
                group_of[index],
                times.is_possible(values),
            )
            for index, (values, epochs) in enumerate(by_point.items())
        ]
        ordered = tuple(sorted(points, key=lambda point: cache_rate_of(point.sweep)))
        wanted = ranked_by or ("epoch" if has_compute(times.epochs) else "io")
        return cls(classes, ordered, wanted if clocks else "io")

    def in_group_of(self, sweep: SweepValues) -> "Processes":
        """Of all points of this one's case, with its own group as the one that is ranked: another case may be another system, and tells nothing about this one."""
        own = next(point.group for point in self.points if point.sweep == sweep)
        points = (
            replace(point, group=0 if point.group == own else 1 + point.group)
            for point in self.points
            if case_of(point.sweep) == case_of(sweep)
        )
        return replace(self, points=tuple(points))

    def comparable(self) -> "Processes":
        """Only the points of the first group, for others read another amount of data, or are of another case; and of these the ones that fit, if any does."""
        alike = tuple(point for point in self.points if not point.group)
        return replace(self, points=tuple(point for point in alike if point.is_possible) or alike)

    def reduced(self) -> "Processes":
        """Only those that can be the slowest, whatever is improved."""
        points = []
        for point in self.points:
            kept = [(epoch, upper_hull(epoch.seconds)) for epoch in point.epochs]
            epochs = (
                replace(epoch, ranks=epoch.ranks[rows], seconds=epoch.seconds[rows], clocks=None)
                for epoch, rows in kept
            )
            points.append(replace(point, epochs=tuple(epochs)))
        return replace(self, points=tuple(points))

    def factors(self, improvements: Mapping[str, float]) -> Floats:
        return np.array([factor(improvements.get(name, 0.0)) for name in self.classes])

    def io_seconds(self, factors: Floats) -> Floats:
        """For rows of factors: the median over epochs of the slowest process's time, points × rows."""
        return np.array(
            [
                np.median([largest(epoch.seconds, factors) for epoch in point.epochs], axis=0)
                for point in self.points
            ]
        )  # fmt: skip


def _settled(seconds: Floats) -> Floats:
    """As `statistics.settled`."""
    return np.array([settled(value) for value in seconds])


def factor(percent: float) -> float:
    """METHOD, step 3: N % more throughput in a class multiplies its time by 100/(100+N)."""
    return 100.0 / (100.0 + percent)


def largest(times: Floats, factors: Floats) -> Floats:
    """For each row of factors, the largest sum of any process."""
    result = np.empty(len(factors))
    for start in range(0, len(factors), _CHUNK):
        part = slice(start, start + _CHUNK)
        (times @ factors[part].T).max(axis=0, out=result[part])
    return result


def _clocks(times: ClassTimes) -> dict[tuple[Any, ...], ProcessClocks]:
    """(point, repetition, epoch) → clocks of its processes by rank; empty: they are not known."""
    if not has_clocks(times.epochs):
        return {}
    rows = with_clocks(times.epochs).sort([*times.keys, "rank"])
    columns = ("epoch_seconds", "standstill_seconds", *AU_PARTS)
    clocks = {}
    for part in rows.partition_by(times.keys, maintain_order=True):
        values = (part[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in columns)
        clocks[part.select(times.keys).row(0)] = ProcessClocks(*values)
    return clocks


def _counted(epochs: list[ProcessTimes]) -> tuple[ProcessTimes, ...]:
    counted = counted_epochs(times.epoch for times in epochs)
    return tuple(times for times in epochs if times.epoch in counted)


def _totals(times: ClassTimes) -> pl.DataFrame:
    """Operations and bytes of every class in every epoch of every run; null where any are not known."""
    sums = [
        pl.when(pl.col(column).filter(pl.col("class") == name).null_count() == 0)
        .then(pl.col(column).filter(pl.col("class") == name).sum())
        .alias(f"\0{column} {name}")  # no swept key can be called that
        for column in ("ops", "bytes")
        for name in times.io_classes
    ]
    return times.table.group_by(times.keys).agg(sums)


def _known(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
