"""`validation/measured/similarity.json`: what validation/measured_similarity.py measured, as types; read as hostile, like any document."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from tierscope.analysis.character_metrics import METRICS
from tierscope.analysis.similarity import Compared, cosine_of
from tierscope.output.typed_documents import DocumentKind, read_typed

PLACE = Path(__file__).resolve().parents[3] / "validation" / "measured" / "similarity.json"
_FIX = "make it again with 'python -m validation.measured_similarity'"


Pair = Literal["dlio-ours", "application-dlio", "application-ours"]
Words = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+$")
]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Value = Annotated[float, Meta(ge=0, le=1e18)]  # of a metric: seconds, bytes, files, shares
Share = Annotated[float, Meta(ge=0, le=1)]
Difference = Annotated[float, Meta(ge=-1, le=1)]  # (first − second) ÷ the larger
Times = Annotated[int, Meta(ge=1, le=1000)]


Number = TypeVar("Number", bound=float)


class Spread(msgspec.Struct, Generic[Number], frozen=True):
    median: Number
    low: Number
    high: Number
    n: Times

    def __post_init__(self) -> None:
        if not self.low <= self.median <= self.high:
            raise ValueError(f"a median of {self.median} is not between {self.low} and {self.high}")


def _once(names: Iterable[str], of: Iterable[str] | None = None) -> None:
    """Each at most once, and known where `of` says what there is."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"{name} is given twice")
        if of is not None and name not in of:
            raise ValueError(f"{name} is not a metric")
        seen.add(name)


class ComparedMetric(msgspec.Struct, frozen=True):
    metric: str
    first: Spread[Value]
    second: Spread[Value]
    difference: Spread[Difference]


class ComparedRuns(msgspec.Struct, frozen=True):
    """Runs of two programs for one workload."""

    cosine: Spread[Share]
    metrics: tuple[ComparedMetric, ...]

    def __post_init__(self) -> None:
        _once((metric.metric for metric in self.metrics), METRICS)

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
    """`row`: of the study, or empty. `repeated`: DLIO's runs with one another."""

    name: Words
    row: Annotated[str, Meta(pattern=r"^(D-F8-[1-6])?$")]
    yaml: Words
    shipped: bool
    made: Date
    compared: dict[Pair, ComparedRuns]
    repeated: Spread[Share]

    def __post_init__(self) -> None:
        if "dlio-ours" not in self.compared:
            raise ValueError(f"{self.name} has no comparison dlio-ours")


class LogMetric(msgspec.Struct, frozen=True):
    metric: str
    difference: Difference


class ComparedLog(msgspec.Struct, frozen=True):
    name: Words
    what: Words
    cosine: Share
    made: Date
    metrics: tuple[LogMetric, ...]

    def __post_init__(self) -> None:
        _once((metric.metric for metric in self.metrics), METRICS)


class SimilarityFile(msgspec.Struct, frozen=True):
    schema_version: Literal[1]
    made: Date
    ranks: Annotated[int, Meta(ge=1, le=10**6)]
    storage: tuple[Words, ...]
    versions: dict[Words, Words]
    workloads: tuple[MeasuredWorkload, ...]
    logs: tuple[ComparedLog, ...]

    def __post_init__(self) -> None:
        _once(workload.name for workload in self.workloads)
        _once(workload.row for workload in self.workloads if workload.row)
        _once(log.name for log in self.logs)


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
