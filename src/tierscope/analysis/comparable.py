"""Which points of a sweep may be ranked against each other: those of one case that read the same amount of data in an epoch.

Four small files are read faster than a thousand large ones, but that makes them no better. The amount is that of the samples that ranks were handed,
wherever they lay, so caching does not change it; of results that do not tell, it is what was read from all tiers together.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from tierscope.analysis.cases import by_case
from tierscope.analysis.times import ClassTimes, category_of
from tierscope.units import about_bytes, counted

TOLERANCE = 0.01  # of the amount: what an uneven division among ranks may trim
PAYLOAD, SAMPLES, READ = "payload", "samples", "read"  # what an amount is of


def comparable_groups(amounts: Sequence[float | None]) -> list[tuple[int, ...]]:
    """Indices of points whose amounts are equal, up to what is trimmed; the group with the most data first. Unknown amounts: all are one group."""
    if any(amount is None for amount in amounts):
        return [tuple(range(len(amounts)))]
    known = [float(amount or 0.0) for amount in amounts]
    groups: list[list[int]] = []
    for index in sorted(range(len(known)), key=lambda index: -known[index]):
        if groups and known[index] >= known[groups[-1][0]] * (1 - TOLERANCE):
            groups[-1].append(index)
        else:
            groups.append([index])
    return [tuple(sorted(group)) for group in groups]


def data_amounts(times: ClassTimes) -> dict[tuple[Any, ...], float | None]:
    """Values of swept keys → what all ranks read in an epoch, the most of any; in bytes, or else samples. None: not known.

    Caching moves data to another tier and changes nothing about its amount: points that differ in their cache rate only have the same one.
    """
    values = times.table.select(times.sweep).unique().rows() if times.sweep else [()]
    amounts = _read_in_epochs(times)
    if amounts is None:
        return dict.fromkeys(values)
    others = [index for index, name in enumerate(times.sweep) if name != "cache_rate"]
    most: dict[tuple[Any, ...], float] = {}
    for *point, amount in amounts.select(*times.sweep, "amount").iter_rows():
        key = tuple(point[index] for index in others)
        most[key] = max(most.get(key, 0.0), amount)
    return {point: most.get(tuple(point[index] for index in others)) for point in values}


def amount_kind(times: ClassTimes) -> str | None:
    """What amounts are of: payload (bytes of samples), samples, or read (bytes from tiers); None: they are not known."""
    epochs = times.epochs
    for column, kind in (("payload_bytes", PAYLOAD), ("samples", SAMPLES)):
        if not epochs.is_empty() and column in epochs.columns and not epochs[column].has_nulls():
            return kind
    reads = _reads(times)
    return None if reads.is_empty() or reads["bytes"].has_nulls() else READ


def amount_text(amount: float | None, kind: str | None) -> str:
    if amount is None:
        return "another amount of data"
    return counted(round(amount), "sample", grouped=True) if kind == SAMPLES else about_bytes(amount)


def _reads(times: ClassTimes) -> pl.DataFrame:
    return times.table.filter(pl.col("class").is_in([name for name in times.classes if category_of(name) == "READ"]))


def _read_in_epochs(times: ClassTimes) -> pl.DataFrame | None:
    """A row for each epoch of each run; None: not known of all of them."""
    keys, kind = times.keys, amount_kind(times)
    if kind is None:
        return None
    if kind == READ:
        return _reads(times).group_by(keys).agg(pl.col("bytes").sum().alias("amount"))
    column = "payload_bytes" if kind == PAYLOAD else "samples"
    return times.epochs.group_by(keys).agg(pl.col(column).sum().alias("amount"))


def groups_of(times: ClassTimes, points: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[int, ...]], list[float | None]]:
    """Of points, by their swept values: their groups, those of one case after those of another, and the amount of each point."""
    amounts = data_amounts(times)
    of_points = [amounts.get(values) for values in points]
    groups = [
        tuple(places[index] for index in group)
        for places in by_case(times, points)
        for group in comparable_groups([of_points[place] for place in places])
    ]
    return groups, of_points
