"""A Breakdown as JSON: keys that other people's scripts rely on."""

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, EpochPoint, PointGroup, SweepPoint, counted_epochs
from tierscope.analysis.checkpoint_costs import checkpoint_costs, costs_json
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.coverage import coverage_json
from tierscope.analysis.latency import latencies_at, latency_json
from tierscope.analysis.simulated_intervals import au_interval, first_batch_interval
from tierscope.analysis.statistics import Interval
from tierscope.analysis.totals import totals_json, totals_of
from tierscope.analysis.traced_loader import limit_json, loader_limit
from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject
from tierscope.spec.feasibility import feasibility_json

SCHEMA_VERSION = 1


def analysis_json(analysis: Analysis) -> JsonObject:
    """The breakdown, sums over all ranks, and latencies."""
    whole = breakdown_json(analysis.breakdown, analysis.findings, analysis.conditions)
    costs = checkpoint_costs(analysis.times, analysis.breakdown, analysis.study)
    saved = {"checkpoint_costs": [costs_json(cost) for cost in costs]} if costs else {}
    latency = [_latency(analysis, point) for point in analysis.breakdown.summary]
    return {**whole, "totals": totals_json(totals_of(analysis.times)), **saved, "latency": latency}


def _latency(analysis: Analysis, point: SweepPoint) -> JsonObject:
    """Of all ranks in the epochs that the summary of the point counts."""
    epochs = counted_epochs(
        epoch_point.epoch for epoch_point in analysis.breakdown.points if epoch_point.sweep == point.sweep
    )
    latencies = latencies_at(analysis.times, point.sweep, epochs)
    return {"sweep": point.sweep, "epochs": sorted(epochs), "classes": latency_json(latencies)}


def breakdown_json(breakdown: Breakdown, findings: list[Finding], given: Conditions) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "breakdown",
        "basis": breakdown.basis,
        "io_classes": list(breakdown.io_classes),
        **epoch_json(breakdown),
        "processes": given.processes,
        **loader_json(given, findings),
        "simulated": bool(given.simulated),
        "methods": list(given.simulated),
        "profilers": list(given.profilers),
        "emulated_tiers": list(given.emulated),
        "resident_share": given.resident,
        "metadata_cache": given.metadata,
        "evict_seconds": given.evict_seconds,
        "coverage": coverage_json(given.coverage),
        "overhead": {
            "recorder_seconds_per_op": given.recorder_seconds_per_op,
            "harness_seconds_per_sample": given.harness_seconds_per_sample,
            "threads_seconds_per_op": given.threads_seconds_per_op,
            **given.path_costs,
        },
        "points": [_epoch(point, breakdown.basis) for point in breakdown.points],
        "summary": [summary_json(point) for point in breakdown.summary],
        "ranked_by": breakdown.ranked_by,
        "best": _best(breakdown.groups[0]) if len(breakdown.groups) == 1 else None,
        **_groups(breakdown),
        "findings": [finding_json(finding) for finding in findings],
    }


def loader_json(given: Conditions, findings: list[Finding]) -> JsonObject:
    """Of a traced command that had loaded a framework."""
    limit = loader_limit(given.loader_use, findings)
    return {"loader": limit_json(given.loader_use, limit)} if given.loader_use and limit else {}


def _best(group: PointGroup) -> JsonObject | None:
    """None: no point fits, so there is nothing to recommend."""
    if not group.best.is_possible:
        return None
    equal = group.smallest_equal
    return {**summary_json(group.best), "smallest_equal": summary_json(equal) if equal else None}


def _groups(breakdown: Breakdown) -> JsonObject:
    """With cases: `cases`, each with a best of its own."""
    if breakdown.groups[0].case is not None:
        return {"cases": [{"case": group.case, **_group(group)} for group in breakdown.groups]}
    return {"groups": [_group(group) for group in breakdown.groups]} if len(breakdown.groups) > 1 else {}


def _group(group: PointGroup) -> JsonObject:
    """Points that read the same amount of data: there is no best over several of these."""
    return {"amount": group.amount, "sweeps": [point.sweep for point in group.points], "best": _best(group)}


def epoch_json(breakdown: Breakdown) -> dict[str, int]:
    """Which epoch was taken, where one was asked for."""
    return {} if breakdown.epoch is None else {"epoch": breakdown.epoch}


def _epoch(point: EpochPoint, basis: str) -> JsonObject:
    steps = point.step_seconds
    return {
        "sweep": point.sweep,
        "epoch": point.epoch,
        "ranks": point.ranks,
        "repetitions": point.repetitions,
        "basis": basis,
        "slowest_rank": point.slowest_rank,
        "io_seconds": point.io_seconds,
        "io_seconds_low": point.spread.low,
        "io_seconds_high": point.spread.high,
        "interval": point.spread.kind,
        "epoch_seconds": point.epoch_seconds,
        "compute_seconds": point.compute_seconds,
        "classes": point.classes,
        "ops": point.ops,
        "bytes": point.moved_bytes,
        "bottleneck": point.bottleneck,
        "hit_rate": point.hit_rate,
        "checkpoint_seconds": point.checkpoint_seconds,
        "checkpoint_share": _share(point.checkpoint_seconds, point.epoch_seconds),
        "step_sync_seconds": {"endless_prefetch": steps[0], "no_prefetch": steps[1]} if steps else None,
    }


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def summary_json(point: SweepPoint) -> JsonObject:
    return {
        "sweep": point.sweep,
        "io_seconds": point.io.median,
        "io_seconds_low": point.io.low,
        "io_seconds_high": point.io.high,
        "interval": point.io.kind,
        "n": point.io.n,
        "classes": point.classes,
        "bottleneck": point.bottleneck,
        "epoch_seconds": point.epoch_seconds,
        "epoch_seconds_low": point.epoch.low if point.epoch else None,
        "epoch_seconds_high": point.epoch.high if point.epoch else None,
        "compute_seconds": point.compute_seconds,
        "stall_share": point.stall_share,
        "au": point.au,
        **_ends("au", au_interval(point)),
        "slowest_au": point.slowest_au,
        **({} if point.is_usable else {"identified": False}),
        "first_epoch_io_seconds": point.first_epoch_io_seconds,
        "hit_rate": point.hit_rate,
        "checkpoint_seconds": point.checkpoint_seconds,
        "checkpoint_share": point.checkpoint_share,
        "write_seconds": point.write_seconds,
        "background_write_seconds": point.background_seconds,
        "staging_seconds": point.staging_seconds,
        "break_even_epochs": point.break_even_epochs,
        **_first_batch(point),
        "feasibility": feasibility_json(point.feasibility),
    }


def _first_batch(point: SweepPoint) -> JsonObject:
    """Of simulations: mean and max over ranks, from an epoch's start."""
    if point.first_batch is None:
        return {}
    return {
        "first_batch_mean_seconds": point.first_batch[0],
        "first_batch_max_seconds": point.first_batch[1],
        **_ends("first_batch_max_seconds", first_batch_interval(point)),
    }


def _ends(name: str, of: Interval | None) -> JsonObject:
    """Of what was simulated."""
    return {f"{name}_low": of.low, f"{name}_high": of.high} if of else {}
