"""A rank that waits for storage which does not answer: seen, named, and nothing else is."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny import tiny
from tierscope.bench.crew import LocalCrew
from tierscope.bench.run import RunTask
from tierscope.bench.stall import look, watched
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, WhoTask
from tierscope.errors import StoppedError


@pytest.fixture
def silent_file(tmp_path: Path) -> Iterator[Path]:
    """A file of a tier whose reader waits until somebody writes: a pipe with a name."""
    folder = tmp_path / "out" / "tiers" / "gfs"
    folder.mkdir(parents=True)
    path = folder / "000000003.raw"
    os.mkfifo(path)
    yield path
    path.unlink()


def waiting(path: Path) -> tuple[threading.Thread, int]:
    fd = os.open(path, os.O_RDWR)
    thread = threading.Thread(target=os.read, args=(fd, 1), daemon=True)
    thread.start()
    return thread, fd


def run_task(tmp_path: Path) -> RunTask:
    return RunTask(tiny("sweep={}"), "threads", str(tmp_path / "out"), None, "none", None)


@pytest.mark.faults
def test_what_does_not_answer_is_told_once_with_its_name(tmp_path: Path, silent_file: Path) -> None:
    told: list[str] = []
    thread, fd = waiting(silent_file)
    with watched(run_task(tmp_path), 1, 0.2, told.append):
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # for a second time
    os.write(fd, b"x")
    thread.join()
    os.close(fd)
    (line,) = told
    assert line.startswith(f"rank 1 (node 1): no progress for 0.2 s: it waits for {silent_file} on tier gfs, which")
    assert "rerun the same command" in line


@pytest.mark.faults
def test_an_answer_now_and_then_is_progress(tmp_path: Path, silent_file: Path) -> None:
    told: list[str] = []
    fd = os.open(silent_file, os.O_RDWR)
    thread = threading.Thread(target=lambda: [os.read(fd, 1) for _ in range(6)], daemon=True)
    thread.start()
    with watched(run_task(tmp_path), 0, 0.5, told.append):
        for _ in range(6):
            time.sleep(0.12)
            os.write(fd, b"x")
    thread.join()
    os.close(fd)
    assert told == []


@pytest.mark.faults
def test_an_open_that_waits_is_seen_too(tmp_path: Path, silent_file: Path) -> None:
    thread = threading.Thread(target=lambda: os.close(os.open(silent_file, os.O_RDONLY)), daemon=True)
    thread.start()
    tiers = {"gfs": str(silent_file.parent)}
    deadline = time.monotonic() + 10
    while not (seen := look({}, tiers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.close(os.open(silent_file, os.O_WRONLY))
    thread.join()
    assert [wait.path for wait in seen.values()] == [str(silent_file)]


@pytest.mark.faults
@pytest.mark.parametrize("limit", [None, 0.1])
def test_waiting_for_anything_else_is_not_told(limit: float | None, tmp_path: Path, silent_file: Path) -> None:
    told: list[str] = []
    other = tmp_path / "pipe"
    os.mkfifo(other)
    thread, fd = waiting(other)
    with watched(run_task(tmp_path), 0, limit, told.append), watched(WhoTask(), 0, limit, told.append):
        time.sleep(0.3 if limit else 0.05)
    os.write(fd, b"x")
    thread.join()
    os.close(fd)
    assert told == []


@pytest.mark.faults
def test_a_crew_whose_rank_hangs_stops_with_its_line(tmp_path: Path) -> None:
    """The file is replaced by a pipe when it has been staged: its reader waits for ever."""
    task = run_task(tmp_path)
    with LocalCrew(2, stall_seconds=0.5) as crew:
        for step in (ClaimTask, SurveyTask, StageTask):
            crew.call(step(task.study, task.out), lambda _: None)
        victim = next(path for path in Path(task.out).rglob("*.raw"))
        victim.unlink()
        os.mkfifo(victim)
        start = time.monotonic()
        with pytest.raises(StoppedError, match=r"no progress for 0\.5 s.*\.raw on tier (gfs|lfs)"):
            crew.call(task, lambda _: None)
    assert time.monotonic() - start < 20
