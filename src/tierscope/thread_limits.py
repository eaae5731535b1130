"""What tables are read with, threads and address space: Polars takes the number of threads from the environment, and ends the process where it gets no
memory for them. Imports nothing, so that a command can ask before it begins."""

import os
import sys
from collections.abc import Sequence

from tierscope.errors import MissingResourceError, UserError
from tierscope.shortage import address_space, memory_advice

_MOST = 4096
_NAME = "POLARS_MAX_THREADS"
_TABLES = "polars"
# Measured, of a command that reads a result: more threads share arenas of memory.
_ROOM_BYTES, _THREAD_BYTES, _MORE_THREADS_BYTES, _OWN_ARENA = 1100 << 20, 64 << 20, 8 << 20, 8


def check_threads() -> None:
    """Refuse a number of threads that Polars cannot start with: it would fail on every table, or never come back."""
    given = os.environ.get(_NAME, "")
    if given.isascii() and given.isdigit() and not 1 <= int(given[:20]) <= _MOST:
        raise UserError(
            f"{_NAME} = {given[:20]} in the environment; must be within 1 – {_MOST}: unset it, or set it to the number of cores"
        )


class _Refusing:
    """Asked for every module that is imported."""

    def find_spec(self, name: str, _path: Sequence[str] | None = None, _target: object = None) -> None:
        allowed = address_space()
        if name == _TABLES and allowed is not None and allowed < room_for_tables():
            raise MissingResourceError(f"tables cannot be read: not enough memory; {memory_advice()}")


def refuse_tables_without_room() -> None:
    """From now on: to import what reads tables within too small a limit on address space is an error of one line, not the end of the process."""
    if not any(isinstance(finder, _Refusing) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Refusing())


def room_for_tables() -> int:
    """Bytes of address space."""
    given = os.environ.get(_NAME, "")
    threads = int(given) if given.isascii() and given.isdigit() else len(os.sched_getaffinity(0))
    return _ROOM_BYTES + min(threads, _OWN_ARENA) * _THREAD_BYTES + max(0, threads - _OWN_ARENA) * _MORE_THREADS_BYTES
