"""The Totals of a result: seconds, operations and bytes over all ranks, epochs and runs, by class, and beside them what is in no class.

Of imported logs, classes and what is apart add up to the profiler's own counters: no second is without a home. What MPI-IO tells of files that POSIX tells of
too is the same bytes again: it stands beside, in no sum.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from tierscope.analysis.times import ClassTimes, category_of
from tierscope.jsonable import JsonObject
from tierscope.trace.described_logs import ApartSums, KindSums, LogFacts
from tierscope.trace.description import Imported
from tierscope.trace.ops import CATEGORIES

BESIDE = "mpiio"  # in no sum
APART_NAMES = {
    "standard_streams": "standard streams",
    "program": "the program's own files",
    "shared": "shared files (--no-shared)",
    "outside_epochs": "outside epochs",
    BESIDE: "MPI-IO (same bytes)",
}


@dataclass(frozen=True, slots=True)
class ClassSums:
    """None: not known, as in a CSV without."""

    seconds: float
    ops: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """`apart`: by name, then by category; None: not told by category (results of earlier versions)."""

    classes: dict[str, ClassSums]
    apart: dict[str, dict[str, ClassSums] | None]

    def of_category(self, category: str) -> ClassSums:
        """Over all tiers, and all that is apart."""
        parts = [sums for name, sums in self.classes.items() if category_of(name) == category]
        parts += [sums[category] for name, sums in self.apart.items() if sums is not None and name != BESIDE]
        return ClassSums(
            math.fsum(part.seconds for part in parts),
            _sum(part.ops for part in parts),
            _sum(part.bytes for part in parts),
        )

    @property
    def largest_class(self) -> str | None:
        largest = max(CATEGORIES, key=lambda category: self.of_category(category).seconds)
        return largest if self.of_category(largest).seconds > 0 else None


def _sum(values: Iterator[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def totals_of(times: ClassTimes) -> Totals:
    """What is apart is told of logs as a whole: of a single epoch it is not known."""
    summed = times.table.group_by("class").agg(
        pl.col("seconds").sum(),
        *(
            pl.when(pl.col(name).has_nulls()).then(None).otherwise(pl.col(name).sum()).alias(name)
            for name in ("ops", "bytes")
        ),
    )
    class_sums = {name: ClassSums(*sums) for name, *sums in summed.iter_rows()}
    classes = {name: class_sums.get(name, ClassSums(0.0, 0, 0)) for name in times.classes}
    facts = [about.facts for about in times.about if isinstance(about, Imported)]
    return Totals(classes, apart_of(facts[0]) if facts and times.epoch is None else {})


def apart_of(facts: LogFacts) -> dict[str, dict[str, ClassSums] | None]:
    """Streams, the program and MPI-IO always; others where there are any."""
    apart_sums: Mapping[str, ApartSums] = {
        "standard_streams": facts.streams,
        "program": facts.program,
        "shared": facts.left_out,
        "outside_epochs": facts.outside_epochs,
        BESIDE: facts.mpiio,
    }
    always = ("standard_streams", "program", BESIDE)
    return {name: _by_category(sums) for name, sums in apart_sums.items() if name in always or sums != ApartSums()}


def _by_category(sums: ApartSums) -> dict[str, ClassSums] | None:
    parts: Mapping[str, KindSums | None] = {"READ": sums.read, "META": sums.meta, "WRITE": sums.write}
    if sums == ApartSums():
        return {name: ClassSums(0.0, 0, 0) for name in parts}
    if None in parts.values():
        return None
    return {name: ClassSums(part.seconds, part.ops, part.bytes) for name, part in parts.items() if part is not None}


def totals_json(totals: Totals) -> JsonObject:
    """Keys that other people's scripts rely on."""
    return {
        **_json({category: totals.of_category(category) for category in CATEGORIES}),
        "largest_class": totals.largest_class,
        "classes": {
            name: {"seconds": sums.seconds, "ops": sums.ops, "bytes": sums.bytes}
            for name, sums in totals.classes.items()
        },
        "apart": {name: None if sums is None else _json(sums) for name, sums in totals.apart.items()},
    }


def _json(sums: Mapping[str, ClassSums]) -> JsonObject:
    return {
        **{f"{category.lower()}_seconds": sums[category].seconds for category in CATEGORIES},
        **{f"{category.lower()}_bytes": sums[category].bytes for category in ("READ", "WRITE")},
        **{f"{category.lower()}_ops": sums[category].ops for category in CATEGORIES},
    }
