"""Every workload preset, tiny, on real directories: is its I/O what the table of DLIO's paper says?"""

import itertools
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from tests.measure.test_run import run
from tierscope.spec.load import load_study
from tierscope.spec.scale import scale_study
from tierscope.spec.study import Study
from tierscope.trace.ops import STATISTICS_LANE

pytestmark = pytest.mark.whole

KIB = 1024


def small(name: str, share: float, *settings: str) -> Study:
    return scale_study(load_study(name, ("computation_time=0", *settings)), share)


def operations(study: Study, out: Path) -> pl.DataFrame:
    run(study, out, ops=True)
    return pl.concat(pl.read_parquet(path) for path in sorted((out / "ops").glob("*-node*.parquet")))


def reads(ops: pl.DataFrame, epoch: int = 1) -> pl.DataFrame:
    return ops.filter(pl.col("kind") == "read", pl.col("epoch") == epoch)


def sizes(ops: pl.DataFrame) -> Counter[int]:
    return Counter(ops["bytes"].to_list())


def files_on_gfs(out: Path, suffix: str) -> int:
    return len(list((out / "tiers" / "gfs").rglob(f"*{suffix}")))


def test_cosmic_tagger_reads_one_file_in_tiny_pieces_in_order(tmp_path: Path) -> None:
    study = small("cosmic-tagger", 1e-5)
    ops = operations(study, tmp_path)
    assert files_on_gfs(tmp_path, ".h5") == 1
    data = reads(ops).filter(pl.col("bytes") == 2 * KIB)
    rank = data.filter(pl.col("rank") == 0).sort("start_seconds")
    assert len(data) * 2 * KIB == pytest.approx(2 * 32 * 40_000, rel=0.15)  # one step of two ranks
    assert len(data) > 0.8 * len(reads(ops))
    offsets = rank["offset"].to_list()
    backwards = sum(later < earlier for earlier, later in itertools.pairwise(offsets))
    assert backwards < 0.05 * len(offsets)
    other = min(data.filter(pl.col("rank") == 1)["offset"].to_list())
    assert other > 40 * 40_000  # it begins half a file further on


def test_dffn_reads_chunks_of_64_kib_at_random(tmp_path: Path) -> None:
    ops = operations(small("dffn", 1e-5, "epochs=2"), tmp_path)
    assert files_on_gfs(tmp_path, ".h5") == 1
    assert files_on_gfs(tmp_path, "beside.statistics") == 1
    for epoch in (1, 2):
        found = sizes(reads(ops, epoch))
        assert found[64 * KIB] == 2 * 2 * 32  # one step of two ranks
        assert found[100] == 2 * 32  # an entry of the metadata file for each sample
    offsets = [reads(ops, epoch).filter(pl.col("bytes") == 64 * KIB)["offset"].to_list() for epoch in (1, 2)]
    assert offsets[0] != offsets[1]
    assert offsets[0] != sorted(offsets[0])


@pytest.mark.parametrize(("name", "share", "per_rank"), [("cosmoflow", 2e-5, 3), ("imagenet", 1e-4, 32)])
def test_tfrecords_in_requests_of_256_kib(name: str, share: float, per_rank: int, tmp_path: Path) -> None:
    study = small(name, share, "epochs=2")
    ops = operations(study, tmp_path)
    assert files_on_gfs(tmp_path, ".tfrecord") == study.workload.dataset.num_files_train == 2
    record = study.workload.dataset.record_length_bytes + 16
    whole, rest = divmod(record, 256 * KIB)
    for epoch in (1, 2):
        wanted = Counter({256 * KIB: 2 * per_rank * whole})
        wanted.update({rest: 2 * per_rank} if rest else {})
        assert sizes(reads(ops, epoch)) == wanted
        for rank in (0, 1):
            own = reads(ops, epoch).filter(pl.col("rank") == rank).sort("start_seconds")
            assert own["file"].n_unique() == 1
            assert own["offset"].is_sorted()


def test_candle_reads_all_of_it_once(tmp_path: Path) -> None:
    study = small("candle", 2e-5, "epochs=3")
    ops = operations(study, tmp_path)
    dataset = study.workload.dataset
    row = 65_536 * 11
    assert files_on_gfs(tmp_path, ".csv") == 1
    for rank in (0, 1):
        own = reads(ops).filter(pl.col("rank") == rank)
        assert own["bytes"].sum() == dataset.samples * row  # all of the one file
        batches = dataset.samples // study.workload.reader.batch_size
        assert len(own) - batches <= sizes(own)[256 * KIB]  # whatever a row takes; what is left of a batch is shorter
    assert reads(ops, 2).is_empty()
    assert reads(ops, 3).is_empty()


def test_frnn_reads_whole_files(tmp_path: Path) -> None:
    ops = operations(small("frnn", 0.001), tmp_path)
    assert files_on_gfs(tmp_path, ".npz") == 3
    for epoch in (1, 2, 3):
        beside = pl.col("lane") == STATISTICS_LANE
        assert sizes(reads(ops, epoch).filter(beside)) == {64: 2 * 14}
        found = reads(ops, epoch).filter(~beside)
        assert len(found) == found["file"].n_unique() == 2  # one each; the third is left over
        assert not set(found["file"]) & set(reads(ops, epoch).filter(beside)["file"])
        assert found["bytes"].is_between(2**21, 2**21 + KIB).all()


