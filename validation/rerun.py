"""The model's what-if against doing it: a station of the demo is made 50 % faster, and measured again."""

import os
from collections.abc import Sequence

from tierscope.commands.calibrate import cases_of
from tierscope.commands.estimate import points_of
from tierscope.predict.choosing import fit
from tierscope.predict.modelled import answer
from tierscope.predict.whatif import estimate
from tierscope.spec.sweep import points
from validation.lateness import Lateness, judged, lateness_percent
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
    table_rows: list[Row] = []
    model: list[float] = []
    simple: list[float] = []
    with scratch() as folder:
        base = os.path.join(folder, "base")
        with Lateness() as lateness:
            before = measure("demo", sweep, base)
        lates = [lateness.seen]
        measured = cases_of([base])
        fitted = fit(measured.cases).system(measured.study.system)
        for name, (improvements, settings) in CASES.items():
            with Lateness() as lateness:
                again = measure("demo", [*sweep, *settings], os.path.join(folder, name.replace(" ", "")))
            lates.append(lateness.seen)
            guess = estimate(before.times, before.breakdown, improvements)
            answers = answer(points_of(measured, guess), fitted, improvements)
            truth = {repr(point.sweep): point.io.median for point in again.breakdown.summary}
            ours = [100 * abs(point.model_seconds / truth[repr(point.sweep)] - 1) for point in answers.points]
            theirs = [100 * abs(point.simple_seconds / truth[repr(point.sweep)] - 1) for point in answers.points]
            model, simple = model + ours, simple + theirs
            table_rows.append(Row("rerun", f"{name}, {len(ours)} points: model, median and largest error", _both(ours), note=f"simple scaling: {_both(theirs)}"))  # fmt: skip
        assert before.study is not None
        study = next(iter(points(before.study))).study
        late = max(lateness_percent(study, seen) for seen in lates)
    return [*table_rows, *_overall(model, simple, late)]


def _both(errors: Sequence[float]) -> str:
    return f"{median(errors):.1f} % / {max(errors):.1f} %"


def _overall(model: Sequence[float], simple: Sequence[float], late: float) -> list[Row]:
    table_rows = []
    for what, figure, goal in (("median", median, _MEDIAN_GOAL), ("largest", max, _LARGEST_GOAL)):
        ours, theirs = (float(figure(errors)) for errors in (model, simple))
        note = f"simple scaling: {theirs:.1f} %; lateness up to {late:.1f} %"
        row = Row("rerun", f"model, {what} error", f"{ours:.1f} %", f"≤ {goal:g} %", note=note)
        table_rows.append(judged(row, -ours, goal, 0.0, late))
    return table_rows
