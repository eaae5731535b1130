"""Reading: our loader with the recorder on, beside a C loop, a bare Python loop and np.load; what comparing with checksums costs; files in memory."""

import itertools
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import Result, compile_loop, interleaved, memory_folder, ratio, spread
from benchmarks.generation import written
from tierscope.dataset import content
from tierscope.dataset.sums import sums_layout
from tierscope.formats import FORMATS, Format, Shape
from tierscope.loaders import LOADERS, SampleSource
from tierscope.loaders.busy import Busy
from tierscope.loaders.verify import SampleChecks, SumsTable, read_in
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Block
from tierscope.spec.study import VERIFY_ALL, VERIFY_OFF, VERIFY_SOME
from tierscope.storage.access import READ_FLAGS, Directory
from tierscope.storage.files import DatasetFiles
from tierscope.storage.sums import NAME as SUMS
from tierscope.trace.ops import READ
from tierscope.trace.recorder import Recording

ROUNDS = 9
VERIFY_ROUNDS = 15  # a difference of one part in a hundred
PREFETCH = 2
_NOISE = 1.03  # the copy in the kernel dominates both, so that they are equal but for noise


def reading() -> Iterator[Result]:
    for size in SIZES:
        yield from _size(size)
    for verified in VERIFIED:
        yield from _verification(*verified)
    yield from _two_threads()
    yield from _beside_compute()


@dataclass(frozen=True, slots=True)
class Size:
    """Files of one size, and what share of the C loop's speed each loader is to reach.

    A loader that reads ahead writes to PREFETCH + 1 batches in turn. Where they do not fit the processor's cache and one
    buffer does, that alone costs a tenth: there the goal is set against a C loop that takes turns too.
    """

    nbytes: int
    files: int
    batch: int
    goal_native: float
    goal_python: float | None = None
    fits_cache: bool = True

    @property
    def label(self) -> str:
        size = f"{self.nbytes >> 20} MiB" if self.nbytes >= 1 << 20 else f"{self.nbytes >> 10} KiB"
        return f"{size} files, batch {self.batch}"


SIZES = (
    Size(128 << 10, 3000, 12, 0.95, 0.75),
    Size(4 << 10, 12000, 64, 0.85, 0.4),
    Size(12 << 20, 40, 2, 0.95, fits_cache=False),
)


# Format, bytes, files, batch: of the smallest files a comparison costs most beside the read.
VERIFIED = (
    ("raw", 4 << 10, 12000, 64),
    ("raw", 128 << 10, 3000, 12),
    ("npz", 4 << 10, 6000, 64),
    ("tfrecord", 4 << 10, 6000, 64),
)


def write_files(folder: Path, form: Format, files: int, nbytes: int) -> DatasetFiles:
    names = DatasetFiles(str(folder), str(folder), form.suffix, 0)
    for file in range(files):
        with open(names.path(file), "wb") as out:
            out.writelines(form.encode([content.payload(1, file, nbytes)]))
    return names


