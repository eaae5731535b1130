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

from tierscope.errors import OutOfSpaceError, ResultError, StoppedError
from tierscope.trace import durable, seal
from tierscope.trace.ops import CATEGORY
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
        table = _with_later_columns(table)
        _check_table(path, table, key)
        _check_about(path, about)
        return Trace(key, about, table)

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
        number = _number_of(error)
        reason = os.strerror(number) if number else str(error).splitlines()[0]
        full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or (not number and not isinstance(error, OSError))
        fix = "free some space" if full else "check the directory"
        kind = OutOfSpaceError if full else StoppedError
        raise kind(f"{path}: cannot be written: {reason}; {fix} and run the same command again") from None


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


def _check_table(path: str, table: pl.DataFrame, key: RunKey) -> None:
    def refuse(reason: str) -> None:
        raise ResultError(f"{path}: {reason}; move it away and run the study again: only this run is repeated")

    for name, dtype in COLUMNS.items():
        if table.schema.get(name) != dtype:
            refuse(f"column {name} is missing or not {dtype}")
    if table.filter(pl.col("record") == "rank").is_empty():
        refuse("has no times of ranks")
    if table["point"].unique().to_list() != [key.point] or table["repetition"].unique().to_list() != [key.repetition]:
        refuse("holds another run than its name says")
    for name in (column for column in COLUMNS if column.endswith("_seconds")):
        values = (table[name] if COLUMNS[name] == pl.Float64 else table[name].explode()).drop_nulls()
        if not bool((values.is_finite() & (values >= 0)).all()):
            refuse(f"{name} has a negative or non-finite value")
    if not set(table["kind"].drop_nulls().unique()) <= set(CATEGORY):
        refuse("has an unknown kind of operation")
    if not bool(table["tier"].drop_nulls().str.contains(r"^[a-z][a-z0-9_]{0,15}$").all()):
        refuse("has a tier whose name cannot be")


def _check_about(path: str, about: dict[str, Any]) -> None:
    """What analyses read from a description must be of the right kind."""
    tiers = about.get("tiers", [])
    right = isinstance(tiers, list) and all(
        isinstance(tier, dict) and isinstance(tier.get("name"), str) for tier in tiers
    )
    right &= isinstance(about.get("sweep", {}), dict) and isinstance(about.get("overhead", {}), dict)
    right &= (
        all(
            cost is None or (isinstance(cost, int | float) and cost >= 0) for cost in about.get("overhead", {}).values()
        )
        if right
        else False
    )
    right &= isinstance(about.get("trimmed_samples") or 0, int)
    right &= isinstance(about.get("profiler", ""), str) and isinstance(about.get("import", {}), dict)
    right = right and (about.get("kind") != "traced" or _is_traced(about))
    if not right:
        raise ResultError(f"{path}: its description is not one of Tierscope's; move it away and run the study again")


_COUNTS = (
    "exit_code",
    "process_count",
    "outside_ops",
    "lost_ops",
    "lost_rows",
    "cut_lanes",
    "still_running",
    "unemulated_processes",
    "scattered_processes",
    "unrecorded_processes",
    "unrecorded_ops",
    "damaged_file_count",
)


def _is_traced(about: dict[str, Any]) -> bool:
    """Whether the description of a traced command has what is read from it, in the right kind."""
    mapped, damaged, command = (about.get(name) for name in ("mapped", "damaged_files", "command"))
    processes = about.get("processes", [])
    return (
        all(isinstance(about.get(name) or 0, int) for name in _COUNTS)
        and all(isinstance(about.get(name) or 0.0, int | float) for name in ("span_seconds", "outside_seconds"))
        and isinstance(damaged, list)
        and all(isinstance(name, str) for name in damaged)
        and isinstance(command, list)
        and all(isinstance(word, str) for word in command)
        and all(isinstance(tier.get("prefixes"), list) for tier in about.get("tiers", []))
        and isinstance(about.get("running", []), list)
        and isinstance(processes, list)
        and all(isinstance(process, dict) and isinstance(process.get("lanes"), int) for process in processes)
        and all(isinstance(process.get("rank"), int | None) for process in processes)
        and isinstance(mapped, dict)
        and all(
            isinstance(sums, dict) and all(isinstance(sums.get(name), int) for name in ("ops", "bytes"))
            for sums in mapped.values()
        )
    )
