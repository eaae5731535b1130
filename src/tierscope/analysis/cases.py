"""Cases of a study in its result: which points are of which case. No point of one is ranked against a point of another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from tierscope.analysis.times import ClassTimes
from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.spec.sweep import CASE
from tierscope.trace.description import StudyRun
from tierscope.units import closest

T = TypeVar("T")


def case_of(values: SweepValues) -> str | None:
    """The name of a point's case; None: the study has no cases."""
    return str(values[CASE]) if CASE in values else None


def without_case(values: SweepValues) -> SweepValues:
    return {name: value for name, value in values.items() if name != CASE}


def case_names(times: ClassTimes) -> list[str]:
    """In the order of the study, of a CSV in that of its rows; none: there are no cases."""
    if CASE not in times.sweep:
        return []
    runs = sorted((about for about in times.about if isinstance(about, StudyRun)), key=lambda about: about.point)
    named = [case_of(about.sweep) for about in runs] or times.table[CASE].unique(maintain_order=True).to_list()
    return list(dict.fromkeys(str(name) for name in named))


def of_case(times: ClassTimes, name: str | None) -> ClassTimes:
    """Only one case of a study, as if no other had been run; None: all of them."""
    if name is None:
        return times
    known = case_names(times)
    if name not in known:
        guess = closest(name, known) if known else None
        hint = f"did you mean {guess}?" if guess else f"choose from {', '.join(known)}"
        raise UserError(
            f"--case {name}: no such case; {hint}"
            if known
            else f"--case {name}: this result has no cases; remove --case"
        )
    kept = pl.col(CASE).cast(pl.String) == name
    runs = tuple(run for run in times.runs if str(run.about.sweep.get(CASE)) == name)
    table, epochs, background = (
        part if part.is_empty() else part.filter(kept) for part in (times.table, times.epochs, times.background)
    )
    return replace(times, table=table, epochs=epochs, background=background, runs=runs)


def by_case(times: ClassTimes, points: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """Places of points, given by their swept values, case by case in the order of the study; all together where there are no cases."""
    if CASE not in times.sweep:
        return [list(range(len(points)))]
    by_name: dict[str, list[int]] = {name: [] for name in case_names(times)}
    for place, values in enumerate(points):
        by_name.setdefault(str(values[times.sweep.index(CASE)]), []).append(place)
    return [places for places in by_name.values() if places]


def in_case_order(times: ClassTimes, points: Sequence[tuple[SweepValues, T]]) -> list[tuple[SweepValues, T]]:
    """What was found at points, by their swept values, case by case."""
    places = by_case(times, [tuple(values.values()) for values, _ in points])
    return [points[place] for case in places for place in case]
