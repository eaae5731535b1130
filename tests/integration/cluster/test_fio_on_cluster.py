"""A system made of fio's output alone, on real parts: what it is simulated to take is what a study takes there.

fio reads as many bytes of as large files as the study will, with one process and with four; whether four are all that the servers give is not known, so the
figures are bounds, and the study has as many ranks. It runs twice, before and after the study: other load on this machine slows one run of a few seconds by
a fifth and more, and of several files the best phase is taken.
"""

import json
import shutil
from pathlib import Path

import pytest

from tierscope.commands.analyze import analyze
from tierscope.predict.simulation import Simulation
from tierscope.probe.from_files import FromRequest, systems_of, write_imported
from tierscope.spec.load import load_study
from tools.cluster import Cluster
from tools.cluster_study import BIN

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not shutil.which("fio"), reason="no fio: apt-get install fio"),
]
RANKS = 4
JOB = """
[global]
directory={folder}
ioengine=psync
rw=read
bs=256k
filesize=1m
openfiles=1
[one]
nrfiles=24
numjobs=1
[many]
stonewall
nrfiles=24
numjobs={ranks}
group_reporting
"""
STUDY = """
study: fio
workload:
  dataset: {{format: raw, num_files_train: 96, record_length_bytes: 1 MiB}}
  reader: {{batch_size: 1, read_threads: 1, prefetch_size: 1, transfer_size: 256 KiB}}
  train: {{epochs: 3}}
system:
  nodes: 1
  ranks_per_node: {ranks}
  tiers:
    gfs: {{path: "{gfs}", bandwidth: 1 GB/s}}
"""


@pytest.fixture(scope="module")
def job(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files written on the first node: nothing of them is in the others' caches."""
    folder, job = cluster.gfs / "fio", tmp_path_factory.mktemp("fio") / "job.fio"
    job.write_text(JOB.format(folder=folder, ranks=RANKS))
    cluster.run(cluster.nodes[0], ["mkdir", str(folder)])
    cluster.run(cluster.nodes[0], ["fio", "--create_only=1", str(job)], timeout_seconds=120)
    return job


def test_a_system_of_fio_alone_predicts_a_study(cluster: Cluster, job: Path, tmp_path: Path) -> None:
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(STUDY.format(gfs=cluster.gfs / "study-fio", ranks=RANKS))
    run = [str(BIN / "tierscope"), "run", str(study), "--out", str(out), "--quiet"]
    outputs = tuple(str(tmp_path / f"fio-{when}.json") for when in ("before", "after"))

    def run_fio(node: str, output: str) -> None:
        cluster.run(node, ["fio", "--output-format=json", f"--output={output}", str(job)], timeout_seconds=120)

    run_fio(cluster.nodes[1], outputs[0])
    cluster.run(cluster.nodes[2], run, timeout_seconds=240)
    run_fio(cluster.nodes[3], outputs[1])
    measured = analyze(str(out)).breakdown.summary[0].epoch_seconds
    assert measured

    (found,) = systems_of(FromRequest(outputs))
    assert found.known is not None
    assert (found.known.system.nodes, found.known.system.ranks_per_node) == (1, RANKS)
    path = tmp_path / "system.yaml"
    write_imported(found, str(path), list(outputs))
    predicted = float(Simulation.of(load_study(str(study), (), str(path))).epoch(1, "events").seconds.max())
    said = {key: figure.value for key, figure in found.known.figures.items()}
    assert predicted == pytest.approx(measured, rel=0.15), json.dumps(said)
