"""Launchers on exact text: no scheduler is needed to know what would be submitted."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tierscope.launch import LAUNCHERS
from tierscope.launch.base import FREE_RESTARTS, MOST_RESTARTS, Job, script

pytestmark = pytest.mark.whole


def a_job(path: str = "/home/me/small.sh", **changes: object) -> Job:
    given = {
        "name": "small",
        "script": path,
        "nodes": 4,
        "ranks_per_node": 2,
        "seconds": 3900,
        "command": ("tierscope", "run", "study.yaml", "--out", "/scratch/my out"),
        "out": "/scratch/my out",
        "runs": 0,
        **changes,
    }
    return Job(**given)  # type: ignore[arg-type]


HEADS = {
    "slurm": """#!/bin/bash
#SBATCH --job-name=small
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=1:05:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=small-%j.log
#SBATCH --partition=fast
#SBATCH --account=me
#SBATCH --exclusive
""",
    "pjm": """#!/bin/bash
#PJM -N small
#PJM -L node=4
#PJM --mpi proc=8
#PJM -L elapse=1:05:00
#PJM -j
#PJM -L rscgrp=fast
#PJM -g me
#PJM --exclusive
""",
    "pbs": """#!/bin/bash
#PBS -N small
#PBS -l select=4:ncpus=2:mpiprocs=2
#PBS -l place=scatter
#PBS -l walltime=1:05:00
#PBS -j oe
#PBS -q fast
#PBS -A me
#PBS --exclusive

cd "$PBS_O_WORKDIR" || exit 2
""",
    "mpirun": """#!/bin/bash
# small: 4 nodes x 2 ranks
""",
}
STARTS = {
    "slurm": "srun --distribution=block --kill-on-bad-exit=1 tierscope run study.yaml --out '/scratch/my out' &",
    "pjm": "timeout --signal=TERM --kill-after=60 3780 mpiexec -n 8 tierscope run study.yaml --out '/scratch/my out' &",
    "pbs": "timeout --signal=TERM --kill-after=60 3780 mpirun -n 8 tierscope run study.yaml --out '/scratch/my out' &",
    "mpirun": "timeout --signal=TERM --kill-after=60 3780 mpirun -n 8 --map-by ppr:2:node --exclusive tierscope run study.yaml --out '/scratch/my out' &",
}
ENDS = {
    "slurm": "scontrol requeue $SLURM_JOB_ID && exit 0",
    "pjm": "pjsub -x TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1)) /home/me/small.sh && exit 0",
    "pbs": "qsub -v TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1)) /home/me/small.sh && exit 0",
    "mpirun": "exec env TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1)) bash /home/me/small.sh",
}
_OWN_CLOCK = '[ $code -ne 0 ] && [ $code -ne 2 ] && ! [ -n "$told" ]'
CONDITIONS = {
    "slurm": '[ $code -ne 0 ] && [ $code -ne 2 ] && ! [ "$(squeue --noheader --jobs=$SLURM_JOB_ID --format=%T)" = COMPLETING ]',
    "pjm": _OWN_CLOCK,
    "pbs": _OWN_CLOCK,
    "mpirun": _OWN_CLOCK,
}
TRAPS = {"slurm": "    trap '' TERM  # requeueing a job kills its processes\n"}
RESTARTS = {"slurm": "${SLURM_RESTART_COUNT:-0}"}  # the others': ${TIERSCOPE_RESTARTS:-0}
SUBMITS = {"slurm": "sbatch", "pjm": "pjsub", "pbs": "qsub", "mpirun": "bash"}


@pytest.mark.parametrize("name", list(LAUNCHERS))
def test_the_whole_text(name: str) -> None:
    job = a_job(queue="fast", account="me", options=("--exclusive",), setup=("module load mpi",))
    text = script(LAUNCHERS.load(name)(), job)
    assert text.startswith(HEADS[name])
    assert text.splitlines()[len(HEADS[name].splitlines()) :][:6] == [
        "",
        "module load mpi",
        "export TERM=dumb COLUMNS=160  # some launchers treat the log as a terminal",
        "finished() { ls '/scratch/my out'/runs/*.parquet 2>/dev/null | wc -l; }",
        "told= study= before=$(finished)",
        """trap 'told=yes; [ -z "$study" ] || kill -TERM $study' TERM INT HUP""",
    ]
    assert STARTS[name] in text.splitlines()
    restarts = RESTARTS.get(name, "${TIERSCOPE_RESTARTS:-0}")
    assert text.endswith(f"""code=$?
[ $code -le 3 ] || code=3  # killed, timed out, or a launcher's own code for it
[ $code -ne 0 ] || [ $(finished) -ge 0 ] || code=3  # launchers may return 0 for an aborted job
if {CONDITIONS[name]}; then
  if [ {restarts} -lt 3 ] || {{ [ {restarts} -lt 100 ] && [ $(finished) -gt $before ]; }}; then
{TRAPS.get(name, "")}    {ENDS[name]}
  fi
  echo "tierscope: stopped after {restarts} restarts and not resubmitted; submit the script to continue" >&2
