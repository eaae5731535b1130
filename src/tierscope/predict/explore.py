"""Which improvements meet a goal, at which smallest cache rate: the grid of the Hierarchy study's fourth figure.

Every combination is an estimate by the simple scaling (see `whatif`), so its warnings hold for each of them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.analysis.wording import Finding
from tierscope.predict.ceilings import ceilings, exceeded
from tierscope.predict.hull import Floats, upper_hull
from tierscope.predict.processes import PointTimes, Processes, factor, largest

MOST_COMBINATIONS = 1_000_000
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
        speed = math.fsum(self.percent.get(name, 0.0) * percent for name, percent in improve.items())
        return speed + math.fsum(price * self.held_bytes[point][tier] / GIB for tier, price in self.gib.items())


@dataclass(frozen=True, slots=True)
class Option:
    """A combination that meets the goal, and that no other beats in every respect."""

    improve: dict[str, float]
    point: int
    sweep: dict[str, Any]
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
    sweeps: tuple[dict[str, Any], ...]  # of the points, ordered by cache rate
    chosen: npt.NDArray[np.intp]
    io_seconds: Floats
    options: tuple[Option, ...]  # the Pareto front, cheapest first
    met_without: int | None  # the point that meets the goal as it is

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
    fixed = {name: percent for name, percent in (fixed or {}).items() if name not in vary}
    grid = np.array(list(itertools.product(*([factor(value) for value in values] for values in vary.values()))))
    directions = np.column_stack([np.ones(len(grid)), grid])
    chosen = np.full(len(grid), -1)
    times = np.full(len(grid), np.inf)
    for index, point in enumerate(processes.points):
        io_seconds = _io_seconds(processes, point, tuple(vary), fixed, directions)
        meets = (chosen < 0) & (io_seconds <= goal_seconds)
        times = np.where(meets | ((chosen < 0) & (io_seconds < times)), io_seconds, times)
        chosen[meets] = index
    measured = processes.io_seconds(np.ones((1, len(processes.classes))))[:, 0]
    met_without = next((index for index, seconds in enumerate(measured) if seconds <= goal_seconds), None)
    sweeps = tuple(point.sweep for point in processes.points)
    found = Exploration(goal_seconds, dict(vary), fixed, sweeps, chosen, times, (), met_without)
    return replace(found, options=tuple(_options(found, processes, prices or Prices())))


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


def _options(found: Exploration, processes: Processes, prices: Prices) -> list[Option]:
    """The Pareto front. More of a class never takes longer, so it is enough to look one step down along every class."""
    shape = tuple(len(values) for values in found.vary.values())
    rates = np.array([float(sweep.get("cache_rate", 0.0)) for sweep in found.sweeps])
    rate = np.where(found.chosen < 0, np.inf, rates[found.chosen]).reshape(shape)
    front = np.isfinite(rate)
    for axis in range(len(shape)):
        less = np.full_like(rate, np.inf)
        here, below = ([slice(None)] * len(shape) for _ in range(2))
        here[axis], below[axis] = slice(1, None), slice(None, -1)
        less[tuple(here)] = rate[tuple(below)]
        front &= less > rate
    known = ceilings(processes)
    options = []
    for index in np.flatnonzero(front.ravel()):
        improve = found.combination(int(index))
        point, seconds = int(found.chosen[index]), float(found.io_seconds[index])
        warnings = tuple(exceeded(known, point, seconds, {**found.fixed, **improve}))
        cost = prices.cost(improve, point) if prices else None
        options.append(Option(improve, point, found.sweeps[point], seconds, cost, warnings))
    return sorted(options, key=lambda option: (option.cost or 0.0, sum(option.improve.values()), rates[option.point]))
