"""What a simulated exploration finds: combinations of a study's keys, and those that meet a goal."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tierscope.jsonable import SweepValues
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.goal import AU, EPOCH, IO, Goal
from tierscope.spec.study import Axis, Study


@dataclass(frozen=True, slots=True)
class Combination:
    """The smallest cache rate that fits and meets the goal with these settings, or the best that there is."""

    settings: SweepValues  # by short name
    cache_rate: float
    io_seconds: float
    low_seconds: float
    high_seconds: float
    bottleneck: str
    epoch_seconds: float
    met: bool
    cost: float | None = None  # of what has a price
    unpriced: tuple[str, ...] = ()  # paths of what it has more of, without a price
    lesser: tuple[str, ...] = ()  # paths of what it has less of than the study, or worse
    increase: float = 0.0  # over the study's keys, in doublings of all of them together
    is_changed: bool = False  # it differs from the study in more than how much is cached
    staging_seconds: float | None = None  # to put the files there before training; None: not known
    break_even_epochs: int | None = None  # after which that has paid; None: never, or not known
    compared: bool = False  # with none of its files there, so that None means never
    au: float | None = None  # accelerator utilisation, a share of 1: the mean over ranks; None: there is no compute
    read_bytes: float | None = None  # of the samples that all ranks get in an epoch
    epoch_low: float = 0.0
    epoch_high: float = 0.0
    feasibility: Feasibility = Feasibility()
    study: Study | None = field(default=None, repr=False, compare=False)  # that was simulated
    unidentified: tuple[
        str, ...
    ] = ()  # why the calibration says nothing of it: then low and high are bounds, and the rest a guess between them

    def judged(self, goal: Goal) -> "Combination":
        """Whether it meets a goal; what the calibration says nothing of, only if it does so at the bad end of its bounds."""
        return replace(self, met=not self.missing(goal, worst=bool(self.unidentified)))

    @property
    def is_recommended(self) -> bool:
        """It meets the goal, and nothing is known not to fit."""
        return self.met and self.feasibility.is_possible

    @property
    def price_rank(self) -> tuple[bool, float]:
        """Cheapest first; those with something that has no price last."""
        return bool(self.unpriced), self.cost or 0.0

    def costs_at_most(self, limit: float | None) -> bool:
        """What has no price for a part of it may cost anything."""
        return limit is None or (not self.unpriced and (self.cost or 0.0) <= limit)

    def value(self, kind: str) -> float:
        """What a goal of this kind is about."""
        return {IO: self.io_seconds, EPOCH: self.epoch_seconds, AU: self.au or 0.0}[kind]

    def shortfall(self, goal: Goal) -> float:
        """The less, the nearer to the goal, or the further beyond it."""
        return -self.value(AU) if goal.kind == AU else self.value(goal.kind)

    def interval(self, kind: str) -> tuple[float, float]:
        """90 % of what a goal of this kind is about."""
        if kind == IO:
            return self.low_seconds, self.high_seconds
        if kind == EPOCH:
            return self.epoch_low, self.epoch_high
        au = self.au or 0.0
        low, high = (self.epoch_seconds / seconds if seconds else 1.0 for seconds in (self.epoch_high, self.epoch_low))
        return au * min(1.0, low), min(1.0, au * max(1.0, high))

    def missing(self, goal: Goal, worst: bool = False) -> float:
        """By how much the goal is missed, in seconds or as a share; 0: it is met. `worst`: at the bad end of the interval."""
        low, high = self.interval(goal.kind)
        value = (low if goal.kind == AU else high) if worst else self.value(goal.kind)
        return 0.0 if goal.is_met(value) else abs(value - goal.value)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would fit where the best does not: simulated, and what it costs in randomness."""

    name: str
    settings: SweepValues  # by full path: what is other than in the study
    option: Combination
    mixed_share: float  # of the data: what one rank's samples are drawn from, over all epochs
    together: int = 1  # samples that always come one behind the other

    @property
    def randomness(self) -> str:
        """What of a global shuffle is lost; 'tierscope shuffling' shows what that does to accuracy."""
        if self.together > 1:
            return f"files are shuffled, but the {self.together:,} samples of a file stay together"
        if self.mixed_share >= 1:
            return "full randomness: every rank draws from all samples"
        return f"a rank sees only {100 * self.mixed_share:.3g} % of the samples"


@dataclass(frozen=True, slots=True)
class SimulatedExploration:
    goal: Goal
    method: str
    vary: dict[str, tuple[Any, ...]]
    combinations: tuple[Combination, ...]  # at their best cache rate, one for all settings
    pareto: tuple[
        Combination, ...
    ]  # that fit, meet the goal and that no other of their group beats in every respect, group by group (see `ranked_apart`), cheapest first
    swept: tuple[Axis, ...] = ()
    prices: Mapping[str, str] = field(default_factory=dict)  # by full path of a key, with their units
    max_price: float | None = None
    over_price: int = 0  # options that meet the goal and cost more, or have no price for a part
    short_of_room: bool = False  # something that was simulated does not fit
    remedies: tuple[Remedy, ...] = ()  # of groups in which nothing fits and meets the goal
