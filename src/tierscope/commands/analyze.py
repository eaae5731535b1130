"""From a result directory or a CSV to a breakdown with its findings."""

import os
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.cases import of_case
from tierscope.analysis.clocks import has_clocks
from tierscope.analysis.conditions import COLD_COLUMNS, Conditions, conditions
from tierscope.analysis.counting import Counting
from tierscope.analysis.findings import find
from tierscope.analysis.run_command import GivenStudy
from tierscope.analysis.times import ClassTimes, counting_only, from_csv, from_traces, of_epoch
from tierscope.analysis.training import reading_times, training_of
from tierscope.errors import ResultError, UserError
from tierscope.formats import FORMATS
from tierscope.imports.logs import ImportOptions, import_logs, is_import, keep, logs_in, source_of
from tierscope.imports.paths import TierRules
from tierscope.output import manifest
from tierscope.output.result import STUDY_FILE, has_study, read_study, refuse_other_runs
from tierscope.output.store import RunStore
from tierscope.recording.traced import finish_or_look, is_trace
from tierscope.spec import sweep
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.goal import AU, EPOCH, Goal
from tierscope.spec.study import Study
from tierscope.spec.traced import read_rules
from tierscope.spec.whatif import read_duration
from tierscope.trace.description import Imported, Measured, Traced
from tierscope.trace.trace import RunKey, Trace

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tierscope.predict.exploration import Remedy

_NAME_WIDTH = 60
_MOST_NAMED = 5


def analyze(
    path: str,
    counting: Counting = Counting(),  # noqa: B008  (frozen)
    store: RunStore | None = None,
    goal: Goal | None = None,
) -> Analysis:
    """`store`: the runs of a result, where some of them were read before. `goal`: instead of the study's."""
    store = store or RunStore(path)
    if os.path.isdir(path) and not has_study(path) and is_trace(path):
        return _analyze_trace(path, counting, store, goal)
    if os.path.isdir(path) and not has_study(path) and is_import(path):
        return replace(analyze_import(store.load(RunKey(0, 1)), counting, goal), load_run=store.load)
    if os.path.isdir(path):
        _refuse_several(path)
        _refuse_without_result(path)
        return _analyze_result(path, counting, store, goal)
    if not os.path.exists(path):
        raise UserError(
            f"{path}: no such file or directory; name the --out of 'tierscope run' or 'tierscope trace', or a CSV of times"
        )
    if counting.basis == "wall":
        raise UserError(f"{path}: a CSV has only one kind of seconds; remove --basis")
    times = _counted(from_csv(path), counting)
    breakdown = break_down(times)
    given = Conditions()
    return Analysis(os.path.basename(path), times, breakdown, find(times, breakdown, given, None, goal), given, goal)


def _refuse_several(path: str) -> None:
    """`train` with several varied keys makes a result of each."""
    if manifest.kind_of(path) == "training":
        parts = sorted(name for name in os.listdir(path) if has_study(os.path.join(path, name)))
        if parts:
            raise UserError(f"{path}: contains one result per varied key; name one of them: {', '.join(parts)}")


def _refuse_without_result(path: str) -> None:
    """A directory that nobody wrote a result to: say what is there instead."""
    if has_study(path) or manifest.kind_of(path) is not None:
        return
    names = sorted(os.listdir(path))
    if not names:
        raise UserError(f"{path}: is empty; name the --out of 'tierscope run' or 'tierscope trace', or logs")
    folders = [name for name in names if os.path.isdir(os.path.join(path, name))]
    with_logs = [name for name in folders if logs_in(os.path.join(path, name))]
    if with_logs:
        shown = ", ".join(with_logs[:_MOST_NAMED]) + (", …" if len(with_logs) > _MOST_NAMED else "")
        raise UserError(f"{path}: no logs here; in subdirectories: {shown}; name one of them")


