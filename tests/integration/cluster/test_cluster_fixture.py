"""The cluster in a box is what it says: its tiers, its limits, its Slurm, and the faults that it can be given."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.cluster import Cluster, ClusterError
from tools.cluster_box import until

pytestmark = pytest.mark.cluster

MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
on_node = world.Split_type(MPI.COMM_TYPE_SHARED).size
places = world.gather((MPI.Get_processor_name(), on_node))
if world.rank == 0:
    print(places)
"""


def shell(cluster: Cluster, node: str, script: str, *, seconds: float = 30) -> str:
    return cluster.run(node, ["sh", "-ec", script], timeout_seconds=seconds).stdout.strip()


def fill(cluster: Cluster, path: Path, mib: int) -> None:
    """Written by `login`, so that no node has it in its cache."""
    shell(cluster, "login", f"head -c {mib}M /dev/urandom > {path}")


def read_mbit(cluster: Cluster, node: str, path: Path, mib: int) -> float:
    start = time.perf_counter()
    assert shell(cluster, node, f"cat {path} | wc -c") == str(mib << 20)
    return (mib << 23) / 1e6 / (time.perf_counter() - start)


def on_each_ost(cluster: Cluster, folder: Path, mib: int) -> list[Path]:
    files = []
    for ost in range(1, cluster.wish.osts + 1):
        shell(cluster, "login", f"mkdir {folder}/{ost}")
        cluster.place(folder / str(ost), ost)
        fill(cluster, folder / str(ost) / "file", mib)
        files.append(folder / str(ost) / "file")
    return files


def test_every_node_sees_the_gfs_and_has_an_lfs_of_its_own(cluster: Cluster, folder: Path) -> None:
    for node in cluster.nodes:
        shell(cluster, node, f"hostname > {folder}/{node}; hostname > {cluster.lfs}/whose")
    for node in cluster.nodes:
        assert shell(cluster, node, f"cat {folder}/*").split() == list(cluster.nodes)
        assert shell(cluster, node, f"cat {cluster.lfs}/whose; rm {cluster.lfs}/whose") == node
    assert cluster.seen_from_outside("n2", folder / "n1").read_text() == "n1\n"
    assert not (cluster.gfs / folder.name).exists()


def test_a_full_lfs_is_full_on_one_node_only(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="No space left"):
        shell(cluster, "n1", f"head -c 65M /dev/zero > {cluster.lfs}/big")
    shell(cluster, "n2", f"head -c 32M /dev/zero > {cluster.lfs}/big; rm {cluster.lfs}/big")
    shell(cluster, "n1", f"rm {cluster.lfs}/big")


def test_an_object_server_reads_at_its_rate_and_at_another_when_told(cluster: Cluster, folder: Path) -> None:
    cluster.place(folder, 1)
    fill(cluster, folder / "file", 24)
    assert read_mbit(cluster, "n1", folder / "file", 24) == pytest.approx(100, rel=0.15)
    cluster.retune(ost_mbit=400)
    try:
        assert read_mbit(cluster, "n2", folder / "file", 24) > 200
    finally:
        cluster.retune(ost_mbit=100)
    assert read_mbit(cluster, "n3", folder / "file", 24) == pytest.approx(100, rel=0.15)


@pytest.mark.nightly  # CI has a study that says so
def test_four_object_servers_read_faster_than_one(cluster: Cluster, folder: Path) -> None:
    files = on_each_ost(cluster, folder, 8)
    alone = read_mbit(cluster, "n1", files[0], 8)
    start = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda node, path: read_mbit(cluster, node, path, 8), ("n2", "n3", "n4", "n1"), files))
    together = 4 * (8 << 23) / 1e6 / (time.perf_counter() - start)
    assert together > 2.2 * alone


def test_a_slow_metadata_server_caps_opens(cluster: Cluster, folder: Path) -> None:
    shell(cluster, "login", f"for i in $(seq 500); do echo x > {folder}/$i; done")
    count = f"import glob, time; names = glob.glob('{folder}/*'); start = time.time(); [open(name).close() for name in names]; print(500 / (time.time() - start))"
    quick = float(cluster.run("n1", [sys.executable, "-c", count]).stdout)
    cluster.retune(mds_mbit=0.5)
    try:
        slow = float(cluster.run("n2", [sys.executable, "-c", count]).stdout)
    finally:
        cluster.retune(mds_mbit=None)
    assert slow < 400
    assert slow < quick / 2


def test_the_mount_counts_operations(cluster: Cluster, folder: Path) -> None:
    shell(cluster, "login", f"for i in 1 2 3 4 5; do echo x > {folder}/$i; done")
    before = cluster.stats("n1")
    shell(cluster, "n1", f"cat {folder}/*")
    after = cluster.stats("n1")
    assert after["fuse_ops.open"] - before["fuse_ops.open"] == 5 + 1  # the statistics are a file too
    assert after["fuse_ops.read"] > before["fuse_ops.read"]


