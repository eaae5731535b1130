"""Class times: the one table that every analysis starts from, whether it comes from our traces or from a CSV.

A row is (sweep values, repetition, epoch, rank, class) → seconds, operations, bytes. Classes are TIER-READ, TIER-META
and TIER-WRITE; what our own checkpointer writes in the background is apart. A CSV has the columns rank, epoch, class, seconds and, if known, node, repetition, ops and bytes; any other column
is a sweep key.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from tierscope.analysis.csv_places import FIRST_LINE, CsvText, read_text, shown
from tierscope.analysis.own_habits import habits_of
from tierscope.errors import ResultError, UserError
from tierscope.shortage import missing_resource
from tierscope.spec.feasibility import Feasibility
from tierscope.trace.described_logs import Habit
from tierscope.trace.description import Description, Imported
from tierscope.trace.latency_counts import latency_counts
from tierscope.trace.ops import BACKGROUND_LANE, CATEGORIES, CATEGORY, LOADING, MOVES_BYTES
from tierscope.trace.trace import RunKey, Trace
from tierscope.units import closest

REQUIRED = ("rank", "epoch", "class", "seconds")
RESERVED = ("node", "repetition", "ops", "bytes")
_MOST_LISTED = 8  # epochs, in an error
_MOST_SECONDS = 1e12  # sums of them stay numbers
_CLASS = re.compile(r"[^\x00-\x1f\x7f-\x9f,\"]{1,32}-(READ|META|WRITE)")


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """A run that times come from: how it describes itself, and by tier how it uses storage, as its logs or its sums tell."""

    key: RunKey
    about: Description
    habits: Mapping[str, Habit]
    moved_bytes: int = 0  # that all its processes read and wrote on tiers, also those that are no rank's


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """`table` has the columns of a CSV, always all of them; `epochs` (rank, epoch → seconds, …) may be empty."""

    table: pl.DataFrame
    epochs: pl.DataFrame
    sweep: tuple[str, ...]
    classes: tuple[str, ...]
    basis: str
    runs: tuple[DescribedRun, ...] = ()  # whose traces it was made from; none: a CSV
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)  # operations and bytes of each kind in all
    epoch: int | None = None  # the only one that was taken; None: all that there are
    categories: tuple[str, ...] = CATEGORIES  # that make up the I/O time
    background: pl.DataFrame = field(
        default_factory=pl.DataFrame
    )  # keys, rank, seconds, bytes of checkpoints written while training goes on
    feasibility: Mapping[tuple[Any, ...], Feasibility] = field(
        default_factory=dict
    )  # by swept values; none: nothing is known of it
    latency: pl.DataFrame = field(
        default_factory=pl.DataFrame
    )  # operations by swept values, epoch, class, kind and bin

    def is_possible(self, values: Iterable[Any]) -> bool:
        """Whether the files of this point fit, for all that is known: what does not is never recommended."""
        feasibility = self.feasibility.get(tuple(values))
        return feasibility is None or feasibility.is_possible

    @property
    def about(self) -> list[Description]:
        return [run.about for run in self.runs]

    @property
    def keys(self) -> list[str]:
        return [*self.sweep, "repetition", "epoch"]

    @property
    def io_classes(self) -> tuple[str, ...]:
        """Those that make up the I/O time."""
        return tuple(name for name in self.classes if category_of(name) in self.categories)

    def by_process(self, column: str) -> pl.DataFrame:
        """One row for each process of each epoch, one column for each class; zero where it has no row."""
        return (
            self.table.pivot(on="class", index=[*self.keys, "rank"], values=column, aggregate_function="sum")
            .with_columns(pl.lit(0.0).alias(name) for name in self.classes if name not in self.table["class"])
            .with_columns(pl.col(name).fill_null(0.0) for name in self.classes)
        )


def category_of(class_name: str) -> str:
    """READ, META or WRITE."""
    return class_name.rpartition("-")[2]


def counting_only(times: ClassTimes, categories: tuple[str, ...]) -> ClassTimes:
    """With an I/O time of these categories only."""
    if not any(category_of(name) in categories for name in times.classes):
        known = sorted({category_of(name).lower() for name in times.classes}, key=str.upper)
        raise UserError(
            f"--classes {','.join(categories).lower()}: none in this result; choose from {', '.join(known)}"
        )
    return replace(times, categories=categories)


def from_traces(traces: Iterable[Trace], tiers: Iterable[str], basis: str | None = None) -> ClassTimes:
    """Sum lanes and kinds of operation to classes; every rank has every class, zero where it did nothing. `basis`: None: wall, where it is known.

    What was done by processes that are no rank's is left out: a finding says how much it was.
    """
    tables: list[pl.DataFrame] = []
    epochs: list[pl.DataFrame] = []
    background: list[pl.DataFrame] = []
    latency: list[pl.DataFrame] = []
    runs: list[DescribedRun] = []
    kinds: dict[str, tuple[int, int]] = {}
    sweep: tuple[str, ...] = ()
    for trace in traces:
        values = trace.about.sweep
        if runs and tuple(values) != sweep:
            raise ResultError(
                f"run {trace.key.point}-r{trace.key.repetition}: belongs to another sweep; move it away and rerun"
            )
        sweep = tuple(values)
        counted = trace.about.habits if isinstance(trace.about, Imported) else None
        habits = habits_of(trace.io) if counted is None else counted
        moved = int(trace.io.filter(pl.col("kind").is_in(MOVES_BYTES))["bytes"].sum())
        runs.append(DescribedRun(trace.key, trace.about, habits, moved))
        columns = [pl.lit(value).alias(name) for name, value in values.items()]
        category = pl.col("kind").replace_strict(CATEGORY, return_dtype=pl.String)
        ranked = trace.io.drop_nulls("rank").with_columns(*columns)
        apart = pl.col("lane") == BACKGROUND_LANE
        background.append(_written(ranked.filter(apart), sweep))
        latency.append(latency_counts(ranked.filter(~apart), [*sweep, "epoch"]))
        tables.append(
            ranked.filter(~apart)
            .with_columns((pl.col("tier").str.to_uppercase() + "-" + category).alias("class"))
            .group_by([*sweep, "repetition", "epoch", "node", "rank", "class"])
            .agg(
                pl.col("busy_seconds").sum(),
                pl.when(pl.col("wall_seconds").null_count() == 0).then(pl.col("wall_seconds").sum()),
                pl.col("ops").sum(),
                pl.col("bytes").filter(pl.col("kind").is_in(MOVES_BYTES)).sum(),
            )
        )
        for kind, ops, nbytes in _kinds(trace):
            before = kinds.get(kind, (0, 0))
            kinds[kind] = before[0] + ops, before[1] + nbytes
        epochs.append(trace.ranks.with_columns(*columns))
    if not tables:
        raise UserError("no run has finished yet; run the study first")
    # Relaxed: a sweep may hold null, or whole numbers of different sizes.
    together = (pl.concat(parts, how="vertical_relaxed") for parts in (tables, epochs, background, latency))
    table, ranks, written, counts = together
    basis = basis or ("busy" if table["wall_seconds"].has_nulls() else "wall")
    table = table.rename({f"{basis}_seconds": "seconds"})
    classes = _class_order(table["class"].unique().to_list(), list(tiers))
    whole = _complete(table, ranks, sweep, classes)
    return ClassTimes(whole, ranks, sweep, classes, basis, tuple(runs), kinds, background=written, latency=counts)


def _written(background: pl.DataFrame, sweep: tuple[str, ...]) -> pl.DataFrame:
    moved = pl.col("bytes").filter(pl.col("kind").is_in(MOVES_BYTES)).sum()
    return background.group_by([*sweep, "repetition", "epoch", "rank"], maintain_order=True).agg(
        pl.col("busy_seconds").sum().alias("seconds"), moved
    )


def of_epoch(times: ClassTimes, epoch: int | None) -> ClassTimes:
    """Only one epoch of every run, the first too; None: all of them."""
    if epoch is None:
        return times
    runs = times.table.group_by([*times.sweep, "repetition"]).agg(pl.col("epoch").unique())["epoch"].to_list()
    if not all(epoch in run for run in runs):
        known = sorted(set.intersection(*map(set, runs)))
        listed = f"{known[0]} to {known[-1]}" if len(known) > _MOST_LISTED else ", ".join(map(str, known))
        has = "not every run has that epoch" if any(epoch in run for run in runs) else "no such epoch"
        raise UserError(f"--epoch {epoch}: {has}; choose from {listed or 'the epochs that all runs have'}, or median")
    table = times.table.filter(pl.col("epoch") == epoch)
    epochs = times.epochs if times.epochs.is_empty() else times.epochs.filter(pl.col("epoch") == epoch)
    background = times.background if times.background.is_empty() else times.background.filter(pl.col("epoch") == epoch)
    return replace(times, table=table, epochs=epochs, background=background, epoch=epoch)


def _kinds(trace: Trace) -> list[tuple[str, int, int]]:
    """Kind, operations and bytes, of all ranks and epochs."""
    return trace.io.drop_nulls("rank").group_by("kind").agg(pl.col("ops", "bytes").sum()).rows()


def _class_order(names: list[str], tiers: list[str]) -> tuple[str, ...]:
    """READ and META of every tier, farthest first as the method prints them; then WRITE where there is any."""
    far_first = [tier.upper() for tier in reversed(tiers)]
    ordered = [f"{tier}-{category}" for tier in far_first for category in LOADING]
    ordered += [name for tier in far_first if (name := f"{tier}-WRITE") in names]
    return (*ordered, *sorted(name for name in names if name not in ordered))


def _complete(
    table: pl.DataFrame, ranks: pl.DataFrame, sweep: tuple[str, ...], classes: tuple[str, ...]
) -> pl.DataFrame:
    keys = [*sweep, "repetition", "epoch", "node", "rank"]
    everybody = ranks.select(keys).join(pl.DataFrame({"class": classes}), how="cross")
    table = table.select(*keys, "class", "seconds", "ops", "bytes")
    return everybody.join(table, on=[*keys, "class"], how="left", nulls_equal=True, maintain_order="left").with_columns(
        pl.col("seconds").fill_null(0.0), pl.col("ops").fill_null(0), pl.col("bytes").fill_null(0)
    )


def from_csv(path: str) -> ClassTimes:
    """Times from any profiler. Nothing in the file is trusted; errors name the line."""
    text = read_text(path)
    table = _table(text)
    _check_columns(text, table.columns)
    sweep = tuple(name for name in table.columns if name not in REQUIRED and name not in RESERVED)
    if table.is_empty():
        raise UserError(f"{path}: has a header but no rows; add at least one row")
    table = table.with_columns(
        _numbers(text, table, "rank", pl.Int64, low=0),
        _numbers(text, table, "epoch", pl.Int64, low=1),
        _numbers(text, table, "seconds", pl.Float64, low=0),
        _numbers(text, table, "repetition", pl.Int64, low=1)
        if "repetition" in table.columns
        else pl.lit(1).alias("repetition"),
        *(
            _numbers(text, table, name, pl.Int64, low=0, empty=True)
            if name in table.columns
            else pl.lit(None, pl.Int64).alias(name)
            for name in ("node", "ops", "bytes")
        ),
        *(_sweep_column(text, table, name) for name in sweep),
        table["class"].str.strip_chars(),
    )
    _check_classes(text, table)
    _check_unique(text, table, sweep)
    classes = _csv_class_order(table["class"].unique().to_list())
    if taken := [name for name in sweep if name in classes]:
        raise UserError(f"{path}:1: column {taken[0]} has the name of a class; rename it")
    columns = [*sweep, "repetition", "epoch", "node", "rank", "class", "seconds", "ops", "bytes"]
    return ClassTimes(table.select(columns), pl.DataFrame(), sweep, classes, "busy")


def _table(text: CsvText) -> pl.DataFrame:
    path = text.path
    _check_header(text)
    try:
        table = pl.read_csv(text.content, infer_schema=False, truncate_ragged_lines=False)
    except pl.exceptions.NoDataError:
        raise UserError(f"{path}: is empty; {FIRST_LINE}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if short := missing_resource(f"{path}: cannot be read", error):
            raise short from None
        _check_columns(text, text.header())
        text.refuse_ragged()
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UserError(f"{path}: is not a readable CSV: {reason}") from None
    if [name.strip() for name in table.columns] != text.header():
        raise UserError(f"{path}:1: its header is ambiguous; write column names without quotes and line breaks")
    if table[:, -1].null_count():  # perhaps a row is too short
        text.refuse_ragged()
    return table.rename(str.strip).filter(~pl.all_horizontal(pl.all().fill_null("") == ""))


def _check_header(text: CsvText) -> None:
    path, names = text.path, text.header()
    for number, name in enumerate(names, start=1):
        if not name or not name.isprintable() or "\ufffd" in name:
            raise UserError(f"{path}:1: column {number} has no printable name; name it or remove it")
        if name == "*" or name.startswith("^"):
            raise UserError(f"{path}:1: column {name} looks like a pattern; rename it")
        if name in names[: number - 1]:
            raise UserError(f"{path}:1: column {name} appears twice; rename one")


def _check_columns(csv: CsvText, columns: list[str]) -> None:
    for name in REQUIRED:
        if name not in columns:
            guess = closest(name, [column for column in columns if column not in REQUIRED])
            hint = f"rename {shown(guess)}" if guess else FIRST_LINE
            raise UserError(f"{csv.path}:1: column {name} is missing; {hint}")


def _numbers(csv: CsvText, table: pl.DataFrame, name: str, dtype: Any, low: int, empty: bool = False) -> pl.Series:
    text = table[name].str.strip_chars()
    values = text.cast(dtype, strict=False)
    bad = values.is_null() & ((text.is_not_null() & (text != "")) | (not empty))
    bad |= (values < low).fill_null(False)
    if dtype == pl.Float64:
        bad |= (~(values <= _MOST_SECONDS)).fill_null(False)  # nan neither
    if bad.any():
        row = int(bad.arg_true()[0])
        kind = (
            f"a number within {low} – {_MOST_SECONDS:g}" if dtype == pl.Float64 else f"a whole number of at least {low}"
        )
        raise UserError(f"{csv.path}:{csv.line_of(row)}: {name} = {shown(text[row])}; must be {kind}")
    return values


def _sweep_column(csv: CsvText, table: pl.DataFrame, name: str) -> pl.Series:
    """Numbers where all are numbers or percentages, else text."""
    text = table[name].str.strip_chars().fill_null("")
    unprintable = text.str.contains(r"\p{Cc}")
    if unprintable.any():
        line = csv.line_of(int(unprintable.arg_true()[0]))
        raise UserError(f"{csv.path}:{line}: {name} holds a line break or a control character; write it as plain text")
    empty = text == ""
    if empty.any():
        line = csv.line_of(int(empty.arg_true()[0]))
        raise UserError(f"{csv.path}:{line}: {name} is empty; set it in every row, or remove the column")
    percent = text.str.ends_with("%")
    numbers = text.str.strip_suffix("%").str.strip_chars().cast(pl.Float64, strict=False)
    numbers = numbers / pl.select(pl.when(percent).then(100.0).otherwise(1.0)).to_series()
    if name == "cache_rate":
        bad = ~numbers.is_between(0, 1).fill_null(False)
        if bad.any():
            row = int(bad.arg_true()[0])
            raise UserError(
                f"{csv.path}:{csv.line_of(row)}: cache_rate = {shown(text[row])}; must be within 0 – 1, or 0% – 100%"
            )
    return text if numbers.is_null().any() or not numbers.is_finite().all() else numbers


def _check_classes(csv: CsvText, table: pl.DataFrame) -> None:
    for name in table["class"].unique(maintain_order=True).to_list():
        if name is None or not _CLASS.fullmatch(name):
            line = csv.line_of(int(table["class"].eq_missing(name).arg_true()[0]))
            kinds = ", ".join(f"TIER-{category}" for category in CATEGORIES)
            raise UserError(f"{csv.path}:{line}: class = {shown(name)}; must be {kinds}, for example GFS-META")


def _check_unique(csv: CsvText, table: pl.DataFrame, sweep: tuple[str, ...]) -> None:
    keys = table.select([*sweep, "repetition", "epoch", "rank", "class"]).to_struct()
    twice = ~keys.is_first_distinct()
    if twice.any():
        line = csv.line_of(int(twice.arg_true()[0]))
        raise UserError(
            f"{csv.path}:{line}: duplicate rank, epoch and class; sum the times, or add a column that distinguishes them"
        )


def _csv_class_order(names: list[str]) -> tuple[str, ...]:
    """Tier by tier, READ before META; writes last. What the table does not have, nobody measured."""
    tiers = sorted({name.rpartition("-")[0] for name in names})
    ordered = [name for tier in tiers for kind in LOADING if (name := f"{tier}-{kind}") in names]
    return (*ordered, *sorted(name for name in names if name not in ordered))
