"""Findings: what a reader of the numbers must know. Data first; all wording stands in one table.

A finding has a kind, evidence (numbers and names) and, made from those, a sentence and a suggestion.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

from tierscope.analysis.breakdown import Breakdown, sweep_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.units import about_seconds

# kind → (what was found, what to do about it)
WORDING: dict[str, tuple[str, str]] = {
    "partial": (
        "{finished} of {total} runs are finished; what follows is about those",
        "run the same command again to go on",
    ),
    "emulated": (
        "emulated tiers: {tiers}; their times come from configured rates, not from hardware",
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
        "up to {percent:.0f} % of an epoch's rate-limited operations really took longer than emulated, {seconds} in all",
        "lower the emulated rates or the number of ranks on this machine",
    ),
    "overhead": (
        "Tierscope itself may account for {percent:.0f} % of the I/O time ({seconds} per sample)",
        "read larger samples, or use fewer ranks per core",
    ),
    "threads": (
        "several reading threads wait for Python's lock: about {seconds} per operation, {percent:.0f} % of the I/O time",
        "use one reading thread and more ranks per node",
    ),
    "decode": (
        "checking samples took {decode} per epoch in the slowest rank, against {io} of I/O: the client is the limit",
        "faster storage will not help; use more read threads or a cheaper format",
    ),
    "hidden": (
        "ranks waited for data {percent:.1f} % of the epoch at the best point: compute hides the storage",
        "faster storage would gain at most that",
    ),
    "goal_met": ("the goal of {goal} is met at {where} ({io})", "that is the first point of the sweep that meets it"),
    "goal_missed": (
        "the goal of {goal} is missed by {over}: the best is {io}, most of it {bottleneck}",
        "that class is where to begin",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    evidence: dict[str, Any]

    @property
    def text(self) -> str:
        return WORDING[self.kind][0].format(**self.evidence)

    @property
    def suggestion(self) -> str:
        return WORDING[self.kind][1]


WARM_SHARE = 0.01
LATE_SHARE = 0.05
OVERHEAD_SHARE = 0.05
HIDDEN_SHARE = 0.05


def find(
    times: ClassTimes, breakdown: Breakdown, given: Conditions, expected_runs: int | None, goal: float | None
) -> list[Finding]:
    """Everything worth saying about these measurements, most important first."""
    findings: list[Finding] = []
    if expected_runs is not None and len(times.about) < expected_runs:
        findings.append(Finding("partial", {"finished": len(times.about), "total": expected_runs}))
    findings += _about_goal(breakdown, goal)
    if not times.about:
        return findings
    findings += _about_tiers(given)
    findings += _about_ranks(times, breakdown, given)
    trimmed = max(int(about.get("trimmed_samples") or 0) for about in times.about)
    if trimmed:
        findings.append(Finding("trimmed", {"samples": trimmed}))
    if any(about.get("compute") == "sleep" for about in times.about):
        findings.append(Finding("sleeping_compute", {}))
    return findings


def _about_tiers(given: Conditions) -> list[Finding]:
    findings = [Finding("emulated", {"tiers": ", ".join(given.emulated)})] if given.emulated else []
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
        seconds = about_seconds(_sum(epochs, "late_seconds"))
        findings.append(Finding("late", {"percent": 100 * late, "seconds": seconds}))
    findings += _about_threads(times, breakdown, given)
    per_sample = given.harness_seconds_per_sample or 0.0
    samples = epochs["samples"].max()
    share = per_sample * float(samples) / breakdown.best.io.median if breakdown.best.io.median else 0.0  # type: ignore[arg-type]
    if share > OVERHEAD_SHARE:
        findings.append(Finding("overhead", {"percent": min(100.0, 100 * share), "seconds": about_seconds(per_sample)}))
    decode = float(epochs["decode_seconds"].max() or 0)  # type: ignore[arg-type]
    if decode > breakdown.best.io.median:
        findings.append(
            Finding("decode", {"decode": about_seconds(decode), "io": about_seconds(breakdown.best.io.median)})
        )
    at_best = epochs.filter(
        pl.lit(True), *(pl.col(name).eq_missing(value) for name, value in breakdown.best.sweep.items())
    )
    waited = _sum(at_best, "stall_seconds") / max(1e-9, _sum(at_best, "epoch_seconds"))
    if _sum(epochs, "compute_seconds") > 0 and waited < HIDDEN_SHARE:
        findings.append(Finding("hidden", {"percent": 100 * waited}))
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
    return [Finding("threads", {"seconds": about_seconds(per_op), "percent": min(100.0, 100 * share)})]


def _sum(table: pl.DataFrame, column: str) -> float:
    return float(table[column].sum())


def _about_goal(breakdown: Breakdown, goal: float | None) -> list[Finding]:
    if goal is None:
        return []
    best = breakdown.best.io.median
    if best > goal:
        return [
            Finding(
                "goal_missed",
                {
                    "goal": about_seconds(goal),
                    "over": about_seconds(best - goal),
                    "io": about_seconds(best),
                    "bottleneck": breakdown.best.bottleneck,
                },
            )
        ]
    first = next(point for point in breakdown.summary if point.io.median <= goal)
    where = sweep_text(first.sweep)
    return [Finding("goal_met", {"goal": about_seconds(goal), "where": where, "io": about_seconds(first.io.median)})]
