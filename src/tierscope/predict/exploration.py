"""What a simulated exploration finds: combinations of a study's keys, and those that meet a goal."""

from dataclasses import dataclass
from typing import Any

from tierscope.jsonable import SweepValues


@dataclass(frozen=True, slots=True)
class Combination:
    """The smallest cache rate that meets the goal with these settings, or the best that there is."""

    settings: SweepValues  # by short name
    cache_rate: float
    io_seconds: float
    low_seconds: float
    high_seconds: float
    bottleneck: str
    epoch_seconds: float
    met: bool
    cost: float | None = None
    staging_seconds: float | None = None  # to put the files there before training; None: not known
    break_even_epochs: int | None = None  # after which that has paid; None: never, or not known
    compared: bool = False  # with none of its files there, so that None means never


@dataclass(frozen=True, slots=True)
class SimulatedExploration:
    goal_seconds: float
    method: str
    vary: dict[str, tuple[Any, ...]]
    combinations: tuple[Combination, ...]
    pareto: tuple[Combination, ...]  # that meet the goal and that no other beats in every respect, cheapest first
