"""Whether a goal is met, where, and by how much it is missed."""

from collections.abc import Callable

from tierscope.analysis.breakdown import Breakdown, SweepPoint, sweep_text
from tierscope.analysis.statistics import settled
from tierscope.analysis.wording import Finding
from tierscope.jsonable import JsonObject
from tierscope.spec.goal import AU, EPOCH, IO, Goal
from tierscope.units import about_seconds

GOAL_KINDS = ("goal_met", "goal_missed", "goal_unknown")

_VALUES: dict[str, Callable[[SweepPoint], float | None]] = {
    IO: lambda point: point.io.median,
    EPOCH: lambda point: point.epoch_seconds,
    AU: lambda point: point.au,
}
_NAMES = {IO: "io_seconds", EPOCH: "epoch_seconds", AU: "au"}
_NEEDED = {EPOCH: "the epoch's seconds of every rank", AU: "compute, and the epoch's seconds of every rank"}


def about_goal(breakdown: Breakdown, goal: Goal | None) -> list[Finding]:
    """Of the points that read the most data: one that reads less meets a goal for no reason of its own."""
    if goal is None:
        return []
    points = breakdown.groups[0].points
    reached = {index: value for index, point in enumerate(points) if (value := _VALUES[goal.kind](point)) is not None}
    about: JsonObject = {"goal_kind": goal.kind, "goal": goal.short, "goal_seconds": goal.seconds}
    if not reached:
        return [Finding("goal_unknown", {**about, "needed": _NEEDED[goal.kind]})]
    for index, value in reached.items():
        if goal.is_met(value):
            where = {"where": sweep_text(points[index].sweep), "reached": goal.shown(value)}
            return [Finding("goal_met", {**about, **where, **_numbers(goal, points[index], value)})]
    worse = -1.0 if goal.kind == AU else 1.0
    best = min(reached, key=lambda index: worse * settled(reached[index]))
    return [Finding("goal_missed", {**about, **_missed(goal, points[best], reached[best])})]


def _missed(goal: Goal, point: SweepPoint, value: float) -> JsonObject:
    by = abs(value - goal.value)
    numbers = {"over_seconds": by} if goal.kind != AU else {"under_percent": 100 * by}
    return {
        **numbers,
        "missed_by": f"{100 * by:.3g} percentage points" if goal.kind == AU else about_seconds(by),
        "where": sweep_text(point.sweep),
        "reached": goal.shown(value),
        **_numbers(goal, point, value),
        "bottleneck": _holding(goal, point),
    }


def _holding(goal: Goal, point: SweepPoint) -> str | None:
    """What to begin with: no storage makes an epoch shorter than what it has without waiting."""
    if goal.kind == EPOCH and point.unstalled_seconds is not None and not goal.is_met(point.unstalled_seconds):
        return "what is no I/O"
    return point.bottleneck


def _numbers(goal: Goal, point: SweepPoint, value: float) -> JsonObject:
    beside = {"slowest_au": point.slowest_au} if goal.kind == AU else {}
    return {_NAMES[goal.kind]: value, **beside}
