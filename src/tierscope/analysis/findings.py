"""Findings: what a reader of the numbers must know. Data first; the words are in `wording.py`."""

import shlex
import signal
import textwrap
from collections import Counter
from collections.abc import Sequence

import polars as pl

from tierscope.analysis.about_import import about_import, about_profiled
from tierscope.analysis.breakdown import Breakdown, counted_epochs, sweep_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.coverage import about_coverage, about_elsewhere, about_page_cache
from tierscope.analysis.feasible import about_feasibility
from tierscope.analysis.goals import about_goal
from tierscope.analysis.habits import about_habits, about_study
from tierscope.analysis.run_command import run_command
from tierscope.analysis.staging_costs import rates_at_best
from tierscope.analysis.statistics import settled
from tierscope.analysis.stragglers import about_stragglers
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.training import Training, about_training
from tierscope.analysis.wording import Finding
from tierscope.analysis.worth import hides_io
from tierscope.spec.goal import Goal
from tierscope.trace.described_stations import StationLoad
from tierscope.trace.description import (
    RANK_WALL,
    Imported,
    Measured,
    RecordedCommand,
    Records,
    Simulated,
    StudyRun,
    Traced,
)

WARM_SHARE = 0.01
LATE_SHARE = 0.05
OVERHEAD_SHARE = 0.05
MOST_NAMED = 5
CHECKPOINT_SHARE = 0.1
_COMMAND_WIDTH = 60
_OF_ALL_READS = (
    "metadata_dominated",
    "metadata_of_writes",
    "tier_not_used",
)  # wrong where most reads were not recorded


def find(
    times: ClassTimes,
    breakdown: Breakdown,
    given: Conditions,
    expected_runs: int | None,
    goal: Goal | None,
    training: Training | None = None,
    unread_runs: int = 0,
) -> list[Finding]:
    """Everything worth saying about these measurements, most important first. `unread_runs` are finished and not among the times."""
    findings: list[Finding] = []
    finished = len(times.about) + unread_runs
    if expected_runs is not None and finished < expected_runs:
        findings.append(Finding("partial", {"finished": finished, "total": expected_runs}))
    findings += [Finding("inert_key", {"key": key, "why": why}) for key, why in given.inert.items()]
    findings += about_feasibility(breakdown, bool(given.simulated))
    findings += about_training(training)
    findings += about_goal(breakdown, goal)
    findings += _about_amounts(breakdown)
    if not times.about:
        return findings
    findings += _about_checkpoints(times, breakdown)
    findings += _about_tiers(given)
    warm = frozenset(finding.evidence["tier"] for finding in findings if finding.kind in ("warm_pages", "warm_storage"))
    low = [] if times.epoch is not None else [*about_coverage(times.about), *about_page_cache(times.about, warm)]
    findings += low
    findings += about_elsewhere(times.runs) if times.epoch is None else []
    findings += _about_simulation(times, breakdown, given) if given.simulated else []
    findings += _about_ranks(times, breakdown, given)
    for run in times.runs:
        match run.about:
            case Traced() as traced:
                by_maps = any(finding.evidence.get("cause") in ("mmap", "writable_mmap") for finding in low)
                findings += _about_tracing(traced, times, by_maps)
                habits = about_habits(times, breakdown, run.habits)
                findings += [habit for habit in habits if not (by_maps and habit.kind in _OF_ALL_READS)]
            case Imported() as imported:
                findings += _about_end(imported.command, imported.recorded) if imported.recorded else []
                findings += about_import(imported.facts, times, breakdown)
                findings += about_habits(times, breakdown, run.habits)
    measured = [about for about in times.about if isinstance(about, Measured)]
    if measured:
        findings += about_study(times, breakdown)
    findings += about_profiled(measured)
    trimmed = max((about.trimmed_samples for about in times.about if isinstance(about, StudyRun)), default=0)
    if trimmed:
        findings.append(Finding("trimmed", {"samples": trimmed}))
    if any(about.compute == "sleep" for about in measured):
        findings.append(Finding("sleeping_compute", {}))
    return findings


def _some(names: Sequence[str | None]) -> list[str | None]:
    return [*names[:MOST_NAMED], *(["…"] if len(names) > MOST_NAMED else [])]


def _about_amounts(breakdown: Breakdown) -> list[Finding]:
    """Points that read different amounts of data cannot be ranked, nor points of different cases."""
    if len(breakdown.groups) < 2:
        return []
    cases = list(dict.fromkeys(group.case for group in breakdown.groups))
    if len(cases) > 1:
        return [Finding("several_cases", {"cases": len(cases), "names": _some(cases)})]
    return [Finding("different_data", {"groups": len(breakdown.groups), "points": len(breakdown.summary)})]


