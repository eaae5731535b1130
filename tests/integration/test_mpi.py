"""The same study under mpirun: the same samples, the same tables, and clear refusals."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.integration.test_kill_and_resume import finished_runs, gone, ranks_below
from tests.tiny import TINY
from tierscope.output.store import RunStore

pytestmark = pytest.mark.mpi

BIN = Path(sys.executable).parent
MPIRUN = shutil.which("mpirun", path=f"{BIN}:{os.environ.get('PATH', '')}")
EIGHT = TINY.replace("nodes: 2", "nodes: 4").replace("ranks_per_node: 1", "ranks_per_node: 2")


@pytest.fixture(autouse=True)
def _needs_mpi() -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: make test-mpi installs it")
    if MPIRUN is None:
        pytest.skip("no mpirun on PATH")


def mpirun(ranks: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(MPIRUN), "-n", str(ranks), "--allow-run-as-root", "--oversubscribe"]
    command += [sys.executable, "-m", "tierscope.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def local(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tierscope.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(EIGHT)
    return path


def counts(out: Path) -> list[list[tuple[object, ...]]]:
    """Per run: (epoch, rank, samples, bytes, order read) of every rank, and operations per tier and kind."""
    found = []
    for trace in RunStore(str(out)).load_all():
        ranks = trace.ranks.sort("epoch", "rank").select(
            "epoch", "node", "rank", "samples", "payload_bytes", "order_digest"
        )
        ops = trace.io.group_by("epoch", "rank", "tier", "kind").agg(pl.col("ops", "bytes").sum())
        found.append([*ranks.rows(), *ops.sort("epoch", "rank", "tier", "kind").rows()])
    return found


def test_mpi_ranks_read_what_local_ranks_read(study: Path, tmp_path: Path) -> None:
    done = mpirun(8, "run", str(study), "--out", str(tmp_path / "mpi"), "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["points"][0]["ranks"] == 8
    assert local("run", str(study), "--out", str(tmp_path / "local"), "--quiet").returncode == 0
    assert counts(tmp_path / "mpi") == counts(tmp_path / "local")


def test_emulated_tiers_work_on_one_host(study: Path, tmp_path: Path) -> None:
    sets = ["--set", "gfs.metadata_ops=300/s", "--set", "gfs.emulate=true", "--set", "sweep={}", "--set", "epochs=1"]
    sets += ["--set", "num_files_train=240"]
    done = mpirun(8, "run", str(study), "--out", str(tmp_path / "out"), "--quiet", "--json", *sets)
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)["points"]
    assert point["epoch_seconds"] >= 230 / 300  # 240 opens; ranks leave the barrier, and start their clocks, one by one


def test_another_number_of_ranks_is_refused(study: Path, tmp_path: Path) -> None:
    done = mpirun(4, "run", str(study), "--out", str(tmp_path / "out"), "--quiet")
    assert done.returncode == 2
    assert "asks for 8 ranks" in done.stderr
    assert "4 were started" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_users_mistake_is_said_once(study: Path, tmp_path: Path) -> None:
    done = mpirun(8, "run", str(study), "--out", str(tmp_path / "out"), "--set", "batch_sise=3")
    assert done.returncode == 2
    assert done.stderr.count("did you mean batch_size?") == 1


def test_a_launcher_that_mpi_does_not_know_is_refused(study: Path, tmp_path: Path) -> None:
    """As with mpich's launcher and another MPI's library: N single processes that each believe they are alone."""
    environment = {**os.environ, "PMI_SIZE": "8", "PMI_RANK": "0"}
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(study), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 2
    assert "started 8 ranks, but MPI reports 1" in done.stderr


def test_a_failing_rank_ends_the_job_with_its_own_line(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sets = ["--set", "format=tfrecord", "--set", "sweep={}"]
    assert mpirun(8, "generate", str(study), "--out", str(out), "--quiet", *sets).returncode == 0
    victim = sorted((out / "tiers" / "gfs").rglob("*.tfrecord"))[3]
    content = bytearray(victim.read_bytes())
    content[50] ^= 1
    victim.write_bytes(content)
    done = mpirun(8, "run", str(study), "--out", str(out), "--quiet", *sets)
    assert done.returncode == 2
    assert f"{victim.name}: sample 0: wrong TFRecord checksum" in done.stderr
    assert "rank " in done.stderr


STOPPED = TINY.replace("epochs: 2", "epochs: 2, computation_time: 300 ms").replace(
    "cache_rate: [0%, 50%, 100%]", "cache_rate: [50%]"
)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_rank_that_is_stopped_repeats_the_run_or_ends_the_job(goes_on: bool, tmp_path: Path) -> None:
    """No director sees other ranks here: each says itself that it was stopped, and each looks after its neighbour."""
    (tmp_path / "study.yaml").write_text(STOPPED)
    command = [str(MPIRUN), "-n", "2", "--allow-run-as-root", "--oversubscribe", sys.executable, "-m"]
    command += ["tierscope.cli.main", "run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out"), "--json"]
    job = subprocess.Popen([*command, "--stall-limit", "2s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert job.stderr is not None
    while "overhead:" not in (line := job.stderr.readline()):
        assert line, job.communicate()
    time.sleep(0.3)
    ranks = ranks_below(job.pid)
    os.kill(ranks[1], signal.SIGSTOP)
    if goes_on:
        time.sleep(0.3)
        os.kill(ranks[1], signal.SIGCONT)
    _, said = job.communicate(timeout=120)
    assert gone(ranks)
    if goes_on:
        assert job.returncode == 0, said
        assert said.count("suspended; discarded and repeated") == 1
    else:
        assert job.returncode == 3, said
        assert f"(pid {ranks[1]}) was suspended for 2 s" in said
        assert not finished_runs(tmp_path)
