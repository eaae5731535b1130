"""What a simulated exploration finds: combinations of a study's keys, and those that meet a goal."""

from dataclasses import dataclass
from typing import Any

from tierscope.jsonable import SweepValues
from tierscope.spec.goal import AU, EPOCH, IO, Goal


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
    au: float | None = None  # accelerator utilisation, a share of 1: the mean over ranks; None: there is no compute

    def value(self, kind: str) -> float:
        """What a goal of this kind is about."""
        return {IO: self.io_seconds, EPOCH: self.epoch_seconds, AU: self.au or 0.0}[kind]

    def shortfall(self, goal: Goal) -> float:
        """The less, the nearer to the goal, or the further beyond it."""
        return -self.value(AU) if goal.kind == AU else self.value(goal.kind)


@dataclass(frozen=True, slots=True)
class SimulatedExploration:
    goal: Goal
    method: str
    vary: dict[str, tuple[Any, ...]]
    combinations: tuple[Combination, ...]
    pareto: tuple[Combination, ...]  # that meet the goal and that no other beats in every respect, cheapest first
