"""The queues of emulated tiers (c/queues.h) for callers in Python."""

import ctypes
import functools
import mmap
import os
from collections.abc import Callable
from ctypes import c_char_p, c_int64, c_uint64, c_void_p

from tierscope.native import library


def available() -> bool:
    return library.load() is not None


@functools.cache
def _library() -> ctypes.CDLL:
    lib = library.need()
    lib.ts_api_join.argtypes, lib.ts_api_join.restype = (c_void_p, c_int64, c_int64), c_int64
    lib.ts_api_server_index.argtypes, lib.ts_api_server_index.restype = (c_char_p, c_uint64), c_uint64
    return lib


def swap_of(board: mmap.mmap) -> Callable[[int, int, int], int]:
    """Queues on a board: (station, now, service) → when the service will be over. Holds the memory until it is forgotten."""
    join = _library().ts_api_join
    slots = (c_int64 * (len(board) // 8)).from_buffer(board)
    first = ctypes.addressof(slots)

    def swap(number: int, now: int, service: int, _keep: object = slots) -> int:
        return int(join(first + 8 * number, now, service))

    return swap


def server_index(path: str, servers: int) -> int:
    """The object server that holds a file, as C finds it."""
    return int(_library().ts_api_server_index(os.fsencode(path), servers))
