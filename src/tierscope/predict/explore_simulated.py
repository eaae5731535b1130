"""Explore systems that nobody built: every combination of a study's keys simulated, the cheapest that meets a goal found."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierscope.analysis.staging_costs import break_even_epochs
from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.predict import spread
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation, check_rates
from tierscope.predict.unsimulated import refuse_unsimulated
from tierscope.predict.work_limit import refuse_endless
from tierscope.spec import keys, sweep
from tierscope.spec.figures import is_number
from tierscope.spec.goal import AU, GOAL_HINT, Goal
from tierscope.spec.kinds import Integer
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.load import Loaded
from tierscope.spec.study import Study
from tierscope.spec.whatif import read_goal
from tierscope.watch import Watch

_RATE = "cache_rate"
_LESS_IS_MORE = ("latency", "metadata_latency", "process_overhead", "variation", "metadata_variation", "service_variation", "background")  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExplorationRequest:
    """As on the command line."""

    vary: Sequence[str]
    goal: str | None
    cost: Sequence[str]
    method: str


def explore_simulated(loaded: Loaded, wanted: ExplorationRequest, watch: Watch) -> SimulatedExploration:
    """Of a study that was loaded with what is to vary."""
    vary, method = wanted.vary, wanted.method
    study, known = loaded.study, loaded.known
    goal = read_goal(wanted.goal) if wanted.goal is not None else study.goal
    if goal is None:
        raise UserError(f"there is no goal; {GOAL_HINT}")
    varied = [axis for axis in study.sweep if axis.path in _paths(study, vary)]
    if not varied:
        raise UserError(
            "nothing varies; say which keys of the study to try, for example --vary gfs.metadata_ops=1:3:0.5"
        )
    prices = _prices(study, wanted.cost)
    names = keys.short_names([axis.path for axis in study.sweep])
    points = list(sweep.points(study))
    for point in points:
        check_rates(point.study)
        refuse_unsimulated(point.study)
    refuse_endless(points, method, epochs=1)
    watch.phase("simulating", len(points), "points")
    groups: dict[tuple[Any, ...], list[Combination]] = {}
    studies: dict[tuple[Any, ...], Study] = {}
    for point in points:
        chosen = {name: value for name, value in point.sweep.items() if name != _RATE}
        rate = point.study.placement.cache_rate
        found = simulate_combination(chosen, point.study, method, known)
        if goal.kind == AU and found.au is None:
            raise UserError(
                "an AU goal needs compute, and the study has none; set workload.train.computation_time, or give --goal epoch=10min"
            )
        groups.setdefault(tuple(chosen.values()), []).append(replace(found, met=goal.is_met(found.value(goal.kind))))
        studies[*chosen.values(), rate] = point.study
        watch.advance(1)
    combinations = tuple(
        _priced(_staged(_best(group, goal), group, studies), prices, names, study) for group in groups.values()
    )
    order = {names[axis.path]: -1 if _less_is_more(axis.path) else 1 for axis in study.sweep}
    front = sorted(
        _front(combinations, order), key=lambda each: (each.cost or 0.0, each.cache_rate, each.shortfall(goal))
    )
    values = {names[axis.path]: axis.values for axis in study.sweep if names[axis.path] != _RATE}
    return SimulatedExploration(goal, method, values, combinations, tuple(front))


def _paths(study: Study, vary: Sequence[str]) -> list[str]:
    leaves = list(keys.leaf_keys(Study, [tier.name for tier in study.system.tiers]))
    return [keys.resolve(text.partition("=")[0].strip(), leaves, f"--vary {text}") for text in vary]


def _prices(study: Study, cost: Sequence[str]) -> dict[str, float]:
    """Full path of a varied key → its price: of each piece more, or, for a rate, of each percent more; of a latency, of each percent less."""
    leaves = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])
    found: dict[str, float] = {}
    varied = {axis.path for axis in study.sweep}
    for text in cost:
        key, _, price = text.partition("=")
        path = keys.resolve(key.strip(), list(leaves), f"--cost {text}")
        if not is_number(leaves[path]):
            raise UserError(f"--cost {text}: {path} is no number, so more of it has no price; leave it out")
        if path not in varied:
            raise UserError(f"--cost {text}: {path} does not vary; leave it out, or add --vary {key}=…")
        try:
            found[path] = float(price)
        except ValueError:
            raise UserError(f"--cost {text}: {price!r} is no number; write it like gfs.servers=1000") from None
        if not 0 <= found[path] < 1e15:
            raise UserError(f"--cost {text}: a price must be within 0 and 1e15")
    return found


def _staged(found: Combination, group: list[Combination], studies: Mapping[tuple[Any, ...], Study]) -> Combination:
    """With what it takes to put its files on the near tiers first, and when that pays against none there, where that was simulated."""
    study = studies[*found.settings.values(), found.cache_rate]
    without = next((each.epoch_seconds for each in group if each.cache_rate == 0), None)
    seconds = Simulation.of(study).staging_seconds()
    if seconds is None or without is None:
        return replace(found, staging_seconds=seconds)
    pays = break_even_epochs(seconds, without, found.epoch_seconds)
    return replace(found, staging_seconds=seconds, break_even_epochs=pays, compared=True)


def simulate_combination(settings: SweepValues, study: Study, method: str, known: KnownSystem | None) -> Combination:
    """Of the second epoch, on the clock: the slowest I/O time with its interval, the class that leads, the epoch, and AU where there is compute."""
    simulation = Simulation.of(study)
    outcome = simulation.epoch(min(2, study.workload.train.epochs), method, seed=study.seed)
    systems = drawn_systems(study.system, known) if known else ()
    low, high = spread.relative(study, simulation.stations, simulation.reading, outcome, systems)
    seconds = outcome.wall.sum(axis=(1, 2))
    slowest = int(seconds.argmax())
    longest = float(seconds[slowest])
    names = [f"{tier.name.upper()}-{kind}" for tier in study.system.tiers for kind in ("META", "READ")]
    return Combination(
        settings=settings,
        cache_rate=study.placement.cache_rate,
        io_seconds=longest,
        low_seconds=longest * low,
        high_seconds=longest * high,
        bottleneck=names[int(outcome.wall[slowest].reshape(-1).argmax())],
        epoch_seconds=float(outcome.seconds.max()),
        met=False,
        au=_utilisation(outcome),
    )


def _utilisation(outcome: Outcome) -> float | None:
    """DLIO's AU: the first step excluded, the mean over ranks; of whole epochs where steps are not known."""
    if not outcome.compute:
        return None
    compute, seconds = np.full(len(outcome.seconds), outcome.compute), outcome.seconds
    if outcome.steps is not None and outcome.steps.shape[1] > 1:
        first = outcome.steps[:, 0]
        compute, seconds = compute - first[:, 2], seconds - first[:, 1] - first[:, 2]
    return float(np.mean(compute / seconds))


