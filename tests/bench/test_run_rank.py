"""One rank's run on directories: what it hands over is what really happened."""

import gc
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from tests.accesses import Counting
from tests.small_study import NEEDS_LIBRARY, plan_of, planned_samples, small_study, stage, tier_files, totals
from tierscope.bench.group import Alone
from tierscope.bench.run import RunTask, ops_path, run_rank
from tierscope.errors import DamagedDataError, VanishedDataError
from tierscope.loaders.choose import choose_loader
from tierscope.mounts import IN_MEMORY, filesystem_of
from tierscope.spec.study import Study
from tierscope.storage import cold, directory, dropping
from tierscope.storage.emulated import Board
from tierscope.trace.ops import OP_ROW
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.recorder import LaneTable

pytestmark = pytest.mark.whole

RECORD = 1016  # a TFRecord of 1000 bytes


def task_of(
    study: Study, out: Path, board: Board | None = None, mode: str = "sleep", ops: str | None = None
) -> RunTask:
    return RunTask(study, choose_loader(study), str(out), board.path if board else None, mode, ops)


def staged_run(out: Path, *settings: str, mode: str = "sleep", ops: str | None = None) -> RankTrace:
    study = small_study(*settings)
    stage(study, str(out))
    return run_rank(task_of(study, out, mode=mode, ops=ops), Alone())


def digest_of(samples: list[int]) -> str:
    return hashlib.blake2b(np.array(samples, "<i8").tobytes(), digest_size=16).hexdigest()


def gfs_seconds(lanes: tuple[LaneTable, ...], kind: str) -> float:
    return totals(lanes, "busy_ns", kind)[1] / 1e9


data_loaders = pytest.mark.parametrize("data_loader", ["threads", pytest.param("native", marks=NEEDS_LIBRARY)])


