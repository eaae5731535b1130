"""Faults of a real filesystem and a real scheduler: a clear line, nothing finished is lost, nobody hangs, the same command goes on.

What of this needs no cluster (kills of local ranks, full disks, vanished files) is in the tests marked `faults`.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nightly import first_in_ci
from tierscope.output.store import RunStore
from tools import cluster_study
from tools.cluster import Cluster
from tools.cluster_box import until
from tools.cluster_study import BIN, SETTINGS

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("_mpi")]

STUDY = """
study: faulty
workload:
  dataset: {format: tfrecord, num_files_train: 32, record_length_bytes: 128 KiB}
  reader: {batch_size: 2, read_threads: 1}
  train: {epochs: 2}
system:
  nodes: 4
  tiers:
    lfs: {path: "LFS/{node}", visible_to: node}
    gfs: {path: "GFS"}
sweep: {placement.cache_rate: [0%, 50%, 25%]}
"""
RUNS = 3
SLOW_MBIT = 8  # four servers: a run of the study takes about two seconds
NO_HANG_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def _slow(cluster: Cluster) -> Iterator[None]:
    usual = cluster.wish.ost_mbit
    yield
    cluster.retune(ost_mbit=usual)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> "list[Rows]":
    """What a study's runs must have read, from plain directories."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "study.yaml").write_text(STUDY.replace("LFS", f"{folder}/lfs").replace("GFS", f"{folder}/gfs"))
    command = [str(BIN / "tierscope"), "run", str(folder / "study.yaml"), "--out", str(folder / "out"), "--quiet"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return rows(folder / "out")


Rows = list[tuple[object, ...]]


def rows(out: Path) -> list[Rows]:
    """Of every run in order: what each rank read in each epoch, and in which order. Checksums are verified on the way."""
    columns = ("point", "repetition", "epoch", "node", "rank", "samples", "payload_bytes", "order_digest")
    return [trace.ranks.sort("epoch", "rank").select(columns).rows() for trace in RunStore(str(out)).load_all()]


class Case:
    """One study of one test, run again and again."""

    def __init__(self, cluster: Cluster, gfs: Path, folder: Path) -> None:
        self.cluster, self.gfs, self.out = cluster, gfs, folder / "out"
        self.seen_out = self.out
        self.lfs = cluster.lfs / gfs.name
        self.study = folder / "study.yaml"
        self.study.write_text(STUDY.replace("LFS", str(self.lfs)).replace("GFS", str(gfs / "gfs")))
        self.more: list[str] = []
        self._started: list[subprocess.Popen[str]] = []

    def onto_gfs(self) -> None:
        """Results on the GFS too."""
        self.out = self.gfs / "out"
        self.seen_out = self.cluster.seen_from_outside("login", self.out)

    def on_one_server(self, ost: int) -> None:
        self.cluster.place(self.gfs, ost)
        self.cluster.retune(ost_mbit=3 * SLOW_MBIT)

    def command(self, *more: str) -> list[str]:
        return [str(BIN / "tierscope"), "run", str(self.study), "--out", str(self.out), "--quiet", *self.more, *more]

    def on(self, node: str, *more: str) -> "subprocess.Popen[str]":
        """All ranks on one node."""
        return self._start(node, self.command(*more))

    def over_nodes(self) -> "subprocess.Popen[str]":
        """A rank on each node."""
        allocate = ["salloc", "-Q", "-N4", "--ntasks-per-node=1", str(BIN / "mpirun"), "--map-by", "ppr:1:node"]
        return self._start("login", [*allocate, *self.command()])

    def _start(self, node: str, command: list[str]) -> "subprocess.Popen[str]":
        self._started.append(self.cluster.start(node, command, environment=SETTINGS))
        return self._started[-1]

    def as_job(self, *more: str) -> int:
        """The same through `tierscope launch --submit`; the number of the job."""
        return cluster_study.launch(self.cluster, self.study, self.out, *more)

    def end(self) -> None:
        """Whatever became of the test: nothing of it disturbs the next one."""
        for process in self._started:
            process.kill()
            process.communicate()
        self.cluster.run("login", ["scancel", "--full", "--user=root"])
        self.cluster.run("login", ["pkill", "-9", "-f", self._pattern()], check=False)
        for node in self.cluster.nodes:
            self.cluster.run(node, ["sh", "-c", f"rm -rf {self.cluster.lfs}/*"])

    def reads(self) -> bool:
        """Whether some rank has a file of the GFS open. (The nodes' processes are all below `login`.)"""
        look = f"readlink /proc/[0-9]*/fd/* | grep -qF '{self.gfs}/gfs/'"
        return self.cluster.run("login", ["sh", "-c", look], check=False).returncode == 0

    def reads_as_job(self, job: int, restart: int) -> None:
        """Until a job reads that was queued again so often, and as many runs are finished."""

        def now() -> bool:
            queued = self.cluster.job(job)["Restarts"] == str(restart)
            return queued and len(self.finished()) >= restart and self.reads()

        assert until(now, seconds=NO_HANG_SECONDS), cluster_study.log_of(self.out).read_text()

    def finished(self) -> dict[str, bytes]:
        runs = self.seen_out / "runs"
        return {path.name: path.read_bytes() for path in runs.glob("*.parquet")} if runs.exists() else {}

    def until(self, true: Callable[[], object], process: "subprocess.Popen[str]", seconds: float = 40) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def into_second_run(self, process: "subprocess.Popen[str]") -> None:
        """Until one run is finished and the next one reads."""
        self.until(self.finished, process)
        self.until(self.reads, process)
        assert len(self.finished()) == 1

    def files(self, place: Path) -> list[str]:
        return self.cluster.run(
            "n1", ["find", str(place), "-type", "f", "-name", "*.tfrecord"], check=False
        ).stdout.split()

    def _pattern(self) -> str:
        return f"tierscope run .*{self.out}|bench.rank"

    def processes(self) -> str:
        """What still runs of this study, on any node. (Their processes are all below `login`.)"""
        answer = self.cluster.run("login", ["pgrep", "-af", self._pattern()], check=False)
        assert answer.returncode in (0, 1), answer.stderr
        return "\n".join(line for line in answer.stdout.splitlines() if "pgrep" not in line)

    def nothing_runs(self) -> None:
        assert until(lambda: not self.processes(), seconds=20, pause_seconds=0.1), self.processes()

    def ended(self, process: "subprocess.Popen[str]", seconds: float = NO_HANG_SECONDS) -> tuple[int, list[str]]:
        """Exit code, and what we said: our own lines, without a launcher's."""
        try:
            _, err = process.communicate(timeout=seconds)
        finally:
            process.kill()
        assert "Traceback" not in err
        return process.returncode, [line for line in err.splitlines() if line.startswith("tierscope: ")]

    def goes_on(self, before: dict[str, bytes], undisturbed: list[Rows], node: str = "n1") -> None:
        """The same command finishes the study; all of it is as if nothing had happened."""
        self.nothing_runs()
        self.cluster.retune(ost_mbit=100)
        code, said = self.ended(self.on(node))
        assert code == 0, said
        after = self.finished()
        assert {name: after[name] for name in before} == before, "a finished run was repeated or touched"
        assert rows(self.seen_out) == undisturbed


@pytest.fixture
def case(cluster: Cluster, folder: Path, tmp_path: Path) -> Iterator[Case]:
    cluster.retune(ost_mbit=SLOW_MBIT)
    made = Case(cluster, folder, tmp_path)
    yield made
    made.end()


# ---- processes that die


def test_a_job_whose_rank_director_or_launcher_is_killed_goes_on(case: Case, undisturbed: list[Rows]) -> None:
    """The launcher's exit code is its own; the job's script knows what it means, and queues it again."""
    job = case.as_job()
    tierscope, mpirun = r"^[^ ]*python[0-9.]* [^ ]*tierscope run", "^[^ ]*(mpirun|prterun)"
    for restart, (victim, node) in enumerate([(tierscope, "n3"), (tierscope, "n1"), (mpirun, "n1")]):
        case.reads_as_job(job, restart)
        before = case.finished()
        assert len(before) == restart, "one run is finished between kills"
        case.cluster.run(node, ["pkill", "-9", "-f", f"{victim} .*{case.out}"])
    ended = case.cluster.finished(job, timeout_seconds=NO_HANG_SECONDS)
    said = cluster_study.log_of(case.out).read_text()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "3"), said
    assert "Traceback" not in said
    after = case.finished()
    assert {name: after[name] for name in before} == before, "a finished run was repeated or touched"
    assert rows(case.out) == undisturbed
    case.nothing_runs()


