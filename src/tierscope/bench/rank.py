"""A rank as a process of this machine: `python -m tierscope.bench.rank PARENT SIZE STALL_SECONDS …`, started by LocalCrew (`child`)."""

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from tierscope.bench.child import join
from tierscope.bench.group import Throttle
from tierscope.bench.liveness import note_stops
from tierscope.bench.stall import watched
from tierscope.bench.tasks import perform
from tierscope.dataset import content
from tierscope.errors import TierscopeError
from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.storage import STORAGES


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


def warm_up(arguments: Sequence[str]) -> None:
    """In a template: import what ranks would each import later, as far as it comes with us. Nothing is opened, and no thread is started.

    Of the random bytes that data consist of, 16 MiB, there is one copy for all ranks.
    """
    import concurrent.futures.thread  # noqa: F401, PLC0415

    for registry in (FORMATS, LOADERS, STORAGES):
        for name, entry in registry.entries.items():
            if entry.extra is None:
                registry.load(name)
    if seed_and_compressibility := arguments[2:]:
        seed, compressibility = seed_and_compressibility
        content.pool(int(seed), float(compressibility))


def main(connection: Connection, rank: int, size: int, stall_seconds: float | None) -> None:
    group, stops = LocalGroup(connection, rank, size), note_stops()
    connection.send(("hello", rank))
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (task := connection.recv()) is not None:
            try:
                with watched(task, rank, stall_seconds, group.stop):
                    result = perform(task, group)
                group.flush()
                group.send(("result", result, stops.take()))
            except TierscopeError as error:
                group.send(("error", type(error).__name__, str(error), ""))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:  # noqa: BLE001  (our bug: the director shows it)
                group.send(("error", f"internal {type(error).__name__}", str(error), traceback.format_exc()))


if __name__ == "__main__":
    _joined = join(sys.argv[1:], warm_up)
    if _joined is not None:
        _size, _stall_seconds = _joined.arguments[:2]
        main(_joined.connection, _joined.number, int(_size), float(_stall_seconds) or None)
        _joined.leave()
