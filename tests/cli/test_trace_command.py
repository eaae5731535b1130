"""`tierscope trace` as a user types it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recording import any_library, recording
from tests.states import Op, lane_chunk, write_state
from tierscope.cli.main import _run
from tierscope.studies import builtin


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tier, and the records of one process that read from it."""
    monkeypatch.setattr(builtin, "_library", any_library)
    monkeypatch.setattr(builtin, "_cost_per_op_seconds", lambda: 1e-7)
    monkeypatch.setattr("tierscope.spec.traced._storage_mounts", list)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gfs").mkdir()
    write_state(tmp_path / "ready", "p", lane_chunk([Op("open", 0, 0.25), Op("read", 1000, 0.5)], tiers=1), tiers=1)
    return tmp_path


def trace(*arguments: object) -> int:
    return _run(["trace", *map(str, arguments)])


def spawned(*arguments: object) -> "subprocess.Popen[str]":
    """The real program, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tierscope.cli.main", "trace", *map(str, arguments)],
        env={**os.environ, "TIERSCOPE_LIBRARY": any_library()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_the_table_comes_after_the_commands_own_output(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--", *recording(here / "ready", "echo its own words")) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "its own words"
    assert "I/O time of the slowest process, of 1 (busy seconds)" in lines[1]
    assert "GFS-READ" in lines[3]
    assert lines[-1] == "Results: results/trace-sh · again: tierscope analyze results/trace-sh"


def test_json_is_pure_and_analyze_gives_the_same(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = recording(here / "ready", "echo its own words; exit 3")
    assert trace("--tier", "gfs=gfs", "--json", "--out", "out", "--", *command) == 3
    captured = capfd.readouterr()
    result = json.loads(captured.out)
    assert captured.err == "its own words\n"
    assert result["best"]["classes"] == {"GFS-READ": 0.5, "GFS-META": 0.25}
    assert {finding["kind"] for finding in result["findings"]} == {"failed_command", "no_marks"}
    assert _run(["analyze", "out", "--json", "--csv", "times.csv"]) == 0
    assert json.loads(capfd.readouterr().out) == result
    assert _run(["analyze", "times.csv", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["best"]["classes"] == result["best"]["classes"]


def test_the_basis_is_chosen_by_name(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--basis", "wall", "--", *recording(here / "ready")) == 0
    assert "(wall seconds)" in capfd.readouterr().out


def test_the_commands_options_are_its_own(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--quiet", "--", "echo", "--json", "--tier", "--", "-x") == 0
    assert capfd.readouterr().out.splitlines()[0] == "--json --tier -- -x"
    assert trace("--tier", "gfs=gfs", "echo", "--json", "--", "--help") == 0  # without -- too
    assert capfd.readouterr().out.splitlines()[0] == "--json -- --help"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            "--tier gfs=gfs",
            2,
            "no command is given; write it behind --, for example: tierscope trace --tier gfs=/lustre -- python train.py",
        ),
        (
            "-- true",
            2,
            "no tier is given; say where the data lies, nearest first: --tier lfs=/local --tier gfs=/lustre",
        ),
        (
            "--tier gfs=none -- true",
            2,
            "--tier gfs=none: none: no such file or directory; give one that exists",
        ),
        ("--tier gfs=gfs -- no-such-tool", 127, "no-such-tool: no such command; check its spelling, or give its path"),
        ("--tier gfs=gfs -- ./gfs", 126, "./gfs: is a directory"),
        ("--tier gfs=gfs --out= -- true", 2, "--out is empty; give a directory, or leave it out"),
        (
            "--tier gfs=gfs --with darshn -- true",
            2,
            "Invalid value for '--with': 'darshn' is not 'builtin'. (see --help)",
        ),
        (
            "--tier gfs=gfs --epochs marked -- true",
            2,
            "Invalid value for '--epochs': 'marked' is not one of 'marks', 'rereads'. (see --help)",
        ),
        (
            "--tier gfs=gfs --emulate gfs.bandwidth=fast -- true",
            2,
            "--emulate gfs.bandwidth=fast: gfs.bandwidth = fast; is not a number (expected bytes per second like 40 MiB/s)",
        ),
    ],
)
def test_mistakes_get_one_clear_line(
    here: Path, capfd: pytest.CaptureFixture[str], arguments: str, code: int, line: str
) -> None:
    assert trace(*shlex.split(arguments)) == code
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == f"tierscope: {line}\n"
    assert not (here / "results").exists()


def test_what_goes_wrong_after_the_command_does_not_hide_its_code(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil = ["sh", "-c", "rm -rf out/.scratch; exit $0"]
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", *spoil, 6) == 6
    line = f"tierscope: {here / 'out'}: holds no records; trace the command again, with another --out\n"
    assert capfd.readouterr().err == line
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", *spoil, 0) == 2
    assert capfd.readouterr().err == line


def test_a_command_that_cannot_be_started_leaves_no_records(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    odd = here / "odd"
    odd.write_text("no program\n")
    odd.chmod(0o755)
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", odd) == 126
    assert capfd.readouterr().err == f"tierscope: {odd}: cannot be run: Exec format error\n"
    assert trace("--tier", "gfs=gfs", "--out", "out", "--quiet", "--", "true") == 0


def test_nothing_recorded_is_explained(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--", "true") == 0
    assert "no operation on a file of a tier was recorded" in capfd.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_what_it_did_is_still_shown(here: Path, number: signal.Signals) -> None:
    command = recording(here / "ready", "touch ready-now && exec sleep 60")
    ours = spawned("--tier", "gfs=gfs", "--json", "--", *command)
    while not (here / "ready-now").exists():
        time.sleep(0.02)
    os.kill(ours.pid, number)
    out, err = ours.communicate(timeout=60)
    assert ours.returncode == 128 + number, err
    result = json.loads(out)
    assert result["best"]["io_seconds"] == 0.75
    assert "failed_command" in {finding["kind"] for finding in result["findings"]}


def test_a_killed_tierscope_loses_nothing(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = recording(here / "ready", "touch ready-now && exec sleep 1")
    ours = spawned("--tier", "gfs=gfs", "--out", "out", "--", *command)
    while not (here / "ready-now").exists():
        time.sleep(0.02)
    ours.kill()
    ours.communicate()
    assert _run(["analyze", "out", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["best"]["io_seconds"] == 0.75


def test_standard_input_is_the_commands(here: Path) -> None:
    ours = subprocess.run(
        [sys.executable, "-m", "tierscope.cli.main", "trace", "--tier", "gfs=gfs", "--", "cat"],
        env={**os.environ, "TIERSCOPE_LIBRARY": any_library()},
        input="typed\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ours.stdout.startswith("typed\n")
