"""Published measurements as a table: a system fitted to them, and predictions laid beside them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.errors import UserError
from tierscope.predict.dlio_results import read_results
from tierscope.predict.measured_table import MeasuredTable, read_table
from tierscope.predict.simulation import check_rates
from tierscope.predict.table_fit import (
    FARTHEST,
    FittedTable,
    TableFitSoFar,
    TableKey,
    fit_table,
    keys_of,
    model_error,
    steps_of,
)
from tierscope.predict.table_intervals import PredictedFigure, predict_points
from tierscope.predict.table_points import TablePoint, points_of
from tierscope.predict.table_workloads import refuse_other_workloads
from tierscope.predict.too_slow import TooSlow, too_slow
from tierscope.signals import stopped_by
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import Draw, KnownFigure, Number, numbers
from tierscope.spec.known import KnownSystem, drawn_systems, within_limits
from tierscope.spec.load import Loaded
from tierscope.spec.study import Study, System
from tierscope.units import counted
from tierscope.watch import Watch

_ASSUMED = 8  # draws of what is assumed


@dataclass(frozen=True, slots=True)
class CalibratedTable:
    """A system fitted to a table, and what it makes of the table itself."""

    table: MeasuredTable
    known: KnownSystem
    fitted: FittedTable
    figures: tuple[PredictedFigure, ...]
    too_slow: TooSlow | None = None  # None: it is about as fast as was measured
    stopped: str = ""  # by what it was interrupted: then it is the best fit until then


@dataclass(frozen=True, slots=True)
class ValidatedTable:
    table: MeasuredTable
    system: str
    figures: tuple[PredictedFigure, ...]


def read_measured(path: str, where: Sequence[str]) -> MeasuredTable:
    """A CSV file, or a folder of DLIO's or mlpstorage's results."""
    if not os.path.isdir(path):
        return read_table(path, where)
    if where:
        raise UserError(f"--where {where[0]}: {path} is a directory of results, not a table; remove --where")
    return read_results(path)


def calibrate_table(
    table: MeasuredTable, loaded: Loaded, watch: Watch, keys: Sequence[TableKey] | None = None
) -> CalibratedTable:
    study = loaded.study
    points = _points(table, study)
    tried = list(keys_of(points, study.system) if keys is None else keys)
    if table.mixed:
        watch.note(
            f"rows differ in {', '.join(table.mixed[:3])}: they are fitted as one system; choose those of one with --where"
        )
    watch.phase("calibrating", steps_of(tried), "searches")
    so_far, stopped = TableFitSoFar(), ""
    try:
        fitted = fit_table(points, study.system, watch.advance, tried, so_far, _assumed(loaded))
    except KeyboardInterrupt as error:
        if not so_far.values:
            raise
        fitted, stopped = so_far.fitted(study.system), stopped_by(error)
    known = _known(table, loaded, fitted)
    figures = predict_points(points, known.system, known)
    return CalibratedTable(table, known, fitted, figures, too_slow(points, known.system, figures), stopped)


def validate_table(table: MeasuredTable, loaded: Loaded, watch: Watch) -> ValidatedTable:
    study = loaded.study
    points = _points(table, study)
    watch.phase("simulating", len(points), "points")
    figures: list[PredictedFigure] = []
    for point in points:
        figures += predict_points([point], study.system, loaded.known)
        watch.advance(1)
    return ValidatedTable(table, loaded.known.name if loaded.known else study.study, tuple(figures))


def _points(table: MeasuredTable, study: Study) -> tuple[TablePoint, ...]:
    if not table.points:
        raise UserError(f"{table.name}: no row has a measurement; fill in first batches, AU, seconds or throughputs")
    refuse_other_workloads(table.name, table.workloads, study.study)
    check_rates(study)
    points = points_of(table, study)
    if not any(point.tells for point in points):
        raise UserError(
            f"{table.name}: AU needs more than one step, and {study.study} has one for each rank; raise workload.dataset.num_files_train, "
            "or add a column files or steps"
        )
    return points


def _known(table: MeasuredTable, loaded: Loaded, fitted: FittedTable) -> KnownSystem:
    """The study's system with what was fitted; figures of others stay, where the system still has them."""
    largest = table.points[-1]
    count = sum(len(point.figures) for point in table.points)
    system = replace(
        fitted.system,
        nodes=largest.nodes,
        ranks_per_node=largest.ranks // largest.nodes,
        model_error=min(1.0, model_error(fitted.misfit, count, len(fitted.values))),
    )
    values = numbers(system)
    before = loaded.known.figures if loaded.known else {}
    figures = {
        path: figure
        for path, figure in before.items()
        if values.get(path) == figure.value and path not in fitted.values
    }
    text = (
        f"to {counted(count, 'figure')} of {os.path.basename(table.name) or table.name} ({_span(table)}), by tierscope calibrate; "
        f"misfit {100 * fitted.misfit:.1f} %. Values between low and high fit about as well, all else unchanged"
    )
    for path, value in fitted.values.items():
        low, high = fitted.ends[path]
        low = value / 64 if low is None and high is None else low
        figures[path] = KnownFigure(value, "fitted", text[:900], low, high)
    name = loaded.known.name if loaded.known else loaded.study.study
    draws = _draws(fitted, numbers(loaded.study.system))
    for path in sorted({path for draw in draws for path in draw} - figures.keys()):
        if values[path] is not None:  # in other fits it is more than nothing
            drawn = [draw[path] or 0.0 for draw in draws]
            figures[path] = KnownFigure(values[path] or 0.0, "fitted", text[:900], min(drawn), max(drawn))
    ranks = tuple(sorted({point.ranks for point in table.points}))
    served = {key: (float(f"{value:.4g}"),) for key, value in fitted.served.items()}
    measured = CalibratedRange(ranks=ranks, **served)
    return within_limits(KnownSystem(f"{name[:50]}-fitted", system, figures, draws, measured))


def _assumed(loaded: Loaded) -> list[tuple[System, dict[str, float]]]:
    """The study's system with other values of what is assumed of it, which no fit knows, and these values."""
    if loaded.known is None:
        return []
    assumed = {path: figure for path, figure in loaded.known.figures.items() if figure.kind == "assumed"}
    systems = drawn_systems(loaded.study.system, replace(loaded.known, draws=(), figures=assumed))[:_ASSUMED]
    before = numbers(loaded.study.system)
    values = [{path: numbers(system)[path] for path in assumed} for system in systems]
    return [
        (system, {path: value for path, value in drawn.items() if value is not None and value != before[path]})
        for system, drawn in zip(systems, values, strict=True)
    ]


def _draws(fitted: FittedTable, before: Mapping[str, Number | None]) -> tuple[Draw, ...]:
    """The fits that are about as good, each with all keys. A limit that the system has and another fit has not is far away there."""
    paths = sorted({path for values in fitted.alike for path in values})

    def left_out(path: str) -> Number | None:
        return fitted.values[path] * FARTHEST if before[path] is None and path in fitted.values else before[path]

    return tuple({path: values.get(path, left_out(path)) for path in paths} for values in fitted.alike)


def _span(table: MeasuredTable) -> str:
    ranks = [point.ranks for point in table.points]
    return counted(ranks[0], "rank") if ranks[0] == ranks[-1] else f"{ranks[0]}–{ranks[-1]} ranks"
