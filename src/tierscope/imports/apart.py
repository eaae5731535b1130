"""Sums of all that logs tell, sorted: what is on tiers, what is on none, and what is apart (the program's own files, its standard streams).

What is apart is in no class of I/O, and its sums are told. A job that did nothing else has it as classes: an I/O time of zero would be wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from tierscope.imports.paths import APART, PROGRAM, STREAMS, UNKNOWN, TierRules
from tierscope.imports.untiered import PathWeights, unknown_paths
from tierscope.trace.described_logs import ApartSums, KindSums, PathSums, UnknownPaths, tallied
from tierscope.trace.ops import CATEGORIES, CATEGORY, MOVES_BYTES

_SHOWN_AS = {PROGRAM: "program", STREAMS: "streams"}  # where there is nothing else


@dataclass(slots=True)
class PathNotes:
    """Which paths are of no tier, by UNKNOWN or one of APART: their weights, and how many files there are."""

    weights: dict[str, PathWeights] = field(default_factory=lambda: {name: PathWeights() for name in (*APART, UNKNOWN)})
    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*APART, UNKNOWN), 0))


@dataclass(frozen=True, slots=True)
class SortedSums:
    sums: pl.DataFrame  # of tiers only
    tiers: list[str]
    program: ApartSums
    streams: ApartSums
    unknown: UnknownPaths


def sort_sums(
    sums: pl.DataFrame,
    rules: TierRules,
    tiers: set[str],
    notes: PathNotes,
    unranked: Mapping[str, pl.DataFrame] | None = None,
    left_out: pl.DataFrame | None = None,
) -> SortedSums:
    """`sums`: also those of APART; `tiers`: names of tiers; `unranked`: of each of APART, what is no rank's or in no epoch; `left_out`: what the user does
    not want counted."""
    is_apart = pl.col("tier").is_in(APART)
    on_tiers, apart = sums.filter(~is_apart), sums.filter(is_apart)
    did_more = left_out is not None and not left_out.filter(~is_apart).is_empty()
    if not on_tiers["busy_seconds"].sum() and apart["busy_seconds"].sum() > 0 and not did_more:
        names = {name: rules.free_name(shown) for name, shown in _SHOWN_AS.items()}
        on_tiers = pl.concat([on_tiers, apart.with_columns(pl.col("tier").replace(names))])
        tiers = {*tiers, *(names[name] for name in apart["tier"].unique())}
        apart = apart.clear()
    parts = {name: [apart.filter(pl.col("tier") == name)] for name in APART}
    for name, more in (unranked or {}).items():
        parts[name].append(more)
    program, streams = (
        apart_sums(pl.concat(parts[name]), notes.files[name], _largest(name, notes)) for name in (PROGRAM, STREAMS)
    )
    unknown = unknown_paths(on_tiers, rules.other, notes.weights[UNKNOWN], notes.files[UNKNOWN])
    return SortedSums(on_tiers, rules.order(tiers), program, streams, unknown)


def _largest(name: str, notes: PathNotes) -> tuple[PathSums, ...]:
    weights = notes.weights[name]
    return weights.largest() if name == STREAMS else weights.prefixes()


def apart_sums(rows: pl.DataFrame, files: int = 0, largest: tuple[PathSums, ...] = ()) -> ApartSums:
    """`rows` have the columns of SUMS. Where nothing was done, there is nothing to tell."""
    category = pl.col("kind").replace_strict(CATEGORY, return_dtype=pl.String)
    moved = pl.col("bytes").filter(pl.col("kind").is_in(MOVES_BYTES)).sum()
    summed = rows.group_by(category.alias("category")).agg(pl.col("busy_seconds", "ops").sum(), moved)
    by_class = {name: KindSums() for name in CATEGORIES}
    for name, seconds, ops, nbytes in summed.iter_rows():
        by_class[name] = KindSums(seconds=seconds, ops=tallied(ops), bytes=tallied(nbytes))
    whole = by_class.values()
    ops, nbytes = tallied(sum(part.ops for part in whole)), tallied(sum(part.bytes for part in whole))
    seconds = sum(part.seconds for part in whole)
    if not (ops or nbytes or seconds):
        return ApartSums()
    parts = {name.lower(): part for name, part in by_class.items()}
    return ApartSums(ops=ops, bytes=nbytes, seconds=seconds, files=files, largest=largest, **parts)
