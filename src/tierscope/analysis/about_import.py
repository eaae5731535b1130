"""What a reader must know about logs that others recorded: what is missing in them, and when not to trust them."""

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import structs

from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding
from tierscope.spec.load import parse_study
from tierscope.trace.described_logs import LogDoubts, LogFacts, UnknownPaths
from tierscope.trace.description import Measured

MOST_NAMED = 5
_NAME_WIDTH = 60  # of a command
APART_SHARE = 0.05  # of the time or the bytes: less is not worth a sentence


def about_import(facts: LogFacts, times: ClassTimes, breakdown: Breakdown) -> list[Finding]:
    """What is wrong with it and what is missing; how storage is used is told by `habits`."""
    return [*doubts(facts.doubts), *_missing(facts, times, breakdown)]


def doubts(doubted: LogDoubts) -> Iterator[Finding]:
    """Why these logs are not to be trusted."""
    for kind, names in (("unreadable_logs", doubted.unreadable_logs), ("damaged_logs", doubted.damaged_logs)):
        if names:
            yield Finding(kind, {"logs": len(names), "names": list(names[:MOST_NAMED])})
    for kind, records in (("negative_times", doubted.negative_times), ("impossible_ranks", doubted.impossible_ranks)):
        if records:
            yield Finding(kind, {"records": records})
    for log in doubted.long_meta:
        yield Finding("long_meta", structs.asdict(log))


def _missing(facts: LogFacts, times: ClassTimes, breakdown: Breakdown) -> Iterator[Finding]:
    if not times.table["ops"].sum() and not facts.shared:
        yield Finding("no_data_files", {"processes": facts.process_count})
    yield from _partial(facts.doubts)
    yield from _unknown(facts.unknown, times, breakdown)
    if facts.spawned.by_start:
        yield Finding("grouped_by_start", {"processes": facts.spawned.by_start})
    if facts.spawned.alone:
        yield Finding("lone_workers", {"processes": facts.spawned.alone})
    if not facts.shared_split:
        for shared in facts.shared:
            yield Finding("shared_files", structs.asdict(shared))
    yield from _apart(facts, times)
    if facts.traced_reads:
        yield Finding("reads_only", {})
    yield from _about_lines(facts.doubts)
    if facts.outside_epochs.ops:
        yield Finding("outside_epochs", {"ops": facts.outside_epochs.ops, "seconds": facts.outside_epochs.seconds})
    if times.epochs["epoch"].n_unique() == 1 and times.table["ops"].sum():
        whole_run = Finding("starts_of_workers" if facts.own_files else "no_epochs", {})
        yield _several_steps(facts.steps) if facts.steps else whole_run


def _several_steps(commands: Sequence[str]) -> Finding:
    """Programs without their folders: what tells them apart comes behind."""
    names = [textwrap.shorten(command, _NAME_WIDTH, placeholder=" …") for command in map(_without_folder, commands)]
    return Finding("several_steps", {"steps": len(names), "names": names})


def _without_folder(command: str) -> str:
    program, _, options = command.partition(" ")
    return f"{os.path.basename(program)} {options}".strip()


def _unknown(unknown: UnknownPaths, times: ClassTimes, breakdown: Breakdown) -> Iterator[Finding]:
    """On no tier that is known, where it is more than a rest of all, or of the slowest process; of results of earlier versions
    always, for it is not in their table."""
    if not unknown.files:
        return
    evidence = {
        "files": unknown.files,
        "bytes": unknown.bytes,
        "prefixes": [prefix.path for prefix in unknown.prefixes[:MOST_NAMED]],
        "suggestion": unknown.suggestion,
    }
    if unknown.tier is None:
        yield Finding("unknown_paths", evidence)
        return
    of_bytes, of_seconds = (
        100 * part / whole if (whole := float(times.table[column].sum() or 0)) else 0.0
        for part, column in ((unknown.bytes, "bytes"), (unknown.seconds, "seconds"))
    )
    name = unknown.tier.upper()
    of_slowest = sum(
        breakdown.best.classes[class_name] for class_name in breakdown.io_classes if class_name.startswith(f"{name}-")
    )
    if max(of_bytes, of_seconds) > 100 * APART_SHARE or of_slowest > APART_SHARE * breakdown.best.io.median:
        shares = {"tier": name, "seconds": unknown.seconds, "of_bytes": of_bytes, "of_seconds": of_seconds}
        yield Finding("other_paths", {**evidence, **shares})


