"""Checksums of samples in C (c/sums.c), without the interpreter's lock: of many generated samples at once, and compared with their table, unseen by recorders.

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

from tierscope.checksum import crc32c
from tierscope.native import library

_NUMBER, _SUM = struct.Struct("<q"), struct.Struct("<I")
_FINE, _UNREAD = -1, -2
Sums = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class WrongSum:
    """Sample number `at` of those that were compared, and both checksums; `stored` 0: there is none of it."""

    at: int
    stored: int
    computed: int


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
    lib.ts_sums_steps.argtypes, lib.ts_sums_steps.restype = (c_void_p, c_uint64, c_void_p), c_uint64
    lib.ts_sums_extend.argtypes, lib.ts_sums_extend.restype = (c_void_p, c_void_p, c_uint64, *columns[:3]), None
    lib.ts_crc32c.argtypes, lib.ts_crc32c.restype = (c_uint32, c_char_p, c_uint64), c_uint32
    lib.ts_crc32c(0, b"", 0)  # makes its tables
    return lib


class Slices:
    """One long memory, and checksums of slices of it. What each costs does not depend on how long it is: choose it where slices are many."""

    def __init__(self, whole: memoryview, stepped: bool = True) -> None:
        """`stepped`: go over all of it once, so that hardly a byte of a slice is read; else every slice is read."""
        self._whole, self._steps = np.frombuffer(whole, np.uint8), np.empty(0, np.uint32)
        lib = _library()
        if lib is not None and stepped:
            memory = _address(self._whole), self._whole.nbytes
            self._steps = np.empty(int(lib.ts_sums_steps(*memory, None)), np.uint32)
            lib.ts_sums_steps(*memory, _address(self._steps))

    def extend(self, sums: Sums, starts: Places, lengths: Places) -> None:
        """Continue every checksum behind the slice of that start and length."""
        if len(starts) != len(sums) or len(lengths) != len(sums):
            raise ValueError("as many slices as checksums")
        if len(sums) and (min(starts.min(), lengths.min()) < 0 or (starts + lengths).max() > self._whole.nbytes):
            raise ValueError("a slice ends behind the memory")
        lib = _library()
        if lib is None:
            self._extend_in_python(sums, starts, lengths)
            return
        starts, lengths = (np.ascontiguousarray(column, np.int64) for column in (starts, lengths))
        steps = _address(self._steps) if self._steps.size else None
        columns = _address(starts), _address(lengths), _address(sums)
        lib.ts_sums_extend(_address(self._whole), steps, len(sums), *columns)

    def _extend_in_python(self, sums: Sums, starts: Places, lengths: Places) -> None:
        for at, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            sums[at] = crc32c(self._whole[start : start + length].data, int(sums[at]))


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
    stored, computed = c_uint32(0), c_uint32(0)
    at = int(lib.ts_sums_verify(fd, first, count, *columns, byref(stored), byref(computed)))
    if at == _UNREAD:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number) if number else "it ends too early")
    return None if at == _FINE else WrongSum(at, stored.value, computed.value)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _verify_in_python(fd: int, first: int, samples: Sequence[int], payloads: Sequence[memoryview]) -> WrongSum | None:
    for at, (sample, payload) in enumerate(zip(samples, payloads, strict=True)):
        kept = os.pread(fd, _SUM.size, first + sample * _SUM.size)
        if len(kept) < _SUM.size:
            raise OSError(0, "it ends too early")
        stored: int = _SUM.unpack(kept)[0]
        computed = crc32c(payload, crc32c(_NUMBER.pack(sample))) or 1
        if stored != computed:
            return WrongSum(at, stored, computed)
    return None
