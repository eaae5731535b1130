"""DLIO's tuning on emulated tiers: the studies, their tier, and what comes of them.

The tier is Lustre of the known system `theta`, with its stripes; where each of its rates comes from, or that it is assumed, is in that system's file. All rates
are divided by SLOWER and all latencies multiplied by it: ratios of times stay, and a small machine keeps up. Preprocessing takes what the study says of the
applications' pipelines (`Pipeline`), as much slower, and is slept: its threads need no cores. Chosen, not published: that factor, one node of four
ranks instead of eight, numbers of samples and batches, and samples that compress to a half.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache

from tierscope.analysis.statistics import Interval
from tierscope.commands.analyze import analyze
from tierscope.errors import UserError
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.papers.work_folder import work_folder
from tierscope.spec.emulation import RATES
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study, Tier
from tierscope.watch import Silent

SLOWER = 4.0
_WORKLOAD = """
study: tuning
repetitions: {REPETITIONS}
workload:
  dataset: {DATASET}
  reader: {READER}
  train: {epochs: 2, computation_time: {COMPUTE}}
system: {preset: theta, nodes: 1, ranks_per_node: 4, tiers: {lfs: {path: "{out}/tiers/lfs/{node}"}}}
sweep: {SWEEP}
"""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """An application's input pipeline, as published: shares of the run that all of it and its I/O take, and bytes a second of 512 processes while they read.

    What a process preprocesses follows from that, in seconds per byte, if the threads of its pipeline work one after another, which the study does not say.
    """

    share: float
    io_share: float
    bandwidth: float

    def preprocess_time(self, nbytes: int) -> float:
        """Seconds of a sample with so many bytes, on Theta."""
        return nbytes * _PROCESSES / self.bandwidth * (self.share - self.io_share) / self.io_share


_PROCESSES = 512
IMAGENET = Pipeline(0.28, 0.15, 32e9)  # D-F6-6, D-F6-2, D-F6-3
COSMOFLOW = Pipeline(0.23, 0.12, 36e9)  # D-F3-9, D-F3-3, D-F3-4


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """`epoch`: seconds."""

    value: float | str
    epoch: Interval
    payload_bytes: float

    @property
    def bandwidth(self) -> float:
        return self.payload_bytes / self.epoch.median


@dataclass(frozen=True, slots=True)
class TunedSweep:
    """Points in the order of the values."""

    key: str
    points: tuple[TunedPoint, ...]

    @property
    def best(self) -> TunedPoint:
        return min(self.points, key=lambda point: point.epoch.median)

    def at(self, value: float | str) -> TunedPoint:
        return next(point for point in self.points if point.value == value)

    def is_slower(self, value: float | str, than: float | str) -> bool:
        """Clearly: their intervals are apart."""
        return self.at(value).epoch.low > self.at(than).epoch.high

    def gain(self, before: float | str, after: float | str) -> float:
        return self.at(before).epoch.median / self.at(after).epoch.median

    def gain_text(self, before: float | str, after: float | str) -> str:
        """With what the intervals of both allow."""
        n, (low, high) = self.at(before).epoch.n, self.gain_range(before, after)
        spread = f", {low:.2f}–{high:.2f}" if n > 1 else ""
        return f"{self.gain(before, after):.2f}× (n={n}{spread})"

    def gain_range(self, before: float | str, after: float | str) -> tuple[float, float]:
        old, new = self.at(before).epoch, self.at(after).epoch
        return old.low / new.high, old.high / new.low


@cache
def theta_tier() -> Tier:
    """Theta's Lustre in slow motion."""
    study = parse_study(_filled("{num_files_train: 4, record_length_bytes: 1}", "{}", "{}", 1), "theta")
    tier = study.system.tiers[-1]
    return replace(
        tier,
        emulate=True,
        **{
            name: value * factor
            for names, factor in ((_RATES, 1 / SLOWER), (_LATENCIES, SLOWER))
            for name in names
            if (value := getattr(tier, name))
        },
    )


_LATENCIES = ("metadata_latency", "latency")
_RATES = tuple(name for name in RATES if name not in _LATENCIES)


def _filled(dataset: str, reader: str, sweep: str, repetitions: int, compute: float = 0.0) -> str:
    given = {
        "DATASET": dataset,
        "READER": reader,
        "SWEEP": sweep,
        "REPETITIONS": str(repetitions),
        "COMPUTE": f"{compute:.6f}",
    }
    text = _WORKLOAD
    for name, words in given.items():
        text = text.replace(f"{{{name}}}", words)
    return text


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What to measure: a dataset and a reader as YAML, and the values of one key. `cached`: on a plain directory whose files stay in memory. `compute`: seconds of a step."""

    dataset: str
    reader: str
    key: str
    values: Sequence[str]
    cached: bool = False
    compute: float = 0.0

    def study(self, repetitions: int) -> Study:
        sweep = f"{{{self.key}: [{', '.join(self.values)}]}}"
        study = parse_study(
            _filled(self.dataset, self.reader, sweep, repetitions, self.compute), "a study of tierscope reproduce"
        )
        tier = replace(theta_tier(), emulate=not self.cached)
        study = replace(study, system=replace(study.system, tiers=(tier,)))
        if not self.cached:
            return study
        reader = replace(study.workload.reader, evict=False)  # else files leave memory before every epoch
        return replace(study, workload=replace(study.workload, reader=reader))


def measure(request: SweepRequest, repetitions: int) -> TunedSweep:
    study = request.study(repetitions)
    with work_folder() as folder, closing(Crews()) as crews:
        out = os.path.join(folder, "out")
        store = run_study(study, out, crews, Silent())
        analysis = analyze(out, store=store)
    payload = study.workload.dataset.samples * study.workload.dataset.record_length_bytes
    points = []
    for point in analysis.breakdown.summary:
        if point.epoch is None:
            raise UserError("a study of tierscope reproduce has no epoch times; run it again")
        (value,) = _values(point.sweep)
        points.append(TunedPoint(value, point.epoch, payload))
    return TunedSweep(request.key, tuple(points))


def _values(sweep: Mapping[str, object]) -> list[float | str]:
    return [value if isinstance(value, int | float | str) else str(value) for value in sweep.values()]
