"""Our own cost is measured with what the study really uses, and without storage."""

import os

import pytest

from tests.small_study import NEEDS_LIBRARY, has_uring, small_study
from tierscope.bench import loading, overhead
from tierscope.bench.overhead import measure_overhead
from tierscope.bench.resolved import ResolvedRun
from tierscope.loaders import LOADERS, Loader

pytestmark = pytest.mark.whole


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "_SAMPLES", 300)
    monkeypatch.setattr(overhead, "_REPEATS", 2)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("data_loader", ["threads", pytest.param("native", marks=NEEDS_LIBRARY)])
@pytest.mark.parametrize("settings", [(), ("format=npz", "num_samples_per_file=4"), ("format=raw", "batch_size=50")])
def test_both_costs_are_found_for_any_study(threads: int, data_loader: str, settings: tuple[str, ...]) -> None:
    found = measure_overhead(
        ResolvedRun.of(small_study(f"read_threads={threads}", f"data_loader={data_loader}", *settings))
    )
    assert 0 < found.recorder_per_op < 1
    assert 0 < found.harness_per_sample < 1


class Spy:
    """Stands in for the registry of loaders; notes who is asked for, with what, and what they deliver."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.knobs: set[tuple[int, int, int]] = set()
        self.transfer_bytes: set[int] = set()

    def load(self, name: str) -> object:
        self.loaded.append(name)
        made: type[Loader] = LOADERS.load(name)

        def make(source, batch_size, threads, prefetch, recording):  # type: ignore[no-untyped-def]
            self.knobs.add((batch_size, threads, prefetch))
            self.transfer_bytes.add(source.transfer_bytes)
            return made(source, batch_size, threads, prefetch, recording)

        return make


@pytest.mark.parametrize(
    ("threads", "data_loader", "loader"),
    [
        (0, "threads", "inline"),
        (2, "threads", "threads"),
        pytest.param(0, "native", "native", marks=NEEDS_LIBRARY),
        pytest.param(2, "native", "native", marks=NEEDS_LIBRARY),
    ],
)
def test_the_study_s_own_loader_and_knobs_are_used(
    threads: int, data_loader: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy()
    monkeypatch.setattr(loading, "LOADERS", spy)
    knobs = (f"read_threads={threads}", "batch_size=3", "prefetch_size=9", "transfer_size=700")
    measure_overhead(ResolvedRun.of(small_study(f"data_loader={data_loader}", *knobs)))
    tries = 2 if threads < 2 else 6  # threads are also driven against each other, and beside them one alone
    assert spy.loaded == [loader] * tries
    assert spy.knobs == {(3, threads, 9)} | ({(3, 1, 9)} if threads > 1 else set())
    assert spy.transfer_bytes == {700}


@NEEDS_LIBRARY
@pytest.mark.parametrize("settings", [("io_engine=uring",), ("odirect=true",)])
def test_other_ways_of_the_native_loader_are_driven_too(settings: tuple[str, ...]) -> None:
    if "io_engine=uring" in settings and not has_uring():
        pytest.skip("no io_uring here")
    assert 0 < measure_overhead(ResolvedRun.of(small_study("read_threads=2", *settings))).harness_per_sample < 1


def test_no_storage_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*arguments: object) -> int:
        raise AssertionError(arguments)

    study = small_study()
    for name in ("open", "preadv", "stat"):
        monkeypatch.setattr(os, name, touched)
    measure_overhead(ResolvedRun.of(study))


def test_the_least_of_the_tries_counts_but_the_dearer_way_of_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    costs, harness = iter([(9e-6, 5e-6), (4e-6, 6e-6)]), iter([3e-5, 7e-5])
    monkeypatch.setattr(overhead, "cost_per_op_seconds", lambda _repeats, _shared: next(costs))
    monkeypatch.setattr(overhead, "_drive", lambda _study, _access: (next(harness), 0.0))
    found = measure_overhead(ResolvedRun.of(small_study("data_loader=threads")))
    assert (found.recorder_per_op, found.harness_per_sample) == (6e-6, 3e-5)


def test_threads_lose_time_to_one_another_only_when_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {1: 2e-6, 4: 9e-6}
    monkeypatch.setattr(
        overhead, "_drive", lambda run, _access: (1e-5, times[max(1, run.study.workload.reader.read_threads)])
    )
    assert measure_overhead(ResolvedRun.of(small_study("read_threads=4"))).threads_per_op == pytest.approx(7e-6)
    assert measure_overhead(ResolvedRun.of(small_study("read_threads=1"))).threads_per_op == 0


def test_batches_of_very_large_samples_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy()
    monkeypatch.setattr(loading, "LOADERS", spy)
    monkeypatch.setattr(overhead, "_MOST_BYTES", 10 << 10)
    for settings in (("batch_size=1", "prefetch_size=2"), ("batch_size=8", "prefetch_size=1")):
        measure_overhead(ResolvedRun.of(small_study("data_loader=threads", "record_length_bytes=2000", *settings)))
    measure_overhead(
        ResolvedRun.of(
            small_study("data_loader=threads", "record_length_bytes=8000", "batch_size=2", "prefetch_size=3")
        )
    )
    assert spy.knobs == {(1, 1, 2), (2, 1, 1), (1, 1, 0)}
