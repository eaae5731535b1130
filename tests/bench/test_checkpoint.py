"""Checkpoints of one rank, and of several that meet: files, operations, times, recovery."""

import json
import os
import threading
import zlib
from pathlib import Path

import pytest

from tests.accesses import Failing, os_error
from tests.bench.test_run_rank import staged_run, task_of
from tests.small_study import small_study, stage, totals
from tests.traces import empty_lane
from tierscope.bench import checkpoint
from tierscope.bench.checkpoint_files import within_epoch
from tierscope.bench.group import Alone
from tierscope.bench.recovery import ReadBack, read_back
from tierscope.bench.run import run_rank
from tierscope.errors import DamagedDataError, OutOfSpaceError
from tierscope.native import library
from tierscope.spec.study import Study
from tierscope.storage import directory
from tierscope.storage.emulated import Board
from tierscope.storage.stations import map_stations
from tierscope.trace.ops import CHECKPOINT_LANE, CHECKPOINT_LANES
from tierscope.trace.rank_trace import RankEpoch, RankTrace
from tierscope.trace.recorder import LaneTable

pytestmark = pytest.mark.whole

FIVE = 1024 + 1024 + 4096 + 65536 + (4 << 20)
EVERY_TWO = "steps_between_checkpoints=2"  # of 5 steps in an epoch, 2 epochs


def lane_of(epoch: RankEpoch) -> LaneTable:
    (found,) = (lane for lane in epoch.lanes if lane.lane in CHECKPOINT_LANES)
    return found


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def together(study: Study, out: Path, board: Board | None = None) -> list[RankTrace]:
    """All ranks of a study as threads that meet."""
    ranks, barrier = study.system.ranks, threading.Barrier(study.system.ranks, timeout=30)

    class Member(Alone):
        def __init__(self, rank: int) -> None:
            self.rank, self.size = rank, ranks

        def barrier(self) -> None:
            barrier.wait()

        meet = barrier

    found: dict[int, RankTrace] = {}

    def work(rank: int) -> None:
        try:
            found[rank] = run_rank(task_of(study, out, board), Member(rank))
        except BaseException:
            barrier.abort()
            raise

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(ranks)]