class Rank(Alone):
    """A rank among others that are not there, which keeps a diary."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self.barriers = 0
        self.told: list[int] = []

    def barrier(self) -> None:
        self.barriers += 1

    def progress(self, amount: int) -> None:
        self.told.append(amount)


class TestCounts:
    @pytest.mark.parametrize("threads", [0, 1, 3])
    @data_loaders
    def test_a_whole_study(self, tmp_path: Path, threads: int, data_loader: str) -> None:
        trace = staged_run(tmp_path, f"read_threads={threads}", f"data_loader={data_loader}")
        assert (trace.rank, trace.node) == (0, 0)
        assert trace.loader == ("native" if data_loader == "native" else "threads" if threads else "inline")
        assert [epoch.epoch for epoch in trace.epochs] == [1, 2]
        for epoch in trace.epochs:
            assert epoch.samples == 24
            assert epoch.payload_bytes == 24_000
            assert totals(epoch.lanes, "ops", "open") == totals(epoch.lanes, "ops", "read") == [12, 12]
            assert totals(epoch.lanes, "nbytes", "read") == [12 * RECORD, 12 * RECORD]
            assert [lane.lane for lane in epoch.lanes] == list(range(max(1, threads)))
            assert (epoch.late_ops, epoch.late_seconds) == (0, 0)

    @pytest.mark.parametrize("loader", ["inline", "threads"])
    def test_the_loader_is_the_one_that_the_director_chose(self, tmp_path: Path, loader: str) -> None:
        """Whatever this rank's machine would have chosen: all ranks of a run must agree."""
        study = small_study("data_loader=auto")
        stage(study, str(tmp_path))
        trace = run_rank(RunTask(study, loader, str(tmp_path), None, "none", None), Alone())
        assert trace.loader == loader
        assert [epoch.samples for epoch in trace.epochs] == [24, 24]

    def test_bytes_are_those_really_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not samples × configured length: an npz sample needs the archive's directory and headers too."""
        dataset, access = ("format=npz", "num_samples_per_file=4", "num_files_train=6"), Counting()
        stage(small_study(*dataset), str(tmp_path))
        monkeypatch.setattr(directory, "Directory", lambda: access)
        trace = staged_run(tmp_path, *dataset, "epochs=1", "data_loader=threads")
        (epoch,) = trace.epochs
        read = sum(totals(epoch.lanes, "nbytes", "read"))
        assert read == sum(got for _, got in access.reads)
        assert read > epoch.payload_bytes == 24_000
        assert sum(totals(epoch.lanes, "ops", "read")) == len(access.reads) == 3 * 24

    def test_each_rank_reads_its_own_part(self, tmp_path: Path) -> None:
        study = small_study("nodes=3", "ranks_per_node=2", "num_files_train=26", "epochs=1")  # 26 = 6 × 4 + 2
        stage(study, str(tmp_path))
        groups = [Rank(rank, 6) for rank in range(6)]
        traces = [run_rank(task_of(study, tmp_path), group) for group in groups]
        assert [trace.node for trace in traces] == [0, 0, 1, 1, 2, 2]
        assert [trace.epochs[0].samples for trace in traces] == [4] * 6
        assert [sum(group.told) for group in groups] == [4] * 6
        plan = plan_of(study)
        for rank, trace in enumerate(traces):
            assert trace.epochs[0].order_digest == digest_of(planned_samples(plan, rank))
        assert len({group.barriers for group in groups}) == 1  # or they would wait for ever

    def test_progress_is_told_batch_by_batch(self, tmp_path: Path) -> None:
        study = small_study()
        stage(study, str(tmp_path))
        group = Rank()
        run_rank(task_of(study, tmp_path), group)
        assert group.told == [5, 5, 5, 5, 4] * 2

    @data_loaders
    def test_the_full_list_agrees_with_the_sums(self, tmp_path: Path, data_loader: str) -> None:
        trace = staged_run(tmp_path / "out", f"data_loader={data_loader}", ops=str(tmp_path))
        rows = np.fromfile(ops_path(str(tmp_path), 0), OP_ROW)
        for epoch in trace.epochs:
            own = rows[rows["epoch"] == epoch.epoch]
            assert len(own) == sum(int(lane.ops.sum()) for lane in epoch.lanes) == 3 * 24
            assert own["bytes"].sum() == sum(int(lane.nbytes.sum()) for lane in epoch.lanes)
            assert own["busy_ns"].sum() == sum(int(lane.busy_ns.sum()) for lane in epoch.lanes)
            assert set(own["step"].tolist()) == set(range(5))


class TestOrder:
    def test_what_was_delivered_is_the_plan_s_order_anew_each_epoch(self, tmp_path: Path) -> None:
        trace = staged_run(tmp_path, "epochs=3")
        plan = plan_of(small_study("epochs=3"))
        digests = [epoch.order_digest for epoch in trace.epochs]
        assert digests == [digest_of(planned_samples(plan, 0, epoch)) for epoch in (1, 2, 3)]
        assert len(set(digests)) == 3

    def test_shuffle_off_is_file_order_every_time(self, tmp_path: Path) -> None:
        trace = staged_run(tmp_path, "shuffle=off")
        assert {epoch.order_digest for epoch in trace.epochs} == {digest_of(list(range(24)))}

    @pytest.mark.parametrize("knob", ["read_threads=0", "read_threads=3", "prefetch_size=0", "cache_rate=0"])
    def test_how_it_is_read_does_not_change_the_order(self, tmp_path: Path, knob: str) -> None:
        plan = plan_of(small_study())
        assert staged_run(tmp_path, knob, "epochs=1").epochs[0].order_digest == digest_of(planned_samples(plan))

    def test_placement_decides_which_tier_is_read(self, tmp_path: Path) -> None:
        for rate, files in (("0%", [0, 24]), ("25%", [6, 18]), ("100%", [24, 0])):
            trace = staged_run(tmp_path, f"cache_rate={rate}", "epochs=1")
            assert totals(trace.epochs[0].lanes, "ops", "open") == files


