"""From a result directory or logs to the Character of one run."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import break_down, sweep_text
from tierscope.analysis.character_ops import OpList
from tierscope.analysis.characterise import Character, TraceExtras, characterise
from tierscope.analysis.conditions import Conditions, conditions
from tierscope.analysis.findings import find
from tierscope.analysis.merged_timeline import MergedRank, hidden_of_merged
from tierscope.analysis.times import counting_only, from_traces
from tierscope.analysis.wording import Finding
from tierscope.commands.analyze import analyze, analyze_import, named_logs
from tierscope.errors import UserError
from tierscope.imports.darshan_accesses import read_accesses
from tierscope.imports.gathered import to_trace
from tierscope.imports.logs import ImportOptions, gather_logs, source_of
from tierscope.imports.paths import TierRules
from tierscope.imports.timelines import merged_with
from tierscope.imports.untiered import command_text
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.output.op_list import open_files, open_ops
from tierscope.output.store import RunStore
from tierscope.trace.ops import CATEGORIES
from tierscope.trace.trace import RunKey, Trace


@dataclass(frozen=True, slots=True)
class TimelineRequest:
    """Traces of a framework's profiler, as [RANK=]FILE, and the name of their compute spans; None: by what they say."""

    traces: tuple[str, ...] = ()
    compute_span: str | None = None


@dataclass(frozen=True, slots=True)
class Characterised:
    """`where`: which run of a result it is, in words; empty: there is but one."""

    name: str
    path: str
    where: str
    key: RunKey
    sweep: SweepValues
    character: Character
    findings: list[Finding]
    conditions: Conditions
    merged: tuple[MergedRank, ...] = ()  # ranks whose I/O was set beside compute

    @property
    def about(self) -> JsonObject:
        """For JSON."""
        run = {"name": self.name, "path": self.path, "point": self.key.point, "repetition": self.key.repetition}
        return {**run, "sweep": self.sweep, "where": self.where}


def characterise_path(
    paths: Sequence[str],
    rules: TierRules | None = None,
    point: int | None = None,
    force: bool = False,
    shared: bool = True,
    categories: Sequence[str] = CATEGORIES,
    command: str = "",
    timelines: TimelineRequest = TimelineRequest(),  # noqa: B008  (frozen)
) -> Characterised:
    """One result directory; or all logs of one job, by name or as a directory of them. `rules`, `shared` and `command`: of logs only."""
    if logs := named_logs(paths):
        if point is not None and len(paths) > 1:
            raise UserError(f"{paths[0]}: is a log, and logs have no points; remove --point")
        name = paths[0] if len(paths) == 1 else f"{len(paths)} logs"
        asked = command or command_text("characterise", paths)
        wanted = ImportOptions(rules or TierRules({}), shared=shared, force=force, command=asked)
        return _of_logs(name, logs, wanted, categories, timelines)
    if len(paths) > 1:
        raise UserError(f"{paths[1]}: only one result at a time; only logs (*.darshan, *.pfw) can be several")
    return _of_result(paths[0], point, categories)


def are_logs(paths: Sequence[str]) -> bool:
    return bool(named_logs(paths))


def _of_logs(
    name: str, logs: Sequence[str], wanted: ImportOptions, categories: Sequence[str], timelines: TimelineRequest
) -> Characterised:
    is_darshan = source_of(logs[0]) == "darshan"
    own = None if timelines.traces else timelines.compute_span
    spans = bool(timelines.traces) or not is_darshan
    gathered = gather_logs(logs, replace(wanted, spans=spans, compute_span=own))
    trace = to_trace(gathered)
    counted, ops = read_accesses(logs, wanted.rules, wanted.shared) if is_darshan else (None, [])
    run = _characterised(analyze_import(trace), name, trace, "", TraceExtras(ops, counted=counted), categories)
    merged = merged_with(timelines.traces, gathered.operations, gathered.facts.source, timelines.compute_span)
    if not merged:
        return run
    return replace(run, merged=merged, character=replace(run.character, hidden=hidden_of_merged(merged)))


def _of_result(path: str, point: int | None, categories: Sequence[str]) -> Characterised:
    if os.path.isfile(path):
        raise UserError(
            f"{path}: is neither a result nor a log; name the --out of a run or trace, or logs (*.darshan, *.pfw); a CSV has only times"
        )
    return characterise_analysis(path, analyze(path), point, categories)


def characterise_analysis(
    out: str, analysis: Analysis, point: int | None = None, categories: Sequence[str] = CATEGORIES
) -> Characterised:
    """The run at a point of a result that was analysed: the best one, unless it is given; its first repetition."""
    store = RunStore(out)
    if not store.finished():
        raise UserError(
            f"{out}: the command is still running and its operations are not collected yet; wait until it exits"
        )
    key = _key(out, store.finished(), analysis, point)
    trace = (analysis.load_run or store.load)(key)
    where = _where(store.finished(), trace, given=point is not None)
    return _characterised(analysis, out, trace, where, _beside(out, trace), categories)


def _key(out: str, finished: set[RunKey], analysis: Analysis, point: int | None) -> RunKey:
    points = sorted({key.point for key in finished})
    if point is None:
        best = analysis.breakdown.best.sweep
        point = next(run.key.point for run in analysis.times.runs if run.about.sweep == best)
    if point not in points:
        shown = ", ".join(map(str, points[:8])) + (" …" if len(points) > 8 else "")
        raise UserError(f"--point {point}: {out} has no finished run of this point; choose from {shown}")
    return min(key for key in finished if key.point == point)


def _where(finished: set[RunKey], trace: Trace, given: bool) -> str:
    points, key = {run.point for run in finished}, trace.key
    repetitions = sum(run.point == key.point for run in finished)
    parts = [
        f"point {key.point} ({sweep_text(trace.about.sweep)}{'' if given else ', the best'})"
        if len(points) > 1
        else "",
        f"repetition {key.repetition} of {repetitions}" if repetitions > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _beside(out: str, trace: Trace) -> TraceExtras:
    """The lists of operations of a run, if it has any, with the names of files where they are kept."""
    folder, key = glob.escape(os.path.join(out, "ops")), trace.key
    paths = sorted(glob.glob(os.path.join(folder, f"{key.point:04d}-r{key.repetition}-node*.parquet")))
    names = os.path.join(out, "ops", "files.parquet")
    known = open_files(names) if paths and os.path.lexists(names) else None
    return TraceExtras([OpList(open_ops(path, trace)) for path in paths], known)


def _characterised(
    analysis: Analysis, path: str, trace: Trace, where: str, beside: TraceExtras, categories: Sequence[str]
) -> Characterised:
    """Findings are about this run alone."""
    times = counting_only(from_traces([trace], trace.about.tier_names), tuple(categories))
    given = conditions(times, trace.cold)
    character, findings = characterise(trace, beside, categories), find(times, break_down(times), given, None, None)
    return Characterised(analysis.name, path, where, trace.key, trace.about.sweep, character, findings, given)
