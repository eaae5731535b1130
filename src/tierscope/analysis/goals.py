"""Whether a goal is met, where, and by how much it is missed.

Where a goal lies inside the range or interval of the best point, it may be missed. Of what was measured the median decides all the same. So it does of what was
simulated, except where the system's figures do not identify that value: there only the bad end of the interval counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, sweep_text
from tierscope.analysis.simulated_intervals import au_interval
from tierscope.analysis.statistics import SIMULATED, Interval, settled
from tierscope.analysis.wording import BEYOND_STORAGE, Finding
from tierscope.jsonable import JsonObject
from tierscope.spec.goal import AU, EPOCH, IO, Goal

GOAL_KINDS = (
    *("goal_met", "goal_missed", "epoch_goal_met", "epoch_goal_missed", "au_goal_met", "au_goal_missed"),
    *("goal_unsure", "goal_unknown", "case_goal_missed", "case_epoch_goal_missed"),
)
_NEEDED = {EPOCH: "the epoch seconds of every rank", AU: "compute, and the epoch seconds of every rank"}
_SPANS = {"range": "range", "95%": "95% interval", SIMULATED: "interval"}
_PREFIX = {IO: "", EPOCH: "epoch_", AU: "au_"}


@dataclass(frozen=True, slots=True)
class _Reached:
    """What a point reaches: `bad` and `good` are the ends of its range or interval; the value itself, where it has none."""

    point: SweepPoint
    value: float
    bad: float
    good: float
    spread: Interval | None

    @property
    def is_measured(self) -> bool:
        return self.spread is None or self.spread.kind != SIMULATED

    def is_met(self, goal: Goal) -> bool:
        return goal.is_met(self.value if self.point.is_usable else self.bad)

    def is_certain(self, goal: Goal) -> bool:
        return goal.is_met(self.value) and goal.is_met(self.bad)

    def may_meet(self, goal: Goal) -> bool:
        guessed = self.is_measured or not self.point.is_usable
        return goal.is_met(self.value) or (guessed and goal.is_met(self.good))


def about_goal(breakdown: Breakdown, goal: Goal | None) -> list[Finding]:
    """Of each case, and there of the points that read the most data: one that reads less meets a goal for no reason of its own."""
    if goal is None:
        return []
    return [finding for group in _first_groups(breakdown) for finding in _of_group(group, goal)]


def is_goal_met(breakdown: Breakdown, goal: Goal) -> bool:
    """Whether every case meets it, at a point that fits; as `about_goal` says it."""
    return all(
        any(reached.is_met(goal) for reached in _reached(group.possible, goal)) for group in _first_groups(breakdown)
    )


def _first_groups(breakdown: Breakdown) -> Iterable[PointGroup]:
    """Of every case the one that reads the most."""
    return reversed({group.case: group for group in reversed(breakdown.groups)}.values())


def _reached(points: Iterable[SweepPoint], goal: Goal) -> list[_Reached]:
    return [reached for point in points if (reached := _at(point, goal)) is not None]


def _at(point: SweepPoint, goal: Goal) -> _Reached | None:
    """None: it is not known."""
    value = {IO: point.io.median, EPOCH: point.epoch_seconds, AU: point.au}[goal.kind]
    spread: Interval | None = {IO: point.io, EPOCH: point.epoch, AU: au_interval(point)}[goal.kind]
    if value is None:
        return None
    low, high = (value, value) if spread is None else (spread.low, spread.high)
    bad, good = (low, high) if goal.kind == AU else (high, low)
    return _Reached(point, value, bad, good, spread)


def _of_group(group: PointGroup, goal: Goal) -> list[Finding]:
    points = group.possible
    if not points:
        return []  # none fits, and another finding says that
    reached = _reached(points, goal)
    if not reached:
        return [Finding("goal_unknown", {"goal": goal.short, "needed": _NEEDED[goal.kind]})]
    if met := next((at for at in reached if at.is_certain(goal)), None):
        where = {"where": sweep_text(met.point.sweep)}
        return [Finding(f"{_PREFIX[goal.kind]}goal_met", {**_numbers(goal, met.point, met.value), **where})]
    worse = -1.0 if goal.kind == AU else 1.0
    unsure = [at for at in reached if at.may_meet(goal)]
    if unsure:
        nearest = min(unsure, key=lambda at: worse * settled(at.value))
        return [_unsure(goal, next((at for at in unsure if at.is_met(goal)), nearest), group.case)]
    best = min(reached, key=lambda at: worse * settled(at.value))
    missed = _missed(goal, best.point, best.value)
    if group.case is not None and goal.kind != AU:
        return [Finding(f"case_{_PREFIX[goal.kind]}goal_missed", {"case": group.case, **missed})]
    return [Finding(f"{_PREFIX[goal.kind]}goal_missed", missed)]


def _unsure(goal: Goal, at: _Reached, case: str | None) -> Finding:
    of_case = "" if case is None else f"case {case}, "
    evidence = {
        "goal": goal.short,
        "where": f"{of_case}{sweep_text(at.point.sweep)}",
        "value": goal.shown(at.value),
        "good": goal.shown(at.good),
        "bad": goal.shown(at.bad),
        "span": _SPANS[at.spread.kind] if at.spread else "range",
        "by": "measurement" if at.is_measured else "simulation",
        "decided": ("met" if at.is_met(goal) else "missed") if at.point.is_usable else None,
    }
    return Finding("goal_unsure", evidence)


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
