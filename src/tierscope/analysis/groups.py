"""Groups of points that are ranked by themselves (a case, or all that read the same amount of data): their names, and each as a result of its own."""

from collections import Counter
from dataclasses import replace

from tierscope.analysis.breakdown import Breakdown, PointGroup, sweep_text
from tierscope.jsonable import SweepValues, point_key


def group_names(breakdown: Breakdown) -> list[str]:
    """Of every group, in order: its case, or the swept values that only its points have, or what they read. All differ; one group has no name."""
    groups = breakdown.groups
    if len(groups) < 2:
        return ["" for _ in groups]
    of_case = Counter(group.case for group in groups)
    varying = _varying(breakdown)
    names = [
        group.case
        if group.case is not None and of_case[group.case] == 1
        else sweep_text(held)
        if (held := _held(group, varying))
        else _amount(group)
        for group in groups
    ]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({_amount(group)}, {number} of {len(names)})"
        for number, (name, group) in enumerate(zip(names, groups, strict=True), start=1)
    ]


def _varying(breakdown: Breakdown) -> set[str]:
    """Keys of which points have different values."""
    first = breakdown.summary[0].sweep
    return {key for key in first if any(point.sweep[key] != first[key] for point in breakdown.summary)}


def _held(group: PointGroup, varying: set[str]) -> SweepValues:
    """Swept values that all points of the group have, and others have not."""
    best = group.best.sweep
    return {
        name: value
        for name, value in best.items()
        if name in varying and all(point.sweep[name] == value for point in group.points)
    }


def _amount(group: PointGroup) -> str:
    return f"{group.amount_text} per epoch"


def group_alone(breakdown: Breakdown, group: PointGroup) -> Breakdown:
    """The group as if nothing else had been run; all of it where there is only one."""
    if len(breakdown.groups) == 1:
        return breakdown
    own = {point_key(point.sweep) for point in group.points}
    points = tuple(point for point in breakdown.points if point_key(point.sweep) in own)
    best, equal = group.best, group.smallest_equal
    return replace(breakdown, points=points, summary=group.points, best=best, smallest_equal=equal, groups=(group,))


def same_group(breakdown: Breakdown, group: PointGroup) -> PointGroup:
    """The group of these points in another breakdown of the same ones: after improvements, for instance."""
    wanted = group.points[0].sweep
    return next(other for other in breakdown.groups if any(point.sweep == wanted for point in other.points))
