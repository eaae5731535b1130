"""A process that a director of ours started, seen from itself: which one it is, and when it may begin.

python -m MODULE PARENT ARGUMENTS… --as NUMBER FD        one of them
python -m MODULE PARENT ARGUMENTS… --fork REPORT FD FD…  their template: forked once for every socket, and gone before they begin
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

AS, FORK = "--as", "--fork"
THREADS = "threads"  # the template's last word if it has some: a fork would not take them along
_SET_PARENT_DEATH_SIGNAL = 1


@dataclass(frozen=True, slots=True)
class Joined:
    """Which child this is, its connection to the director, and the arguments for all of them."""

    number: int
    connection: Connection
    arguments: tuple[str, ...]
    forked: bool

    def leave(self) -> None:
        """The end of this process, if all went well. One that was forked shares most of its memory to the end: tidying it up would copy it."""
        if self.forked:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def join(words: Sequence[str], warm_up: Callable[[Sequence[str]], None]) -> Joined | None:
    """Return when the director lets us begin. None: this process was a template, or nobody is there any more.

    `warm_up`: what a template does for all of its children, given their arguments.
    """
    parent = int(words[0])
    place = next(index for index, word in enumerate(words) if word in (AS, FORK))
    fds = [int(word) for word in words[place + 1 :]]
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the director decides
    number, fd = fds[0], fds[1]
    if words[place] == FORK:
        warm_up(words[1:place])
        forked = fork_each(fds[0], fds[1:])
        if forked is None:
            return None
        number, fd = forked
    connection = Connection(fd)
    try:
        connection.recv()
    except (EOFError, ConnectionResetError):
        return None
    die_with(parent)  # which a forked child's is only now
    return Joined(number, connection, tuple(words[1:place]), words[place] == FORK)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def fork_each(report_fd: int, sockets: Sequence[int]) -> tuple[int, int] | None:
    """In the template: a child for every socket. Returns in each of them with its number and socket, and in the template with None: it is to end."""
    with Connection(report_fd, readable=False) as report:
        if len(os.listdir("/proc/self/task")) > 1:
            report.send(THREADS)
            return None
        gc.collect()
        gc.freeze()  # what all share is not touched by a child's collector
        for number, fd in enumerate(sockets):
            try:
                pid = os.fork()
            except OSError as error:
                report.send(error.strerror)
                return None
            if pid == 0:
                os.setpgid(0, 0)  # Ctrl-C reaches the director only
                for other in sockets[number + 1 :]:
                    os.close(other)
                return number, fd
            os.close(fd)
            report.send(pid)
    return None
