"""Whether a study has the compute that an AU goal is about: without any, there is no utilisation to reach."""

from collections.abc import Iterable

from tierscope.errors import UserError
from tierscope.spec.goal import AU
from tierscope.spec.study import Point, Study


def refuse_au_without_compute(study: Study, points: Iterable[Point]) -> None:
    """Before anything is run for such a goal."""
    if study.goal is None or study.goal.kind != AU or any(map(_computes, points)):
        return
    raise UserError(
        f"{study.study}: an AU goal needs compute, but the study has none; set workload.train.computation_time, or goal: {{epoch: 10 min}}"
    )


def _computes(point: Point) -> bool:
    workload = point.study.workload
    return bool(
        workload.train.computation_time or workload.train.computation_time_stdev or workload.model.network is not None
    )
