"""Runs on real file systems with speed limits (tools/storage_box.py): each bed's own, and what is measured on it.

    fuse + loop       a FUSE file system behind a token bucket, and a loop device that the block layer throttles
    gluster + loop    GlusterFS on two bricks behind slow links, and such a loop device
    streams + fuse    a FUSE file system that limits every stream, and another one behind a token bucket

Their numbers are drawn, so that nobody can tune for them. What is measured stays in a folder: JSON of every `tierscope run`, and its result.
"""

import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tierscope
from tools.storage_box import StorageBox, Tokens, lacking

KIB = 1024
RANKS = 4
FITTED, UNSEEN = (0.0, 0.25, 0.5, 0.75, 1.0), (0.15, 0.4, 0.6, 0.85)
_FILES = {128 * KIB: 320, 1024 * KIB: 48, 384 * KIB: 120, 48 * KIB: 480}
_NEAR_MIB = 512
_STUDY = """
study: bed
workload:
  dataset: {{format: raw, num_files_train: {files}, record_length_bytes: {size}}}
  reader: {{batch_size: 1, read_threads: 1, prefetch_size: 1}}
  train: {{epochs: 3}}
system:
  nodes: 1
  ranks_per_node: {ranks}
  tiers:
    lfs: {{path: "{near}/data", visible_to: node}}
    gfs: {{path: "{far}/data", servers: {servers}}}
sweep:
  placement.cache_rate: [{rates}]
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One `tierscope run`. `times`: as fast as the far tier is."""

    name: str
    size: int
    ranks: int
    rates: tuple[float, ...]
    times: float = 1.0


FIT = Wanted("fit", 128 * KIB, RANKS, FITTED)
RATES = Wanted("rates", 128 * KIB, RANKS, UNSEEN)
MORE_RANKS = Wanted("ranks", 128 * KIB, 2 * RANKS, (0.0, 0.4, 0.75))
SECOND_SIZE = Wanted("second-size", 1024 * KIB, RANKS, (0.0, 0.5, 1.0))
BETWEEN = Wanted("between", 384 * KIB, RANKS, (0.0, 0.4, 0.85))
SMALLER = Wanted("smaller", 48 * KIB, RANKS, (0.0, 0.4, 0.85))
FASTER = Wanted("faster", 128 * KIB, RANKS, (0.0, 0.25, 0.5, 0.75), 2.0)
EVERYTHING = (FIT, RATES, MORE_RANKS, SECOND_SIZE, BETWEEN, SMALLER, FASTER)
SHORT = (replace(FIT, rates=(0.0, 0.5, 1.0)), replace(RATES, rates=(0.25, 0.75)))


@dataclass(frozen=True, slots=True)
class RealBed:
    """`far_kind`: fuse, gluster or streams; `near_kind`: loop or fuse."""

    far_kind: str
    near_kind: str
    far: Tokens  # of GlusterFS the rate of a brick's link alone
    near: Tokens  # of a loop device the rate alone

    @property
    def name(self) -> str:
        return f"{self.far_kind} + {self.near_kind}"

    @property
    def folder(self) -> str:
        return f"{self.far_kind}-{self.near_kind}"

    @property
    def servers(self) -> int:
        return 2 if self.far_kind == "gluster" else 1

    @property
    def kinds(self) -> tuple[str, ...]:
        far = "bricks" if self.far_kind == "gluster" else "tokens"
        return far, "tokens" if self.near_kind == "fuse" else self.near_kind


def draw(far_kind: str, near_kind: str, seed: int) -> RealBed:
    """One of many."""
    dice = random.Random(f"{far_kind}/{near_kind}/{seed}")

    def between(low: float, high: float) -> float:
        return float(low * (high / low) ** dice.random())

    rates = {"fuse": (12e6, 30e6), "gluster": (6e6, 14e6), "streams": (30e6, 50e6)}
    rate, near_rate = between(*rates[far_kind]), between(15e6, 45e6)
    far = Tokens(
        rate=rate,
        burst=rate * between(0.01, 0.08),
        open_bytes=between(4e3, 24e3) if far_kind == "fuse" else 0.0,
        open_seconds=between(0.3e-3, 1.5e-3),
        trip_seconds=between(0.2e-3, 1e-3),
        stream_rate=between(4e6, 8e6) if far_kind == "streams" else 0.0,
    )
    near = Tokens(rate=near_rate, burst=near_rate * between(0.01, 0.05))
    return RealBed(far_kind, near_kind, far, near)


