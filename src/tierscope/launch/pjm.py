"""Fujitsu's job manager (Fugaku): `pjsub` and `mpiexec`. It announces no limit, so the script keeps the time and submits itself again."""

from typing import ClassVar

from tierscope.launch.base import Job, Shell
from tierscope.launch.time_limits import hours


class Pjm:
    variables: ClassVar = ("PJM_LOCALTMP", "PJM_SHAREDTMP", "PJM_JOBID", "PJM_JOBNAME", "PJM_O_WORKDIR")
    queues: ClassVar = True
    signals: ClassVar = False
    restarts: ClassVar = "${TIERSCOPE_RESTARTS:-0}"
    stopped: ClassVar = '[ -n "$told" ]'

    def directives(self, job: Job) -> list[str]:
        lines = [
            f"-N {job.name}",
            f"-L node={job.nodes}",
            f"--mpi proc={job.ranks}",
            f"-L elapse={hours(job.seconds)}",
            "-j",
        ]
        lines += [f"-L rscgrp={job.queue}"] if job.queue else []
        lines += [f"-g {job.account}"] if job.account else []
        return [f"#PJM {line}" for line in (*lines, *job.options)]

    def start(self, job: Job) -> list[str]:
        return ["mpiexec", "-n", str(job.ranks)]

    def again(self, job: Job) -> list[str]:
        return ["pjsub", "-x", Shell("TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1))"), job.script]

    def submit(self, script: str) -> list[str]:
        return ["pjsub", script]
