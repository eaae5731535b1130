"""`file_access: collective` under mpirun: the same samples as `shared`, byte by byte, in calls that all ranks make."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.integration.test_mpi import MPIRUN, counts, local, mpirun
from tests.small_study import plan_of, planned_samples, small_study
from tests.tiny import TINY
from tests.traces import as_measured
from tierscope.output.store import RunStore

pytestmark = pytest.mark.mpi

REPOSITORY = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "collective.py"
STUDY = (
    TINY.replace("num_files_train: 24, num_samples_per_file: 1", "num_files_train: 1, num_samples_per_file: 30")
    .replace("ranks_per_node: 1", "ranks_per_node: 2")
    .replace("read_threads: 1", "read_threads: 0, transfer_size: 600, file_access: collective")
)
RAW = ("format=raw", "file_access=collective", "num_files_train=1", "num_samples_per_file=50", "read_threads=0")


@pytest.fixture(autouse=True)
def _needs_mpi() -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: make test-mpi installs it")
    if MPIRUN is None:
        pytest.skip("no mpirun on PATH")


def program(ranks: int, what: str, out: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    command = [str(MPIRUN), "-n", str(ranks), "--allow-run-as-root", "--oversubscribe", "-x", "PYTHONPATH"]
    command += [sys.executable, str(PROGRAM), what, str(out), *settings]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize(("stdev", "transfer"), [(0, 4096), (0, 600), (200, 600)])
def test_every_byte_is_right_and_counted_once(tmp_path: Path, ranks: int, tier: int, stdev: int, transfer: int) -> None:
    """Also from copies that each node has for itself, and where samples need different numbers of transfers."""
    system = (f"cache_rate={1 - tier}", "nodes=2", f"ranks_per_node={ranks // 2}")
    settings = (*RAW, *system, f"record_length_bytes_stdev={stdev}", f"transfer_size={transfer}")
    done = program(ranks, "read", tmp_path, *settings)
    assert done.returncode == 0, done.stderr
    found, plan = json.loads(done.stdout), plan_of(small_study(*settings))
    each = 50 // ranks
    for rank, one in enumerate(found):
        assert one["right"]
        assert one["samples"] == planned_samples(plan, rank)
        calls = (
            1 if transfer > 1000 else 2 if not stdev else -(-1800 // 600)
        )  # no sample is more than four times that off
        assert one["ops"] == {kind: placed(tier, n) for kind, n in (("open", 1), ("read", each * calls), ("close", 1))}
        assert sum(one["bytes"]) == one["bytes"][tier]
        if not stdev:
            assert one["bytes"] == placed(tier, each * 1000)


def test_another_library_of_mpi_io_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROMIO, in place of Open MPI's own."""
    info = Path(str(MPIRUN)).parent / "ompi_info"
    known = subprocess.run([info], capture_output=True, text=True, check=False).stdout if info.exists() else ""
    name = next((word for word in known.split() if word.startswith("romio")), None)
    if name is None:
        pytest.skip("no Open MPI with ROMIO")
    monkeypatch.setenv("OMPI_MCA_io", name)
    done = program(3, "read", tmp_path, *RAW, "ranks_per_node=3", "record_length_bytes_stdev=200", "transfer_size=600")
    assert done.returncode == 0, done.stderr
    assert [one["right"] for one in json.loads(done.stdout)] == [True] * 3


def placed(tier: int, count: int) -> list[int]:
    return [count, 0] if tier == 0 else [0, count]


def test_a_whole_study_reads_what_shared_reads(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    done = mpirun(4, "run", str(study), "--out", str(tmp_path / "together"), "--json", "--ops")
    assert done.returncode == 0, done.stderr
    assert "file_access: collective: ranks wait for each other inside reads; these waits count as READ" in done.stderr
    alone = local("run", str(study), "--out", str(tmp_path / "alone"), "--quiet", "--set", "file_access=shared")
    assert alone.returncode == 0, alone.stderr
    together, apart = tmp_path / "together", tmp_path / "alone"
    assert reads(counts(together)) == reads(counts(apart))
    for trace in RunStore(str(together)).load_all():
        ops = trace.io.group_by("kind").agg(pl.col("ops", "bytes").sum()).sort("kind").rows()
        # 4 ranks × 2 epochs: an open, a close, and two calls for each of 7 samples; what MPI does for them inside is not counted again
        assert ops == [("close", 8, 0), ("open", 8, 0), ("read", 8 * 14, 8 * 7 * 1024)]
        assert as_measured(trace).loader == "inline"
    listed = pl.read_parquet(together / "ops" / "*.parquet")
    assert len(listed) == 3 * 8 * 16
    assert listed["bytes"].sum() == 3 * 8 * 7 * 1024


def reads(runs: list[list[tuple[object, ...]]]) -> list[list[tuple[object, ...]]]:
    """Without opens and closes: a shared file is opened for every batch."""
    return [[row for row in rows if not {"open", "close"} & set(row)] for rows in runs]


@pytest.mark.parametrize(
    ("what", "words"), [("truncated", "999 of 1000 bytes at offset"), ("gone", "has disappeared; rerun")]
)
def test_a_rank_that_fails_ends_the_job(tmp_path: Path, what: str, words: str) -> None:
    """And does not wait for the others, who wait inside a call."""
    done = program(
        3, what, tmp_path, *RAW, "num_samples_per_file=51", "ranks_per_node=3", "cache_rate=0", "evict=false"
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("layout", [(), ("hdf5.compression=gzip", "hdf5.chunk_size=4096")])
def test_an_h5py_with_mpi_reads_the_same(tmp_path: Path, layout: tuple[str, ...]) -> None:
    h5py = pytest.importorskip("h5py")
    if not h5py.get_config().mpi:
        pytest.skip("this h5py has no MPI, as those from PyPI")
    settings = (*RAW, "format=hdf5", *layout, "ranks_per_node=3", "cache_rate=0")
    done = program(3, "read", tmp_path, *settings)
    assert done.returncode == 0, done.stderr
    plan = plan_of(small_study(*settings))
    for rank, one in enumerate(json.loads(done.stdout)):
        assert one["right"]
        assert one["samples"] == planned_samples(plan, rank)
        assert one["ops"] == {"open": [0, 1], "read": [0, 16], "close": [0, 1]}
        assert one["bytes"] == [0, 16_000]


def test_an_h5py_without_mpi_is_said_once(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    if h5py.get_config().mpi:
        pytest.skip("this h5py has MPI")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    done = mpirun(4, "run", str(study), "--out", str(tmp_path / "out"), "--set", "format=hdf5")
    assert done.returncode == 2
    assert done.stderr.count("needs h5py with MPI, but this one was built without") == 1


def test_local_ranks_cannot(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    done = local("run", str(study), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "'mpirun -n 4 tierscope run …'" in done.stderr
    assert not (tmp_path / "out").exists()