class TestTimes:
    @pytest.mark.parametrize("mode", ["sleep", "busy"])
    def test_compute_and_stall_are_accounted_for(self, tmp_path: Path, mode: str) -> None:
        trace = staged_run(tmp_path, "computation_time=3 ms", "read_threads=0", mode=mode)
        for epoch in trace.epochs:
            assert epoch.steps.shape == (5, 3)
            assert epoch.steps_per_entry == 1
            read, stall, computing = epoch.steps.sum(axis=0)
            assert (epoch.steps[:, 2] >= 0.003).all()
            assert 5 * 0.003 <= epoch.compute_seconds == pytest.approx(computing)
            assert epoch.stall_seconds == pytest.approx(stall)
            assert 0 < read <= stall  # inline: the rank waits while it reads
            assert epoch.stall_seconds + epoch.compute_seconds <= epoch.seconds
            assert 0 < epoch.decode_seconds < epoch.seconds

    def test_without_compute_there_is_none(self, tmp_path: Path) -> None:
        for epoch in staged_run(tmp_path).epochs:
            assert epoch.compute_seconds == 0
            assert epoch.stall_seconds > 0

    def test_reading_ahead_hides_behind_compute(self, tmp_path: Path) -> None:
        """Reads of 2 ms behind compute of 6 ms: with prefetch the rank waits for the first batch only."""
        rates = ("gfs.emulate=true", "gfs.read_ops=500/s", "cache_rate=0", "batch_size=1", "num_files_train=12")

        def stall_per_reading(prefetch: int) -> float:
            study = small_study(*rates, "computation_time=6 ms", f"prefetch_size={prefetch}", "epochs=1")
            stage(study, str(tmp_path))
            board = Board(1)
            steps = run_rank(task_of(study, tmp_path, board), Alone()).epochs[0].steps[1:]
            board.close()
            return float(steps[:, 1].sum() / steps[:, 0].sum())

        assert stall_per_reading(0) >= 1
        assert any(stall_per_reading(2) < 0.5 for _ in range(3))  # a busy machine may wake us late


class TestEmulated:
    @data_loaders
    def test_operations_last_as_long_as_their_queues_say(self, tmp_path: Path, data_loader: str) -> None:
        rates = (
            f"data_loader={data_loader}",
            "gfs.emulate=true",
            "gfs.metadata_ops=1000/s",
            "gfs.read_ops=500/s",
            "num_files_train=12",
            "epochs=1",
        )
        study = small_study(*rates)
        stage(study, str(tmp_path))
        board = Board(2)
        gc.collect()  # what earlier tests left is not ours
        fds = set(os.listdir("/proc/self/fd"))
        epoch = run_rank(task_of(study, tmp_path, board), Alone()).epochs[0]
        assert set(os.listdir("/proc/self/fd")) == fds  # ways to the queues are given back
        board.close()
        assert totals(epoch.lanes, "ops", "read") == [6, 6]
        assert gfs_seconds(epoch.lanes, "open") >= 6 * 0.001
        assert gfs_seconds(epoch.lanes, "read") >= 6 * 0.002
        assert epoch.late_ops <= epoch.limited_ops == 12

    def test_a_tier_is_emulated_only_if_it_says_so(self, tmp_path: Path) -> None:
        """Rates describe the tier; `emulate` alone acts on them."""
        slow = staged_run(tmp_path, "gfs.metadata_ops=0.1/s", "gfs.latency=10 s", "epochs=1")  # minutes, if it did
        assert slow.epochs[0].samples == 24


