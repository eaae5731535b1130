"""A whole study on local ranks: what was really read, what is resumed, what is refused."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.small_study import NEEDS_LIBRARY
from tests.tiny import tiny
from tests.traces import as_measured, rate_of
from tierscope.errors import DamagedDataError, UserError
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.native import library
from tierscope.output.store import RunStore
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.spec.study import Study
from tierscope.trace.decode import encode
from tierscope.trace.description import DescribedTier
from tierscope.trace.trace import RunKey, Trace
from tierscope.watch import Silent

pytestmark = pytest.mark.whole


class Diary(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.phases: list[tuple[str, int]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def phase(self, title: str, total: int, unit: str) -> None:
        self.phases.append((title, total))


def run(study: Study, out: Path, ops: bool = False) -> Diary:
    diary, crews = Diary(), Crews()
    try:
        run_study(study, str(out), crews, diary, ops)
    finally:
        crews.close()
    return diary


def traces(out: Path) -> list[Trace]:
    return list(RunStore(str(out)).load_all())


def test_every_point_and_repetition_is_measured_in_a_random_order(tmp_path: Path) -> None:
    run(tiny("repetitions=2"), tmp_path / "out")
    found = traces(tmp_path / "out")
    assert [trace.key for trace in found] == [RunKey(point, rep) for point in range(3) for rep in (1, 2)]
    times = {
        trace.key: (tmp_path / "out" / "runs" / f"{trace.key.point:04d}-r{trace.key.repetition}.parquet")
        .stat()
        .st_mtime_ns
        for trace in found
    }
    order = sorted(times, key=lambda key: times[key])
    assert [key.repetition for key in order] == [1, 1, 1, 2, 2, 2]
    assert [key.point for key in order] != [0, 1, 2, 0, 1, 2]


def test_the_near_tier_serves_exactly_the_cached_share(tmp_path: Path) -> None:
    run(tiny(), tmp_path / "out")
    for trace in traces(tmp_path / "out"):
        reads = (
            trace.io.filter(pl.col("kind") == "read")
            .group_by("tier", "epoch")
            .agg(pl.col("ops").sum(), pl.col("bytes").sum())
        )
        cached = round(24 * rate_of(trace))
        for epoch in (1, 2):
            by_tier = {row[0]: row[2:] for row in reads.filter(pl.col("epoch") == epoch).iter_rows()}
            assert by_tier.get("lfs", (0, 0)) == (cached, cached * 1024)
            assert by_tier.get("gfs", (0, 0)) == (24 - cached, (24 - cached) * 1024)


def test_the_order_that_was_read_is_the_plans_and_changes_every_epoch(tmp_path: Path) -> None:
    """A peer's seeded shuffle read the same order in every epoch; ours is recorded as it happened."""
    study = tiny("sweep={}", "num_files_train=64", "cache_rate=50%")
    run(study, tmp_path / "out", ops=True)
    plan = Plan.of(study, make_format(study).file_bytes)
    for node in (0, 1):
        ops = pl.read_parquet(tmp_path / "out" / "ops" / f"0000-r1-node{node}.parquet").filter(pl.col("kind") == "read")
        orders = []
        for epoch in (1, 2):
            seen = ops.filter(pl.col("epoch") == epoch).sort("start_seconds")["file"].to_list()
            planned = np.concatenate([block.files for block in plan.reads(node, epoch)]).tolist()
            assert seen == planned
            orders.append(seen)
        assert orders[0] != orders[1]


def test_a_remainder_is_trimmed_and_said_and_nothing_hangs(tmp_path: Path) -> None:
    diary = run(tiny("nodes=5", "num_files_train=23", "sweep={}"), tmp_path / "out")
    assert any(
        "23 samples do not divide evenly among 5 ranks: 3 dropped in every epoch" in note for note in diary.notes
    )
    (trace,) = traces(tmp_path / "out")
    assert trace.ranks["samples"].unique().to_list() == [4]
    assert as_measured(trace).trimmed_samples == 3


def test_a_sweep_over_nodes_runs_with_as_many_ranks_as_each_point_needs(tmp_path: Path) -> None:
    run(tiny("sweep={nodes: [1, 3]}", "cache_rate=50%"), tmp_path / "out")
    assert [trace.ranks["rank"].n_unique() for trace in traces(tmp_path / "out")] == [1, 3]


