"""The most that every class was ever seen to serve, and when an estimate asks for more.

METHOD: the simple scaling is too optimistic when an improvement hands the load to another class. The tell-tale is that a class which was not
improved would have to serve more operations or bytes per second than it ever did in the sweep. A rate is that of all processes
together, over the I/O time of the slowest. Assumption: a class serves no more than it was seen to. One that took little of the time when it
served most had room to spare, and may well serve more: its warning is milder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.wording import Finding
from tierscope.predict.processes import PointTimes, Processes

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
    found = []
    for column, name in enumerate(processes.classes):
        for kind in ("ops", "bytes"):
            rates = list(_rates(processes, column, kind))
            if rates:
                per_second, where, share = max(rates, key=lambda rate: rate[0])
                seconds = tuple(_served(point, column, kind) / per_second for point in processes.points)
                found.append(Ceiling(name, kind, per_second, where, share, seconds))
    return found


def unknown_classes(processes: Processes) -> list[str]:
    """Classes of which, somewhere, neither operations nor bytes are known."""
    epochs = [times for point in processes.points for times in point.epochs]
    missing = np.any([np.isnan(times.ops) & np.isnan(times.moved_bytes) for times in epochs], axis=0)
    return [name for name, unknown in zip(processes.classes, missing, strict=True) if unknown]


def _rates(processes: Processes, column: int, kind: str) -> Iterator[tuple[float, str, float]]:
    for point in processes.points:
        for times in point.epochs:
            sums = times.seconds.sum(axis=1)
            slowest = int(sums.argmax())
            amount = float(times.served(kind)[column])
            if amount > 0 and sums[slowest] > 0:  # neither nothing nor nan
                share = float(times.seconds[slowest, column] / sums[slowest])
                yield amount / float(sums[slowest]), sweep_text(point.sweep), share


def _served(point: PointTimes, column: int, kind: str) -> float:
    return float(np.median([times.served(kind)[column] for times in point.epochs]))


def exceeded(
    found: list[Ceiling], point: int, io_seconds: float, improvements: Mapping[str, float]
) -> Iterator[Finding]:
    """Classes that were not improved, and would have to serve more than they ever did for this estimate to be true.

    Of a class's operations and bytes, the one that would take longer. Classes that were busy come first.
    """
    worst: dict[str, Ceiling] = {}
    for ceiling in found if io_seconds > 0 else ():
        least = (
            worst[ceiling.class_name].seconds[point] if ceiling.class_name in worst else io_seconds * (1 + _ROUNDING)
        )
        if improvements.get(ceiling.class_name, 0.0) <= 0 and ceiling.seconds[point] > least:
            worst[ceiling.class_name] = ceiling
    for ceiling in sorted(worst.values(), key=lambda ceiling: ceiling.share < BUSY_SHARE):
        idle = "idle_" if ceiling.share < BUSY_SHARE else ""
        evidence = {
            "class": ceiling.class_name,
            "times": ceiling.seconds[point] / io_seconds,
            "most_per_second": ceiling.per_second,
            "where": ceiling.where,
            "percent": 100 * ceiling.share,
            "implied_seconds": ceiling.seconds[point],
        }
        yield Finding(f"{idle}beyond_{ceiling.kind}", evidence)
