"""kill -9 at any moment, then the same command: nothing finished is lost or repeated, nothing is half-read."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nightly import first_in_ci

STUDY = """
study: resumed
workload:
  dataset: {format: tfrecord, num_files_train: 64, record_length_bytes: 32 KiB}
  reader: {batch_size: 4}
  train: {epochs: 2}
system:
  nodes: 2
  ranks_per_node: 2
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node, read_ops: 600/s, emulate: true}
    gfs: {path: "{out}/tiers/gfs", metadata_ops: 400/s, servers: 2, read_ops: 1000/s, emulate: true}
sweep: {placement.cache_rate: 0%..100% step 20%}
"""
RUNS = 6
COMMAND = [sys.executable, "-m", "tierscope.cli.main"]

pytestmark = pytest.mark.faults


def start(folder: Path, *more: str) -> "subprocess.Popen[str]":
    command = [*COMMAND, "run", str(folder / "study.yaml"), "--out", str(folder / "out"), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished_runs(folder: Path) -> dict[str, tuple[int, int]]:
    runs = folder / "out" / "runs"
    if not runs.exists():
        return {}
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in runs.glob("*.parquet")}


def ranks_below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in children.read_text().split()] if children.exists() else []


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def finish(folder: Path) -> dict[str, object]:
    process = start(folder, "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    result: dict[str, object] = json.loads(out)
    return result


@pytest.mark.parametrize("attempt", first_in_ci(range(20), 6))
def test_a_killed_study_goes_on_where_it_was(attempt: int, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    dice = random.Random(attempt)
    for _ in range(2):  # killed twice: the second time while resuming
        process = start(tmp_path)
        time.sleep(dice.uniform(0.2, 3.0))
        ranks = ranks_below(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert gone(ranks), "ranks outlived the command"
    before = finished_runs(tmp_path)
    result = finish(tmp_path)
    after = finished_runs(tmp_path)
    assert {name: after[name] for name in before} == before, "a finished run was repeated or touched"
    assert len(after) == RUNS
    points = result["points"]
    assert isinstance(points, list)
    assert len(points) == RUNS * 2
    assert "partial" not in {finding["kind"] for finding in result["findings"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("attempt", first_in_ci(range(3), 2))
def test_a_killed_run_of_first_touch_begins_again_without_copies(attempt: int, tmp_path: Path) -> None:
    rates = "sweep: {placement.cache_rate: [50%, 100%]}\nplacement: {policy: first-touch}\n"
    (tmp_path / "study.yaml").write_text(STUDY.replace("sweep: {placement.cache_rate: 0%..100% step 20%}\n", rates))
    near = tmp_path / "out" / "tiers" / "lfs"
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while len(list(near.rglob("*.tfrecord"))) < 5 + 9 * attempt and time.monotonic() < deadline:
        time.sleep(0.001)
    ranks = ranks_below(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert gone(ranks), "ranks outlived the command"
    (folder,) = {path.parent for path in near.rglob("*.tfrecord") if path.parent.parent.name == "0"}
    (folder / "000000063.tfrecord.part").write_bytes(b"half a")
    result = finish(tmp_path)
    points = result["points"]
    assert isinstance(points, list)
    assert [point["hit_rate"] for point in points if point["epoch"] == 1] == [0, 0]
    assert all(point["hit_rate"] > 0 for point in points if point["epoch"] == 2)
    assert not list(near.rglob("*.part"))


CHECKPOINTS = """
study: saved
workload:
  dataset: {format: raw, num_files_train: 16, record_length_bytes: 1 KiB}
  train: {epochs: 2}
  checkpoint: {epochs_between_checkpoints: 1, mode: all_ranks, model_parameters: 400000, keep: 1, verify: true}
system:
  nodes: 2
  tiers:
    gfs: {path: "{out}/gfs", bandwidth: 4 MB/s, emulate: true}
"""  # 5.6 MB each: 1.4 s


@pytest.mark.parametrize("attempt", first_in_ci(range(4), 2))
def test_a_torn_checkpoint_never_counts(attempt: int, tmp_path: Path) -> None:
    """Killed in the first or the second one: what has the name of a complete one is complete, and the next run begins without any."""
    (tmp_path / "study.yaml").write_text(CHECKPOINTS + f"# {attempt}\n")
    folder, second = tmp_path / "out" / "gfs" / "checkpoints", attempt >= 2
    process = start(tmp_path)
    torn = folder / f"step-{16 if second else 8:06d}.part"
    while not torn.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(0.3 * attempt)
    ranks = ranks_below(process.pid)
    assert len(ranks) == 2, process.communicate()
    if attempt % 2:
        os.kill(process.pid, signal.SIGKILL)
    else:
        os.kill(ranks[1], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert gone(ranks), "ranks outlived the command"
    assert process.returncode == (-signal.SIGKILL if attempt % 2 else 3), err
    left = {path.name: path for path in folder.iterdir() if path.is_dir()}
    assert set(left) == ({"step-000008", "step-000016.part"} if second else {"step-000008.part"})
    for name, path in left.items():
        assert (path / "checkpoint.json").exists() == (not name.endswith(".part"))
        if not name.endswith(".part"):
            sizes = json.loads((path / "checkpoint.json").read_text())["sizes"]
            assert {each: (path / each).stat().st_size for each in sizes} == sizes
    assert not finished_runs(tmp_path)
    finish(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000016", "tierscope.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU])
def test_an_interrupt_ends_everything_promptly_with_exit_code_3(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while not finished_runs(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    ranks = ranks_below(process.pid)
    assert len(ranks) == 4
    before = finished_runs(tmp_path)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "rerun the same command to continue" in err.strip().splitlines()[-1]
    assert "Traceback" not in err
    assert gone(ranks)
    finish(tmp_path)
    after = finished_runs(tmp_path)
    assert {name: after[name] for name in before} == before


def test_two_commands_on_one_result_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    first = start(tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "study.yaml").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    second = start(tmp_path)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "in use by another run" in err
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err


def test_a_file_that_vanishes_mid_run_is_named_and_the_same_command_recovers(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while not finished_runs(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    for victim in (tmp_path / "out" / "tiers").rglob("*.tfrecord"):
        victim.unlink()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    last = err.strip().splitlines()[-1]
    assert "rank " in last
    assert ".tfrecord: has disappeared" in last
    finish(tmp_path)
    assert len(finished_runs(tmp_path)) == RUNS