class TestOneRank:
    @pytest.mark.parametrize("fsync", ["true", "false"])
    def test_the_papers_files_after_every_other_step(self, tmp_path: Path, fsync: str) -> None:
        trace = staged_run(tmp_path, EVERY_TWO, f"checkpoint.fsync={fsync}", "checkpoint.keep=3")
        first, second = trace.epochs  # after steps 2, 4 | 6, 8, 10
        assert trace.checkpoints
        assert (trace.checkpoints.complete, trace.checkpoints.nbytes) == (5, FIVE)
        assert names(tmp_path / "gfs" / "checkpoints")[:3] == ["step-000006", "step-000008", "step-000010"]
        assert len(names(tmp_path / "gfs" / "checkpoints")) == 4
        for epoch, count in ((first, 2), (second, 3)):
            lane = [lane_of(epoch)]
            written = totals(lane, "nbytes", "write")[1] - count * FIVE
            assert 0 < written < count * 2000  # what is said about them
            assert totals(lane, "ops", "open") == totals(lane, "ops", "close") == [0, count * 6]
            assert totals(lane, "ops", "sync") == [0, count * 8 if fsync == "true" else 0]
            assert totals(lane, "ops", "read") == [0, 0]
            spent = trace.checkpoints.seconds[:2] if count == 2 else trace.checkpoints.seconds[2:]
            assert epoch.checkpoint_seconds == pytest.approx(sum(spent), rel=0.05)
            assert epoch.checkpoint_seconds < epoch.seconds

    def test_every_file_has_the_checksum_that_is_written_down(self, tmp_path: Path) -> None:
        staged_run(tmp_path, EVERY_TWO, "model_parameters=100000", "transfer_size=4096")
        folder = tmp_path / "gfs" / "checkpoints" / "step-000010"
        said = json.loads((folder / "checkpoint.json").read_text())
        assert said["step"] == 10
        assert said["sizes"] == {"weights-000000.bin": 200_000, "optimizer-000001.bin": 1_200_000}
        assert names(folder) == ["checkpoint.json", "optimizer-000001.bin", "weights-000000.bin"]
        for name, about in said["files"].items():
            whole = (folder / name).read_bytes()
            assert about == {"bytes": len(whole), "crc32": f"{zlib.crc32(whole):08x}"}

    def test_after_epochs_and_not_twice(self, tmp_path: Path) -> None:
        trace = staged_run(tmp_path, "epochs_between_checkpoints=2", "steps_between_checkpoints=10")
        assert trace.checkpoints
        assert trace.checkpoints.complete == 1
        assert [epoch.checkpoint_seconds > 0 for epoch in trace.epochs] == [False, True]
        assert names(tmp_path / "gfs" / "checkpoints")[0] == "step-000010"
        assert trace.epochs[1].seconds > trace.epochs[1].checkpoint_seconds

    def test_without_any_nothing_is_made(self, tmp_path: Path) -> None:
        trace = staged_run(tmp_path)
        assert trace.checkpoints is None
        assert not (tmp_path / "gfs" / "checkpoints").exists()

    def test_a_full_disk_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(directory, "Directory", lambda: Failing("pwrite", os_error(28), after=25))
        with pytest.raises(OutOfSpaceError, match=r"step-000004\.part.*: No space left .* while writing a checkpoint"):
            staged_run(tmp_path, EVERY_TWO, "data_loader=threads", "checkpoint.background=false")
        assert names(tmp_path / "gfs" / "checkpoints") == ["step-000002", "step-000004.part", "tierscope.json"]

    def test_a_full_disk_in_the_background(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(directory, "Directory", lambda: Failing("pwrite", os_error(28), after=25))
        with pytest.raises(OutOfSpaceError, match="while writing a checkpoint"):
            staged_run(tmp_path, EVERY_TWO, "data_loader=threads", "checkpoint.background=true")


class TestRecovery:
    def test_the_last_one_is_read_back(self, tmp_path: Path) -> None:
        trace = staged_run(tmp_path, EVERY_TWO, "checkpoint.verify=true")
        assert trace.checkpoints
        assert trace.checkpoints.verified_bytes == FIVE
        assert 0 < (trace.checkpoints.recovery_seconds or 0) < 5
        assert totals(trace.epochs[1].lanes, "nbytes", "read") == [12 * 1016, 12 * 1016]  # not in an epoch

    @pytest.mark.parametrize("damage", ["flip", "cut", "remove", "grow", "manifest"])
    def test_any_damage_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
        name = "checkpoint.json" if damage == "manifest" else "part-000003.bin"
        path = tmp_path / "gfs" / "checkpoints" / "step-000010" / name

        def damaged(*given: object) -> ReadBack:
            whole = bytearray(path.read_bytes())
            whole[len(whole) // 2] ^= 1
            left = {"flip": whole, "cut": whole[:-1], "grow": whole + b"x", "manifest": b"{}", "remove": None}[damage]
            path.unlink() if left is None else path.write_bytes(left)
            return read_back(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(checkpoint, "read_back", damaged)
        with pytest.raises(DamagedDataError, match=rf"rank 0 .*step-000010/{name}: .*trust it with checkpoints"):
            staged_run(tmp_path, EVERY_TWO, "checkpoint.verify=true")


class TestBackground:
    def test_it_is_written_while_training_goes_on(self, tmp_path: Path) -> None:
        """Compute and writing take 0.1 s each; only the last one is waited for to its end."""
        settings = ("epochs_between_checkpoints=1", "epochs=3", "gfs.bandwidth=42 MB/s", "computation_time=40ms")
        seconds = {}
        for background in ("false", "true"):
            out = tmp_path / background
            study = small_study(*settings, "gfs.emulate=true", f"checkpoint.background={background}", "cache_rate=100%")
            stage(study, str(out))
            board = Board(map_stations(study.system, study.seed, 1).count)
            trace = run_rank(task_of(study, out, board), Alone())
            board.close()
            assert trace.checkpoints
            assert trace.checkpoints.complete == 3
            assert min(trace.checkpoints.seconds) > 0.09
            seconds[background] = [epoch.checkpoint_seconds for epoch in trace.epochs]
            written = [totals([lane_of(epoch)], "nbytes", "write")[1] for epoch in trace.epochs]
            assert sum(written) > 3 * FIVE
            assert (written[0] > FIVE) == (background == "false")  # else it is another epoch's
        assert min(seconds["false"]) > 0.09
        assert max(seconds["true"][:2]) < 0.09
        assert seconds["true"][2] > 0.09

    @pytest.mark.faults
    def test_a_run_that_fails_leaves_no_thread(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        study = small_study(
            "steps_between_checkpoints=4",
            "checkpoint.background=true",
            "model_parameters=1000000",
            "gfs.emulate=true",
            "gfs.bandwidth=1 MB/s",
            "data_loader=threads",
            "cache_rate=100%",
        )
        stage(study, str(tmp_path))
        board = Board(map_stations(study.system, study.seed, 1).count)
        monkeypatch.setattr(checkpoint.Checkpointer, "after_epoch", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_rank(task_of(study, tmp_path, board), Alone())
        board.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("checkpoint")]
        assert "step-000004" not in names(tmp_path / "gfs" / "checkpoints")


class TestEmulated:
    @pytest.mark.parametrize(("mode", "ranks"), [("rank_zero", 1), ("all_ranks", 2)])
    def test_the_tiers_bandwidth_bounds_it(self, tmp_path: Path, mode: str, ranks: int) -> None:
        study = small_study(
            "epochs_between_checkpoints=1",
            "epochs=1",
            f"ranks_per_node={ranks}",
            f"mode={mode}",
            "gfs.bandwidth=20 MB/s",
            "gfs.emulate=true",
            "cache_rate=100%",
            "checkpoint.verify=true",
        )
        stage(study, str(tmp_path))
        board = Board(map_stations(study.system, study.seed, 1).count)
        found = together(study, tmp_path, board)
        board.close()
        expected = FIVE / 20e6
        logs = [trace.checkpoints for trace in found if trace.checkpoints]
        assert expected < max(log.seconds[0] for log in logs) < expected * 3
        assert expected < max(log.recovery_seconds or 0 for log in logs) < expected * 3
        for trace in found:
            assert totals([lane_of(trace.epochs[0])], "ops", "sync")[1] > 0
            assert trace.epochs[0].limited_ops > 0


class TestManyRanks:
    @pytest.mark.parametrize("background", ["false", "true"])
    def test_every_rank_writes_its_part(self, tmp_path: Path, background: str) -> None:
        study = small_study(
            EVERY_TWO,
            "ranks_per_node=3",
            "batch_size=2",
            "mode=all_ranks",
            "checkpoint.verify=true",
            "model_parameters=100001",
            "zero_stage=1",
            f"checkpoint.background={background}",
        )
        stage(study, str(tmp_path))
        found = together(study, tmp_path)
        assert [trace.checkpoints.complete for trace in found if trace.checkpoints] == [4, 4, 4]
        assert sum(trace.checkpoints.verified_bytes or 0 for trace in found if trace.checkpoints) == 14 * 100_001
        folder = tmp_path / "gfs" / "checkpoints"
        assert names(folder) == ["step-000006", "step-000008", "tierscope.json"]
        assert names(folder / "step-000008") == [
            *("checkpoint.json", "optimizer-000003.bin", "optimizer-000004.bin", "optimizer-000005.bin"),
            *("rank-000001.json", "rank-000002.json", "weights-000000.bin"),
        ]

    def test_a_nodes_own_tier_holds_the_parts_of_its_ranks(self, tmp_path: Path) -> None:
        study = small_study(
            EVERY_TWO,
            "nodes=2",
            "ranks_per_node=2",
            "batch_size=2",
            "mode=all_ranks",
            "checkpoint.tier=lfs",
            "keep=1",
            "checkpoint.verify=true",
        )
        stage(study, str(tmp_path))
        found = together(study, tmp_path)
        assert sum(trace.checkpoints.nbytes for trace in found if trace.checkpoints) == FIVE
        for node in (0, 1):
            folder = tmp_path / "lfs" / str(node) / "checkpoints"
            assert names(folder) == ["step-000006", "tierscope.json"]
            said = json.loads((folder / "step-000006" / "checkpoint.json").read_text())
            assert said["of_ranks"] == [2 * node, 2 * node + 1]
            sizes = {path.name: path.stat().st_size for path in (folder / "step-000006").glob("*.bin")}
            assert sizes == said["sizes"]
            assert sum(sizes.values()) == FIVE // 2
        assert not (tmp_path / "gfs" / "checkpoints").exists()

    def test_ranks_that_write_nothing_do_not_wait(self, tmp_path: Path) -> None:
        study = small_study(EVERY_TWO, "ranks_per_node=2", "batch_size=2", "checkpoint.verify=true")
        stage(study, str(tmp_path))
        first, other = together(study, tmp_path)
        assert first.checkpoints
        assert other.checkpoints
        assert first.checkpoints.verified_bytes == FIVE
        assert (other.checkpoints.seconds, other.checkpoints.nbytes) == ((), 0)
        assert all(epoch.checkpoint_seconds == 0 for epoch in other.epochs)
        assert all(epoch.checkpoint_seconds > 0 for epoch in first.epochs)


@pytest.mark.parametrize("loader", ["threads", "native"])
def test_wall_seconds_of_all_lanes_are_no_more_than_the_epoch(loader: str, tmp_path: Path) -> None:
    """Threads read ahead while the rank stands still for a checkpoint."""
    if loader == "native" and library.load() is None:
        pytest.skip("the native library is not built")
    settings = (EVERY_TWO, f"data_loader={loader}", "read_threads=4", "prefetch_size=8", "num_files_train=64")
    done = staged_run(tmp_path, *settings)
    for epoch in done.epochs:
        assert lane_of(epoch).wall_ns.sum() > 0
        assert sum(int(lane.wall_ns.sum()) for lane in epoch.lanes) <= epoch.seconds * 1e9 * (1 + 1e-9)


def test_what_two_clocks_count_twice_is_taken_off_the_checkpoint() -> None:
    reading, writing = (empty_lane(number) for number in (0, CHECKPOINT_LANE))
    reading.wall_ns[0], writing.wall_ns[[1, 2]] = 700, (600, 200)
    capped = within_epoch(writing, [reading], 1100)
    assert capped.wall_ns.tolist()[1:3] == [300, 100]
    assert writing.wall_ns.sum() == 800  # the lane itself is as it was
    assert within_epoch(writing, [reading], 1500) is writing
    assert within_epoch(writing, [reading], 600).wall_ns.sum() == 0
