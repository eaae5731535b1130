"""The full list of operations: exact, in chunks, one file per node."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from tierscope.errors import StoppedError
from tierscope.output import op_list
from tierscope.output.op_list import SCHEMA, OpSource, collect_ops, write_ops
from tierscope.output.store import read_parquet
from tierscope.trace.ops import KINDS, OP_ROW

TIERS = ["lfs", "gfs", "tape"]


def raw_rows(count: int, seed: int) -> npt.NDArray[np.void]:
    generator = np.random.default_rng(seed)
    rows = np.empty(count, OP_ROW)
    for name in OP_ROW.names or ():
        rows[name] = generator.integers(0, 2**30, count)
    rows["tier"], rows["kind"] = generator.integers(0, len(TIERS), count), generator.integers(0, len(KINDS), count)
    return rows


def expected(rank: int, rows: npt.NDArray[np.void]) -> list[tuple[object, ...]]:
    return [
        (rank, lane, epoch, step, TIERS[tier], KINDS[kind], file, offset, nbytes, start / 1e9, busy / 1e9)
        for epoch, lane, step, tier, kind, file, offset, nbytes, start, busy in rows.tolist()
    ]


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_every_row_of_every_rank_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(op_list, "_ROWS", chunk)
    lists = {4: raw_rows(20, 1), 5: raw_rows(0, 2), 6: raw_rows(14, 3)}
    raw = {rank: str(tmp_path / f"rank-{rank}.ops") for rank in lists}
    for rank, rows in lists.items():
        rows.tofile(raw[rank])
    path = tmp_path / "ops" / "0000-r1-node1.parquet"
    collect_ops(str(path), raw, TIERS)
    about, table = read_parquet(str(path))
    assert table.schema == SCHEMA
    assert table.rows() == [row for rank, rows in lists.items() for row in expected(rank, rows)]
    assert about["kind"] == "ops"
    assert os.listdir(tmp_path) == ["ops"]  # the raw lists are gone
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(("known", "found"), [([], []), ([3, 2**40], [3]), ([1, 3, 7], [7, 3]), ([9], [])])
def test_numbers_of_files_that_mean_nothing_are_none(tmp_path: Path, known: list[int], found: list[int]) -> None:
    rows = raw_rows(3, 1)
    rows["file"] = [7, 3, 0]
    path = tmp_path / "ops" / "x.parquet"
    write_ops(str(path), [OpSource(None, lambda: iter([rows]), None, np.array(known, np.int64))], TIERS)
    table = pl.read_parquet(path)
    assert table.schema == SCHEMA
    assert table["file"].drop_nulls().to_list() == found


def test_ranks_that_did_nothing_give_an_empty_table(tmp_path: Path) -> None:
    raw = tmp_path / "rank-0.ops"
    raw.touch()
    path = tmp_path / "ops" / "x.parquet"
    collect_ops(str(path), {0: str(raw)}, TIERS)
    assert pl.read_parquet(path).schema == SCHEMA
    assert pl.read_parquet(path).is_empty()


def test_a_failure_keeps_the_raw_lists(tmp_path: Path) -> None:
    raw = {0: str(tmp_path / "rank-0.ops"), 1: str(tmp_path / "rank-1.ops")}
    raw_rows(5, 1).tofile(raw[0])
    with pytest.raises(StoppedError, match=r"x\.parquet: cannot be written"):
        collect_ops(str(tmp_path / "ops" / "x.parquet"), raw, TIERS)
    assert os.path.exists(raw[0])
    assert os.listdir(tmp_path / "ops") == []
