"""A run whose description is damaged, through the command line: one line with file and field, exit code 2, nothing else touched."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.test_commands import run
from tests.in_memory import tmp_path_factory
from tierscope.output.store import read_parquet, write_parquet
from tierscope.trace.decode import decode_description, encode
from tierscope.trace.trace import SCHEMA_VERSION

__all__ = ["tmp_path_factory"]

RESULTS = Path(__file__).parent.parent / "golden" / "results"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A result of six runs, all of this schema version."""
    folder = shutil.copytree(RESULTS / "measured", tmp_path / "out")
    for path in (folder / "runs").iterdir():
        about, table = read_parquet(str(path))
        write_parquet(str(path), table, encode(decode_description(about, "mend it")))
    return folder


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


CHANGES: dict[str, tuple[Change, str]] = {
    "lacks a field": (lambda about: about.pop("study"), "its description is damaged: study is missing"),
    "lacks a nested field": (
        lambda about: about["tiers"][1].pop("name"),
        "its description is damaged: tiers[1].name is missing",
    ),
    "another type": (
        lambda about: about["own_cost"].update(recorder_seconds_per_op="fast"),
        "its description is damaged: own_cost.recorder_seconds_per_op must be float | null, is str",
    ),
    "an unknown kind": (lambda about: about.update(kind="wished"), "its description is damaged: kind = 'wished'"),
    "a later version": (
        lambda about: about.update(schema_version=SCHEMA_VERSION + 1),
        f"schema version {SCHEMA_VERSION + 1} is newer than this Tierscope supports ({SCHEMA_VERSION}); update Tierscope",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize(
    "command",
    [
        *(("analyze",), ("analyze", "--metrics"), ("characterise",), ("report",)),
        *(
            ("estimate", "--improve", "GFS-META=50"),
            ("explore", "--goal", "io=1ms", "--vary", "GFS-META=0:50:10"),
            ("compare", str(RESULTS / "measured")),
        ),
    ],
)
def test_one_line_names_the_file_and_the_field(
    out: Path, capsys: pytest.CaptureFixture[str], name: str, command: tuple[str, ...]
) -> None:
    change, reason = CHANGES[name]
    path = out / "runs" / "0001-r2.parquet"
    about, table = read_parquet(str(path))
    change(about)
    write_parquet(str(path), table, about)
    before = contents(out)
    assert run(command[0], out, *command[1:]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: {reason}" in line
    assert contents(out) == before


def test_the_run_can_be_moved_away(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the line says: what is left is analysed."""
    path = out / "runs" / "0001-r2.parquet"
    about, table = read_parquet(str(path))
    write_parquet(str(path), table, {**about, "kind": "wished"})
    assert run("analyze", out) == 2
    assert "move it away and rerun the study: only this run is repeated" in capsys.readouterr().err
    path.rename(out.parent / "aside.parquet")
    assert run("analyze", out) == 0


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_rates_are_not_fitted_to_reads_that_took_no_time(
    out: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for path in (out / "runs").iterdir():
        about, table = read_parquet(str(path))
        nothing = pl.when(pl.col("busy_seconds").is_not_null()).then(0.0).alias("busy_seconds")
        write_parquet(str(path), table.with_columns(nothing), about)
    assert run(command, out) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "its I/O took no time in epoch" in line
