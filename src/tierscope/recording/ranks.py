"""Which rank a recorded process belongs to.

Launchers tell every process its rank through a variable, and what a process starts inherits it: so the workers of a loader fall
under their rank. Launchers may be nested (`srun torchrun`): one variable numbers the whole trace, the innermost that any process has.
Processes without it (the launcher itself, a script that prepares data) are no rank's: their rows are kept, without a rank.
Where no process has such a variable, all of them are rank 0.
"""

from collections.abc import Mapping, Sequence

NUMBERINGS = (  # the first that any process has counts
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "FLUX_TASK_RANK",
    "PALS_RANKID",
    "JSM_NAMESPACE_RANK",
    "SLURM_PROCID",
)


def ranks_of(processes: Sequence[Mapping[str, str]]) -> list[int | None]:
    """The rank of each process, from the variables that launchers gave it."""
    for name in NUMBERINGS:
        ranks = [_rank(name, variables) for variables in processes]
        if any(rank is not None for rank in ranks):
            return ranks
    return [0] * len(processes)


def _rank(name: str, variables: Mapping[str, str]) -> int | None:
    """RANK is too common a name to be believed alone."""
    if name == "RANK" and "WORLD_SIZE" not in variables:
        return None
    value = variables.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and int(value) < 2**31 else None