def _size(size: Size) -> Iterator[Result]:
    nbytes, files, batch = size.nbytes, size.files, size.batch
    with memory_folder() as folder:
        raw, npz = FORMATS.load("raw")(Shape(1, nbytes)), FORMATS.load("npz")(Shape(1, nbytes))
        names, archives = write_files(folder, raw, files, nbytes), write_files(folder, npz, files, nbytes)
        program = compile_loop(folder)
        contenders: dict[str, Callable[[], float]] = {
            "c": lambda: _c_loop(program, names, files, nbytes),
            "c in turn": lambda: _c_loop(program, names, files, nbytes, buffers=batch * (PREFETCH + 1)),
            "bare": lambda: _bare_loop(names, files, nbytes),
            "native": lambda: _loader("native", 1, names, raw, files, batch),
            "native inline": lambda: _loader("native", 0, names, raw, files, batch),
            "threads": lambda: _loader("threads", 1, names, raw, files, batch),
            "inline": lambda: _loader("inline", 0, names, raw, files, batch),
            "np.load": lambda: _np_load(archives, files),
        }
        times = interleaved(contenders, ROUNDS)
    label = size.label
    void = statistics.median(times["c"]) > _NOISE * statistics.median(times["bare"])
    note = "(void: the C loop was slower than a bare Python loop)" if void else ""
    yield spread(f"{label}: C loop", [files / seconds for seconds in times["c"]], "files/s")
    yield ratio(f"{label}: bare Python loop / C loop", times["c"], times["bare"])
    native, python = (None, None) if void else (size.goal_native, size.goal_python)
    alone, in_turn = (native, None) if size.fits_cache else (None, native)
    yield ratio(f"{label}: native, 1 thread, recorder on / C loop", times["c"], times["native"], alone, note)
    yield ratio(f"{label}: … / C loop over as much memory", times["c in turn"], times["native"], in_turn, note)
    yield ratio(f"{label}: native, inline, recorder on / C loop", times["c"], times["native inline"], None, note)
    yield ratio(f"{label}: loader, 1 thread, recorder on / C loop", times["c"], times["threads"], python, note)
    yield ratio(f"{label}: loader, inline, recorder on / C loop", times["c"], times["inline"], python, note)
    yield ratio(f"{label}: np.load of npz, as peers read it / C loop", times["c"], times["np.load"])


def _verification(form: str, nbytes: int, files: int, batch: int) -> Iterator[Result]:
    """`reader.verify: sample`, the default, and `all` beside `off`: CPU seconds of the whole process, since another thread may do it.

    What bounds `sample` is a comparison out of the blue, which takes about 70 µs (`loaders/verify.py`), over N reads; what bounds `all`
    is one more pass over every byte, in the processor's cache.
    """
    with memory_folder() as folder:
        study, stager = written(folder, form, files, nbytes)
        share, layout = stager.shares[0], sums_layout(study, make_format(study))
        assert layout is not None
        table = SumsTable(f"{share.files.folder}/{SUMS}", layout, share.storage)
        turns = itertools.count()
        comparing: list[float] = []  # in percent of the time that reading took

        def cpu_seconds(mode: str) -> float:
            checks = SampleChecks(read_in(mode, nbytes), (table,), next(turns))
            start = time.process_time()
            seconds, checked = _read_all("native", 1, share.files, make_format(study), files, batch, checks)
            if mode == VERIFY_SOME:
                comparing.append(100 * checked / seconds)
            return time.process_time() - start

        modes = (VERIFY_OFF, VERIFY_SOME, VERIFY_ALL)
        contenders: dict[str, Callable[[], float]] = {mode: partial(cpu_seconds, mode) for mode in modes}
        times = interleaved(contenders, VERIFY_ROUNDS)
    label, note = f"{nbytes >> 10} KiB {form} files", f"(one read in {read_in(VERIFY_SOME, nbytes)} is compared)"
    if not make_format(study).has_checks:  # else that time is of the format's own checks too
        median = statistics.median(comparing)
        name, extremes = f"{label}: time comparing, verify: sample", (min(comparing), max(comparing), len(comparing))
        yield Result(name, median, "%", *extremes, "≤ 2 %", median <= 2, note)
    yield ratio(f"{label}: CPU, verify: off / sample", times[VERIFY_OFF], times[VERIFY_SOME], note=note)
    yield ratio(f"{label}: CPU, verify: off / all", times[VERIFY_OFF], times[VERIFY_ALL])


