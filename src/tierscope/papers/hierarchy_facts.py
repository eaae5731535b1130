"""What the Hierarchy study states of small files on 60 OSTs, read off a simulated sweep of the second epoch. Estimates are by its own simple scaling."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tierscope.papers.hierarchy_sweeps import CLASSES, EPOCH, FloatArray, Times, slowest
from tierscope.predict.processes import PointTimes, Processes, ProcessTimes

LFS_READ, GFS_META = CLASSES.index("LFS-READ"), CLASSES.index("GFS-META")
STEP = 0.05  # of the study's sweep

# Fukai, Sato, Hirofuchi, PDCAT 2022: small files on 60 OSTs
BEST, HAND_OVER, SHARED_AT = 0.65, 0.6, 0.6
BETTER = 50.0  # percent, of one class
BEST_WITH_META, GAIN_WITH_META = 0.6, -12.8
BEST_WITH_READ, GAIN_WITH_READ = 0.65, -24.0
GOAL_SECONDS, GOAL_META, GOAL_READ = 4.0, 140.0, 120.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the study states of its first case, of a simulated sweep. Gains are percent of the best I/O time."""

    best: float
    best_seconds: float
    hand_over: float  # from here on LFS-READ is the largest class
    meta_before: bool  # and before it is GFS-META everywhere
    shared: float  # the lesser one's share of the slowest process at SHARED_AT
    best_with_meta: float
    gain_with_meta: float
    best_with_read: float
    gain_with_read: float
    goal_seconds: float  # at BEST, with both improved
    least_read: float  # improvement in percent that reaches the goal there, with GOAL_META


def processes_of(times: Mapping[float, FloatArray]) -> Processes:
    """A simulated epoch as the estimates take it; they need no counts of operations here."""
    unknown = np.full(len(CLASSES), np.nan)
    return Processes(
        CLASSES,
        tuple(
            PointTimes(
                {"cache_rate": rate}, (ProcessTimes(1, EPOCH, np.arange(len(seconds)), seconds, unknown, unknown),)
            )
            for rate, seconds in sorted(times.items())
        ),
    )


def facts(times: Times) -> Facts:
    rates = sorted(times)
    largest = [int(slowest(times[rate]).argmax()) for rate in rates]
    before = max((place + 1 for place, name in enumerate(largest) if name != LFS_READ), default=0)
    plain, with_meta, with_read, with_both = published_estimates(times).T
    best = plain.min()
    at_shared = slowest(times[SHARED_AT])
    return Facts(
        best=rates[int(plain.argmin())],
        best_seconds=float(best),
        hand_over=rates[before] if before < len(rates) else 1.0,
        meta_before=all(name == GFS_META for name in largest[:before]),
        shared=float(min(at_shared[LFS_READ], at_shared[GFS_META]) / at_shared.sum()),
        best_with_meta=rates[int(with_meta.argmin())],
        gain_with_meta=float(100 * (with_meta.min() / best - 1)),
        best_with_read=rates[int(with_read.argmin())],
        gain_with_read=float(100 * (with_read.min() / best - 1)),
        goal_seconds=float(with_both[rates.index(BEST)]),
        least_read=least_read(times[BEST], GOAL_META),
    )


def published_estimates(times: Times) -> FloatArray:
    """By (rate, case): as it is, GFS-META better, LFS-READ better, both as the goal needs."""
    processes = processes_of(times)
    cases: tuple[Mapping[str, float], ...] = (
        {},
        {"GFS-META": BETTER},
        {"LFS-READ": BETTER},
        {"GFS-META": GOAL_META, "LFS-READ": GOAL_READ},
    )
    return processes.io_seconds(np.array([processes.factors(case) for case in cases]))


def least_read(seconds: FloatArray, meta_percent: float) -> float:
    """Percent by which LFS-READ must improve for all processes to reach the goal; inf: it cannot do it alone."""
    return _least(seconds, LFS_READ, GFS_META, meta_percent)


def least_meta(seconds: FloatArray, read_percent: float) -> float:
    """The same of GFS-META, with LFS-READ improved by so many percent."""
    return _least(seconds, GFS_META, LFS_READ, read_percent)


def _least(seconds: FloatArray, wanted: int, other: int, other_percent: float) -> float:
    others = seconds.sum(axis=1) - seconds[:, wanted] - seconds[:, other] * (1 - 100 / (100 + other_percent))
    if (others >= GOAL_SECONDS).any():
        return float("inf")
    return float(max(0.0, 100 * ((seconds[:, wanted] / (GOAL_SECONDS - others)).max() - 1)))
