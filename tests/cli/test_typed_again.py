"""An error that says what to type repeats all that was typed, and what it says works."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.dftracer_lines import START, began, call, named, write
from tests.imports.test_profiler_trace import span, written

DATA = "/gfs/data/b.bin"


@pytest.fixture
def log(tmp_path: Path) -> str:
    folder = tmp_path / "logs"
    folder.mkdir()
    return write(folder / "t.pfw", [*began(), *named(DATA), call("pread", DATA, 1000, 1000, ret=4096)])


def suggested(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return shlex.split(one_line(capsys).partition("add the tiers: tierscope ")[2])


def test_a_timeline_is_kept(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = written(tmp_path / "torch.json", [span("aten::mm", 0, 4000)], baseTimeNanoseconds=START * 1000)
    typed = ["characterise", log, "--timeline", trace, "--json"]
    assert run(*typed) == 2
    again = suggested(capsys)
    assert again == [*map(str, typed), "--tier", "gfs=/gfs/data"]
    assert run(*again) == 0
    assert json.loads(capsys.readouterr().out)["merged"]["by_rank"]


@pytest.mark.parametrize("options", [["--out", "kept here", "--json"], ["--all", "--classes", "read"], []])
def test_options_of_analyze_are_kept(
    log: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("analyze", *options, log) == 2
    again = suggested(capsys)
    assert again == ["analyze", log, *options, "--tier", "gfs=/gfs/data"]
    assert run(*again) == 0


def test_options_of_compare_are_kept(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", log, log, "--classes", "read") == 2
    assert suggested(capsys) == ["compare", log, log, "--classes", "read", "--tier", "gfs=/gfs/data"]


def test_many_logs_are_a_pattern_for_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*began(), *named(DATA), call("pread", DATA, 1000, 1000, ret=4096)]
    logs = [write(tmp_path / f"t{number}.pfw", lines) for number in range(4)]
    for command in ("analyze", "characterise"):
        assert run(command, *logs) == 2
        assert f"tierscope {command} {tmp_path}/*.pfw --tier" in one_line(capsys)


def test_a_directory_of_logs_is_analyzed(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(log).parent)
    assert run("analyze", folder, "--tier", "gfs=/gfs", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    assert run("analyze", log, "--tier", "gfs=/gfs", "--json") == 0
    assert known == json.loads(capsys.readouterr().out)
    assert run("analyze", folder) == 2
    assert suggested(capsys) == ["analyze", folder, "--tier", "gfs=/gfs/data"]
