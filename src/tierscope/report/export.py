"""A result for other programs."""

import glob
import os
from collections.abc import Iterator

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.errors import UserError
from tierscope.output.op_list import open_ops, run_of
from tierscope.output.store import RunStore
from tierscope.report.perfetto import events_of_ops, events_of_sums, write_perfetto

FORMATS = ("perfetto", "parquet")


def export(analysis: Analysis, result: str | None, form: str, path: str) -> None:
    """`result`: the directory that it is from, if any: it may hold a list of operations."""
    if os.path.exists(path):
        raise UserError(f"{path}: is there already; give another name, or remove it first")
    try:
        if form == "parquet":
            analysis.times.table.write_parquet(os.path.abspath(path))  # Polars would take `~` for the home directory
            return
        lists = list(_lists(analysis, result)) if result else []
        events = events_of_ops(lists) if lists else events_of_sums(analysis.times)
        write_perfetto(path, events, analysis.name)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}; give another name") from None


def _lists(analysis: Analysis, result: str) -> Iterator[pl.LazyFrame]:
    load = analysis.load_run or RunStore(result).load
    for path in sorted(glob.glob(os.path.join(glob.escape(result), "ops", "*-node*.parquet"))):
        if key := run_of(path):
            yield open_ops(path, load(key))
