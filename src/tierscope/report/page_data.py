"""What the page computes with in the browser, as plain data."""

import base64
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tierscope.analysis.breakdown import Breakdown, SweepPoint, sweep_text, value_text
from tierscope.analysis.cases import case_of, without_case
from tierscope.analysis.statistics import ROUNDING
from tierscope.analysis.wording import WORDING
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.predict.ceilings import BUSY_SHARE, Ceiling, ceilings, unknown_classes
from tierscope.predict.goals import au_rows, epoch_rows, told_kinds
from tierscope.predict.processes import LIMITS, PointTimes, Processes, ProcessTimes
from tierscope.predict.whatif import LITTLE, WARNINGS
from tierscope.report.drawn.bars import BreakdownPanel
from tierscope.report.drawn.panels import MOST_PANELS
from tierscope.report.drawn.view import JOINT, View, sentences
from tierscope.report.figures import class_marks
from tierscope.report.report_source import ReportPart, ReportSource
from tierscope.report.svg import label
from tierscope.spec.goal import AU, EPOCH, Goal
from tierscope.spec.prices import LEAST_PRICE, MOST_PRICE
from tierscope.units import BYTE_UNITS, about_seconds, format_fraction, format_seconds

SCHEMA_VERSION = 1
_MOST_AU_NUMBERS = 250_000
SLIDER = {"low": -50, "high": 400, "step": 5}  # percent


def live_data(source: ReportSource) -> JsonObject:
    """All that the estimate and the grid need in the browser. Floats that must be the same as here travel as base64."""
    points = source.processes.reduced().points
    kinds = _kinds(source.processes)
    places = {_values(point.sweep): index for index, point in enumerate(source.processes.points)}
    cases = {case_of(part.breakdown.best.sweep): part.processes for part in source.parts}
    return {
        "schema_version": SCHEMA_VERSION,
        "classes": list(source.processes.classes),
        "marks": [{"tier": tier, "meta": meta} for _, tier, meta in class_marks(source.processes.classes)],
        "came": source.conditions.came,
        "points": [
            {**_point(point, whole, kinds), "held": _held(source, point.sweep)}
            for point, whole in zip(points, source.processes.points, strict=True)
        ],
        "priced_tiers": _priced_tiers(source),
        "price_units": {unit: BYTE_UNITS[unit] for unit in ("GiB", "TiB", "GB", "TB")},
        "price_limits": {"least": LEAST_PRICE, "most": MOST_PRICE},
        "most_panels": MOST_PANELS,
        "ranked_by": source.processes.ranked_by,
        "cases": [_case(processes, places) for processes in cases.values()],
        "parts": [_part(source, part, places, list(cases)) for part in source.parts],
        "busy_share": BUSY_SHARE,
        "rounding": ROUNDING,
        "little": LITTLE,
        "wording": {kind: list(WORDING[kind]) for kind in WARNINGS},
        "goal": {"given": source.goal_given, "kinds": list(kinds)},
        "sliders": SLIDER,
        "limits": {"low": LIMITS[0], "high": LIMITS[1]},
        "improvements": _shown_first(source),
    }


_Places = dict[
    tuple[str, ...], int
]  # values of a point → its index among those of all processes, which are ordered by cache rate


def _case(processes: Processes, places: _Places) -> JsonObject:
    """What every class was seen to serve: another case may be another system."""
    points = processes.points
    return {
        "points": [places[_values(point.sweep)] for point in points],
        "ceilings": [_ceiling(ceiling) for ceiling in ceilings(processes)] if len(points) > 1 else [],
        "unknown_classes": unknown_classes(processes),
    }


def _part(source: ReportSource, part: ReportPart, places: _Places, cases: list[str | None]) -> JsonObject:
    """Points that are ranked by themselves, and what is shown of them at first."""
    breakdown, exploration = part.breakdown, part.exploration
    summary = [places[_values(point.sweep)] for point in breakdown.summary]
    slices = _slices(breakdown, summary)
    best = summary[breakdown.summary.index(breakdown.best)]
    varied = list(dict.fromkeys([*exploration.vary, *source.processes.classes]))[:2]
    varied *= 2 if len(varied) == 1 else 1  # a single class runs along both sides
    goal = exploration.goal
    return {
        "name": part.name,
        "case": cases.index(case_of(breakdown.best.sweep)),
        "points": sorted(places[_values(point.sweep)] for point in part.processes.comparable().points),
        "summary": summary,
        "spreads": [[point.io.low, point.io.high] if point.io.has_spread else None for point in breakdown.summary],
        "caption": _measured_caption(source, part),
        "unfit": "" if breakdown.best.is_possible else _unfit(breakdown.best),
        "axis": _axis(breakdown),
        "slices": slices,
        "slice": next(index for index, part in enumerate(slices) if best in part["points"]),
        "goal": {"kind": goal.kind, "value": goal.value, "text": _goal_text(goal, source.goal_given)},
        "grid": {"classes": varied, "percents": [_plain(percent) for percent in next(iter(exploration.vary.values()))]},
        "has_rates": len({point.sweep.get("cache_rate") for point in breakdown.summary}) > 1,
    }


