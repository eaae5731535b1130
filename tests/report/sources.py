"""What a page or a figure is made of, from times that are made by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.traces import CLASSES, times_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes, from_csv
from tierscope.predict.by_group import estimate_groups
from tierscope.predict.explore import explore
from tierscope.predict.processes import Processes
from tierscope.report.report_source import ReportPart, ReportSource

GRID = tuple(float(percent) for percent in range(0, 201, 10))


def source_of(
    times: ClassTimes, goal: float | None = None, improve: Mapping[str, float] | None = None, **changes: Any
) -> ReportSource:
    breakdown, processes = break_down(times), Processes.of(times)
    vary = dict.fromkeys(processes.classes[1:3] or processes.classes, GRID)

    estimated = estimate_groups(times, breakdown, improve or {})
    parts = []
    for name, one in zip(estimated.names, estimated.parts, strict=True):
        group = processes.in_group_of(one.before.best.sweep)
        exploration = explore(group, goal or 0.8 * one.before.best.io.median, vary)
        parts.append(ReportPart(name, one.before, group, one, exploration))
    plain: dict[str, Any] = {
        "name": "test",
        "times": times,
        "breakdown": breakdown,
        "findings": [],
        "conditions": Conditions(),
        "processes": processes,
        "parts": tuple(parts),
        "improvements_given": bool(improve),
        "goal_given": goal is not None,
        "workload": "",
        "study_yaml": None,
    }
    return ReportSource(**{**plain, **changes})


def rows_at(sweep: dict[str, Any], far: float, near: float, ranks: int = 3) -> list[dict[str, Any]]:
    """GFS-META takes `far` seconds and LFS-READ `near` ones in the slowest process."""
    seconds = dict(zip(CLASSES, (0.1, far, near, 0.01), strict=True))
    return [
        {
            **sweep,
            "rank": rank,
            "epoch": epoch,
            "class": name,
            "seconds": value * (1 - 0.1 * rank),
            "ops": 10,
            "bytes": 1,
        }
        for rank in range(ranks)
        for epoch in (1, 2, 3)
        for name, value in seconds.items()
    ]


def swept() -> ClassTimes:
    places = {0.0: (4.0, 0.5), 0.5: (2.0, 1.0), 1.0: (0.5, 3.0)}
    rows = [row for rate, (far, near) in places.items() for row in rows_at({"cache_rate": rate}, far, near)]
    return times_of(rows, ["cache_rate"])


def alone() -> ClassTimes:
    return times_of(rows_at({}, 2.0, 1.0), [])


def random_times(path: Path, rates: int, ranks: int, epochs: int) -> ClassTimes:
    dice = np.random.default_rng(3)
    parts: list[pl.DataFrame] = []
    for rate in np.linspace(0, 1, rates):
        for epoch in range(1, epochs + 1):
            times = dice.gamma(40, 0.1, (ranks, 4)) * (1 - rate, 1 - rate, rate, rate)
            columns = {
                "rank": np.repeat(np.arange(ranks), len(CLASSES)),
                "epoch": np.full(times.size, epoch),
                "class": list(CLASSES) * ranks,
                "seconds": times.ravel(),
                "cache_rate": np.full(times.size, rate),
            }
            parts.append(pl.DataFrame(columns))
    pl.concat(parts).write_csv(path)
    return from_csv(str(path))
