"""The report of a result: what its page and figures are made of, and where they go."""

from collections.abc import Mapping

from tierscope.data.capacity import held_bytes
from tierscope.predict.explore import explore
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Sensitivity, estimate, sensitivity
from tierscope.report.source import Held, Source
from tierscope.spec import dump, sweep
from tierscope.spec.study import Study
from tierscope.studies.analyze import Analysis
from tierscope.units import about_bytes

GRID = tuple(float(percent) for percent in range(0, 201, 10))
_SHOWN_IMPROVEMENT = 50.0
_SUGGESTED_GOAL = 0.8  # of the best, where nobody gave one


def source_of(analysis: Analysis, goal: float | None, improvements: Mapping[str, float]) -> Source:
    """Without a goal or improvements to show, such that show something: a fifth less, and half as much again of what helps most."""
    processes = Processes.of(analysis.times)
    helping = sorted(sensitivity(processes), key=_gain)
    shown = dict(improvements) or {helping[0].class_name: _SHOWN_IMPROVEMENT}
    goal = goal or analysis.goal
    seconds = goal or _SUGGESTED_GOAL * analysis.breakdown.best.io.median
    vary = {each.class_name: GRID for each in helping[:2]}
    return Source(
        name=analysis.name,
        times=analysis.times,
        breakdown=analysis.breakdown,
        findings=analysis.findings,
        conditions=analysis.conditions,
        processes=processes,
        estimate=estimate(analysis.times, analysis.breakdown, shown),
        exploration=explore(processes, seconds, vary),
        goal_given=goal is not None,
        held=_held(analysis),
        workload=_workload(analysis.study) if analysis.study else "",
        study_yaml=dump.to_yaml(analysis.study) if analysis.study else None,
    )


def _gain(each: Sensitivity) -> float:
    return each.change_percent[_SHOWN_IMPROVEMENT]


def _held(analysis: Analysis) -> dict[int, dict[str, Held]] | None:
    if analysis.study is None:
        return None
    studies = {tuple(point.sweep.items()): point.study for point in sweep.points(analysis.study)}
    return {
        index: {tier: Held(*held) for tier, held in held_bytes(studies[tuple(point.sweep.items())]).items()}
        for index, point in enumerate(analysis.breakdown.summary)
    }


def _workload(study: Study) -> str:
    dataset, train, system = study.workload.dataset, study.workload.train, study.system
    each = f", {dataset.num_samples_per_file:,} samples each" if dataset.num_samples_per_file > 1 else ""
    size = about_bytes(dataset.record_length_bytes)
    return (
        f"{dataset.num_files_train:,} {dataset.format} files{each}, {size} per sample, read {train.epochs} times (epochs) in {study.workload.reader.shuffle} "
        f"shuffle by {system.ranks:,} processes on {system.nodes:,} nodes, from {' and '.join(tier.name for tier in system.tiers)}."
    )
