"""DLIO's metrics of measured runs: accelerator utilisation, samples and bytes per second, by DLIO's names.

Of a rank and an epoch:

- AU (DLIO's): compute seconds over epoch seconds, both without the steps at the start and the end that do not count, and without
  checkpoints. Where steps were added up (`steps_per_entry`), the whole first or last entry does not count.
- AU of the whole epoch (ours): compute seconds over epoch seconds, with everything in it.
- samples per second and MB per second: samples delivered and bytes that reads really returned, over epoch seconds. A MB is 2**20
  bytes, as in DLIO.

Of an epoch: DLIO's AU is the mean over ranks, its throughput the sum over ranks. Both hide the slowest rank, which is beside them.
Standard deviations are of the values at hand (not of a sample of them), as in DLIO.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tierscope.errors import ResultError
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.spec.dlio_making import MetricOptions
from tierscope.trace.trace import Trace

MB = 2**20
_TICK = 1e-9  # seconds: what no clock tells from nothing


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """What one rank did in one epoch; `au` is None where no step is left that counts."""

    rank: int
    seconds: float
    samples: int
    bytes_read: int
    au: float | None
    whole_au: float

    @property
    def samples_per_second(self) -> float:
        return _over(self.samples, self.seconds)

    @property
    def mb_per_second(self) -> float:
        return _over(self.bytes_read / MB, self.seconds)


@dataclass(frozen=True, slots=True)
class EpochMetrics:
    repetition: int
    epoch: int
    ranks: tuple[RankMetrics, ...]

    @property
    def au(self) -> float | None:
        """The mean over ranks, as DLIO has it."""
        known = [rank.au for rank in self.ranks if rank.au is not None]
        return statistics.fmean(known) if known else None

    @property
    def samples_per_second(self) -> float:
        return math.fsum(rank.samples_per_second for rank in self.ranks)

    @property
    def mb_per_second(self) -> float:
        return math.fsum(rank.mb_per_second for rank in self.ranks)

    @property
    def slowest(self) -> RankMetrics:
        return max(self.ranks, key=lambda rank: (rank.seconds, -rank.rank))


@dataclass(frozen=True, slots=True)
class PointMetrics:
    """All epochs of all repetitions of one point of a sweep."""

    point: int
    sweep: SweepValues
    epochs: tuple[EpochMetrics, ...]

    @property
    def au(self) -> list[float]:
        """Of every epoch in which a step counts."""
        return [epoch.au for epoch in self.epochs if epoch.au is not None]


def point_metrics(traces: Iterable[Trace], wanted: MetricOptions) -> list[PointMetrics]:
    """Of runs of ours, in the order of points and repetitions."""
    sweeps: dict[int, SweepValues] = {}
    by_point: dict[int, list[EpochMetrics]] = {}
    for trace in traces:
        sweeps[trace.key.point] = trace.about.sweep
        by_point.setdefault(trace.key.point, []).extend(epoch_metrics(trace, wanted))
    return [PointMetrics(point, sweeps[point], tuple(epochs)) for point, epochs in sorted(by_point.items())]


def epoch_metrics(trace: Trace, wanted: MetricOptions) -> list[EpochMetrics]:
    read = trace.io.filter((pl.col("kind") == "read") & pl.col("rank").is_not_null())
    sums = read.group_by("epoch", "rank").agg(pl.col("bytes").sum()).iter_rows()
    nbytes = {(epoch, rank): moved for epoch, rank, moved in sums}
    epochs: dict[int, list[RankMetrics]] = {}
    for row in trace.ranks.sort("epoch", "rank").iter_rows(named=True):
        if row["epoch_seconds"] is None or row["samples"] is None:
            raise ResultError(
                "these metrics need the samples and epoch times of every rank, which only 'tierscope run' records; run the study"
            )
        moved = nbytes.get((row["epoch"], row["rank"]), 0)
        epochs.setdefault(row["epoch"], []).append(_rank_metrics(row, moved, wanted))
    return [EpochMetrics(trace.key.repetition, epoch, tuple(ranks)) for epoch, ranks in epochs.items()]


def _rank_metrics(row: Mapping[str, Any], moved: int, wanted: MetricOptions) -> RankMetrics:
    seconds, compute = row["epoch_seconds"], row["compute_seconds"] or 0.0
    return RankMetrics(
        row["rank"], seconds, row["samples"], moved, _counted_au(row, wanted), 100 * _over(compute, seconds)
    )


def _counted_au(row: Mapping[str, Any], wanted: MetricOptions) -> float | None:
    stalls, computes = row["step_stall_seconds"], row["step_compute_seconds"]
    if not computes or not stalls:
        return None
    per_entry = row["steps_per_entry"] or 1
    start, end = (-(-steps // per_entry) for steps in (wanted.exclude_start_steps, wanted.exclude_end_steps))
    if start + end >= len(computes):
        return None
    left_out = [*range(start), *range(len(computes) - end, len(computes))]
    compute = math.fsum(computes) - math.fsum(computes[index] for index in left_out)
    outside = math.fsum(stalls[index] + computes[index] for index in left_out) + (row["checkpoint_seconds"] or 0.0)
    counted = row["epoch_seconds"] - outside
    return 100 * max(0.0, compute) / counted if counted > 0 else None


def metric_json(point: PointMetrics, au_goal: float | None) -> JsonObject:
    """DLIO's names, one value per epoch where it has a list; `train_au_goal_percentage`, `train_io_MB_per_second` and `per_epoch` are ours."""
    known = point.au
    samples = [epoch.samples_per_second for epoch in point.epochs]
    moved = [epoch.mb_per_second for epoch in point.epochs]
    return {
        "train_au_percentage": [epoch.au for epoch in point.epochs],
        "train_au_mean_percentage": statistics.fmean(known) if known else None,
        "train_au_stdev_percentage": _stdev(known),
        "train_au_goal_percentage": None if au_goal is None else 100 * au_goal,
        "train_au_meet_expectation": _verdict(known, au_goal),
        "train_throughput_samples_per_second": samples,
        "train_throughput_mean_samples_per_second": statistics.fmean(samples),
        "train_throughput_stdev_samples_per_second": _stdev(samples),
        "train_io_MB_per_second": moved,
        "train_io_mean_MB_per_second": statistics.fmean(moved),
        "train_io_stdev_MB_per_second": _stdev(moved),
        "per_epoch": [_epoch_json(epoch) for epoch in point.epochs],
    }


