"""A Character and a Similarity as JSON: keys that other people's scripts rely on. Null values stand beside their reason."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tierscope.analysis.character_metrics import METRICS, Fact, WriteUse
from tierscope.analysis.character_time import Timeline
from tierscope.analysis.characterise import Character
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.hidden import BASIS, Hidden
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
        "transfer_sizes": _part([asdict(one) for one in character.sizes], missing.get("sizes")),
        "timeline": _part(_timeline(character.timeline), missing.get("timeline")),
        "by_rank": {"basis": character.bandwidth_basis, "rows": [asdict(one) for one in character.ranks]},
        "by_tier": [asdict(one) for one in character.tiers],
        "by_format": _part([asdict(one) for one in character.formats], missing.get("formats")),
        "by_file": _part([asdict(one) for one in character.files], missing.get("files")),
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
        "basis": BASIS,
        "slowest_rank": hidden.slowest_share,
        "by_rank": [asdict(one) for one in hidden.by_rank],
        "slowest": [asdict(one) for one in hidden.slowest],
    }


def similarity_json(
    found: Similarity,
    runs: tuple[JsonObject, JsonObject],
    findings: tuple[Sequence[Finding], Sequence[Finding]],
) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "similarity",
        "a": dict(runs[0]),
        "b": dict(runs[1]),
        "cosine": found.cosine,
        "metrics": [_compared(each) for each in found.metrics],
        "largest": _compared(found.largest) if found.largest else None,
        "left_out": [{"metric": each.name, "reason": each.reason} for each in found.left_out],
        "findings": [
            {"of": side, **finding_json(finding)}
            for side, each in zip(("a", "b"), findings, strict=True)
            for finding in each
        ],
    }


def _compared(each: Compared) -> JsonObject:
    return {
        "metric": each.name,
        "unit": METRICS[each.name],
        "a": each.first,
        "b": each.second,
        "difference": each.difference,
        "at_least": each.at_least,
    }
