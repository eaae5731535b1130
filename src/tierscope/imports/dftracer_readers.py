"""Passes over many traces of DFTracer: here, or in helper processes where there is so much to read that their start is worth it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tierscope.errors import MissingResourceError, TierscopeError
from tierscope.helper_process import Helper, HelperGroup, asked_in_threads, threads_with_helpers
from tierscope.imports.dftracer_worker import PASSES
from tierscope.shortage import memory_advice

LARGE_BYTES = 32 << 20  # of all files; below, starting processes takes longer than reading

Passing = tuple[str, tuple[Any, ...]]  # the file of one pass, and its arguments


@contextmanager
def readers(paths: Sequence[str]) -> Iterator[Callable[[str, Sequence[Passing]], list[Any]]]:
    """How to make one of `PASSES` over every file; what it found, in their order."""
    count = min(len(paths), len(os.sched_getaffinity(0)))
    if count < 2 or sum(map(_size, paths)) < LARGE_BYTES:
        yield lambda name, wanted: [PASSES[name](*arguments) for _, arguments in wanted]
        return
    with ExitStack() as connections, threads_with_helpers(count) as (threads, helpers):
        pool = _Readers(helpers, connections)
        yield lambda name, wanted: list(asked_in_threads(threads, lambda passing: pool.ask(name, *passing), wanted))


class _Readers:
    """A helper for each thread."""

    def __init__(self, helpers: HelperGroup, connections: ExitStack) -> None:
        self._helpers, self._connections = helpers, connections
        self._mine = threading.local()

    def ask(self, name: str, path: str, arguments: tuple[Any, ...]) -> Any:
        connection = self._connection()
        try:
            connection.send((name, path, arguments))
            answer = connection.recv()
        except (EOFError, OSError):
            raise MissingResourceError(
                f"{path}: its reader was killed, probably out of memory; {memory_advice()}"
            ) from None
        if isinstance(answer, TierscopeError):
            raise answer
        return answer

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._mine, "connection", None)
        if connection is None:
            ours, theirs = socket.socketpair()
            connection = Connection(ours.detach())
            self._connections.callback(connection.close)
            with theirs:
                fd = theirs.fileno()
                helper = Helper(
                    "tierscope.imports.dftracer_worker", [str(fd)], needed_for="reading traces", pass_fds=[fd]
                )
            self._helpers.add(helper)
            helper.expect_greeting()
            self._mine.connection = connection
        return connection


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0
