"""Findings: what a reader of the numbers must know. Data first; all wording stands in one table.

A finding has a kind, evidence (numbers in base units, and names) and, made from those, a sentence and a suggestion.
"""

import shlex
import signal
import string
import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl

from tierscope.analysis.breakdown import Breakdown, sweep_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.units import about_bytes, about_seconds

# kind → (what was found, what to do about it). Seconds are shown by :time, bytes by :size, lists with what stands behind the colon.
WORDING: dict[str, tuple[str, str]] = {
    "partial": (
        "{finished} of {total} runs are finished; what follows is about those",
        "run the same command again to go on",
    ),
    "emulated": (
        "emulated tiers: {tiers:, }; their times come from configured rates, not from hardware",
        "give real paths and remove 'emulate' to measure your own storage",
    ),
    "warm_pages": (
        "{tier}: up to {percent:.0f} % of the checked bytes were still in the page cache when an epoch began: not cold",
        "use a filesystem whose pages can be evicted (not tmpfs), or a dataset larger than memory",
    ),
    "unknown_pages": (
        "{tier}: this kernel cannot say whether files were in the page cache; reads may be warm",
        "use Linux 6.5 or newer, or a dataset larger than memory",
    ),
    "warm_metadata": (
        "META is warm: every file was opened before the epoch to evict its pages; caches of servers are unknown",
        "set reader.evict to false and drop the caches or renew the mount yourself to see cold metadata",
    ),
    "not_evicted": (
        "the page cache was left alone (reader.evict is false): reads may be warm, and nobody looked",
        "make sure yourself that caches were dropped, or that the dataset is larger than memory",
    ),
    "trimmed": (
        "{samples} samples per epoch were left out, because they do not divide over the ranks",
        "choose num_files_train as a multiple of the ranks",
    ),
    "sleeping_compute": (
        "compute was slept, not computed: a host had no core to spare for it",
        "use fewer ranks per host if the CPU's own load matters",
    ),
    "late": (
        "up to {percent:.0f} % of an epoch's rate-limited operations really took longer than emulated, {seconds:time} in all",
        "lower the emulated rates or the number of ranks on this machine",
    ),
    "overhead": (
        "Tierscope itself may account for {percent:.0f} % of the I/O time ({seconds:time} per sample)",
        "read larger samples, or use fewer ranks per core",
    ),
    "threads": (
        "several reading threads wait for Python's lock: about {seconds:time} per operation, {percent:.0f} % of the I/O time",
        "use one reading thread and more ranks per node",
    ),
    "decode": (
        "checking samples took {decode_seconds:time} per epoch in the slowest rank, against {io_seconds:time} of I/O: the client is the limit",
        "faster storage will not help; use more read threads or a cheaper format",
    ),
    "writes": (
        "writing took {write_seconds:time} per epoch in the rank that wrote longest, more than the reads and metadata "
        "that are shown as I/O ({io_seconds:time})",
        "begin with what is written (checkpoints, logs): faster reads would gain less",
    ),
    "hidden": (
        "ranks waited for data {percent:.1f} % of the epoch at the best point: compute hides the storage",
        "faster storage would gain at most that",
    ),
    "nothing_recorded": (
        "no operation on a file of a tier was recorded",
        "check the paths given as --tier; statically linked and setuid programs, io_uring and direct system calls are not seen",
    ),
    "running": (
        "the command still runs ({command}; processes: {pids:, }): this is what it did so far",
        "analyze again when it has ended; its records are kept until then",
    ),
    "ended_command": (
        "the command was ended by {signal} (exit code {code}): this is what it did until then",
        "look at what the command itself printed",
    ),
    "failed_command": (
        "the command ended with exit code {code}: this is what it did until then",
        "look at what the command itself printed",
    ),
    "no_marks": (
        "no epochs were marked: everything counts as one, {span_seconds:time} from the first operation to the last",
        "call tierscope.mark_epoch(n) where epoch n begins, or trace with --epochs rereads",
    ),
    "outside": (
        "operations of processes that are no rank's: {ops} ({seconds:time}); they are not in the table",
        "nothing, unless they should count: then start them under the launcher too",
    ),
    "mapped": (
        "{tier}: {ops} × mmap of its files, {bytes:size} in all; what was read through them is not seen",
        "let the program read instead of map to see it (for NumPy: mmap_mode=None)",
    ),
    "wall_processes": (
        "wall seconds are shared within a process only: up to {processes} processes of a rank had I/O, and theirs are added up",
        "take them as the most that it can have been",
    ),
    "unrecorded": (
        "processes that could not write their records (they changed user or root directory, or their limits forbade it): {processes}; "
        "at least {ops} operations are missing",
        "start them as the user who traces, without chroot, and with room for a file and its mapping (ulimit -f, -v)",
    ),
    "under_way": (
        "operations that had not ended when their process did, or that still run: {ops}, the longest for at most {seconds:time}; they are not in the sums",
        "storage that does not answer shows here",
    ),
    "lost_ops": (
        "operations that could not be recorded: {ops} (no space left, or inside a signal's handler); sums are too small by these",
        "give an --out with more room",
    ),
    "lost_rows": (
        "rows of the operation list that could not be written: {rows}; sums and histograms are complete",
        "give an --out with more room",
    ),
    "cut": (
        "threads that were cut off while a record was being made: {lanes}; at most one operation of each is partly counted",
        "nothing: this is what a kill leaves",
    ),
    "damaged": (
        "damaged files of records, left out as far as they are damaged: {files} ({names:; })",
        "check the filesystem of --out, and trace again",
    ),
    "still_running": (
        "processes that still ran when the command had ended: {processes}; what they did later is not in here",
        "let the command wait for what it starts",
    ),
    "unemulated": (
        "processes on another host, where nothing is emulated: {processes}; their times are the storage's own",
        "emulate on one host only",
    ),
    "scattered": (
        "processes on another host than the first of their rank: {processes}; they count there, without their epoch times",
        "let a launcher number them (torchrun, mpirun, srun), or set RANK and WORLD_SIZE",
    ),
    "root_tier": (
        "{tier} is the whole filesystem: libraries, temporary files and the program itself count too",
        "give the directory of the data as --tier",
    ),
    "goal_met": (
        "the goal of {goal_seconds:time} is met at {where} ({io_seconds:time})",
        "that is the first point of the sweep that meets it",
    ),
    "goal_missed": (
        "the goal of {goal_seconds:time} is missed by {over_seconds:time}: the best is {io_seconds:time}, most of it {bottleneck}",
        "that class is where to begin",
    ),
}


