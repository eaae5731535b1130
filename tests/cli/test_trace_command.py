"""`tierscope trace` as a user types it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.recorded_programs import any_library, recording
from tests.states import Op, lane_chunk, write_state
from tierscope.cli.main import _run
from tierscope.recording import builtin
from tierscope.recording.command import launch
from tierscope.trace.description import OwnCost


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tier, and the records of one process that read from it."""
    monkeypatch.setattr(builtin, "_library", any_library)
    monkeypatch.setattr(builtin, "_own_cost", lambda: OwnCost(recorder_seconds_per_op=1e-7))
    monkeypatch.setattr("tierscope.spec.traced._storage_mounts", list)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gfs").mkdir()
    write_state(tmp_path / "ready", "p", lane_chunk([Op("open", 0, 0.25), Op("read", 1000, 0.5)], tiers=1), tiers=1)
    return tmp_path


def trace(*arguments: object) -> int:
    return _run(["trace", *map(str, arguments)])


def spawned(*arguments: object, **changes: Any) -> "subprocess.Popen[str]":
    """The real program, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tierscope.cli.main", "trace", *map(str, arguments)],
        env={**os.environ, "TIERSCOPE_LIBRARY": any_library()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **changes,
    )


def test_the_table_comes_after_the_commands_own_output(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--", *recording(here / "ready", "echo its own words")) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "its own words"
    assert lines[1].rstrip().endswith(": I/O time (wall seconds)")
    assert "GFS-READ" in lines[3]
    assert "I/O: 0.750 s in the whole run (n=1), 67 % of it GFS-READ; 1 rank, 1 process." in lines
    assert "All ranks and epochs: 1 open, 1 read of 1000 B, 0 writes." in lines
    assert lines[-1] == "Results: results/trace-sh. To show them again: tierscope analyze results/trace-sh"


def test_json_is_pure_and_analyze_gives_the_same(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = recording(here / "ready", "echo its own words; exit 3")
    assert trace("--tier", "gfs=gfs", "--json", "--out", "out", "--", *command) == 3
    captured = capfd.readouterr()
    result = json.loads(captured.out)
    assert captured.err == "its own words\n"
    assert result["best"]["classes"] == {"GFS-READ": 0.5, "GFS-META": 0.25}
    (point,) = result["points"]
    assert (point["ops"], point["bytes"]) == ({"GFS-READ": 1, "GFS-META": 1}, {"GFS-READ": 1000, "GFS-META": 0})
    assert (point["compute_seconds"], result["processes"]) == (None, 1)
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
            "no command; add it after --, e.g. tierscope trace --tier gfs=/lustre -- python train.py",
        ),
        (
            "-- true",
            2,
            "--tier is missing; name the paths of the data, nearest tier first: --tier lfs=/local --tier gfs=/lustre",
        ),
        (
            "--tier gfs=none -- true",
            2,
            "--tier gfs=none: none: no such file or directory; name an existing one",
        ),
        ("--tier gfs=gfs -- no-such-tool", 127, "no-such-tool: no such command; check the spelling, or use its path"),
        ("--tier gfs=gfs -- ./gfs", 126, "./gfs: is a directory"),
        ("--tier gfs=gfs --out= -- true", 2, "--out is empty; name a directory, or remove --out"),
        (
            "--tier gfs=gfs --with darshn -- true",
            2,
            "Invalid value for '--with': 'darshn' is not one of 'builtin', 'darshan', 'dftracer'. (see --help)",
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
    line = f"tierscope: {here / 'out'}: contains no records; trace the command again with another --out\n"
    assert capfd.readouterr().err == line
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", *spoil, 0) == 2
    assert capfd.readouterr().err == line


def test_a_command_that_cannot_be_started_leaves_no_records(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    odd = here / "odd"
    odd.write_text("no program\n")
    odd.chmod(0o755)
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", odd) == 126
    assert capfd.readouterr().err == (
        f"tierscope: {odd}: has no '#!' line; add one (#!/bin/sh), or name the interpreter: sh FILE\n"
    )
    assert trace("--tier", "gfs=gfs", "--out", "out", "--quiet", "--", "true") == 0


def test_a_command_that_cannot_be_started_leaves_no_directory(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    odd = here / "odd"
    odd.write_text("#!/no/such/python -u\n")
    odd.chmod(0o755)
    for _ in range(2):
        assert trace("--tier", "gfs=gfs", "--", odd) == 126
        assert capfd.readouterr().err == (
            f"tierscope: {odd}: its interpreter /no/such/python is missing; install it, or correct the '#!' line\n"
        )
    assert not (here / "results").exists()
    (here / "results").mkdir()
    assert trace("--tier", "gfs=gfs", "--", odd) == 126
    assert list((here / "results").iterdir()) == []  # that was somebody's own


def test_without_a_place_for_results_another_out_is_asked_for(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "results").write_text("a file")
    assert trace("--tier", "gfs=gfs", "--", "true") == 2
    assert capfd.readouterr().err == (
        f"tierscope: {here / 'results' / 'trace-true'}: cannot be created: Not a directory; choose a writable --out\n"
    )


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_several_tierscopes_of_a_launcher_are_refused(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "2")
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", "touch", "ran") == 2
    assert capfd.readouterr().err == (
        f"tierscope: {name} is 2: a launcher started several copies of tierscope; put tierscope in front: tierscope trace … -- mpirun …\n"
    )
    assert not (here / "ran").exists()
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURM_NTASKS", "4")  # a plain batch script
    assert trace("--tier", "gfs=gfs", "--out", "out", "--quiet", "--", "true") == 0


def test_what_is_emulated_is_said_as_it_was_understood(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = ("--emulate", "gfs.bandwidth=20", "--emulate", "gfs.latency=5", "--emulate", "gfs.servers=2")
    assert trace("--tier", "gfs=gfs", *settings, "--", "true") == 0
    assert capfd.readouterr().err == "emulating gfs: bandwidth 20 B/s, servers 2, latency 5 s\n"
    assert trace("--tier", "gfs=gfs", *settings, "--quiet", "--", "true") == 0
    assert capfd.readouterr().err == ""


def test_the_way_to_see_it_again_can_be_pasted(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--out", "o u:t ü", "--", "true") == 0
    assert (
        capfd.readouterr().out.splitlines()[-1] == "Results: 'o u:t ü'. To show them again: tierscope analyze 'o u:t ü'"
    )


# Imports once what every one of the commands needs, then is each of them in turn: standard output, standard error, arguments.
FORKED = """
import json, os, sys
import tierscope.cli.trace, tierscope.commands.analyze, tierscope.recording.traced
from tierscope.cli.main import main

