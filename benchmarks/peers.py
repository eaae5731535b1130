"""Samples per second of our loader, of torch's DataLoader, of tf.data and of DLIO on the same files, doing equal work: checksums verified, a contiguous batch.

The bound is a loop that reads a file into one buffer and verifies its checksum. Peers are run by environments of their own (`make bench-peers`), and
left out where these are not there. Files are in memory.
"""

import json
import os
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from crc32c import crc32c

from benchmarks import dlio
from benchmarks.common import Result, interleaved, left_out, memory_folder, ratio, spread
from benchmarks.reading import PREFETCH, blocks_of, write_files
from tierscope.formats import FORMATS, Format, Shape
from tierscope.loaders import LOADERS, SampleSource
from tierscope.storage.access import READ_FLAGS, Directory
from tierscope.storage.files import DatasetFiles
from tierscope.trace.recorder import Recording

ROUNDS = 7
FILES, BYTES, BATCH = 2000, 128 << 10, 12
_GOAL = 0.8  # of the floor
_ROOT = Path(__file__).resolve().parents[1]
_CHECKSUMS: dict[str, Callable[[memoryview], int]] = {"npz": zlib.crc32, "tfrecord": crc32c}
_PEERS = {
    "npz": ("torch's DataLoader, np.load", (".venv-torch", dlio.ENVIRONMENT), "peer_torch.py"),
    "tfrecord": ("tf.data, TFRecordDataset", (".venv-tensorflow",), "peer_tensorflow.py"),
}


def peers() -> Iterator[Result]:
    for name in _CHECKSUMS:
        yield from _format(name)


def _format(name: str) -> Iterator[Result]:
    form = FORMATS.load(name)(Shape(1, BYTES))
    with memory_folder() as folder:
        names = write_files(folder, form, FILES, BYTES)
        times = interleaved(
            {
                "floor": lambda: _floor(names, form, _CHECKSUMS[name]),
                "checked": lambda: _ours(names, form, check=True),
                "unchecked": lambda: _ours(names, form, check=False),
            },
            ROUNDS,
        )
        label = f"{name}, {BYTES >> 10} KiB, batch {BATCH}"
        yield _speed(f"{label}: read + checksum (the floor)", times["floor"])
        for mine, goal in (("checked", _GOAL), ("unchecked", None)):
            yield _speed(f"{label}: ours, {mine}, contiguous", times[mine])
            yield ratio(f"{label}: that / the floor", times["floor"], times[mine], goal)
        yield from _peer(name, label, folder, times["checked"])
        if name == "npz":
            yield from dlio.reading(
                label, folder, FILES, BYTES, BATCH, lambda check, threads: _ours(names, form, check, threads)
            )


def _peer(name: str, label: str, folder: Path, ours: list[float]) -> Iterator[Result]:
    what, environments, script = _PEERS[name]
    pythons = [_ROOT / environment / "bin" / "python" for environment in environments]
    python = next((python for python in pythons if python.exists()), None)
    if python is None:
        yield left_out(f"{label}: {what}", f"there is no {environments[0]}", dlio.INSTALL)
        return
    for threads in (0, 1) if name == "npz" else (1, 2):
        command = [str(python), str(_ROOT / "benchmarks" / script), str(folder), str(BATCH), str(threads), str(ROUNDS)]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=quiet).stdout
        theirs: list[float] = json.loads(printed.splitlines()[-1])
        yield _speed(f"{label}: {what}, {threads} workers", theirs)
        yield ratio(f"{label}: ours, checked / that", theirs, ours, note="(not interleaved)")


def _speed(name: str, seconds: list[float]) -> Result:
    return spread(name, [FILES / value for value in seconds], "samples/s")


def _floor(names: DatasetFiles, form: Format, checksum: Callable[[memoryview], int]) -> float:
    buffer = memoryview(bytearray(form.slot_bytes))
    start = time.monotonic()
    for file in range(FILES):
        fd = os.open(names.path(file), READ_FLAGS)
        os.preadv(fd, [buffer], 0)
        os.close(fd)
        checksum(buffer)
    return time.monotonic() - start


def _ours(names: DatasetFiles, form: Format, check: bool, threads: int = 1) -> float:
    source = SampleSource(form, (names,), ("gfs",), 16 << 20, 1, lambda: (Directory(),), check=check)
    loader = LOADERS.load("native")(source, BATCH, threads, PREFETCH, Recording(1))
    contiguous = np.empty((BATCH, BYTES), np.uint8)
    start = time.monotonic()
    read = 0
    for batch in loader.batches(blocks_of(FILES)):
        for row, payload in zip(contiguous, batch.payloads, strict=False):
            row[:] = payload
        read += len(batch.samples)
    seconds = time.monotonic() - start
    loader.finish()
    assert read == FILES
    return seconds
