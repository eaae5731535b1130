"""Whatever happens to the process that brings a cluster up, nothing of it stays: no process, namespace, mount or file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nightly import first_in_ci
from tools.cluster import Cluster, ClusterError, Wish
from tools.cluster_box import until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("_possible")]

TOOL_FOLDER = Path(__file__).parents[3] / "tools"
TOOL = [sys.executable, str(TOOL_FOLDER / "cluster.py")]
SMALL = ["--osts", "2", "--nodes", "2"]


@pytest.fixture
def state(public_place: Path) -> Iterator[Path]:
    yield public_place / "state"
    subprocess.run([*TOOL, "down", "--state", str(public_place / "state")], timeout=30, check=False)


def up(state: Path) -> "subprocess.Popen[str]":
    command = [*TOOL, "up", "--state", str(state), *SMALL]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def down(state: Path, *more: str) -> None:
    start = time.perf_counter()
    done = subprocess.run(
        [*TOOL, "down", "--state", str(state), *more], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.perf_counter() - start < 5


def traces(state: Path) -> list[str]:
    """Whatever names the folder: itself, and processes by their commands, environments and mounts."""
    found = [str(state)] if state.exists() else []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        for file in ("cmdline", "environ", "mountinfo"):
            try:
                if str(state).encode() in (entry / file).read_bytes():
                    found.append(f"{entry / file}: {(entry / 'comm').read_text().strip()}")
            except OSError:  # gone meanwhile, or not for us to look into
                continue
    return found


def soon_no_traces(state: Path) -> bool:
    return until(lambda: not traces(state), seconds=10, pause_seconds=0.05)


def begun(state: Path) -> None:
    """Until something is being made there."""
    assert until((state / "record.json").exists, seconds=20)


def namespaces() -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        for kind in ("mnt", "net", "pid", "uts", "ipc"):
            try:
                found.add(os.readlink(entry / "ns" / kind))
            except OSError:
                continue
    return found


def host() -> tuple[str, str]:
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    return links, Path("/proc/self/mountinfo").read_text()


def test_down_leaves_nothing(state: Path) -> None:
    before = host()
    with Cluster(Wish(osts=2, nodes=2, state=state)) as cluster:
        made = set(json.loads((state / "record.json").read_text())["namespaces"])
        assert made & namespaces()
        assert host() == before
        job = cluster.sbatch("-N2", "--output=/dev/null", "--wrap=srun sleep 500")
        assert until(lambda: cluster.job(job)["JobState"] == "RUNNING", seconds=20)
        with cluster.start("n1", ["sh", "-c", f"exec cat > {cluster.gfs}/open /dev/zero"]) as busy:
            assert len(traces(state)) > 10
            start = time.perf_counter()
            assert cluster.down() == []
            assert time.perf_counter() - start < 5
            assert busy.wait(5) != 0
    assert traces(state) == []
    assert not made & namespaces()
    assert host() == before
    assert cluster.down() == []


@pytest.mark.parametrize(
    ("number", "seconds"),
    first_in_ci(
        [(signal.SIGINT, 0.2), (signal.SIGTERM, 0.4), (signal.SIGINT, 0.0), (signal.SIGINT, 0.5), (signal.SIGINT, 1.0)],
        2,
    ),
)
def test_an_interrupted_up_leaves_nothing(state: Path, number: signal.Signals, seconds: float) -> None:
    with up(state) as process:
        begun(state)
        time.sleep(seconds)
        process.send_signal(number)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 128 + number, error
    assert "Traceback" not in error
    assert soon_no_traces(state)  # its guard may be at it too


@pytest.mark.parametrize("seconds", first_in_ci([0.2, 0.0, 1.0], 1))
def test_a_killed_up_leaves_nothing_with_and_without_down(state: Path, seconds: float) -> None:
    for help_it in (False, True):
        with up(state) as process:
            begun(state)
            time.sleep(seconds)
            process.kill()
            process.communicate(timeout=20)
        if help_it:
            down(state)
        assert soon_no_traces(state)
    down(state)


@pytest.mark.parametrize("number", first_in_ci([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 2))
def test_a_cluster_ends_with_the_program_that_made_it(state: Path, number: signal.Signals) -> None:
    """As when somebody ends the tests, in whatever way, while a job runs."""
    program = f"""
import sys, time
from pathlib import Path
from tools.cluster import Cluster, Wish
with Cluster(Wish(osts=2, nodes=2, state=Path({str(state)!r}))) as cluster:
    job = cluster.sbatch("-N2", "--output=/dev/null", "--wrap=srun sleep 500")
    while cluster.job(job)["JobState"] != "RUNNING":
        time.sleep(0.05)
    print(cluster.run("n1", ["hostname"]).stdout, flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TOOL_FOLDER.parent) as process:
        assert process.stdout
        assert process.stdout.readline() == "n1\n"
        process.send_signal(number)
        process.wait(20)
    assert soon_no_traces(state)


def test_by_hand(state: Path) -> None:
    with up(state) as process:
        told, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert "nodes n1 n2" in told
    command = [*TOOL, "run", "--state", str(state), "n2", "--", "hostname"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout == "n2\n"
    with up(state) as second:
        _, error = second.communicate(timeout=20)
    assert second.returncode == 1
    assert error == f"{state}: a cluster is up there: tools/cluster.py down --state {state}\n"
    down(state, "--only", "another")
    assert Cluster.attach(state).alive
    down(state)
    assert traces(state) == []
    with pytest.raises(ClusterError, match="no cluster is up there"):
        Cluster.attach(state)


def test_a_recycled_number_is_nobody(state: Path) -> None:
    """A record that outlived its processes: the number is another's by now."""
    state.mkdir()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        process = {"pid": stranger.pid, "start_ticks": 1}
        record = {
            "schema": 1,
            "id": "abcdef",
            "wish": {},
            "maker": process,
            "keeper": process,
            "nodes": {},
            "namespaces": [],
        }
        (state / "record.json").write_text(json.dumps(record))
        down(state)
        assert not state.exists()
        assert stranger.poll() is None
        stranger.kill()


def test_a_folder_of_somebody_else_is_left_alone(state: Path) -> None:
    state.mkdir()
    (state / "thesis.tex").write_text("all of it")
    with pytest.raises(ClusterError, match="is neither empty nor a cluster's"):
        Cluster(Wish(state=state)).up()
    down(state)
    (state / "thesis.tex").unlink()


def test_a_start_that_fails_says_why_and_leaves_nothing(state: Path) -> None:
    with pytest.raises(ClusterError, match=r"mount-\w+ failed"):
        Cluster(Wish(osts=1, nodes=1, state=state, mount_options="nonsense")).up()
    assert traces(state) == []
