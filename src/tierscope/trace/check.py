"""What the table of a run may hold. A checksum says that a file is whole, not that we wrote it.

Numbers of epochs, ranks and nodes are those of the study, where the description has it. What others recorded knows less: nulls are
refused only where no writer of ours leaves one.
"""

import re
from collections.abc import Iterator
from functools import cache
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
_Facts = dict[str, Any]  # by question


def wrong_in_table(table: pl.DataFrame, key: RunKey, about: Description) -> str | None:
    """The first thing in the table that cannot be; `about` is checked."""
    schema = table.schema
    for name, dtype in COLUMNS.items():
        if schema.get(name) != dtype:
            return f"column {name} is missing or not {dtype}"
    facts = _facts(table)
    for wrong in (
        _wrong_rows(facts, key, about),
        _wrong_names(facts, about),
        _wrong_numbers(facts, about),
        _wrong_lists(facts),
        _wrong_keys(facts),
        _wrong_counts(facts, about),
    ):
        for reason in wrong:
            return reason
    return None


def _facts(table: pl.DataFrame) -> _Facts:
    """All that is asked about a table, in one query: a call for every question takes six times as long on a small result."""
    return table.select(_questions()).row(0, named=True)


@cache
def _questions() -> list[pl.Expr]:
    """Nulls are left out of the least and the most, and so is NaN."""
    of_record = {name: pl.col("record") == name for name in RECORDS}
    asked: dict[str, pl.Expr] = {"rows": pl.len(), "kinds": _values("kind"), "tiers": _values("tier")}
    for record, rows in of_record.items():
        asked[f"rows {record}"] = rows.sum()
        asked[f"keys {record}"] = pl.struct(_KEYS[record]).filter(rows).n_unique()
    for name, dtype in COLUMNS.items():
        if isinstance(dtype, pl.List):
            asked |= _of_lists(name, pl.col(name), dtype.inner == pl.Float64)
        elif dtype.is_numeric():
            asked |= _of_numbers(name, pl.col(name), dtype.is_float())
    for name in ("point", "repetition"):
        asked[f"nulls {name}"] = pl.col(name).has_nulls()
    for name, needed in _NEEDED.items():
        for record in needed:
            asked[f"unknown {name} {record}"] = (pl.col(name).is_null() & of_record[record]).any()
    asked["orders"] = pl.col("order_digest").drop_nulls().str.contains("^[0-9a-f]{0,128}$").all()
    of_ranks, known = of_record["rank"], pl.col("rank").is_not_null()
    for name in ("rank", "epoch"):
        asked[f"different {name}"] = pl.col(name).filter(of_ranks).n_unique()
    asked["places"] = pl.struct("rank", "node").filter(of_ranks).n_unique()
    asked["seen"] = pl.struct("epoch", "rank").filter(of_ranks | known).n_unique()
    asked["timed"] = pl.struct("epoch", "rank").filter(of_ranks).n_unique()
    return [question.alias(name) for name, question in asked.items()]


def _values(column: str) -> pl.Expr:
    return pl.col(column).unique().drop_nulls().implode()


def _of_numbers(name: str, values: pl.Expr, is_float: bool) -> dict[str, pl.Expr]:
    ends = {f"least {name}": values.min(), f"most {name}": values.max()}
    return {**ends, f"nan {name}": values.is_nan().any()} if is_float else ends


def _of_lists(name: str, lists: pl.Expr, of_floats: bool) -> dict[str, pl.Expr]:
    entries, lengths = lists.drop_nulls().explode(), lists.list.len()
    steps = {f"steps {name}": lengths.eq_missing(pl.col(_STEPS[0]).list.len()).all()} if name in _STEPS else {}
    counts = {f"longest {name}": lengths.max(), f"length {name}": lengths.sum(), f"entries {name}": entries.count()}
    return {**counts, **_of_numbers(name, entries, of_floats), **steps}


