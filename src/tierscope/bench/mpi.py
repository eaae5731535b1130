"""Ranks under `mpirun` or `srun`: the same tasks, with MPI between them.

Rank 0 directs (it alone reads and writes results) and does its own part of every task. A rank that fails says why
and aborts the job, because the others may be waiting for it; what was finished is on disk. Nothing here forks, which is not safe
after MPI_Init; the one process that is started shares nothing with this one (vfork).
"""

import functools
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

from tierscope.bench.crew import Progress
from tierscope.bench.group import Throttle
from tierscope.bench.liveness import Stops, note_stops, refuse_suspended
from tierscope.bench.stall import Neighbour, watched
from tierscope.bench.tasks import Task, measures, perform
from tierscope.errors import StoppedError, TierscopeError, UserError
from tierscope.output.durable import boot_id
from tierscope.signals import heeded, stopped_by

_TURN_SECONDS, _LAST_TURN_SECONDS = 1.0, 3.0
_DAEMONS = {"prted", "prterun", "orted", "orterun", "mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy"}
_STEP_DAEMONS = {"slurmstepd", "palsd", "flux-shell", "pbs_demux", "jsmd", "srun", "aprun"}  # a scheduler's own
_PATIENCE_SECONDS = 10  # with ranks that are to end

# What launchers set: (number of ranks, this rank).
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),  # Open MPI, Fujitsu MPI
    ("PMI_SIZE", "PMI_RANK"),  # MPICH, Intel MPI, Cray
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),  # srun
)


@dataclass(frozen=True, slots=True)
class Stop:
    """The director is done; the others leave with this exit code."""

    exit_code: int


def launched() -> tuple[int, int] | None:
    """(ranks, own rank) as a launcher announced them; None outside of one."""
    for size, rank in _LAUNCHERS:
        if size in os.environ and rank in os.environ:
            try:
                return int(os.environ[size]), int(os.environ[rank])
            except ValueError:
                continue
    return None


def connect() -> Any:
    """The communicator of the job, or None when there is one process only. Refuses a launcher that MPI does not know of."""
    announced = launched()
    if announced is None or announced[0] == 1:
        return None
    size, rank = announced
    _leave_when_told(rank)
    _stops()
    try:
        from mpi4py import MPI  # noqa: PLC0415  (an extra; MPI starts on import)
    except ImportError:
        _leave_it_to_rank_0(rank)
        raise UserError(
            f"started as {size} ranks, but mpi4py is missing; pip install 'tierscope[mpi]' or your site's mpi4py{_or_left_over()}"
        ) from None
    world = MPI.COMM_WORLD
    if world.Get_size() != size:
        _leave_it_to_rank_0(rank)
        raise UserError(
            f"the launcher started {size} ranks, but MPI reports {world.Get_size()}: launcher and mpi4py belong to different "
            f"MPI installations; use the mpirun of the MPI that mpi4py was built for{_or_left_over()}"
        )
    return world


def _leave_it_to_rank_0(rank: int) -> None:
    """One line is enough for a job; but where no launcher is to be seen there may be no rank 0 to say it."""
    if rank != 0 and _has_launcher():
        sys.exit(2)


def _or_left_over() -> str:
    if _has_launcher():
        return ""
    names = next(names for names in _LAUNCHERS if all(name in os.environ for name in names))
    return f"; if this was not started by a launcher, unset {' and '.join(names)}"


def _has_launcher() -> bool:
    """Whether one is among the processes that this one comes from."""
    process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as source:
                name, _, rest = source.read().partition("(")[2].rpartition(")")
        except OSError:
            return False
        if name in _DAEMONS or name in _STEP_DAEMONS:
            return True
        process = int(rest.split()[1])
    return False


def _leave_when_told(rank: int) -> None:
    """End this rank at once on a signal that ends programs; launchers pass Ctrl-C and SIGTERM on to every rank.

    A rank that waits inside MPI never gets to Python's own handlers. But whichever thread takes a signal writes a byte to
    the wakeup descriptor, and a thread that reads it can act.
    """
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    ending = heeded()
    for number in ending:
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)

    def leave() -> None:
        while (number := os.read(told, 1)[0]) not in ending:
            pass
        if rank == 0:
            sys.stderr.write(
                f"tierscope: {stopped_by(number)}; finished runs are kept; rerun the same command to continue\n"
            )
            sys.stderr.flush()
        os._exit(3)

    threading.Thread(target=leave, name="signals", daemon=True).start()


