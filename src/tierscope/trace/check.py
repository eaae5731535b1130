"""What the table of a run may hold. A checksum says that a file is whole, not that we wrote it.

Numbers of epochs, ranks and nodes are those of the study, where the description has it. What others recorded knows less: nulls are
refused only where no writer of ours leaves one.
"""

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from tierscope.trace.columns import COLUMNS
from tierscope.trace.description import Description, Imported, StudyRun, Traced
from tierscope.trace.limits import LARGEST, MOST_COUNTED, MOST_SECONDS, TIER_PATTERN
from tierscope.trace.ops import BINS, CATEGORY
from tierscope.trace.rank_trace import MAX_STEPS
from tierscope.trace.trace import RunKey

RECORDS = ("io", "rank", "cold")
_MOST_EPOCHS = 1 << 20  # where nobody marked them by numbers of their own
_STEPS = ("step_read_seconds", "step_stall_seconds", "step_compute_seconds")
_LENGTHS = {"size_histogram": BINS, "latency_histogram": BINS, **dict.fromkeys(_STEPS, MAX_STEPS)}
_NEEDED = {
    **dict.fromkeys(("epoch", "node", "rank"), RECORDS),
    "tier": ("io", "cold"),
    **dict.fromkeys(("lane", "kind", "busy_seconds", "ops", "bytes"), ("io",)),
    "checked_bytes": ("cold",),
}
_UNKNOWN: set[tuple[type, str]] = {
    (Traced, "rank"),
    (Imported, "node"),
}  # in rows about I/O: processes beside the ranks
_KEYS = {
    "io": ("epoch", "rank", "lane", "tier", "kind"),
    "rank": ("epoch", "rank"),
    "cold": ("epoch", "rank", "tier"),
}
_EPOCHS = re.compile(r"^ +epochs: (\d{1,5})$", re.MULTILINE)
_TIER = re.compile(TIER_PATTERN)


def wrong_in_table(table: pl.DataFrame, key: RunKey, about: Description) -> str | None:
    """The first thing in the table that cannot be; `about` is checked."""
    for name, dtype in COLUMNS.items():
        if table.schema.get(name) != dtype:
            return f"column {name} is missing or not {dtype}"
    for wrong in (
        _wrong_rows(table, key, about),
        _wrong_names(table, about),
        _wrong_numbers(table, about),
        _wrong_lists(table),
        _wrong_keys(table),
        _wrong_counts(table, about),
    ):
        for reason in wrong:
            return reason
    return None


def _wrong_rows(table: pl.DataFrame, key: RunKey, about: Description) -> Iterator[str]:
    records = {name: table["record"] == name for name in RECORDS}
    if not records["rank"].any():
        yield "has no times of ranks"
    if sum(rows.sum() for rows in records.values()) != len(table):
        yield "has an unknown kind of record"
    for name, number in (("point", key.point), ("repetition", key.repetition)):
        if table[name].has_nulls() or (table[name].min(), table[name].max()) != (number, number):
            yield "contains another run than its name says"
    for name, needed in _NEEDED.items():
        missing = table[name].is_null()
        for record in needed if missing.any() else ():
            unknown = record == "io" and (type(about), name) in _UNKNOWN
            if not unknown and (missing & records[record]).any():
                yield f"{name} is not known everywhere"


def _wrong_keys(table: pl.DataFrame) -> Iterator[str]:
    """A row that is there twice would count twice."""
    for record, key in _KEYS.items():
        rows = table.filter(pl.col("record") == record).select(key)
        if rows.n_unique() < len(rows):
            yield f"has the same row twice (record {record}, by {', '.join(key)})"


