"""What this machine offers for measuring, and what to do about what it lacks.

Every check looks at the real thing (evicts a real file, takes a real lock, sleeps and looks at the clock) and answers in
one line. Nothing is left behind.
"""

import importlib.metadata
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tierscope.mounts import filesystem_of, mounts
from tierscope.native import library
from tierscope.storage import cold
from tierscope.storage.emulated import Board, Queues, sharpen_sleep
from tierscope.storage.stations import Station
from tierscope.units import about_bytes, about_seconds, counted

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """`status` is ok, lacking (something will not work) or note (worth knowing)."""

    name: str
    status: str
    found: str
    advice: str = ""


def examine(directories: list[str]) -> Iterator[Check]:
    """All checks; `directories` are where tiers or results would be."""
    yield _cores()
    yield _mpi()
    yield _lustre()
    for directory in directories:
        yield _attempt(f"page cache in {directory}", lambda where=directory: _page_cache(where))  # type: ignore[misc]
        yield _attempt(f"free space in {directory}", lambda where=directory: _space(where))  # type: ignore[misc]
    yield _attempt("native recorder", _recorder)
    yield _darshan()
    yield _clock()
    yield _attempt("emulated tiers", _emulation)


def _attempt(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except OSError as error:
        return Check(
            name, "lacking", f"{error.strerror or error}", "choose another directory, or ask your administrator"
        )


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    advice = f"with {counted(cores, 'rank')} or more on this machine, compute is emulated with sleep()"
    return Check("cores and memory", "ok", f"{counted(cores, 'core')}, {about_bytes(memory)}", advice)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _mpi() -> Check:
    bindings, launcher = _version("mpi4py"), shutil.which("mpirun") or shutil.which("srun")
    if bindings and launcher:
        return Check("MPI", "ok", f"mpi4py {bindings}, {launcher}", "mpirun -n RANKS tierscope run STUDY")
    if bindings:
        return Check(
            "MPI", "lacking", f"mpi4py {bindings}, but neither mpirun nor srun on PATH", "load your site's MPI module"
        )
    return Check(
        "MPI",
        "note",
        "no mpi4py: ranks run only on this machine",
        "pip install 'tierscope[mpi]' for several nodes",
    )


def _lustre() -> Check:
    places = sorted({mount.place for mount in mounts() if mount.kind == "lustre"})
    if not places:
        return Check(
            "Lustre", "note", "no Lustre mount", "any directory can be a tier; striping cannot be checked here"
        )
    tool = "lfs is available" if shutil.which("lfs") else "but no lfs command"
    return Check(
        "Lustre", "ok", f"{', '.join(places)}; {tool}", "set stripes with 'lfs setstripe' on the tier's directory"
    )


def _page_cache(directory: str) -> Check:
    """Write, sync, evict and look: does a file leave the page cache?"""
    name = f"page cache in {directory}"
    where = f"{directory} ({filesystem_of(directory)})"
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".tierscope-doctor-") as file:
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        before = cold.cached_pages(file.fileno())
        if before is None:
            advice = "use Linux 6.5 or newer (cachestat), or a dataset larger than memory"
            return Check(name, "note", f"{where}: eviction cannot be verified", advice)
        cold.evict(file.fileno())
        after = cold.cached_pages(file.fileno()) or 0
    share = after / max(1, before)
    if share > 0.01:
        advice = "reads will be warm: use another filesystem, or a dataset larger than memory"
        return Check(name, "lacking", f"{where}: {share:.0%} of a file stays cached", advice)
    return Check(
        name,
        "ok",
        f"{where}: eviction works (verified)",
        "META may be warm: reader.evict: metadata drops names and inodes too (root)",
    )


def _space(directory: str) -> Check:
    free = shutil.disk_usage(directory).free
    status = "ok" if free > _GIB else "lacking"
    advice = "" if status == "ok" else "the demo needs about 350 MiB; choose another --out"
    return Check(f"free space in {directory}", status, f"{about_bytes(free)} free", advice)


def _recorder() -> Check:
    """Preload the C library into a program, and see whether it is there."""
    name, path = "native recorder", library.path()
    lost = "no 'tierscope trace' and no native loader; with several read threads, waits for Python's GIL count as I/O"
    if path is None or not os.path.exists(path):
        return Check(name, "lacking", f"not built: {lost}", library.BUILD_ADVICE)
    look = subprocess.run(
        ["cat", "/proc/self/maps"],
        env={**os.environ, "LD_PRELOAD": os.path.abspath(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if os.path.basename(path) not in look.stdout:
        reason = (look.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Check(
            name, "lacking", f"{os.path.basename(path)} cannot be preloaded ({reason}): {lost}", library.BUILD_ADVICE
        )
    return Check(
        name, "ok", f"{os.path.basename(path)}, preloading works", "tierscope trace --tier gfs=/lustre -- COMMAND"
    )


def _darshan() -> Check:
    library = os.environ.get("DARSHAN_LIB") or next(
        (path for path in os.environ.get("LD_PRELOAD", "").split(":") if "darshan" in path), None
    )
    logs = _version("darshan")
    if library:
        advice = "unload it while Tierscope measures: the two would measure each other"
        return Check("Darshan", "note", f"runtime library {library}", advice)
    seen = f"PyDarshan {logs}; no runtime library loaded" if logs else "not loaded; no PyDarshan"
    return Check("Darshan", "note", seen, "not required: Tierscope has its own recorder")


def _clock() -> Check:
    try:
        with open("/sys/devices/system/clocksource/clocksource0/current_clocksource", encoding="ascii") as source:
            name = source.read().strip()
    except OSError:
        name = "unknown"
    start = time.monotonic_ns()
    for _ in range(20_000):
        time.monotonic_ns()
    cost = (time.monotonic_ns() - start) / 20_000 / 1e9
    measured = f"{name}, {about_seconds(cost)} per reading"
    if cost > 1e-6:
        return Check(
            "clock", "lacking", measured, "a slow clock source inflates short operations: use tsc or kvm-clock"
        )
    return Check("clock", "ok", measured)


def _emulation() -> Check:
    """Take a slot and sleep for it, as an emulated tier does."""
    sharpen_sleep()
    board = Board(1)
    queues = Queues(board.path)
    station = Station(0, 1e6, 0)
    errors = []
    try:
        for _ in range(20):
            done = queues.join(station, 0)
            time.sleep(max(0, done - time.monotonic_ns()) / 1e9)
            errors.append((time.monotonic_ns() - done) / 1e9)
    finally:
        queues.close()
        board.close()
    typical = statistics.median(errors)
    measured = f"shared queues work; a 1 ms sleep is {about_seconds(typical)} late (median of {len(errors)})"
    if typical > 5e-4:
        return Check(
            "emulated tiers", "lacking", measured, "the machine is busy or virtual: keep service times above 10 ms"
        )
    return Check("emulated tiers", "ok", measured, "keep emulated service times at 1 ms or more")
