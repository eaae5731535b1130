"""From the words of a command to an estimate or an exploration of a result."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, SweepPoint
from tierscope.analysis.counting import Counting
from tierscope.analysis.goals import GOAL_KINDS, about_goal
from tierscope.analysis.times import category_of
from tierscope.analysis.wording import Finding
from tierscope.commands.analyze import analyze
from tierscope.commands.calibrate import MeasuredCases, cases_of
from tierscope.errors import UserError
from tierscope.output.store import RunStore
from tierscope.predict.fit import fit
from tierscope.predict.goals import refuse_untold
from tierscope.predict.modelled import ModelAnswer, ModelledPoint, answer
from tierscope.predict.solving import check_solver
from tierscope.predict.whatif import Estimate, estimate
from tierscope.spec import sweep
from tierscope.spec.known import load_system
from tierscope.spec.study import System
from tierscope.spec.whatif import read_goal, read_improvements
from tierscope.watch import Watch


def estimated(analysis: Analysis, improve: Sequence[str], goal: str | None = None) -> tuple[Estimate, list[Finding]]:
    """With what is to be said about it. `goal`: instead of the study's."""
    improvements = read_improvements(improve, analysis.times.io_classes)
    wanted = analysis.goal
    if goal is not None:
        wanted = read_goal(goal)
        refuse_untold(analysis.times, wanted)
    found = estimate(analysis.times, analysis.breakdown, improvements)
    return found, about_goal(found.after, wanted) + without_goal(analysis.findings)


def without_goal(findings: list[Finding]) -> list[Finding]:
    """What is said about the measurement still holds; whether it met the goal is another question now."""
    return [finding for finding in findings if finding.kind not in GOAL_KINDS]


def analyze_and_keep(out: str, counting: Counting) -> tuple[Analysis, RunStore]:
    """The runs go with the analysis, for `modelled`: none is read twice."""
    store = RunStore(out)
    return analyze(out, counting, store), store


def modelled(store: RunStore, analysis: Analysis, estimate: Estimate, system: str | None, watch: Watch) -> ModelAnswer:
    """`estimate`: by the simple scaling, to lay beside it."""
    out = store.out
    if analysis.study is None:
        raise UserError(
            f"{out}: --with-model needs the result of a study: the model has to know who reads what from where"
        )
    if not any(estimate.improvements.values()):
        raise UserError(
            "--with-model: nothing is improved; say which class and by how much, for example --improve GFS-META=50"
        )
    measured = cases_of([out], {out: store})
    points = points_of(measured, estimate)
    if system is None and measured.simulated:  # the rates are those that it was made with
        own = {_key(point.sweep): point.study.system for point in sweep.points(analysis.study)}
        points = [replace(point, system=own[_key(point.sweep)]) for point in points]
        return answer(points, analysis.study.system, estimate.improvements)
    return answer(points, _system(measured, system, watch), estimate.improvements)


def _system(measured: MeasuredCases, system: str | None, watch: Watch) -> System:
    if system is not None:
        found = load_system(system).system
        names = {tier.name for tier in found.tiers}
        if missing := [tier.name for tier in measured.study.system.tiers if tier.name not in names]:
            raise UserError(
                f"--system {system}: has no tier {missing[0]}, which the result has; give a system with the same tiers"
            )
        return found
    check_solver()
    watch.note("calibrating the model on this result; 'tierscope calibrate -o FILE' keeps it, --system FILE takes it")
    watch.phase("calibrating", 1, "fits")
    return fit(measured.to_fit).system(measured.study.system)


def points_of(measured: MeasuredCases, estimate: Estimate) -> list[ModelledPoint]:
    """Of the points that read the most data: others cannot be ranked against them."""
    after = {_key(point.sweep): point for point in estimate.after.summary}
    found = []
    for point in estimate.before.groups[0].points:
        cases = tuple(case for case in measured.cases if _key(case.sweep) == _key(point.sweep))
        then = after[_key(point.sweep)]
        writes = (_writes(estimate.before, point), _writes(estimate.after, then))
        found.append(ModelledPoint(point.sweep, cases, point.io.median, then.io.median, estimate.before.basis, writes))
    return [point for point in found if point.cases]


def _writes(breakdown: Breakdown, point: SweepPoint) -> float:
    """Of its I/O time, what wrote."""
    return sum(point.classes[name] for name in breakdown.io_classes if category_of(name) == "WRITE")


def _key(sweep: Mapping[str, object]) -> str:
    return repr(sorted(sweep.items()))