def _wrong_counts(table: pl.DataFrame, about: Description) -> Iterator[str]:
    """Every rank of a study has a row for every epoch; of others, no more ranks than were counted."""
    ranks = table.filter(pl.col("record") == "rank")
    if ranks.select("rank", "node").n_unique() > ranks["rank"].n_unique():
        yield "has a rank on two nodes"
    if isinstance(about, StudyRun):
        epochs = _epochs_of(about) or ranks["epoch"].n_unique()
        if len(ranks) != epochs * (about.ranks or ranks["rank"].n_unique()):
            yield "lacks a row for some rank and epoch"
    elif isinstance(about, Traced) and about.records.ranks and ranks["rank"].n_unique() > about.records.ranks:
        yield "has more ranks than its description"
    told = table.filter(pl.col("record") != "rank", pl.col("rank").is_not_null()).select("epoch", "rank").unique()
    if not told.join(ranks, on=["epoch", "rank"], how="anti").is_empty():
        yield "has I/O of a rank that has no times"


def _wrong_names(table: pl.DataFrame, about: Description) -> Iterator[str]:
    if not _values_in(table, "kind") <= set(CATEGORY):
        yield "has an unknown kind of operation"
    tiers = _values_in(table, "tier")
    if not all(map(_TIER.fullmatch, tiers)):
        yield "has a tier with an invalid name"
    if not tiers <= set(about.tier_names):
        yield "has a tier that its description does not name"
    if not table["order_digest"].drop_nulls().str.contains("^[0-9a-f]{0,128}$").all():
        yield "has an invalid order of samples"


def _values_in(table: pl.DataFrame, column: str) -> set[str]:
    return set(table[column].unique().drop_nulls())


def _wrong_numbers(table: pl.DataFrame, about: Description) -> Iterator[str]:
    for name, low, high in _limits(about):
        if not _within(table[name], low, high):
            yield f"{name} is not within {low} – {high}"
    for name, dtype in COLUMNS.items():
        if dtype == pl.Float64 and not _within(table[name], 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if dtype == pl.Int64 and not _within(table[name], 0, _most_counted(about)):
            yield _bad_counts(name)


def _wrong_lists(table: pl.DataFrame) -> Iterator[str]:
    for name, most in _LENGTHS.items():
        lists = table[name].drop_nulls()  # first: without nulls there is nothing to copy
        entries, lengths = lists.explode(), lists.list.len()
        if (lengths > most).any():
            yield f"{name} has more than {most} entries"
        if entries.count() != lengths.sum():  # an empty list is a null among the entries
            yield f"{name} is not known everywhere"
        if entries.dtype == pl.Float64 and not _within(entries, 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if entries.dtype == pl.Int64 and not _within(entries, 0, MOST_COUNTED):
            yield _bad_counts(name)
    lengths = table[_STEPS[0]].list.len()
    for name in _STEPS[1:]:
        if not lengths.equals(table[name].list.len()):
            yield f"{name} has other steps than {_STEPS[0]}"


def _bad_seconds(name: str) -> str:
    return f"{name} has a negative or non-finite value, or one that is too large"


def _bad_counts(name: str) -> str:
    return f"{name} has a negative value, or one that is too large"


def _within(values: pl.Series, low: float, high: float) -> bool:
    """Nulls are, and NaN is not, though Polars leaves it out of the least and the most."""
    least: Any = values.min()
    most: Any = values.max()
    if least is None:
        return True
    return bool(low <= least and most <= high) and not (values.dtype.is_float() and values.is_nan().any())


def _limits(about: Description) -> Iterator[tuple[str, int, int]]:
    """Of a program that marks its epochs, and of ranks that launchers number, any number is good."""
    epochs = _epochs_of(about) if isinstance(about, StudyRun) else None
    yield "epoch", 1, epochs or (LARGEST if isinstance(about, Traced) else _MOST_EPOCHS)
    ranks, nodes = (about.ranks, about.nodes) if isinstance(about, StudyRun) else (None, None)
    yield "rank", 0, ranks - 1 if ranks else LARGEST
    yield "node", 0, nodes - 1 if nodes else LARGEST
    yield "lane", 0, LARGEST


def _epochs_of(about: StudyRun) -> int | None:
    match = _EPOCHS.search(about.study or "")
    return int(match[1]) if match else None


def _most_counted(about: Description) -> int:
    """Importers write down what a log says, as far as it is a number of 64 bits."""
    return 2**63 - 1 if isinstance(about, Imported) else MOST_COUNTED
