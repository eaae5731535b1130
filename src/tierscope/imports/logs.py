"""Logs that others recorded: from files to a trace, and, if asked, to a result directory like that of a run."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from msgspec import structs

from tierscope.analysis.about_import import doubts
from tierscope.errors import UserError
from tierscope.imports import darshan, dftracer
from tierscope.imports.darshan_job import place_logs, process_of
from tierscope.imports.darshan_reader import OLD, DarshanLog, UnreadableLog, read_logs
from tierscope.imports.darshan_spans import rank_operations
from tierscope.imports.gathered import GatheredLogs, to_trace
from tierscope.imports.paths import TierRules
from tierscope.imports.untiered import command_text, refuse_untiered
from tierscope.output import manifest
from tierscope.output.result import locked
from tierscope.output.store import RunStore
from tierscope.plain_files import DIRECTORY, not_plain
from tierscope.trace.described_logs import LogDoubts
from tierscope.trace.trace import Trace
from tierscope.units import counted

KIND = "import"
SUFFIXES = {".darshan": "darshan", ".darshan.gz": "darshan", ".pfw": "dftracer", ".pfw.gz": "dftracer"}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How logs are to be read. `force`: show also what is not to be trusted; `ranks`: of processes, where that is known.

    `spans`: also when ranks did I/O (`GatheredLogs.operations`), where logs tell. `shared`: count files that Darshan summed up over all ranks. `command`: what was typed, for errors that say what to type instead; empty: `analyze` of these logs.
    """

    rules: TierRules
    epoch_gap_seconds: float | None = None
    shared: bool = True
    traced_reads: bool = False
    epoch_span: str | None = None
    compute_span: str | None = None
    force: bool = False
    ranks: Mapping[int, int] = field(default_factory=dict)
    command: str = ""
    spans: bool = False


def source_of(path: str) -> str | None:
    """Which profiler wrote a file, by its name."""
    return next((name for suffix, name in SUFFIXES.items() if path.endswith(suffix)), None)


def logs_in(folder: str) -> list[str]:
    """Logs that lie in a directory, by their names."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if source_of(name) is not None)


def import_logs(paths: Sequence[str], wanted: ImportOptions) -> Trace:
    """One job's logs as one trace."""
    return to_trace(gather_logs(paths, wanted))


def gather_logs(paths: Sequence[str], wanted: ImportOptions) -> GatheredLogs:
    """One job's logs, checked."""
    _refuse_missing(paths)
    kinds = {source_of(path) for path in paths}
    if len(kinds) > 1:
        raise UserError("mixed Darshan and DFTracer logs; name the logs of one profiler")
    gathered = _darshan(paths, wanted) if kinds == {"darshan"} else _dftracer(paths, wanted)
    if not gathered.ranks:
        raise UserError("these logs contain no process; copy them again from where they were written")
    if not wanted.force:
        _refuse_doubtful(gathered.facts.doubts, paths)
    refuse_untiered(
        gathered.facts.unknown, gathered.sums, wanted.rules, wanted.command or command_text("analyze", paths)
    )
    if not gathered.tiers:
        if doubt := next(doubts(gathered.facts.doubts), None):
            raise UserError(f"{paths[0]}: contains no files that can be read: {doubt.text}; {doubt.suggestion}")
        raise UserError(f"{paths[0]}: contains no files; to show it anyway, add the path of the data: --tier gfs=/path")
    return gathered


