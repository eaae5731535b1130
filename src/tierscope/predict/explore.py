"""Which improvements meet a goal, at which smallest cache rate: the grid of the Hierarchy study's fourth figure.

Every combination is an estimate by the simple scaling (see `whatif` and, of epochs and AU, `goals`), so its warnings hold for each of them.
Points that read less data than others cannot be ranked against them, and points whose files do not fit are not recommended: both are left out.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tierscope.analysis.wording import Finding
from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.predict.ceilings import KnownCeilings, exceeded
from tierscope.predict.goals import Judge, told_kinds
from tierscope.predict.hull import Floats
from tierscope.predict.processes import PointTimes, Processes, factor
from tierscope.predict.whatif import untold
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.goal import AU, EPOCH, IO, Goal

MOST_COMBINATIONS = 1_000_000
MOST_TIMES = 30_000_000  # combinations × points: what is kept at once
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Prices:
    """Of one percent more of a class, and of one GiB on a tier of all nodes together. `held_bytes`: by point, then by tier."""

    percent: Mapping[str, float] = field(default_factory=dict)
    gib: Mapping[str, float] = field(default_factory=dict)
    held_bytes: Sequence[Mapping[str, int]] = ()

    def __bool__(self) -> bool:
        return bool(self.percent or self.gib)

    def cost(self, improve: Mapping[str, float], point: int) -> float:
        return self.room(point) + math.fsum(self.percent.get(name, 0.0) * percent for name, percent in improve.items())

    def room(self, point: int) -> float:
        return math.fsum(price * self.held_bytes[point][tier] / GIB for tier, price in self.gib.items())


@dataclass(frozen=True, slots=True)
class Option:
    """A combination that meets the goal, and that no other beats in every respect."""

    improve: dict[str, float]
    point: int
    sweep: SweepValues
    io_seconds: float
    cost: float | None
    warnings: tuple[Finding, ...]
    epoch_seconds: float | None = None  # estimated; None: not known
    au: float | None = None
    feasibility: Feasibility | None = None  # of its files; None: not known
    staging_seconds: float | None = None  # of its point, before the improvements; None: not known
    break_even_epochs: int | None = None


@dataclass(frozen=True, slots=True)
class Exploration:
    """`chosen[i]` is the point with the smallest cache rate that meets the goal with combination i, or −1; `io_seconds[i]` is the time
    there, or where the goal is missed by least, and `values[i]` what the goal is about: I/O or epoch seconds, or AU. Combinations are in the order of their
    product, the last class varying fastest."""

    goal: Goal
    vary: dict[str, tuple[float, ...]]
    fixed: dict[str, float]
    sweeps: tuple[SweepValues, ...]  # of the points, ordered by cache rate
    chosen: npt.NDArray[np.intp]
    io_seconds: Floats
    values: Floats
    options: tuple[Option, ...]  # the Pareto front, cheapest first
    met_without: int | None  # the point that meets the goal as it is
    warnings: tuple[Finding, ...] = ()  # about all of them

    @property
    def goal_seconds(self) -> float | None:
        """None: it is no time."""
        return self.goal.seconds

    @property
    def nearest(self) -> int:
        """The combination that misses the goal by least."""
        return int(self.values.argmax() if self.goal.kind == AU else self.values.argmin())

    def combination(self, index: int) -> dict[str, float]:
        places = np.unravel_index(index, [len(values) for values in self.vary.values()])
        return {name: values[place] for (name, values), place in zip(self.vary.items(), places, strict=True)}


def explore(
    processes: Processes,
    goal: Goal | float,
    vary: Mapping[str, tuple[float, ...]],
    fixed: Mapping[str, float] | None = None,
    prices: Prices | None = None,
    known: KnownCeilings | None = None,
) -> Exploration:
    """`goal`: a bare time is one of I/O. `vary`: the improvements to combine, ascending; `fixed`: those of other classes. All in percent. `known`: of other groups of the same result."""
    known = known or KnownCeilings()
    prices, goal, whole, processes = prices or Prices(), Goal.of(goal), processes, processes.comparable()
    fixed = {name: percent for name, percent in (fixed or {}).items() if name not in vary}
    grid = np.array(list(itertools.product(*([factor(value) for value in values] for values in vary.values()))))
    directions = np.column_stack([np.ones(len(grid)), grid])
    judge = Judge(processes, tuple(vary), fixed)
    values = [judge.values(goal.kind, point, directions) for point in processes.points]
    seconds = values if goal.kind == IO else [judge.values(IO, point, directions) for point in processes.points]
    rates = [_rate(point) for point in processes.points]
    as_it_is = Judge(processes, (), {})
    measured = [float(as_it_is.values(goal.kind, point, np.ones((1, 1)))[0]) for point in processes.points]
    met_without = next((index for index, value in enumerate(measured) if goal.is_met(value)), None)
    sweeps = tuple(point.sweep for point in processes.points)
    warnings = tuple(untold(whole, fixed | dict.fromkeys(vary, 1.0)))
    exploration = _exploration(goal, vary, fixed, sweeps, _choose(values, goal, rates), values, seconds)
    exploration = replace(exploration, met_without=met_without, warnings=warnings)
    if not prices.gib:
        return replace(exploration, options=tuple(_options(exploration, processes, (whole, known), rates, prices)))
    # Where more than the rate was swept, a larger one may take less room: what it costs decides then.
    rooms = [prices.room(index) for index in range(len(sweeps))]
    by_room = _exploration(goal, vary, fixed, sweeps, _choose(values, goal, rooms), values, seconds)
    return replace(exploration, options=tuple(_options(by_room, processes, (whole, known), rooms, prices)))


_Chosen = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def _exploration(
    goal: Goal,
    vary: Mapping[str, tuple[float, ...]],
    fixed: dict[str, float],
    sweeps: tuple[SweepValues, ...],
    picked: _Chosen,
    values: list[Floats],
    seconds: list[Floats],
) -> Exploration:
    chosen, shown = picked
    places = np.arange(len(shown))
    at, io = (np.array(some)[shown, places] for some in (values, seconds))
    return Exploration(goal, dict(vary), fixed, sweeps, chosen, io, at, (), None)


def _choose(values: list[Floats], goal: Goal, spent: list[float]) -> _Chosen:
    """For every combination the point that spends least of what meets the goal, or −1; and that point, or the one that misses it by least."""
    better = -1.0 if goal.kind == AU else 1.0
    enough = better * goal.enough
    chosen = np.full(len(values[0]), -1)
    shown = np.zeros(len(values[0]), dtype=np.intp)
    least = np.full(len(values[0]), np.inf)
    for index in sorted(range(len(values)), key=lambda index: spent[index]):
        here = better * values[index]
        meets = (chosen < 0) & (here <= enough)
        nearer = meets | ((chosen < 0) & (here < least))
        least, shown = np.where(nearer, here, least), np.where(nearer, index, shown)
        chosen[meets] = index
    return chosen, shown


def _rate(point: PointTimes) -> float:
    return cache_rate_of(point.sweep)


def _options(
    exploration: Exploration,
    processes: Processes,
    seen: tuple[Processes, KnownCeilings],
    spent: list[float],
    prices: Prices,
) -> list[Option]:
    """The Pareto front. More of a class never takes longer, so it is enough to look one step down along every class.

    `spent`: what a point costs beside the classes, its cache rate or its room.
    """
    shape = tuple(len(values) for values in exploration.vary.values())
    least = np.where(exploration.chosen < 0, np.inf, np.array(spent)[exploration.chosen]).reshape(shape)
    front = np.isfinite(least)
    for axis in range(len(shape)):
        with_less = np.full_like(least, np.inf)
        here, below = ([slice(None)] * len(shape) for _ in range(2))
        here[axis], below[axis] = slice(1, None), slice(None, -1)
        with_less[tuple(here)] = least[tuple(below)]
        front &= with_less > least
    whole, known = seen[0], seen[1].of(seen[0])
    places = {id(point): place for place, point in enumerate(whole.points)}
    options = []
    for index in np.flatnonzero(front.ravel()):
        improve = exploration.combination(int(index))
        point, seconds = int(exploration.chosen[index]), float(exploration.io_seconds[index])
        warnings = tuple(
            exceeded(known, places[id(processes.points[point])], seconds, {**exploration.fixed, **improve})
        )
        cost = prices.cost(improve, point) if prices else None
        options.append(Option(improve, point, exploration.sweeps[point], seconds, cost, warnings))
    options = _with_clock(options, processes, exploration.fixed)
    return sorted(options, key=lambda option: (option.cost or 0.0, sum(option.improve.values()), spent[option.point]))


def _with_clock(options: list[Option], processes: Processes, fixed: Mapping[str, float]) -> list[Option]:
    """Epoch and AU of every option, whatever the goal is about, where they are known."""
    kinds = told_kinds(processes)
    judge = Judge(processes, processes.classes, {})
    with_clock: dict[int, Option] = {}
    for point in {option.point for option in options}:
        here = [index for index, option in enumerate(options) if option.point == point]
        factors = np.array([processes.factors({**fixed, **options[index].improve}) for index in here])
        directions = np.column_stack([np.ones(len(here)), factors])
        times = processes.points[point]
        epochs, shares = (judge.values(kind, times, directions) if kind in kinds else None for kind in (EPOCH, AU))
        for row, index in enumerate(here):
            epoch = None if epochs is None else float(epochs[row])
            with_clock[index] = replace(
                options[index], epoch_seconds=epoch, au=None if shares is None else float(shares[row])
            )
    return [with_clock[index] for index in range(len(options))]
