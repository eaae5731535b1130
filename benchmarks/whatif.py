"""The goal grid at the size of the Hierarchy study: only processes on the hull against all of them, and the page of such a result.

The class times are drawn at random in the shape of that study (every process reads 192 files, devices differ by 15 %): made up, for speed only.
"""

import time
from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.common import Result, interleaved, ratio, spread
from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.predict.explore import explore
from tierscope.predict.processes import Processes, factor
from tierscope.spec.goal import Goal

CLASSES = ("GFS-READ", "GFS-META", "LFS-READ", "LFS-META")
RANKS, FILES, RATES, EPOCHS = 3072, 192, 21, (1, 2, 3)
RANKS_PER_DEVICE = 64
GRID = tuple(float(value) for value in np.linspace(0, 199, 200))
GOAL_SECONDS = 4.0
VARY = {"GFS-META": GRID, "LFS-READ": GRID}


def whatif() -> Iterator[Result]:
    times = made_up_times()
    chosen: dict[str, npt.NDArray[np.intp]] = {}

    def hull() -> float:
        start = time.monotonic()
        chosen["hull"] = explore(Processes.of(times), GOAL_SECONDS, VARY).chosen
        return time.monotonic() - start

    def plain() -> float:
        start = time.monotonic()
        chosen["plain"] = every_process(Processes.of(times))
        return time.monotonic() - start

    seconds = interleaved({"hull": hull, "plain": plain}, 3)
    if not np.array_equal(chosen["hull"], chosen["plain"]):
        raise AssertionError("the hull gives another grid than all processes")
    ours = spread(f"goal grid, {RATES} rates × {RANKS} processes × {len(GRID)}²", seconds["hull"], "s")
    yield Result(ours.name, ours.value, "s", ours.low, ours.high, ours.n, "≤ 1 s", ours.value <= 1.0)
    yield spread("the same over all processes (the bound: NumPy's matmul)", seconds["plain"], "s")
    yield ratio("all processes / hull", seconds["plain"], seconds["hull"])
    yield from report_page(times)


def report_page(times: ClassTimes) -> Iterator[Result]:
    from tierscope.commands.report import source_of  # noqa: PLC0415
    from tierscope.report.figures import figures  # noqa: PLC0415
    from tierscope.report.page import page  # noqa: PLC0415

    analysis = Analysis("bench", times, break_down(times), [], Conditions(), Goal.of(GOAL_SECONDS))
    start = time.monotonic()
    source = source_of(analysis, None, {})
    content = page(source, figures(source))
    seconds = time.monotonic() - start
    yield spread("page and figures of that result", [seconds], "s")
    size = len(content) / 1e6
    yield Result("its size", size, "MB", size, size, 1, "≤ 3 MB", size <= 3.0)


def every_process(processes: Processes) -> npt.NDArray[np.intp]:
    """The plain way: every combination looks at every process."""
    grid = np.array([(1.0, factor(this), factor(other)) for this, other in product(GRID, GRID)])
    columns = [processes.classes.index(name) for name in VARY]
    others = [column for column in range(len(processes.classes)) if column not in columns]
    chosen = np.full(len(grid), -1)
    for index, point in enumerate(processes.points):
        maxima = []
        for epoch in point.epochs:
            times = np.column_stack([epoch.seconds[:, others].sum(axis=1), epoch.seconds[:, columns]])
            maxima.append(np.concatenate([(times @ part.T).max(axis=0) for part in np.array_split(grid, 100)]))
        chosen[(chosen < 0) & (np.median(maxima, axis=0) <= GOAL_SECONDS)] = index
    return chosen


def made_up_times() -> ClassTimes:
    dice = np.random.default_rng(1)
    device = np.repeat(dice.normal(1, 0.15, RANKS // RANKS_PER_DEVICE), RANKS_PER_DEVICE)
    parts = []
    for rate, epoch in product(np.linspace(0, 1, RATES), EPOCHS):
        local = dice.binomial(FILES, rate, RANKS)
        remote = FILES - local
        seconds = np.stack(
            [
                remote * 0.004 * dice.normal(1, 0.05, RANKS),
                remote * 0.05 * dice.normal(1, 0.03, RANKS),
                local * 0.04 * device * dice.normal(1, 0.02, RANKS),
                local * 0.0005 * dice.normal(1, 0.1, RANKS),
            ]
        ).clip(0)
        ops = np.stack([remote, 2 * remote, local, 2 * local])
        parts.append(
            pl.DataFrame(
                {
                    "cache_rate": np.full(4 * RANKS, round(rate, 2)),
                    "repetition": np.full(4 * RANKS, 1),
                    "epoch": np.full(4 * RANKS, epoch),
                    "node": np.tile(np.arange(RANKS) // 4, 4),
                    "rank": np.tile(np.arange(RANKS), 4),
                    "class": np.repeat(CLASSES, RANKS).tolist(),
                    "seconds": seconds.ravel(),
                    "ops": ops.ravel(),
                    "bytes": (ops * np.array([[131072], [0], [131072], [0]])).ravel(),
                }
            )
        )
    return ClassTimes(pl.concat(parts), pl.DataFrame(), ("cache_rate",), CLASSES, "busy")
