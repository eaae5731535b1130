"""Estimates and explorations as JSON: keys that other people's scripts rely on."""

from tierscope.analysis.conditions import Conditions
from tierscope.analysis.to_json import SCHEMA_VERSION, breakdown_json, summary_json
from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject
from tierscope.predict.explore import Exploration, Option
from tierscope.predict.whatif import Estimate, Sensitivity
from tierscope.spec.goal import AU, EPOCH, IO, Goal


def estimate_json(estimate: Estimate, findings: list[Finding], given: Conditions) -> JsonObject:
    """The form of a breakdown, of the time after the improvements; what was measured is in `baseline_best`."""
    return {
        **breakdown_json(estimate.after, findings, given),
        "kind": "estimate",
        "method": "scaling",
        "improvements": _percents(estimate.improvements),
        "baseline_best": summary_json(estimate.before.best),
        "change_percent": estimate.change_percent,
        "epoch_change_percent": estimate.epoch_change_percent,
        "slowest_rank_changed": estimate.slowest_rank_changed,
        "bottleneck_moved": estimate.bottleneck_moved,
        "warnings": [finding_json(warning) for warning in estimate.warnings],
        "sensitivity": [_sensitivity(each) for each in estimate.sensitivity],
    }


def _sensitivity(each: Sensitivity) -> JsonObject:
    changes = {str(_plain(step)): change for step, change in each.change_percent.items()}
    return {
        "class": each.class_name,
        "measure": each.measure,
        "change_percent": changes,
        "limit_percent": each.limit_percent,
        "limit_sweep": each.limit_sweep,
    }


def exploration_json(
    found: Exploration, basis: str, rate: float | None, findings: list[Finding], given: Conditions
) -> JsonObject:
    """`rate`: the cache rate where it was not swept, if it is known."""
    only_rates = all(set(sweep) <= {"cache_rate"} for sweep in found.sweeps)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "exploration",
        "method": "scaling",
        "basis": basis,
        "emulated_tiers": list(given.emulated),
        "goal": goal_json(found.goal),
        "goal_seconds": found.goal_seconds,
        "vary": {name: [_plain(value) for value in values] for name, values in found.vary.items()},
        "improvements": _percents(found.fixed),
        "met_without": None if found.met_without is None else found.sweeps[found.met_without],
        "grid": [_entry(found, index, rate, only_rates) for index in range(len(found.chosen))],
        "pareto": [_option(option, rate) for option in found.options],
        "warnings": [finding_json(warning) for warning in found.warnings],
        "findings": [finding_json(finding) for finding in findings],
    }


_VALUE = {EPOCH: "epoch_seconds", AU: "au"}


def goal_json(goal: Goal) -> JsonObject:
    """`value`: seconds, or a share of 1."""
    return {"kind": goal.kind, "value": goal.value}


def _entry(found: Exploration, index: int, rate: float | None, only_rates: bool) -> JsonObject:
    point = int(found.chosen[index])
    met = point >= 0
    entry = {
        "improve": _percents(found.combination(index)),
        "min_cache_rate": found.sweeps[point].get("cache_rate", rate) if met else None,
        "io_seconds": float(found.io_seconds[index]),
        **({} if found.goal.kind == IO else {_VALUE[found.goal.kind]: float(found.values[index])}),
        "met": met,
    }
    return entry if only_rates else {**entry, "sweep": found.sweeps[point] if met else None}


def _option(option: Option, rate: float | None) -> JsonObject:
    return {
        "improve": _percents(option.improve),
        "min_cache_rate": option.sweep.get("cache_rate", rate),
        "io_seconds": option.io_seconds,
        "epoch_seconds": option.epoch_seconds,
        "au": option.au,
        "met": True,
        "sweep": option.sweep,
        "cost": option.cost,
        "warnings": [finding_json(warning) for warning in option.warnings],
    }


def _percents(improvements: dict[str, float]) -> dict[str, float]:
    return {name: _plain(percent) for name, percent in improvements.items()}


def _plain(percent: float) -> float:
    """50 rather than 50.0, as people wrote it."""
    return int(percent) if percent == int(percent) else percent
