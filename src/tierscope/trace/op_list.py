"""The full list of operations (`--ops`): from the ranks' raw files to one Parquet file per node, in bounded memory."""

import os
from collections.abc import Iterator

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from tierscope.trace.ops import KINDS, OP_ROW
from tierscope.trace.store import write_parquet
from tierscope.trace.trace import SCHEMA_VERSION

_ROWS = 200_000

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


def collect_ops(path: str, raw: dict[int, str], tiers: list[str]) -> None:
    """Write the operations of some ranks (rank → raw file) as one Parquet file, then remove the raw files."""

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        for rank, name in raw.items():
            for frame in _frames(rank, name, tiers):
                wanted = frame.filter(predicate) if predicate is not None else frame
                wanted = wanted.select(with_columns) if with_columns is not None else wanted
                yield wanted if n_rows is None else wanted.head(n_rows)

    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_parquet(path, register_io_source(source, schema=SCHEMA), {"schema_version": SCHEMA_VERSION, "kind": "ops"})
    for name in raw.values():
        os.unlink(name)


def _frames(rank: int, name: str, tiers: list[str]) -> Iterator[pl.DataFrame]:
    with open(name, "rb") as file:
        while len(rows := np.frombuffer(file.read(_ROWS * OP_ROW.itemsize), OP_ROW)):
            yield pl.DataFrame(
                {
                    "rank": np.full(len(rows), rank, np.int32),
                    "lane": rows["lane"],
                    "epoch": rows["epoch"],
                    "step": rows["step"],
                    "tier": np.array(tiers)[rows["tier"]],
                    "kind": np.array(KINDS)[rows["kind"]],
                    "file": rows["file"],
                    "offset": rows["offset"],
                    "bytes": rows["bytes"],
                    "start_seconds": rows["start_ns"] / 1e9,
                    "seconds": rows["busy_ns"] / 1e9,
                },
                schema=SCHEMA,
            )
