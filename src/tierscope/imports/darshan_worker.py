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

from tierscope.imports.darshan_library import COUNTERS, FILE_MODULES, TIMES, Log, load, read_segments, stripes

MOST_MEMORY_BYTES = 8 << 30
MOST_COMPLAINTS = 4096
HEAD = struct.Struct("<Q")


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library = load(sys.argv[1])
    out = sys.stdout.buffer
    for line in sys.stdin:
        complaints: list[str] = []
        try:
            with _complaining(complaints):
                head, arrays = read(library, **json.loads(line))
        except (ValueError, MemoryError, UnicodeError) as error:
            head, arrays = {"error": str(error) or type(error).__name__}, []
        send(out, {**head, "complaints": complaints}, arrays)


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