def test_a_killed_rank_of_one_node_is_told(case: Case, undisturbed: list[Rows]) -> None:
    process = case.on("n2")
    case.into_second_run(process)
    before = case.finished()
    case.cluster.run("n2", ["pkill", "-9", "-n", "-f", "bench.rank"])
    code, said = case.ended(process)
    assert code == 3
    assert said == [
        "tierscope: rank 3 was killed by SIGKILL (out of memory?); finished runs are kept; rerun to continue"
    ]
    case.goes_on(before, undisturbed)


# ---- servers and networks that go


@pytest.mark.nightly  # waits; CI has the network that is cut for three seconds
def test_an_object_server_that_is_away_for_ten_seconds_is_a_stall(case: Case, undisturbed: list[Rows]) -> None:
    case.on_one_server(2)
    process = case.on("n1")
    case.into_second_run(process)
    case.cluster.stop_ost(2)
    time.sleep(10)
    case.cluster.start_ost(2)
    code, said = case.ended(process)
    assert (code, said) == (0, [])
    assert rows(case.out) == undisturbed
    longest = [max(trace.ranks["step_stall_seconds"].explode()) for trace in RunStore(str(case.out)).load_all()]
    (stalled,) = [point for point, seconds in enumerate(longest) if seconds >= 8]
    command = [str(BIN / "tierscope"), "characterise", str(case.out), "--point", str(stalled), "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    timeline = told["timeline"]["value"]
    little = 0.2 * max(timeline["bytes_per_second"])
    bins = zip(timeline["stalled"], timeline["bytes_per_second"], strict=True)
    waiting = [ranks >= 0.9 and rate < little for ranks, rate in bins]
    assert longest_streak(waiting) * timeline["bin_seconds"] >= 7


def longest_streak(flags: list[bool]) -> int:
    return max(len(part) for part in "".join("x" if flag else " " for flag in flags).split(" "))


DOES_NOT_ANSWER = (
    r"rank \d \(node \d\): no progress for 6 s: it waits for .*\.tfrecord on tier gfs, which does not answer"
)


def test_an_object_server_that_is_gone_is_named_and_waited_for_no_longer_than_told(
    case: Case, undisturbed: list[Rows]
) -> None:
    """Its readers hang where no signal reaches them: the director does not wait for them either."""
    case.on_one_server(3)
    case.more = ["--stall-limit", "6s"]
    process = case.on("n1")
    case.into_second_run(process)
    before = case.finished()
    case.cluster.stop_ost(3)
    try:
        start = time.monotonic()
        code, said = case.ended(process)
        assert time.monotonic() - start < 25
    finally:
        case.cluster.start_ost(3)
    assert code == 3
    (line,) = said
    assert re.search(DOES_NOT_ANSWER, line)
    case.goes_on(before, undisturbed, "n2")


@pytest.mark.nightly  # waits; CI has the server that is gone without a job around it
def test_a_job_whose_object_server_is_gone_goes_on_when_it_is_back(case: Case, undisturbed: list[Rows]) -> None:
    """MPI would wait for ranks that nobody can kill. Slurm does, before the job starts again; the job itself is over long before."""
    case.on_one_server(3)
    job = case.as_job("--stall-limit", "6s")
    assert until(lambda: case.finished() and case.reads(), seconds=NO_HANG_SECONDS)
    before = case.finished()
    case.cluster.stop_ost(3)
    try:
        assert until(lambda: case.cluster.job(job)["JobState"] != "RUNNING", seconds=35, pause_seconds=0.2)
    finally:
        case.cluster.start_ost(3)
    ended = case.cluster.finished(job, timeout_seconds=NO_HANG_SECONDS)
    said = cluster_study.log_of(case.out).read_text()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), said
    assert re.search(DOES_NOT_ANSWER, said)
    after = case.finished()
    assert {name: after[name] for name in before} == before, "a finished run was repeated or touched"
    assert rows(case.out) == undisturbed
    case.nothing_runs()