def test_climate_reads_statistics_once_and_every_rank_writes_at_the_end(tmp_path: Path) -> None:
    study = small("climate", 2 / 512, "record_length_bytes=1 KiB")
    ops = operations(study, tmp_path)
    assert files_on_gfs(tmp_path, ".statistics") == 1
    assert sizes(reads(ops)) == {500: 2 * 50}
    for rank in (0, 1):
        own = ops.filter(pl.col("rank") == rank, pl.col("file") == 0).sort("start_seconds")
        assert own["kind"].to_list() == ["open", *["read"] * 50, "close"]
        assert own["tier"].unique().to_list() == ["gfs"]
    writes = ops.filter(pl.col("kind") == "write")
    large = writes.filter(pl.col("bytes") > 4 * KIB).group_by("rank").agg(pl.col("bytes").sum()).sort("rank")
    assert large.rows() == [(0, 4_000_000), (1, 4_000_000)]
    run_table = pl.read_parquet(tmp_path / "runs" / "0000-r1.parquet").filter(pl.col("record") == "rank")
    assert run_table["samples"].to_list() == [1200, 1200]


def test_l2hmc_first_rank_writes_five_files_three_times(tmp_path: Path) -> None:
    ops = operations(small("l2hmc", 0.001), tmp_path)
    assert reads(ops).is_empty()
    assert ops.filter(pl.col("kind") == "write")["rank"].unique().to_list() == [0]
    folders = sorted((tmp_path / "tiers" / "gfs" / "checkpoints").glob("step-*"))
    assert [folder.name for folder in folders] == ["step-000050", "step-000100", "step-000150"]
    for folder in folders:
        found = sorted(path.stat().st_size for path in folder.glob("part-*"))
        assert found == [KIB, KIB, 4 * KIB, 64 * KIB, 4096 * KIB]
    written = ops.filter(pl.col("kind") == "write")["bytes"].sum()
    assert 3 * 4166 * KIB <= written < 3 * 4168 * KIB  # and manifests


def test_unet3d_reads_whole_files_of_many_sizes(tmp_path: Path) -> None:
    lengths = ("record_length_bytes=146601", "record_length_bytes_stdev=68342", "transfer_size=40 KiB")
    study = small("unet3d", 0.1, "epochs=5", *lengths)
    ops = operations(study, tmp_path)
    stored = [path.stat().st_size for path in (tmp_path / "tiers" / "gfs").rglob("*.npz")]
    assert len(stored) == 17
    assert len(set(stored)) == 17
    for epoch in (1, 5):
        read = reads(ops, epoch).group_by("file").agg(pl.col("bytes").sum())
        assert len(read) == 16
        assert set(read["bytes"]) < set(stored)
    writes = ops.filter(pl.col("kind") == "write")
    assert writes["epoch"].unique().to_list() == [5]
    assert writes["bytes"].sum() == pytest.approx(49_915_319, rel=0.001)


@pytest.mark.parametrize(("name", "share", "record"), [("resnet50", 1e-4, 114_676), ("bert", 1e-4, 2516)])
def test_samples_of_tfrecords_are_cut_from_a_buffer(name: str, share: float, record: int, tmp_path: Path) -> None:
    study = small(name, share, "epochs=1")
    ops = operations(study, tmp_path)
    steps = study.workload.train.total_training_steps
    samples = 64 if steps is None else steps * 48
    asked = sizes(reads(ops))
    assert sum(size * times for size, times in asked.items()) == 2 * samples * record
    assert max(asked) <= study.workload.reader.transfer_size
    assert sum(asked.values()) < 2 * samples
    assert files_on_gfs(tmp_path, ".tfrecord") == 2


def test_llama_writes_14_bytes_of_every_parameter_ten_times(tmp_path: Path) -> None:
    study = small("llama-checkpoint", 1e-4, "checkpoint.verify=false")
    ops = operations(study, tmp_path)
    assert reads(ops).is_empty()
    writes = ops.filter(pl.col("kind") == "write").group_by("rank").agg(pl.col("bytes").sum())
    assert sorted(writes["rank"]) == [0, 1]
    for nbytes in writes["bytes"]:
        assert nbytes == pytest.approx(10 * 7 * 803_026, rel=0.002)


def test_climate_on_an_emulated_tier(tmp_path: Path) -> None:
    emulated = ("gfs.emulate=true", "gfs.stripe_count=1", "gfs.servers=1", "gfs.read_ops=1000", "gfs.background=10%")
    study = small("climate", 2 / 512, "record_length_bytes=1 KiB", *emulated)
    found = reads(operations(study, tmp_path))
    assert sizes(found) == {500: 2 * 50}
    assert found["seconds"].sum() > 0.09  # both ranks wait for one server
