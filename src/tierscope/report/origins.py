"""Where the numbers of a page come from: enough to doubt or repeat them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from tierscope.analysis.conditions import Conditions
from tierscope.report.coverage import coverage_line
from tierscope.report.metadata import metadata_line
from tierscope.report.report_source import ReportSource
from tierscope.trace.description import Description, Imported, Measured, Records, StudyRun, Traced
from tierscope.trace.provenance import Provenance
from tierscope.units import about_bytes, about_seconds, counted


def provenance(source: ReportSource) -> list[tuple[str, str]]:
    """What is known, with a name for each."""
    abouts = source.times.about
    made = [about.provenance for about in abouts if about.provenance is not None]
    facts = [
        ("Kind", _all(about.kind for about in abouts)),
        ("Hosts", _all(run.host for run in made)),
        ("System", _all(run.system for run in made)),
        ("Machine", _all(_machine(run) for run in made)),
        ("Sizes", _all(_sizes(about) for about in abouts)),
        ("Launcher", _all(run.launcher for run in made)),
        ("Profiler", ", ".join(source.conditions.profilers)),
        ("Loader", _all(about.loader for about in abouts if isinstance(about, Measured))),
        ("Command", _all(_command(about) for about in abouts)),
        ("Filesystems", _all(_pairs(run.filesystems) for run in made)),
        ("Versions", _all(_versions(run) for run in made)),
        (source.conditions.came.capitalize(), _period([run.time for run in made if run.time])),
        ("Seed", _seed(source.study_yaml)),
        *_conditions(source.conditions),
    ]
    return [(name, value) for name, value in facts if value]


def _all(values: Iterable[str | None]) -> str:
    return "; ".join(dict.fromkeys(value for value in values if value))


def _machine(made: Provenance) -> str:
    parts = [
        counted(made.cores, "core") if made.cores else "",
        "" if made.memory_bytes is None else f"{about_bytes(made.memory_bytes)} of memory",
    ]
    return ", ".join(part for part in parts if part)


def _sizes(about: Description) -> str:
    match about:
        case StudyRun(ranks=ranks, nodes=nodes) | Traced(records=Records(ranks=ranks, nodes=nodes)):
            return ", ".join(counted(count, name) for count, name in ((ranks, "rank"), (nodes, "node")) if count)
        case _:
            return ""


def _command(about: Description) -> str:
    match about:
        case Traced(command=words):
            return shlex.join(words)
        case Imported(command=command):
            return command
        case _:
            return ""


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def _versions(made: Provenance) -> str:
    versions = [f"{name} {version}" for name, version in made.packages.items()]
    return ", ".join([*versions, *([f"Python {made.python}"] if made.python else [])])


def _period(times: list[str]) -> str:
    if not times:
        return ""
    return times[0] if min(times) == max(times) else f"{min(times)} to {max(times)}"


def _seed(study_yaml: str | None) -> str:
    match = re.search(r"^seed: (.+)$", study_yaml or "", re.MULTILINE)
    return match[1] if match else ""


def _conditions(given: Conditions) -> Iterator[tuple[str, str]]:
    shares = [f"{tier}: {'unknown' if share is None else f'{share:.1%}'}" for tier, share in given.resident.items()]
    yield "Peak page-cache residency when reading began", ", ".join(shares)
    yield "META", metadata_line(given.metadata) if given.metadata else ""
    evicting = given.evict_seconds
    yield (
        "Evicting",
        f"up to {about_seconds(evicting)} per rank and epoch, counted in neither READ nor META" if evicting else "",
    )
    costs = [
        (given.recorder_seconds_per_op, "per recorded operation"),
        (given.harness_seconds_per_sample, "per sample in total"),
        (given.relative_stat_seconds, "per stat of a relative path"),
        (given.foreign_open_seconds, "per open of a file outside all tiers"),
    ]
    yield "Own cost", ", ".join(f"{about_seconds(cost)} {what}" for cost, what in costs if cost is not None)
    yield "Traced processes", str(given.processes or "")
    yield "Coverage", coverage_line(given.coverage).partition(": ")[2] if given.coverage else ""