def _wrong_rows(facts: _Facts, key: RunKey, about: Description) -> Iterator[str]:
    if not facts["rows rank"]:
        yield "has no times of ranks"
    if sum(facts[f"rows {name}"] for name in RECORDS) != facts["rows"]:
        yield "has an unknown kind of record"
    for name, number in (("point", key.point), ("repetition", key.repetition)):
        if facts[f"nulls {name}"] or (facts[f"least {name}"], facts[f"most {name}"]) != (number, number):
            yield "contains another run than its name says"
    for name, needed in _NEEDED.items():
        for record in needed:
            may_be_unknown = record == "io" and (type(about), name) in _UNKNOWN
            if facts[f"unknown {name} {record}"] and not may_be_unknown:
                yield f"{name} is not known everywhere"


def _wrong_keys(facts: _Facts) -> Iterator[str]:
    """A row that is there twice would count twice."""
    for record, key in _KEYS.items():
        if facts[f"keys {record}"] < facts[f"rows {record}"]:
            yield f"has the same row twice (record {record}, by {', '.join(key)})"


def _wrong_counts(facts: _Facts, about: Description) -> Iterator[str]:
    """Every rank of a study has a row for every epoch; of others, no more ranks than were counted."""
    if facts["places"] > facts["different rank"]:
        yield "has a rank on two nodes"
    if isinstance(about, StudyRun):
        epochs = _epochs_of(about) or facts["different epoch"]
        if facts["rows rank"] != epochs * (about.ranks or facts["different rank"]):
            yield "lacks a row for some rank and epoch"
    elif isinstance(about, Traced) and about.records.ranks and facts["different rank"] > about.records.ranks:
        yield "has more ranks than its description"
    if facts["seen"] > facts["timed"]:
        yield "has I/O of a rank that has no times"


def _wrong_names(facts: _Facts, about: Description) -> Iterator[str]:
    if not set(facts["kinds"]) <= set(CATEGORY):
        yield "has an unknown kind of operation"
    if not all(map(_TIER.fullmatch, facts["tiers"])):
        yield "has a tier with an invalid name"
    if not set(facts["tiers"]) <= set(about.tier_names):
        yield "has a tier that its description does not name"
    if not facts["orders"]:
        yield "has an invalid order of samples"


def _wrong_numbers(facts: _Facts, about: Description) -> Iterator[str]:
    for name, low, high in _limits(about):
        if not _within(facts, name, low, high):
            yield f"{name} is not within {low} – {high}"
    for name, dtype in COLUMNS.items():
        if dtype == pl.Float64 and not _within(facts, name, 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if dtype == pl.Int64 and not _within(facts, name, 0, _most_counted(about)):
            yield _bad_counts(name)


def _wrong_lists(facts: _Facts) -> Iterator[str]:
    for name, most in _LENGTHS.items():
        if (facts[f"longest {name}"] or 0) > most:
            yield f"{name} has more than {most} entries"
        if facts[f"entries {name}"] != facts[f"length {name}"]:  # an empty list is a null among the entries
            yield f"{name} is not known everywhere"
        if COLUMNS[name] == pl.List(pl.Float64) and not _within(facts, name, 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if COLUMNS[name] == pl.List(pl.Int64) and not _within(facts, name, 0, MOST_COUNTED):
            yield _bad_counts(name)
    for name in _STEPS[1:]:
        if not facts[f"steps {name}"]:
            yield f"{name} has other steps than {_STEPS[0]}"


def _bad_seconds(name: str) -> str:
    return f"{name} has a negative or non-finite value, or one that is too large"


def _bad_counts(name: str) -> str:
    return f"{name} has a negative value, or one that is too large"


def _within(facts: _Facts, name: str, low: float, high: float) -> bool:
    """Nulls are, and NaN is not."""
    least, most = facts[f"least {name}"], facts[f"most {name}"]
    return least is None or bool(low <= least and most <= high and not facts.get(f"nan {name}"))


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