def _measured_caption(source: ReportSource, part: ReportPart) -> str:
    alone = source.of_part(part)
    panel = BreakdownPanel(alone, View.of(alone), (alone,))
    return sentences(source, View(None, (), {}), panel.what(alone))


def _unfit(best: SweepPoint) -> str:
    """Why nothing of a part can be recommended."""
    return f"at {sweep_text(best.sweep)}, {best.feasibility.text}" if best.feasibility else ""


def _held(source: ReportSource, sweep: SweepValues) -> dict[str, int]:
    """Bytes on near tiers over all nodes, as `explore` prices them; without tiers of which they are not known."""
    feasibility = source.times.feasibility.get(tuple(sweep.values()))
    rooms = ((tier, feasibility.on(tier)) for tier in source.near_tiers) if feasibility else ()
    return {tier: room.bytes_in_all for tier, room in rooms if room}


def _priced_tiers(source: ReportSource) -> list[str]:
    """Those that hold something at one point at least, and of which that is known at all: what is not known has no price."""
    held = [_held(source, point.sweep) for point in source.processes.points]
    return [
        tier
        for tier in source.near_tiers
        if all(tier in tier_bytes for tier_bytes in held) and any(tier_bytes[tier] for tier_bytes in held)
    ]


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


def _goal_text(goal: Goal, given: bool) -> str:
    """As it was given; a suggestion rounded."""
    if goal.kind == AU:
        return format_fraction(goal.value)
    return (format_seconds if given else about_seconds)(goal.value)


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
    named = {"where": sweep_text(point.sweep), "at": _at(without_case(point.sweep) or point.sweep)}
    return {"sweep": sweep, **named, "epochs": epochs}


def _clock(times: ProcessTimes, kinds: tuple[str, ...]) -> JsonObject:
    """What an epoch and AU are computed from: the shortest epoch and rows of it; rows of AU."""
    if EPOCH not in kinds:
        return {}
    floor, rows = epoch_rows(times)
    clock = {"clock": packed([floor, *rows.ravel()])}
    return {**clock, "au": packed(au_rows(times).ravel())} if AU in kinds else clock


def _at(sweep: SweepValues) -> str:
    """The point in a column of its own, under the name of the key if it is the only one."""
    return ", ".join(value_text(*item) for item in sweep.items()) if len(sweep) < 2 else sweep_text(sweep)


def _ceiling(ceiling: Ceiling) -> JsonObject:
    numbers = packed([ceiling.per_second, ceiling.share, *ceiling.seconds])
    return {"class": ceiling.class_name, "kind": ceiling.kind, "where": ceiling.where, "numbers": numbers}


def _plain(value: Any) -> Any:
    """A value that JSON can hold; a whole number without its point."""
    if isinstance(value, float):
        return (
            int(value) if value.is_integer() and abs(value) < 2**53 else value if math.isfinite(value) else str(value)
        )
    return value if isinstance(value, str | int | None) else str(value)


def _values(sweep: SweepValues, without: str | None = None) -> tuple[str, ...]:
    return tuple(repr(value) for name, value in sweep.items() if name != without)


def _axis(breakdown: Breakdown) -> str:
    """What runs along a figure: a key, or all keys that only change together."""
    return JOINT.join(key.replace("_", " ") for key in _along(breakdown))


def _along(breakdown: Breakdown) -> tuple[str, ...]:
    """The cache rate, or the first key of which points differ that are alike otherwise; where there are no such points, all keys."""
    points = [point.sweep for point in breakdown.summary]
    keys = [key for key in without_case(breakdown.best.sweep) if len({repr(sweep[key]) for sweep in points}) > 1]
    for key in sorted(keys, key=lambda key: key != "cache_rate"):
        if len({_values(sweep, key) for sweep in points}) < len(points):
            return (key,)
    return tuple(keys) or tuple(without_case(breakdown.best.sweep))[:1]


def _slices(breakdown: Breakdown, summary: list[int]) -> list[JsonObject]:
    """The points along the axis, for every combination of the other keys."""
    along = _along(breakdown)
    slices: dict[tuple[str, ...], JsonObject] = {}
    for index, point in zip(summary, breakdown.summary, strict=True):
        others = {name: value for name, value in without_case(point.sweep).items() if name not in along}
        part = slices.setdefault(_values(others), {"text": sweep_text(others), "points": [], "ticks": []})
        part["points"].append(index)
        part["ticks"].append(JOINT.join(label(key, point.sweep[key]) for key in along))
    return list(slices.values())