def _about_tiers(given: Conditions) -> list[Finding]:
    findings = [Finding("emulated", {"tiers": list(given.emulated)})] if given.emulated else []
    findings += [Finding("simulated", {"methods": list(given.simulated)})] if given.simulated else []
    findings += [Finding("same_device", {"tier": tier, "other": other}) for tier, other in given.one_device]
    findings += [Finding("warm_storage", {"tier": tier}) for tier in given.warm_storages]
    for tier, share in given.resident.items():
        if tier in given.warm_storages:
            continue
        if share is None:
            findings.append(Finding("unknown_pages", {"tier": tier}))
        elif share > WARM_SHARE:
            findings.append(Finding("warm_pages", {"tier": tier, "percent": 100 * share}))
    if not given.evicted:
        findings.append(Finding("not_evicted", {}))
    if given.warm_metadata:
        findings.append(Finding("warm_metadata", {"tiers": given.warm_metadata}))
    return findings


def _about_simulation(times: ClassTimes, breakdown: Breakdown, given: Conditions) -> list[Finding]:
    simulated = [about for about in times.about if isinstance(about, Simulated)]
    findings = [Finding("upper_bound", {})] if any(about.upper_bound for about in simulated) else []
    if shares := [about.sampled_share for about in simulated if about.sampled_share is not None]:
        findings.append(Finding("sampled_operations", {"percent": 100 * min(shares)}))
    for why in dict.fromkeys(why for about in simulated for why in about.unidentified):
        sweeps = [about.sweep for about in simulated if why in about.unidentified]
        points = list(dict.fromkeys(map(sweep_text, sweeps)))
        point = breakdown.best.sweep if breakdown.best.sweep in sweeps else sweeps[0]
        command = run_command(point, given.given)
        findings.append(Finding("not_identified", {"why": why, "points": points, "command": command}))
    if given.checkpoints_left_out:
        findings.append(Finding("checkpoints_not_simulated", {}))
    if tiers := sorted({tier for about in simulated for tier in about.writes_as_reads}):
        findings.append(Finding("writes_as_reads", {"tiers": tiers}))
    if "bound" in given.simulated and _sum(times.epochs, "compute_seconds") > 0:
        findings.append(Finding("rough_bound", {}))
    findings += _about_layouts(simulated)
    return [*findings, *_about_stations(simulated, breakdown), *_about_staging(breakdown)]


def _about_layouts(simulated: Sequence[Simulated]) -> list[Finding]:
    """Of each tier with files on servers that nobody knows, once for all points."""
    servers: dict[tuple[str, int], set[int]] = {}
    for layout in (layout for about in simulated for layout in about.drawn_layouts):
        servers.setdefault((layout.tier, layout.tried), set()).add(layout.servers)
    return [
        Finding("layout_drawn", {"servers": sorted(counts), "tier": tier, "tried": tried})
        for (tier, tried), counts in sorted(servers.items())
    ]


def _about_stations(simulated: Sequence[Simulated], breakdown: Breakdown) -> list[Finding]:
    """Of the best point, where it was simulated: which station is busiest, and how close the next kind is."""
    stations = next((about.stations for about in simulated if about.sweep == breakdown.best.sweep), ())
    if not stations or not stations[0].seconds:
        return []
    second = stations[1] if len(stations) > 1 else StationLoad(station="none", seconds=0.0)
    evidence = {
        "where": sweep_text(breakdown.best.sweep),
        "station": stations[0].station,
        "seconds": stations[0].seconds,
        "second": second.station,
        "percent": 100 * second.seconds / stations[0].seconds,
    }
    return [Finding("busiest_station", evidence)]


def _about_staging(breakdown: Breakdown) -> list[Finding]:
    """Where a sweep of cache rates begins without any: when is it worth it to stage? All other keys as at the best point."""
    points = rates_at_best(breakdown)
    bare = next((point for point in points if point.sweep["cache_rate"] == 0), None)
    possible = [point for point in points if point.is_possible and point is not bare]
    staged = [point for point in possible if point.staging_seconds and point.epoch_seconds]
    if bare is None or not staged:
        return []
    paying = [(point.break_even_epochs, point) for point in staged if point.break_even_epochs is not None]
    if not paying:
        return [Finding("staging_never_pays", {"epoch_seconds": bare.epoch_seconds})]
    soonest_epochs, soonest = min(paying, key=lambda pair: pair[0])
    best_epochs, shortest = min(paying, key=lambda pair: settled(pair[1].epoch_seconds or 0.0))
    evidence = {
        "soonest_where": sweep_text(soonest.sweep),
        "soonest_epochs": soonest_epochs,
        "best_where": sweep_text(shortest.sweep),
        "best_epochs": best_epochs,
        "staging_seconds": shortest.staging_seconds,
    }
    return [Finding("staging_pays", evidence)]


def _about_ranks(times: ClassTimes, breakdown: Breakdown, given: Conditions) -> list[Finding]:
    findings = about_stragglers(times)
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
    best = breakdown.best  # without I/O there is nothing to hide
    if best.io.median > 0 and best.compute_seconds and best.stall_share is not None and hides_io(best):
        findings.append(Finding("hidden", {"percent": 100 * best.stall_share}))
    return findings


