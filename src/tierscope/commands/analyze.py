"""From a result directory or a CSV to a breakdown with its findings."""

import os
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions, conditions
from tierscope.analysis.counting import Counting
from tierscope.analysis.findings import find
from tierscope.analysis.times import ClassTimes, counting_only, from_csv, from_traces, of_epoch
from tierscope.analysis.training import reading_times, training_of
from tierscope.errors import ResultError, UserError
from tierscope.imports.logs import is_import
from tierscope.output import manifest
from tierscope.output.result import has_study, read_study, refuse_other_runs
from tierscope.output.store import RunStore
from tierscope.recording.traced import finish_or_look, is_trace
from tierscope.spec import sweep
from tierscope.trace.description import Imported, Traced
from tierscope.trace.trace import RunKey, Trace

_NAME_WIDTH = 60


def analyze(path: str, counting: Counting = Counting(), store: RunStore | None = None) -> Analysis:  # noqa: B008  (frozen)
    """`store`: the runs of a result, where some of them were read before."""
    store = store or RunStore(path)
    if os.path.isdir(path) and not has_study(path) and is_trace(path):
        return _analyze_trace(path, counting, store)
    if os.path.isdir(path) and not has_study(path) and is_import(path):
        return replace(analyze_import(store.load(RunKey(0, 1)), counting), load_run=store.load)
    if os.path.isdir(path):
        _refuse_several(path)
        return _analyze_result(path, counting, store)
    if not os.path.exists(path):
        raise UserError(
            f"{path}: no such directory or file; give the --out of a 'tierscope run' or 'tierscope trace', or a CSV of times"
        )
    if counting.basis == "wall":
        raise UserError(f"{path}: a CSV has one kind of seconds only; leave --basis out")
    times = _counted(from_csv(path), counting)
    breakdown = break_down(times)
    given = Conditions()
    return Analysis(os.path.basename(path), times, breakdown, find(times, breakdown, given, None, None), given, None)


def _refuse_several(path: str) -> None:
    """`train` with several varied keys makes a result of each."""
    if manifest.kind_of(path) == "training":
        parts = sorted(name for name in os.listdir(path) if has_study(os.path.join(path, name)))
        raise UserError(f"{path}: holds a result for each key that was varied; give one of them: {', '.join(parts)}")


def _analyze_trace(out: str, counting: Counting, store: RunStore) -> Analysis:
    """One run of a stranger's command: no study, no sweep. While it runs, what it did so far."""
    trace = finish_or_look(out)
    if trace is None and not store.finished():
        raise UserError(f"{out}: holds no records; trace the command again, with another --out")
    trace = trace or store.load(RunKey(0, 1))
    if isinstance(trace.about, Imported):
        return replace(analyze_import(trace, counting), load_run=store.load)
    if not isinstance(trace.about, Traced):
        raise ResultError(f"{store.path(trace.key)}: is not the trace of a command; give the --out of one")
    times = _counted(from_traces([trace], trace.about.tier_names, counting.basis), counting)
    breakdown = break_down(times)
    given = conditions(times, _of_epoch(trace.cold, counting.epoch))
    name = _shortened(shlex.join(trace.about.command))
    findings = find(times, breakdown, given, None, None)
    return Analysis(name, times, breakdown, findings, given, None, load_run=store.load)


def analyze_import(trace: Trace, counting: Counting = Counting()) -> Analysis:  # noqa: B008  (frozen)
    """Logs that others recorded."""
    if counting.basis == "wall":
        raise UserError("logs of other profilers have busy seconds only; leave --basis out")
    times = _counted(from_traces([trace], trace.about.tier_names, "busy"), counting)
    breakdown = break_down(times)
    given = conditions(times, _of_epoch(trace.cold, counting.epoch))
    command = trace.about.command if isinstance(trace.about, Imported) else ""
    findings = find(times, breakdown, given, None, None)
    return Analysis(_shortened(command or "logs"), times, breakdown, findings, given, None)


def _counted(times: ClassTimes, counting: Counting) -> ClassTimes:
    return of_epoch(counting_only(times, counting.categories), counting.epoch)


def _of_epoch(cold: pl.DataFrame, epoch: int | None) -> pl.DataFrame:
    return cold if epoch is None else cold.filter(pl.col("epoch") == epoch)


def _shortened(command: str) -> str:
    """Between words, where there are any; of one long path, the end."""
    shown = textwrap.shorten(command, _NAME_WIDTH, placeholder=" …")
    return shown if shown.strip(" …") else f"…{command.split(maxsplit=1)[0][1 - _NAME_WIDTH :]}"


def _analyze_result(out: str, counting: Counting, store: RunStore) -> Analysis:
    study = read_study(out)
    cold: list[pl.DataFrame] = []

    def traces() -> Iterator[Trace]:
        for trace in store.load_all():
            cold.append(trace.cold.select("point", "repetition", "epoch", "tier", "checked_bytes", "resident_bytes"))
            yield trace

    if not store.finished():
        raise UserError(f"{out}: no run is finished yet; 'tierscope run' with this --out goes on where it stopped")
    refuse_other_runs(study, store)
    every = from_traces(traces(), [tier.name for tier in study.system.tiers], counting.basis)
    training = training_of(every)
    times, unread = reading_times(every)
    times = _counted(times, counting)
    given = conditions(times, _of_epoch(pl.concat(cold), counting.epoch))
    if counting.basis == "wall" and given.profilers:
        raise UserError(f"{out}: {', '.join(given.profilers)} measured it, with busy seconds only; leave --basis out")
    breakdown = break_down(times)
    findings = find(times, breakdown, given, sweep.runs(study), study.goal, training, unread)
    return Analysis(study.study, times, breakdown, findings, given, study.goal, study, training, store.load)
