"""The model's what-if against doing it: a station of the demo is made 50 % faster, and measured again."""

import os
from collections.abc import Sequence

from tierscope.commands.calibrate import cases_of
from tierscope.commands.estimate import points_of
from tierscope.predict.fit import fit
from tierscope.predict.modelled import answer
from tierscope.predict.whatif import estimate
from validation.measuring import measure, median, scratch
from validation.table import Row

CASES: dict[str, tuple[dict[str, float], tuple[str, ...]]] = {
    "GFS-META +50 %": ({"GFS-META": 50.0}, ("gfs.metadata_ops=600/s",)),
    "LFS-READ +50 %": ({"LFS-READ": 50.0}, ("lfs.read_ops=720/s", "lfs.bandwidth=150 MiB/s")),
}
_MEDIAN_GOAL, _LARGEST_GOAL = 5.0, 12.0


def rows(short: bool) -> list[Row]:
    rates = "[0%, 50%, 100%]" if short else "[0%, 10%, 20%, 30%, 40%, 50%, 60%, 70%, 80%, 90%, 100%]"
    sweep = ("lfs.capacity=null", "sweep={}", f"sweep.cache_rate={rates}")
    found: list[Row] = []
    model: list[float] = []
    simple: list[float] = []
    with scratch() as folder:
        base = os.path.join(folder, "base")
        before = measure("demo", sweep, base)
        measured = cases_of([base])
        fitted = fit(measured.cases).system(measured.study.system)
        for name, (improvements, settings) in CASES.items():
            again = measure("demo", [*sweep, *settings], os.path.join(folder, name.replace(" ", "")))
            guess = estimate(before.times, before.breakdown, improvements)
            answers = answer(points_of(measured, guess), fitted, improvements)
            truth = {repr(point.sweep): point.io.median for point in again.breakdown.summary}
            ours = [100 * abs(each.model_seconds / truth[repr(each.sweep)] - 1) for each in answers.points]
            theirs = [100 * abs(each.simple_seconds / truth[repr(each.sweep)] - 1) for each in answers.points]
            model, simple = model + ours, simple + theirs
            found.append(Row("rerun", f"{name}, {len(ours)} points: model, median and largest error", _both(ours), note=f"simple scaling: {_both(theirs)}"))  # fmt: skip
    return [*found, *_overall(model, simple)]


def _both(errors: Sequence[float]) -> str:
    return f"{median(errors):.1f} % / {max(errors):.1f} %"


def _overall(model: Sequence[float], simple: Sequence[float]) -> list[Row]:
    return [
        Row("rerun", "model, median error", f"{median(model):.1f} %", f"≤ {_MEDIAN_GOAL:g} %", median(model) <= _MEDIAN_GOAL, f"simple scaling: {median(simple):.1f} %"),
        Row("rerun", "model, largest error", f"{max(model):.1f} %", f"≤ {_LARGEST_GOAL:g} %", max(model) <= _LARGEST_GOAL, f"simple scaling: {max(simple):.1f} %"),
    ]  # fmt: skip
