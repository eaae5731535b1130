"""A rank as a process of this machine: `python -m tierscope.bench.rank FD RANK SIZE PARENT STALL_SECONDS`, started by LocalCrew."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tierscope.bench.group import Throttle
from tierscope.bench.stall import watched
from tierscope.bench.tasks import perform
from tierscope.errors import TierscopeError

_SET_PARENT_DEATH_SIGNAL = 1


class LocalGroup:
    def __init__(self, connection: Connection, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._connection = connection
        self._sending = threading.Lock()
        self._throttle = Throttle(lambda amount: self.send(("progress", amount)))
        self.progress = self._throttle.add
        self.flush = self._throttle.flush

    def send(self, message: Any) -> None:
        """Also from the thread that watches."""
        with self._sending:
            self._connection.send(message)

    def barrier(self) -> None:
        self.send(("barrier", True))
        start = self._connection.recv()  # everybody sleeps until the same instant of the host's clock
        time.sleep(max(0, start - time.monotonic_ns()) / 1e9)

    def meet(self) -> None:
        self.send(("barrier", False))
        self._connection.recv()

    def stop(self, reason: str) -> None:
        """Have the director stop the study, whatever this rank is in."""
        self.send(("error", "StoppedError", reason, ""))


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def main(fd: int, rank: int, size: int, parent: int, stall_seconds: float | None) -> None:
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the director decides
    connection = Connection(fd)
    group = LocalGroup(connection, rank, size)
    connection.send(("hello", rank))
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (task := connection.recv()) is not None:
            try:
                with watched(task, rank, stall_seconds, group.stop):
                    result = perform(task, group)
                group.flush()
                group.send(("result", result))
            except TierscopeError as error:
                group.send(("error", type(error).__name__, str(error), ""))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:  # noqa: BLE001  (our bug: the director shows it)
                group.send(("error", f"internal {type(error).__name__}", str(error), traceback.format_exc()))


if __name__ == "__main__":
    _fd, _rank, _size, _parent = (int(argument) for argument in sys.argv[1:5])
    main(_fd, _rank, _size, _parent, float(sys.argv[5]) or None)
