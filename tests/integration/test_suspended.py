"""Real studies with ranks that are stopped and continued, killed directors, and as many ranks as there may be."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.test_kill_and_resume import finished_runs, gone, ranks_below

pytestmark = pytest.mark.faults

STUDY = """
study: suspended
workload:
  dataset: {format: raw, num_files_train: 64, record_length_bytes: 1 KiB}
  reader: {batch_size: 1}
  train: {epochs: 2, computation_time: 60 ms}
system:
  nodes: 1
  ranks_per_node: 4
  tiers:
    gfs: {path: "{out}/gfs"}
"""  # two seconds
LOADED = """
study: loaded
workload:
  dataset: {format: raw, num_files_train: 64, record_length_bytes: 1 KiB}
  reader: {batch_size: 1, data_loader: pytorch, multiprocessing_context: fork, read_threads: 2}
  train: {epochs: 1, computation_time: 100 ms}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    gfs: {path: "{out}/gfs"}
"""
MANY = """
study: many
workload:
  dataset: {format: raw, num_files_train: 1024, record_length_bytes: 1 KiB}
  reader: {batch_size: 1}
  train: {epochs: 1}
system:
  nodes: 1
  ranks_per_node: 64
  tiers:
    gfs: {path: "{out}/gfs"}
"""


def start(folder: Path, study: str, *more: str) -> "subprocess.Popen[str]":
    (folder / "study.yaml").write_text(study)
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(folder / "study.yaml")]
    command += ["--out", str(folder / "out"), "--json", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measuring(process: "subprocess.Popen[str]", ranks: int) -> list[int]:
    """Ranks of a study that is being measured: it said what it costs by itself, and then began."""
    assert process.stderr is not None
    while "overhead:" not in (line := process.stderr.readline()):
        assert line, process.communicate()
    time.sleep(0.5)
    found = ranks_below(process.pid)
    assert len(found) == ranks
    return found


def test_a_rank_that_stays_stopped_ends_the_study_and_leaves_nobody(tmp_path: Path) -> None:
    process = start(tmp_path, STUDY, "--stall-limit", "2s")
    ranks = measuring(process, 4)
    began = time.monotonic()
    os.kill(ranks[3], signal.SIGSTOP)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"tierscope: rank 3 (pid {ranks[3]}) was suspended for 2 s" in said
    assert said.count("\n") == 1
    assert time.monotonic() - began < 20
    assert gone(ranks)
    assert not finished_runs(tmp_path)


@pytest.mark.parametrize("stopped", ["rank", "director", "all"])
def test_a_run_that_was_suspended_for_a_moment_is_repeated(stopped: str, tmp_path: Path) -> None:
    process = start(tmp_path, STUDY)
    ranks = measuring(process, 4)
    victims = {"rank": ranks[1:2], "director": [process.pid], "all": [process.pid, *ranks]}[stopped]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(0.7)
    for pid in victims:
        os.kill(pid, signal.SIGCONT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert said.count("suspended; discarded and repeated") == 1
    longest = max(point["epoch_seconds"] for point in json.loads(out)["points"])
    assert 64 / 4 * 0.06 <= longest < 64 / 4 * 0.06 + 0.5, "the pause is in the result"


def test_a_killed_director_leaves_no_stopped_rank(tmp_path: Path) -> None:
    process = start(tmp_path, STUDY)
    ranks = measuring(process, 4)
    os.kill(ranks[2], signal.SIGSTOP)
    process.kill()
    process.communicate()
    assert gone(ranks)


def test_a_killed_template_is_a_line_and_leaves_nobody(tmp_path: Path) -> None:
    process = start(tmp_path, MANY)
    deadline = time.monotonic() + 60
    while not (started := ranks_below(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(started[0], signal.SIGKILL)  # the first that is started is the template
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "could not be started: their template was killed by signal 9" in said
    assert gone(started)


def finish(folder: Path, study: str, ranks: int, seconds: float) -> None:
    began = time.monotonic()
    process = start(folder, study, "--quiet")
    out, said = process.communicate(timeout=seconds)
    assert process.returncode == 0, said
    assert {point["ranks"] for point in json.loads(out)["points"]} == {ranks}
    assert time.monotonic() - began < seconds


def test_64_ranks_start_and_finish(tmp_path: Path) -> None:
    finish(tmp_path, MANY, 64, 60)


@pytest.mark.nightly
def test_512_ranks_start_and_finish_with_an_ordinary_limit_on_open_files(tmp_path: Path) -> None:
    """On two cores, in 8 GiB: all that ranks have together is measured while they wait for one another."""
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from tierscope.bench.crew import LocalCrew
from tierscope.bench.tasks import WhoTask
import time
began = time.monotonic()
with LocalCrew(512) as crew:
    crew.call(WhoTask(), lambda _: None)
    took = time.monotonic() - began
    shares = [next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:")) for pid in crew.pids]
    print(took, sum(shares))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    took, kib = map(float, done.stdout.split())
    assert took < 120
    assert kib < 8 << 20
    finish(tmp_path, MANY.replace("ranks_per_node: 64", "ranks_per_node: 512"), 512, 300)


@pytest.mark.torch
def test_a_worker_that_stays_stopped_ends_the_study_and_leaves_nobody(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")
    process = start(tmp_path, LOADED, "--stall-limit", "2s")
    workers: list[int] = []
    deadline = time.monotonic() + 60
    while len(workers) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
        ranks = ranks_below(process.pid)
        workers = [worker for rank in ranks for worker in ranks_below(rank)]
    time.sleep(0.5)
    os.kill(workers[1], signal.SIGSTOP)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"tierscope: a worker process (pid {workers[1]}) of rank 0 was suspended for 2 s" in said
    assert gone([*ranks, *workers])