def _apart(facts: LogFacts, times: ClassTimes) -> Iterator[Finding]:
    """What is in no class of I/O, where it takes a good part of the time of all processes."""
    whole = float(times.table["seconds"].sum() or 0) + facts.program.seconds + facts.streams.seconds
    for kind, apart in (("standard_streams", facts.streams), ("program_files", facts.program)):
        if apart.seconds > APART_SHARE * whole:
            names = [sums.path for sums in apart.largest[:MOST_NAMED]] or ["paths that are not known"]
            evidence = {"ops": apart.ops, "bytes": apart.bytes, "seconds": apart.seconds}
            yield Finding(kind, {**evidence, "percent": 100 * apart.seconds / whole, "names": names})


def about_profiled(measured: Sequence[Measured]) -> list[Finding]:
    """The same of runs of ours that another profiler measured, all runs together. What it saw outside of epochs was ours."""
    logs = [about.logs for about in measured if about.profiler and about.logs]
    if not logs:
        return []
    merged = _merged([log.facts.doubts for log in logs])
    findings = [*doubts(merged), *_partial(merged), *_about_lines(merged)]
    missed = {"ops": sum(log.missed_ops for log in logs), "bytes": sum(log.missed_bytes for log in logs)}
    if any(missed.values()):
        profilers = sorted({about.profiler for about in measured if about.profiler})
        untried = ["reader.read_threads to 1"] if any(map(_reads_with_threads, measured)) else []
        findings.append(Finding("missed_by_profiler", {"profilers": profilers, **missed, "untried": untried}))
    return findings


def _reads_with_threads(about: Measured) -> bool:
    return about.study is not None and parse_study(about.study, "the study of a run").workload.reader.read_threads > 1


def _merged(all_doubts: Sequence[LogDoubts]) -> LogDoubts:
    partial: Counter[str] = Counter()
    for log_doubts in all_doubts:
        partial.update(log_doubts.partial_modules)
    return LogDoubts(
        unreadable_logs=tuple(name for log_doubts in all_doubts for name in log_doubts.unreadable_logs),
        damaged_logs=tuple(name for log_doubts in all_doubts for name in log_doubts.damaged_logs),
        negative_times=sum(log_doubts.negative_times for log_doubts in all_doubts),
        impossible_ranks=sum(log_doubts.impossible_ranks for log_doubts in all_doubts),
        long_meta=tuple(log for log_doubts in all_doubts for log in log_doubts.long_meta)[:MOST_NAMED],
        partial_modules=partial,
        cut_files=tuple(name for log_doubts in all_doubts for name in log_doubts.cut_files),
        broken_lines=sum(log_doubts.broken_lines for log_doubts in all_doubts),
        broken_last_lines=sum(log_doubts.broken_last_lines for log_doubts in all_doubts),
        no_names=sum(log_doubts.no_names for log_doubts in all_doubts),
    )


def _partial(doubted: LogDoubts) -> Iterator[Finding]:
    if partial := doubted.partial_modules:
        yield Finding("partial_logs", {"modules": sorted(partial), "logs": max(partial.values())})


def _about_lines(doubted: LogDoubts) -> Iterator[Finding]:
    """Of logs that are made of lines."""
    cut = len(doubted.cut_files) + doubted.broken_last_lines
    if cut:
        yield Finding("cut_logs", {"files": cut})
    if doubted.broken_lines:
        yield Finding("broken_lines", {"lines": doubted.broken_lines})
    if doubted.no_names:
        yield Finding("no_names", {"ops": doubted.no_names})
