"""Cases of a study in its result: which points are of which case. No point of one is ranked against a point of another."""

from collections.abc import Sequence
from typing import Any, TypeVar

from tierscope.analysis.times import ClassTimes
from tierscope.jsonable import SweepValues
from tierscope.spec.sweep import CASE
from tierscope.trace.description import StudyRun

T = TypeVar("T")


def case_of(values: SweepValues) -> str | None:
    """The name of a point's case; None: the study has no cases."""
    return str(values[CASE]) if CASE in values else None


def without_case(values: SweepValues) -> SweepValues:
    return {name: value for name, value in values.items() if name != CASE}


def by_case(times: ClassTimes, points: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """Places of points, given by their swept values, case by case in the order of the study; all together where there are no cases."""
    if CASE not in times.sweep:
        return [list(range(len(points)))]
    runs = sorted((about for about in times.about if isinstance(about, StudyRun)), key=lambda about: about.point)
    found: dict[str | None, list[int]] = {case_of(about.sweep): [] for about in runs}
    for place, values in enumerate(points):
        found.setdefault(str(values[times.sweep.index(CASE)]), []).append(place)
    return [places for places in found.values() if places]


def in_case_order(times: ClassTimes, found: Sequence[tuple[SweepValues, T]]) -> list[tuple[SweepValues, T]]:
    """What was found at points, by their swept values, case by case."""
    places = by_case(times, [tuple(values.values()) for values, _ in found])
    return [found[place] for case in places for place in case]
