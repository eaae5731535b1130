"""Traces on disk: one Parquet file per run, complete or absent.

OUT/tierscope.json            marks the directory as a result of ours
OUT/study.yaml                the resolved study
OUT/runs/0003-r1.parquet      point 3, repetition 1
OUT/ops/0003-r1-node0.parquet its operations (`--ops`), one file per node
"""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tierscope.errors import OutOfSpaceError, ResultError, StoppedError, UserError
from tierscope.output import disk_errors, durable, seal
from tierscope.trace.check import is_description, wrong_in_table
from tierscope.trace.trace import COLUMNS, LATER_COLUMNS, SCHEMA_VERSION, RunKey, Trace

_ABOUT = "tierscope"
_NAME = re.compile(r"(\d{4,})-r(\d+)\.parquet")


class RunStore:
    """The finished runs of a study."""

    def __init__(self, out: str) -> None:
        self.folder = os.path.join(out, "runs")

    def path(self, key: RunKey) -> str:
        return os.path.join(self.folder, f"{key.point:04d}-r{key.repetition}.parquet")

    def finished(self) -> set[RunKey]:
        if not os.path.isdir(self.folder):
            return set()
        matches = (_NAME.fullmatch(name) for name in os.listdir(self.folder))
        return {RunKey(int(match[1]), int(match[2])) for match in matches if match}

    def save(self, trace: Trace) -> None:
        """Durable before it is visible."""
        os.makedirs(self.folder, exist_ok=True)
        write_parquet(self.path(trace.key), trace.table, {"schema_version": SCHEMA_VERSION, **trace.about})

    def refuse_others(self, studies: Mapping[RunKey, str], profiler: str | None = None) -> None:
        """Refuse a finished run that was made by another study than the one given for it, or measured with another profiler."""
        for key in sorted(self.finished() & studies.keys(), key=lambda run: (run.point, run.repetition)):
            about = read_about(self.path(key))
            if about.get("study") != studies[key]:
                raise ResultError(
                    f"{self.path(key)}: was made by a different study; move it away, or give another --out"
                )
            found = str(about.get("profiler", "builtin"))
            profiler = profiler or found
            if found != profiler:
                raise ResultError(
                    f"{self.path(key)}: was measured with {found}, and not with {profiler}; times of two profilers do not mix: "
                    f"give another --out, or --profiler {found}"
                )

    def load(self, key: RunKey) -> Trace:
        path = self.path(key)
        about, table = read_parquet(path)
        if not is_description(about):
            raise ResultError(
                f"{path}: its description is not one of Tierscope's; move it away and run the study again"
            )
        table = _with_later_columns(table)
        if wrong := wrong_in_table(table, key, about):
            raise ResultError(f"{path}: {wrong}; {_FIX}")
        return Trace(key, about, table.select(list(COLUMNS)))

    def load_all(self) -> Iterator[Trace]:
        for key in sorted(self.finished(), key=lambda run: (run.point, run.repetition)):
            yield self.load(key)


def write_parquet(path: str, table: pl.DataFrame | pl.LazyFrame, about: dict[str, Any]) -> None:
    """Description and checksum go into the file's metadata."""
    metadata = {_ABOUT: json.dumps(about), "tierscope_checksum": seal.BLANK}
    try:
        with durable.replacing(path) as temporary:
            try:
                if isinstance(table, pl.LazyFrame):
                    table.sink_parquet(temporary, metadata=metadata)
                else:
                    table.write_parquet(temporary, metadata=metadata)
            except pl.exceptions.ComputeError:
                _meet_again(temporary)
                raise
            seal.stamp(temporary)
    except (OSError, pl.exceptions.ComputeError) as error:  # Polars meets a full disk as the latter
        raise _explanation(error, path) from None


def _explanation(error: Exception, path: str) -> Exception:
    """Of some errors Polars has the system's number in its words only, and of some not even that."""
    number = _number_of(error)
    if number == errno.EFBIG or (number is None and not isinstance(error, OSError)):  # a limit, or room that ran out
        reason = os.strerror(number) if number else str(error).splitlines()[0]
        return OutOfSpaceError(f"{path}: {disk_errors.TABLE.full.replace('{said}', reason)}")
    found = disk_errors.explanation(
        OSError(number, str(error)) if number else OSError(str(error)), path, disk_errors.TABLE
    )
    return StoppedError(str(found)) if isinstance(found, UserError) else found  # the run is lost, and the study goes on


def _meet_again(path: str) -> None:
    """Raise what the system says when more is written to a file: of some errors Polars only tells that there was one."""
    with open(path, "ab", buffering=0) as file:
        for _ in range(16):
            file.write(bytes(1 << 16))
        os.fsync(file.fileno())


def _number_of(error: Exception) -> int | None:
    """Of a system's error; Polars has it in its words only."""
    told = re.search(r"\(os error (\d{1,4})\)", str(error))
    return getattr(error, "errno", None) or (int(told[1]) if told else None)


_FIX = "move it away and run the study again: only this run is repeated"


def read_about(path: str) -> dict[str, Any]:
    """The description of a file of ours; nothing in it is trusted."""
    broken = f"{path}: is not a readable result of Tierscope"
    try:
        if not seal.intact(path):  # before anything else looks into it: a damaged table can even crash its reader
            raise ResultError(f"{broken} (its checksum does not fit); {_FIX}")
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}; change its mode or restore it") from None
    try:
        about = json.loads(pl.read_parquet_metadata(path).get(_ABOUT, "null"))
    except (pl.exceptions.PolarsError, OSError, ValueError, RecursionError, pl.exceptions.PanicException):
        raise ResultError(f"{broken}; {_FIX}") from None
    if not isinstance(about, dict) or not isinstance(about.get("schema_version"), int):
        raise ResultError(f"{broken} (no description inside); {_FIX}")
    if about["schema_version"] > SCHEMA_VERSION:
        raise ResultError(
            f"{path}: schema version {about['schema_version']} is newer than this Tierscope knows ({SCHEMA_VERSION}); update Tierscope"
        )
    return about


def read_parquet(path: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """Description and table of a file of ours, neither of them trusted."""
    about = read_about(path)
    try:
        return about, pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        raise ResultError(f"{path}: is not a readable result of Tierscope (damaged table); {_FIX}") from None


def _with_later_columns(table: pl.DataFrame) -> pl.DataFrame:
    """A run that was made before these columns were: nobody preprocessed, met after steps or wrote checkpoints then."""
    return table.with_columns(
        pl.lit(0.0, pl.Float64).alias(name) for name in LATER_COLUMNS if name not in table.columns
    )
