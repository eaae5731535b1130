"""From the words of a command to an estimate or an exploration of a result."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.counting import Counting
from tierscope.analysis.goals import GOAL_KINDS, about_goal
from tierscope.analysis.wording import Finding
from tierscope.commands.analyze import analyze
from tierscope.commands.calibrate import MeasuredCases, cases_of
from tierscope.errors import UserError
from tierscope.output.store import RunStore
from tierscope.predict.by_group import EstimatedGroups, estimate_groups
from tierscope.predict.calibrate import measured_range
from tierscope.predict.choosing import fit
from tierscope.predict.goals import refuse_untold
from tierscope.predict.modelled import ModelAnswer, ModelledPoint, answer
from tierscope.predict.solving import check_solver
from tierscope.predict.whatif import Estimate
from tierscope.spec import sweep
from tierscope.spec.known import KnownSystem, load_system
from tierscope.spec.whatif import read_goal, read_improvements
from tierscope.watch import Watch


def estimated(
    analysis: Analysis, improve: Sequence[str], goal: str | None = None
) -> tuple[EstimatedGroups, list[Finding]]:
    """Of each case, with what is to be said about all of them. `goal`: instead of the study's."""
    improvements = read_improvements(improve, analysis.times.io_classes)
    wanted = analysis.goal
    if goal is not None:
        wanted = read_goal(goal)
        refuse_untold(analysis.times, wanted)
    groups = estimate_groups(analysis.times, analysis.breakdown, improvements)
    return groups, about_goal(groups.after, wanted) + without_goal(analysis.findings)


def without_goal(findings: list[Finding]) -> list[Finding]:
    """What is said about the measurement still holds; whether it met the goal is another question now."""
    return [finding for finding in findings if finding.kind not in GOAL_KINDS]


def analyze_and_keep(out: str, counting: Counting) -> tuple[Analysis, RunStore]:
    """The runs go with the analysis, for `modelled`: none is read twice."""
    store = RunStore(out)
    return analyze(out, counting, store), store


def modelled(
    store: RunStore, analysis: Analysis, groups: EstimatedGroups, system: str | None, watch: Watch
) -> list[ModelAnswer]:
    """Of each case. `groups`: by the simple scaling, to lay beside it."""
    out = store.out
    if analysis.study is None:
        raise UserError(f"{out}: --with-model requires the result of a study; name one, or remove --with-model")
    if not any(groups.improvements.values()):
        raise UserError("--with-model: nothing is improved; add --improve CLASS=PERCENT, e.g. --improve GFS-META=50")
    measured = cases_of([out], {out: store})
    points = [points_of(measured, estimate) for estimate in groups.parts]
    if system is None and measured.simulated:  # the rates are those that it was made with
        own = {_key(point.sweep): point.study.system for point in sweep.points(analysis.study)}
        known = [[replace(point, system=own[_key(point.sweep)]) for point in group] for group in points]
        return [answer(group, analysis.study.system, groups.improvements) for group in known]
    known_system = _known(measured, system, watch)
    return [answer(group, known_system.system, groups.improvements, known_system) for group in points]


def _known(measured: MeasuredCases, system: str | None, watch: Watch) -> KnownSystem:
    """What was given, or a fit to what was measured: that has no intervals, but it says what it was fitted to."""
    if system is not None:
        known = load_system(system)
        names = {tier.name for tier in known.system.tiers}
        if missing := [tier.name for tier in measured.study.system.tiers if tier.name not in names]:
            raise UserError(
                f"--system {system}: has no tier {missing[0]}, but the result has; use a system with the same tiers"
            )
        return known
    check_solver()
    watch.note(
        "calibrating the model on this result; to reuse the fit: 'tierscope calibrate -o FILE', then --system FILE"
    )
    watch.phase("calibrating", 1, "fits")
    fitted = fit(measured.to_fit).system(measured.study.system)
    return KnownSystem(measured.study.study, fitted, {}, (), measured_range(measured.to_fit))


def points_of(measured: MeasuredCases, estimate: Estimate) -> list[ModelledPoint]:
    """Of one group, those that fit where any does: others cannot be ranked against them."""
    first = estimate.before.groups[0]
    after = {_key(point.sweep): point for point in estimate.after.summary}
    points = []
    for point in first.possible or first.points:
        cases = tuple(case for case in measured.cases if _key(case.sweep) == _key(point.sweep))
        then = after[_key(point.sweep)]
        points.append(ModelledPoint(point.sweep, cases, point.io.median, then.io.median, estimate.before.basis))
    return [point for point in points if point.cases]


def _key(sweep: Mapping[str, object]) -> str:
    return repr(sorted(sweep.items()))
