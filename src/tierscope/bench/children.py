"""Processes that we start on this machine, each with a private socket. None of them outlives whoever directs them.

They are told, they see the connection close, and the kernel kills them should the director be killed. One that was stopped
(SIGSTOP) is killed like any other.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Protocol, Self

from tierscope.bench.child import AS
from tierscope.bench.template import start_from_template
from tierscope.errors import StoppedError, UserError
from tierscope.helper_process import ONE_THREAD, helper_command, helper_environment

_START_SECONDS, _START_SECONDS_EACH = 120.0, 0.5
_STOP_SECONDS, _STOP_SECONDS_EACH = 5.0, 0.05
_OWN_FILES = 64  # that a director may have open beside the sockets


class Child(Protocol):
    """What `subprocess.Popen` and an adopted process have in common."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Children:
    """Started together, by one of two ways. From a template (`start_alike`): one process imports what all of them need and is
    forked; a few milliseconds and megabytes each. Afresh (`start_afresh`): for an environment of their own, as one with a preloaded library.
    """

    def __init__(self, noun: str = "rank") -> None:
        self._noun = noun
        self._processes: list[Child] = []
        self._connections: list[Connection] = []

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def start_alike(self, module: str, count: int, arguments: Sequence[str]) -> None:
        """`python -m MODULE PARENT ARGUMENTS… --fork …`, so many. A preloaded library may not stand a fork, nor may threads: then afresh."""
        allow_files(2 * count)
        environment = helper_environment(ONE_THREAD)
        command = helper_command(module, str(os.getpid()), *arguments)
        started = None
        if "LD_PRELOAD" not in environment:
            started = start_from_template(command, count, environment, start_seconds(count), self._noun)
        if started is None:
            for number in range(count):
                self.start_afresh(module, number, arguments, {})
            return
        for process, connection in started:
            self._processes.append(process)
            self._connections.append(connection)

    def start_afresh(self, module: str, number: int, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        """One of them: `python -m MODULE PARENT ARGUMENTS… --as NUMBER FD`, with these variables beside our own."""
        ours, theirs = socket.socketpair()
        connection = Connection(ours.detach())
        self._connections.append(connection)
        with theirs:
            fd = theirs.fileno()
            process = subprocess.Popen(
                helper_command(module, str(os.getpid()), *arguments, AS, str(number), str(fd)),
                pass_fds=[fd],
                env=helper_environment({**ONE_THREAD, **variables}),
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        self._processes.append(process)

    def greet(self) -> list[Any]:
        """Let all of them begin, and wait for what each of them says first: in time, whatever their number."""
        seconds = start_seconds(len(self._processes))
        deadline = time.monotonic() + seconds
        for connection in self._connections:
            with contextlib.suppress(OSError):  # it is gone: that is found out below
                connection.send("begin")
        said = []
        for number, connection in enumerate(self._connections):
            if not connection.poll(max(0.0, deadline - time.monotonic())):
                raise StoppedError(
                    f"{self._noun} {number} did not start within {seconds:g} s; is the machine overloaded? rerun the command"
                )
            said.append(self.receive(number))
        return said

    def receive(self, number: int) -> Any:
        """The next that it says; raises what it failed with, or how it ended."""
        return self._connections[number].recv()

    def close(self) -> None:
        """Let them go home; end those that do not."""
        self.leave(_STOP_SECONDS + _STOP_SECONDS_EACH * len(self._processes))

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
                bad.append(f"{self._noun} {rank} did not exit within {seconds:g} s")
            else:
                bad += [f"{self._noun} {rank} {how_it_ended(process)}"] if code else []
        self.end()
        return bad

    def end(self) -> None:
        """Kill those that are left."""
        for process in self._processes:
            if process.poll() is None:
                _kill(process)
        deadline = time.monotonic() + _STOP_SECONDS + _STOP_SECONDS_EACH * len(self._processes)
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
        self.close() if kind is None else self.end()


def _kill(process: Child) -> None:
    """With what it started, where that is a group of its own: workers that were stopped would not see that it is gone."""
    with contextlib.suppress(OSError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def start_seconds(count: int) -> float:
    """For so many processes to come up, also where they share a core."""
    return _START_SECONDS + _START_SECONDS_EACH * count


def allow_files(wanted: int) -> None:
    """Sockets are open files: ask for as many as are needed beside those that are open, and refuse what cannot work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += len(os.listdir("/proc/self/fd")) + _OWN_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard not in (resource.RLIM_INFINITY, -1) and hard < wanted:
        raise UserError(
            f"{wanted} open files are needed for this many processes, but the limit is {hard}; raise it (ulimit -Hn {wanted}), or use fewer ranks"
        )
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def how_it_ended(process: Child) -> str:
    try:
        code = process.wait(2)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    if code >= 0:
        return f"exited with code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
