"""What the station model says as JSON: keys that other people's scripts rely on."""

import statistics
from collections.abc import Sequence

from tierscope.analysis.to_json import SCHEMA_VERSION
from tierscope.jsonable import JsonObject
from tierscope.predict.calibrate import Calibration, FittedKey, LeftOut
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.modelled import ModelAnswer, PointAnswer
from tierscope.predict.propose import Proposal
from tierscope.predict.to_json import goal_json


def calibration_json(found: Calibration, proposals: Sequence[Proposal], epochs: int) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "calibration",
        "epochs": epochs,
        "discipline": found.fit.serving.discipline,
        "variation": found.fit.serving.variation,
        "residual": found.fit.loss,
        "model_error": found.model_error,
        "process_overhead": found.overhead,
        "one_size": found.one_size,
        "parameters": [_estimate(each) for each in found.estimates],
        "left_out": [_left_out(each) for each in found.left_out],
        "next": [{"what": each.what, "spread_percent": each.spread_percent} for each in proposals],
        "findings": [],
    }


def _estimate(each: FittedKey) -> JsonObject:
    at_least = each.kind == "at_least"
    return {
        "key": each.parameter.path,
        "kind": each.kind,
        "value": None if at_least else each.value,
        "low": each.low,
        "high": each.high,
        "sensitivity_percent": each.sensitivity,
    }


def _left_out(each: LeftOut) -> JsonObject:
    return {
        "point": each.name,
        "measured_seconds": each.measured_seconds,
        "predicted_seconds": each.predicted_seconds,
        "error": each.error,
        "bottleneck_right": each.bottleneck_right,
    }


def validation_json(left_out: Sequence[LeftOut]) -> JsonObject:
    errors = sorted(abs(each.error) for each in left_out)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "validation",
        "points": [_left_out(each) for each in left_out],
        "n": len(errors),
        "median_error": statistics.median(errors),
        "largest_error": errors[-1],
        "findings": [],
    }


def model_json(found: ModelAnswer) -> JsonObject:
    return {
        "shown": found.shown,
        "bottleneck_moved": found.moved,
        "simple_off_percent": found.simple_off_percent,
        "best": _point(found.best_model),
        "points": [_point(each) for each in found.points],
    }


def _point(each: PointAnswer) -> JsonObject:
    return {
        "sweep": each.sweep,
        "before_seconds": each.measured_seconds,
        "scaling_seconds": each.simple_seconds,
        "model_seconds": each.model_seconds,
        "scaling_off_percent": each.simple_off_percent,
        "bottleneck_before": each.bottleneck_before,
        "bottleneck_after": each.bottleneck_after,
    }


def simulated_exploration_json(found: SimulatedExploration) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "exploration",
        "method": found.method,
        "simulated": True,
        "goal": goal_json(found.goal),
        "goal_seconds": found.goal.seconds,
        "vary": {name: list(values) for name, values in found.vary.items()},
        "grid": [_combination(each) for each in found.combinations],
        "pareto": [_combination(each) for each in found.pareto],
        "findings": [],
    }


def _combination(each: Combination) -> JsonObject:
    return {
        "settings": each.settings,
        "min_cache_rate": each.cache_rate if each.met else None,
        "best_cache_rate": each.cache_rate,
        "io_seconds": each.io_seconds,
        "io_seconds_low": each.low_seconds,
        "io_seconds_high": each.high_seconds,
        "bottleneck": each.bottleneck,
        "epoch_seconds": each.epoch_seconds,
        "au": each.au,
        "staging_seconds": each.staging_seconds,
        "break_even_epochs": each.break_even_epochs,
        "met": each.met,
        "cost": each.cost,
    }
