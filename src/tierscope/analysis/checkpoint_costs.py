"""What checkpoints cost, and how often they are worth it: seconds standing still, bandwidth, and goodput against the interval between two of them.

METHOD. Of a point of the sweep: d, the seconds that training stands still for a checkpoint; t, the seconds of training between two; R, those until training goes on
after a failure: reading the last checkpoint back, and what was done since its snapshot was taken, where it is written behind training. With failures that come independently
every M seconds on average, the share of the time that is training that stays done is (Daly 2006, equation 20)

    goodput(t) = t / (M · exp(R/M) · (exp((t + d)/M) − 1))

The best t is Daly's (equation 37): sqrt(2dM) · (1 + sqrt(d/2M)/3 + d/18M) − d for d < 2M, else M; Young's (1974) is its first factor. One behind training cannot be written more often
than it takes. All of it is estimated: from times that were measured or simulated, and a failure rate that somebody knows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.analysis.breakdown import Breakdown, SweepPoint
from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.spec import sweep
from tierscope.spec.study import Study
from tierscope.trace.description import CheckpointSummary

LITTLE = 0.05  # of the time: what training may stand still for, where a bandwidth is asked for
_LADDER = (0.25, 0.5, 1.0, 2.0, 4.0)  # intervals shown, beside the best one
_MOST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class SaveInterval:
    """Seconds of training between two checkpoints, and the share of the time that stays done."""

    seconds: float
    goodput: float


@dataclass(frozen=True, slots=True)
class CheckpointCosts:
    """Of one point of the sweep. `current` is how often they are written now, `best` how often they should be; None: no failure rate is given."""

    sweep: SweepValues
    tier: str
    background: bool
    bytes: int
    saves_per_epoch: float
    standstill_seconds: float  # for each
    epoch_standstill_seconds: float
    save_seconds: float | None  # until it is written
    interval_seconds: float  # of training between two
    restore_seconds: float | None
    needed_bandwidth: float  # bytes per second
    mean_time_between_failures: float | None
    current: SaveInterval | None
    best: SaveInterval | None
    ladder: tuple[SaveInterval, ...]

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second while one is written."""
        return self.bytes / self.save_seconds if self.save_seconds else None


def checkpoint_costs(times: ClassTimes, breakdown: Breakdown, study: Study | None) -> list[CheckpointCosts]:
    """Of every point that wrote any."""
    return list(_costs(times, breakdown, study)) if study is not None else []


def _costs(times: ClassTimes, breakdown: Breakdown, study: Study) -> Iterator[CheckpointCosts]:
    studies = {_key(point.sweep): point.study for point in sweep.points(study)}
    written = {_key(run.about.sweep): run.about.checkpoint for run in times.runs if run.about.checkpoint}
    for point in breakdown.summary:
        about, here = written.get(_key(point.sweep)), studies.get(_key(point.sweep))
        if about is not None and about.count and here is not None and point.epoch_seconds:
            yield _of_point(point, about, here, point.epoch_seconds)


def _key(values: SweepValues) -> str:
    return repr(sorted(values.items()))


def _of_point(point: SweepPoint, about: CheckpointSummary, study: Study, epoch: float) -> CheckpointCosts:
    wanted = study.workload.checkpoint
    saves = (about.count or 0) / study.workload.train.epochs
    stood = point.checkpoint_seconds or 0.0
    interval, per_save, nbytes = max(0.0, epoch - stood) / saves, stood / saves, about.bytes or 0
    failures = wanted.mean_time_between_failures
    behind = (about.seconds_median or 0.0) if wanted.background else 0.0
    lost = (about.recovery_seconds or 0.0) + behind
    best = None if failures is None else _best(per_save, failures, behind)
    steps = () if best is None else tuple(best * factor for factor in _LADDER)
    return CheckpointCosts(
        sweep=point.sweep,
        tier=about.tier,
        background=wanted.background,
        bytes=nbytes,
        saves_per_epoch=saves,
        standstill_seconds=per_save,
        epoch_standstill_seconds=stood,
        save_seconds=about.seconds_median,
        interval_seconds=interval,
        restore_seconds=about.recovery_seconds,
        needed_bandwidth=_needed(nbytes, interval, wanted.background),
        mean_time_between_failures=failures,
        current=None if failures is None else _interval(interval, per_save, failures, lost),
        best=None if failures is None or best is None else _interval(best, per_save, failures, lost),
        ladder=tuple(_interval(seconds, per_save, failures, lost) for seconds in steps if failures is not None),
    )


def _needed(nbytes: int, interval: float, background: bool) -> float:
    """Behind training: so that one is written before the next; else so that training stands still for little of the time."""
    room = interval if background else interval * LITTLE / (1 - LITTLE)
    return nbytes / room if room else 0.0


def goodput(interval: float, standstill: float, failures: float, lost: float) -> float:
    """The share of the time that is training that stays done; see above."""
    exponent, restart = (interval + standstill) / failures, lost / failures
    if interval <= 0 or exponent + restart > _MOST_EXPONENT:
        return 0.0
    return interval / (failures * math.exp(restart) * math.expm1(exponent))


def best_interval(standstill: float, failures: float) -> float:
    """Seconds of training between two, by Daly."""
    if standstill >= 2 * failures:
        return failures
    part = standstill / (2 * failures)
    return math.sqrt(2 * standstill * failures) * (1 + math.sqrt(part) / 3 + part / 9) - standstill


def _best(standstill: float, failures: float, least: float) -> float:
    return max(best_interval(standstill, failures), least, 1e-9)


def _interval(seconds: float, standstill: float, failures: float, lost: float) -> SaveInterval:
    return SaveInterval(seconds, goodput(seconds, standstill, failures, lost))


def costs_json(costs: CheckpointCosts) -> JsonObject:
    def plain(interval: SaveInterval | None) -> JsonObject | None:
        return None if interval is None else {"seconds": interval.seconds, "goodput": interval.goodput}

    return {
        "sweep": costs.sweep,
        "tier": costs.tier,
        "background": costs.background,
        "bytes": costs.bytes,
        "saves_per_epoch": costs.saves_per_epoch,
        "standstill_seconds": costs.standstill_seconds,
        "epoch_standstill_seconds": costs.epoch_standstill_seconds,
        "save_seconds": costs.save_seconds,
        "interval_seconds": costs.interval_seconds,
        "restore_seconds": costs.restore_seconds,
        "bytes_per_second": costs.bandwidth,
        "needed_bytes_per_second": costs.needed_bandwidth,
        "mean_time_between_failures": costs.mean_time_between_failures,
        "current": plain(costs.current),
        "best": plain(costs.best),
        "intervals": [plain(interval) for interval in costs.ladder],
    }
