"""`validation/measured/similarity.json`: what validation/measured_similarity.py measured, as types; read as hostile, like any document."""

import math
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tierscope.analysis.character_metrics import METRICS
from tierscope.analysis.similarity import Compared, cosine_of
from tierscope.output.typed_documents import DocumentKind, read_typed

PLACE = Path(__file__).resolve().parents[3] / "validation" / "measured" / "similarity.json"
_FIX = "make it again with 'python -m validation.measured_similarity'"


class Spread(msgspec.Struct, frozen=True):
    median: float
    low: float
    high: float
    n: int

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.low, self.median, self.high))) or not self.low <= self.median <= self.high:
            raise ValueError(f"a median of {self.median} is not between {self.low} and {self.high}")
        if self.n < 1:
            raise ValueError(f"n is {self.n}")


class ComparedMetric(msgspec.Struct, frozen=True):
    metric: str
    first: Spread
    second: Spread
    difference: Spread

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"{self.metric} is not a metric")


class ComparedRuns(msgspec.Struct, frozen=True):
    """Runs of two programs for one workload."""

    cosine: Spread
    metrics: tuple[ComparedMetric, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.cosine.low <= self.cosine.high <= 1:
            raise ValueError(f"a cosine of {self.cosine.median} is not between 0 and 1")

    def cosine_without(self, names: frozenset[str]) -> float | None:
        """Of the medians."""
        return cosine_of(
            [
                Compared(metric.metric, metric.first.median, metric.second.median, metric.difference.median)
                for metric in self.metrics
                if metric.metric not in names
            ]
        )


class MeasuredWorkload(msgspec.Struct, frozen=True):
    """`compared`: dlio-ours, application-dlio, application-ours. `repeated`: DLIO's runs with one another."""

    name: str
    row: str
    yaml: str
    shipped: bool
    made: str
    compared: dict[str, ComparedRuns]
    repeated: Spread


class LogMetric(msgspec.Struct, frozen=True):
    metric: str
    difference: float


class ComparedLog(msgspec.Struct, frozen=True):
    name: str
    what: str
    cosine: float
    made: str
    metrics: tuple[LogMetric, ...]


class SimilarityFile(msgspec.Struct, frozen=True):
    schema_version: int
    made: str
    ranks: int
    storage: tuple[str, ...]
    versions: dict[str, str]
    workloads: tuple[MeasuredWorkload, ...]
    logs: tuple[ComparedLog, ...]


@dataclass(frozen=True, slots=True)
class MissingMeasurement:
    reason: str


def measured_similarity(place: Path = PLACE) -> SimilarityFile | MissingMeasurement:
    try:
        return read_typed(place, DocumentKind(SimilarityFile, _FIX))
    except FileNotFoundError:
        return MissingMeasurement(
            "validation/measured/similarity.json is part of a clone, not of the installed package"
        )
