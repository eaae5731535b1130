"""What the station model says as JSON: keys that other people's scripts rely on."""

import statistics
from collections.abc import Sequence

from tierscope.analysis.to_json import SCHEMA_VERSION
from tierscope.jsonable import JsonObject
from tierscope.predict.calibrate import Calibration, FittedKey, LeftOut
from tierscope.predict.modelled import ModelAnswer, PointAnswer
from tierscope.predict.propose import Proposal


def calibration_json(calibration: Calibration, proposals: Sequence[Proposal], epochs: int) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "calibration",
        "epochs": epochs,
        "discipline": calibration.fit.serving.discipline,
        "variation": calibration.fit.serving.variation,
        "terms": {
            name: list(getattr(calibration.fit.terms, name))
            for name in ("credit", "quotas", "linked", "streams", "hashed")
        },
        "measured": {
            "read_bytes": list(calibration.measured.read_bytes),
            "ranks": list(calibration.measured.ranks),
            "cache_rates": list(calibration.measured.cache_rates),
        },
        "residual": calibration.fit.loss,
        "model_error": calibration.model_error,
        "process_overhead": calibration.overhead,
        "one_size": calibration.one_size,
        "parameters": [_estimate(estimate) for estimate in calibration.estimates],
        "left_out": [_left_out(left_out) for left_out in calibration.left_out],
        "next": [{"what": proposal.what, "spread_percent": proposal.spread_percent} for proposal in proposals],
        "findings": [],
    }


def _estimate(estimate: FittedKey) -> JsonObject:
    at_least = estimate.kind == "at_least"
    return {
        "key": estimate.parameter.path,
        "kind": estimate.kind,
        "value": None if at_least else estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "sensitivity_percent": estimate.sensitivity,
    }


def _left_out(left_out: LeftOut) -> JsonObject:
    return {
        "point": left_out.name,
        "measured_seconds": left_out.measured_seconds,
        "predicted_seconds": left_out.predicted_seconds,
        "error": left_out.error,
        "bottleneck_right": left_out.bottleneck_right,
        "inside": left_out.inside,
    }


def validation_json(left_out: Sequence[LeftOut]) -> JsonObject:
    errors = sorted(abs(point.error) for point in left_out)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "validation",
        "points": [_left_out(point) for point in left_out],
        "n": len(errors),
        "median_error": statistics.median(errors),
        "largest_error": errors[-1],
        "findings": [],
    }


def models_json(names: Sequence[str], answers: Sequence[ModelAnswer]) -> JsonObject:
    """`model`: of the only group of points, or null where there are several: then `models` has one for each."""
    if len(answers) < 2:
        return {"model": model_json(answers[0])} if answers else {}
    models = [{"name": name, **model_json(answer)} for name, answer in zip(names, answers, strict=True)]
    return {"model": None, "models": models}


def model_json(answer: ModelAnswer) -> JsonObject:
    return {
        "shown": answer.shown,
        "bottleneck_moved": answer.moved,
        "simple_off_percent": answer.simple_off_percent,
        "best": _point(answer.best_model),
        "points": [_point(point) for point in answer.points],
    }


def _point(answer: PointAnswer) -> JsonObject:
    return {
        "sweep": answer.sweep,
        "before_seconds": answer.measured_seconds,
        "scaling_seconds": answer.simple_seconds,
        "model_seconds": answer.model_seconds,
        "scaling_off_percent": answer.simple_off_percent,
        "bottleneck_before": answer.bottleneck_before,
        "bottleneck_after": answer.bottleneck_after,
        **_bounds(answer),
    }


def _bounds(answer: PointAnswer) -> JsonObject:
    if not answer.unidentified:
        return {}
    bounds = {"low_seconds": answer.low_seconds, "high_seconds": answer.high_seconds}
    return {"unidentified": list(answer.unidentified), **bounds}
