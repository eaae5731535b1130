"""The report of a result: what its page and figures are made of, and where they go."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.beside import Beside, ComparedResult, lay_beside
from tierscope.commands.characterise import characterise_analysis
from tierscope.dataset.holdings import Holdings
from tierscope.errors import UserError
from tierscope.output import manifest
from tierscope.output.store import RunStore
from tierscope.predict.explore import explore
from tierscope.predict.goals import is_told, refuse_untold
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Sensitivity, estimate, sensitivity
from tierscope.report.drawn.character import NAMES as CHARACTER_FIGURES
from tierscope.report.drawn.character import draw_character
from tierscope.report.drawn.training import NAMES as TRAINING_FIGURES
from tierscope.report.drawn.training import draw_training
from tierscope.report.figures import figures
from tierscope.report.folder import WrittenReport, figure_files, put_files
from tierscope.report.page import page
from tierscope.report.png import png_problem
from tierscope.report.report_source import ReportSource
from tierscope.spec import dump
from tierscope.spec.goal import IO, Goal
from tierscope.spec.study import Study
from tierscope.units import about_bytes, counted

GRID = tuple(float(percent) for percent in range(0, 201, 10))
_PAGE = "report.html"
_BESIDE = "beside"  # the figure that only some reports have
_SHOWN_IMPROVEMENT = 50.0
_SUGGESTED_GOAL = 0.8  # of the best, where nobody gave one


def write_report(
    analysis: Analysis,
    folder: str,
    goal: Goal | None,
    improvements: Mapping[str, float],
    beside: Beside | None = None,
    result: str | None = None,
) -> WrittenReport:
    """The page and its figures, into a directory that is ours. `result`: the one that was analysed, if not there; its traces tell how it reads."""
    source = replace(source_of(analysis, goal, improvements), beside=beside)
    source = _with_character(source, analysis, result or folder)
    drawn = [*figures(source), *draw_training(source), *draw_character(source)]
    names = {_BESIDE, *CHARACTER_FIGURES, *TRAINING_FIGURES, *(figure.name for figure in drawn)}
    files = {_PAGE: page(source, drawn), **figure_files(drawn)}
    paths = put_files(folder, files, names, fix="'tierscope report' with --out writes it elsewhere")
    missing = tuple(figure.name for figure in drawn if figure.svg is None)
    return WrittenReport(paths[0], tuple(paths[1:]), missing, png_problem())


def _with_character(source: ReportSource, analysis: Analysis, result: str) -> ReportSource:
    """How the best point's run reads; a CSV has no run, and what is damaged is left out: `characterise` says what is wrong with it."""
    if not analysis.times.about or not RunStore(result).finished():
        return source
    try:
        found = characterise_analysis(result, analysis)
    except UserError:
        return source
    return replace(source, character=found.character, character_where=found.where)


def report_folder(result: str, out: str | None) -> str:
    """Where the report of a result goes, claimed: beside the runs; of a CSV, into a directory of its own."""
    if out == "":
        raise UserError("--out is empty; give a directory, or leave it out")
    if os.path.isdir(result) and (out is None or os.path.abspath(out) == os.path.abspath(result)):
        return result
    folder = os.path.abspath(out or f"{os.path.splitext(result)[0]}-report")
    manifest.claim(folder, "report")
    return folder


def source_of(analysis: Analysis, goal: Goal | None, improvements: Mapping[str, float]) -> ReportSource:
    """Without a goal or improvements to show, such that show something: a fifth less, and half as much again of what helps most."""
    processes = Processes.of(analysis.times)
    helping = sorted(sensitivity(processes), key=_gain)
    shown = dict(improvements) or {helping[0].class_name: _SHOWN_IMPROVEMENT}
    if goal is not None:
        refuse_untold(analysis.times, goal)
    elif analysis.goal is not None and is_told(analysis.times, analysis.goal):
        goal = analysis.goal
    wanted = goal or Goal(IO, _SUGGESTED_GOAL * analysis.breakdown.best.io.median)
    study, points = analysis.study, analysis.breakdown.summary
    holdings = Holdings(study) if study else None
    vary = {each.class_name: GRID for each in helping[:2]}
    return ReportSource(
        name=analysis.name,
        times=analysis.times,
        breakdown=analysis.breakdown,
        findings=analysis.findings,
        conditions=analysis.conditions,
        processes=processes,
        estimate=estimate(analysis.times, analysis.breakdown, shown),
        improvements_given=bool(improvements),
        exploration=explore(processes, wanted, vary),
        goal_given=goal is not None,
        held={index: holdings.at(point.sweep) for index, point in enumerate(points)} if holdings else None,
        workload=_workload(study) if study else "",
        study_yaml=dump.to_yaml(study) if study else None,
        training=analysis.training,
    )


def beside_of(first: Analysis, second: Analysis, places: tuple[str, str]) -> Beside:
    """`places`: what the user called them."""
    sides = [
        ComparedResult.of(each.name, place, each.conditions, from_csv=not each.times.about)
        for each, place in zip((first, second), places, strict=True)
    ]
    differing = _differing(first.study, second.study) if first.study and second.study else ()
    return lay_beside(first.breakdown, second.breakdown, (sides[0], sides[1]), differing)


def _differing(first: Study, second: Study) -> Iterator[str]:
    """Keys of what both must have in common to be compared; their tiers may be others, that is what is asked."""
    for name in ("seed", "workload", "placement"):
        yield from _unequal(name, getattr(first, name), getattr(second, name))
    for name in ("nodes", "ranks_per_node"):
        yield from _unequal(f"system.{name}", getattr(first.system, name), getattr(second.system, name))


def _unequal(name: str, first: Any, second: Any) -> Iterator[str]:
    if is_dataclass(first) and type(first) is type(second):
        for field in fields(first):
            yield from _unequal(f"{name}.{field.name}", getattr(first, field.name), getattr(second, field.name))
    elif first != second:
        yield name


def _gain(each: Sensitivity) -> float:
    return each.change_percent[_SHOWN_IMPROVEMENT]


def _workload(study: Study) -> str:
    if study.cases:
        return " ".join(f"{case.name}: {_one_workload(dump.in_case(study, case))}" for case in study.cases)
    return _one_workload(study)


def _one_workload(study: Study) -> str:
    dataset, train, system = study.workload.dataset, study.workload.train, study.system
    each = f", {dataset.num_samples_per_file:,} samples each" if dataset.num_samples_per_file > 1 else ""
    size = about_bytes(dataset.record_length_bytes)
    return (
        f"{counted(dataset.num_files_train, f'{dataset.format} file', grouped=True)}{each}, {size} per sample, read {counted(train.epochs, 'time')} (epochs) in {study.workload.reader.shuffle} "
        f"shuffle by {counted(system.ranks, 'process', grouped=True)} on {counted(system.nodes, 'node', grouped=True)}, from {' and '.join(tier.name for tier in system.tiers)}."
    )