def beds(short: bool, seed: int) -> list[RealBed]:
    kinds = (("fuse", "loop"), ("gluster", "loop"), ("streams", "fuse"))
    return [draw(far, near, seed) for far, near in (kinds[:1] if short else kinds)]


def missing(bed: RealBed) -> list[str]:
    return lacking(*bed.kinds)


@dataclass(frozen=True, slots=True)
class Runs:
    """What was measured on a bed; `path`: of a run's result."""

    folder: Path

    def path(self, wanted: Wanted) -> str:
        return str(self.folder / wanted.name)

    def study(self, wanted: Wanted) -> str:
        return str(self.folder / f"{wanted.name}.yaml")

    def told(self, wanted: Wanted) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / f"{wanted.name}.json").read_text())
        return document

    def has(self, wanted: Wanted) -> bool:
        return (self.folder / f"{wanted.name}.json").exists()

    def truth(self, wanted: Wanted) -> dict[float, float]:
        """Seconds of I/O of the slowest process, by cache rate."""
        return {point["sweep"]["cache_rate"]: point["io_seconds"] for point in self.told(wanted)["summary"]}

    def scatter(self, wanted: Wanted) -> list[float]:
        """How far the two counted epochs of each point are apart, in percent."""
        epochs: dict[float, list[float]] = {}
        for point in self.told(wanted)["points"]:
            if point["epoch"] > 1:
                epochs.setdefault(point["sweep"]["cache_rate"], []).append(point["io_seconds"])
        return [100 * (max(some) / min(some) - 1) for some in epochs.values()]


def measure(bed: RealBed, folder: Path, everything: Sequence[Wanted]) -> Runs:
    """All that was not measured before; the file systems are there only while it is."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(folder)
    if all(runs.has(wanted) for wanted in everything):
        return runs
    with StorageBox() as box:
        near = box.loop("near", _NEAR_MIB, bed.near.rate) if bed.near_kind == "loop" else box.tokens("near", bed.near)
        far = box.bricks("far", _mbit(bed), bed.servers) if bed.far_kind == "gluster" else box.tokens("far", bed.far)
        for wanted in everything:
            if not runs.has(wanted):
                print(f"real beds: {bed.name}, {wanted.name} …", file=sys.stderr, flush=True)
                _limit(box, bed, wanted.times)
                _run(box, bed, wanted, runs, (near, far))
    return runs


def _mbit(bed: RealBed, times: float = 1.0) -> float:
    return times * bed.far.rate * 8 / 1e6


def _limit(box: StorageBox, bed: RealBed, times: float) -> None:
    if bed.far_kind == "gluster":
        box.limit_bricks(_mbit(bed, times), bed.servers)
    else:
        box.tokens("far", replace(bed.far, rate=times * bed.far.rate, burst=bed.far.burst))


def _run(box: StorageBox, bed: RealBed, wanted: Wanted, runs: Runs, places: tuple[Path, Path]) -> None:
    near, far = places
    study = Path(runs.study(wanted))
    rates = ", ".join(f"{rate:.0%}" for rate in wanted.rates)
    study.write_text(
        _STUDY.format(files=_FILES[wanted.size], size=wanted.size, ranks=wanted.ranks, near=near, far=far, servers=bed.servers, rates=rates)
    )  # fmt: skip
    words = ["run", str(study), "--out", runs.path(wanted), "--quiet", "--json"]
    told = box.run([*tierscope_words(), *words], environment=environment())
    draft = runs.folder / f"{wanted.name}.draft"
    draft.write_text(told)
    draft.rename(runs.folder / f"{wanted.name}.json")


def tierscope_words() -> list[str]:
    """The command of this very package."""
    return [sys.executable, "-m", "tierscope.cli.main"]


def environment() -> dict[str, str]:
    source = str(Path(tierscope.__file__).parents[1])
    return {"PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))}