fi
exit $code
""")
    assert LAUNCHERS.load(name)().submit("x.sh") == [SUBMITS[name], "x.sh"]


@pytest.mark.parametrize("name", list(LAUNCHERS))
def test_bash_reads_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text(script(LAUNCHERS.load(name)(), a_job(setup=("true",))))
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_how_srun_starts_mpi() -> None:
    assert LAUNCHERS.load("slurm")().start(a_job(mpi="pmix"))[:2] == ["srun", "--mpi=pmix"]


def test_open_mpi_starts_itself_inside_an_allocation() -> None:
    started = LAUNCHERS.load("slurm")().start(a_job(mpi="mpirun"))
    assert started == ["mpirun", "-n", "8", "--map-by", "ppr:2:node"]


def test_a_short_limit_is_announced_halfway() -> None:
    assert "#SBATCH --signal=B:TERM@60" in script(LAUNCHERS.load("slurm")(), a_job(seconds=120))
    assert "timeout --signal=TERM --kill-after=30 60 mpirun" in script(LAUNCHERS.load("pbs")(), a_job(seconds=120))


class Box:
    """Programs of our own under the names that a script calls; each writes down how it was called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bin").mkdir()
        self.calls = folder / "calls"

    def program(self, name: str, body: str) -> None:
        path = self._folder / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> "{self.calls}"\n{body}\n')
        path.chmod(0o755)

    def start(self, text: str, **variables: str) -> subprocess.Popen[bytes]:
        path = self._folder / "job.sh"
        path.write_text(text)
        environment = {"PATH": f"{self._folder}/bin:/usr/bin:/bin", **variables}
        return subprocess.Popen(["bash", str(path)], env=environment)

    def said(self) -> list[str]:
        """Apart from questions."""
        told = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in told if not line.startswith("squeue ")]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    made = Box(tmp_path)
    made.program("squeue", "echo RUNNING")
    return made


@pytest.mark.parametrize(
    ("ends", "code", "queued"),
    [
        ("exit 0", 0, False),
        ("exit 1", 1, True),  # a launcher's, or a bug: a few times
        ("exit 2", 2, False),
        ("exit 3", 3, True),
        ("exit 137", 3, True),  # as srun and mpirun say it of a rank
        ("exit 16", 3, True),  # as MPI ends ranks that lost another one
        ("kill -9 $$", 3, True),
    ],
)
def test_only_what_can_be_resumed_is_queued_again(box: Box, ends: str, code: int, queued: bool) -> None:
    box.program("srun", ends)
    box.program("scontrol", "exit 0")
    ended = box.start(script(LAUNCHERS.load("slurm")(), a_job()), SLURM_JOB_ID="7").wait(20)
    assert ("scontrol requeue 7" in box.said()) is queued
    assert ended == (0 if queued else code)


@pytest.mark.parametrize(
    ("restarts", "finishes", "queued"),
    [
        (FREE_RESTARTS - 1, False, True),
        (FREE_RESTARTS, False, False),
        (FREE_RESTARTS, True, True),
        (MOST_RESTARTS - 1, True, True),
        (MOST_RESTARTS, True, False),
    ],
)
def test_it_is_not_queued_for_ever(
    box: Box, tmp_path: Path, capfd: pytest.CaptureFixture[str], restarts: int, finishes: bool, queued: bool
) -> None:
    """A few times in any case; then only where each job finishes a run, and others have not been before."""
    runs = tmp_path / "my out" / "runs"
    runs.mkdir(parents=True)
    (runs / "0.parquet").touch()
    box.program("srun", f"touch '{runs}/1.parquet{'' if finishes else '.7.tmp'}'; exit 3")
    box.program("scontrol", "exit 0")
    variables = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts)}
    text = script(LAUNCHERS.load("slurm")(), a_job(out=str(runs.parent)))
    assert box.start(text, **variables).wait(20) == (0 if queued else 3)
    assert ("scontrol requeue 7" in box.said()) is queued
    told = f"tierscope: stopped after {restarts} restarts and not resubmitted; submit the script to continue\n"
    assert capfd.readouterr().err == ("" if queued else told)


def test_where_the_queue_refuses_it_the_job_says_so_and_keeps_its_exit_code(
    box: Box, capfd: pytest.CaptureFixture[str]
) -> None:
    box.program("mpirun", "exit 3")
    box.program("qsub", "exit 32")
    variables = {"PBS_O_WORKDIR": "/"}
    assert box.start(script(LAUNCHERS.load("pbs")(), a_job()), **variables).wait(20) == 3
    assert "and not resubmitted; submit the script to continue\n" in capfd.readouterr().err


