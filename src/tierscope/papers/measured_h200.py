"""validation/h200: steps, kernels, counters and training of the networks on one NVIDIA H200, as types; read as hostile, like any document.

Made by `python validation/measure_h200.py`. It lies beside the package, in a clone; an installed Tierscope is without it.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tierscope.arch.efficiency import BINS, COUNTERS, Histogram
from tierscope.output.typed_documents import DocumentKind, read_typed
from tierscope.papers.measured_similarity import MissingMeasurement

FOLDER = Path(__file__).resolve().parents[3] / "validation" / "h200"
_FIX = "make it again with 'python validation/measure_h200.py'"
BATCHES = {
    "cosmoflow": (1, 4, 8),
    "deepcam": (1, 2, 4),
    "resnet50": (16, 64, 128),
}  # that rows of the study are compared with
Seconds = Annotated[float, Meta(ge=0, le=1e6)]
Positive = Annotated[float, Meta(gt=0, le=1e18)]
Count = Annotated[int, Meta(ge=1, le=10**15)]


class MeasuredOrigin(Struct, frozen=True):
    device: str
    time: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT")]

    @property
    def day(self) -> str:
        return self.time[:10]


class MeasuredStep(Struct, frozen=True):
    """Bytes: of torch's allocator. `kept_bytes`: when the forward pass has ended, above what lay there before."""

    network: str
    batch: Count
    precision: str
    solver: str
    recompute: bool
    seconds: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    peak_bytes: Count
    kept_bytes: Count

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def per_sample(self) -> float:
        return self.median / self.batch


class StepsFile(Struct, frozen=True):
    origin: MeasuredOrigin
    rows: tuple[MeasuredStep, ...]


class MeasuredKernels(Struct, frozen=True):
    network: str
    batch: Count
    precision: str
    source: str
    kernels: Count
    bins_seconds: Annotated[tuple[Seconds, ...], Meta(min_length=BINS, max_length=BINS)]
    ideal_seconds: Positive

    @property
    def histogram(self) -> Histogram:
        return Histogram(self.source, self.bins_seconds, self.ideal_seconds, self.kernels)


class KernelsFile(Struct, frozen=True):
    origin: MeasuredOrigin
    rows: tuple[MeasuredKernels, ...]


class CountedBin(Struct, frozen=True):
    """`unique_kernels`: by name; None: not kept."""

    seconds: Seconds
    ideal_seconds: Seconds
    unique_kernels: Annotated[int, Meta(ge=0, le=10**9)] | None = None


class CountedStep(Struct, frozen=True):
    """One step by hardware counters, its kernels added up and by efficiency. `tensor_flops`: by what the tensor cores multiply."""

    network: str
    batch: Count
    precision: str
    kernels: Count
    unique_kernels: Count
    seconds: Positive
    dram_bytes: Positive
    fp32_flops: Annotated[float, Meta(ge=0, le=1e18)]
    fp16_flops: Annotated[float, Meta(ge=0, le=1e18)]
    tensor_flops: dict[str, Annotated[float, Meta(ge=0, le=1e18)]]
    bins: Annotated[tuple[CountedBin, ...], Meta(min_length=BINS, max_length=BINS)]

    @property
    def histogram(self) -> Histogram:
        """With what each bin would take at full efficiency, and its kernels by name where they were kept."""
        ideal = tuple(row.ideal_seconds for row in self.bins)
        names = tuple(row.unique_kernels for row in self.bins if row.unique_kernels is not None)
        seconds = tuple(row.seconds for row in self.bins)
        return Histogram(COUNTERS, seconds, sum(ideal), self.kernels, ideal, names if len(names) == BINS else ())

    @property
    def flops_per_sample(self) -> float:
        return (self.fp32_flops + self.fp16_flops + sum(self.tensor_flops.values())) / self.batch

    @property
    def bytes_per_sample(self) -> float:
        return self.dram_bytes / self.batch


class CountersFile(Struct, frozen=True):
    origin: MeasuredOrigin
    rows: tuple[CountedStep, ...]


class MeasuredRate(Struct, frozen=True):
    """`data`: where samples came from: tiers, memory, or made on the device. `utilisation`: share of the time in which the device computed."""

    data: str
    n: Count
    samples_per_second: Positive
    interval: tuple[float, float]
    utilisation: Annotated[float, Meta(ge=0, le=1)]

    @property
    def text(self) -> str:
        return f"{self.samples_per_second:,.1f} ({self.interval[0]:,.1f}–{self.interval[1]:,.1f}, n = {self.n})"


class TrainingStudy(Struct, frozen=True):
    network: str
    points: tuple[MeasuredRate, ...]

    def of(self, data: str) -> MeasuredRate:
        return next(point for point in self.points if point.data == data)


class TrainingFile(Struct, frozen=True):
    origin: MeasuredOrigin
    studies: tuple[TrainingStudy, ...]


@dataclass(frozen=True, slots=True)
class MeasuredH200:
    steps_file: StepsFile
    kernels_file: KernelsFile
    training_file: TrainingFile
    counters_file: CountersFile
    folder: Path

    def steps(self, network: str, precision: str = "amp") -> dict[int, MeasuredStep]:
        """Plain steps by batch: SGD, activations kept."""
        return {step.batch: step for step in self._plain() if (step.network, step.precision) == (network, precision)}

    def _plain(self) -> Iterator[MeasuredStep]:
        return (step for step in self.steps_file.rows if step.solver == "sgd" and not step.recompute)

    def kernels(self, network: str, precision: str = "amp") -> MeasuredKernels | None:
        """By hardware counters; None: not counted."""
        wanted = (network, precision, COUNTERS)
        rows = (row for row in self.kernels_file.rows if (row.network, row.precision, row.source) == wanted)
        return next(rows, None)

    def counted(self, network: str, precision: str = "amp") -> CountedStep:
        return next(row for row in self.counters_file.rows if (row.network, row.precision) == (network, precision))

    def training(self, network: str) -> TrainingStudy:
        return next(study for study in self.training_file.studies if study.network == network)


@cache
def measured_h200(folder: Path = FOLDER) -> MeasuredH200 | MissingMeasurement:
    try:
        measured = MeasuredH200(
            read_typed(folder / "steps.json", DocumentKind(StepsFile, _FIX)),
            read_typed(folder / "kernels.json", DocumentKind(KernelsFile, _FIX)),
            read_typed(folder / "training.json", DocumentKind(TrainingFile, _FIX)),
            read_typed(folder / "counters.json", DocumentKind(CountersFile, _FIX)),
            folder,
        )
    except FileNotFoundError:
        return MissingMeasurement("validation/h200 is part of a clone, not of the installed package")
    lacking = [name for name, batches in BATCHES.items() if not _is_whole(measured, name, batches)]
    return (
        MissingMeasurement(f"validation/h200 lacks steps, counters or training of {', '.join(lacking)}")
        if lacking
        else measured
    )


def _is_whole(measured: MeasuredH200, name: str, batches: tuple[int, ...]) -> bool:
    places = {point.data for study in measured.training_file.studies if study.network == name for point in study.points}
    if (name, "amp") not in {(row.network, row.precision) for row in measured.counters_file.rows}:
        return False
    return set(batches) <= set(measured.steps(name)) and {"tiers", "memory", "synthetic"} <= places
