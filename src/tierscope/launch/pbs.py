"""PBS: `qsub` and `mpirun`. The script keeps the time and submits itself again."""

from typing import ClassVar

from tierscope.launch.base import Job, Shell
from tierscope.launch.time_limits import hours


class Pbs:
    variables: ClassVar = ("PBS_JOBFS", "PBS_JOBID", "PBS_O_WORKDIR")
    queues: ClassVar = True
    signals: ClassVar = False
    restarts: ClassVar = "${TIERSCOPE_RESTARTS:-0}"
    stopped: ClassVar = '[ -n "$told" ]'

    def directives(self, job: Job) -> list[str]:
        lines = [
            f"-N {job.name}",
            f"-l select={job.nodes}:ncpus={job.ranks_per_node}:mpiprocs={job.ranks_per_node}",
            "-l place=scatter",
            f"-l walltime={hours(job.seconds)}",
            "-j oe",
        ]
        lines += [f"-q {job.queue}"] if job.queue else []
        lines += [f"-A {job.account}"] if job.account else []
        return [*(f"#PBS {line}" for line in (*lines, *job.options)), "", 'cd "$PBS_O_WORKDIR" || exit 2']

    def start(self, job: Job) -> list[str]:
        return ["mpirun", "-n", str(job.ranks)]

    def again(self, job: Job) -> list[str]:
        return ["qsub", "-v", Shell("TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1))"), job.script]

    def submit(self, script: str) -> list[str]:
        return ["qsub", script]
