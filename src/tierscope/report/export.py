"""A result for other programs, in files that the user names: each complete in the end, or as it was."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.times import ClassTimes
from tierscope.errors import UserError
from tierscope.output.durable import is_stream, writing_named
from tierscope.output.op_list import open_ops, run_of
from tierscope.output.store import RunStore
from tierscope.plain_files import open_plain
from tierscope.report.perfetto import events_of_ops, events_of_sums, write_perfetto

FORMATS = ("perfetto", "parquet")
_HEAD = b"rank,epoch,class,seconds"


def export(analysis: Analysis, result: str | None, form: str, path: str) -> None:
    """`result`: the directory that it is from, if any: it may hold a list of operations."""
    if os.path.exists(path) and not is_stream(path):
        raise UserError(f"{path}: already exists; choose another name, or remove it first")
    with _explained(path, "; choose another name"):
        if form == "parquet":
            with writing_named(path) as file:
                analysis.times.table.write_parquet(file)
            return
        lists = list(_lists(analysis, result)) if result else []
        events = events_of_ops(lists) if lists else events_of_sums(analysis.times)
        write_perfetto(path, events, analysis.name)


def _lists(analysis: Analysis, result: str) -> Iterator[pl.LazyFrame]:
    load = analysis.load_run or RunStore(result).load
    for path in sorted(glob.glob(os.path.join(glob.escape(result), "ops", "*-node*.parquet"))):
        if key := run_of(path):
            yield open_ops(path, load(key))


def to_csv(times: ClassTimes, path: str) -> None:
    """The same table as `from_csv` reads. An existing file is replaced only if it is such a table too."""
    columns = ["rank", "epoch", "class", "seconds", "ops", "bytes", "node", "repetition", *times.sweep]
    with _explained(path):
        if os.path.exists(path) and not is_stream(path) and not _is_table(path):
            raise UserError(f"{path}: exists and is not a table of times; choose another name, or remove it first")
        table = times.table.select(columns)
        with writing_named(path) as file:
            if is_stream(path):
                file.write(table.write_csv().encode())  # whoever waits for a reader in Polars hears no signal
            else:
                table.write_csv(file)


def _is_table(path: str) -> bool:
    with open_plain(os.path.realpath(path)) as old:
        return old.read(len(_HEAD)) == _HEAD


@contextmanager
def _explained(path: str, fix: str = "") -> Iterator[None]:
    """Polars meets a full disk as an error of its own."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        told = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be written: {told}{fix}") from None
