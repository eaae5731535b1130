"""What a rank can be asked to do. Every task is done by all ranks together; `perform` returns the rank's own result."""

import os
import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tierscope.bench.group import Group
from tierscope.bench.overhead import measure_overhead
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask, run_rank
from tierscope.dataset.stage import Missing, Stager, StagingPlace
from tierscope.output.durable import boot_id
from tierscope.spec.study import Study


@dataclass(frozen=True, slots=True)
class WhoTask:
    """Where does this rank run?"""


@dataclass(frozen=True, slots=True)
class Who:
    rank: int
    pid: int
    host: str
    boot: str
    node_name: str  # as the launcher calls the node; differs from host when several nodes are emulated on one
    cores: frozenset[int]  # that this rank may use


@dataclass(frozen=True, slots=True)
class ClaimTask:
    """Make and mark the directories of a study's data."""

    study: Study
    out: str


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Find out what is missing, and drop what cannot be trusted."""

    study: Study
    out: str


@dataclass(frozen=True, slots=True)
class StageTask:
    """Write what is missing."""

    study: Study
    out: str


@dataclass(frozen=True, slots=True)
class OverheadTask:
    """What recording and loading cost by themselves (rank 0 measures, the others wait)."""

    study: Study
    loader: str


@dataclass(frozen=True, slots=True)
class FitTask:
    """Refuse a batch that does not fit the device, before data are written (the first rank of each node looks). `refuse`: knows devices, and is asked for the last that ranks of a host need."""

    study: Study
    refuse: Callable[[Study, int], None]
    ranks_on_host: int


Task = WhoTask | FitTask | ClaimTask | SurveyTask | StageTask | OverheadTask | RunTask


def measures(task: object) -> bool:
    """Whether times are taken: then nobody may have been suspended meanwhile."""
    return isinstance(task, OverheadTask | RunTask)


def place_of(study: Study, rank: int) -> StagingPlace:
    per_node = study.system.ranks_per_node
    return StagingPlace(rank, study.system.ranks, rank // per_node, rank % per_node, per_node)


def perform(task: Task, group: Group) -> Any:
    match task:
        case WhoTask():
            return _who(group)
        case FitTask() | ClaimTask():
            return _prepare(task, group)
        case SurveyTask():
            return _survey(task, group)
        case StageTask():
            return _stage(task, group)
        case OverheadTask():
            result = measure_overhead(ResolvedRun.of(task.study, task.loader)) if group.rank == 0 else None
            group.barrier()
            return result
        case RunTask():
            return run_rank(task, group)


def _who(group: Group) -> Who:
    """SLURM_NODEID is no identity: it counts the nodes of a step, and mpirun's daemons are a step without the first node."""
    host = socket.gethostname()
    node = os.environ.get("SLURMD_NODENAME") or platform.node()
    return Who(group.rank, os.getpid(), host, boot_id(), node, frozenset(os.sched_getaffinity(0)))


def _prepare(task: FitTask | ClaimTask, group: Group) -> None:
    if isinstance(task, ClaimTask):
        Stager(task.study, task.out, place_of(task.study, group.rank)).claim()
    elif group.rank % task.study.system.ranks_per_node == 0:
        task.refuse(task.study, task.ranks_on_host - 1)


def _survey(task: SurveyTask, group: Group) -> list[Missing]:
    stager = Stager(task.study, task.out, place_of(task.study, group.rank))
    stager.distrust()
    group.barrier()
    return stager.missing()


def _stage(task: StageTask, group: Group) -> int:
    stager = Stager(task.study, task.out, place_of(task.study, group.rank))
    stager.reopen()
    group.barrier()
    written = stager.write(group.progress)
    group.barrier()
    stager.sync()
    group.barrier()
    stager.seal()
    return written
