"""Sealed tables, read: the checksum first, then Polars, on the same open file. What Polars cannot do for want of threads or memory is not called damage.

Polars gets open files, never names: it would take `~` in one for the home directory, and cannot open a name that is no UTF-8.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import polars as pl

from tierscope.errors import ResultError, StoppedError, TierscopeError
from tierscope.jsonable import JsonObject
from tierscope.output import seal
from tierscope.output.disk_errors import unreadable
from tierscope.plain_files import open_plain
from tierscope.plain_json import parse_json
from tierscope.thread_limits import check_threads

ABOUT = "tierscope"  # the key of the description in a file's metadata
FIX = "move it away and rerun the study: only this run is repeated"
MOST_TABLE_BYTES = 1 << 40
_MOST_ABOUT_BYTES = 64 << 20
_POLARS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


def read_about(path: str) -> JsonObject:
    """The description inside a file of ours, as it is written there; nothing in it is trusted."""
    with _sealed(path) as file:
        return _about(file, path)


def read_parquet(path: str) -> tuple[JsonObject, pl.DataFrame]:
    """Description and table of a file of ours, as they are written there, neither of them trusted."""
    with _sealed(path) as file:
        return _about(file, path), _table(file, path)


def read_table(path: str, columns: list[str] | None = None) -> pl.DataFrame:
    """The table of a file whose description was read before, and which has not changed since."""
    with _opened(path) as file:
        return _table(file, path, columns)


def scan_table(path: str) -> pl.LazyFrame:
    """A table that may be larger than memory, sealed and to be read in parts."""
    with _sealed(path), meeting_polars(path, FIX):
        whole = os.path.abspath(path)
        try:
            whole.encode()
        except UnicodeEncodeError:
            return read_table(path).lazy()
        return pl.scan_parquet(whole, glob=False)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    check_threads()
    try:
        file = open_plain(path)
    except OSError as error:
        raise unreadable(error, path) from None
    with file:
        if os.fstat(file.fileno()).st_size > MOST_TABLE_BYTES:
            raise ResultError(f"{path}: is larger than any Tierscope table; {FIX}")
        yield file


@contextmanager
def _sealed(path: str) -> Iterator[BinaryIO]:
    """And whole: before anything else looks into it, since a damaged table can even crash its reader."""
    with _opened(path) as file:
        try:
            whole = seal.intact(file)
        except OSError as error:
            raise unreadable(error, path) from None
        if not whole:
            raise ResultError(f"{path}: is not a readable Tierscope result (checksum mismatch); {FIX}")
        yield file


def _about(file: BinaryIO, path: str) -> JsonObject:
    file.seek(0)
    with meeting_polars(path, FIX):
        text = pl.read_parquet_metadata(file).get(ABOUT, "null")
    try:
        if len(text) > _MOST_ABOUT_BYTES:
            raise ValueError("is too large")
        about = parse_json(text, finite=False)
    except ValueError:
        about = None
    if not isinstance(about, dict):
        raise ResultError(f"{path}: is not a readable Tierscope result (no description); {FIX}")
    return about


def _table(file: BinaryIO, path: str, columns: list[str] | None = None) -> pl.DataFrame:
    file.seek(0)
    with meeting_polars(path, FIX):
        return pl.read_parquet(file, columns=columns)


@contextmanager
def meeting_polars(path: str, fix: str) -> Iterator[None]:
    """What Polars says about a file whose checksum fits. Whether it is the file's fault is asked by doing the same to one that is good."""
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        raise unreadable(error, path) from None
    except _POLARS as error:
        if isinstance(reason := _why_idle(), TierscopeError):
            raise reason from None
        if _is_short(error):
            raise StoppedError(f"{path}: cannot be read: {_first_line(error)}; {_MORE}") from None
        raise ResultError(f"{path}: is not a readable Tierscope result (damaged table); {fix}") from None


_MORE = "the file is not damaged: raise the limits of memory and processes (ulimit -v, ulimit -u) and rerun the same command"


def _why_idle() -> StoppedError | None:
    """Why Polars can do nothing at all here; None: it can."""
    try:
        pl.LazyFrame({"a": [1, 2]}).select(pl.col("a").sum()).collect()
    except _POLARS as error:
        return StoppedError(f"tables cannot be read: Polars reports '{_first_line(error)}'; {_MORE}")
    return None


def _is_short(error: BaseException) -> bool:
    said = str(error).lower()
    return any(word in said for word in ("os error 11", "os error 12", "os error 24", "out of memory", "alloc"))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
