"""Files that are on no tier that is known: which paths hold them, and when an import may not go on without being told.

More than 5 % of the bytes or of the seconds on no tier would make a headline of the rest. Where the user gave tiers, what they do not cover is shown as one more.
"""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tierscope.errors import UserError
from tierscope.imports.paths import APART, TierRules, common_folder
from tierscope.trace.described_logs import PathSums, UnknownPaths, tallied
from tierscope.trace.ops import MOVES_BYTES
from tierscope.units import about_bytes, about_seconds

MOST_SHARE = 0.05  # of bytes or seconds, on no tier
_WORDS = {"bytes": "bytes", "seconds": "time"}
NAMELESS = "(no path)"
_MOST_NAMED = 5
_LEAST_SHARE = 0.01  # of bytes or seconds, for a path to be named
_OF_NODES = (
    "tmp",
    "var",
    "dev",
    "run",
    "local",
    "localscratch",
    "lfs",
    "nvme",
    "ssd",
    "raid",
)  # folders of the root that a node has of its own
_MOST_LOGS = 3  # whose names are written out


@dataclass(slots=True)
class PathWeights:
    """Operations, bytes and seconds by folder."""

    by_folder: dict[str, list[float]]

    def __init__(self) -> None:
        self.by_folder = defaultdict(lambda: [0, 0, 0.0])

    def add(self, folder: str, ops: int, nbytes: int, seconds: float) -> None:
        sums = self.by_folder[folder or NAMELESS]
        sums[0] += ops
        sums[1] += nbytes
        sums[2] += seconds

    def largest(self) -> tuple[PathSums, ...]:
        """By seconds, as they are."""
        ordered = sorted(self.by_folder.items(), key=lambda pair: (-pair[1][2], -pair[1][1], pair[0]))
        return tuple(_sums(folder, weight) for folder, weight in ordered[:_MOST_NAMED])

    def prefixes(self) -> tuple[PathSums, ...]:
        """Those that hold nearly all, most bytes first: no deeper than a folder that holds all of its neighbours' data."""
        grouped: dict[str, list[str]] = defaultdict(list)
        for folder in self.by_folder:
            grouped[_root(folder, 1)].append(folder)
        named: dict[str, list[float]] = {}
        for folders in grouped.values():
            named |= self._common(folders)
        ops, nbytes, seconds = (sum(weight[place] for weight in named.values()) for place in range(3))
        del ops
        heavy = [
            (prefix, weight)
            for prefix, weight in named.items()
            if weight[1] >= _LEAST_SHARE * nbytes > 0 or weight[2] >= _LEAST_SHARE * seconds > 0
        ]
        ordered = sorted(heavy or named.items(), key=lambda pair: (-pair[1][1], -pair[1][2], pair[0]))
        return tuple(_sums(prefix, weight) for prefix, weight in ordered[:_MOST_NAMED])

    def _common(self, folders: Sequence[str]) -> dict[str, list[float]]:
        """The deepest folder of all; where that is right below the root, one for each of its own folders: they may be mounted apart."""
        common = common_folder(folders) or folders[0]
        if common.count("/") > 1 or len(folders) == 1:
            return {common: self._summed(folders)}
        below: dict[str, list[str]] = defaultdict(list)
        for folder in folders:
            below[_root(folder, 2)].append(folder)
        return {common_folder(inside) or inside[0]: self._summed(inside) for inside in below.values()}

    def _summed(self, folders: Iterable[str]) -> list[float]:
        return [sum(values) for values in zip(*(self.by_folder[folder] for folder in folders), strict=True)]


def _sums(path: str, weight: Sequence[float]) -> PathSums:
    return PathSums(path=path, ops=tallied(int(weight[0])), bytes=tallied(int(weight[1])), seconds=weight[2])


def _root(folder: str, depth: int) -> str:
    """The first names of a path; one that is not absolute, as a whole."""
    return "/".join(folder.split("/")[: depth + 1]) if folder.startswith("/") else folder


