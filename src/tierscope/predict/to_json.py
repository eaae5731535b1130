"""Estimates and explorations as JSON: keys that other people's scripts rely on."""

from tierscope.analysis.conditions import Conditions
from tierscope.analysis.to_json import SCHEMA_VERSION, breakdown_json, summary_json
from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject
from tierscope.predict.by_group import EstimatedGroups, ExploredGroups
from tierscope.predict.explore import Exploration, Option
from tierscope.predict.whatif import Estimate, Sensitivity
from tierscope.spec.feasibility import feasibility_json
from tierscope.spec.goal import AU, EPOCH, IO, Goal


def estimate_json(estimated: EstimatedGroups, findings: list[Finding], given: Conditions) -> JsonObject:
    """The form of a breakdown, of the time after the improvements; what was measured is in `baseline_best`.

    Of several cases or groups each has its own: there is no best over all of them, and what is about it is null.
    """
    whole = breakdown_json(estimated.after, findings, given)
    about = {"kind": "estimate", "method": "scaling", "improvements": _percents(estimated.improvements)}
    by_group = [_of_group(estimate) for estimate in estimated.parts]
    key = next((name for name in ("cases", "groups") if name in whole), None)
    apart: JsonObject = (
        {}
        if key is None
        else {key: [{**group, **answers} for group, answers in zip(whole[key], by_group, strict=False)]}
    )
    left_out = {"groups_left_out": estimated.left_out} if estimated.left_out else {}
    return {
        **whole,
        **about,
        **(by_group[0] if len(by_group) == 1 else dict.fromkeys(by_group[0])),
        **apart,
        **left_out,
    }


def _of_group(estimate: Estimate) -> JsonObject:
    return {
        "baseline_best": summary_json(estimate.before.best),
        "change_percent": estimate.change_percent,
        "epoch_change_percent": estimate.epoch_change_percent,
        "slowest_rank_changed": estimate.slowest_rank_changed,
        "bottleneck_moved": estimate.bottleneck_moved,
        "warnings": [finding_json(warning) for warning in estimate.warnings],
        "sensitivity": [_sensitivity(sensitivity) for sensitivity in estimate.sensitivity],
    }


def _sensitivity(sensitivity: Sensitivity) -> JsonObject:
    changes = {str(_plain(step)): change for step, change in sensitivity.change_percent.items()}
    return {
        "class": sensitivity.class_name,
        "measure": sensitivity.measure,
        "change_percent": changes,
        "limit_percent": sensitivity.limit_percent,
        "limit_sweep": sensitivity.limit_sweep,
    }


def exploration_json(
    explored: ExploredGroups, basis: str, rate: float | None, findings: list[Finding], given: Conditions
) -> JsonObject:
    """`rate`: the cache rate where it was not swept, if it is known. Of several cases or groups each has its own answers; those of all are null."""
    exploration = explored.first
    by_group = [_answers(part.exploration, rate) for part in explored.parts]
    named = [{"name": part.name, **({} if part.case is None else {"case": part.case})} for part in explored.parts]
    apart = {
        "groups" if explored.parts[0].case is None else "cases": [
            {**name, **answers} for name, answers in zip(named, by_group, strict=True)
        ]
    }
    is_single = len(by_group) == 1
    left_out = {"groups_left_out": explored.left_out} if explored.left_out else {}
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "exploration",
        "method": "scaling",
        "basis": basis,
        "emulated_tiers": list(given.emulated),
        "goal": goal_json(exploration.goal),
        "goal_seconds": exploration.goal_seconds,
        "vary": {name: [_plain(value) for value in values] for name, values in exploration.vary.items()},
        "improvements": _percents(exploration.fixed),
        **(by_group[0] if is_single else dict.fromkeys(by_group[0])),
        **({} if is_single else apart),
        **left_out,
        "findings": [finding_json(finding) for finding in findings],
    }


def _answers(exploration: Exploration, rate: float | None) -> JsonObject:
    only_rates = all(set(sweep) <= {"cache_rate"} for sweep in exploration.sweeps)
    return {
        "met_without": None if exploration.met_without is None else exploration.sweeps[exploration.met_without],
        "grid": [_entry(exploration, index, rate, only_rates) for index in range(len(exploration.chosen))],
        "pareto": [_option(option, rate) for option in exploration.options],
        "warnings": [finding_json(warning) for warning in exploration.warnings],
    }


_VALUE = {EPOCH: "epoch_seconds", AU: "au"}


def goal_json(goal: Goal) -> JsonObject:
    """`value`: seconds, or a share of 1."""
    return {"kind": goal.kind, "value": goal.value}


def _entry(exploration: Exploration, index: int, rate: float | None, only_rates: bool) -> JsonObject:
    point = int(exploration.chosen[index])
    met = point >= 0
    entry = {
        "improve": _percents(exploration.combination(index)),
        "min_cache_rate": exploration.sweeps[point].get("cache_rate", rate) if met else None,
        "io_seconds": float(exploration.io_seconds[index]),
        **({} if exploration.goal.kind == IO else {_VALUE[exploration.goal.kind]: float(exploration.values[index])}),
        "met": met,
    }
    return entry if only_rates else {**entry, "sweep": exploration.sweeps[point] if met else None}


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
        "feasibility": feasibility_json(option.feasibility),
        "staging_seconds": option.staging_seconds,
        "break_even_epochs": option.break_even_epochs,
        "warnings": [finding_json(warning) for warning in option.warnings],
    }


def _percents(improvements: dict[str, float]) -> dict[str, float]:
    return {name: _plain(percent) for name, percent in improvements.items()}


def _plain(percent: float) -> float:
    """50 rather than 50.0, as people wrote it."""
    return int(percent) if percent == int(percent) else percent
