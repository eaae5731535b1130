"""The ranks of a study, seen from whoever directs them; here as processes of this machine.

A crew does one task at a time, all ranks together. If a rank fails or dies, all are ended at once and the rank's own
error is raised. Ranks never outlive their director: they are told, they see the connection close, and the
kernel kills them should the director be killed.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Protocol, Self

from tierscope import errors
from tierscope.bench.tasks import Task
from tierscope.errors import StoppedError, TierscopeError, UserError
from tierscope.helper_process import ONE_THREAD, helper_command, helper_environment

MAX_LOCAL_RANKS = 512
_START_SECONDS = 120
_STOP_SECONDS = 5
_GO_DELAY_NS = 2_000_000  # for everybody to be told in time, and so much more per rank
_GO_DELAY_PER_RANK_NS = 50_000

Progress = Callable[[int], None]


class Crew(Protocol):
    size: int

    def call(self, task: Task, progress: Progress) -> list[Any]:
        """Let all ranks do the task; their results in the order of ranks."""

    def close(self) -> None: ...


class Children:
    """Processes that we started, each with a connection; none of them outlives its director."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []

    def close(self) -> None:
        """Let them go home; end those that do not."""
        self.leave(_STOP_SECONDS)

    def leave(self, seconds: float) -> list[str]:
        """The same, with so many seconds to go; of those that did not end well, how they did."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.send(None)
        deadline = time.monotonic() + seconds
        bad = []
        for rank, process in enumerate(self._processes):
            try:
                code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                bad.append(f"rank {rank} did not end within {seconds:g} s")
            else:
                bad += [f"rank {rank} {_how_it_ended(process)}"] if code else []
        self._kill()
        return bad

    def _kill(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
        deadline = time.monotonic() + _STOP_SECONDS
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel ends when it can
                process.wait(max(0.0, deadline - time.monotonic()))
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close() if kind is None else self._kill()


class LocalCrew(Children):
    """Ranks as child processes, each with a private socket. `variables`: of their environment, beside our own.

    `numbered`: the environment tells each its rank as launchers do, and so do the processes that it starts. `stall_seconds`: how long
    a rank may wait for storage; None: for ever.
    """

    def __init__(
        self,
        size: int,
        variables: Mapping[str, str] | None = None,
        numbered: bool = False,
        stall_seconds: float | None = None,
    ) -> None:
        if size > MAX_LOCAL_RANKS:
            raise UserError(
                f"{size} ranks (system.nodes × system.ranks_per_node) are more than the {MAX_LOCAL_RANKS} that are started on one "
                "machine; start them on your cluster with 'mpirun -n … tierscope run …' or srun, or set fewer"
            )
        self.size = size
        self._variables, self._numbered, self._stall_seconds = dict(variables or {}), numbered, stall_seconds
        _allow_files(4 * size + 256)
        super().__init__()
        try:
            for rank in range(size):
                self._start(rank)
            self._greet()
        except BaseException:
            self._kill()
            raise

    def _start(self, rank: int) -> None:
        ours, theirs = socket.socketpair()
        command = helper_command(
            "tierscope.bench.rank",
            str(theirs.fileno()),
            str(rank),
            str(self.size),
            str(os.getpid()),
            str(self._stall_seconds or 0),
        )
        environment = helper_environment({**ONE_THREAD, **self._variables})
        if self._numbered:
            environment |= {"RANK": str(rank), "WORLD_SIZE": str(self.size)}
        with theirs:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        self._processes.append(process)
        self._connections.append(Connection(ours.detach()))

    def _greet(self) -> None:
        """Refuse to go on unless exactly the ranks that were asked for came up."""
        deadline = time.monotonic() + _START_SECONDS
        came: set[int] = set()
        for rank, connection in enumerate(self._connections):
            if not connection.poll(max(0.0, deadline - time.monotonic())):
                raise StoppedError(
                    f"rank {rank} did not start within {_START_SECONDS} s; is the machine overloaded? run again"
                )
            came.add(self._receive(rank)[1])
        if came != set(range(self.size)):
            raise TierscopeError(f"asked for ranks 0–{self.size - 1}, but {sorted(came)} came up")

    def call(self, task: Task, progress: Progress) -> list[Any]:
        try:
            return self._call(task, progress)
        except BaseException:
            self._kill()
            raise

    def _call(self, task: Task, progress: Progress) -> list[Any]:
        for rank in range(self.size):
            self._send(rank, task)
        results: dict[int, Any] = {}
        waiting: set[int] = set()
        together = True  # those that wait go on at the same instant, not as soon as they are told
        rank_of = {connection: rank for rank, connection in enumerate(self._connections)}
        while len(results) < self.size:
            for ready in wait(list(rank_of)):
                rank = rank_of[ready]  # type: ignore[index]
                match self._receive(rank):
                    case ("progress", amount):
                        progress(amount)
                    case ("barrier", together):
                        waiting.add(rank)
                    case ("result", result):
                        results[rank] = result
                    case other:
                        raise TierscopeError(f"rank {rank} sent {other!r}")
            if len(waiting) == self.size:
                waiting.clear()
                start = time.monotonic_ns() + (_GO_DELAY_NS + self.size * _GO_DELAY_PER_RANK_NS if together else 0)
                for rank in range(self.size):
                    self._send(rank, start)
        return [results[rank] for rank in range(self.size)]

    def _send(self, rank: int, message: Any) -> None:
        try:
            self._connections[rank].send(message)
        except OSError:
            while True:  # what it still said, and then why it is gone
                self._receive(rank)

    def _receive(self, rank: int) -> Any:
        try:
            message = self._connections[rank].recv()
        except (EOFError, OSError):
            raise StoppedError(
                f"rank {rank} {_how_it_ended(self._processes[rank])}; finished runs are kept, run again to go on"
            ) from None
        if message[0] == "error":
            _, kind, text, trace = message
            error_type = getattr(errors, kind, None)
            if error_type is None:
                raise TierscopeError(f"rank {rank} failed with {kind}: {text}\n{trace}")
            raise error_type(text)
        return message


def _allow_files(wanted: int) -> None:
    """Sockets and leases are open files: ask for as many as the system grants."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard > 0 else wanted, hard))


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(2)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