class _Words(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list):
            return format_spec.join(map(str, value))
        if format_spec == "time":
            return "an unknown time" if value is None else about_seconds(value)
        return about_bytes(value) if format_spec == "size" else str(super().format_field(value, format_spec))


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    evidence: dict[str, Any]

    @property
    def text(self) -> str:
        return _Words().vformat(WORDING[self.kind][0], (), self.evidence)

    @property
    def suggestion(self) -> str:
        return WORDING[self.kind][1]


WARM_SHARE = 0.01
LATE_SHARE = 0.05
OVERHEAD_SHARE = 0.05
HIDDEN_SHARE = 0.05
MOST_NAMED = 5
_COMMAND_WIDTH = 60


def find(
    times: ClassTimes, breakdown: Breakdown, given: Conditions, expected_runs: int | None, goal: float | None
) -> list[Finding]:
    """Everything worth saying about these measurements, most important first."""
    findings: list[Finding] = []
    if expected_runs is not None and len(times.about) < expected_runs:
        findings.append(Finding("partial", {"finished": len(times.about), "total": expected_runs}))
    findings += _about_goal(breakdown, goal)
    findings += _about_writes(breakdown)
    if not times.about:
        return findings
    findings += _about_tiers(given)
    findings += _about_ranks(times, breakdown, given)
    for about in times.about:
        findings += _about_tracing(about, times) if about.get("kind") == "traced" else []
    trimmed = max(int(about.get("trimmed_samples") or 0) for about in times.about)
    if trimmed:
        findings.append(Finding("trimmed", {"samples": trimmed}))
    if any(about.get("compute") == "sleep" for about in times.about):
        findings.append(Finding("sleeping_compute", {}))
    return findings


