"""Class times for estimates: by hand, and at random such that sums are exact."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.traces import WITH_WRITES, times_of
from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.times import ClassTimes
from tierscope.predict.whatif import WARNINGS

# Of findings, those that are about an estimate: their cases are here, all others are the analysis's.
KINDS_OF_ESTIMATES = set(WARNINGS)

EXACT_PERCENTS = (-75.0, -50.0, 0.0, 100.0, 300.0, 700.0)  # times are multiplied by a power of two

Cell = float | tuple[float, int | None, int | None]  # seconds, or seconds with operations and bytes
Process = Mapping[str, Cell]


def measured(points: Mapping[float, Sequence[Process]]) -> ClassTimes:
    """Cache rate → what each rank did, in an only epoch."""
    rows = [
        _row(rank, name, cell, cache_rate=rate)
        for rate, ranks in points.items()
        for rank, classes in enumerate(ranks)
        for name, cell in classes.items()
    ]
    return times_of(rows, ["cache_rate"])


def _row(rank: int, name: str, cell: Cell, **more: Any) -> dict[str, Any]:
    seconds, ops, nbytes = cell if isinstance(cell, tuple) else (cell, None, None)
    return {"rank": rank, "class": name, "seconds": seconds, "ops": ops, "bytes": nbytes, **more}


def io_seconds(breakdown: Breakdown) -> list[float]:
    return [point.io.median for point in breakdown.summary]


@st.composite
def tables(draw: st.DrawFn, most_points: int = 4, most_runs: int = 3, sweep: Sequence[str] | None = None) -> ClassTimes:
    """Some ranks in some epochs of some repetitions of a sweep. Not everybody has every class, and not every run every epoch.

    Seconds are whole numbers of 1/1024, so adding them up is exact, and so is multiplying them by powers of two.
    """
    generator = random.Random(draw(st.integers(0, 2**32)))
    keys = sweep if sweep is not None else draw(st.sampled_from([(), ("cache_rate",), ("threads", "cache_rate")]))
    rates, threads = draw(st.integers(1, most_points)), draw(st.integers(1, 2))
    values: dict[str, list[Any]] = {"cache_rate": [n / 4 for n in range(rates)], "threads": [None, 8][:threads]}
    points: list[dict[str, Any]] = [{}]
    for key in keys:
        points = [{**point, key: value} for point in points for value in values[key]]
    repetitions, epochs = draw(st.integers(1, most_runs)), draw(st.integers(1, 3))
    ranks, unknown = draw(st.integers(1, 5)), draw(st.sampled_from([0.0, 0.1, 1.0]))
    rows = []
    for point in points:
        runs = [(r, e) for r in range(1, repetitions + 1) for e in range(1, epochs + 1)]
        for repetition, epoch in generator.sample(runs, generator.randint(1, len(runs))):
            for rank in generator.sample(range(9), ranks):
                for name in generator.sample(WITH_WRITES, generator.randint(1, len(WITH_WRITES))):
                    known = generator.random() >= unknown
                    cell = (
                        generator.randrange(1, 5000) / 1024,
                        generator.randrange(200) if known else None,
                        generator.randrange(90_000) if known else None,
                    )
                    if "threads" in keys and name.endswith("READ"):  # else points would not read the same data
                        cell = (*cell[:2], 0 if known else None)
                    rows.append(_row(rank, name, cell, repetition=repetition, epoch=epoch, **point))
    generator.shuffle(rows)
    return times_of(rows, keys, WITH_WRITES)


def improvements(percents: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from(WITH_WRITES), percents)
