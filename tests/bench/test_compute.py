"""Emulated compute lasts as long as asked, and leaves the interpreter to the reading threads."""

import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable

import pytest

from tierscope.bench.compute import compute_mode, make_compute, step_seconds
from tierscope.loaders import busy
from tierscope.loaders.busy import Busy
from tierscope.spec.study import DISTRIBUTIONS, Train


@pytest.mark.parametrize("mode", ["busy", "sleep"])
@pytest.mark.parametrize("seconds", [0.0001, 0.003, 0.02])
def test_lasts_at_least_as_long_as_asked(mode: str, seconds: float) -> None:
    work = make_compute(mode)
    start = time.monotonic()
    work(seconds)
    assert time.monotonic() - start >= seconds


class FakeCore:
    """A clock that moves only with checksumming, one nanosecond per four bytes."""

    def __init__(self) -> None:
        self.now = 0
        self.sizes: list[int] = []

    def crc32(self, data: memoryview) -> int:
        self.now += data.nbytes // 4
        self.sizes.append(data.nbytes)
        return 0


@pytest.mark.parametrize("seconds", [0.00001, 0.0005, 0.02])
def test_ends_soon_after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    core = FakeCore()
    monkeypatch.setattr(busy, "_now", lambda: core.now)
    monkeypatch.setattr(busy, "zlib", core)
    work = Busy()
    start = core.now
    work(seconds)
    over = core.now - start - seconds * 1e9
    assert 0 <= over < 10_000
    assert min(core.sizes) > 5 * 1024  # zlib keeps the interpreter's lock below


def test_busy_uses_a_core_and_sleep_does_not() -> None:
    def core_seconds(mode: str) -> float:
        work, start = make_compute(mode), time.thread_time()
        work(0.02)
        return time.thread_time() - start

    working, asleep = (sorted(core_seconds(mode) for _ in range(5)) for mode in ("busy", "sleep"))
    assert working[-1] > 5 * asleep[0]  # a loaded machine gives either little


@pytest.mark.parametrize(("ranks", "mode"), [(1, "busy"), (3, "busy"), (4, "sleep"), (64, "sleep")])
def test_sleeps_when_ranks_leave_no_core(ranks: int, mode: str) -> None:
    assert compute_mode(ranks, 4) == mode


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("step", [lambda: None, lambda: time.sleep(0.0001)], ids=["python", "reader"])
def test_another_thread_goes_on_while_it_computes(step: Callable[[], object]) -> None:
    """As beside work that never asks for the interpreter, which takes as much of a shared machine.

    A busy wait in Python would leave Python half of the time, and who waits for storage a turn every 5 ms.
    """
    work = Busy()
    shares = []
    for _ in range(5):
        shares.append(progress(step, lambda: work(0.1)) / progress(step, work_outside_python))
        if shares[-1] >= 0.6:
            return
    pytest.fail(f"the other thread made {shares} of the progress that it could make")


def work_outside_python() -> None:
    hashlib.pbkdf2_hmac("sha256", b"", b"", 400_000)


def progress(step: Callable[[], object], meanwhile: Callable[[], None]) -> float:
    """Steps per second of another thread while something is done in this one."""
    counted, stop = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            step()
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    before, start = counted, time.monotonic()
    meanwhile()
    rate = (counted - before) / (time.monotonic() - start)
    stop.set()
    thread.join()
    return rate


def drawn(distribution: str, stdev: float = 0.0, seed: int = 1, rank: int = 0, epoch: int = 1) -> list[float]:
    train = Train(computation_time=0.01, computation_time_stdev=stdev, computation_time_distribution=distribution)
    seconds = step_seconds(train, seed, rank, epoch)
    return [seconds() for _ in range(20_000)]


@pytest.mark.parametrize(
    ("distribution", "stdev", "spread"),
    [("constant", 0, 0), ("normal", 0.002, 0.002), ("uniform", 0.002, 0.002), ("exponential", 0, 0.01)],
)
def test_steps_have_the_mean_and_the_spread_that_were_asked_for(distribution: str, stdev: float, spread: float) -> None:
    found = drawn(distribution, stdev)
    assert statistics.fmean(found) == pytest.approx(0.01, abs=4 * spread / 20_000**0.5 + 1e-12)
    assert statistics.pstdev(found) == pytest.approx(spread, rel=0.03, abs=1e-12)
    assert min(found) >= 0
    if distribution == "uniform":
        assert max(found) <= 0.01 + 0.002 * 3**0.5


def test_every_distribution_is_tested_here() -> None:
    assert set(DISTRIBUTIONS) == {"constant", "normal", "uniform", "exponential"}


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_no_step_takes_less_than_no_time(distribution: str) -> None:
    found = drawn(distribution, stdev=0.02)
    assert min(found) == 0
    assert max(found) > 0.01


def test_ranks_and_epochs_differ_and_the_same_seed_gives_the_same_again() -> None:
    assert drawn("normal", 0.002) == drawn("normal", 0.002)
    other = [{"seed": 2}, {"rank": 1}, {"epoch": 2}]
    assert len({tuple(drawn("normal", 0.002, **one)[:5]) for one in [{}, *other]}) == 4
    assert {step_seconds(Train(computation_time_distribution="exponential"), 1, 0, 1)() for _ in range(3)} == {0.0}
