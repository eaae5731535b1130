"""Slurm: `sbatch`, and `srun` or the MPI's own `mpirun` inside the allocation. The batch step is told a while before the limit, and the job requeues itself."""

from typing import ClassVar

from tierscope.launch.base import Job, Shell, margin_seconds
from tierscope.launch.time_limits import hours

MPIRUN = "mpirun"  # as --mpi: for an MPI that Slurm's own ways do not start
STEP_VARIABLES = ("SLURM_NODEID",)  # count a step's nodes; mpirun's step on the others has not the first of them


class Slurm:
    variables: ClassVar = ("SLURM_TMPDIR", "SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_NODEID")
    queues: ClassVar = True
    signals: ClassVar = True
    restarts: ClassVar = "${SLURM_RESTART_COUNT:-0}"
    stopped: ClassVar = '[ "$(squeue --noheader --jobs=$SLURM_JOB_ID --format=%T)" = COMPLETING ]'

    def directives(self, job: Job) -> list[str]:
        lines = [
            f"--job-name={job.name}",
            f"--nodes={job.nodes}",
            f"--ntasks-per-node={job.ranks_per_node}",
            f"--time={hours(job.seconds)}",
            f"--signal=B:TERM@{margin_seconds(job)}",
            "--requeue",
            "--open-mode=append",
            f"--output={job.name}-%j.log",
        ]
        lines += [f"--partition={job.queue}"] if job.queue else []
        lines += [f"--account={job.account}"] if job.account else []
        return [f"#SBATCH {line}" for line in (*lines, *job.options)]

    def start(self, job: Job) -> list[str]:
        if job.mpi == MPIRUN:  # it finds the nodes by itself
            return ["mpirun", "-n", str(job.ranks), "--map-by", f"ppr:{job.ranks_per_node}:node"]
        mpi = [f"--mpi={job.mpi}"] if job.mpi else []
        return ["srun", *mpi, "--distribution=block", "--kill-on-bad-exit=1"]

    def again(self, _job: Job) -> list[str]:
        return ["scontrol", "requeue", Shell("$SLURM_JOB_ID")]

    def submit(self, script: str) -> list[str]:
        return ["sbatch", script]
