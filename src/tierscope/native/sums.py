"""Checksums of samples compared with their table in C (c/sums.c), without the interpreter's lock and unseen by recorders.

Without the library the `crc32c` package and Python do the same, more slowly.
"""

import ctypes
import functools
import os
import struct
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.native import library

_NUMBER, _SUM = struct.Struct("<q"), struct.Struct("<I")
_FINE, _UNREAD = -1, -2
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class WrongSum:
    """Sample number `at` of those that were compared, and both checksums; `stored` 0: there is none of it."""

    at: int
    stored: int
    found: int


@functools.cache
def _library() -> ctypes.CDLL | None:
    lib = library.load()
    if lib is None or not hasattr(lib, "ts_sums_verify"):
        return None
    lib.ts_sums_open.argtypes, lib.ts_sums_open.restype = (c_char_p, POINTER(c_int64)), c_int
    lib.ts_sums_close.argtypes, lib.ts_sums_close.restype = (c_int,), None
    lib.ts_sums_read.argtypes, lib.ts_sums_read.restype = (c_int, c_void_p, c_uint64, c_uint64), c_int64
    columns = (c_void_p, c_void_p, c_void_p, POINTER(c_uint32), POINTER(c_uint32))
    lib.ts_sums_verify.argtypes, lib.ts_sums_verify.restype = (c_int, c_uint64, c_uint64, *columns), c_int64
    lib.ts_crc32c.argtypes, lib.ts_crc32c.restype = (c_uint32, c_char_p, c_uint64), c_uint32
    lib.ts_crc32c(0, b"", 0)  # makes its tables
    return lib


def open_table(path: str) -> tuple[int, int]:
    """A plain file to read: its descriptor and size. OSError, with EINVAL or ELOOP for what is no plain file."""
    lib = _library()
    if lib is None:
        fd = os.open(path, _FLAGS)
        return fd, os.fstat(fd).st_size
    nbytes = c_int64(0)
    fd = int(lib.ts_sums_open(os.fsencode(path), byref(nbytes)))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd, nbytes.value


def read_table(fd: int, nbytes: int, at: int) -> bytes:
    """As much of it as there is."""
    lib = _library()
    if lib is None:
        return os.pread(fd, nbytes, at)
    into = ctypes.create_string_buffer(nbytes)
    got = int(lib.ts_sums_read(fd, into, nbytes, at))
    if got < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return into.raw[:got]


def close_table(fd: int) -> None:
    lib = _library()
    if lib is None:
        os.close(fd)
    else:
        lib.ts_sums_close(fd)


def verify(fd: int, first: int, samples: Sequence[int], payloads: Sequence[memoryview]) -> WrongSum | None:
    """Compare samples with the table, whose first checksum is at `first`. OSError: the table cannot be read, or is too short."""
    lib = _library()
    if lib is None:
        return _verify_in_python(fd, first, samples, payloads)
    count = len(samples)
    kept = [np.frombuffer(payload, np.uint8) for payload in payloads]
    addresses = np.array([_address(payload) for payload in kept], np.uint64)
    numbers, lengths = np.array(samples, np.int64), np.array([payload.nbytes for payload in kept], np.uint64)
    columns = _address(numbers), _address(addresses), _address(lengths)
    stored, found = c_uint32(0), c_uint32(0)
    at = int(lib.ts_sums_verify(fd, first, count, *columns, byref(stored), byref(found)))
    if at == _UNREAD:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number) if number else "it ends too early")
    return None if at == _FINE else WrongSum(at, stored.value, found.value)


def _address(array: npt.NDArray[Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _verify_in_python(fd: int, first: int, samples: Sequence[int], payloads: Sequence[memoryview]) -> WrongSum | None:
    from crc32c import crc32c  # noqa: PLC0415  (where there is no library only)

    for at, (sample, payload) in enumerate(zip(samples, payloads, strict=True)):
        kept = os.pread(fd, _SUM.size, first + sample * _SUM.size)
        if len(kept) < _SUM.size:
            raise OSError(0, "it ends too early")
        stored: int = _SUM.unpack(kept)[0]
        found = crc32c(payload, crc32c(_NUMBER.pack(sample))) or 1
        if stored != found:
            return WrongSum(at, stored, found)
    return None