class TestCold:
    @data_loaders
    def test_every_tier_says_what_was_cached_when_its_files_were_opened(self, tmp_path: Path, data_loader: str) -> None:
        for epoch in staged_run(tmp_path, f"data_loader={data_loader}").epochs:
            lfs, gfs = epoch.residency
            assert (lfs.tier, gfs.tier) == ("lfs", "gfs")
            assert lfs.checked_bytes == 12 * RECORD
            assert gfs.checked_bytes == 12 * RECORD  # the others are read from lfs
            for tier in (lfs, gfs):
                assert tier.resident_bytes is None or 0 <= tier.resident_bytes <= tier.checked_bytes
                assert 0 < tier.evict_seconds < epoch.seconds

    def test_residency_is_what_cachestat_says(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        python = ("epochs=1", "data_loader=threads")
        monkeypatch.setattr(cold, "cached_pages", lambda _fd: 1)
        warm = staged_run(tmp_path, *python).epochs[0].residency
        assert [tier.resident_bytes for tier in warm] == [12 * RECORD, 12 * RECORD]
        monkeypatch.setattr(cold, "cached_pages", lambda _fd: None)
        unknown = staged_run(tmp_path, *python).epochs[0].residency
        assert [tier.resident_bytes for tier in unknown] == [None, None]

    @pytest.mark.parametrize("emulated", [False, True])
    def test_real_tiers_are_evicted_as_they_are_read_and_emulated_ones_left_warm(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulated: bool
    ) -> None:
        study = small_study(f"gfs.emulate={str(emulated).lower()}", "gfs.metadata_ops=100000/s", "data_loader=threads")
        stage(study, str(tmp_path))
        lfs, gfs = (files.folder for files in tier_files(study, str(tmp_path)))
        access = Counting()
        monkeypatch.setattr(directory, "Directory", lambda: access)
        board = Board(1)
        run_rank(task_of(study, tmp_path, board), Alone())
        board.close()
        assert (
            sum(path.startswith(lfs) for path in access.evicted) == 2 * 2 * 12
        )  # when it is opened, before it is closed
        assert sum(path.startswith(gfs) for path in access.evicted) == (0 if emulated else 2 * 2 * 12)
        assert sum(path.startswith(lfs) for path in access.opened) == 2 * 12  # nobody opens it for that

    def test_nothing_is_evicted_or_looked_at_when_the_study_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        access = Counting()
        monkeypatch.setattr(directory, "Directory", lambda: access)
        assert staged_run(tmp_path, "evict=false", "data_loader=threads").epochs[0].residency == ()
        assert access.evicted == access.looked == []

    def test_ranks_together_evict_and_check_each_file_where_it_is_read_from(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study = small_study("nodes=2", "ranks_per_node=2", "epochs=1", "data_loader=threads")
        stage(study, str(tmp_path))
        access = Counting()
        monkeypatch.setattr(directory, "Directory", lambda: access)
        for rank in range(4):
            run_rank(task_of(study, tmp_path), Rank(rank, 4))
        assert len(access.opened) == 24
        assert sorted(access.opened) == sorted(access.looked) == sorted(access.evicted)[::2]

    @pytest.mark.parametrize("format_", ["raw", "npz", "hdf5"])
    def test_a_file_of_many_samples_is_evicted_before_its_first_and_after_its_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
    ) -> None:
        """In between the page cache is there, as it is in training."""
        study = small_study(
            f"format={format_}", "num_samples_per_file=6", "num_files_train=4", "batch_size=2", "read_threads=3",
            "nodes=1", "ranks_per_node=2", "epochs=1", "data_loader=threads", "cache_rate=0",
        )  # fmt: skip
        stage(study, str(tmp_path))
        access = Counting()
        monkeypatch.setattr(directory, "Directory", lambda: access)
        for rank in range(2):
            run_rank(task_of(study, tmp_path), Rank(rank, 2))
        files = set(access.opened)
        assert len(files) == 4 < len(access.opened)
        assert sorted(access.evicted) == sorted([*files, *files])  # by whichever rank is the first, and the last
        assert sorted(access.looked) == sorted(files)

    @NEEDS_LIBRARY
    @pytest.mark.parametrize("more", [(), ("io_engine=uring",)])
    def test_the_native_loader_looks_at_each_file_of_many_samples_once(
        self, tmp_path: Path, more: tuple[str, ...]
    ) -> None:
        packed = ("format=raw", "num_samples_per_file=6", "num_files_train=4", "batch_size=2", "read_threads=3")
        trace = staged_run(tmp_path, *packed, *more, "data_loader=native", "cache_rate=0", "epochs=2")
        assert [epoch.residency[1].checked_bytes for epoch in trace.epochs] == [24_000, 24_000]

    def test_what_somebody_left_in_the_page_cache_is_cold_when_it_is_read(self, tmp_path: Path) -> None:
        """A dataset that is there already, a run that was killed, copies: whoever read it before us."""
        study = small_study("epochs=1", "cache_rate=0", "record_length_bytes=64 KiB")
        stage(study, str(tmp_path))
        os.sync()
        _, files = tier_files(study, str(tmp_path))
        for file in range(24):
            Path(files.path(file)).read_bytes()
        (_, gfs) = run_rank(task_of(study, tmp_path), Alone()).epochs[0].residency
        if gfs.resident_bytes is None or filesystem_of(str(tmp_path)) in IN_MEMORY:
            pytest.skip("this kernel has no cachestat (Linux 6.5), or this is tmpfs, whose pages are the files")
        assert gfs.resident_bytes == 0


class TestMetadata:
    @pytest.fixture
    def dropped(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        calls: list[list[str]] = []
        monkeypatch.setattr(dropping, "drop_metadata", calls.append)
        return calls

    def test_names_are_dropped_before_each_epoch_by_the_first_rank_of_every_node(
        self, tmp_path: Path, dropped: list[list[str]]
    ) -> None:
        study = small_study(
            "nodes=2", "ranks_per_node=2", "evict=metadata", "epochs=3", "gfs.emulate=true", "gfs.metadata_ops=100000/s"
        )
        stage(study, str(tmp_path))
        groups = [Rank(rank, 4) for rank in range(4)]
        board = Board(1)
        for group in groups:
            run_rank(task_of(study, tmp_path, board), group)
        board.close()
        assert len(dropped) == 2 * 3
        assert all(len(roots) == 1 and "lfs" in roots[0] for roots in dropped)  # the other one is emulated
        assert len({group.barriers for group in groups}) == 1

    @pytest.mark.parametrize("evict", ["true", "false"])
    def test_nobody_drops_anything_who_was_not_asked_to(
        self, tmp_path: Path, dropped: list[list[str]], evict: str
    ) -> None:
        staged_run(tmp_path, f"evict={evict}")
        assert dropped == []


class TestErrors:
    def test_a_vanished_file_is_named_with_the_rank(self, tmp_path: Path) -> None:
        study = small_study("nodes=2", "ranks_per_node=2", "cache_rate=0")
        stage(study, str(tmp_path))
        plan, gfs = plan_of(study), tier_files(study, str(tmp_path))[1]
        path = gfs.path(planned_samples(plan, 3)[2])
        os.unlink(path)
        run_rank(task_of(small_study("nodes=2", "ranks_per_node=2", "cache_rate=0", "epochs=1"), tmp_path), Rank(2, 4))
        with pytest.raises(VanishedDataError) as caught:
            run_rank(task_of(study, tmp_path), Rank(3, 4))
        assert str(caught.value).startswith(f"rank 3 (node 1): {path}: has disappeared")

    def test_a_damaged_file_is_named_with_the_rank(self, tmp_path: Path) -> None:
        study = small_study()
        stage(study, str(tmp_path))
        for files in tier_files(study, str(tmp_path)):
            if os.path.exists(files.path(3)):
                Path(files.path(3)).write_bytes(bytes(RECORD))
        with pytest.raises(DamagedDataError, match=r"^rank 0 \(node 0\): .*000000003\.tfrecord: sample 0: wrong"):
            run_rank(task_of(study, tmp_path), Alone())
