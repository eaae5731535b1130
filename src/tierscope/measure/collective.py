"""`file_access: collective` in a benchmark: ranks that MPI started, and a format that they can read together."""

from collections.abc import Iterable

from tierscope.errors import UserError
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study

_KEY = "workload.reader.file_access = collective"
COLLECTIVE_NOTE = "file_access: collective: ranks wait for each other inside reads; these waits count as READ"


def check_collective(studies: Iterable[Study], launcher: str) -> None:
    """Before anything is touched: refuse what ranks cannot do."""
    for study in studies:
        if study.workload.reader.file_access != "collective":
            continue
        if study.system.ranks == 1:
            raise UserError(
                f"system.ranks_per_node = 1, but {_KEY} needs several ranks; set 2 or more, or file_access: shared"
            )
        if launcher != "mpi":
            raise UserError(
                f"{_KEY} uses MPI-IO, but the ranks were not started by a launcher; start it with "
                f"'mpirun -n {study.system.ranks} tierscope run …' or srun, or set file_access: shared"
            )
        _check_format(study)


def _check_format(study: Study) -> None:
    adapter = make_format(study)  # says what to install, if its library is missing
    try:
        adapter.check_together()
    except ValueError as error:
        raise UserError(f"{_KEY} of format {study.workload.dataset.format} {error}") from None