def _analyze_trace(out: str, counting: Counting, store: RunStore, goal: Goal | None) -> Analysis:
    """One run of a stranger's command: no study, no sweep. While it runs, what it did so far."""
    trace = finish_or_look(out)
    if trace is None and not store.finished():
        raise UserError(f"{out}: contains no records; trace the command again with another --out")
    trace = trace or store.load(RunKey(0, 1))
    if isinstance(trace.about, Imported):
        return replace(analyze_import(trace, counting, goal), load_run=store.load)
    if not isinstance(trace.about, Traced):
        raise ResultError(
            f"{store.path(trace.key)}: is not the trace of a command; name the --out of 'tierscope trace'"
        )
    return replace(analyze_traced(trace, trace.about, counting, goal), load_run=store.load)


def analyze_traced(
    trace: Trace,
    about: Traced,
    counting: Counting = Counting(),  # noqa: B008  (frozen)
    goal: Goal | None = None,
) -> Analysis:
    """A command that our recorder saw, or a stretch of it."""
    times = _counted(from_traces([trace], about.tier_names, counting.basis), counting)
    breakdown = break_down(times)
    given = conditions(times, _of_epoch(trace.cold, counting.epoch))
    findings = find(times, breakdown, given, None, goal)
    return Analysis(_shortened(shlex.join(about.command)), times, breakdown, findings, given, goal)


@dataclass(frozen=True, slots=True)
class LogRequest:
    """How logs are to be read, as it was typed. `tiers`: NAME=/PATH[,/PATH2…] each; `out`: where what was read is kept; `command`: all of it."""

    tiers: Sequence[str] = ()
    epoch_gap: str | None = None
    shared: bool = True
    dxt: bool = False
    epoch_span: str | None = None
    compute_span: str | None = None
    force: bool = False
    out: str | None = None
    command: str = ""

    @property
    def options(self) -> ImportOptions:
        gap = read_duration("--epoch-gap", self.epoch_gap) if self.epoch_gap else None
        rules = TierRules(read_rules(self.tiers))
        spans = (self.epoch_span, self.compute_span)
        return ImportOptions(rules, gap, self.shared, self.dxt, *spans, self.force, command=self.command)


def named_logs(paths: Sequence[str]) -> list[str]:
    """Logs by name, or all in a directory; nothing where the paths are those of results."""
    if any(source_of(path) for path in paths):
        return list(paths)
    folder = paths[0]
    if len(paths) > 1 or not os.path.isdir(folder) or has_study(folder) or is_trace(folder) or is_import(folder):
        return []
    try:
        return logs_in(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}; change its mode, or name another") from None


def refuse_goal_of_logs(paths: Sequence[str], goal: Goal | None) -> None:
    """Before anything else is asked for: what no log of that profiler tells cannot be judged."""
    if goal is None:
        return
    if goal.kind == AU:
        raise UserError(
            "an AU goal needs the stall seconds of every rank, which logs of other profilers do not have; use an I/O goal, e.g. --goal io=4s"
        )
    if goal.kind == EPOCH and any(source_of(path) == "darshan" for path in paths):
        raise UserError(
            "an epoch goal needs the epoch seconds of every rank, which Darshan logs do not have; use an I/O goal, e.g. --goal io=4s"
        )


def analyze_logs(
    paths: Sequence[str], wanted: LogRequest, counting: Counting, goal: Goal | None = None
) -> tuple[Analysis, str | None]:
    """All logs of one job, and where they were kept as a result, if that was asked for."""
    trace = import_logs(named_logs(paths) or paths, wanted.options)
    analysis = analyze_import(trace, counting, goal)
    return analysis, keep(trace, wanted.out) if wanted.out else None


def views_of(analysis: Analysis, remedies: "Sequence[Remedy]" = (), show_all: bool = False) -> "list[RenderableType]":
    """What is shown of an analysis, for Rich. `remedies`: what would fit, where the best of a simulation does not."""
    from tierscope.report.tables import BreakdownView  # noqa: PLC0415  (Rich, which JSON does without)

    views: list[RenderableType] = [BreakdownView.of(analysis, show_all)]
    if remedies:
        from tierscope.report.plans import RemediesView  # noqa: PLC0415  (all of simulation)

        views.append(RemediesView(remedies, analysis.goal, given=analysis.conditions.given))
    if analysis.training is not None:
        from tierscope.report.training import TrainingView  # noqa: PLC0415

        views.append(TrainingView(analysis.name, [(None, analysis.training)], [], analysis.conditions))
    return views


