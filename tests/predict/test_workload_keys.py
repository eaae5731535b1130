"""What a simulation makes of keys that the eight workloads need: as many operations and bytes as ranks really do, and times that follow from rates."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from tests.small_study import small_study, stage, totals
from tierscope.bench.group import Alone
from tierscope.bench.run import RunTask, run_rank
from tierscope.loaders.choose import choose_loader
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Study
from tierscope.storage.emulated import Board, Emulated, Queues
from tierscope.storage.stations import map_stations

RATES = ("gfs.latency=1 ms", "gfs.metadata_ops=1000", "cache_rate=0%", "batch_size=6")
HDF5 = (
    "format=hdf5",
    "num_files_train=1",
    "num_samples_per_file=24",
    "record_length_bytes=4 KiB",
    "hdf5.chunk_size=1 KiB",
)
SIDE = ("statistics.file_bytes=4 KiB", "statistics.reads=3", "statistics.read_bytes=100 B", "statistics.when=step")
CSV = ("format=csv", "num_files_train=1", "num_samples_per_file=24", "shuffle=off", "rank_reads=all", "read_ahead=all")


def done_by_a_rank(study: Study, out: Path) -> list[tuple[int, ...]]:
    """(opens, reads, bytes read) of the last tier in every epoch."""
    stage(study, str(out))
    trace = run_rank(RunTask(study, choose_loader(study), str(out), None, "sleep", None), Alone())
    asked = (("ops", "open"), ("ops", "read"), ("nbytes", "read"))
    return [
        tuple(totals(epoch.lanes, name, kind)[1] if epoch.lanes else 0 for name, kind in asked)
        for epoch in trace.epochs
    ]


@pytest.mark.parametrize("method", ["events", "bound"])
@pytest.mark.parametrize(
    "settings",
    [
        ("num_samples_per_file=1", *SIDE),
        ("read_threads=0", *SIDE),
        CSV,
        (*CSV, "read_threads=0", *SIDE),
        ("num_files_train=4", "num_samples_per_file=6", "rank_reads=all", "sample_shuffle=off"),
    ],
)
def test_as_many_operations_as_ranks_do(tmp_path: Path, settings: tuple[str, ...], method: str) -> None:
    study = small_study(*RATES, *settings)
    simulation = Simulation.of(study)
    outcomes = [simulation.epoch(epoch, method) for epoch in (1, 2)]
    assert [
        (int(outcome.ops[0, 1, 0]), int(outcome.ops[0, 1, 1]), int(outcome.nbytes[0, 1, 1])) for outcome in outcomes
    ] == done_by_a_rank(study, tmp_path)


def test_chunks_of_hdf5_are_requests(tmp_path: Path) -> None:
    study = small_study(*RATES, *HDF5, "read_threads=0")
    outcome = Simulation.of(study).epoch(1, "events")
    opens, reads, nbytes = done_by_a_rank(study, tmp_path)[0]
    assert outcome.ops[0, 1].tolist() == [1, 24 * 4, 0]  # a library keeps its file open
    assert outcome.nbytes[0, 1, 1] == 24 * 4096
    assert opens == 1
    assert 24 * 4 <= reads <= 24 * 4 + 40  # with the library's own
    assert nbytes >= 24 * 4096
    assert outcome.seconds[0] == pytest.approx(24 * 4 * 0.001 + 0.001, rel=0.01)


@pytest.mark.parametrize("method", ["events", "bound"])
def test_side_reads_take_their_time_and_nothing_else_does(method: str) -> None:
    plain = Simulation.of(small_study(*RATES, "read_threads=0")).epoch(1, method)
    study = small_study(*RATES, "read_threads=0", *SIDE)
    outcome = Simulation.of(study).epoch(1, method)
    assert outcome.seconds[0] - plain.seconds[0] == pytest.approx(
        0.001 + 4 * 3 * 0.001
    )  # an open, and three before each of four batches
    assert outcome.busy.sum() - plain.busy.sum() == pytest.approx(0.013)
    assert outcome.stall[0] - plain.stall[0] == pytest.approx(0.013)


def test_one_server_behind_everybodys_side_file() -> None:
    study = small_study(
        *RATES, "read_threads=0", *SIDE, "ranks_per_node=4", "nodes=16", "num_files_train=384", "gfs.read_ops=100", "gfs.servers=64",
    )  # fmt: skip
    outcome = Simulation.of(study).epoch(1, "events")
    assert outcome.seconds.min() >= 64 * 3 / 100  # of one of the 64 servers


@pytest.mark.parametrize("method", ["events", "bound"])
def test_everything_is_loaded_before_the_first_step(method: str) -> None:
    study = small_study(*RATES, *CSV, "read_threads=0", "computation_time=1 s", "ranks_per_node=2")
    simulation = Simulation.of(study)
    first, second = (simulation.epoch(epoch, method) for epoch in (1, 2))
    assert first.seconds.max() == pytest.approx(4 + first.io.max(), rel=0.01)
    assert first.first_batch is not None
    assert first.first_batch.max() == pytest.approx(first.io.max(), rel=0.01)
    assert second.seconds.tolist() == [4.0, 4.0]
    assert not second.ops.any()
    assert not second.io.any()


@pytest.mark.parametrize("method", ["events", "bound"])
def test_ranks_that_open_one_file_wait_for_its_lock(method: str) -> None:
    one = (
        *HDF5,
        "num_samples_per_file=64",
        "read_threads=0",
        "ranks_per_node=4",
        "nodes=16",
        "gfs.metadata_ops=1000000",
    )
    free, locked = (
        Simulation.of(small_study(*RATES, *one, f"gfs.file_open_ops={rate}")).epoch(1, method)
        for rate in ("null", "100/s")
    )
    assert free.seconds.max() < 0.02
    assert locked.seconds.max() >= 64 / 100
    assert locked.busy[:, 1, 0].max() == pytest.approx(64 / 100, rel=0.1)
    own = tuple(setting for setting in one if "num_" not in setting)
    apart = Simulation.of(
        small_study(*RATES, *own, "num_files_train=64", "num_samples_per_file=1", "gfs.file_open_ops=100/s")
    ).epoch(1, method)
    assert apart.seconds.max() < 0.05  # a file each


def test_a_lock_is_emulated_as_it_is_simulated(tmp_path: Path) -> None:
    study = small_study(*RATES[2:], "gfs.file_open_ops=100/s", "gfs.emulate=true")
    mapped = map_stations(study.system, study.seed)
    views = mapped.views[1]
    assert views is not None
    assert not views[0].plain
    board = Board(mapped.count)
    path = tmp_path / "000000003.h5"
    path.touch()
    try:
        access = Emulated(views[0], Queues(board.path))
        starts = np.array([_timed(access, str(path)) for _ in range(3)])
        access.leave()
    finally:
        board.close()
    assert (starts >= 0.0099).all()


def _timed(access: Emulated, path: str) -> float:
    start = time.monotonic()
    access.close(access.open(path, os.O_RDONLY))
    return time.monotonic() - start
