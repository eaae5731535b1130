"""Reads Darshan logs for another process: paths come in as lines, what was read goes out as a head in JSON and arrays behind it.

libdarshan-util may crash, hang or ask for all memory when a log is damaged. Then this process dies, and only this one.
"""

import ctypes
import json
import os
import resource
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tierscope.helper_process import end_with_starter, greet
from tierscope.imports.darshan_library import (
    COUNTERS,
    FILE_MODULES,
    INSTALL,
    TIMES,
    Log,
    library_path,
    load,
    read_segments,
    stripes,
)
from tierscope.plain_files import FileState, open_plain

MOST_MEMORY_BYTES = 8 << 30
ROOM_BYTES = 512 << 20  # for any log, and so much more for each byte of it: a few bytes can claim to be terabytes
ROOM_PER_BYTE = 256
MOST_COMPLAINTS = 4096
HEAD = struct.Struct("<Q")
_MOST_WRITTEN_BYTES = 1 << 20  # to a file: only complaints are
_LARGEST_REQUEST_BYTES = 32 << 20  # of memory for a healthy log; and for the rest of one that is nearly read
_LAST_REQUEST_BYTES = 4 << 20
_LARGE_BYTES = 16 << 20  # of arrays; what is smaller has not taken all of the room


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN_BYTES, _MOST_WRITTEN_BYTES))
    path = library_path()
    if path is None:
        sys.exit(f"PyDarshan's library is missing; {INSTALL}")
    library = load(path)
    memory = Memory()
    end_with_starter()
    greet()
    out = sys.stdout.buffer
    for line in sys.stdin:
        request = json.loads(line)
        head, arrays = answer(library, memory, request["path"], request["segments"])
        send(out, head, arrays)
        if head.get("short"):
            return  # the peak would be taken for that of later logs


class Memory:
    """How much of it a log may take: by its own size, within what the user allows (`ulimit -v`)."""

    def __init__(self) -> None:
        self._before = self._peak = _most_address_space()
        self._given, self._hard = resource.getrlimit(resource.RLIMIT_AS)

    def allow(self, log_bytes: int) -> None:
        wanted = min(MOST_MEMORY_BYTES, self._before + ROOM_BYTES + ROOM_PER_BYTE * log_bytes)
        self.by_us = self._given == resource.RLIM_INFINITY or wanted < self._given
        self.allowed = wanted if self.by_us else self._given
        resource.setrlimit(resource.RLIMIT_AS, (self.allowed, self._hard))

    def release(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (self._given, self._hard))

    def was_short(self, request_bytes: int) -> bool:
        """Whether a request of so many bytes may have been refused. The library does not tell: it stops, as at the end of a log."""
        before, self._peak = self._peak, _most_address_space()
        return self.allowed - self._peak < request_bytes and (self._peak > before or not self.by_us)


def answer(
    library: ctypes.CDLL, memory: Memory, path: str, segments: bool
) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """What `read` gives; or an error: what is wrong with the log, that it changed meanwhile, or that memory was short."""
    complaints: list[str] = []
    try:
        file = open_plain(path, follow=True)
    except OSError as error:
        return {"error": f"cannot be read: {error.strerror}", "complaints": []}, []
    with file:
        before = FileState.of(file.fileno())
        memory.allow(before.size)
        try:
            with _complaining(complaints):
                head, arrays = read(library, f"/proc/self/fd/{file.fileno()}", segments)
            large = not memory.by_us or sum(array.nbytes for array in arrays) > _LARGE_BYTES
            short = large and memory.was_short(_LAST_REQUEST_BYTES)
        except (ValueError, MemoryError, OSError) as error:
            head, arrays = {"error": str(error)}, []
            short = isinstance(error, MemoryError) or memory.was_short(_LARGEST_REQUEST_BYTES)
        finally:
            memory.release()
        if short:
            head, arrays, complaints = {"error": _too_large(memory), "short": not memory.by_us}, [], []
        if FileState.of(file.fileno()) != before:
            head, arrays = {"error": "changed while it was read; wait until the job that writes it has finished"}, []
    return {**head, "complaints": complaints}, arrays


def _too_large(memory: Memory) -> str:
    return f"takes more than {memory.allowed >> 20} MiB of memory to read" + (
        ", far too much for its size" if memory.by_us else ""
    )


def _most_address_space() -> int:
    """Bytes that this process had mapped at most."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return next((int(line.split()[1]) << 10 for line in status if line.startswith("VmPeak:")), 0)


def send(out: BinaryIO, head: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> None:
    """The head says how long each array is."""
    described = [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    text = json.dumps({**head, "arrays": described}).encode()
    out.write(HEAD.pack(len(text)) + text)
    for array in arrays:
        out.write(np.ascontiguousarray(array).data)
    out.flush()


def read(library: ctypes.CDLL, path: str, segments: bool) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """Arrays: for each module of files number and rank, rows of counters and of times; then the files' numbers; then their names in one.

    With `segments`, before those: of every traced read its file, its rank and where and when it was.
    """
    log = Log(library, path)
    try:
        modules = log.modules()
        head: dict[str, Any] = {"job": log.job(), "mounts": log.mounts(), "modules": modules, "stripes": {}}
        numbers, joined = log.names()
        arrays: list[npt.NDArray[Any]] = []
        for module in FILE_MODULES:
            if module in modules:
                arrays += log.files(module, modules[module]["index"])
            else:
                arrays += [np.zeros((0, 2), np.int64), np.zeros((len(COUNTERS), 0), np.int64)]
                arrays.append(np.zeros((len(TIMES), 0), np.float64))
        if segments and "DXT_POSIX" in modules:
            arrays += read_segments(log, modules["DXT_POSIX"]["index"])
        if "LUSTRE" in modules:
            head["stripes"] = stripes(log, modules["LUSTRE"]["index"])
    finally:
        log.close()
    return head, [*arrays, numbers, np.frombuffer(joined, np.uint8)]


@contextmanager
def _complaining(complaints: list[str]) -> Iterator[None]:
    """What the library says on standard error meanwhile."""
    said = os.memfd_create("complaints")
    usual = os.dup(2)
    os.dup2(said, 2)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(usual, 2)
        complaints += os.pread(said, MOST_COMPLAINTS, 0).decode("utf-8", "replace").splitlines()
        os.close(said)
        os.close(usual)


if __name__ == "__main__":
    main()
