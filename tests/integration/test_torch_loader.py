"""torch's DataLoader reads the plan's samples in the plan's order, and the preloaded library sees all that its workers read."""

from pathlib import Path

import polars as pl
import pytest

from tests.framework_loaders import assert_same_trace, assert_samples_of_the_plan
from tests.small_study import node_source, plan_of, stage, tier_files
from tests.tiny import tiny
from tierscope.bench.loading import make_loader
from tierscope.bench.resolved import ResolvedRun
from tierscope.errors import DamagedDataError
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.output.store import RunStore
from tierscope.trace.description import RANK_WALL
from tierscope.trace.recorder import Recording
from tierscope.watch import Silent

pytestmark = pytest.mark.torch
REASON = "torch is not installed: make test-torch installs it"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("form", ["raw", "tfrecord", "npz", "npy", "hdf5", "csv", "png"])
def test_samples_come_in_plan_order(form: str, workers: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    per_file = 1 if form == "png" else 3
    keys = (f"format={form}", f"num_samples_per_file={per_file}", f"read_threads={workers}", "data_loader=pytorch")
    study = tiny("sweep={}", "cache_rate=50%", "multiprocessing_context=fork", "reader.verify=all", *keys)
    assert_samples_of_the_plan(study, tmp_path)


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_the_trace_is_that_of_our_own_loader(context: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    keys = (
        "format=tfrecord",
        "num_samples_per_file=2",
        "read_threads=2",
        "reader.verify=all",
    )  # its own reads are not seen
    assert_same_trace("pytorch", keys, tmp_path, [f"multiprocessing_context={context}"])


def test_wall_seconds_of_a_rank_are_not_those_of_its_workers_added_up(tmp_path: Path) -> None:
    """An emulated latency makes four workers wait at the same time: the clock shows no more I/O than time passed."""
    pytest.importorskip("torch", reason=REASON)
    keys = (
        "data_loader=pytorch",
        "read_threads=4",
        "multiprocessing_context=fork",
        "gfs.emulate=true",
        "gfs.latency=20ms",
    )
    study = tiny("sweep={}", "cache_rate=0", "nodes=1", "num_files_train=64", *keys)
    crews = Crews()
    try:
        run_study(study, str(tmp_path / "out"), crews, Silent())
    finally:
        crews.close()
    (trace,) = RunStore(str(tmp_path / "out")).load_all()
    assert {"wall", RANK_WALL} <= set(trace.about.provides)
    sums = trace.io.group_by("epoch", "rank").agg(pl.col("busy_seconds", "wall_seconds").sum())
    both = sums.join(trace.ranks.select("epoch", "rank", "epoch_seconds"), on=["epoch", "rank"])
    assert len(both) == len(trace.ranks)
    assert (both["wall_seconds"] <= 1.01 * both["epoch_seconds"]).all()
    assert (both["busy_seconds"] > 1.5 * both["wall_seconds"]).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_flipped_bit_is_found_where_it_is_read(workers: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    keys = ("format=raw", "data_loader=pytorch", f"read_threads={workers}", "reader.verify=all")
    study = tiny("sweep={}", "cache_rate=0", "nodes=1", "multiprocessing_context=fork", *keys)
    stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].path(3))
    whole = bytearray(path.read_bytes())
    whole[700] ^= 1
    path.write_bytes(whole)
    run = ResolvedRun.of(study)
    loader = make_loader(run, node_source(study, str(tmp_path)), Recording(2, silent=True))
    with pytest.raises(DamagedDataError, match=r"000000003\.raw: sample 0: its checksum is") as raised:
        list(loader.batches(plan_of(study).reads(0, 1)))
    assert "\n" not in str(raised.value)


def test_preprocessing_in_workers_gives_arrays(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    study = tiny("sweep={}", "data_loader=pytorch", "read_threads=1", "preprocess=decode", "format=csv")
    assert_samples_of_the_plan(study, tmp_path)


@pytest.mark.parametrize("per_file", [1, 3])
def test_workers_evict_each_file_once_and_nobody_opens_one_for_that(per_file: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    keys = ("data_loader=pytorch", "read_threads=2", "multiprocessing_context=fork", "format=raw", "epochs=2")
    study = tiny("sweep={}", "cache_rate=0", "nodes=1", "ranks_per_node=1", f"num_samples_per_file={per_file}", *keys)
    crews = Crews()
    try:
        run_study(study, str(tmp_path / "out"), crews, Silent())
    finally:
        crews.close()
    (trace,) = RunStore(str(tmp_path / "out")).load_all()
    dataset = study.workload.dataset
    rows = trace.cold.filter(pl.col("tier") == "gfs").sort("epoch")
    assert rows["checked_bytes"].to_list() == [dataset.samples * dataset.record_length_bytes] * 2  # every file once
    opens = trace.io.filter(pl.col("kind") == "open").group_by("epoch").agg(pl.col("ops").sum())
    assert opens["ops"].to_list() == [dataset.samples] * 2  # a sample at a time, as its users do
