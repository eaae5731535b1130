"""A command reads every run's file once: its checksum, its description and its table."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import pytest

from tests.cli.test_commands import run
from tests.in_memory import tmp_path_factory
from tierscope.output import seal

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

RESULTS = Path(__file__).parent.parent / "golden" / "results"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """How often each file of a run was summed up, and its table read."""
    seen: dict[str, Counter[str]] = {"sums": Counter(), "tables": Counter()}
    intact, read_parquet = seal.intact, pl.read_parquet

    def path_of(file: BinaryIO) -> str:
        return os.readlink(f"/proc/self/fd/{file.fileno()}")

    def counted_intact(file: BinaryIO) -> bool:
        seen["sums"][path_of(file)] += "/runs/" in path_of(file)
        return intact(file)

    def counted_read(file: BinaryIO, **more: Any) -> pl.DataFrame:
        seen["tables"][path_of(file)] += "/runs/" in path_of(file)
        return read_parquet(file, **more)

    monkeypatch.setattr(seal, "intact", counted_intact)
    monkeypatch.setattr(pl, "read_parquet", counted_read)
    return seen


@pytest.mark.parametrize(
    ("result", "arguments"),
    [
        ("measured", ["analyze", "OUT", "--json"]),
        ("measured", ["analyze", "OUT", "--metrics", "--json"]),
        ("measured", ["characterise", "OUT", "--json"]),
        ("measured", ["report", "OUT"]),
        ("measured", ["estimate", "OUT", "--json"]),
        ("simulated", ["estimate", "OUT", "--improve", "GFS-READ=50", "--with-model", "--json"]),
        ("simulated", ["analyze", "OUT", "--json"]),
        ("traced", ["report", "OUT"]),
        ("imported_dftracer", ["characterise", "OUT", "--json"]),
        ("trained", ["report", "OUT"]),
    ],
)
def test_every_run_is_read_once(
    tmp_path: Path, reads: dict[str, Counter[str]], result: str, arguments: list[str]
) -> None:
    out = shutil.copytree(RESULTS / result, tmp_path / "out")
    assert run(*(str(out) if word == "OUT" else word for word in arguments)) == 0
    runs = {str(path) for path in (out / "runs").iterdir()}
    for counts in reads.values():
        assert {path: count for path, count in counts.items() if count} == dict.fromkeys(runs, 1)