def test_a_launcher_that_gave_up_and_says_that_all_is_well_is_not_believed(box: Box, tmp_path: Path) -> None:
    runs = tmp_path / "out" / "runs"
    runs.mkdir(parents=True)
    text = script(LAUNCHERS.load("slurm")(), a_job(out=str(runs.parent), runs=2))
    box.program("scontrol", "exit 0")
    for number in (1, 2):
        box.program("srun", f"touch {runs}/{number}.parquet")
        assert box.start(text, SLURM_JOB_ID="7").wait(20) == 0
    assert [line for line in box.said() if "requeue" in line] == ["scontrol requeue 7"]


def until_told(box: Box, tmp_path: Path, name: str, code: int = 3, before: str = "") -> None:
    """A study that ends when it is told to; `tmp_path/ready` says that it can be."""
    body = f"{before}\ntrap 'echo told >> \"{box.calls}\"; exit {code}' TERM\ntouch {tmp_path}/ready\nwhile :; do sleep 0.05; done"
    box.program(name, body)


def tell(job: "subprocess.Popen[bytes]", tmp_path: Path, number: signal.Signals = signal.SIGTERM) -> int:
    while not (tmp_path / "ready").exists():
        assert job.poll() is None
    time.sleep(0.2)  # timeout(1) must have seen that its command runs, or it leaves it alone
    job.send_signal(number)
    return job.wait(20)


def test_the_signal_before_the_limit_reaches_the_study_and_it_is_queued_again(box: Box, tmp_path: Path) -> None:
    until_told(box, tmp_path, "srun")
    box.program("scontrol", "kill -TERM $$; exit 0")  # as Slurm does to a job that is put back
    job = box.start(script(LAUNCHERS.load("slurm")(), a_job()), SLURM_JOB_ID="7")
    assert tell(job, tmp_path) == 0
    assert box.said()[1:] == ["told", "scontrol requeue 7"]


def test_a_study_that_ends_in_its_last_minutes_is_not_queued_again(box: Box, tmp_path: Path) -> None:
    until_told(box, tmp_path, "srun", code=0)
    job = box.start(script(LAUNCHERS.load("slurm")(), a_job()), SLURM_JOB_ID="7")
    assert tell(job, tmp_path) == 0
    assert box.said()[1:] == ["told"]


@pytest.mark.parametrize(("code", "queued"), [(1, True), (2, False)])
def test_what_a_launcher_says_when_it_was_told_is_a_stop_and_what_is_yours_to_mend_is_not(
    box: Box, tmp_path: Path, code: int, queued: bool
) -> None:
    until_told(box, tmp_path, "srun", code=code)
    box.program("scontrol", "exit 0")
    job = box.start(script(LAUNCHERS.load("slurm")(), a_job()), SLURM_JOB_ID="7")
    assert tell(job, tmp_path) == (0 if queued else code)
    assert ("scontrol requeue 7" in box.said()) is queued


def test_a_cancelled_job_stays_cancelled(box: Box, tmp_path: Path) -> None:
    until_told(box, tmp_path, "srun")
    box.program("squeue", "echo COMPLETING")
    job = box.start(script(LAUNCHERS.load("slurm")(), a_job()), SLURM_JOB_ID="7")
    assert tell(job, tmp_path) == 3
    assert box.said()[1:] == ["told"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_stops_a_script_that_keeps_its_own_time_means_it(box: Box, tmp_path: Path, number: signal.Signals) -> None:
    until_told(box, tmp_path, "mpirun")
    text = script(LAUNCHERS.load("mpirun")(), a_job(path=str(tmp_path / "job.sh")))
    assert tell(box.start(text), tmp_path, number) == 3
    assert box.said()[1:] == ["told"]


def test_it_can_be_stopped_after_it_went_on_by_itself_too(box: Box, tmp_path: Path) -> None:
    """A signal that is ignored stays so in what comes after it."""
    again = f"[ -e {tmp_path}/first ] || {{ touch {tmp_path}/first; exit 3; }}"
    until_told(box, tmp_path, "mpirun", before=again)
    text = script(LAUNCHERS.load("mpirun")(), a_job(path=str(tmp_path / "job.sh")))
    assert tell(box.start(text), tmp_path) == 3
    assert box.said()[2:] == ["told"]


def test_without_a_signal_the_scripts_own_clock_ends_it(box: Box) -> None:
    box.program("mpiexec", "exec sleep 60")
    box.program("pjsub", "exit 0")
    text = script(LAUNCHERS.load("pjm")(), a_job(seconds=180)).replace("--kill-after=45 90 ", "--kill-after=5 0.2 ")
    assert "--kill-after=5 0.2" in text
    assert box.start(text).wait(20) == 0
    assert box.said()[1:] == ["pjsub -x TIERSCOPE_RESTARTS=1 /home/me/small.sh"]
