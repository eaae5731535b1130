"""The most that every class was ever seen to serve, and when an estimate asks for more.

METHOD: the simple scaling is too optimistic when an improvement hands the load to another class. The tell-tale is that a class which was not
improved would have to serve more operations or bytes per second than it ever did in the sweep; one that was improved by N %, more than N % beyond that. A rate is that of all processes
together, over the I/O time of the slowest. Assumption: a class serves no more than it was seen to. One that took little of the time when it
served most had room to spare, and may well serve more: its warning is milder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.cases import case_of
from tierscope.analysis.wording import Finding
from tierscope.predict.processes import PointTimes, Processes, factor

_ROUNDING = 1e-9
BUSY_SHARE = 0.25  # of the slowest process's time


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Of one class: `kind` is ops or bytes; `share` is the class's part of the slowest process's time at that place."""

    class_name: str
    kind: str
    per_second: float
    where: str
    share: float
    seconds: tuple[float, ...]  # at each point: how long it takes to serve what is served there, at this rate


def ceilings(processes: Processes) -> list[Ceiling]:
    """Of every class of which operations or bytes are known."""
    listed = []
    for column, name in enumerate(processes.classes):
        for kind in ("ops", "bytes"):
            rates = list(_rates(processes, column, kind))
            if rates:
                per_second, at, share = max(rates, key=lambda rate: rate[0])
                seconds = tuple(_served(point, column, kind) / per_second for point in processes.points)
                listed.append(Ceiling(name, kind, per_second, sweep_text(at.sweep), share, seconds))
    return listed


class KnownCeilings:
    """Those of each case of one result, found once however many groups of points it has. Processes are those of `Processes.in_group_of`, which have all points of a case."""

    def __init__(self) -> None:
        self._by_case: dict[str | None, list[Ceiling]] = {}

    def of(self, processes: Processes) -> list[Ceiling]:
        """None where a single point would be compared with itself."""
        if len(processes.points) < 2:
            return []
        case = case_of(processes.points[0].sweep)
        if case not in self._by_case:
            self._by_case[case] = ceilings(processes)
        return self._by_case[case]


def unknown_classes(processes: Processes) -> list[str]:
    """Classes of which, somewhere, neither operations nor bytes are known."""
    epochs = [times for point in processes.points for times in point.epochs]
    missing = np.any([np.isnan(times.ops) & np.isnan(times.moved_bytes) for times in epochs], axis=0)
    return [name for name, unknown in zip(processes.classes, missing, strict=True) if unknown]


def _rates(processes: Processes, column: int, kind: str) -> Iterator[tuple[float, PointTimes, float]]:
    for point in processes.points:
        for times in point.epochs:
            sums = times.seconds.sum(axis=1)
            slowest = int(sums.argmax())
            amount = float(times.served(kind)[column])
            if amount > 0 and sums[slowest] > 0:  # neither nothing nor nan
                share = float(times.seconds[slowest, column] / sums[slowest])
                yield amount / float(sums[slowest]), point, share


def _served(point: PointTimes, column: int, kind: str) -> float:
    return float(np.median([times.served(kind)[column] for times in point.epochs]))


def exceeded(
    listed: list[Ceiling], point: int, io_seconds: float, improvements: Mapping[str, float]
) -> Iterator[Finding]:
    """Classes that would have to serve more than they ever did, and more than their improvement gives, for this estimate to be true.

    Of a class's operations and bytes, the one that would take longer. Classes that were busy come first.
    """
    worst: dict[str, tuple[float, Ceiling]] = {}
    for ceiling in listed if io_seconds > 0 else ():
        seconds = ceiling.seconds[point] * factor(improvements.get(ceiling.class_name, 0.0))
        if seconds > worst.get(ceiling.class_name, (io_seconds * (1 + _ROUNDING), ceiling))[0]:
            worst[ceiling.class_name] = seconds, ceiling
    for seconds, ceiling in sorted(worst.values(), key=lambda pair: pair[1].share < BUSY_SHARE):
        idle = "idle_" if ceiling.share < BUSY_SHARE else ""
        evidence = {
            "class": ceiling.class_name,
            "times": seconds / io_seconds,
            "most_per_second": ceiling.per_second / factor(improvements.get(ceiling.class_name, 0.0)),
            "where": ceiling.where,
            "percent": 100 * ceiling.share,
            "implied_seconds": seconds,
        }
        yield Finding(f"{idle}beyond_{ceiling.kind}", evidence)