def _best(group: list[Combination], goal: Goal) -> Combination:
    """Of one combination's cache rates: the smallest that meets the goal, or the one that misses it by least."""
    meeting = [each for each in group if each.met]
    if meeting:
        return min(meeting, key=lambda each: (each.cache_rate, each.shortfall(goal)))
    return min(group, key=lambda each: each.shortfall(goal))


def _priced(found: Combination, prices: Mapping[str, float], names: Mapping[str, str], base: Study) -> Combination:
    if not prices:
        return found
    total = 0.0
    for path, price in prices.items():
        value, known = found.settings.get(names[path], found.cache_rate), _value(base, path)
        kind = keys.leaf_keys(Study, [tier.name for tier in base.system.tiers])[path].kind
        assert isinstance(value, int | float)  # what is not a number has no price
        pieces = isinstance(kind, Integer) or not known
        more = value - (known or 0) if pieces else 100 * (value / known - 1)
        total += price * (-more if _less_is_more(path) else more)
    return replace(found, cost=total)


def _less_is_more(path: str) -> bool:
    return path.rpartition(".")[2] in _LESS_IS_MORE


def _value(study: Study, path: str) -> Any:
    found: Any = study
    for part in path.split("."):
        tiers = {tier.name: tier for tier in found} if isinstance(found, tuple) else None
        found = getattr(found, part) if tiers is None else tiers[part]
    return found


def _texts(each: Combination) -> list[str]:
    """Settings that are no numbers: which of two is more, nobody can say."""
    return [value for value in each.settings.values() if isinstance(value, str)]


def _front(combinations: Sequence[Combination], order: Mapping[str, int]) -> list[Combination]:
    meeting = [each for each in combinations if each.met]

    def spent(each: Combination) -> list[Any]:
        return [
            *(order[name] * value for name, value in each.settings.items() if isinstance(value, int | float)),
            each.cache_rate,
        ]

    beaten = set()
    for (left, one), (right, other) in itertools.permutations(enumerate(meeting), 2):
        pairs = list(zip(spent(one), spent(other), strict=True))
        if _texts(one) != _texts(other):
            continue
        if all(a <= b for a, b in pairs) and (any(a < b for a, b in pairs) or left < right):
            beaten.add(right)
    return [each for place, each in enumerate(meeting) if place not in beaten]
