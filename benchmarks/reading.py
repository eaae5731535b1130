"""Reading: our loader with the recorder on, beside a C loop, a bare Python loop and np.load; files in memory."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Result, interleaved, memory_folder, ratio, spread
from tierscope.bench.compute import BusyCompute
from tierscope.data import content
from tierscope.formats import FORMATS, Format, Shape
from tierscope.loaders import LOADERS, Source
from tierscope.plan.plan import Block
from tierscope.tiers.access import READ_FLAGS, Directory
from tierscope.tiers.files import DatasetFiles
from tierscope.trace.ops import READ
from tierscope.trace.recorder import Lane

ROUNDS = 9
_NOISE = 1.03  # the copy in the kernel dominates both, so that they are equal but for noise


def reading() -> Iterator[Result]:
    yield from _size(128 * 1024, files=3000, batch=12, goal=0.75)
    yield from _size(4 * 1024, files=12000, batch=64, goal=0.4)
    yield from _beside_compute()


def _write(folder: Path, form: Format, files: int, nbytes: int) -> DatasetFiles:
    names = DatasetFiles(str(folder), str(folder), form.suffix, 0)
    for file in range(files):
        with open(names.path(file), "wb") as out:
            out.writelines(form.encode([content.payload(1, file, nbytes)]))
    return names


def _size(nbytes: int, files: int, batch: int, goal: float) -> Iterator[Result]:
    with memory_folder() as folder:
        raw, npz = FORMATS.load("raw")(Shape(1, nbytes)), FORMATS.load("npz")(Shape(1, nbytes))
        names, archives = _write(folder, raw, files, nbytes), _write(folder, npz, files, nbytes)
        program = _compile(folder)
        contenders: dict[str, Callable[[], float]] = {
            "c": lambda: _c_loop(program, names, files, nbytes),
            "bare": lambda: _bare_loop(names, files, nbytes),
            "threads": lambda: _loader("threads", 1, names, raw, files, batch),
            "inline": lambda: _loader("inline", 0, names, raw, files, batch),
            "np.load": lambda: _np_load(archives, files),
        }
        times = interleaved(contenders, ROUNDS)
    label = f"{nbytes // 1024} KiB files, batch {batch}"
    void = statistics.median(times["c"]) > _NOISE * statistics.median(times["bare"])
    note = "(void: the C loop was slower than a bare Python loop)" if void else ""
    yield spread(f"{label}: C loop", [files / seconds for seconds in times["c"]], "files/s")
    yield ratio(f"{label}: bare Python loop / C loop", times["c"], times["bare"])
    wanted = None if void else goal
    yield ratio(f"{label}: loader, 1 thread, recorder on / C loop", times["c"], times["threads"], wanted, note)
    yield ratio(f"{label}: loader, inline, recorder on / C loop", times["c"], times["inline"], wanted, note)
    yield ratio(f"{label}: np.load of npz, as peers read it / C loop", times["c"], times["np.load"])


def _compile(folder: Path) -> str:
    program = folder / "loop"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("loop.c")], check=True)
    return str(program)


def _c_loop(program: str, names: DatasetFiles, files: int, nbytes: int) -> float:
    command = [program, names.folder, names.suffix, str(files), str(nbytes)]
    return int(subprocess.run(command, check=True, capture_output=True).stdout) / 1e9


def _bare_loop(names: DatasetFiles, files: int, nbytes: int) -> float:
    buffer = [memoryview(bytearray(nbytes))]
    start = time.monotonic()
    for file in range(files):
        fd = os.open(names.path(file), READ_FLAGS)
        os.preadv(fd, buffer, 0)
        os.close(fd)
    return time.monotonic() - start


def _np_load(names: DatasetFiles, files: int) -> float:
    start = time.monotonic()
    for file in range(files):
        with np.load(names.path(file)) as archive:
            archive["x"]
    return time.monotonic() - start


def _blocks(files: int) -> Iterator[Block]:
    for start in range(0, files, 3840):
        numbers = np.arange(start, min(files, start + 3840), dtype=np.int64)
        nothing = np.zeros_like(numbers)
        yield Block(numbers, numbers, nothing, nothing.astype(np.intp))


def _loader(name: str, threads: int, names: DatasetFiles, form: Format, files: int, batch: int) -> float:
    source = Source(form, (names,), ("gfs",), 1 << 20, 1, lambda: (Directory(),))
    loader = LOADERS.load(name)(source, batch, threads, 2, lambda number: Lane(number, 1))
    start = time.monotonic()
    read = sum(len(step.samples) for step in loader.batches(_blocks(files)))
    seconds = time.monotonic() - start
    (table, *_), _ = loader.finish()
    assert read == files == table.ops[READ]
    return seconds


def _beside_compute() -> Iterator[Result]:
    """READ per operation must not depend on whether the rank computes meanwhile."""
    files, nbytes, batch = 1500, 128 * 1024, 12
    with memory_folder() as folder:
        form = FORMATS.load("raw")(Shape(1, nbytes))
        names = _write(folder, form, files, nbytes)
        compute = BusyCompute()

        def read_time(work: Callable[[float], None]) -> float:
            source = Source(form, (names,), ("gfs",), 1 << 20, 1, lambda: (Directory(),))
            loader = LOADERS.load("threads")(source, batch, 1, 2, lambda number: Lane(number, 1))
            for _ in loader.batches(_blocks(files)):
                work(0.001)
            (table, *_), _ = loader.finish()
            return float(table.busy_ns[READ]) / files / 1e9

        def python_loop(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass

        times = interleaved(
            {
                "sleep": lambda: read_time(time.sleep),
                "busy": lambda: read_time(compute),
                "python": lambda: read_time(python_loop),
            },
            5,
        )
    yield ratio("READ time per op: our busy compute / sleeping", times["busy"], times["sleep"], note="(1 is ideal)")
    yield ratio(
        "READ time per op: a Python busy wait / sleeping", times["python"], times["sleep"], note="(what to avoid)"
    )
