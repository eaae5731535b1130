"""Who was suspended: with a clock of our own, with real signals, and with real control groups where there are any."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.test_architecture import SOURCE
from tests.tiny import tiny
from tierscope.bench import liveness
from tierscope.bench.liveness import (
    MOST_ATTEMPTS,
    RankWatch,
    Stops,
    noting_stops,
    refuse_suspended,
    suspended_now,
    suspended_process,
    suspended_too_long,
    until_undisturbed,
)
from tierscope.errors import StoppedError, SuspendedError
from tierscope.measure.crews import Crews


class Bench:
    """A director's clock, and the processes that are suspended in it."""

    def __init__(self) -> None:
        self.now, self.waited, self.looked = 0.0, 0.0, 0
        self.suspended: set[int] = set()

    def watch(self, limit: float | None, ranks: int = 3) -> RankWatch:
        pids = [100 + rank for rank in range(ranks)]
        return RankWatch(
            pids, limit, "rank", "the same command goes on", lambda: self.now, self.is_suspended, lambda: self.waited
        )

    def is_suspended(self, pid: int) -> bool:
        self.looked += 1
        return pid in self.suspended

    def sleep(self, seconds: float) -> Callable[[float], float]:
        """Somebody who waits, and is back after so many seconds, whatever was asked for."""

        def ready(_most: float) -> float:
            self.now += seconds
            return seconds

        return ready


def test_a_rank_that_stays_suspended_is_named_at_the_limit() -> None:
    bench = Bench()
    watch = bench.watch(limit=45)
    bench.suspended = {101}

    def wait() -> None:
        for _ in range(100):
            watch.wait(bench.sleep(watch.tick))

    with pytest.raises(StoppedError, match=r"rank 1 \(pid 101\) was suspended for 45 s .*the same command goes on"):
        wait()
    assert 44 <= bench.now <= 51


def test_without_a_limit_it_may_stay_suspended() -> None:
    bench = Bench()
    watch = bench.watch(limit=None)
    bench.suspended = {101}
    for _ in range(1000):
        watch.wait(bench.sleep(watch.tick))
    assert watch.suspended == {1}


def test_one_that_goes_on_before_the_limit_is_only_remembered() -> None:
    bench = Bench()
    watch = bench.watch(limit=10)
    for seconds in range(30):
        bench.suspended = {101} if seconds % 9 else set()
        watch.wait(bench.sleep(1))
    assert watch.suspended == {1}
    assert not watch.frozen


def test_a_director_that_was_stopped_itself_has_not_watched() -> None:
    """Everything was suspended for an hour: at the first look some ranks may still be, and that is no hour."""
    bench = Bench()
    watch = bench.watch(limit=45)
    bench.suspended = {100, 101, 102}
    watch.wait(bench.sleep(3600))
    bench.suspended = set()
    for _ in range(100):
        watch.wait(bench.sleep(1))


def test_ranks_that_speak_are_not_looked_at() -> None:
    bench = Bench()
    watch = bench.watch(limit=10)
    for _ in range(20):
        watch.wait(bench.sleep(1))
        for rank in range(3):
            watch.heard(rank)
    assert bench.looked <= 3


@pytest.mark.parametrize(("late", "waited", "frozen"), [(0.3, 0.0, False), (2.0, 0.0, True), (2.0, 1.8, False)])
def test_a_director_that_was_frozen_knows_it_from_its_waits(late: float, waited: float, frozen: bool) -> None:
    """But not one that only had no processor for as long."""
    bench = Bench()
    watch = bench.watch(limit=45)
    watch.wait(bench.sleep(watch.tick))
    bench.waited += waited
    watch.wait(bench.sleep(watch.tick + late))
    assert watch.frozen == frozen


def test_a_machine_that_slept_is_noticed_once() -> None:
    asleep = [10.0]
    stops = Stops(lambda: asleep[0])
    assert not stops.take()
    asleep[0] += 0.005
    assert not stops.take()
    asleep[0] += 3
    assert stops.take()
    assert not stops.take()


def test_a_stop_is_noticed_however_short_and_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGCONT)
    with noting_stops() as stops:
        assert not stops.take()
        os.kill(os.getpid(), signal.SIGCONT)
        assert stops.take()
        assert not stops.take()
    assert signal.getsignal(signal.SIGCONT) == before


