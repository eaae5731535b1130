"""What a reader must know about logs that others recorded: what is missing in them, and when not to trust them."""

from collections.abc import Iterator, Sequence
from typing import Any

from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding

MOST_NAMED = 5
_LISTS = ("unreadable_logs", "damaged_logs", "long_meta", "cut_files")
_COUNTS = (
    *("negative_times", "impossible_ranks", "broken_lines", "broken_last_lines", "no_names"),
    *("missed_ops", "missed_bytes"),
)


def about_import(about: dict[str, Any], times: ClassTimes) -> list[Finding]:
    """What is wrong with it and what is missing; how storage is used is told by `habits`."""
    return [*doubts(about), *_missing(about, times)]


def doubts(about: dict[str, Any]) -> Iterator[Finding]:
    """Why these logs are not to be trusted."""
    for kind in ("unreadable_logs", "damaged_logs"):
        if names := about.get(kind):
            yield Finding(kind, {"logs": len(names), "names": names[:MOST_NAMED]})
    for kind in ("negative_times", "impossible_ranks"):
        if about.get(kind):
            yield Finding(kind, {"records": about[kind]})
    for found in about.get("long_meta", []):
        yield Finding("long_meta", dict(found))


def _missing(about: dict[str, Any], times: ClassTimes) -> Iterator[Finding]:
    if not times.table["ops"].sum() and not about.get("shared"):
        yield Finding("no_data_files", {"processes": about.get("process_count")})
    yield from _partial(about)
    if (unknown := about.get("unknown", {})).get("files"):
        folders = [folder for folder, _ in unknown["folders"]]
        evidence = {name: unknown[name] for name in ("files", "bytes", "suggestion")}
        yield Finding("unknown_paths", {**evidence, "folders": folders[:MOST_NAMED]})
    spawned = about.get("spawned", {})
    if spawned.get("by_start"):
        yield Finding("grouped_by_start", {"processes": spawned["by_start"]})
    if spawned.get("alone"):
        yield Finding("lone_workers", {"processes": spawned["alone"]})
    for shared in about.get("shared", []):
        if about.get("shared_split"):
            yield Finding("shared_split", {name: shared[name] for name in ("tier", "files", "slowest_seconds")})
        else:
            yield Finding("shared_files", dict(shared))
    if (program := about.get("program", {})).get("files"):
        yield Finding("program_files", {"files": program["files"], "seconds": program["seconds"]})
    if about.get("traced_reads"):
        yield Finding("reads_only", {})
    yield from _about_lines(about)
    if times.epochs["epoch"].n_unique() == 1 and times.table["ops"].sum():
        yield Finding("no_epochs", {})


def about_profiled(abouts: Sequence[dict[str, Any]]) -> list[Finding]:
    """The same of runs of ours that another profiler measured, all runs together. What it saw outside of epochs was ours."""
    facts = [about["import"] for about in abouts if about.get("profiler") and about.get("import")]
    if not facts:
        return []
    modules = [one.get("partial_modules") or {} for one in facts]
    merged: dict[str, Any] = {
        **{name: [each for one in facts for each in one.get(name) or ()] for name in _LISTS},
        **{name: sum(int(one.get(name) or 0) for one in facts) for name in _COUNTS},
        "partial_modules": {name: sum(one.get(name, 0) for one in modules) for one in modules for name in one},
    }
    merged["long_meta"] = merged["long_meta"][:MOST_NAMED]
    findings = [*doubts(merged), *_partial(merged), *_about_lines(merged)]
    if merged["missed_ops"] or merged["missed_bytes"]:
        profilers = sorted({about["profiler"] for about in abouts if about.get("profiler")})
        missed = {"ops": merged["missed_ops"], "bytes": merged["missed_bytes"]}
        findings.append(Finding("missed_by_profiler", {"profilers": profilers, **missed}))
    return findings


def _partial(about: dict[str, Any]) -> Iterator[Finding]:
    if partial := about.get("partial_modules"):
        yield Finding("partial_logs", {"modules": sorted(partial), "logs": max(partial.values())})


def _about_lines(about: dict[str, Any]) -> Iterator[Finding]:
    """Of logs that are made of lines."""
    cut = len(about.get("cut_files", [])) + about.get("broken_last_lines", 0)
    if cut:
        yield Finding("cut_logs", {"files": cut})
    if about.get("broken_lines"):
        yield Finding("broken_lines", {"lines": about["broken_lines"]})
    if about.get("no_names"):
        yield Finding("no_names", {"ops": about["no_names"]})
    if (outside := about.get("outside_epochs", {})).get("ops"):
        yield Finding("outside_epochs", {"ops": outside["ops"], "seconds": outside["seconds"]})
