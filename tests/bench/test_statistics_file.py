"""A file of statistics: who reads it when, that it is staged like other files, and what is said where it is not there."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.accesses import Counting
from tests.small_study import small_study, stage, stagers, tier_files, totals
from tierscope.bench.group import Alone
from tierscope.bench.run import RunTask, ops_path, run_rank
from tierscope.errors import VanishedDataError
from tierscope.loaders.choose import choose_loader
from tierscope.output import durable
from tierscope.plan.side_reads import SideReads
from tierscope.spec.study import Study
from tierscope.storage import directory
from tierscope.storage.emulated import Board
from tierscope.storage.stations import map_stations
from tierscope.trace.ops import KINDS, OP_ROW, STATISTICS_LANE
from tierscope.trace.rank_trace import RankTrace

SMALL = ("format=synthetic", "statistics.file_bytes=4 KiB", "statistics.reads=50", "statistics.read_bytes=500 B")


def path_of(study: Study, out: Path) -> Path:
    return Path(tier_files(study, str(out))[-1].path(0))


def run(study: Study, out: Path, board: str | None = None, ops: str | None = None) -> RankTrace:
    return run_rank(RunTask(study, choose_loader(study), str(out), board, "sleep", ops), Alone())


def staged_run(out: Path, *settings: str, ops: str | None = None) -> RankTrace:
    study = small_study(*SMALL, *settings)
    stage(study, str(out))
    return run(study, out, ops=ops)


@pytest.mark.parametrize("more", [(), ("read_threads=0",), ("read_ahead=all",), ("cache_rate=100%",), ("evict=false",)])
def test_read_before_the_first_batch_of_the_first_epoch_only(tmp_path: Path, more: tuple[str, ...]) -> None:
    trace = staged_run(tmp_path, *more)
    first, second = trace.epochs
    lanes = [lane for lane in first.lanes if lane.lane == STATISTICS_LANE]
    assert len(lanes) == 1
    assert totals(lanes, "ops", "open") == totals(lanes, "ops", "close") == [0, 1]
    assert totals(lanes, "ops", "read") == [0, 50]
    assert totals(lanes, "nbytes", "read") == [0, 25_000]
    assert sum(int(lane.ops.sum()) for lane in first.lanes) == 52
    assert sum(int(lane.ops.sum()) for lane in second.lanes) == 0
    assert first.stall_seconds >= sum(int(lane.busy_ns.sum()) for lane in lanes) / 1e9
    assert first.samples == second.samples == 24


def test_offsets_walk_through_the_file_and_begin_again(tmp_path: Path) -> None:
    staged_run(tmp_path, ops=str(tmp_path))
    rows = np.fromfile(ops_path(str(tmp_path), 0), OP_ROW)
    reads = rows[rows["kind"] == KINDS.index("read")]
    assert reads["offset"].tolist() == [number % 8 * 500 for number in range(50)]
    assert set(reads["epoch"].tolist()) == {1}


@pytest.mark.parametrize(
    ("more", "reads", "nbytes"),
    [
        (("statistics.read_bytes=3 KiB",), 50, 50 * 3072),  # one place only: still one open
        (("statistics.read_bytes=null", "statistics.reads=1"), 1, 4096),
        (("statistics.read_bytes=null", "statistics.reads=2", "transfer_size=1 KiB"), 8, 8192),
    ],
)
def test_other_sizes(tmp_path: Path, more: tuple[str, ...], reads: int, nbytes: int) -> None:
    first = staged_run(tmp_path, *more).epochs[0]
    assert totals(first.lanes, "ops", "open") == totals(first.lanes, "ops", "close") == [0, 1]
    assert totals(first.lanes, "ops", "read") == [0, reads]
    assert totals(first.lanes, "nbytes", "read") == [0, nbytes]


def test_an_emulated_tier_takes_its_time(tmp_path: Path) -> None:
    study = small_study(*SMALL, "gfs.read_ops=1000", "gfs.emulate=true")
    stage(study, str(tmp_path))
    board = Board(map_stations(study.system, study.seed, 1).count)
    try:
        first = run(study, tmp_path, board.path).epochs[0]
    finally:
        board.close()
    assert first.limited_ops == 50
    assert totals(first.lanes, "busy_ns", "read")[1] >= 49e6
    assert first.stall_seconds >= 0.049


def test_it_is_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Counting()
    monkeypatch.setattr(directory, "Directory", lambda: access)
    trace = staged_run(tmp_path)
    path = str(path_of(small_study(*SMALL), tmp_path))
    assert (access.opened, access.evicted, access.looked) == (
        [path],
        [path, path],
        [path],
    )  # before it is read, and after
    assert [[found.checked_bytes for found in epoch.residency] for epoch in trace.epochs] == [[0, 4096], [0, 0]]


def test_one_file_on_the_last_tier_for_all_ranks(tmp_path: Path) -> None:
    study = small_study(*SMALL, "nodes=2", "ranks_per_node=2", "cache_rate=100%")
    assert stage(study, str(tmp_path)) == 4096
    assert list(tmp_path.rglob("*.statistics")) == [path_of(study, tmp_path)]
    assert stage(study, str(tmp_path)) == 0
    other = small_study(*SMALL, "statistics.file_bytes=8 KiB")
    assert path_of(other, tmp_path).parent != path_of(study, tmp_path).parent


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_what_is_missing_is_said_and_written_anew(tmp_path: Path, damage: str) -> None:
    study = small_study(*SMALL)
    stage(study, str(tmp_path))
    path = path_of(study, tmp_path)
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        os.truncate(path, 600)
    said = (
        "has disappeared; rerun the same command to write missing files again"
        if damage == "missing"
        else "sample 1: truncated: 100 of 500 bytes at offset 500"
    )
    with pytest.raises(VanishedDataError, match=rf"rank 0 \(node 0\): {path}: {said}"):
        run(study, tmp_path)
    (stager,) = stagers(study, str(tmp_path))
    assert [(share.tier_name, share.files, share.nbytes) for share in stager.missing()] == [
        ("lfs", 0, 0),
        ("gfs", 1, 4096),
    ]
    assert stage(study, str(tmp_path)) == 4096
    assert path.read_bytes() == whole


def test_nobody_reads_it_where_a_device_makes_the_samples() -> None:
    side = SideReads.of(small_study(*SMALL))
    assert side is not None
    assert [side.count(0, epoch) for epoch in (1, 2)] == [50, 0]
    assert SideReads.of(small_study(*SMALL, "model.network=lenet5", "model.data=synthetic")) is None
    assert SideReads.of(small_study("format=synthetic")) is None


@pytest.mark.parametrize(
    "more", [(), ("read_threads=0",), ("format=hdf5", "num_files_train=1", "num_samples_per_file=24")]
)
def test_beside_files_of_samples_before_every_step(tmp_path: Path, more: tuple[str, ...]) -> None:
    study = small_study(*SMALL[1:], "format=tfrecord", "statistics.when=step", "statistics.reads=3", *more)
    stage(study, str(tmp_path))
    trace = run(study, tmp_path)
    for epoch in trace.epochs:
        (lane,) = [lane for lane in epoch.lanes if lane.lane == STATISTICS_LANE]
        assert totals([lane], "ops", "open") == totals([lane], "ops", "close") == [0, 1]
        assert totals([lane], "ops", "read") == [0, 3 * 5]  # 24 samples are 5 steps
        assert epoch.samples == 24
    side = SideReads.of(study)
    assert side is not None
    assert sum(side.count(0, epoch) for epoch in (1, 2)) == 30
    assert stage(study, str(tmp_path)) == 0


def test_at_random_over_the_run(tmp_path: Path) -> None:
    trace = staged_run(tmp_path, "statistics.when=random", ops=str(tmp_path))
    rows = np.fromfile(ops_path(str(tmp_path), 0), OP_ROW)
    reads = rows[rows["kind"] == KINDS.index("read")]
    assert len(reads) == 50
    assert set(reads["epoch"].tolist()) == {1, 2}
    assert len(set(reads["step"].tolist())) > 2  # over the run, and not all at its start
    assert reads["offset"].max() <= 4096 - 500
    assert not (reads["offset"] % 500 == 0).all()
    counts = [sum(totals(epoch.lanes, "ops", "read")) for epoch in trace.epochs]
    side = SideReads.of(small_study(*SMALL, "statistics.when=random"))
    assert side is not None
    assert counts == [side.count(0, epoch) for epoch in (1, 2)]


def test_after_a_crash_it_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = small_study(*SMALL)
    stage(study, str(tmp_path))
    (stager,) = stagers(study, str(tmp_path))
    stager.reopen()  # whoever writes more goes down before it is sealed
    beside = path_of(study, tmp_path).with_name("mine.txt")
    beside.write_text("not a file of the dataset")
    monkeypatch.setattr(durable, "boot_id", lambda: "another boot")
    stager.distrust()
    assert not path_of(study, tmp_path).exists()
    assert beside.exists()
