"""Where the numbers of a page come from: enough to doubt or repeat them."""

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from tierscope.analysis.conditions import Conditions
from tierscope.report.report_source import ReportSource
from tierscope.units import about_bytes, about_seconds, counted


def provenance(source: ReportSource) -> list[tuple[str, str]]:
    """What is known, with a name for each."""
    abouts = source.times.about
    made = [each for about in abouts if isinstance(each := about.get("provenance"), dict)]
    found = [
        ("Kind", _all(about.get("kind") for about in abouts)),
        ("Hosts", _all(each.get("host") for each in made)),
        ("System", _all(each.get("system") for each in made)),
        ("Machine", _all(_machine(each) for each in made)),
        ("Sizes", _all(_sizes(about) for about in abouts)),
        ("Launcher", _all(each.get("launcher") for each in made)),
        ("Profiler", ", ".join(source.conditions.profilers)),
        ("Loader", _all(about.get("loader") for about in abouts)),
        ("Command", _all(_command(about) for about in abouts)),
        ("Filesystems", _all(_pairs(each.get("filesystems")) for each in made)),
        ("Versions", _all(_versions(each) for each in made)),
        (source.conditions.came.capitalize(), _period([str(each["time"]) for each in made if each.get("time")])),
        ("Seed", _seed(source.study_yaml)),
        *_conditions(source.conditions),
    ]
    return [(name, value) for name, value in found if value]


def _all(values: Iterable[Any]) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value))


def _machine(made: dict[str, Any]) -> str:
    cores, memory = made.get("cores"), made.get("memory_bytes")
    parts = [
        counted(cores, "core") if cores else "",
        f"{about_bytes(memory)} of memory" if isinstance(memory, int) else "",
    ]
    return ", ".join(part for part in parts if part)


def _sizes(about: dict[str, Any]) -> str:
    return ", ".join(counted(about[name], name.removesuffix("s")) for name in ("ranks", "nodes") if about.get(name))


def _command(about: dict[str, Any]) -> str:
    command = about.get("command")
    if isinstance(command, str):
        return command
    return shlex.join(map(str, command)) if isinstance(command, list) else ""


def _pairs(values: Any) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items()) if isinstance(values, dict) else ""


def _versions(made: dict[str, Any]) -> str:
    packages = made.get("packages")
    versions = [f"{name} {version}" for name, version in packages.items()] if isinstance(packages, dict) else []
    return ", ".join([*versions, *([f"Python {made['python']}"] if made.get("python") else [])])


def _period(times: list[str]) -> str:
    if not times:
        return ""
    return times[0] if min(times) == max(times) else f"{min(times)} to {max(times)}"


def _seed(study_yaml: str | None) -> str:
    found = re.search(r"^seed: (.+)$", study_yaml or "", re.MULTILINE)
    return found[1] if found else ""


def _conditions(given: Conditions) -> Iterator[tuple[str, str]]:
    shares = [f"{tier}: {'unknown' if share is None else f'{share:.1%}'}" for tier, share in given.resident.items()]
    yield "In the page cache when epochs began, at most", ", ".join(shares)
    costs = [
        (given.recorder_seconds_per_op, "per recorded operation"),
        (given.harness_seconds_per_sample, "per sample in all"),
    ]
    yield "Own cost", ", ".join(f"{about_seconds(cost)} {what}" for cost, what in costs if cost is not None)
    yield "Traced processes", str(given.processes or "")