class MpiGroup:
    """Rank 0 sees only its own progress; the others are as far, more or less."""

    def __init__(self, world: Any, progress: Progress | None = None) -> None:
        self.rank = int(world.Get_rank())
        self.size = int(world.Get_size())
        self._world = world
        self._throttle = Throttle(lambda amount: progress(amount * self.size) if progress else None)
        self.progress = self._throttle.add

    def barrier(self) -> None:
        self._world.Barrier()

    def meet(self) -> None:
        """What training does after a step."""
        self._world.allreduce(1)


@functools.cache
def _stops() -> Stops:
    """Of this rank; from the first call."""
    return note_stops()


@functools.cache
def _neighbour() -> Neighbour | None:
    """The next rank on this host, which this one watches; called by all ranks, the first time together."""
    from mpi4py import MPI  # noqa: PLC0415  (an extra)

    world = MPI.COMM_WORLD
    here = os.uname().nodename, boot_id(), os.readlink("/proc/self/ns/pid")
    ranks = world.allgather((here, os.getpid()))
    mine = int(world.Get_rank())
    others = [(rank, pid) for rank, (host, pid) in enumerate(ranks) if host == here and rank != mine]
    if not others:
        return None
    return Neighbour(*min(others, key=lambda other: (other[0] - mine) % len(ranks)))


def _perform(world: Any, task: Task, progress: Progress | None, stall_seconds: float | None) -> Any:
    """The rank's result, and whether it was suspended meanwhile."""
    group, neighbour = MpiGroup(world, progress), _neighbour()
    if stall_seconds is not None:
        _leash()
    try:
        with watched(task, group.rank, stall_seconds, lambda line: _abort_in_turn(world, line), neighbour):
            result = perform(task, group)
        return result, _stops().take()
    except TierscopeError as error:
        abort(world, str(error), error.exit_code)
    except Exception:  # noqa: BLE001  (our bug: shown, and nobody waits for this rank)
        abort(world, f"rank {world.Get_rank()} failed:\n{traceback.format_exc()}", 1)


def abort(world: Any, message: str, exit_code: int) -> None:
    """End all ranks of the job at once."""
    if message:
        sys.stderr.write(f"tierscope: {message}\n")
        sys.stderr.flush()
    world.Abort(exit_code)


def _abort_in_turn(world: Any, line: str) -> None:
    """Ranks that wait for the same server are told at the same time: one of them is enough to say so."""
    if (leash := _leash()) is not None:
        os.write(leash, b"end\n")
    time.sleep(min(_TURN_SECONDS * world.Get_rank(), _LAST_TURN_SECONDS))
    abort(world, line, StoppedError.exit_code)


@functools.cache
def _leash() -> int | None:
    """A pipe to a process that was started in good time: one word, and it ends our launcher if this rank is still there after a while.

    Launchers wait for every rank to end, also for one that hangs in storage where no signal reaches it. By then it is too late to
    start a process: that would have to let go of the same file. A scheduler's own daemons have an end to their patience themselves.
    """
    parent = os.getppid()
    end = f"read word && sleep {_PATIENCE_SECONDS} && kill -0 {os.getpid()} && kill -9 {parent}"
    try:
        with open(f"/proc/{parent}/comm", encoding="utf-8") as source:
            if source.read().strip() not in _DAEMONS:
                return None
        word, leash = os.pipe()
        nothing = subprocess.DEVNULL
        subprocess.Popen(["sh", "-c", end], stdin=word, stdout=nothing, stderr=nothing, start_new_session=True)
        os.close(word)
    except OSError:
        return None
    return leash


class MpiCrew:
    """Rank 0's hold on all ranks, itself included."""

    def __init__(self, world: Any, stall_seconds: float | None = None) -> None:
        self._world, self._stall_seconds = world, stall_seconds
        self.size = int(world.Get_size())

    def call(self, task: Task, progress: Progress) -> list[Any]:
        self._world.bcast(task, root=0)
        result = _perform(self._world, task, progress, self._stall_seconds)
        gathered: list[tuple[Any, bool]] = self._world.gather(result, root=0)
        if measures(task):
            refuse_suspended([rank for rank, (_, suspended) in enumerate(gathered) if suspended], director=False)
        return [answer for answer, _ in gathered]

    def close(self) -> None:
        pass


def serve(world: Any, stall_seconds: float | None = None) -> int:
    """The life of every rank but 0; its exit code."""
    while True:
        task = world.bcast(None, root=0)
        if isinstance(task, Stop):
            return task.exit_code
        world.gather(_perform(world, task, None, stall_seconds), root=0)
