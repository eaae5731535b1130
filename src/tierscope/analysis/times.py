"""Class times: the one table that every analysis starts from, whether it comes from our traces or from a CSV.

A row is (sweep values, repetition, epoch, rank, class) → seconds, operations, bytes. Classes are TIER-READ, TIER-META
and TIER-WRITE. A CSV has the columns rank, epoch, class, seconds and, if known, node, repetition, ops and bytes; any other column
is a sweep key.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tierscope.errors import ResultError, UserError
from tierscope.trace.ops import CATEGORIES, CATEGORY
from tierscope.trace.trace import Trace
from tierscope.units import closest

REQUIRED = ("rank", "epoch", "class", "seconds")
RESERVED = ("node", "repetition", "ops", "bytes")
_CLASS = re.compile(r"[^\x00-\x1f,\"]{1,32}-(READ|META|WRITE)")
MAX_CSV_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """`table` has the columns of a CSV, always all of them; `epochs` (rank, epoch → seconds, …) may be empty."""

    table: pl.DataFrame
    epochs: pl.DataFrame
    sweep: tuple[str, ...]
    classes: tuple[str, ...]
    basis: str
    about: list[dict[str, Any]] = field(default_factory=list)  # of the traces it was made from

    @property
    def keys(self) -> list[str]:
        return [*self.sweep, "repetition", "epoch"]


def from_traces(traces: Iterable[Trace], tiers: Iterable[str], basis: str = "busy") -> ClassTimes:
    """Sum lanes and kinds of operation to classes; every rank has every class, zero where it did nothing."""
    tables: list[pl.DataFrame] = []
    epochs: list[pl.DataFrame] = []
    about: list[dict[str, Any]] = []
    sweep: tuple[str, ...] = ()
    for trace in traces:
        values = trace.about.get("sweep")
        if not isinstance(values, dict):
            raise ResultError(
                f"run {trace.key.point}-r{trace.key.repetition}: has no sweep values in its description; run it again"
            )
        if about and tuple(values) != sweep:
            raise ResultError(
                f"run {trace.key.point}-r{trace.key.repetition}: was made by another sweep; move it away and run again"
            )
        sweep = tuple(values)
        about.append({**trace.about, "repetition": trace.key.repetition})
        columns = [pl.lit(value).alias(name) for name, value in values.items()]
        category = pl.col("kind").replace_strict(CATEGORY, return_dtype=pl.String)
        tables.append(
            trace.io.with_columns(*columns, (pl.col("tier").str.to_uppercase() + "-" + category).alias("class"))
            .group_by([*sweep, "repetition", "epoch", "node", "rank", "class"])
            .agg(pl.col(f"{basis}_seconds").sum().alias("seconds"), pl.col("ops").sum(), pl.col("bytes").sum())
        )
        epochs.append(trace.ranks.with_columns(*columns))
    if not tables:
        raise UserError("no finished run yet; run the study first")
    table, ranks = pl.concat(tables), pl.concat(epochs)
    classes = _class_order(table["class"].unique().to_list(), list(tiers))
    return ClassTimes(_complete(table, ranks, sweep, classes), ranks, sweep, classes, basis, about)


def _class_order(found: list[str], tiers: list[str]) -> tuple[str, ...]:
    """READ and META of every tier, farthest first as the method prints them; WRITE where there is any."""
    ordered = [f"{tier.upper()}-{kind}" for tier in reversed(tiers) for kind in ("READ", "META")]
    return (*ordered, *sorted(name for name in found if name not in ordered))


def _complete(
    table: pl.DataFrame, ranks: pl.DataFrame, sweep: tuple[str, ...], classes: tuple[str, ...]
) -> pl.DataFrame:
    keys = [*sweep, "repetition", "epoch", "node", "rank"]
    everybody = ranks.select(keys).join(pl.DataFrame({"class": classes}), how="cross")
    return everybody.join(table, on=[*keys, "class"], how="left", maintain_order="left").with_columns(
        pl.col("seconds").fill_null(0.0), pl.col("ops").fill_null(0), pl.col("bytes").fill_null(0)
    )


def from_csv(path: str) -> ClassTimes:
    """Times from any profiler. Nothing in the file is trusted; errors name the line."""
    table = _read_text(path)
    _check_columns(path, table.columns)
    sweep = tuple(name for name in table.columns if name not in REQUIRED and name not in RESERVED)
    if table.is_empty():
        raise UserError(f"{path}: has a header but no rows; give at least one time")
    table = table.with_columns(
        _numbers(path, table, "rank", pl.Int64, low=0),
        _numbers(path, table, "epoch", pl.Int64, low=1),
        _numbers(path, table, "seconds", pl.Float64, low=0),
        _numbers(path, table, "repetition", pl.Int64, low=1)
        if "repetition" in table.columns
        else pl.lit(1).alias("repetition"),
        *(
            _numbers(path, table, name, pl.Int64, low=0, empty=True)
            if name in table.columns
            else pl.lit(None, pl.Int64).alias(name)
            for name in ("node", "ops", "bytes")
        ),
        *(_sweep_column(table, name) for name in sweep),
    )
    _check_classes(path, table)
    _check_unique(path, table, sweep)
    classes = _csv_class_order(table["class"].unique().to_list())
    columns = [*sweep, "repetition", "epoch", "node", "rank", "class", "seconds", "ops", "bytes"]
    return ClassTimes(table.select(columns), pl.DataFrame(), sweep, classes, "busy")


def _read_text(path: str) -> pl.DataFrame:
    try:
        return pl.read_csv(path, infer_schema=False, truncate_ragged_lines=False).rename(str.strip)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except pl.exceptions.NoDataError:
        raise UserError(f"{path}: is empty; the first line must be rank,epoch,class,seconds[,…]") from None
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UserError(f"{path}: is not a readable CSV: {reason}") from None


def _check_columns(path: str, columns: list[str]) -> None:
    for name in REQUIRED:
        if name not in columns:
            guess = closest(name, [column for column in columns if column not in REQUIRED])
            hint = f"rename {guess}" if guess else "the first line must be rank,epoch,class,seconds[,…]"
            raise UserError(f"{path}:1: column {name} is missing; {hint}")


def _line(bad: pl.Series) -> int:
    return int(bad.arg_true()[0]) + 2


def _numbers(path: str, table: pl.DataFrame, name: str, dtype: Any, low: int, empty: bool = False) -> pl.Series:
    text = table[name].str.strip_chars()
    values = text.cast(dtype, strict=False)
    bad = values.is_null() & ((text.is_not_null() & (text != "")) | (not empty))
    bad |= (values < low).fill_null(False)
    if dtype == pl.Float64:
        bad |= (~values.is_finite()).fill_null(False)
    if bad.any():
        line = _line(bad)
        whole = "a number" if dtype == pl.Float64 else "a whole number"
        raise UserError(f"{path}:{line}: {name} = {text[line - 2] or '(empty)'}; must be {whole} of at least {low}")
    return values


def _sweep_column(table: pl.DataFrame, name: str) -> pl.Series:
    """Numbers where all are numbers, else text."""
    text = table[name].str.strip_chars().fill_null("")
    numbers = text.cast(pl.Float64, strict=False)
    return text if numbers.is_null().any() or not numbers.is_finite().all() else numbers


def _check_classes(path: str, table: pl.DataFrame) -> None:
    for name in table["class"].unique().to_list():
        if name is None or not _CLASS.fullmatch(name):
            line = _line(table["class"].eq_missing(name))
            kinds = ", ".join(f"TIER-{category}" for category in CATEGORIES)
            raise UserError(f"{path}:{line}: class = {name or '(empty)'}; must be {kinds}, for example GFS-META")


def _check_unique(path: str, table: pl.DataFrame, sweep: tuple[str, ...]) -> None:
    twice = table.select([*sweep, "repetition", "epoch", "rank", "class"]).is_duplicated()
    if twice.any():
        line = int(twice.arg_true()[1]) + 2
        raise UserError(
            f"{path}:{line}: this rank, epoch and class was given before; add the times up or tell them apart with a column"
        )


def _csv_class_order(found: list[str]) -> tuple[str, ...]:
    tiers = sorted({name.rpartition("-")[0] for name in found})
    needed = [f"{tier}-{kind}" for tier in tiers for kind in ("READ", "META")]
    return (*needed, *sorted(name for name in found if name not in needed))


def to_csv(times: ClassTimes, path: str) -> None:
    """The same table as `from_csv` reads."""
    columns = ["rank", "epoch", "class", "seconds", "ops", "bytes", "node", "repetition", *times.sweep]
    try:
        times.table.select(columns).write_csv(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
