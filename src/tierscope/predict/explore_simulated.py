"""Explore systems that nobody built: every combination of a study's keys simulated, the cheapest that fits and meets a goal found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.predict.combining import simulate_combination, with_staging
from tierscope.predict.costs import changed, cost_of, increase, less_is_more, lesser, unpriced
from tierscope.predict.exploration import Combination, Remedy, SimulatedExploration
from tierscope.predict.fronts import best_rate, certain_rate, pareto, ranked
from tierscope.predict.method import chosen_method
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.ranked_apart import apart, rank_apart
from tierscope.predict.remedies import remedies_for
from tierscope.predict.unsimulated import refuse_unsimulated
from tierscope.predict.work_limit import refuse_endless
from tierscope.spec import keys, sweep
from tierscope.spec.goal import AU, GOAL_HINT, Goal
from tierscope.spec.load import Loaded
from tierscope.spec.prices import UnitPrice, priced_as, read_key_prices, read_limit
from tierscope.spec.schema import Key
from tierscope.spec.study import Point, Study
from tierscope.spec.whatif import read_goal
from tierscope.units import format_fraction, format_money
from tierscope.watch import Watch

__all__ = ["ExplorationRequest", "explore_simulated", "goal_of", "simulate_combination"]
_RATE = "cache_rate"
MOST_REMEDIED = 4  # groups of which remedies are simulated: each takes a dozen simulations


@dataclass(frozen=True, slots=True)
class ExplorationRequest:
    """As on the command line."""

    vary: Sequence[str]
    goal: str | None
    cost: Sequence[str]
    method: str
    max_price: str | None = None


def explore_simulated(loaded: Loaded, wanted: ExplorationRequest, watch: Watch) -> SimulatedExploration:
    """Of a study that was loaded with what is to vary."""
    study = loaded.study
    goal = goal_of(loaded, wanted.goal)
    if not any(axis.path in _paths(study, wanted.vary) for axis in study.sweep):
        raise UserError("nothing varies; add the keys to try, e.g. --vary gfs.metadata_ops=1:3:0.5")
    prices = read_key_prices(study, wanted.cost, [axis.path for axis in study.sweep])
    limit = None if wanted.max_price is None else read_limit(wanted.max_price)
    if limit is not None and not prices:
        raise UserError(
            f"--max-price {wanted.max_price}: nothing has a price; add --cost, e.g. gfs.servers=20000/server"
        )
    points = list(sweep.points(study))
    for point in points:
        refuse_missing_rates(point.study, loaded.known)
        refuse_unsimulated(point.study)
    method = chosen_method(points, wanted.method)
    groups = _simulated(loaded, points, method, goal, watch)

    def described(option: Combination, group: Sequence[Combination]) -> Combination:
        return priced(with_staging(option, _without(group)), study, prices)

    combinations = tuple(described(best_rate(group, goal), group) for group in groups)
    certain = tuple(
        described(option, group)
        for group, best in zip(groups, combinations, strict=True)
        if best.missing(goal, worst=True) and (option := certain_rate(group, goal)) is not None
    )
    names = keys.short_names([axis.path for axis in study.sweep])
    order = {names[axis.path]: -1 if less_is_more(axis.path) else 1 for axis in study.sweep}
    front = rank_apart((*combinations, *certain), lambda group: ranked(pareto(group, order, goal), goal))
    within = tuple(combination for combination in front if combination.costs_at_most(limit))
    if front and not within:
        _refuse_price(ranked(front, goal)[0], wanted.max_price or "", study)
    values = {names[axis.path]: axis.values for axis in study.sweep if names[axis.path] != _RATE}
    misfits = [
        combination.settings for group in groups for combination in group if not combination.feasibility.is_possible
    ]

    def price(option: Combination) -> Combination:
        return priced(option, study, prices)

    return SimulatedExploration(
        goal,
        method,
        values,
        combinations,
        within,
        swept=study.sweep,
        prices={path: price.text for path, price in prices.items()},
        max_price=limit,
        over_price=len(front) - len(within),
        short_of_room=bool(misfits),
        remedies=tuple(
            remedy
            for remedy in _remedies(combinations, goal, method, loaded, price, misfits)
            if remedy.option.costs_at_most(limit)
        ),
    )


def _remedies(
    combinations: Sequence[Combination],
    goal: Goal,
    method: str,
    loaded: Loaded,
    price: Callable[[Combination], Combination],
    misfits: Sequence[SweepValues],
) -> list[Remedy]:
    """Of the first groups in which nothing fits and meets the goal."""
    missing = [group for group in apart(combinations) if not any(combination.is_recommended for combination in group)]
    return [
        remedy
        for group in missing[:MOST_REMEDIED]
        for remedy in remedies_for(
            group, goal, method, loaded.known, price, any(combination.settings in misfits for combination in group)
        )
    ]


def goal_of(loaded: Loaded, text: str | None) -> Goal:
    goal = read_goal(text) if text is not None else loaded.study.goal
    if goal is None:
        raise UserError(f"no goal; {GOAL_HINT}")
    return goal


def _simulated(
    loaded: Loaded, points: Sequence[Point], method: str, goal: Goal, watch: Watch
) -> list[list[Combination]]:
    """Every point, those that differ in their cache rate only together."""
    refuse_endless(points, method, epochs=1)
    watch.phase("simulating", len(points), "points")
    groups: dict[tuple[Any, ...], list[Combination]] = {}
    for point in points:
        chosen = {name: value for name, value in point.sweep.items() if name != _RATE}
        combination = simulate_combination(chosen, point.study, method, loaded.known)
        if goal.kind == AU and combination.au is None:
            raise UserError(
                "an AU goal needs compute, but the study has none; set workload.train.computation_time, or use --goal epoch=10min"
            )
        groups.setdefault(tuple(chosen.values()), []).append(combination.judged(goal))
        watch.advance(1)
    return list(groups.values())


def _without(group: Sequence[Combination]) -> float | None:
    """Seconds of an epoch without cached files, where that was simulated."""
    return next((combination.epoch_seconds for combination in group if combination.cache_rate == 0), None)


def priced(combination: Combination, base: Study, prices: Mapping[str, UnitPrice]) -> Combination:
    """And what it asks for beyond the study that it was made from, or has less of."""
    option = combination.study
    if option is None:
        return combination
    combination = replace(combination, lesser=lesser(base, option), increase=increase(base, option))
    if not prices:
        return combination
    return replace(
        combination,
        cost=cost_of(base, option, combination.feasibility, prices),
        unpriced=unpriced(base, option, prices),
        is_changed=bool(changed(base, option)),
    )


def _refuse_price(cheapest: Combination, limit: str, study: Study) -> None:
    kinds = {name: leaf.kind for name, leaf in _leaves(study).items()}
    paths = {short: path for path, short in keys.short_names([axis.path for axis in study.sweep]).items()}
    settings = [
        f"{name} = {kinds[paths[name]].format(value) if name in paths and value is not None else value}"
        for name, value in cheapest.settings.items()
    ]
    settings.append(f"cache_rate = {format_fraction(cheapest.cache_rate)}")
    if cheapest.unpriced:
        names = ", ".join(path.removeprefix("system.tiers.") for path in cheapest.unpriced)
        costs = " ".join(f"--cost {priced_as(study, path)}" for path in cheapest.unpriced)
        raise UserError(
            f"--max-price {limit}: no option that fits and meets the goal is known to cost so little: there is no price for {names}; add {costs}"
        )
    raise UserError(
        f"--max-price {limit}: the cheapest option that fits and meets the goal costs {format_money(cheapest.cost or 0.0)} ({', '.join(settings)}); "
        "raise the limit, lower the goal, or vary other keys"
    )


def _leaves(study: Study) -> dict[str, Key]:
    return keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])


def _paths(study: Study, vary: Sequence[str]) -> list[str]:
    leaves = list(_leaves(study))
    return [keys.resolve(text.partition("=")[0].strip(), leaves, f"--vary {text}") for text in vary]
