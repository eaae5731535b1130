"""No scheduler: `mpirun`, here or on the hosts of its own list. After the time limit the script goes on at once."""

import shlex
from typing import ClassVar

from tierscope.launch.base import Job, Shell
from tierscope.units import counted


class Mpirun:
    variables: ClassVar = ()
    queues: ClassVar = False
    signals: ClassVar = False
    restarts: ClassVar = "${TIERSCOPE_RESTARTS:-0}"
    stopped: ClassVar = '[ -n "$told" ]'

    def directives(self, job: Job) -> list[str]:
        return [f"# {job.name}: {counted(job.nodes, 'node')} x {counted(job.ranks_per_node, 'rank')}"]

    def start(self, job: Job) -> list[str]:
        options = [word for option in job.options for word in shlex.split(option)]
        return ["mpirun", "-n", str(job.ranks), "--map-by", f"ppr:{job.ranks_per_node}:node", *options]

    def again(self, job: Job) -> list[str]:
        return ["env", Shell("TIERSCOPE_RESTARTS=$((${TIERSCOPE_RESTARTS:-0} + 1))"), "bash", job.script]

    def submit(self, script: str) -> list[str]:
        return ["bash", script]
