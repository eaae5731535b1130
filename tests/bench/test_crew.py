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
from tierscope.errors import StoppedError, SuspendedError, UserError, VanishedDataError
from tierscope.loaders.choose import choose_loader

pytestmark = pytest.mark.whole


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


@pytest.mark.faults
def test_a_failing_rank_ends_the_crew_with_its_own_error(tmp_path: Path) -> None:
    task = run_task(tmp_path / "out", "epochs=50")
    crew = LocalCrew(2)
    stage(crew, task)
    pids = [who.pid for who in crew.call(WhoTask(), silent)]
    victim = next((tmp_path / "out" / "tiers" / "gfs").rglob("*.raw"))
    victim.unlink()
    with pytest.raises(VanishedDataError, match=rf"rank \d \(node \d\): .*{victim.name}: has disappeared"):
        crew.call(task, silent)
    assert not wait_until_dead(pids)


@pytest.mark.faults
def test_a_killed_rank_ends_the_run_promptly(tmp_path: Path) -> None:
    task = run_task(tmp_path / "out", "epochs=1000", "computation_time=50 ms")
    crew = LocalCrew(2)
    stage(crew, task)
    pids = [who.pid for who in crew.call(WhoTask(), silent)]
    threading.Timer(0.3, os.kill, (pids[1], signal.SIGKILL)).start()
    with pytest.raises(StoppedError, match="rank 1 was killed by SIGKILL"):
        crew.call(task, silent)
    assert not wait_until_dead(pids)


@pytest.mark.faults
def test_a_bug_in_a_rank_is_shown_with_its_traceback(tmp_path: Path) -> None:
    broken: Task = RunTask(tiny("sweep={}"), "threads", str(tmp_path), None, "sleep", str(tmp_path / "no" / "folder"))
    with LocalCrew(2) as crew, pytest.raises(Exception, match=r"FileNotFoundError(.|\n)*Traceback") as caught:
        crew.call(broken, silent)
    assert getattr(caught.value, "exit_code", None) == 1


@pytest.mark.faults
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


SLOW = ("epochs=2", "computation_time=50 ms", "batch_size=1")  # a second and more


@pytest.mark.faults
def test_a_stopped_rank_ends_the_run_at_the_limit_and_is_ended_itself(tmp_path: Path) -> None:
    task = run_task(tmp_path / "out", *SLOW)
    crew = LocalCrew(2, stall_seconds=0.5)
    stage(crew, task)
    pids = [who.pid for who in crew.call(WhoTask(), silent)]
    threading.Timer(0.2, os.kill, (pids[1], signal.SIGSTOP)).start()
    with pytest.raises(StoppedError, match=rf"rank 1 \(pid {pids[1]}\) was suspended for 0.5 s"):
        crew.call(task, silent)
    assert not wait_until_dead(pids)


@pytest.mark.faults
@pytest.mark.parametrize("who", ["rank 1", "the command itself"])
def test_a_run_that_was_suspended_has_no_result_and_the_crew_goes_on(tmp_path: Path, who: str, pair: LocalCrew) -> None:
    task = run_task(tmp_path / "out", *SLOW)
    stage(pair, task)
    pid = pair.pids[1] if who == "rank 1" else os.getpid()
    stop = "" if pid == os.getpid() else f"kill -STOP {pid}; sleep 0.05;"  # whoever stopped pytest would stop with it
    suspending = subprocess.Popen(["sh", "-c", f"sleep 0.3; {stop} kill -CONT {pid}"])
    with suspending, pytest.raises(SuspendedError, match=f"{who} was suspended"):
        pair.call(task, silent)
    assert len(pair.call(WhoTask(), silent)) == 2
    assert all(rank.epochs for rank in pair.call(run_task(tmp_path / "out", "epochs=1"), silent))


@pytest.mark.faults
def test_staging_may_be_suspended(tmp_path: Path, pair: LocalCrew) -> None:
    os.kill(pair.pids[0], signal.SIGCONT)
    stage(pair, run_task(tmp_path / "out"))


def test_ranks_of_a_template_are_like_fresh_ones() -> None:
    """Our own children, each a group by itself, with one thread, and no file but its own."""
    with LocalCrew(2) as alike, LocalCrew(1, {"TIERSCOPE_TEST": "yes"}) as fresh:
        expected = surroundings(fresh.pids[0])
        for pid in alike.pids:
            assert os.getpgid(pid) == pid
            assert surroundings(pid) == expected


def surroundings(pid: int) -> dict[str, object]:
    wanted = ("PPid", "Threads", "SigBlk", "SigIgn", "SigCgt", "Cpus_allowed", "NoNewPrivs")
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    opened = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd"))
    return {name: status[name] for name in wanted} | {"files": opened, "session": os.getsid(pid)}