def test_a_job_runs_on_every_node(cluster: Cluster, folder: Path) -> None:
    script = f"echo $SLURMD_NODENAME $(hostname) > {folder}/$SLURM_PROCID; touch {cluster.lfs}/job"
    job = cluster.sbatch("-N4", "--ntasks-per-node=1", "--output=/dev/null", f"--wrap=srun sh -c '{script}'")
    assert cluster.finished(job)["JobState"] == "COMPLETED"
    assert shell(cluster, "n1", f"cat {folder}/*").splitlines() == [f"{node} {node}" for node in cluster.nodes]
    for node in cluster.nodes:
        shell(cluster, node, f"rm {cluster.lfs}/job")


def test_a_requeued_job_starts_again(cluster: Cluster, folder: Path) -> None:
    script = f"echo start >> {folder}/log; [ ${{SLURM_RESTART_COUNT:-0}} = 1 ] || sleep 100"
    job = cluster.sbatch("-N1", "--requeue", "--output=/dev/null", f"--wrap={script}")
    assert until(
        lambda: shell(cluster, "n1", f"cat {folder}/log 2>/dev/null || true") == "start", seconds=20, pause_seconds=0.05
    )
    cluster.scontrol("requeue", str(job))
    ended = cluster.finished(job)
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1")
    assert shell(cluster, "n1", f"cat {folder}/log").split() == ["start", "start"]


def test_a_job_ends_at_its_time_limit(cluster: Cluster, folder: Path) -> None:
    job = cluster.sbatch("-N1", "--time=10", "--output=/dev/null", f"--wrap=touch {folder}/started; sleep 500")
    assert until(lambda: shell(cluster, "n1", f"ls {folder}") == "started", seconds=20, pause_seconds=0.05)
    cluster.end_time_limit(job)
    assert cluster.finished(job)["JobState"] == "TIMEOUT"


@pytest.mark.usefixtures("_mpi")
def test_mpi_ranks_span_the_nodes(cluster: Cluster, folder: Path) -> None:
    mpirun = Path(sys.executable).parent / "mpirun"
    program = cluster.seen_from_outside("login", folder / "places.py")
    program.write_text(MPI)
    launch = f"{mpirun} --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
    job = cluster.sbatch(
        "-N4", "--ntasks-per-node=2", f"--output={folder}/out", f"--wrap={launch} {sys.executable} {folder}/places.py"
    )
    ended = cluster.finished(job)
    told = shell(cluster, "n1", f"cat {folder}/out")
    assert ended["JobState"] == "COMPLETED", told
    assert told == str([(node, 2) for node in cluster.nodes for _ in range(2)])


def test_a_killed_rank_is_one_nodes_own(cluster: Cluster) -> None:
    """Process numbers are a node's own: nothing on n1 can hit what runs on n2."""
    with cluster.start("n1", ["sleep", "4711"]) as mine, cluster.start("n2", ["sleep", "4711"]) as other:
        assert until(
            lambda: shell(cluster, "n1", "pgrep -fx 'sleep 4711' || true") != "", seconds=20, pause_seconds=0.05
        )
        assert until(
            lambda: shell(cluster, "n2", "pgrep -fx 'sleep 4711' || true") != "", seconds=20, pause_seconds=0.05
        )
        shell(cluster, "n1", "pkill -9 -fx 'sleep 4711'")
        assert mine.wait(10) != 0
        assert other.poll() is None
        other.kill()
    assert until(lambda: shell(cluster, "n2", "pgrep -fx 'sleep 4711' || true") == "", seconds=20, pause_seconds=0.05)


@pytest.mark.nightly  # waits
def test_an_object_server_that_comes_back_has_its_files(cluster: Cluster, folder: Path) -> None:
    cluster.place(folder, 3)
    fill(cluster, folder / "file", 1)
    cluster.stop_ost(3)
    with cluster.start("n1", ["cat", str(folder / "file")]) as reader:
        time.sleep(1)
        assert reader.poll() is None
        reader.kill()
    cluster.start_ost(3)
    assert shell(cluster, "n2", f"cat {folder}/file | wc -c") == str(1 << 20)


@pytest.mark.nightly  # waits
def test_a_node_without_network_waits_and_goes_on(cluster: Cluster, folder: Path) -> None:
    fill(cluster, folder / "file", 1)
    cluster.link("n4", up=False)
    try:
        with cluster.start("n4", ["cksum", str(folder / "file")]) as reader:
            time.sleep(1)
            assert reader.poll() is None
            cluster.link("n4", up=True)
            assert reader.wait(30) == 0
    finally:
        cluster.link("n4", up=True)


def test_a_read_only_gfs_reads(cluster: Cluster, folder: Path) -> None:
    shell(cluster, "n1", f"echo here > {folder}/file")
    cluster.read_only(True)
    try:
        with pytest.raises(ClusterError, match="Read-only file system"):
            shell(cluster, "n1", f"echo x > {folder}/other")
        assert shell(cluster, "n2", f"cat {folder}/file") == "here"
    finally:
        cluster.read_only(False)
    shell(cluster, "n1", f"echo x > {folder}/other")


def test_mistakes_are_told(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="n9: no such place; there are login n1 n2 n3 n4"):
        cluster.run("n9", ["true"])
    with pytest.raises(ClusterError, match="ost 5: must be within 1–4"):
        cluster.stop_ost(5)
    with pytest.raises(ClusterError, match="n1: sh -c exit 3: ended with 3"):
        cluster.run("n1", ["sh", "-c", "exit 3"])
