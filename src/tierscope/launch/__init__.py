"""Studies as jobs: scripts that stage, run and go on after the time limit; one launcher per scheduler."""

from tierscope.launch.base import Launcher
from tierscope.registry import Entry, Registry

LAUNCHERS: Registry[type[Launcher]] = Registry(
    "launcher",
    {
        "slurm": Entry("tierscope.launch.slurm:Slurm", "sbatch and srun"),
        "pjm": Entry("tierscope.launch.pjm:Pjm", "Fujitsu's pjsub and mpiexec"),
        "pbs": Entry("tierscope.launch.pbs:Pbs", "qsub and mpirun"),
        "mpirun": Entry(
            "tierscope.launch.mpirun:Mpirun", "no scheduler: mpirun on this host, or on those of its own list"
        ),
    },
)

__all__ = ["LAUNCHERS", "Launcher"]
