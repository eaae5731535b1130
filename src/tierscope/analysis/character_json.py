"""A Character and a Similarity as JSON: keys that other people's scripts rely on. Null values stand beside their reason."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tierscope.analysis.character_metrics import METRICS, WRITE_METRICS, Fact, WriteUse
from tierscope.analysis.character_time import Timeline
from tierscope.analysis.characterise import Character
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.hidden import Hidden
from tierscope.analysis.latency import latency_json
from tierscope.analysis.merged_timeline import BASIS as OVERLAP
from tierscope.analysis.merged_timeline import MergedRank
from tierscope.analysis.similarity import Compared, Similarity
from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject

SCHEMA_VERSION = 1


def character_json(character: Character, run: JsonObject, findings: Sequence[Finding], given: Conditions) -> JsonObject:
    """`run`: which one it is."""
    missing = character.missing
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "character",
        "run": dict(run),
        "came": character.came,
        "simulated": bool(given.simulated),
        "emulated_tiers": list(given.emulated),
        "epochs": character.epochs,
        "ranks": len(character.ranks),
        "metrics": metrics_json(character),
        "aggregate_bandwidth": {**fact_json(character.aggregate_bandwidth), "unit": "B/s"},
        "io_percent": {**fact_json(character.io_percent), "unit": "%"},
        "hidden": _hidden(character.hidden),
        "writes": _writes(character.writes),
        "transfer_sizes": _part([asdict(size) for size in character.sizes], missing.get("sizes")),
        "timeline": _part(_timeline(character.timeline), missing.get("timeline")),
        "by_rank": {"basis": character.bandwidth_basis, "rows": [asdict(rank) for rank in character.ranks]},
        "by_tier": [asdict(tier) for tier in character.tiers],
        "latency": latency_json(character.latency),
        "by_format": _part([asdict(format_use) for format_use in character.formats], missing.get("formats")),
        "by_file": _part([asdict(file) for file in character.files], missing.get("files")),
        "findings": [finding_json(finding) for finding in findings],
    }


def fact_json(fact: Fact) -> JsonObject:
    if fact.value is None:
        return {"value": None, "reason": fact.reason}
    limits = {} if fact.low is None else {"low": fact.low, "high": fact.high}
    return {"value": fact.value, "basis": fact.basis, **limits}


def metrics_json(character: Character) -> JsonObject:
    return {name: {**fact_json(fact), "unit": METRICS[name]} for name, fact in character.metrics.items()}


def _writes(used: WriteUse) -> JsonObject:
    return {
        "writes": used.writes,
        "write_bytes": used.write_bytes,
        "write_seconds": used.write_seconds,
        "transfer_mean": {**fact_json(used.mean), "unit": "B"},
        "sequential_percent": {**fact_json(used.sequential_percent), "unit": "%"},
        "consecutive_percent": {**fact_json(used.consecutive_percent), "unit": "%"},
    }


def _part(content: Any, reason: str | None) -> JsonObject:
    return {"value": content} if reason is None else {"value": None, "reason": reason}


def _timeline(timeline: Timeline | None) -> JsonObject | None:
    if timeline is None:
        return None
    starts = [{"epoch": epoch, "seconds": seconds} for epoch, seconds in timeline.epoch_starts.items()]
    return {**asdict(timeline), "epoch_starts": starts}


def _hidden(hidden: Hidden) -> JsonObject:
    if hidden.share is None:
        return {"value": None, "reason": hidden.reason}
    return {
        "value": hidden.share,
        "basis": hidden.basis,
        "slowest_rank": hidden.slowest_share,
        "by_rank": [asdict(rank) for rank in hidden.by_rank],
        "slowest": [asdict(rank) for rank in hidden.slowest],
    }


def merged_json(ranks: Sequence[MergedRank]) -> JsonObject:
    """I/O beside the compute of another profiler, by rank, in seconds; `hidden_range`: within the uncertainty of the alignment."""
    return {
        "basis": OVERLAP,
        "by_rank": [
            {
                "rank": merged.rank,
                "io_seconds": merged.io_ns / 1e9,
                "compute_seconds": merged.compute_ns / 1e9,
                "hidden_seconds": merged.hidden_ns / 1e9,
                "hidden_range": [merged.low_ns / 1e9, merged.high_ns / 1e9],
                "share": merged.share,
                "window_seconds": merged.window_ns / 1e9,
                "io_outside_seconds": merged.io_outside_ns / 1e9,
                "compute_basis": merged.compute_basis,
                "aligned_by": merged.alignment.by,
                "marks": merged.alignment.marks,
                "uncertainty_seconds": merged.alignment.uncertainty_ns / 1e9,
            }
            for merged in ranks
        ],
    }


def similarity_json(
    similarity: Similarity,
    runs: tuple[JsonObject, JsonObject],
    findings: tuple[Sequence[Finding], Sequence[Finding]],
) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "similarity",
        "a": dict(runs[0]),
        "b": dict(runs[1]),
        "cosine": similarity.cosine,
        "metrics": [_compared(metric) for metric in similarity.metrics],
        "writes": [_compared(metric) for metric in similarity.writes],
        "largest": _compared(similarity.largest) if similarity.largest else None,
        "left_out": [{"metric": metric.name, "reason": metric.reason} for metric in similarity.left_out],
        "held_down_by": [
            {"metric": metric.name, "cosine_without": metric.cosine_without, "rise": similarity.rise(metric)}
            for metric in similarity.held_down_by
        ],
        "far_apart": [metric.name for metric in similarity.far_apart],
        "scale": _scale(similarity),
        "findings": [
            {"of": side, **finding_json(finding)}
            for side, of_side in zip(("a", "b"), findings, strict=True)
            for finding in of_side
        ],
    }


def _scale(similarity: Similarity) -> JsonObject:
    """`cosine_of_habits`: of the metrics that do not grow with ranks, epochs and data."""
    first, second = map(asdict, similarity.scales)
    return {
        "a": first,
        "b": second,
        "same": similarity.same_scale,
        "cosine_of_habits": similarity.cosine_of_habits,
        "habits": [metric.name for metric in similarity.habits],
    }


def _compared(compared: Compared) -> JsonObject:
    return {
        "metric": compared.name,
        "unit": (METRICS | WRITE_METRICS)[compared.name],
        "a": compared.first,
        "b": compared.second,
        "difference": compared.difference,
        "at_least": compared.at_least,
        "ratio": compared.ratio if math.isfinite(compared.ratio) else None,
        "cosine_without": compared.cosine_without,
    }
