"""One test per knob: that a run with it does something else than a run without it."""

import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.accesses import Counting
from tests.small_study import plan_of, planned_samples, small_study, stage, tier_files, totals
from tierscope.bench import run as run_module
from tierscope.bench.group import Alone
from tierscope.bench.run import RunTask, run_rank
from tierscope.dataset import memory
from tierscope.errors import UserError
from tierscope.loaders.choose import choose_loader
from tierscope.storage import directory
from tierscope.trace.rank_trace import RankTrace

pytestmark = pytest.mark.whole


class Rank(Alone):
    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self.met = 0

    def meet(self) -> None:
        self.met += 1


def run(out: Path, *settings: str, repetition: int = 1, group: Rank | None = None) -> RankTrace:
    study = small_study(*settings)
    stage(study, str(out))
    return run_rank(
        RunTask(study, choose_loader(study), str(out), None, "sleep", None, repetition=repetition), group or Rank()
    )


def digests(trace: RankTrace) -> list[str]:
    return [epoch.order_digest for epoch in trace.epochs]


MANY = ("format=raw", "num_files_train=6", "num_samples_per_file=4", "record_length_bytes=100")


@pytest.mark.parametrize(
    "knob",
    [
        ("file_shuffle=off",),
        ("sample_shuffle=off",),
        ("sample_shuffle=offset",),
        ("file_access=multi",),
        ("file_shuffle=random",),
        ("sample_shuffle=random",),
        ("shuffle=off",),
        ("seed=8",),
    ],
)
def test_order_knobs_change_the_order_that_is_delivered(tmp_path: Path, knob: tuple[str, ...]) -> None:
    plain, other = digests(run(tmp_path, *MANY)), digests(run(tmp_path, *MANY, *knob))
    assert plain[0] != other[0]
    assert other == digests(run(tmp_path, *MANY, *knob))


def test_random_shuffles_differ_between_repetitions_and_seeded_ones_do_not(tmp_path: Path) -> None:
    for knob, orders in (("sample_shuffle=seed", 1), ("sample_shuffle=random", 3), ("file_shuffle=random", 3)):
        assert len({digests(run(tmp_path, *MANY, knob, repetition=number))[0] for number in (1, 2, 3)}) == orders


def test_seed_change_epoch(tmp_path: Path) -> None:
    assert len(set(digests(run(tmp_path, *MANY)))) == 2
    assert len(set(digests(run(tmp_path, *MANY, "seed_change_epoch=false")))) == 1


def test_total_training_steps(tmp_path: Path) -> None:
    trace = run(tmp_path, *MANY, "total_training_steps=2")
    assert [(epoch.samples, len(epoch.steps)) for epoch in trace.epochs] == [(10, 2), (10, 2)]
    assert [epoch.payload_bytes for epoch in trace.epochs] == [1000, 1000]


def test_file_access_multi_opens_fewer_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(access: str) -> list[set[str]]:
        found = []
        settings = (*MANY, "ranks_per_node=2", f"file_access={access}", "data_loader=threads", "epochs=1")
        for rank in (0, 1):
            counting = Counting()
            monkeypatch.setattr(directory, "Directory", lambda counting=counting: counting)
            run(tmp_path, *settings, group=Rank(rank, 2))
            found.append(set(counting.opened))
        return found

    assert opened("shared")[0] & opened("shared")[1]
    ours, theirs = opened("multi")
    assert (len(ours), len(theirs), ours & theirs) == (3, 3, set())


def test_record_length_bytes_stdev(tmp_path: Path) -> None:
    """Bytes are those really read, not samples × mean."""
    trace = run(tmp_path, *MANY, "record_length_bytes_stdev=20")
    read = sum(totals(trace.epochs[0].lanes, "nbytes", "read"))
    assert read == trace.epochs[0].payload_bytes != 2400
    assert read == trace.epochs[1].payload_bytes  # the same samples


@pytest.mark.parametrize("form", ["hdf5", "png"])
def test_compressibility_makes_fewer_bytes_to_read(tmp_path: Path, form: str) -> None:
    layout = ("hdf5.compression=gzip",) if form == "hdf5" else ()

    def read(share: float) -> int:
        trace = run(tmp_path, f"format={form}", *layout, "record_length_bytes=20000", f"compressibility={share}")
        return sum(totals(trace.epochs[0].lanes, "nbytes", "read"))

    assert read(0.75) < 0.45 * read(0)