def test_a_sweep_over_the_dataset_reads_the_right_files(tmp_path: Path) -> None:
    run(tiny("sweep={record_length_bytes: [512, 2 KiB], format: [raw, tfrecord]}"), tmp_path / "out")
    payloads = [(trace.about.sweep, trace.ranks["payload_bytes"].sum()) for trace in traces(tmp_path / "out")]
    assert [payload for _, payload in payloads] == [48 * 512, 48 * 512, 48 * 2048, 48 * 2048]


@pytest.mark.parametrize(
    "setting",
    [
        "shuffle=local",
        "shuffle=chunked",
        "shuffle=off",
        "read_threads=0",
        "read_threads=3",
        "num_samples_per_file=3",
        "num_subfolders_train=4",
        "transfer_size=512",
        "format=npz",
    ],
)
def test_every_way_of_reading_reads_every_sample_once(tmp_path: Path, setting: str) -> None:
    run(tiny("sweep={}", "cache_rate=50%", setting), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    samples = 72 if "per_file" in setting else 24
    assert trace.ranks.group_by("epoch").agg(pl.col("samples").sum())["samples"].to_list() == [samples, samples]
    assert trace.ranks["payload_bytes"].sum() == samples * 1024 * 2


def test_only_what_is_missing_runs_again(tmp_path: Path) -> None:
    study = tiny()
    run(study, tmp_path / "out")
    runs = tmp_path / "out" / "runs"
    kept = {path: path.read_bytes() for path in runs.iterdir() if path.name != "0001-r1.parquet"}
    (runs / "0001-r1.parquet").unlink()
    (runs / "0002-r1.parquet.123.tmp").write_bytes(b"half a file of a killed run")
    diary = run(study, tmp_path / "out")
    assert any("2 of 3 runs are finished" in note for note in diary.notes)
    assert not list(runs.glob("*.tmp"))
    assert (runs / "0001-r1.parquet").exists()
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_near_tier_that_is_gone_is_staged_again(tmp_path: Path) -> None:
    """An LFS may be gone with the job that staged it."""
    study = tiny()
    run(study, tmp_path / "out")
    (tmp_path / "out" / "runs" / "0002-r1.parquet").unlink()
    shutil.rmtree(tmp_path / "out" / "tiers" / "lfs" / "1")
    diary = run(study, tmp_path / "out")
    assert ("generating data", 24 * 1024) in diary.phases
    assert len(traces(tmp_path / "out")) == 3


def test_a_wrong_checksum_is_named_with_the_rank_and_stops_the_run(tmp_path: Path) -> None:
    study = tiny("format=tfrecord", "sweep={}")
    run(study, tmp_path / "out")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    victim = sorted((tmp_path / "out" / "tiers" / "gfs").rglob("*.tfrecord"))[5]
    content = bytearray(victim.read_bytes())
    content[100] ^= 1
    victim.write_bytes(content)
    with pytest.raises(DamagedDataError, match=rf"rank \d .*{victim.name}: sample 0: wrong TFRecord checksum"):
        run(study, tmp_path / "out")
    victim.unlink()
    run(study, tmp_path / "out")
    assert len(traces(tmp_path / "out")) == 1


@pytest.mark.faults
def test_a_truncated_file_is_written_anew_by_the_same_command(tmp_path: Path) -> None:
    study = tiny("sweep={}")
    run(study, tmp_path / "out")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    victim = next((tmp_path / "out" / "tiers" / "gfs").rglob("*.raw"))
    content = victim.read_bytes()
    victim.write_bytes(content[:100])
    diary = run(study, tmp_path / "out")
    assert victim.read_bytes() == content
    again = f"{victim}: its size has changed; generating 1 such file in {victim.parent} again"
    assert again in diary.notes
    assert any(note.endswith("; verified: one sample in 2048") for note in diary.notes)


@pytest.mark.faults
def test_a_flipped_bit_stops_the_study_and_the_deleted_file_is_generated_anew(tmp_path: Path) -> None:
    """In every format: tests/loaders/test_payloads.py."""
    study = tiny("sweep={}", "epochs=1", "reader.verify=all", "nodes=1")
    run(study, tmp_path / "out")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    victim = min((tmp_path / "out" / "tiers" / "gfs").rglob("000000005.raw"))
    content = bytearray(victim.read_bytes())
    content[500] ^= 1
    victim.write_bytes(content)
    with pytest.raises(
        DamagedDataError, match=rf"rank 0 .*{victim.name}: sample 0: its checksum is .*; delete the file"
    ):
        run(study, tmp_path / "out")
    victim.unlink()
    run(study, tmp_path / "out")


def test_emulated_tiers_are_labelled_in_the_trace(tmp_path: Path) -> None:
    run(tiny("sweep={}", "gfs.metadata_ops=2000/s", "gfs.emulate=true"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    device = str(os.stat(tmp_path).st_dev)
    assert trace.about.tiers == (DescribedTier(name="lfs", device=device), DescribedTier(name="gfs", emulated=True))
    json.dumps(encode(trace.about), allow_nan=False)


@pytest.mark.parametrize("data_loader", ["threads", pytest.param("native", marks=NEEDS_LIBRARY)])
def test_the_loader_that_was_used_is_in_the_trace(tmp_path: Path, data_loader: str) -> None:
    run(tiny("sweep={}", f"data_loader={data_loader}"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    assert as_measured(trace).loader == data_loader


def test_a_loader_that_is_missing_is_noticed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "load", lambda: None)
    with pytest.raises(UserError, match="set data_loader: threads"):
        run(tiny("data_loader=native"), tmp_path / "out")
    assert not (tmp_path / "out" / "tiers").exists()


def test_an_emulated_metadata_server_limits_the_opens(tmp_path: Path) -> None:
    """2 ranks, 200 opens/s: 40 files cannot be opened in less than 0.2 s; a fast machine cannot cheat the queue."""
    run(tiny("sweep={}", "num_files_train=40", "gfs.metadata_ops=200/s", "gfs.emulate=true"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    longest = trace.ranks.group_by("epoch").agg(pl.col("epoch_seconds").max())  # ranks start their clocks one by one
    assert min(longest["epoch_seconds"].to_list()) >= 38 / 200


def test_compute_is_accounted_and_slept_when_ranks_outnumber_cores(tmp_path: Path) -> None:
    ranks = len(os.sched_getaffinity(0)) + 1
    run(tiny("sweep={}", "computation_time=5 ms", "nodes=1", f"ranks_per_node={ranks}"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    assert as_measured(trace).compute == "sleep"
    assert float(trace.ranks["compute_seconds"].min()) >= 2 * 0.005  # type: ignore[arg-type]


def test_no_space_is_found_out_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"4 TiB must be written, but the disk at .* holds only"):
        run(tiny("num_files_train=4", "record_length_bytes=1 TiB", "lfs.capacity=null"), tmp_path / "out")
    assert not list((tmp_path / "out" / "tiers").rglob("*.raw"))


def test_two_studies_do_not_use_the_same_files_at_the_same_time(tmp_path: Path) -> None:
    shared = (f"gfs.path={tmp_path}/gfs", "sweep={}")
    run(tiny(*shared), tmp_path / "one")
    with (tmp_path / "gfs" / "lock").open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"gfs: in use by another study"):
            run(tiny(*shared), tmp_path / "two")
    diary = run(tiny(*shared), tmp_path / "two")
    assert ("generating data", 24 * 1024) not in diary.phases  # the global files are shared, not written again
    assert len(traces(tmp_path / "two")) == 1


def test_a_refused_study_touches_nothing_of_one_that_is_using_the_tier(tmp_path: Path) -> None:
    """Also when it sees files that a restart of the machine may have emptied."""
    study = tiny(f"gfs.path={tmp_path}/gfs", "sweep={}")
    run(study, tmp_path / "one")
    marker = next(path for path in (tmp_path / "gfs").rglob("tierscope.json") if path.parent.parent.name == "gfs")
    state = json.loads(marker.read_text())
    marker.write_text(json.dumps({**state, "complete": False, "boot_id": "another boot"}))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "gfs").rglob("*.raw")}
    with (tmp_path / "gfs" / "lock").open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="gfs: in use by another study"):
            run(study, tmp_path / "two")
        assert {path: path.stat().st_mtime_ns for path in (tmp_path / "gfs").rglob("*.raw")} == before
    run(study, tmp_path / "two")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "gfs").rglob("*.raw")} != before  # now they are


def test_space_for_all_points_is_asked_for_before_any_is_written(tmp_path: Path) -> None:
    """Each of the two would fit, both do not."""
    free = shutil.disk_usage(tmp_path).free
    sizes = f"sweep={{record_length_bytes: [{free // 40}, {free // 41}]}}"
    with pytest.raises(UserError, match=r"must be written, but only .* is free"):
        run(tiny(sizes, "lfs.capacity=null", "cache_rate=0"), tmp_path / "out")
    assert not list((tmp_path / "out" / "tiers").rglob("*.raw"))