def _epoch_json(epoch: EpochMetrics) -> JsonObject:
    """What the sums and means above hide: the spread over ranks, and the slowest of them."""
    slowest = epoch.slowest
    return {
        "repetition": epoch.repetition,
        "epoch": epoch.epoch,
        "seconds": slowest.seconds,
        "bytes_read": sum(rank.bytes_read for rank in epoch.ranks),
        "samples": sum(rank.samples for rank in epoch.ranks),
        "over_ranks": {
            "au_percentage": _spread([rank.au for rank in epoch.ranks]),
            "whole_epoch_au_percentage": _spread([rank.whole_au for rank in epoch.ranks]),
            "samples_per_second": _spread([rank.samples_per_second for rank in epoch.ranks]),
            "io_MB_per_second": _spread([rank.mb_per_second for rank in epoch.ranks]),
        },
        "slowest_rank": {
            "rank": slowest.rank,
            "au_percentage": slowest.au,
            "whole_epoch_au_percentage": slowest.whole_au,
            "samples_per_second": slowest.samples_per_second,
            "io_MB_per_second": slowest.mb_per_second,
        },
    }


def _spread(values: Sequence[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"mean": statistics.fmean(known), "stdev": statistics.pstdev(known), "min": min(known), "max": max(known)}


def metric_lines(point: PointMetrics, accelerators: int, au_goal: float | None) -> list[str]:
    """As DLIO prints them, mean and standard deviation over epochs; those of the slowest rank are ours."""
    rule = "=" * 58
    label = "Training Accelerator Utilization [AU]"
    lines = [
        rule,
        f"Number of Simulated Accelerators: {accelerators}",
        _line(f"{label} (%)", point.au),
        _line(f"{label} of the slowest rank, whole epochs (%)", [epoch.slowest.whole_au for epoch in point.epochs]),
        _line("Training Throughput (samples/second)", [epoch.samples_per_second for epoch in point.epochs]),
        _line("Training I/O Throughput (MB/second)", [epoch.mb_per_second for epoch in point.epochs]),
    ]
    if au_goal is not None and (verdict := _verdict(point.au, au_goal)):
        met = "met" if verdict == "success" else "missed"
        lines += [f"train_au_meet_expectation: {verdict}", f"goal of AU, {100 * au_goal:g} %: {met}"]
    return [f"[METRIC] {line}" for line in (*lines, rule)]


def _line(label: str, values: Sequence[float]) -> str:
    if not values:
        return f"{label}: unknown (no counted step)"
    return f"{label}: {statistics.fmean(values):.4f} ({_stdev(values):.4f})"


def _verdict(au: Sequence[float], goal: float | None) -> str | None:
    """In DLIO's words; None: nobody gave a goal, or nothing is known."""
    if not au or goal is None:
        return None
    return "success" if statistics.fmean(au) >= 100 * goal else "fail"


def _stdev(values: Sequence[float]) -> float:
    return statistics.pstdev(values) if values else 0.0


def _over(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > _TICK else 0.0
