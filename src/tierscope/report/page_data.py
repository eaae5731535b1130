"""What the page computes with in the browser, as plain data."""

import base64
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tierscope.analysis.breakdown import Breakdown, sweep_text, value_text
from tierscope.analysis.statistics import ROUNDING
from tierscope.analysis.wording import WORDING
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.predict.ceilings import BUSY_SHARE, Ceiling, ceilings, unknown_classes
from tierscope.predict.goals import au_rows, epoch_rows, told_kinds
from tierscope.predict.processes import LIMITS, PointTimes, Processes, ProcessTimes
from tierscope.predict.whatif import LITTLE, WARNINGS
from tierscope.report.figures import class_marks
from tierscope.report.report_source import ReportSource
from tierscope.spec.goal import AU, EPOCH
from tierscope.units import about_seconds, format_fraction, format_seconds

SCHEMA_VERSION = 1
_MOST_AU_NUMBERS = 250_000
SLIDER = {"low": -50, "high": 400, "step": 5}  # percent


def live_data(source: ReportSource) -> JsonObject:
    """All that the estimate and the grid need in the browser. Floats that must be the same as here travel as base64."""
    points = source.processes.reduced().points
    exploration = source.exploration
    summary = _summary_order(source)
    slices = _slices(source.breakdown, summary)
    best = summary[source.breakdown.summary.index(source.breakdown.best)]
    varied = list(dict.fromkeys([*exploration.vary, *source.processes.classes]))[:2]
    varied *= 2 if len(varied) == 1 else 1  # a single class runs along both sides
    kinds = _kinds(source.processes)
    return {
        "schema_version": SCHEMA_VERSION,
        "classes": list(source.processes.classes),
        "marks": [{"tier": tier, "meta": meta} for _, tier, meta in class_marks(source.processes.classes)],
        "came": source.conditions.came,
        "axis": (_axis(source.breakdown) or "").replace("_", " "),
        "points": [_point(point, whole, kinds) for point, whole in zip(points, source.processes.points, strict=True)],
        "ranked_by": source.processes.ranked_by,
        "summary": summary,
        "slices": slices,
        "slice": next(index for index, part in enumerate(slices) if best in part["points"]),
        "ceilings": [_ceiling(each) for each in ceilings(source.processes)] if len(points) > 1 else [],
        "unknown_classes": unknown_classes(source.processes),
        "busy_share": BUSY_SHARE,
        "rounding": ROUNDING,
        "little": LITTLE,
        "wording": {kind: list(WORDING[kind]) for kind in WARNINGS},
        "goal": {
            "kind": exploration.goal.kind,
            "value": exploration.goal.value,
            "given": source.goal_given,
            "text": _goal_text(source),
            "kinds": list(kinds),
        },
        "grid": {"classes": varied, "percents": [_plain(percent) for percent in next(iter(exploration.vary.values()))]},
        "has_rates": len({point.sweep.get("cache_rate") for point in points}) > 1,
        "sliders": SLIDER,
        "limits": {"low": LIMITS[0], "high": LIMITS[1]},
        "improvements": _shown_first(source),
    }


def _shown_first(source: ReportSource) -> dict[str, float]:
    """Percent by class. What nobody asked for is left to the reader."""
    given = source.estimate.improvements if source.improvements_given else {}
    return {name: given.get(name, 0.0) for name in source.processes.classes}


def packed(values: Iterable[float]) -> str:
    """Little-endian doubles, in base64."""
    return base64.b64encode(np.fromiter(values, dtype="<f8").tobytes()).decode("ascii")


def _kinds(processes: Processes) -> tuple[str, ...]:
    """Kinds of goal that the page can judge: AU needs every rank, and a page does not hold millions of numbers."""
    known = told_kinds(processes)
    ranks = sum(len(times.ranks) for point in processes.points for times in point.epochs)
    return known if ranks * (3 + len(processes.classes)) <= _MOST_AU_NUMBERS else known[:2]


def _goal_text(source: ReportSource) -> str:
    """As it was given; a suggestion rounded."""
    goal = source.exploration.goal
    if goal.kind == AU:
        return format_fraction(goal.value)
    return (format_seconds if source.goal_given else about_seconds)(goal.value)


def _point(point: PointTimes, whole: PointTimes, kinds: tuple[str, ...]) -> JsonObject:
    """`whole`: the same with all its processes."""
    epochs = [
        {
            "repetition": times.repetition,
            "epoch": times.epoch,
            "ranks": times.ranks.tolist(),
            "seconds": packed(times.seconds.ravel()),
            **_clock(every, kinds),
        }
        for times, every in zip(point.epochs, whole.epochs, strict=True)
    ]
    sweep = {name: _plain(value) for name, value in point.sweep.items()}
    named = {"where": sweep_text(point.sweep), "at": _at(point.sweep), "group": point.group}
    return {"sweep": sweep, **named, "epochs": epochs}


def _clock(times: ProcessTimes, kinds: tuple[str, ...]) -> JsonObject:
    """What an epoch and AU are computed from: the shortest epoch and rows of it; rows of AU."""
    if EPOCH not in kinds:
        return {}
    floor, rows = epoch_rows(times)
    found = {"clock": packed([floor, *rows.ravel()])}
    return {**found, "au": packed(au_rows(times).ravel())} if AU in kinds else found


def _at(sweep: SweepValues) -> str:
    """The point in a column of its own, under the name of the key if it is the only one."""
    return ", ".join(value_text(*item) for item in sweep.items()) if len(sweep) < 2 else sweep_text(sweep)


def _ceiling(each: Ceiling) -> JsonObject:
    numbers = packed([each.per_second, each.share, *each.seconds])
    return {"class": each.class_name, "kind": each.kind, "where": each.where, "numbers": numbers}


def _plain(value: Any) -> Any:
    """A value that JSON can hold; a whole number without its point."""
    if isinstance(value, float):
        return (
            int(value) if value.is_integer() and abs(value) < 2**53 else value if math.isfinite(value) else str(value)
        )
    return value if isinstance(value, str | int | None) else str(value)


def _summary_order(source: ReportSource) -> list[int]:
    """For each point of the breakdown's summary, its index among those of the processes, which are ordered by cache rate."""
    places = {_values(point.sweep): index for index, point in enumerate(source.processes.points)}
    return [places[_values(point.sweep)] for point in source.breakdown.summary]


def _values(sweep: SweepValues, without: str | None = None) -> tuple[str, ...]:
    return tuple(repr(value) for name, value in sweep.items() if name != without)


def _axis(breakdown: Breakdown) -> str | None:
    """The key that runs along a figure."""
    keys = breakdown.sweep_keys
    return "cache_rate" if "cache_rate" in keys else keys[0] if keys else None


def _slices(breakdown: Breakdown, summary: list[int]) -> list[JsonObject]:
    """The points along the axis, for every combination of the other keys."""
    axis = _axis(breakdown)
    found: dict[tuple[str, ...], JsonObject] = {}
    for index, point in zip(summary, breakdown.summary, strict=True):
        others = {name: value for name, value in point.sweep.items() if name != axis}
        part = found.setdefault(_values(others), {"text": sweep_text(others), "points": [], "ticks": []})
        part["points"].append(index)
        part["ticks"].append("" if axis is None else value_text(axis, point.sweep[axis]))
    return list(found.values())
