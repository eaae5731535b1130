"""Local ranks: started, in step, and never left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny
from tierscope.bench.crew import LocalCrew
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, Task, Who, WhoTask
from tierscope.errors import StoppedError, UserError, VanishedDataError
from tierscope.loaders.choose import choose_loader


def silent(_amount: int) -> None:
    pass


def run_task(out: Path, *settings: str) -> RunTask:
    study = tiny("sweep={}", *settings)
    return RunTask(study, choose_loader(study), str(out), None, "sleep", None)


def stage(crew: LocalCrew, task: RunTask) -> None:
    crew.call(ClaimTask(task.study, task.out), silent)
    crew.call(SurveyTask(task.study, task.out), silent)
    crew.call(StageTask(task.study, task.out), silent)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_dead(pids: list[int], seconds: float = 20) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


@pytest.fixture(scope="module")
def pair() -> Iterator[LocalCrew]:
    """For tests that ask what ranks do, not how they start and end."""
    with LocalCrew(2) as crew:
        yield crew


def test_all_ranks_answer_in_order_and_leave() -> None:
    with LocalCrew(3) as crew:
        who: list[Who] = crew.call(WhoTask(), silent)
        assert [rank.rank for rank in who] == [0, 1, 2]
        assert len({rank.pid for rank in who}) == 3
    assert not wait_until_dead([rank.pid for rank in who])


def test_ranks_wait_for_one_another_after_every_step_if_asked(tmp_path: Path, pair: LocalCrew) -> None:
    """The one that computes less waits for the other: together they take what the slower takes, step by step."""
    varying = ("computation_time=4 ms", "computation_time_distribution=exponential", "batch_size=2", "epochs=1")
    waits = {}
    for sync in ("epoch", "step"):
        task = run_task(tmp_path / "out", *varying, f"sync={sync}")
        stage(pair, task)
        epochs = [rank.epochs[0] for rank in pair.call(task, silent)]
        waits[sync] = sum(epoch.sync_seconds for epoch in epochs)
        slower = np.maximum(*(epoch.steps[:, 2] for epoch in epochs)).sum()
        if sync == "step":
            assert min(epoch.seconds for epoch in epochs) >= slower
    assert waits["epoch"] == 0
    assert waits["step"] > 0.005


def test_a_run_reads_every_sample_once_per_epoch(tmp_path: Path, pair: LocalCrew) -> None:
    task = run_task(tmp_path / "out")
    amounts: list[int] = []
    stage(pair, task)
    ranks = pair.call(task, amounts.append)
    assert [[epoch.samples for epoch in rank.epochs] for rank in ranks] == [[12, 12], [12, 12]]
    assert sum(amounts) == 48


def test_a_failing_rank_ends_the_crew_with_its_own_error(tmp_path: Path) -> None:
    task = run_task(tmp_path / "out", "epochs=50")
    crew = LocalCrew(2)
    stage(crew, task)
    pids = [who.pid for who in crew.call(WhoTask(), silent)]
    victim = next((tmp_path / "out" / "tiers" / "gfs").rglob("*.raw"))
    victim.unlink()
    with pytest.raises(VanishedDataError, match=rf"rank \d \(node \d\): .*{victim.name}: vanished"):
        crew.call(task, silent)
    assert not wait_until_dead(pids)


def test_a_killed_rank_ends_the_run_promptly(tmp_path: Path) -> None:
    task = run_task(tmp_path / "out", "epochs=1000", "computation_time=50 ms")
    crew = LocalCrew(2)
    stage(crew, task)
    pids = [who.pid for who in crew.call(WhoTask(), silent)]
    threading.Timer(0.3, os.kill, (pids[1], signal.SIGKILL)).start()
    with pytest.raises(StoppedError, match="rank 1 was killed by SIGKILL"):
        crew.call(task, silent)
    assert not wait_until_dead(pids)


def test_a_bug_in_a_rank_is_shown_with_its_traceback(tmp_path: Path) -> None:
    broken: Task = RunTask(tiny("sweep={}"), "threads", str(tmp_path), None, "sleep", str(tmp_path / "no" / "folder"))
    with LocalCrew(2) as crew, pytest.raises(Exception, match=r"FileNotFoundError(.|\n)*Traceback") as caught:
        crew.call(broken, silent)
    assert getattr(caught.value, "exit_code", None) == 1


def test_ranks_die_with_their_director() -> None:
    program = (
        "import sys, time\n"
        "from tierscope.bench.crew import LocalCrew\n"
        "from tierscope.bench.tasks import WhoTask\n"
        "crew = LocalCrew(2)\n"
        "print(*(who.pid for who in crew.call(WhoTask(), lambda _: None)), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as director:
        assert director.stdout is not None
        pids = [int(word) for word in director.stdout.readline().split()]
        assert len(pids) == 2
        director.kill()
    assert not wait_until_dead(pids)


def test_too_many_ranks_for_one_machine_are_refused_before_any_starts() -> None:
    with pytest.raises(UserError, match=r"3072 ranks .*mpirun"):
        LocalCrew(3072)