def test_hdf5_chunks_make_more_to_read(tmp_path: Path) -> None:
    """A sample costs all chunks that it touches."""
    file = ("format=hdf5", "num_files_train=4", "num_samples_per_file=8", "record_length_bytes=2000")

    def read(*layout: str) -> tuple[int, int]:
        lanes = run(tmp_path, *file, *layout, "cache_rate=0").epochs[0].lanes
        return sum(totals(lanes, "nbytes", "read")), sum(totals(lanes, "ops", "read"))

    plain, chunked = read(), read("hdf5.chunk_size=500", "hdf5.compression=none")
    large = read("hdf5.chunk_size=16000", "hdf5.compression=lzf")
    assert chunked[1] > plain[1]
    assert large[0] > plain[0]


def test_compression_levels_make_other_files(tmp_path: Path) -> None:
    def size(level: int) -> int:
        study = small_study(
            "format=hdf5", "hdf5.compression=gzip", f"hdf5.compression_level={level}", "compressibility=0.6",
            "num_files_train=1", "record_length_bytes=100000", "cache_rate=0",
        )  # fmt: skip
        stage(study, str(tmp_path))
        return os.path.getsize(tier_files(study, str(tmp_path))[1].path(0))

    assert size(9) < size(1)


def test_read_ahead_all_reads_every_file_in_the_first_epoch_and_nothing_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(small_study(), str(tmp_path))
    access = Counting()
    monkeypatch.setattr(directory, "Directory", lambda: access)
    trace = run(tmp_path, "read_ahead=all", "epochs=3", "data_loader=threads")
    assert len(access.opened) == len(set(access.opened)) == 24
    assert [sum(sum(totals([lane], "ops", "read")) for lane in epoch.lanes) for epoch in trace.epochs] == [24, 0, 0]
    assert [epoch.samples for epoch in trace.epochs] == [24] * 3
    plan = plan_of(small_study())
    assert len({tuple(planned_samples(plan, 0, epoch)) for epoch in (1, 2, 3)}) == 3
    assert len(set(digests(trace))) == 3
    assert digests(trace)[:2] == digests(run(tmp_path))


def test_read_ahead_all_is_refused_where_memory_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 20_000)
    with pytest.raises(
        UserError, match=r"rank 0 \(node 0\): workload\.reader\.read_ahead = all; the ranks' samples take"
    ):
        run(tmp_path, "read_ahead=all")


def test_synthetic_reads_nothing(tmp_path: Path) -> None:
    trace = run(tmp_path, "format=synthetic")
    for epoch in trace.epochs:
        assert (epoch.samples, epoch.payload_bytes) == (24, 24_000)
        assert sum(int(lane.ops.sum()) for lane in epoch.lanes) == 0
    assert not list(tmp_path.rglob("*.statistics"))
    assert digests(trace) == digests(run(tmp_path))


def test_preprocess_busy_takes_its_time(tmp_path: Path) -> None:
    plain = run(tmp_path, "epochs=1").epochs[0]
    busy = run(tmp_path, "epochs=1", "preprocess=busy", "preprocess_time=1 ms").epochs[0]
    assert plain.preprocess_seconds == 0
    assert busy.preprocess_seconds >= 24 * 0.001


def test_preprocess_decode_is_timed(tmp_path: Path) -> None:
    assert run(tmp_path, "epochs=1", "preprocess=decode", "format=csv").epochs[0].preprocess_seconds > 0


def test_computation_threads_preprocess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: Counter[str] = Counter()
    really = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started[thread.name.rpartition("-")[0]] += 1
        really(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    settings = ("epochs=1", "data_loader=threads", "preprocess=decode", "read_threads=2")
    run(tmp_path, *settings)
    assert started["preprocess"] == 0
    run(tmp_path, *settings, "computation_threads=3")
    assert started["preprocess"] == 3


@pytest.mark.parametrize("sync", ["epoch", "step"])
def test_sync(tmp_path: Path, sync: str) -> None:
    group = Rank()
    trace = run(tmp_path, f"sync={sync}", group=group)
    assert group.met == (10 if sync == "step" else 0)
    assert all((epoch.sync_seconds > 0) == (sync == "step") for epoch in trace.epochs)


@pytest.mark.parametrize("distribution", ["normal", "uniform", "exponential"])
def test_computation_time_varies(tmp_path: Path, distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(run_module, "make_compute", lambda _mode: asked.append)
    spread = () if distribution == "exponential" else ("computation_time_stdev=1 ms",)
    run(tmp_path, f"computation_time_distribution={distribution}", "computation_time=3 ms", *spread)
    assert len(set(asked)) == len(asked) == 10
    asked.clear()
    run(tmp_path, "computation_time=3 ms")
    assert asked == [0.003] * 10
