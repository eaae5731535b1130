"""The report of a result: what its page and figures are made of, and where they go."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.beside import Beside, ComparedResult, lay_beside
from tierscope.analysis.checkpoint_costs import checkpoint_costs
from tierscope.commands.characterise import characterise_analysis
from tierscope.commands.simulate import remedies_of
from tierscope.errors import UserError
from tierscope.output import manifest
from tierscope.output.store import RunStore
from tierscope.predict.by_group import estimate_groups
from tierscope.predict.ceilings import KnownCeilings
from tierscope.predict.exploration import Remedy
from tierscope.predict.explore import explore
from tierscope.predict.goals import is_told, refuse_untold
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import SHOWN_STEP, by_gain, classes_by_gain
from tierscope.report.beside import names_of
from tierscope.report.drawn.character import NAMES as CHARACTER_FIGURES
from tierscope.report.drawn.character import draw_character
from tierscope.report.drawn.training import NAMES as TRAINING_FIGURES
from tierscope.report.drawn.training import draw_training
from tierscope.report.drawn.view import Figure
from tierscope.report.figures import figures
from tierscope.report.folder import WrittenReport, figure_files, put_files
from tierscope.report.page import page
from tierscope.report.png import png_problem
from tierscope.report.report_source import ReportPart, ReportSource
from tierscope.spec import dump
from tierscope.spec.goal import IO, Goal
from tierscope.spec.study import Study
from tierscope.units import about_bytes, counted

GRID = tuple(float(percent) for percent in range(0, 201, 10))
_PAGE = "report.html"
_BESIDE = "beside"  # the figure that only some reports have
_SUGGESTED_GOAL = 0.8  # of the best, where nobody gave one


def write_report(
    analysis: Analysis,
    folder: str,
    goal: Goal | None,
    improvements: Mapping[str, float],
    besides: Sequence[Beside] = (),
    result: str | None = None,
    remedies: Sequence[Remedy] | None = None,
) -> WrittenReport:
    """The page and its figures, into a directory that is ours. `result`: the one that was analysed, if not there; its traces tell how it reads.

    `remedies`: what would fit, where that is known already.
    """
    source, drawn = _drawn(analysis, goal, improvements, besides, result or folder, remedies)
    names = {_BESIDE, *CHARACTER_FIGURES, *TRAINING_FIGURES, *(figure.name for figure in drawn)}
    files = {_PAGE: page(source, drawn), **figure_files(drawn)}
    paths = put_files(folder, files, names, fix="use 'tierscope report --out' to write it elsewhere")
    missing = tuple(figure.name for figure in drawn if figure.svg is None)
    return WrittenReport(paths[0], tuple(paths[1:]), missing, png_problem())


def report_page(
    analysis: Analysis,
    goal: Goal | None,
    improvements: Mapping[str, float],
    result: str | None,
    remedies: Sequence[Remedy] | None = None,
) -> bytes:
    """Only the page, and nothing is written. `result`: where its traces are; None: nowhere."""
    return page(*_drawn(analysis, goal, improvements, (), result, remedies))


def _drawn(
    analysis: Analysis,
    goal: Goal | None,
    improvements: Mapping[str, float],
    besides: Sequence[Beside],
    result: str | None,
    remedies: Sequence[Remedy] | None,
) -> tuple[ReportSource, list[Figure]]:
    instead = tuple(remedies_of(analysis) if remedies is None else remedies)
    source = replace(source_of(analysis, goal, improvements), besides=tuple(besides), remedies=instead)
    source = source if result is None else _with_character(source, analysis, result)
    return source, [*figures(source), *draw_training(source), *draw_character(source)]


def _with_character(source: ReportSource, analysis: Analysis, result: str) -> ReportSource:
    """How the best point's run reads; a CSV has no run, and what is damaged is left out: `characterise` says what is wrong with it."""
    if not analysis.times.about or not RunStore(result).finished():
        return source
    try:
        characterised = characterise_analysis(result, analysis)
    except UserError:
        return source
    return replace(source, character=characterised.character, character_where=characterised.where)


def report_folder(result: str, out: str | None) -> str:
    """Where the report of a result goes, claimed: beside the runs; of a CSV, into a directory of its own."""
    if out == "":
        raise UserError("--out is empty; name a directory, or remove --out")
    if os.path.isdir(result) and (out is None or os.path.abspath(out) == os.path.abspath(result)):
        return result
    folder = os.path.abspath(out or f"{os.path.splitext(result)[0]}-report")
    manifest.claim(folder, "report")
    return folder


