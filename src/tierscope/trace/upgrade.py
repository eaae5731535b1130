"""Descriptions of earlier schema versions as those of this one. Pure: plain data in, plain data out; the decoder then checks all of it.

Version 1 was lenient: a key may be missing where a version before had nothing to say, and null meant the same. What is of a wrong type is
handed on as it is, so that the decoder names it.
"""

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from tierscope.jsonable import JsonObject

_COST = ("recorder_seconds_per_op", "harness_seconds_per_sample", "threads_seconds_per_op")
_ORIGIN = ("host", "system", "cores", "memory_bytes", "python", "packages", "launcher", "time", "filesystems")
_CHECKPOINT = (
    *("tier", "count", "bytes", "writers", "seconds_median", "seconds_max", "recovery_seconds", "verified"),
    *("verified_bytes", "recovery_resident_bytes"),
)
_TRAINING = (
    *("network", "device", "software", "arithmetic", "solver", "data", "first_loss", "last_loss", "parameters"),
    *("peak_memory_bytes", "predicted_memory_bytes", "repeated"),
)
_DOUBTS = (
    *("unreadable_logs", "damaged_logs", "negative_times", "impossible_ranks", "partial_modules", "cut_files"),
    *("broken_lines", "broken_last_lines", "no_names"),
)
_APART = ("ops", "bytes", "seconds", "files")
_UNKNOWN = (*_APART, "folders", "suggestion")
_SHARED = ("tier", "files", "bytes", "read_seconds", "meta_seconds", "fastest_seconds", "slowest_seconds")
_DFTRACER = (
    *("versions", "formats", "time_unit", "hosts", "start_seconds", "unended_processes", "empty_files"),
    *("nested_calls", "summed_events", "other_calls", "no_sizes", "compute_spans"),
)
_HABIT = (
    *("reads", "read_bytes", "opens", "files", "read_files", "again_files", "stdio_reads", "random_reads", "sizes"),
    *("stripe_bytes", "servers", "striped_files", "striped_on_one", "striped_large_on_one"),
)
_RECORDS = (
    *("marked", "span_seconds", "ranks", "nodes", "process_count", "phases", "mapped", "mapped_ops", "outside_ops"),
    *("outside_seconds", "under_way_ops", "under_way_seconds", "lost_ops", "lost_rows", "cut_lanes"),
    *("still_running", "unemulated_processes", "scattered_processes", "unrecorded_processes", "unrecorded_ops"),
    *("damaged_files", "damaged_file_count"),
)
_PROCESS = ("lanes", "rank", "pid", "parent", "command", "host", "start")


def upgraded(about: JsonObject) -> JsonObject:
    """A description of version 1. One without a kind was measured."""
    kind = about.get("kind", "measured")
    own = {"measured": _measured, "simulated": _simulated, "traced": _traced, "imported": _imported}
    upgrade = own.get(kind) if isinstance(kind, str) else None
    return {"kind": kind, **_common(about), **(upgrade(about) if upgrade else {})}


# Fields that a schema version added: a description of an earlier one lacks them, and is whole.
_ADDED = {
    3: ("relative_stat_seconds", "foreign_open_seconds"),
    4: (
        *("streams", "left_out", "mpiio", "write_seconds", "written_bytes", "stdio_bytes"),
        *("read", "meta", "write", "largest", "tier", "prefixes", "coverage", "rereads"),
    ),
    5: ("loader_name", "loader_workers", "loader_use"),
    6: ("steps", "mapped_writable_bytes", "epoch_spread", "device_memory_bytes", "calibrated", "own_files"),
    7: ("drawn_layouts", "tried"),
}


def added_after(version: int) -> frozenset[str]:
    return frozenset(name for later, names in _ADDED.items() if later > version for name in names)


def with_prefixes(about: JsonObject, version: int) -> JsonObject:
    """Before version 4, folders of unknown files are prefixes, of which seconds are not known."""
    match about if version < 4 else None:
        case {"facts": {"unknown": dict(unknown)} as facts}:
            return {**about, "facts": {**facts, "unknown": _unknown(unknown)}}
        case {"logs": {"facts": {"unknown": dict(unknown)} as facts} as logs}:
            return {**about, "logs": {**logs, "facts": {**facts, "unknown": _unknown(unknown)}}}
        case _:
            return about


def _unknown(unknown: Any) -> Any:
    if not isinstance(unknown, dict):
        return unknown
    folders = unknown.get("folders")
    rest = {name: value for name, value in unknown.items() if name != "folders"}
    if not isinstance(folders, list | tuple):
        return unknown if folders is not None else rest
    pairs = [
        {"path": folder[0], "ops": None, "bytes": folder[1], "seconds": None}
        if isinstance(folder, list | tuple) and len(folder) == 2
        else folder
        for folder in folders
    ]
    return {**rest, "prefixes": pairs}


def upgraded_command(about: JsonObject) -> JsonObject:
    """The description of a command that was being traced by version 1."""
    return {**_taken(about, ("recorder", "command", "epochs", "ops", "exit_code")), **_tiers(about), **_origin(about)}


