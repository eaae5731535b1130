"""The full list of operations (`--ops`): from the raw rows of ranks or processes to one Parquet file per node, in bounded memory."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from tierscope.errors import ResultError
from tierscope.native.state import open_plain
from tierscope.output.durable import remove_file
from tierscope.output.store import write_parquet
from tierscope.output.tables import meeting_polars, read_about, scan_table
from tierscope.trace.check_ops import wrong_in_ops
from tierscope.trace.ops import KINDS, OP_ROW
from tierscope.trace.trace import RunKey, Trace

SCHEMA_VERSION = 1  # the first
_ROWS = 200_000
_NAME = re.compile(r"(\d{4,})-r(\d+)-node\d+\.parquet")
_FIX = "move it away to continue without single operations"

SCHEMA = pl.Schema(
    {
        "rank": pl.Int32,
        "lane": pl.Int32,
        "epoch": pl.Int32,
        "step": pl.Int64,
        "tier": pl.String,
        "kind": pl.String,
        "file": pl.Int64,
        "offset": pl.Int64,
        "bytes": pl.Int64,
        "start_seconds": pl.Float64,
        "seconds": pl.Float64,
    }
)
FILES_SCHEMA = pl.Schema({"file": pl.Int64, "path": pl.String})

Rows = npt.NDArray[np.void]  # of OP_ROW


@dataclass(frozen=True, slots=True)
class OpSource:
    """Rows of one rank, or of no rank. `lanes`: numbers of lanes as written → as they are in the trace; None: the same.

    `files`: the numbers of files that mean something, in order; others become null. None: all do.
    """

    rank: int | None
    rows: Callable[[], Iterator[Rows]]
    lanes: Mapping[int, int] | None = None
    files: npt.NDArray[np.int64] | None = None


def collect_ops(path: str, raw: dict[int, str], tiers: list[str]) -> None:
    """Write the operations of some ranks (rank → raw file) as one Parquet file, then remove the raw files."""
    write_ops(path, [OpSource(rank, lambda name=name: rows_of(name)) for rank, name in raw.items()], tiers)  # type: ignore[misc]
    for name in raw.values():
        remove_file(name)


def write_ops(path: str, sources: Sequence[OpSource], tiers: Sequence[str]) -> None:
    def frames() -> Iterator[pl.DataFrame]:
        return (_frame(source, rows, tiers) for source in sources for rows in source.rows())

    _write(path, _lazy(frames, SCHEMA), "ops")


def write_files(path: str, names: Callable[[], Iterator[tuple[int, str]]]) -> None:
    """Which path a file's number in the list means; names may come more than once."""

    def frames() -> Iterator[pl.DataFrame]:
        rest = names()
        while some := list(islice(rest, _ROWS)):
            yield pl.DataFrame(some, FILES_SCHEMA, orient="row")

    _write(path, _lazy(frames, FILES_SCHEMA).unique("file"), "files")


def open_list(path: str, schema: pl.Schema) -> pl.LazyFrame:
    """A list that is whole and has our columns, to be read in parts."""
    version = read_about(path).get("schema_version")
    if not isinstance(version, int):
        raise ResultError(f"{path}: its description is damaged: schema_version must be int >= 1; {_FIX}")
    if version > SCHEMA_VERSION:
        raise ResultError(
            f"{path}: schema version {version} is newer than this Tierscope supports ({SCHEMA_VERSION}); update Tierscope"
        )
    rows = scan_table(path)
    with meeting_polars(path, _FIX):
        stored = rows.collect_schema()
    if stored != schema:
        raise ResultError(f"{path}: is not a Tierscope operation list (other columns); {_FIX}")
    return rows


def run_of(path: str) -> RunKey | None:
    """Which run a list is of, by its name; None: it is none of ours."""
    match = _NAME.fullmatch(os.path.basename(path))
    return RunKey(int(match[1]), int(match[2])) if match else None


def open_ops(path: str, trace: Trace) -> pl.LazyFrame:
    """The operations of a run on a node, checked: each can be, and together they are what the run's table says."""
    rows = open_list(path, SCHEMA)
    with meeting_polars(path, _FIX):
        wrong = wrong_in_ops(rows, trace)
    if wrong:
        raise ResultError(f"{path}: {wrong}; {_FIX}")
    return rows


def open_files(path: str) -> dict[int, str]:
    """Which path each number of a file means."""
    with meeting_polars(path, _FIX):
        table = open_list(path, FILES_SCHEMA).collect()
    if table["file"].has_nulls() or table["path"].has_nulls() or not table["file"].is_unique().all():
        raise ResultError(f"{path}: names a file twice or not at all; {_FIX}")
    return dict(table.iter_rows())


def rows_of(name: str) -> Iterator[Rows]:
    """The rows of a raw file; what is less than a row at its end was cut off by a kill."""
    with open(open_plain(name), "rb") as file:
        while content := file.read(_ROWS * OP_ROW.itemsize):
            yield np.frombuffer(content, OP_ROW, len(content) // OP_ROW.itemsize)


def _write(path: str, frame: pl.LazyFrame, kind: str) -> None:
    """Lists lie in a folder of a result, which is made."""
    out = os.path.dirname(os.path.dirname(path))
    write_parquet(path, frame, {"schema_version": SCHEMA_VERSION, "kind": kind}, out)


def _lazy(frames: Callable[[], Iterator[pl.DataFrame]], schema: pl.Schema) -> pl.LazyFrame:
    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        for frame in frames():
            wanted = frame.filter(predicate) if predicate is not None else frame
            wanted = wanted.select(with_columns) if with_columns is not None else wanted
            yield wanted if n_rows is None else wanted.head(n_rows)

    return register_io_source(source, schema=schema)


def _frame(source: OpSource, rows: Rows, tiers: Sequence[str]) -> pl.DataFrame:
    """Rows whose numbers cannot be are left out: a killed process may have left some."""
    rows = rows[(rows["tier"] >= 0) & (rows["tier"] < len(tiers)) & (rows["kind"] >= 0) & (rows["kind"] < len(KINDS))]
    lanes = pl.Series(rows["lane"])
    if source.lanes is not None:
        lanes = lanes.replace_strict(source.lanes, default=None, return_dtype=pl.Int32)
    return pl.DataFrame(
        {
            "rank": pl.repeat(source.rank, len(rows), dtype=pl.Int32, eager=True),
            "lane": lanes,
            "epoch": rows["epoch"],
            "step": rows["step"],
            "tier": np.array(tiers)[rows["tier"]],
            "kind": np.array(KINDS)[rows["kind"]],
            "file": rows["file"] if source.files is None else _known(rows["file"], source.files),
            "offset": rows["offset"],
            "bytes": rows["bytes"],
            "start_seconds": rows["start_ns"] / 1e9,
            "seconds": rows["busy_ns"] / 1e9,
        },
        schema=SCHEMA,
    )


def _known(numbers: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> pl.Series:
    """In bounded memory, and fast also when there are many."""
    places = np.searchsorted(known, numbers).clip(max=max(0, len(known) - 1))
    there = known[places] == numbers if len(known) else np.zeros(len(numbers), bool)
    return pl.select(pl.when(pl.Series(there)).then(pl.Series(numbers, dtype=pl.Int64))).to_series()