def _two_threads() -> Iterator[Result]:
    """Two native threads over one, beside what two C loops at once reach over one."""
    files, nbytes, batch = 3000, 128 << 10, 24
    with memory_folder() as folder:
        raw = FORMATS.load("raw")(Shape(1, nbytes))
        names = write_files(folder, raw, files, nbytes)
        program = compile_loop(folder)
        times = interleaved(
            {
                "c": lambda: _c_loop(program, names, files, nbytes),
                "two c": lambda: _c_loop(program, names, files, nbytes, at_once=2) / 2,
                "one": lambda: _loader("native", 1, names, raw, files, batch),
                "two": lambda: _loader("native", 2, names, raw, files, batch),
                "two in python": lambda: _loader("threads", 2, names, raw, files, batch),
            },
            ROUNDS,
        )
    label = f"{nbytes >> 10} KiB files, batch {batch}"
    goal = 1.7 if len(os.sched_getaffinity(0)) >= 2 else None
    yield ratio(f"{label}: two C loops at once / one", times["c"], times["two c"], note="(the bound)")
    yield ratio(f"{label}: native, 2 threads / 1 thread", times["one"], times["two"], goal)
    yield ratio(f"{label}: loader in Python, 2 threads / native, 1", times["one"], times["two in python"])


def _c_loop(program: str, names: DatasetFiles, files: int, nbytes: int, buffers: int = 1, at_once: int = 1) -> float:
    """Seconds of the slowest of so many loops, each over all files."""
    command = [program, names.folder, names.suffix, str(files), str(nbytes), str(buffers)]
    loops = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(at_once)]
    return max(int(loop.communicate()[0]) for loop in loops) / 1e9


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


def blocks_of(files: int) -> Iterator[Block]:
    for start in range(0, files, 3840):
        numbers = np.arange(start, min(files, start + 3840), dtype=np.int64)
        nothing = np.zeros_like(numbers)
        yield Block(numbers, numbers, nothing, nothing.astype(np.intp))


def _loader(name: str, threads: int, names: DatasetFiles, form: Format, files: int, batch: int) -> float:
    return _read_all(name, threads, names, form, files, batch)[0]


def _read_all(
    name: str,
    threads: int,
    names: DatasetFiles,
    form: Format,
    files: int,
    batch: int,
    checks: SampleChecks | None = None,
) -> tuple[float, float]:
    """Seconds that reading took, and those of them in which samples were checked."""
    source = SampleSource(form, (names,), ("gfs",), 16 << 20, 1, lambda: (Directory(),), checks=checks)
    loader = LOADERS.load(name)(source, batch, threads, PREFETCH, Recording(1))
    read = checked_ns = 0
    start = time.monotonic()
    for step in loader.batches(blocks_of(files)):
        read += len(step.samples)
        checked_ns += step.decode_ns
    seconds = time.monotonic() - start
    tables, _ = loader.finish()
    assert read == files == sum(int(table.ops[READ]) for table in tables)
    return seconds, checked_ns / 1e9


def _beside_compute() -> Iterator[Result]:
    """READ per operation must not depend on whether the rank computes meanwhile."""
    files, nbytes, batch = 1500, 128 * 1024, 12
    with memory_folder() as folder:
        form = FORMATS.load("raw")(Shape(1, nbytes))
        names = write_files(folder, form, files, nbytes)
        compute = Busy()

        def read_time(name: str, work: Callable[[float], None]) -> float:
            source = SampleSource(form, (names,), ("gfs",), 1 << 20, 1, lambda: (Directory(),))
            loader = LOADERS.load(name)(source, batch, 1, PREFETCH, Recording(1))
            for _ in loader.batches(blocks_of(files)):
                work(0.001)
            (table, *_), _ = loader.finish()
            return float(table.busy_ns[READ]) / files / 1e9

        def python_loop(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass

        works = {"sleeping": time.sleep, "our busy compute": compute, "a Python busy wait": python_loop}
        times = interleaved(
            {
                f"{name} {label}": lambda name=name, work=work: read_time(name, work)  # type: ignore[misc]
                for name in ("native", "threads")
                for label, work in works.items()
            },
            5,
        )
    for name, label, note in (
        ("native", "our busy compute", "(1 is ideal)"),
        ("native", "a Python busy wait", "(1 is ideal)"),
        ("threads", "our busy compute", "(1 is ideal)"),
        ("threads", "a Python busy wait", "(what to avoid)"),
    ):
        title = f"READ time per op, {name}: {label} / sleeping"
        yield ratio(title, times[f"{name} {label}"], times[f"{name} sleeping"], note=note)