def _about_tiers(given: Conditions) -> list[Finding]:
    findings = [Finding("emulated", {"tiers": list(given.emulated)})] if given.emulated else []
    for tier, share in given.resident.items():
        if share is None:
            findings.append(Finding("unknown_pages", {"tier": tier}))
        elif share > WARM_SHARE:
            findings.append(Finding("warm_pages", {"tier": tier, "percent": 100 * share}))
    if not given.evicted:
        findings.append(Finding("not_evicted", {}))
    if given.warm_metadata:
        findings.append(Finding("warm_metadata", {}))
    return findings


def _about_ranks(times: ClassTimes, breakdown: Breakdown, given: Conditions) -> list[Finding]:
    findings = []
    epochs = times.epochs
    late = _largest_late_share(times)
    if late > LATE_SHARE:
        findings.append(Finding("late", {"percent": 100 * late, "seconds": _sum(epochs, "late_seconds")}))
    findings += _about_threads(times, breakdown, given)
    per_sample = given.harness_seconds_per_sample or 0.0
    samples = epochs["samples"].max() or 0
    share = per_sample * float(samples) / breakdown.best.io.median if breakdown.best.io.median else 0.0  # type: ignore[arg-type]
    if share > OVERHEAD_SHARE:
        findings.append(Finding("overhead", {"percent": min(100.0, 100 * share), "seconds": per_sample}))
    decode = float(epochs["decode_seconds"].max() or 0)  # type: ignore[arg-type]
    if decode > breakdown.best.io.median:
        findings.append(Finding("decode", {"decode_seconds": decode, "io_seconds": breakdown.best.io.median}))
    at_best = epochs.filter(
        pl.lit(True), *(pl.col(name).eq_missing(value) for name, value in breakdown.best.sweep.items())
    )
    known = at_best.drop_nulls(["stall_seconds", "epoch_seconds"])
    waited = _sum(known, "stall_seconds") / max(1e-9, _sum(known, "epoch_seconds"))
    if _sum(epochs, "compute_seconds") > 0 and waited < HIDDEN_SHARE and not known.is_empty():
        findings.append(Finding("hidden", {"percent": 100 * waited}))
    return findings


def _about_tracing(about: dict[str, Any], times: ClassTimes) -> list[Finding]:
    """What a preloaded recorder saw of a command, and what it could not see."""
    findings = _about_end(about)
    if not times.table["ops"].sum():
        findings += [] if about.get("unrecorded_processes") else [Finding("nothing_recorded", {})]
    elif not about.get("marked") and times.epochs["epoch"].n_unique() == 1:
        findings.append(Finding("no_marks", {"span_seconds": about.get("span_seconds")}))
    for tier in about.get("tiers", []):
        if "/" in tier["prefixes"]:
            findings.append(Finding("root_tier", {"tier": tier["name"]}))
    if times.basis == "wall":
        findings += _about_wall(about)
    return findings + _about_unseen(about)


def _about_end(about: dict[str, Any]) -> list[Finding]:
    """How the command ended, if there is anything to say about that."""
    if about.get("running"):
        command = textwrap.shorten(shlex.join(about["command"]), _COMMAND_WIDTH, placeholder=" …")
        return [Finding("running", {"command": command, "pids": about["running"][:MOST_NAMED]})]
    code = about.get("exit_code")
    if not code:
        return []
    try:
        return [Finding("ended_command", {"signal": signal.Signals(code - 128).name, "code": code})]
    except ValueError:
        return [Finding("failed_command", {"code": code})]


