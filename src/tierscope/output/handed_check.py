"""What ranks that were handed over may hold, before a table is made of them: shapes, counts and seconds. The table is then checked as any other."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tierscope.trace.limits import LARGEST, MOST_COUNTED, MOST_SECONDS
from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.rank_trace import MAX_STEPS, RankTrace
from tierscope.trace.recorder import LaneTable

_MAY_BE_NONE = ("first_loss", "last_loss")  # finite: a loss that is not is news
_SMALL = ("rank", "node", "epoch", "lane")  # 32 bits in the table
_CELLS = ("ops", "nbytes", "busy_ns", "wall_ns")
_MOST_TEXT = 256


def check_ranks(ranks: Sequence[RankTrace]) -> None:
    """ValueError names the first thing that cannot be."""
    for place, value in _numbers(ranks, "ranks"):
        name = place.rpartition(".")[2]
        if isinstance(value, str):
            if len(value) > _MOST_TEXT or not value.isprintable():
                raise ValueError(f"{place} is an invalid text")
        elif name not in _MAY_BE_NONE and not _possible(name, value):
            raise ValueError(f"{place} = {value!r:.40} is invalid")
    if len({rank.rank for rank in ranks}) < len(ranks):
        raise ValueError("ranks contains a rank twice")
    for rank in ranks:
        for epoch in rank.epochs:
            _check_steps(epoch.steps, epoch.steps_per_entry)
            for lane in epoch.lanes:
                _check_lane(lane)


def _possible(name: str, value: float) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and 0 <= value <= MOST_SECONDS
    return 0 <= value <= (LARGEST if name in _SMALL else MOST_COUNTED)


def _numbers(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every number and text in a tree of dataclasses, with where it is."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{place}[{index}]")
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield place, value


def _check_steps(steps: np.ndarray[Any, Any], per_entry: int) -> None:
    if steps.dtype != np.float64 or steps.ndim != 2 or steps.shape[1] != 3 or len(steps) > MAX_STEPS:
        raise ValueError("steps must be up to 512 rows of three numbers")
    if not (np.isfinite(steps).all() and (steps >= 0).all() and (steps <= MOST_SECONDS).all()) or per_entry < 1:
        raise ValueError("steps contains an invalid time")


def _check_lane(lane: LaneTable) -> None:
    cells = len(lane.ops) if lane.ops.ndim == 1 else 0
    shapes = {**dict.fromkeys(_CELLS, cells), "sizes": cells * BINS, "latencies": cells * BINS}
    if not cells or cells % len(KINDS):
        raise ValueError("a lane has a wrong number of kinds")
    for name, length in shapes.items():
        counts = getattr(lane, name)
        if counts.dtype != np.int64 or counts.shape != (length,):
            raise ValueError(f"{name} of a lane must be {length} whole numbers")
        if (counts < 0).any() or (counts > MOST_COUNTED).any():
            raise ValueError(f"{name} of a lane contains an invalid number")
