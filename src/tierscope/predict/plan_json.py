"""Plans as JSON: explorations of systems that nobody built, and searches for the most that storage feeds. Keys that other people's scripts rely on."""

from tierscope.analysis.to_json import SCHEMA_VERSION
from tierscope.jsonable import JsonObject
from tierscope.predict.exploration import Combination, Remedy, SimulatedExploration
from tierscope.predict.ranked_apart import apart_json
from tierscope.predict.searches import LargestFed
from tierscope.predict.to_json import goal_json
from tierscope.spec.feasibility import feasibility_json
from tierscope.spec.goal import AU, Goal


def simulated_exploration_json(exploration: SimulatedExploration) -> JsonObject:
    goal = exploration.goal
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "exploration",
        "method": exploration.method,
        "simulated": True,
        "goal": goal_json(goal),
        "goal_seconds": goal.seconds,
        "vary": {name: list(values) for name, values in exploration.vary.items()},
        "prices": dict(exploration.prices),
        "max_price": exploration.max_price,
        "over_price": exploration.over_price,
        "grid": [combination_json(combination, goal) for combination in exploration.combinations],
        "pareto": [combination_json(combination, goal) for combination in exploration.pareto],
        **apart_json(exploration, lambda combination: combination_json(combination, goal)),
        "remedies": [remedy_json(remedy, goal) for remedy in exploration.remedies],
        "findings": [],
    }


def remedy_json(remedy: Remedy, goal: Goal | None) -> JsonObject:
    return {
        "name": remedy.name,
        "settings": remedy.settings,
        "randomness": {
            "text": remedy.randomness,
            "mixed_share": remedy.mixed_share,
            "samples_together": remedy.together,
        },
        "option": combination_json(remedy.option, goal),
    }


def combination_json(combination: Combination, goal: Goal | None) -> JsonObject:
    """`unsolved`: by how much the goal is missed (seconds, or a share), now and at the bad end of the interval; None: there is no goal."""
    low, high = combination.interval(AU) if combination.au is not None else (None, None)
    unsolved = None
    if goal is not None:
        worst = combination.missing(goal, worst=True)
        unsolved = {
            "bottleneck": combination.bottleneck,
            "shortfall": combination.missing(goal),
            "worst_shortfall": worst,
        }
    return {
        "settings": combination.settings,
        "min_cache_rate": combination.cache_rate if combination.is_recommended else None,
        "best_cache_rate": combination.cache_rate,
        "io_seconds": combination.io_seconds,
        "io_seconds_low": combination.low_seconds,
        "io_seconds_high": combination.high_seconds,
        "bottleneck": combination.bottleneck,
        "epoch_seconds": combination.epoch_seconds,
        "epoch_seconds_low": combination.epoch_low,
        "epoch_seconds_high": combination.epoch_high,
        "au": combination.au,
        "au_low": low,
        "au_high": high,
        "staging_seconds": combination.staging_seconds,
        "break_even_epochs": combination.break_even_epochs,
        "met": combination.met,
        "recommended": combination.is_recommended,
        "feasibility": feasibility_json(combination.feasibility),
        "unsolved": unsolved,
        "cost": combination.cost,
        "unpriced": list(combination.unpriced),
        **({"less_than_study": list(combination.lesser)} if combination.lesser else {}),
        **({"unidentified": list(combination.unidentified)} if combination.unidentified else {}),
    }


def largest_fed_json(fed: LargestFed) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "largest",
        "method": fed.method,
        "simulated": True,
        "goal": goal_json(fed.goal),
        "key": fed.key,
        "value": fed.value,
        "sure": fed.sure,
        "limit": fed.limit,
        "limit_reached": fed.is_limited,
        "monotonic": fed.again is None,
        "met_again_at": fed.again,
        "dataset_grown_from": fed.grown_from,
        "at": None if fed.at is None else combination_json(fed.at, fed.goal),
        "sure_at": None if fed.safe is None else combination_json(fed.safe, fed.goal),
        "unidentified": list(fed.unidentified),
        "beyond": None if fed.beyond is None else combination_json(fed.beyond, fed.goal),
        "tried": [
            {fed.key: number, **combination_json(combination, fed.goal)} for number, combination in fed.tried.items()
        ],
        "findings": [],
    }
