"""First-touch in a benchmark: ranks fill the near tier as they read, with the decisions of a simulation, and every run begins without copies."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.measure.test_run import Diary, traces
from tests.small_study import NEEDS_LIBRARY
from tests.tiny import tiny
from tests.traces import as_measured
from tierscope.bench.overhead import Overhead
from tierscope.commands.analyze import analyze
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.measure.crews import Crews
from tierscope.measure.run import generate_data, run_study
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Study
from tierscope.storage import cold
from tierscope.trace.trace import Trace
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

FILE = 1024 + 16  # a TFRecord
FILES = 48
COPIES = "tfrecord-48x1-1024B-seed7-first-touch"
Run = Callable[[Study, Path], Diary]


@pytest.fixture(scope="module")
def crews() -> Iterator[Crews]:
    """Ranks for one study after another: starting them takes longer than what they do here."""
    crews = Crews()
    yield crews
    crews.close()


@pytest.fixture
def run(crews: Crews, monkeypatch: pytest.MonkeyPatch) -> Run:
    """On these ranks, without measuring our own cost, which takes long."""

    def one_more(study: Study, out: Path) -> Diary:
        diary = Diary()
        try:
            run_study(study, str(out), crews, diary)
        except BaseException:
            crews.close()  # they are gone, too
            raise
        return diary

    monkeypatch.setattr("tierscope.measure.runner.Runner._overhead", lambda *_: Overhead(0.0, 0.0, 0.0))
    return one_more


def touched(*settings: str) -> Study:
    """Two nodes with two ranks each; rates are for simulations."""
    shared = (
        f"num_files_train={FILES}",
        "format=tfrecord",
        "ranks_per_node=2",
        "epochs=3",
        "sweep={}",
        "policy=first-touch",
        "cache_rate=50%",
        "lfs.bandwidth=1 GB/s",
        "gfs.bandwidth=1 GB/s",
    )
    return tiny(*shared, *settings)


SHARED_NEAR_TIER = ("lfs.visible_to=global", "lfs.path={out}/tiers/lfs/all")


def sums(trace: Trace, kind: str, what: str = "ops") -> dict[tuple[str, int, int], int]:
    """By tier, epoch and rank."""
    rows = trace.io.filter(pl.col("kind") == kind).group_by("tier", "epoch", "rank").agg(pl.col(what).sum())
    return {(tier, epoch, rank): value for tier, epoch, rank, value in rows.iter_rows() if value}


def check(trace: Trace, study: Study) -> None:
    """Every rank's operations and bytes on both tiers are what the policy decides."""
    form = make_format(study)
    caches = Caches(study, Plan.of(study, form.file_bytes), form.file_bytes)
    simulation = Simulation.of(study)
    opens, closes, reads, writes = (sums(trace, kind) for kind in ("open", "close", "read", "write"))
    read_bytes, written = sums(trace, "read", "bytes"), sums(trace, "write", "bytes")
    for epoch in range(1, study.workload.train.epochs + 1):
        cached = caches.epoch(epoch)
        for rank, (hits, fills) in enumerate(zip(cached.hits.sum(axis=1), cached.fills.sum(axis=1), strict=True)):
            near, far = ("lfs", epoch, rank), ("gfs", epoch, rank)
            missed = cached.hits.shape[1] - hits
            assert (opens.get(near, 0), opens.get(far, 0)) == (hits + fills, missed)
            assert (reads.get(near, 0), reads.get(far, 0)) == (hits, missed)
            assert (read_bytes.get(near, 0), read_bytes.get(far, 0)) == (hits * FILE, missed * FILE)
            assert (writes.get(near, 0), written.get(near, 0)) == (fills, fills * FILE)
            assert far not in writes
        assert (as_measured(trace).hit_rate or {})[epoch] == pytest.approx(simulation.epoch(epoch, "bound").hit_rate)
    assert opens == closes


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("shuffle=local", "cache_rate=25%"),
        ("cache_rate=100%", "read_threads=0", "num_subfolders_train=4"),
        (*SHARED_NEAR_TIER, "read_threads=2"),
        (f"lfs.capacity={7 * FILE + 5}", "evict=false"),
        ("cache_rate=0",),
        ("num_files_train=50", "cache_rate=30%"),
    ],
    ids=["global", "local", "all", "shared", "capacity", "none", "trimmed"],
)
def test_tiers_serve_what_the_policy_decides(tmp_path: Path, run: Run, settings: tuple[str, ...]) -> None:
    study = touched(*settings)
    run(study, tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    check(trace, study)
    assert as_measured(trace).policy == "first-touch"
    assert (as_measured(trace).hit_rate or {})[1] == 0


def test_copies_are_the_files_themselves_and_a_node_holds_what_it_has_room_for(tmp_path: Path, run: Run) -> None:
    run(touched(), tmp_path / "out")
    tiers = tmp_path / "out" / "tiers"
    for node in ("0", "1"):
        copies = sorted((tiers / "lfs" / node / COPIES).glob("*.tfrecord*"))
        assert len(copies) == FILES // 2
        for path in copies:
            assert path.read_bytes() == (tiers / "gfs" / COPIES.removesuffix("-first-touch") / path.name).read_bytes()


def test_only_the_last_tier_is_staged(tmp_path: Path, crews: Crews) -> None:
    study = touched("cache_rate=100%", "lfs.capacity=3 KiB")
    written = generate_data(study, str(tmp_path / "out"), crews, Silent())
    assert written == FILES * FILE
    assert not list((tmp_path / "out" / "tiers" / "lfs").rglob("*.tfrecord"))


def test_every_run_begins_without_copies(tmp_path: Path, run: Run) -> None:
    study = touched("repetitions=2")
    run(study, tmp_path / "out")
    found = traces(tmp_path / "out")
    assert len(found) == 2
    for trace in found:
        check(trace, study)


def test_policies_in_one_sweep_do_not_disturb_each_other(tmp_path: Path, run: Run) -> None:
    """Pinned files stay where they were staged, whoever runs in between."""
    study = touched("sweep.policy=[pinned, first-touch]", "repetitions=2", "epochs=2")
    run(study, tmp_path / "out")
    for trace in traces(tmp_path / "out"):
        reads = sums(trace, "read")
        near = [sum(ops for (tier, at, _), ops in reads.items() if (tier, at) == ("lfs", epoch)) for epoch in (1, 2)]
        if trace.about.sweep["policy"] == "pinned":
            assert near == [FILES // 2, FILES // 2]
            assert as_measured(trace).hit_rate is None
        else:
            assert near[0] == 0
            assert near[1] == round(((as_measured(trace).hit_rate or {})[2] or 0) * FILES) > 0


@pytest.mark.faults
def test_what_a_killed_run_left_is_not_taken_for_data(tmp_path: Path, crews: Crews, run: Run) -> None:
    study = touched()
    run(study, tmp_path / "out")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    folder = tmp_path / "out" / "tiers" / "lfs" / "1" / COPIES
    for path in folder.glob("*.tfrecord"):
        path.write_bytes(b"of another run")
    beside = sorted(
        {path.name for path in (tmp_path / "out" / "tiers" / "gfs").rglob("*.tfrecord")} - set(os.listdir(folder))
    )
    (folder / beside[0]).write_bytes(b"of another run, and no longer held")
    (folder / f"{beside[1]}.part").write_bytes(b"half a")
    (folder / "notes.txt").write_text("a stranger's")
    crews.close()  # other ranks
    run(study, tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    check(trace, study)
    assert not list(folder.glob("*.part"))
    assert (folder / "notes.txt").read_text() == "a stranger's"
    assert {path.stat().st_size for path in folder.glob("*.tfrecord")} == {FILE}
    assert any("the run is finished" in note for note in run(study, tmp_path / "out").notes)


def test_copying_on_an_emulated_tier_takes_its_time(tmp_path: Path, run: Run) -> None:
    """2 ms for an open, 4 ms for what is written: as long as a read of it."""
    rates = ("lfs.emulate=true", "lfs.metadata_ops=500/s", "lfs.read_ops=250/s", "epochs=2", "cache_rate=100%")
    study = touched(*rates, "num_files_train=16", "shuffle=local")
    run(study, tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    check(trace, study)
    busy = {
        (kind, epoch): seconds
        for kind, epoch, seconds in trace.io.filter(pl.col("tier") == "lfs")
        .group_by("kind", "epoch")
        .agg(pl.col("busy_seconds").sum())
        .iter_rows()
    }
    assert busy["write", 1] >= 16 * 0.004
    assert busy["read", 2] >= 16 * 0.004
    assert busy["open", 1] >= 16 * 0.002
    assert ("write", 2) not in busy
    limited = trace.ranks.group_by("epoch").agg(pl.col("limited_ops").sum()).sort("epoch")["limited_ops"].to_list()
    assert limited == [32, 32]


def test_writes_are_shown_apart_from_what_is_io(tmp_path: Path, run: Run) -> None:
    run(touched(), tmp_path / "out")
    analysis = analyze(str(tmp_path / "out"))
    first = next(point for point in analysis.breakdown.points if point.epoch == 1)
    assert "LFS-WRITE" in analysis.breakdown.classes
    assert first.classes["LFS-WRITE"] > 0
    assert first.hit_rate == 0
    assert analysis.breakdown.summary[0].hit_rate
    assert first.classes["LFS-READ"] == 0


@NEEDS_LIBRARY
def test_auto_reads_with_threads_and_says_so(tmp_path: Path, run: Run) -> None:
    diary = run(touched("epochs=1"), tmp_path / "out")
    line = "first-touch: files are copied only in Python, so data_loader: auto uses Python threads"
    assert line in diary.notes
    (trace,) = traces(tmp_path / "out")
    assert as_measured(trace).loader == "threads"
    assert line not in run(touched("epochs=1", "data_loader=threads"), tmp_path / "other").notes


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        (
            "data_loader=native",
            "workload.reader.data_loader = native, but placement.policy = first-touch, and the native",
        ),
        ("odirect=true", "workload.reader.odirect = true, but placement.policy = first-touch, and the native"),
        ("io_engine=uring", "workload.reader.io_engine = uring, but placement.policy = first-touch, and the native"),
        (
            "num_samples_per_file=2",
            "placement.policy = first-touch, but workload.dataset.num_samples_per_file = 2 (format tfrecord); only whole",
        ),
        (
            "record_length_bytes_stdev=100",
            "placement.policy = first-touch, but workload.dataset.record_length_bytes_stdev = 100; only whole",
        ),
        ("format=hdf5", "placement.policy = first-touch, but workload.dataset.format = hdf5; only whole"),
    ],
)
def test_what_ranks_cannot_do_is_refused_before_anything_is_touched(tmp_path: Path, setting: str, line: str) -> None:
    crews = Crews()
    try:
        for start in (run_study, generate_data):
            with pytest.raises(UserError) as caught:
                start(touched(setting), str(tmp_path / "out"), crews, Silent())
            assert str(caught.value).startswith(line)
            assert "set " in str(caught.value)
    finally:
        crews.close()
    assert not (tmp_path / "out").exists()


def test_other_profilers_do_not_watch_it(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"--profiler darshan works only with placement.policy = pinned, not first-touch: set pinned, or remove --profiler",
    ):
        run_study(touched(), str(tmp_path / "out"), Crews(), Silent(), profiler="darshan")
    assert not (tmp_path / "out").exists()


def test_copies_can_be_evicted_in_the_next_epoch(tmp_path: Path, run: Run) -> None:
    """Where the page cache can be asked, and evicted at all: on tmpfs it cannot."""
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(4096))
    with probe.open("rb+") as opened:
        os.fsync(opened.fileno())
    with probe.open("rb") as opened:
        cold.evict(opened.fileno())
        if cold.resident(opened.fileno(), 4096) != 0:
            pytest.skip("nothing can be evicted here")
    run(touched("cache_rate=100%", "shuffle=local"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    rows = trace.cold.filter((pl.col("tier") == "lfs") & (pl.col("epoch") > 1))
    assert rows["checked_bytes"].sum() == 2 * FILES * FILE
    assert rows["resident_bytes"].sum() == 0
    assert np.array_equal(trace.cold.filter(pl.col("epoch") == 1, pl.col("tier") == "lfs")["checked_bytes"], [0] * 4)


def test_a_folder_that_is_not_ours_is_refused(tmp_path: Path, run: Run) -> None:
    """The last of these: it ends the ranks, which others would have to start again."""
    run(touched("policy=pinned"), tmp_path / "first")
    near = tmp_path / "first" / "tiers" / "lfs" / "0"
    (near / COPIES).mkdir()
    (near / COPIES / "000000001.tfrecord").write_text("a stranger's")
    elsewhere = touched(f"lfs.path={tmp_path}/first/tiers/lfs/{{node}}", f"gfs.path={tmp_path}/first/tiers/gfs")
    with pytest.raises(
        ForeignDirectoryError, match=r"rank 0 \(node 0\): .*first-touch: is not empty and was not created"
    ):
        run(elsewhere, tmp_path / "out")
    assert (near / COPIES / "000000001.tfrecord").read_text() == "a stranger's"
