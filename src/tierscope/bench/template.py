"""Many processes from one that is warm: it imports what all of them need, is forked for each, and ends.

Starting Python and importing NumPy takes a third of a second and 40 MB; a fork takes milliseconds and shares the memory. The template is a process of its own, because
a director has threads (Polars, progress), which a fork does not take along. Its children become the director's own: while they are started, the director is
the one to whom the kernel gives orphans (PR_SET_CHILD_SUBREAPER), and the template ends before any of them begins. So the director can wait for
them, and the kernel kills them with it, as if it had started each by itself. Nothing is left in between that could die or hang.

Not for processes with a preloaded library or an environment of their own, and not under MPI, where nobody forks.
"""

import ctypes
import math
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe

from tierscope.bench.child import FORK, THREADS
from tierscope.errors import StoppedError

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_LOOK_AGAIN_SECONDS = 0.05


class Adopted:
    """A child that somebody else started for us; to be used as `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # where SIGCHLD is ignored the kernel keeps no exit code
                self.returncode = 0
            else:
                if ended:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline, pause = time.monotonic() + (math.inf if timeout is None else timeout), 0.0005
        while (code := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(min(pause, left, _LOOK_AGAIN_SECONDS))
            pause *= 2
        return code

    def kill(self) -> None:
        if self.poll() is None:  # not reaped, so nobody else has its number
            with suppress(ProcessLookupError):
                os.kill(self.pid, 9)


def start_from_template(
    command: Sequence[str], count: int, environment: Mapping[str, str], seconds: float, noun: str
) -> list[tuple[Adopted, Connection]] | None:
    """So many children of ours, each with a connection; they begin when they are sent something. None: cannot be done here.

    `command` is a program that asks `child.join` what it is.
    """
    deadline = time.monotonic() + seconds
    report, theirs = Pipe(duplex=False)
    with _adopting() as adopts, report:
        if not adopts:
            theirs.close()
            return None
        pairs = [socket.socketpair() for _ in range(count)]
        try:
            with theirs:
                fds = [theirs.fileno(), *(end.fileno() for _, end in pairs)]
                template = subprocess.Popen(
                    [*command, FORK, *map(str, fds)],
                    pass_fds=fds,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    process_group=0,
                )
        finally:
            for _, end in pairs:
                end.close()
        connections = [Connection(end.detach()) for end, _ in pairs]
        children: list[Adopted] = []
        try:
            said = _children(report, children, deadline)
            template.wait(max(0.0, deadline - time.monotonic()))
            if said == THREADS:
                _forget(connections)
                return None
            if len(children) < count:
                raise StoppedError(f"{noun} {_why_not(said, len(children), count, template.returncode)}")
        except BaseException as error:
            template.kill()
            template.wait()
            _end(children, connections)
            if isinstance(error, subprocess.TimeoutExpired):
                raise StoppedError(
                    f"{noun} {len(children)} did not start within {seconds:g} s; is the machine overloaded? rerun the command"
                ) from None
            raise
    return list(zip(children, connections, strict=True))


def _children(report: Connection, children: list[Adopted], deadline: float) -> str:
    """All that the template started, as it says so; its last word, if it had one."""
    word = ""
    while report.poll(max(0.0, deadline - time.monotonic())):
        try:
            said = report.recv()
        except EOFError:
            return word
        if isinstance(said, int):
            children.append(Adopted(said))
        else:
            word = str(said)
    raise subprocess.TimeoutExpired("template", 0)


def _why_not(said: str, started: int, count: int, code: int) -> str:
    reason = said or (
        f"their template was killed by signal {-code}" if code < 0 else f"their template exited with code {code}"
    )
    return (
        f"{started} of {count} could not be started: {reason}; "
        "raise the limit on processes or memory, use fewer ranks, or rerun"
    )


def _forget(connections: Sequence[Connection]) -> None:
    for connection in connections:
        connection.close()


def _end(children: Sequence[Adopted], connections: Sequence[Connection]) -> None:
    """Those that were not told of see their connection close."""
    _forget(connections)
    for child in children:
        child.kill()
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK_AGAIN_SECONDS * 20)


@contextmanager
def _adopting() -> Iterator[bool]:
    """Whether orphans of our children become our own children, as long as this lasts."""
    prctl = ctypes.CDLL(None).prctl
    before = ctypes.c_int(0)
    works = prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0) == 0 and prctl(_SET_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield works
    finally:
        if works:
            prctl(_SET_SUBREAPER, before.value, 0, 0, 0)
