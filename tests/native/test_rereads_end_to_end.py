"""Epochs by re-reads under the real library: orders of reads in one file, and what is told of them."""

import random
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest

from tests import native_programs
from tests.small_study import NEEDS_LIBRARY
from tierscope.native.rereads import PAGE
from tierscope.native.state import OPTION_REREADS
from tierscope.recording.collect import Collected, collect

pytestmark = NEEDS_LIBRARY

READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for unit in map(int, sys.stdin.read().split()): os.pread(fd, 8, 8 * unit)
"""
UNITS = 100
SAMPLES = range(10, UNITS)
MANY = 20_000  # more than the table holds
DICE = random.Random(5)


def shuffled(units: Iterable[int]) -> list[int]:
    found = list(units)
    DICE.shuffle(found)
    return found


def read(order: list[int], folder: Path) -> Collected:
    tier, record = folder / "tier", folder / "record"
    tier.mkdir()
    (tier / "data").write_bytes(bytes(8 * (max(order) + 1)))
    (folder / "order").write_text(" ".join(map(str, order)))
    native_programs.write_config(record, {"gfs": tier}, OPTION_REREADS)
    command = [sys.executable, "-S", "-c", READER, str(tier / "data")]
    ended = native_programs.run(command, native_programs.environment(record), stdin=folder / "order")
    assert ended.code == 0, ended.err
    return collect(str(record), ["gfs"], lambda head: False, by_rereads=True)


def reads_in(found: Collected) -> list[int]:
    reads = found.table.filter(pl.col("kind") == "read").group_by("epoch").agg(pl.col("ops").sum()).sort("epoch")
    return reads["ops"].to_list()


def with_metadata() -> list[int]:
    """Before each sample what describes it: ten blocks, always the same."""
    return [unit for sample in shuffled(SAMPLES) for unit in (*range(10), sample)]


@pytest.mark.parametrize(
    ("order", "reads", "late"),
    [
        (shuffled(range(UNITS)), [100], 0),
        (shuffled(range(UNITS)) + shuffled(range(UNITS)), [100, 100], 2),
        ([*range(UNITS)] * 5, [100] * 5, 0),
        (with_metadata() + with_metadata(), [990, 990], 16),
        (
            [unit for _ in range(2) for file in range(0, UNITS, 5) for unit in [*range(file, file + 5)] * 2],
            [200] * 2,
            7,
        ),
        (shuffled(range(MANY)) + shuffled(range(MANY)), [MANY, MANY], 64),
    ],
)
def test_passes_over_the_data_are_epochs(order: list[int], reads: list[int], late: int, tmp_path: Path) -> None:
    found = read(order, tmp_path)
    told = found.records.rereads
    assert told is not None
    assert (told.passes, told.doubt) == (len(reads), None)
    assert told.late_reads <= late
    assert all(abs(one - other) <= late for one, other in zip(reads_in(found), reads, strict=True))


@pytest.mark.parametrize(
    "order",
    [
        DICE.choices(range(UNITS), k=2 * UNITS),
        [*shuffled(range(UNITS)), *range(20), *shuffled(range(UNITS)), *range(20)],
        [*shuffled(range(UNITS)), *shuffled(range(UNITS)), *range(30)],
        [*range(3)] * 10,
        [0] * 10,
        [unit for _ in range(4) for unit in DICE.sample(range(UNITS), 50)],
    ],
)
def test_what_is_no_pass_is_not_counted(order: list[int], tmp_path: Path) -> None:
    found = read(order, tmp_path)
    told = found.records.rereads
    assert told is not None
    assert (told.passes, told.doubt is None) == (1, False)
    assert reads_in(found) == [len(order)]


def test_the_page_is_small_and_does_not_grow(tmp_path: Path) -> None:
    read(shuffled(range(5 * MANY)), tmp_path)
    (page,) = (tmp_path / "record").glob("rank-*")
    assert page.stat().st_size == PAGE.itemsize < 400_000
