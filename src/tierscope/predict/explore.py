"""Which improvements meet a goal, at which smallest cache rate: the grid of the Hierarchy study's fourth figure.

Every combination is an estimate by the simple scaling (see `whatif`), so its warnings hold for each of them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tierscope.analysis.statistics import ROUNDING
from tierscope.analysis.wording import Finding
from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.predict.ceilings import ceilings, exceeded
from tierscope.predict.hull import Floats, upper_hull
from tierscope.predict.processes import PointTimes, Processes, factor, largest
from tierscope.predict.whatif import untold

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


@dataclass(frozen=True, slots=True)
class Exploration:
    """`chosen[i]` is the point with the smallest cache rate that meets the goal with combination i, or −1; `io_seconds[i]` is the time
    there, or the shortest that there is. Combinations are in the order of their product, the last class varying fastest."""

    goal_seconds: float
    vary: dict[str, tuple[float, ...]]
    fixed: dict[str, float]
    sweeps: tuple[SweepValues, ...]  # of the points, ordered by cache rate
    chosen: npt.NDArray[np.intp]
    io_seconds: Floats
    options: tuple[Option, ...]  # the Pareto front, cheapest first
    met_without: int | None  # the point that meets the goal as it is
    warnings: tuple[Finding, ...] = ()  # about all of them

    def combination(self, index: int) -> dict[str, float]:
        places = np.unravel_index(index, [len(values) for values in self.vary.values()])
        return {name: values[place] for (name, values), place in zip(self.vary.items(), places, strict=True)}


def explore(
    processes: Processes,
    goal_seconds: float,
    vary: Mapping[str, tuple[float, ...]],
    fixed: Mapping[str, float] | None = None,
    prices: Prices | None = None,
) -> Exploration:
    """`vary`: the improvements to combine, ascending; `fixed`: those of other classes. All in percent."""
    prices = prices or Prices()
    fixed = {name: percent for name, percent in (fixed or {}).items() if name not in vary}
    grid = np.array(list(itertools.product(*([factor(value) for value in values] for values in vary.values()))))
    directions = np.column_stack([np.ones(len(grid)), grid])
    enough = goal_seconds * (1 + ROUNDING)
    times = [_io_seconds(processes, point, tuple(vary), fixed, directions) for point in processes.points]
    rates = [_rate(point) for point in processes.points]
    chosen, shortest = _choose(times, enough, rates)
    measured = processes.io_seconds(np.ones((1, len(processes.classes))))[:, 0]
    met_without = next((index for index, seconds in enumerate(measured) if seconds <= enough), None)
    sweeps = tuple(point.sweep for point in processes.points)
    warnings = tuple(untold(processes, fixed | dict.fromkeys(vary, 1.0)))
    found = Exploration(goal_seconds, dict(vary), fixed, sweeps, chosen, shortest, (), met_without, warnings)
    if not prices.gib:
        return replace(found, options=tuple(_options(found, processes, rates, prices)))
    # Where more than the rate was swept, a larger one may take less room: what it costs decides then.
    rooms = [prices.room(index) for index in range(len(sweeps))]
    by_room = replace(found, chosen=(cheapest := _choose(times, enough, rooms))[0], io_seconds=cheapest[1])
    return replace(found, options=tuple(_options(by_room, processes, rooms, prices)))


def _choose(times: list[Floats], enough: float, spent: list[float]) -> tuple[npt.NDArray[np.intp], Floats]:
    """For every combination the point that spends least of what meets the goal, or −1; and the time there, or the shortest."""
    chosen = np.full(len(times[0]), -1)
    shortest = np.full(len(times[0]), np.inf)
    for index in sorted(range(len(times)), key=lambda index: spent[index]):
        meets = (chosen < 0) & (times[index] <= enough)
        shortest = np.where(meets | ((chosen < 0) & (times[index] < shortest)), times[index], shortest)
        chosen[meets] = index
    return chosen, shortest


def _rate(point: PointTimes) -> float:
    return cache_rate_of(point.sweep)


def _io_seconds(
    processes: Processes, point: PointTimes, varied: tuple[str, ...], fixed: Mapping[str, float], directions: Floats
) -> Floats:
    """At one point, for every combination. Classes that do not vary are one sum, so that few processes can be the slowest."""
    columns = [processes.classes.index(name) for name in varied]
    factors = processes.factors(fixed)
    factors[columns] = 0.0
    maxima = []
    for epoch in point.epochs:
        times = np.column_stack([epoch.seconds @ factors, epoch.seconds[:, columns]])
        maxima.append(largest(times[upper_hull(times)], directions))
    return np.median(maxima, axis=0)


def _options(found: Exploration, processes: Processes, spent: list[float], prices: Prices) -> list[Option]:
    """The Pareto front. More of a class never takes longer, so it is enough to look one step down along every class.

    `spent`: what a point costs beside the classes, its cache rate or its room.
    """
    shape = tuple(len(values) for values in found.vary.values())
    least = np.where(found.chosen < 0, np.inf, np.array(spent)[found.chosen]).reshape(shape)
    front = np.isfinite(least)
    for axis in range(len(shape)):
        with_less = np.full_like(least, np.inf)
        here, below = ([slice(None)] * len(shape) for _ in range(2))
        here[axis], below[axis] = slice(1, None), slice(None, -1)
        with_less[tuple(here)] = least[tuple(below)]
        front &= with_less > least
    known = ceilings(processes) if len(processes.points) > 1 else []
    options = []
    for index in np.flatnonzero(front.ravel()):
        improve = found.combination(int(index))
        point, seconds = int(found.chosen[index]), float(found.io_seconds[index])
        warnings = tuple(exceeded(known, point, seconds, {**found.fixed, **improve}))
        cost = prices.cost(improve, point) if prices else None
        options.append(Option(improve, point, found.sweeps[point], seconds, cost, warnings))
    return sorted(options, key=lambda option: (option.cost or 0.0, sum(option.improve.values()), spent[option.point]))