for number, (output, error, arguments) in enumerate(json.loads(sys.argv[1])):
    if os.fork() == 0:
        os.dup2(output, 1)
        os.dup2(os.open(error, os.O_WRONLY | os.O_CREAT), 2)
        main(arguments)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
UNTAKEN = [(code, shape, full) for code in (0, 7) for shape in ("", "--json") for full in (False, True)]


@pytest.fixture(scope="module")
def untaken(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str, bool], tuple[int, str]]:
    """Exit code and standard error of commands that write into a pipe without a reader, or to a disk without room."""
    folder = tmp_path_factory.mktemp("untaken")
    (folder / "gfs").mkdir()
    reader, writer = os.pipe()
    os.close(reader)
    room = os.open("/dev/full", os.O_WRONLY)
    commands = [
        (
            room if full else writer,
            str(folder / f"error-{number}"),
            ["trace", "--tier", "gfs=gfs", *([shape] if shape else []), "--", "sh", "-c", f"exit {code}"],
        )
        for number, (code, shape, full) in enumerate(UNTAKEN)
    ]
    done = subprocess.run(
        [sys.executable, "-c", FORKED, json.dumps(commands)],
        env={**os.environ, "TIERSCOPE_LIBRARY": any_library()},
        cwd=folder,
        pass_fds=(writer, room),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for descriptor in (writer, room):
        os.close(descriptor)
    codes = map(int, done.stdout.split())
    return {
        case: (code, Path(error).read_text())
        for case, code, (_, error, _) in zip(UNTAKEN, codes, commands, strict=True)
    }


@pytest.mark.faults
@pytest.mark.parametrize(("code", "shape", "full"), UNTAKEN)
def test_output_that_nobody_takes_leaves_the_commands_code(
    untaken: dict[tuple[int, str, bool], tuple[int, str]], code: int, shape: str, full: bool
) -> None:
    """A pipe without a reader, or a disk without room."""
    ended, said = untaken[code, shape, full]
    assert ended == code
    room = "tierscope: cannot write the output: No space left on device; results on disk are kept\n"
    assert said == (room if full else "")


def test_nothing_recorded_is_explained(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert trace("--tier", "gfs=gfs", "--", "true") == 0
    assert "no operation on any tier was recorded" in capfd.readouterr().out


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
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
    (finding,) = (finding for finding in result["findings"] if finding["kind"] == "ended_command")
    assert finding["evidence"] == {"signal": number.name, "code": 128 + number}


def test_ctrl_c_just_after_the_end_says_how_to_go_on(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits until signals are let through again."""

    def launch_and_stop(*arguments: Any) -> int:
        code = launch(*arguments)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return code

    monkeypatch.setattr("tierscope.recording.traced.launch", launch_and_stop)
    assert trace("--tier", "gfs=gfs", "--out", "out", "--", *recording(here / "ready")) == 3
    line = f"tierscope: stopped; 'tierscope analyze {here / 'out'}' shows what was recorded\n"
    assert capfd.readouterr().err == line
    assert _run(["analyze", "out", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["best"]["io_seconds"] == 0.75


def test_ctrl_c_before_the_start_says_that_nothing_ran(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_program: str) -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    monkeypatch.setattr(builtin, "why_unseen", stop)
    assert trace("--tier", "gfs=gfs", "--", "touch", "ran") == 3
    assert capfd.readouterr().err == "tierscope: stopped before the command was started\n"
    assert not (here / "ran").exists()


@pytest.mark.faults
def test_a_killed_tierscope_loses_nothing(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While the command lives, its records stay: it goes on writing to them."""
    command = recording(here / "ready", "echo $$ > pid && mv pid ready-now && read _")
    ours = spawned("--tier", "gfs=gfs", "--out", "out", "--", *command, stdin=subprocess.PIPE)
    while not (here / "ready-now").exists():
        time.sleep(0.02)
    assert _run(["analyze", "out", "--json"]) == 2
    assert capfd.readouterr().err == (
        "tierscope: out: the command is still being traced, or another analyze is collecting it; wait for it to finish\n"
    )
    ours.kill()
    ours.wait()
    pid = int((here / "ready-now").read_text())
    for _ in range(2):
        assert _run(["analyze", "out", "--json"]) == 0
        result = json.loads(capfd.readouterr().out)
        assert result["best"]["io_seconds"] == 0.75
        assert result["findings"][0]["kind"] == "running"
        assert result["findings"][0]["evidence"]["pids"] == [pid]
        assert (here / "out" / ".scratch" / "record" / "p.state").exists()
    ours.communicate()  # ends its input; its output ends with it
    while _alive(pid):
        time.sleep(0.02)
    assert _run(["analyze", "out", "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["best"]["io_seconds"] == 0.75
    assert "running" not in {finding["kind"] for finding in result["findings"]}
    assert not (here / "out" / ".scratch").exists()


def _alive(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return False


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