def _about_tracing(about: Traced, times: ClassTimes, maps_are_said: bool) -> list[Finding]:
    """What a preloaded recorder saw of a command, and what it could not see."""
    records = about.records
    findings = _about_end(shlex.join(about.command), about)
    if not times.table["ops"].sum():
        findings += [] if records.unrecorded_processes else [Finding("nothing_recorded", {})]
    else:
        findings += _about_epochs(about, times)
    for tier in about.tiers:
        if "/" in tier.prefixes:
            findings.append(Finding("root_tier", {"tier": tier.name}))
    if times.basis == "wall" and RANK_WALL not in about.provides:
        findings += _about_wall(records)
    return findings + _about_unseen(records, maps_are_said)


def _about_epochs(about: Traced, times: ClassTimes) -> list[Finding]:
    """How epochs were told apart, where the program did not mark them; none of it recommends what was tried."""
    records, rereads = about.records, about.records.rereads
    span = {"span_seconds": records.span_seconds}
    if records.marked:
        return []
    if about.epochs == "rereads" and rereads is None:
        return [Finding("epochs_by_opens", {})]
    if rereads and rereads.doubt:
        return [Finding("epochs_unsure", {"doubt": rereads.doubt, **span})]
    if rereads and rereads.passes > 1:
        return [Finding("rereads_found", {"passes": rereads.passes, "late_reads": rereads.late_reads})]
    if times.epoch is None and times.epochs["epoch"].n_unique() == 1:
        return [Finding("one_pass" if rereads else "no_marks", span)]
    return []


def _about_end(command: str, ended: Traced | RecordedCommand) -> list[Finding]:
    """How the command ended, if there is anything to say about that."""
    if ended.running:
        shown = textwrap.shorten(command, _COMMAND_WIDTH, placeholder=" …")
        return [Finding("running", {"command": shown, "pids": list(ended.running[:MOST_NAMED])})]
    code = ended.exit_code
    if not code:
        return []
    try:
        return [Finding("ended_command", {"signal": signal.Signals(code - 128).name, "code": code})]
    except ValueError:
        return [Finding("failed_command", {"code": code})]


def _about_wall(records: Records) -> list[Finding]:
    with_io = [process.rank for process in records.processes if process.lanes]
    most = max(Counter(rank for rank in with_io if rank is not None).values(), default=0)
    return [Finding("wall_processes", {"processes": most})] if most > 1 else []


def _about_unseen(records: Records, maps_are_said: bool) -> list[Finding]:
    findings: list[Finding] = []
    if records.unrecorded_processes:
        missing = {"processes": records.unrecorded_processes, "ops": records.unrecorded_ops}
        findings.append(Finding("unrecorded", missing))
    if records.outside_ops:
        findings.append(Finding("outside", {"ops": records.outside_ops, "seconds": records.outside_seconds}))
    if records.under_way_ops:
        findings.append(Finding("under_way", {"ops": records.under_way_ops, "seconds": records.under_way_seconds}))
    for tier, sums in () if maps_are_said else records.mapped.items():
        findings.append(Finding("mapped", {"tier": tier, "ops": sums.ops, "bytes": sums.bytes}))
    for kind, noun, count in (
        ("lost_ops", "ops", records.lost_ops),
        ("lost_rows", "rows", records.lost_rows),
        ("cut", "lanes", records.cut_lanes),
        ("still_running", "processes", records.still_running),
        ("unemulated", "processes", records.unemulated_processes),
        ("scattered", "processes", records.scattered_processes),
    ):
        if count:
            findings.append(Finding(kind, {noun: count}))
    if records.damaged_file_count:
        names = list(records.damaged_files[:MOST_NAMED])
        findings.append(Finding("damaged", {"files": records.damaged_file_count, "names": names}))
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


def _about_checkpoints(times: ClassTimes, breakdown: Breakdown) -> list[Finding]:
    """Of the point where they take most of the epoch."""
    point = max(breakdown.summary, key=lambda point: point.checkpoint_share or 0.0)
    share = point.checkpoint_share or 0.0
    written = next((about.checkpoint for about in times.about if about.checkpoint and about.sweep == point.sweep), None)
    if share <= CHECKPOINT_SHARE or written is None:
        return []
    tier = written.tier
    stood = {"where": sweep_text(point.sweep), "percent": 100 * share, "checkpoint_seconds": point.checkpoint_seconds}
    if point.background_seconds:
        return [Finding("checkpoint_waits", {**stood, "tier": tier})]
    here = (pl.col(name).eq_missing(value) for name, value in point.sweep.items())
    rows = times.table.filter(pl.col("class") == f"{tier.upper()}-WRITE", *here)
    epochs = counted_epochs(rows["epoch"].to_list())
    longest = rows.filter(pl.col("epoch").is_in(epochs)).group_by(times.keys).agg(pl.col("seconds").max())
    write_seconds = _sum(longest, "seconds") / max(1, len(longest))
    return [Finding("checkpoint_share", {**stood, "tier": tier, "write_seconds": write_seconds})]
