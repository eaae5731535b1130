"""Reading ahead: as far as asked, no further, and by as many threads."""

import threading
import time

import pytest

from tests.accesses import Counting, Failing, os_error, wait_until
from tests.small_study import loader_of, plan_of, reading, small_study, source_of, stage, totals
from tierscope.errors import StoppedError
from tierscope.loaders.threads import ThreadLoader
from tierscope.storage.access import Punctuality


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("staged"))
    stage(small_study(), out)
    return out


BATCH = 2


class Bounded(Counting):
    """Notes how far ahead of what was asked for a file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0  # batches that the consumer asked for so far
        self.farthest = 0  # batches opened beyond those, at most

    def open(self, path: str, flags: int, /) -> int:
        fd = super().open(path, flags)
        with self.lock:
            self.farthest = max(self.farthest, -(-len(self.opened) // BATCH) - self.asked)
        return fd

    def reaches(self, files: int) -> bool:
        return wait_until(lambda: len(self.opened) >= files)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_prefetch_size_is_how_far_it_reads_ahead(staged: str, threads: int, prefetch: int) -> None:
    study = small_study(f"batch_size={BATCH}", f"read_threads={threads}", f"prefetch_size={prefetch}")
    access = Bounded()
    loader = loader_of(study, source_of(study, staged, lambda: access))
    steps = 24 // BATCH
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        for step in range(steps):
            access.asked += 1
            next(batches)
            assert access.reaches(min(24, (step + 1 + prefetch) * BATCH))
    assert access.farthest == prefetch


def test_nothing_is_read_before_a_batch_is_asked_for(staged: str) -> None:
    study = small_study()
    access = Counting()
    loader = loader_of(study, source_of(study, staged, lambda: access))
    batches = loader.batches(plan_of(study).reads(0, 1))
    threading.Event().wait(0.01)
    assert access.opened == []
    assert len(list(batches)) == 5


class Meeting(Counting):
    """Opens wait for each other: they get on only if so many threads read at the same time."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._barrier = threading.Barrier(threads)

    def open(self, path: str, flags: int, /) -> int:
        self._barrier.wait(10)
        return super().open(path, flags)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_read_threads_is_how_many_read_at_once(staged: str, threads: int) -> None:
    study = small_study("batch_size=4", f"read_threads={threads}", "prefetch_size=0")
    access = Meeting(threads)
    loader = loader_of(study, source_of(study, staged, lambda: access))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        assert sum(len(batch.samples) for batch in batches) == 24
    assert len(access.threads) == threads
    assert threading.get_ident() not in access.threads


class Together(Meeting):
    """Opens that start and last together."""

    def open(self, path: str, flags: int, /) -> int:
        fd = super().open(path, flags)
        time.sleep(0.002)
        return fd


def test_operations_at_the_same_time_share_the_wall_clock(staged: str) -> None:
    study = small_study("batch_size=4", "read_threads=2", "prefetch_size=0")
    access = Together(2)
    loader = loader_of(study, source_of(study, staged, lambda: access))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        for _ in batches:
            pass
    tables, _ = loader.finish()
    busy, wall = sum(totals(tables, "busy_ns", "open")), sum(totals(tables, "wall_ns", "open"))
    assert busy >= 24 * 2_000_000
    assert wall < 0.8 * busy


def test_more_threads_than_samples_in_a_batch(staged: str) -> None:
    study = small_study("batch_size=2", "read_threads=7")
    with reading(loader_of(study, source_of(study, staged)), plan_of(study).reads(0, 1)) as batches:
        assert sum(len(batch.samples) for batch in batches) == 24


class Gate(Failing):
    """The first open fails; all others wait until the gate is opened."""

    def __init__(self) -> None:
        super().__init__("open", os_error(5))
        self.gate = threading.Event()
        self._first = threading.Lock()

    def open(self, path: str, flags: int, /) -> int:
        if self._first.acquire(blocking=False):
            return super().open(path, flags)
        self.gate.wait(10)
        return Counting.open(self, path, flags)


def test_after_an_error_nothing_more_is_read(staged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other threads end the part at hand, not all that was to be read ahead."""
    study = small_study("batch_size=2", "read_threads=2", "prefetch_size=10")
    access = Gate()
    loader = loader_of(study, source_of(study, staged, lambda: access))
    assert isinstance(loader, ThreadLoader)
    join = threading.Thread.join

    def open_gate_and_join(thread: threading.Thread, timeout: float | None = None) -> None:
        access.gate.set()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", open_gate_and_join)
    with reading(loader, plan_of(study).reads(0, 1)) as batches, pytest.raises(StoppedError):
        next(batches)
    assert len(access.opened) <= 1  # of 22 that were handed out


def test_every_thread_has_ways_of_its_own_and_gives_them_back(staged: str) -> None:
    study = small_study("read_threads=3")
    made: list[Counting] = []

    def make() -> Counting:
        made.append(Counting())
        made[-1].punctuality = Punctuality(2, 1, 10)
        return made[-1]

    loader = loader_of(study, source_of(study, staged, make))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        for _ in batches:
            pass
    assert len(made) == 3 * 2  # threads × tiers
    assert all(len(access.threads) <= 1 for access in made)
    assert not any(access.left for access in made)
    _, punctuality = loader.finish()
    assert punctuality == Punctuality(12, 6, 60)  # summed over all of them
    assert all(access.left for access in made)
