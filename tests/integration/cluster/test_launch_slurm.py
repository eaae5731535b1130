"""`tierscope launch` on a real Slurm: four nodes, ranks of Open MPI, the time limit, and what a user cancels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tierscope.output.store import RunStore
from tools import cluster_study
from tools.cluster import Cluster, ClusterError
from tools.cluster_box import until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("_mpi")]

STUDY = """
study: launched
workload:
  dataset: {{format: raw, num_files_train: 16, record_length_bytes: 1 MiB}}
  reader: {{batch_size: 1, prefetch_size: 1}}
  train: {{epochs: 1}}
system:
  nodes: 4
  ranks_per_node: 2
  tiers:
    lfs: {{path: "{lfs}", visible_to: node}}
    gfs: {{path: "{gfs}"}}
sweep:
  placement.cache_rate: [0%, 50%]
repetitions: {repetitions}
"""


@pytest.fixture
def lfs(cluster: Cluster) -> Iterator[Path]:
    """A folder in every node's own storage, gone afterwards."""
    yield cluster.lfs / "data"
    for node in cluster.nodes:
        cluster.run(node, ["rm", "-rf", str(cluster.lfs / "data")])


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """Every finished run, and its inode and time: another if it was written again."""
    files = (out / "runs").glob("*.parquet")
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def test_ranks_run_where_the_study_says_and_each_node_has_a_path_of_its_own(
    cluster: Cluster, folder: Path, tmp_path: Path
) -> None:
    """The path is on the file system that all nodes see: only the variable keeps them apart."""
    out = tmp_path / "out"
    study = written(tmp_path, STUDY.format(lfs=f"{folder}/of-$SLURMD_NODENAME", gfs=f"{folder}/all", repetitions=1))
    cluster_study.run(cluster, study, out)
    listing = cluster.run("login", ["find", str(folder), "-name", "*.raw"]).stdout.split()
    per_place = {Path(path).relative_to(folder).parts[0] for path in listing}
    assert per_place == {"all", *(f"of-{node}" for node in cluster.nodes)}
    for node in cluster.nodes:
        assert sum(f"/of-{node}/" in path for path in listing) == 8  # half of the files
    traces = list(RunStore(str(out)).load_all())
    assert len(traces) == 2
    assert {trace.about.provenance.launcher for trace in traces if trace.about.provenance} == {"mpi"}
    for trace in traces:
        assert trace.ranks.sort("rank")["node"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert "\x1b" not in cluster_study.log_of(out).read_text()


@pytest.mark.nightly  # minutes: Slurm announces limits when it likes; CI has a job that is queued again after kills
def test_after_the_time_limit_the_job_is_queued_again_and_goes_on(
    cluster: Cluster, folder: Path, lfs: Path, tmp_path: Path
) -> None:
    """Slurm announces the limit; meanwhile one node loses what was staged on it, as a real one would, and another one half of a file."""
    out, repetitions = tmp_path / "out", 25  # Slurm may take 30 s to announce the limit, a pair of them two
    cluster.place(folder, 1)
    study = written(tmp_path, STUDY.format(lfs=lfs, gfs=folder / "all", repetitions=repetitions))
    job = cluster_study.launch(cluster, study, out)
    try:
        assert until(lambda: len(finished(out)) >= 2, seconds=90, pause_seconds=0.05)
        cluster.scontrol("update", f"JobId={job}", "EndTime=now+90seconds")  # which is within the margin: announced now
        assert until(lambda: cluster.job(job)["Restarts"] == "1", seconds=90, pause_seconds=0.05)
        before = finished(out)
        assert 2 <= len(before) < 2 * repetitions
        cluster.run("n2", ["rm", "-rf", str(lfs)])
        damaged = cluster.run("n3", ["find", str(lfs), "-name", "*.raw"]).stdout.split()[0]
        cluster.run("n3", ["truncate", "--size=512K", damaged])
        cluster.scontrol("update", f"JobId={job}", "TimeLimit=10")
        cluster.retune(ost_mbit=None)  # what is left need not take long
        assert cluster.finished(job, timeout_seconds=120)["JobState"] == "COMPLETED"
    finally:
        cluster.run("login", ["scancel", str(job)], check=False)
        cluster.retune(ost_mbit=100)
    after = finished(out)
    assert len(after) == 2 * repetitions
    assert before.items() <= after.items()
    for node in ("n2", "n3"):
        whole = ["find", str(lfs), "-name", "*.raw", "-size", "1048576c"]
        assert len(cluster.run(node, whole).stdout.split()) == 8
    said = cluster_study.log_of(out).read_text()
    assert said.count("tierscope: stopped; finished runs are kept; rerun the same command to continue") == 1
    assert "Results: " in said


def test_a_cancelled_job_is_not_queued_again(cluster: Cluster, folder: Path, lfs: Path, tmp_path: Path) -> None:
    """Who cancels sends the signal that announces the limit."""
    out = tmp_path / "out"
    cluster.place(folder, 1)
    job = cluster_study.launch(
        cluster, written(tmp_path, STUDY.format(lfs=lfs, gfs=folder / "all", repetitions=40)), out
    )
    assert until(lambda: finished(out), seconds=90, pause_seconds=0.05)
    cluster.run("login", ["scancel", str(job)])
    ended = cluster.finished(job)
    assert (ended["JobState"], ended["Restarts"]) == ("CANCELLED", "0")
    assert finished(out)


def test_emulation_does_not_span_these_nodes(cluster: Cluster, folder: Path, lfs: Path, tmp_path: Path) -> None:
    """They are one machine, but neither know it nor share memory: refused before it waits in a queue."""
    study = written(tmp_path, STUDY.format(lfs=lfs, gfs=folder / "all", repetitions=1))
    with pytest.raises(ClusterError, match=r"system\.tiers\.lfs\.emulate = true works only on a single host"):
        cluster_study.launch(
            cluster, study, tmp_path / "out", "--set", "lfs.emulate=true", "--set", "lfs.bandwidth=1 MB/s"
        )