def _about_wall(about: dict[str, Any]) -> list[Finding]:
    with_io = [process["rank"] for process in about.get("processes", []) if process["lanes"]]
    most = max(Counter(rank for rank in with_io if rank is not None).values(), default=0)
    return [Finding("wall_processes", {"processes": most})] if most > 1 else []


def _about_unseen(about: dict[str, Any]) -> list[Finding]:
    findings: list[Finding] = []
    if about.get("unrecorded_processes"):
        missing = {"processes": about["unrecorded_processes"], "ops": about.get("unrecorded_ops") or 0}
        findings.append(Finding("unrecorded", missing))
    if about.get("outside_ops"):
        findings.append(Finding("outside", {"ops": about["outside_ops"], "seconds": about["outside_seconds"]}))
    if about.get("under_way_ops"):
        findings.append(Finding("under_way", {"ops": about["under_way_ops"], "seconds": about["under_way_seconds"]}))
    for tier, sums in about["mapped"].items():
        findings.append(Finding("mapped", {"tier": tier, "ops": sums["ops"], "bytes": sums["bytes"]}))
    for kind, noun, name in (
        ("lost_ops", "ops", "lost_ops"),
        ("lost_rows", "rows", "lost_rows"),
        ("cut", "lanes", "cut_lanes"),
        ("still_running", "processes", "still_running"),
        ("unemulated", "processes", "unemulated_processes"),
        ("scattered", "processes", "scattered_processes"),
    ):
        if about.get(name):
            findings.append(Finding(kind, {noun: about[name]}))
    if about.get("damaged_file_count"):
        names = about["damaged_files"][:MOST_NAMED]
        findings.append(Finding("damaged", {"files": about["damaged_file_count"], "names": names}))
    return findings


def _largest_late_share(times: ClassTimes) -> float:
    """Of any epoch at any point."""
    sums = times.epochs.group_by(times.keys).agg(pl.col("late_ops", "limited_ops").sum())
    limited = sums.filter(pl.col("limited_ops") > 0)
    return max((limited["late_ops"] / limited["limited_ops"]).to_list(), default=0.0)


def _about_threads(times: ClassTimes, breakdown: Breakdown, given: Conditions) -> list[Finding]:
    per_op = given.threads_seconds_per_op or 0.0
    ops = times.table.group_by([*times.keys, "rank"]).agg(pl.col("ops").sum())["ops"].max() or 0
    share = per_op * float(ops) / breakdown.best.io.median if breakdown.best.io.median else 0.0  # type: ignore[arg-type]
    if share <= OVERHEAD_SHARE:
        return []
    return [Finding("threads", {"seconds": per_op, "percent": min(100.0, 100 * share)})]


def _sum(table: pl.DataFrame, column: str) -> float:
    return float(table[column].sum())


def _about_writes(breakdown: Breakdown) -> list[Finding]:
    """METHOD: writes are no part of the I/O time, however long they take."""
    point = max(breakdown.summary, key=lambda point: point.write_seconds)
    if point.write_seconds <= point.io.median:
        return []
    return [Finding("writes", {"write_seconds": point.write_seconds, "io_seconds": point.io.median})]


def _about_goal(breakdown: Breakdown, goal: float | None) -> list[Finding]:
    if goal is None:
        return []
    best = breakdown.best.io.median
    if best > goal:
        return [
            Finding(
                "goal_missed",
                {
                    "goal_seconds": goal,
                    "over_seconds": best - goal,
                    "io_seconds": best,
                    "bottleneck": breakdown.best.bottleneck,
                },
            )
        ]
    first = next(point for point in breakdown.summary if point.io.median <= goal)
    where = sweep_text(first.sweep)
    return [Finding("goal_met", {"goal_seconds": goal, "where": where, "io_seconds": first.io.median})]