def _common(about: JsonObject) -> JsonObject:
    parts = {
        **_tiers(about),
        **_taken(about, ("provides",)),
        **_origin(about),
        "own_cost": _picked(about.get("overhead"), _COST),
        "checkpoint": _picked(about.get("checkpoint"), _CHECKPOINT),
        "training": _picked(about.get("training"), _TRAINING),
    }
    return parts if "tiers" in about or "kind" in about else {**parts, "tiers": []}


def _of_study(about: JsonObject) -> JsonObject:
    sweep = {"sweep": about["sweep"]} if "sweep" in about else {} if "kind" in about else {"sweep": {}}
    point = about.get("point")
    return {
        **sweep,
        "study": about.get("study"),
        "point": 0 if point is None else point,
        **_taken(about, ("trimmed_samples", "ranks", "nodes", "policy", "hit_rate")),
    }


def _measured(about: JsonObject) -> JsonObject:
    logs = about.get("import")
    if isinstance(logs, dict):
        logs = {"facts": _facts(logs), **_taken(logs, ("missed_ops", "missed_bytes"))} if logs else None
    return {
        **_of_study(about),
        **{name: about.get(name) for name in ("compute", "loader", "metadata_cache")},
        **_taken(about, ("profiler", "recorder")),
        "logs": logs,
    }


def _simulated(about: JsonObject) -> JsonObject:
    renamed = {"station": "station", "seconds": "seconds", "of": "stations", "ops": "ops"}
    return {
        **_of_study(about),
        "method": about.get("method"),
        **_taken(
            about, ("spread", "upper_bound", "sampled_share", "staging_seconds", "writes_as_reads", "unidentified")
        ),
        **({"checkpoints_left_out": about["checkpoints"]} if about.get("checkpoints") is not None else {}),
        **_upgraded(
            about, "stations", lambda station: {renamed[name]: station[name] for name in renamed if name in station}
        ),
    }


def _traced(about: JsonObject) -> JsonObject:
    processes = _upgraded(about, "processes", lambda process: _taken(process, _PROCESS))
    return {
        **_taken(about, ("recorder", "command", "epochs", "ops", "exit_code", "running")),
        "records": {**_taken(about, _RECORDS), **processes},
    }


def _imported(about: JsonObject) -> JsonObject:
    command, habits = about.get("command"), about.get("habits")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if isinstance(habits, dict):
        habits = {tier: _picked(habit, _HABIT) for tier, habit in habits.items()}
    ran = "exit_code" in about
    return {
        "command": "" if command is None else command,
        "facts": _facts(about),
        "habits": habits,
        "recorded": _taken(about, ("recorder", "exit_code", "running")) if ran else None,
    }


def _facts(about: JsonObject) -> JsonObject:
    """In version 1 they lay beside everything else."""
    source = about.get("source")
    long_meta = _upgraded(about, "long_meta", lambda log: _taken(log, ("log", "meta_seconds", "run_seconds")))
    return {
        "source": source,
        "logs": about.get("traces" if source == "dftracer" else "logs"),
        **_taken(about, ("process_count", "job_id", "shared_split", "traced_reads")),
        "doubts": {**_taken(about, _DOUBTS), **long_meta},
        **_part(about, "program", _APART),
        **{name: _unknown(part) for name, part in _part(about, "unknown", _UNKNOWN).items()},
        **_part(about, "outside_epochs", _APART),
        **_upgraded(about, "shared", lambda shared: _taken(shared, _SHARED)),
        **_part(about, "spawned", ("by_start", "alone")),
        "dftracer": _dftracer(about) if source == "dftracer" else None,
    }


def _dftracer(about: JsonObject) -> JsonObject:
    return {
        **_taken(about, _DFTRACER),
        **_upgraded(about, "processes", lambda process: _taken(process, ("host", "pid", "parent", "rank"))),
        "epoch_span": about.get("epochs"),
    }


def _tiers(about: JsonObject) -> JsonObject:
    return _upgraded(about, "tiers", lambda tier: _taken(tier, ("name", "emulated", "prefixes")))


def _origin(about: JsonObject) -> JsonObject:
    return {"provenance": _picked(about.get("provenance"), _ORIGIN)}


def _part(about: JsonObject, name: str, names: Iterable[str]) -> JsonObject:
    picked = _picked(about.get(name), names)
    return {} if picked is None else {name: picked}


def _picked(value: Any, names: Iterable[str]) -> Any:
    """These keys of an object; None instead of an empty one."""
    return (_taken(value, names) or None) if isinstance(value, dict) else value


def _taken(values: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: values[name] for name in names if values.get(name) is not None}


def _upgraded(about: JsonObject, name: str, upgrade: Callable[[JsonObject], Any]) -> JsonObject:
    """A list of objects, each upgraded; nothing where there is none."""
    values = about.get(name)
    if values is None:
        return {}
    if not isinstance(values, list):
        return {name: values}
    return {name: [upgrade(value) if isinstance(value, dict) else value for value in values]}
