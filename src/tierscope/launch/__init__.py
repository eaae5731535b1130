"""Studies as jobs: scripts that stage, run and go on after the time limit; one launcher per scheduler. This is their registry."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierscope.registry import Entry, Registry

if TYPE_CHECKING:
    from tierscope.launch.base import Launcher

__all__ = ["LAUNCHERS", "LauncherEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherEntry(Entry):
    """`title`: as its makers write it. `one_host`: may put all nodes of a study on one host, where emulated tiers work. `mpi_kinds`: is told how to start MPI (--mpi)."""

    title: str
    one_host: bool = False
    mpi_kinds: bool = False


LAUNCHERS: "Registry[type[Launcher], LauncherEntry]" = Registry(
    "launcher",
    {
        "slurm": LauncherEntry("tierscope.launch.slurm:Slurm", "sbatch and srun", title="Slurm", mpi_kinds=True),
        "pjm": LauncherEntry("tierscope.launch.pjm:Pjm", "Fujitsu's pjsub and mpiexec", title="PJM"),
        "pbs": LauncherEntry("tierscope.launch.pbs:Pbs", "qsub and mpirun", title="PBS"),
        "mpirun": LauncherEntry(
            "tierscope.launch.mpirun:Mpirun",
            "no scheduler: mpirun on this host, or on the hosts of its host file",
            title="mpirun",
            one_host=True,
        ),
    },
)
