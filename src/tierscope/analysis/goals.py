"""Whether a goal is met, where, and by how much it is missed."""

from collections.abc import Callable

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, sweep_text
from tierscope.analysis.statistics import settled
from tierscope.analysis.wording import BEYOND_STORAGE, Finding
from tierscope.jsonable import JsonObject
from tierscope.spec.goal import AU, EPOCH, IO, Goal

GOAL_KINDS = (
    *("goal_met", "goal_missed", "epoch_goal_met", "epoch_goal_missed", "au_goal_met", "au_goal_missed"),
    *("goal_unknown", "case_goal_missed", "case_epoch_goal_missed"),
)
_VALUES: dict[str, Callable[[SweepPoint], float | None]] = {
    IO: lambda point: point.io.median,
    EPOCH: lambda point: point.epoch_seconds,
    AU: lambda point: point.au,
}
_NEEDED = {EPOCH: "the epoch seconds of every rank", AU: "compute, and the epoch seconds of every rank"}
_PREFIX = {IO: "", EPOCH: "epoch_", AU: "au_"}


def about_goal(breakdown: Breakdown, goal: Goal | None) -> list[Finding]:
    """Of each case, and there of the points that read the most data: one that reads less meets a goal for no reason of its own."""
    if goal is None:
        return []
    first = {group.case: group for group in reversed(breakdown.groups)}  # of every case
    return [finding for group in reversed(first.values()) for finding in _of_group(group, goal)]


def is_goal_met(breakdown: Breakdown, goal: Goal) -> bool:
    """Whether every case meets it, at a point that fits; as `about_goal` says it."""
    first = {group.case: group for group in reversed(breakdown.groups)}
    return all(
        any((value := _VALUES[goal.kind](point)) is not None and goal.is_met(value) for point in group.possible)
        for group in first.values()
    )


def _of_group(group: PointGroup, goal: Goal) -> list[Finding]:
    points = group.possible
    if not points:
        return []  # none fits, and another finding says that
    reached = {index: value for index, point in enumerate(points) if (value := _VALUES[goal.kind](point)) is not None}
    if not reached:
        return [Finding("goal_unknown", {"goal": goal.short, "needed": _NEEDED[goal.kind]})]
    for index, value in reached.items():
        if goal.is_met(value):
            where = {"where": sweep_text(points[index].sweep)}
            return [Finding(f"{_PREFIX[goal.kind]}goal_met", {**_numbers(goal, points[index], value), **where})]
    worse = -1.0 if goal.kind == AU else 1.0
    best = min(reached, key=lambda index: worse * settled(reached[index]))
    missed = _missed(goal, points[best], reached[best])
    if group.case is not None and goal.kind != AU:
        return [Finding(f"case_{_PREFIX[goal.kind]}goal_missed", {"case": group.case, **missed})]
    return [Finding(f"{_PREFIX[goal.kind]}goal_missed", missed)]


def _numbers(goal: Goal, point: SweepPoint, value: float) -> JsonObject:
    if goal.kind == AU:
        slowest = None if point.slowest_au is None else 100 * point.slowest_au
        return {"goal_percent": 100 * goal.value, "percent": 100 * value, "slowest_percent": slowest}
    return {"goal_seconds": goal.value, "io_seconds" if goal.kind == IO else "epoch_seconds": value}


def _missed(goal: Goal, point: SweepPoint, value: float) -> JsonObject:
    by = abs(value - goal.value)
    numbers = _numbers(goal, point, value)
    if goal.kind == AU:
        return {**numbers, "under_percent": 100 * by, "where": sweep_text(point.sweep)}
    return {**numbers, "over_seconds": by, "bottleneck": _holding(goal, point)}


def _holding(goal: Goal, point: SweepPoint) -> str | None:
    """What to begin with: no storage makes an epoch shorter than what it has without waiting."""
    if goal.kind == EPOCH and point.unstalled_seconds is not None and not goal.is_met(point.unstalled_seconds):
        return BEYOND_STORAGE
    return point.bottleneck
