"""Pipes, sockets, devices and directories named like logs and tables: one line at once, whichever command gets them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.darshan_logs import needs_library
from tests.test_plain_files import make_socket
from tierscope.output import durable, manifest

MAKE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}
COMMANDS = {
    "analyze": [],
    "characterise": [],
    "compare": ["{}"],
    "estimate": ["--improve", "GFS-META=2"],
    "explore": ["--goal", "10%"],
    "report": [],
    "calibrate": [],
    "validate": [],
}
OF_LOGS = ("analyze", "characterise", "compare")


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("command", OF_LOGS)
@pytest.mark.parametrize("suffix", ["darshan", "pfw", "pfw.gz"])
def test_a_log_that_is_none(
    suffix: str, command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"x.{suffix}"
    MAKE[kind](path)
    assert run(command, path, *(path for _ in COMMANDS[command])) == 2
    assert one_line(capsys).endswith(f"{path}: is {kind}, but logs are read more than once; save it to a file first")


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_is_none(command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    MAKE[kind](path)
    assert run(command, path, *(word.format(path) for word in COMMANDS[command])) == 2
    assert str(path) in one_line(capsys)


def test_a_table_is_not_written_to_a_pipe_that_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(durable, "PIPE_SECONDS", 0.1)
    (tmp_path / "x.csv").write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1\n")
    os.mkfifo(tmp_path / "pipe.csv")
    assert run("analyze", tmp_path / "x.csv", "--csv", tmp_path / "pipe.csv") == 2
    assert "pipe.csv: cannot be written: this pipe has no reader" in one_line(capsys)


@needs_library
def test_a_pipe_in_a_folder_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "x.darshan")
    assert run("characterise", tmp_path) == 2
    assert "x.darshan: is a pipe" in one_line(capsys)


def test_what_is_no_file_is_named_by_what_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert run("simulate", "demo", "--system", tmp_path / "pipe.yaml") == 2
    assert "is not a regular file; name the YAML file of a system" in one_line(capsys)
    assert run("convert", tmp_path / "pipe.yaml") == 2
    assert "is not a regular file; name a DLIO workload file" in one_line(capsys)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("training", "contains Tierscope's training, without a study or runs; name the --out of"),
        ("requirements", "contains Tierscope's requirements, without a study or runs; name the --out of"),
        ("result", "its study.yaml is missing; restore it"),
    ],
)
def test_a_missing_study_is_worded_by_kind(
    kind: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest.claim(str(tmp_path / "out"), kind)
    if kind == "training":
        manifest.put(str(tmp_path / "out"), {"training.json": b"{}"})
    for command in ("analyze", "calibrate"):
        assert run(command, tmp_path / "out") == 2
        assert words in one_line(capsys)