def analyze_import(
    trace: Trace,
    counting: Counting = Counting(),  # noqa: B008  (frozen)
    goal: Goal | None = None,
) -> Analysis:
    """Logs that others recorded."""
    if counting.basis == "wall":
        raise UserError("logs of other profilers have only busy seconds; remove --basis")
    times = _counted(from_traces([trace], trace.about.tier_names, "busy"), counting)
    breakdown = break_down(times)
    given = conditions(times, _of_epoch(trace.cold, counting.epoch))
    command = trace.about.command if isinstance(trace.about, Imported) else ""
    findings = find(times, breakdown, given, None, goal)
    return Analysis(_shortened(command or "logs"), times, breakdown, findings, given, goal)


def _counted(times: ClassTimes, counting: Counting) -> ClassTimes:
    return of_epoch(counting_only(of_case(times, counting.case), counting.categories), counting.epoch)


def _of_epoch(cold: pl.DataFrame, epoch: int | None) -> pl.DataFrame:
    return cold if epoch is None else cold.filter(pl.col("epoch") == epoch)


def _shortened(command: str) -> str:
    """Between words, where there are any; of one long path, the end."""
    shown = textwrap.shorten(command, _NAME_WIDTH, placeholder=" …")
    return shown if shown.strip(" …") else f"…{command.split(maxsplit=1)[0][1 - _NAME_WIDTH :]}"


def _analyze_result(out: str, counting: Counting, store: RunStore, goal: Goal | None) -> Analysis:
    study = read_study(out)
    cold: list[pl.DataFrame] = []

    def traces() -> Iterator[Trace]:
        for trace in store.load_all():
            cold.append(trace.cold.select(COLD_COLUMNS))
            yield trace

    if not store.finished():
        raise UserError(f"{out}: no run has finished yet; 'tierscope run' with this --out resumes it")
    refuse_other_runs(study, store)
    every = of_case(from_traces(traces(), [tier.name for tier in study.system.tiers], counting.basis), counting.case)
    training = training_of(every)
    times, unread = reading_times(every)
    times = replace(_counted(times, counting), feasibility=_feasibility(study, times))
    shown = pl.concat(cold).filter(pl.col("point").is_in([run.key.point for run in every.runs]))
    given = conditions(times, _of_epoch(shown, counting.epoch))
    given = replace(given, inert=_inert(study, bool(given.simulated)), given=_given(out, study))
    if counting.basis == "wall" and given.profilers:
        raise UserError(f"{out}: {', '.join(given.profilers)} recorded only busy seconds; remove --basis")
    breakdown = break_down(times)
    wanted = goal or study.goal
    if wanted is not None and wanted.kind == AU and has_clocks(times.epochs):
        from tierscope.predict.goals import refuse_untold  # noqa: PLC0415

        refuse_untold(times, wanted)
    runs = sweep.runs(study) // (1 if counting.case is None else len(study.cases))
    findings = find(times, breakdown, given, runs, wanted, training, unread)
    return Analysis(study.study, times, breakdown, findings, given, wanted, study, training, store.load)


def _given(out: str, study: Study) -> GivenStudy:
    """A result has its study beside it."""
    return GivenStudy(os.path.relpath(os.path.join(out, STUDY_FILE)), swept=study.sweep)


def _inert(study: Study, simulated: bool) -> dict[str, str]:
    """Nothing where the format's library is not installed here."""
    from tierscope.plan.inert import inert_axes  # noqa: PLC0415  (plans, which reading logs does without)

    try:
        return inert_axes(study, simulated)
    except UserError:
        return {}


def _feasibility(study: Study, times: ClassTimes) -> dict[tuple[Any, ...], Feasibility]:
    """Of every point, by its swept values; what was measured on real tiers was there."""
    if FORMATS[study.workload.dataset.format].in_memory:
        return {}  # there are no files
    from tierscope.plan.room import feasibility_of  # noqa: PLC0415  (plans, which reading logs does without)

    measured = any(isinstance(about, Measured) for about in times.about)
    try:
        return {
            tuple(point.sweep.values()): feasibility_of(point.study, staged=measured) for point in sweep.points(study)
        }
    except UserError:  # a format whose library is not installed here: its files' sizes are not known, and times can be shown all the same
        return {}