def _refuse_missing(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            kind = not_plain(os.stat(path).st_mode)
        except (OSError, ValueError):
            raise UserError(f"{path}: no such file; name the logs of one job") from None
        if kind == DIRECTORY:
            raise UserError(f"{path}: is a directory; name the logs in it, e.g. {os.path.join(path, '*.darshan')}")
        if kind:
            raise UserError(f"{path}: is {kind}, but logs are read more than once; save it to a file first")
        if source_of(path) is None:
            raise UserError(
                f"{path}: is not a known log; Darshan logs end in .darshan, DFTracer logs in .pfw or .pfw.gz"
            )


def _darshan(paths: Sequence[str], wanted: ImportOptions) -> GatheredLogs:
    read = list(read_logs(paths, segments=wanted.traced_reads or wanted.spans))
    bad = [log for log in read if isinstance(log, UnreadableLog)]
    logs = [log for log in read if isinstance(log, DarshanLog)]
    if not logs:
        fix = (
            "use darshan-parser of Darshan 2"
            if bad[0].reason == OLD
            else "copy the log again from where it was written"
        )
        raise UserError(f"{bad[0].path}: {bad[0].reason}; {fix}")
    _refuse_several_jobs(logs)
    if wanted.traced_reads and all(log.segments is None for log in logs):
        raise UserError(
            "--dxt: no log contains extended tracing (DXT); remove --dxt, or trace with MOD_ENABLE DXT_POSIX"
        )
    options = darshan.DarshanOptions(wanted.epoch_gap_seconds, wanted.shared, wanted.traced_reads)
    gathered = darshan.import_logs(logs, wanted.rules, options)
    if wanted.ranks:
        gathered = _renumbered(gathered, logs, wanted.ranks)
    first = min(logs, key=lambda log: log.job["start_seconds"])
    said = [
        f"{os.path.basename(log.path)}: {log.complaints[0].removeprefix('Error: ')}" for log in logs if log.complaints
    ]
    unreadable = tuple(f"{os.path.basename(log.path)}: {log.reason}" for log in bad)
    doubts = structs.replace(gathered.facts.doubts, unreadable_logs=unreadable, damaged_logs=tuple(said))
    facts = structs.replace(gathered.facts, job_id=first.job["job_id"], doubts=doubts)
    operations = rank_operations(logs, wanted.rules) if wanted.spans else ()
    return replace(gathered, facts=facts, command=first.job["command"], operations=operations)


def _renumbered(gathered: GatheredLogs, logs: Sequence[DarshanLog], ranks: Mapping[int, int]) -> GatheredLogs:
    """With the ranks that processes are known to be; what others did is left out."""
    known: dict[Any, int] = dict(ranks)
    numbers = {
        placed_log.first_rank: rank
        for placed_log in place_logs(logs, None)
        if (rank := known.get(placed_log.process)) is not None
    }
    if not numbers:
        raise UserError("no log belongs to the traced processes; check the profiler's output")
    chosen = gathered.sums.filter(pl.col("rank").is_in(list(numbers)))
    renumbered = pl.col("rank").replace_strict(list(numbers), list(numbers.values()), return_dtype=pl.Int32)
    epochs = [replace(epoch, rank=numbers[epoch.rank]) for epoch in gathered.ranks if epoch.rank in numbers]
    return replace(gathered, sums=chosen.with_columns(renumbered), ranks=epochs)


def _dftracer(paths: Sequence[str], wanted: ImportOptions) -> GatheredLogs:
    options = dftracer.DFTracerOptions(wanted.epoch_span, wanted.compute_span, wanted.spans)
    return dftracer.import_traces(paths, wanted.rules, options)


def _refuse_several_jobs(logs: Sequence[DarshanLog]) -> None:
    jobs = {log.job["job_id"]: log for log in logs if log.job["job_id"] != process_of(log)}  # a pid is no job
    if len(jobs) > 1:
        first, other = list(jobs.values())[:2]
        raise UserError(
            f"logs of {len(jobs)} jobs ({first.job['job_id']}: {first.path}; {other.job['job_id']}: {other.path}); name the logs of one job"
        )


def _refuse_doubtful(doubted: LogDoubts, paths: Sequence[str]) -> None:
    findings = list(doubts(doubted))
    if findings:
        where = paths[0] if len(paths) == 1 else f"{len(paths)} logs"
        more = f" (and {counted(len(findings) - 1, 'more problem')})" if len(findings) > 1 else ""
        raise UserError(f"{where}: {findings[0].text}{more}; {findings[0].suggestion}; use --force to show it anyway")


def keep(trace: Trace, out: str) -> str:
    """The trace as a result that other commands take."""
    target = os.path.abspath(out)
    manifest.claim(target, KIND)
    with locked(target):
        if RunStore(target).finished():
            raise UserError(f"{target}: already contains imported logs; choose another --out")
        RunStore(target).save(trace)
    return target


def is_import(out: str) -> bool:
    return manifest.kind_of(out) == KIND