def test_another_thread_than_the_main_one_notices_nothing_and_does_no_harm() -> None:
    found: list[bool] = []

    def ask() -> None:
        with noting_stops() as stops:
            found.append(stops.take())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False]


def test_attempts_that_were_suspended_are_told_and_repeated() -> None:
    lines: list[str] = []
    left = [SuspendedError("rank 1 was suspended"), SuspendedError("rank 2 was suspended")]

    def measure() -> str:
        if left:
            raise left.pop(0)
        return "measured"

    assert until_undisturbed("point 3", measure, lines.append) == "measured"
    assert lines == [
        "point 3: rank 1 was suspended; discarded and repeated",
        "point 3: rank 2 was suspended; discarded and repeated",
    ]


def test_after_some_attempts_it_is_enough() -> None:
    tried: list[int] = []

    def measure() -> None:
        tried.append(1)
        refuse_suspended([2, 5, 7], director=False)

    expected = r"point 3: rank 2 and 2 more were suspended in each of 3 attempts; find out what suspends it, then rerun the same command"
    with pytest.raises(StoppedError, match=expected) as caught:
        until_undisturbed("point 3", measure, lambda _: None)
    assert len(tried) == MOST_ATTEMPTS
    assert not isinstance(caught.value, SuspendedError)


def test_whoever_was_suspended_is_named() -> None:
    refuse_suspended([], director=False)
    with pytest.raises(SuspendedError, match="rank 3 was suspended"):
        refuse_suspended([3], director=True)
    with pytest.raises(SuspendedError, match="the command itself was suspended"):
        refuse_suspended([], director=True)


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def becomes(expected: bool, pid: int) -> bool:
    deadline = time.monotonic() + 10
    while suspended_now(pid) != expected and time.monotonic() < deadline:
        time.sleep(0.005)
    return suspended_now(pid) == expected


def test_a_worker_that_is_stopped_suspends_its_rank(tmp_path: Path) -> None:
    program = f"import subprocess; worker = subprocess.Popen(['sleep', '60']); open({str(tmp_path / 'pid')!r}, 'x').write(str(worker.pid)); worker.wait()"
    with subprocess.Popen([sys.executable, "-c", program], process_group=0) as rank:
        try:
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                time.sleep(0.005)
            worker = int((tmp_path / "pid").read_text())
            assert suspended_process(rank.pid) is None
            os.kill(worker, signal.SIGSTOP)
            assert becomes(True, rank.pid)
            assert suspended_process(rank.pid) == worker
            assert str(suspended_too_long("rank 1", rank.pid, 45)).startswith(
                f"a worker process (pid {worker}) of rank 1 was suspended for 45 s"
            )
        finally:
            os.killpg(rank.pid, signal.SIGKILL)


def test_a_stopped_process_is_suspended_and_one_that_is_gone_is_not(sleeper: int) -> None:
    assert becomes(False, sleeper)
    os.kill(sleeper, signal.SIGSTOP)
    assert becomes(True, sleeper)
    os.kill(sleeper, signal.SIGCONT)
    assert becomes(False, sleeper)
    assert not suspended_now(2**22 + 1)


@pytest.mark.parametrize(
    ("file", "text", "frozen"),
    [
        ("freezer/job/freezer.state", "FROZEN\n", True),
        ("freezer/job/freezer.state", "THAWED\n", False),
        ("job/cgroup.events", "populated 1\nfrozen 1\n", True),
        ("job/cgroup.events", "populated 1\nfrozen 0\n", False),
        ("unified/job/cgroup.events", "populated 1\nfrozen 1\n", True),
    ],
)
def test_a_process_in_a_frozen_control_group_is_suspended(
    file: str, text: str, frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    monkeypatch.setattr(liveness, "_CGROUPS", str(tmp_path))
    monkeypatch.setattr(liveness, "_groups", lambda _pid: [("freezer", "/job"), ("", "/job"), ("memory", "/other")])
    assert suspended_now(os.getpid()) == frozen


def test_ranks_of_every_study_have_its_stall_limit() -> None:
    """Also those that are started for one run, for a recorder's environment: they are made in one place."""
    made = [
        path.name for path in SOURCE.rglob("*.py") if "LocalCrew(" in path.read_text().replace("class LocalCrew(", "")
    ]
    assert made == ["crews.py"]
    crews = Crews(stall_seconds=7.0)
    with crews.apart(tiny(), {"TS_TEST": "1"}) as crew:
        assert crew._stall_seconds == 7.0