@pytest.mark.parametrize("seconds", first_in_ci([3, 15], 1))
def test_a_nodes_network_that_is_cut_and_restored_is_a_stall(case: Case, undisturbed: list[Rows], seconds: int) -> None:
    process = case.over_nodes()
    case.into_second_run(process)
    case.cluster.link("n2", up=False)
    try:
        time.sleep(seconds)
    finally:
        case.cluster.link("n2", up=True)
    assert case.ended(process) == (0, [])
    assert rows(case.out) == undisturbed
    case.nothing_runs()


# ---- filesystems that take no more


MANY = ("num_files_train=2000", "record_length_bytes=4 KiB", "nodes=1", "sweep={}", "epochs=1", "cache_rate=100%")
HOG = """
import glob, os, sys, time
while len(glob.glob(sys.argv[1] + '/**/*.tfrecord', recursive=True)) < 100:
    time.sleep(0.001)
free = os.statvfs(sys.argv[1])
with open(sys.argv[2], 'wb') as hog:
    os.posix_fallocate(hog.fileno(), 0, free.f_bavail * free.f_frsize)
"""


def test_an_lfs_that_fills_up_while_it_is_staged(case: Case) -> None:
    files = 6000  # so many that the hog comes in time
    case.more = [word for setting in (*MANY, f"num_files_train={files}") for word in ("--set", setting)]
    cluster, hog = case.cluster, case.cluster.lfs / "hog"
    cluster.run("n1", ["mkdir", "-p", str(case.lfs)])
    with cluster.start("n1", [str(BIN / "python"), "-c", HOG, str(case.lfs), str(hog)]) as other:
        code, said = case.ended(case.on("n1"))
        other.wait(10)
    assert code == 3
    (line,) = said
    assert re.search(rf"{case.lfs}.*No space left on device while generating; free some space", line)
    mark = cluster.run("n1", ["sh", "-c", f"cat {case.lfs}/0/tfrecord*/tierscope.json"]).stdout
    assert json.loads(mark)["complete"] is False, "what is half made is not trusted"
    cluster.run("n1", ["rm", str(hog)])
    code, said = case.ended(case.on("n1"))
    assert code == 0, said
    assert len(case.files(case.lfs)) == files