def suggested(prefixes: Sequence[PathSums]) -> str:
    """Paths for --tier, with commas between; the root where names are no paths."""
    absolute = [
        prefix.path
        for prefix in prefixes
        if prefix.path.startswith("/") and prefix.path.strip("/") and "," not in prefix.path
    ]
    return ",".join(absolute) or "/"


def unknown_paths(sums: pl.DataFrame, tier: str, weights: PathWeights, files: int) -> UnknownPaths:
    """`sums`: all of an import."""
    if not files:
        return UnknownPaths()
    of_tier = sums.filter(pl.col("tier") == tier)
    prefixes = weights.prefixes()
    return UnknownPaths(
        ops=tallied(int(of_tier["ops"].sum())),
        bytes=tallied(_moved(of_tier)),
        seconds=float(of_tier["busy_seconds"].sum()),
        files=files,
        tier=tier,
        prefixes=prefixes,
        suggestion=suggested(prefixes),
    )


def shares(unknown: UnknownPaths, sums: pl.DataFrame) -> Mapping[str, float]:
    """What of the bytes and of the seconds is on no tier; `sums` of all tiers."""
    tiers = sums.filter(~pl.col("tier").is_in(APART))
    nbytes, seconds = _moved(tiers), float(tiers["busy_seconds"].sum())
    return {
        "bytes": unknown.bytes / nbytes if nbytes else 0.0,
        "seconds": unknown.seconds / seconds if seconds else 0.0,
    }


def _moved(sums: pl.DataFrame) -> int:
    return int(sums.filter(pl.col("kind").is_in(MOVES_BYTES))["bytes"].sum())


def refuse_untiered(unknown: UnknownPaths, sums: pl.DataFrame, rules: TierRules, command: str) -> None:
    """Unless the user gave tiers: then it is shown as one more. `command`: what was typed, to be typed again with tiers."""
    parts = shares(unknown, sums)
    if rules.given or max(parts.values()) <= MOST_SHARE:
        return
    below = "; ".join(
        f"{prefix.path} {about_bytes(prefix.bytes)} in {about_seconds(prefix.seconds or 0.0)}"
        for prefix in unknown.prefixes
    )
    share = " and ".join(
        f"{100 * part:.0f} % of the {_WORDS[name]}" for name, part in parts.items() if part > MOST_SHARE
    )
    raise UserError(
        f"{share} match no tier ({below}); add the tiers: tierscope {command} {_options(unknown.suggestion)}"
    )


def _options(suggestion: str) -> str:
    """A tier for each folder of the root, by its name, nearest first: those that every node has of its own, and last the global one, which holds most of the rest."""
    if suggestion == "/":
        return "--tier all=/"
    by_root: dict[str, list[str]] = defaultdict(list)
    for path in suggestion.split(","):
        by_root[re.sub(r"[^a-z0-9_]", "_", path.split("/")[1].lower())[:16]].append(path)
    named = {root if root[0].isalpha() else f"fs_{root}"[:16]: paths for root, paths in by_root.items()}
    shared = [name for name in named if name not in _OF_NODES]
    if shared and "gfs" not in named:
        named = {"gfs" if name == shared[0] else name: paths for name, paths in named.items()}
    ordered = sorted(named.items(), key=lambda tier: (tier[0] not in _OF_NODES) + (tier[0] == "gfs"))
    return " ".join(f"--tier {shlex.quote(name + '=' + ','.join(paths))}" for name, paths in ordered)


def command_text(name: str, paths: Sequence[str], options: str = "") -> str:
    """A command on logs as one would type it: many logs of one folder by a pattern, where their names end alike."""
    folders, endings = (
        {os.path.dirname(path) for path in paths},
        {os.path.basename(path).partition(".")[2] for path in paths},
    )
    if len(paths) > _MOST_LOGS and len(folders) == len(endings) == 1:
        logs = f"{shlex.quote(os.path.join(folders.pop(), ''))}*.{shlex.quote(endings.pop())}"
    else:
        logs = shlex.join(paths)
    return " ".join(part for part in (name, logs, options) if part)