def source_of(analysis: Analysis, goal: Goal | None, improvements: Mapping[str, float]) -> ReportSource:
    """Without a goal or improvements to show, such that show something: a fifth less, and half as much again of what helps most."""
    if goal is not None:
        refuse_untold(analysis.times, goal)
    elif analysis.goal is not None and is_told(analysis.times, analysis.goal):
        goal = analysis.goal
    study = analysis.study
    processes = Processes.of(analysis.times, analysis.breakdown.ranked_by)
    return ReportSource(
        name=analysis.name,
        times=analysis.times,
        breakdown=analysis.breakdown,
        findings=analysis.findings,
        conditions=analysis.conditions,
        processes=processes,
        parts=report_parts(analysis, processes, goal, improvements),
        improvements_given=bool(improvements),
        goal_given=goal is not None,
        near_tiers=tuple(tier.name for tier in study.system.tiers[:-1]) if study else (),
        workload=_workload(study) if study else "",
        study_yaml=dump.to_yaml(study) if study else None,
        training=analysis.training,
        costs=tuple(checkpoint_costs(analysis.times, analysis.breakdown, analysis.study)),
    )


def report_parts(
    analysis: Analysis, processes: Processes, goal: Goal | None, improvements: Mapping[str, float]
) -> tuple[ReportPart, ...]:
    """Of each case, with the same improvements in all: half as much again of what helps the first most, where none are given."""
    shown = dict(improvements) or {classes_by_gain(processes, analysis.breakdown)[0]: SHOWN_STEP}
    estimated = estimate_groups(analysis.times, analysis.breakdown, shown, processes)
    parts, known = [], KnownCeilings()
    for name, estimate in zip(estimated.names, estimated.parts, strict=True):
        best = estimate.before.best
        group = processes.in_group_of(best.sweep)
        vary = {sensitivity.class_name: GRID for sensitivity in by_gain(estimate.sensitivity, best.classes)[:2]}
        wanted = goal or Goal(IO, _SUGGESTED_GOAL * best.io.median)
        exploration = explore(group, wanted, vary, known=known)
        parts.append(ReportPart(name, estimate.before, group, estimate, exploration))
    return tuple(parts)


def besides_of(first: Analysis, others: Sequence[Analysis], places: Sequence[str]) -> list[Beside]:
    """Each of the others against the first. `places`: what the user called them, the first before all."""
    every = (first, *others)
    sides = [
        ComparedResult.of(compared.name, place, compared.conditions, from_csv=not compared.times.about)
        for compared, place in zip(every, places, strict=True)
    ]
    names = names_of(sides)
    laid = []
    for other, side, name in zip(others, sides[1:], names[1:], strict=True):
        differing = differing_keys(first.study, other.study) if first.study and other.study else ()
        beside = lay_beside(first.breakdown, other.breakdown, (sides[0], side), differing)
        laid.append(replace(beside, called=(names[0], name)) if len(others) > 1 else beside)
    return laid


def differing_keys(first: Study, second: Study) -> list[str]:
    """`key: first → second` of all that is not the same but the name, the goal and how often each point was run."""
    alike = replace(first, study=second.study, goal=second.goal, repetitions=second.repetitions)
    return dump.differences(alike, second)


def _workload(study: Study) -> str:
    if study.cases:
        return "\n".join(f"{case.name}: {_one_workload(dump.in_case(study, case))}" for case in study.cases)
    return _one_workload(study)


def _one_workload(study: Study) -> str:
    dataset, train, system = study.workload.dataset, study.workload.train, study.system
    per_file = f", {dataset.num_samples_per_file:,} samples each" if dataset.num_samples_per_file > 1 else ""
    size = about_bytes(dataset.record_length_bytes)
    return (
        f"{counted(dataset.num_files_train, f'{dataset.format} file', grouped=True)}{per_file}, {size} per sample, read {counted(train.epochs, 'time')} (epochs) in {study.workload.reader.shuffle} "
        f"shuffle by {counted(system.ranks, 'process', grouped=True)} on {counted(system.nodes, 'node', grouped=True)}, from {' and '.join(tier.name for tier in system.tiers)}."
    )