@pytest.mark.nightly  # CI has the results on such a GFS
def test_a_gfs_that_becomes_read_only_while_it_is_staged(case: Case) -> None:
    case.more = [word for setting in MANY for word in ("--set", setting.replace("100%", "0%"))]
    cluster = case.cluster
    process = case.on("n1")
    case.until(lambda: case.files(case.gfs), process)
    cluster.read_only(True)
    try:
        code, said = case.ended(process)
        assert code == 3
        (line,) = said
        assert re.search(rf"{case.gfs}.* cannot be written: (Read-only file system|Input/output error)", line)
        code, said = case.ended(case.on("n2"))
        assert code in (2, 3)
        assert len(said) == 1
        assert "Read-only file system" in said[0]
    finally:
        cluster.read_only(False)
    code, said = case.ended(case.on("n1"))
    assert code == 0, said
    assert len(case.files(case.gfs)) == 2000


def test_results_on_a_gfs_that_becomes_read_only(case: Case, undisturbed: list[Rows]) -> None:
    case.onto_gfs()
    process = case.on("n1")
    case.into_second_run(process)
    before = case.finished()
    case.cluster.read_only(True)
    try:
        code, said = case.ended(process)
    finally:
        case.cluster.read_only(False)
    assert code == 3
    (line,) = said
    assert re.search(rf"{case.out}/runs.*: cannot be written: (Read-only file system|Input/output error)", line)
    case.goes_on(before, undisturbed)


# ---- and the rest


@pytest.mark.nightly  # CI has that on one machine, in tests/measure/test_run.py
def test_an_lfs_that_is_gone_after_a_stop_is_staged_again(case: Case, undisturbed: list[Rows]) -> None:
    process = case.on("n1")
    case.into_second_run(process)
    before = case.finished()
    case.cluster.run("n1", ["pkill", "-TERM", "-o", "-f", f"tierscope run .*{case.out}"])  # as a scheduler does
    code, said = case.ended(process)
    assert (code, said) == (3, ["tierscope: stopped; finished runs are kept; rerun the same command to continue"])
    staged = case.files(case.lfs)
    assert staged
    case.cluster.run("n1", ["rm", "-r", str(case.lfs)])
    case.goes_on(before, undisturbed)
    assert sorted(case.files(case.lfs)) == sorted(staged)


def test_a_second_run_from_another_node_is_refused(case: Case, undisturbed: list[Rows]) -> None:
    case.onto_gfs()
    first = case.on("n1")
    case.until((case.seen_out / "study.yaml").exists, first)
    code, said = case.ended(case.on("n2"))
    assert code == 2
    assert len(said) == 1
    assert "in use by another run" in said[0]
    code, said = case.ended(first)
    assert code == 0, said
    assert rows(case.seen_out) == undisturbed


def test_a_node_with_a_slow_link_is_named_as_a_straggler(case: Case) -> None:
    """What the switch sends to n3 goes at a fifth of what the others get from an object server each."""
    cluster, link = case.cluster, ["tc", "qdisc", "replace", "dev", "to-n3", "root"]
    case.more = ["--json", "--set", "sweep={}", "--set", "epochs=3"]
    cluster.retune(ost_mbit=100)
    try:
        cluster.run("login", [*link, "tbf", "rate", "20mbit", "burst", "64kb", "latency", "50ms"])
        process = case.over_nodes()
        out, err = process.communicate(timeout=NO_HANG_SECONDS)
    finally:
        cluster.run("login", [*link, "pfifo"])
    assert process.returncode == 0, err
    (found,) = [finding for finding in json.loads(out)["findings"] if finding["kind"] == "straggler"]
    assert (found["evidence"]["rank"], found["evidence"]["node"]) == (2, 2)
    assert 2 < found["evidence"]["factor"] < 8  # 3.9
