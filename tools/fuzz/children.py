"""Cases in processes of their own, forked from this one, which has imported everything and never computed anything.

A child makes its folder ready, tells us what it is about to do (`case.pickle`), and becomes the command. We watch: time, memory, and what it leaves running.
"""

import gc
import importlib
import os
import pickle
import pkgutil
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tierscope
from tools.fuzz.cases import Case, prepare
from tools.fuzz.seeds import TIERS
from tools.fuzz.verdict import Ended, judge, snapshot

# A hang: all processes of a case together computed too long, or all of them slept and none got further. Waiting for a busy machine is neither.
CPU_SECONDS = 20.0
ASLEEP_SECONDS = 30.0
WALL_SECONDS = 600.0
_LOOK_SECONDS = 0.25
MOST_BYTES = 1 << 30
ADDRESS_BYTES = 16 << 30  # so that nothing brings the machine down before we look
LINGER_SECONDS = 3.0
# Work that a study may ask for is refused or thinned out beyond these, as it is beyond larger limits elsewhere: what remains must be quick.
SMALL_LIMITS = {
    ("tierscope.predict.work_limit", "MOST_OPERATIONS"): 4_000_000,
    ("tierscope.commands.calibrate", "MOST_CASES"): 3,
    ("tierscope.predict.table_points", "_MOST_OF_A_POINT"): 5_000,
    ("tierscope.predict.table_points", "_MOST_OF_A_TABLE"): 10_000,
}
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case and what became of it. `mistake`: empty if all is well."""

    case: Case
    ended: Ended
    mistake: str


@dataclass(slots=True)
class _Running:
    number: int
    folder: Path
    began: float
    stopped: str = ""
    looked: float = 0.0
    cpu_seconds: float = 0.0
    awake: float = 0.0  # when one of its processes was last seen to get further


def warm_up() -> None:
    for module in pkgutil.walk_packages(tierscope.__path__, "tierscope."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of what is not installed
                importlib.import_module(module.name)
    importlib.import_module("tests.integration.test_darshan_fuzz")
    gc.collect()
    gc.freeze()


def run_cases(
    numbers: Iterable[int], seed: int, seeds: Path, work: Path, jobs: int, keep: bool = False
) -> Iterator[Outcome]:
    """As they end, which is not their order."""
    waiting, running = iter(numbers), dict[int, _Running]()
    try:
        while True:
            while len(running) < jobs and (number := next(waiting, None)) is not None:
                folder = work / str(number)
                (folder / "here").mkdir(parents=True)
                now = time.monotonic()
                running[_fork(number, seed, seeds, folder)] = _Running(number, folder, now, looked=now, awake=now)
            if not running:
                return
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid in running:
                child = running.pop(pid)
                yield _outcome(child, pid, os.waitstatus_to_exitcode(status), used)
                if not keep:
                    _remove(child.folder)
            else:
                _watch(running)
                time.sleep(0.004)
    finally:
        for pid in running:
            _end_session(pid)


def _fork(number: int, seed: int, seeds: Path, folder: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _be_the_command(number, seed, seeds, folder)
        except BaseException:  # noqa: BLE001  (a child never returns)
            (folder / "fuzzer").write_text(traceback.format_exc())
            os._exit(99)
    return pid


def _be_the_command(number: int, seed: int, seeds: Path, folder: Path) -> None:
    here = folder / "here"
    os.chdir(here)
    case = prepare(number, seed, seeds, here)
    (folder / "case.pickle").write_bytes(pickle.dumps((case, snapshot(here))))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for fd, name in ((0, "/dev/null"), (1, folder / "out"), (2, folder / "err")):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    os.environ.update({"HOME": str(here), TIERS: str(here / "tiers")})
    with suppress(ValueError, UnicodeError):
        os.environ.update(case.environment)
    for (module, name), value in SMALL_LIMITS.items():
        assert hasattr(sys.modules[module], name)
        setattr(sys.modules[module], name, value)
    (folder / "began").touch()
    from tierscope.cli.main import main  # noqa: PLC0415

    code = 1
    try:
        main(case.arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001  (as the interpreter would show it)
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF)


def _watch(running: dict[int, _Running]) -> None:
    now = time.monotonic()
    for pid, child in running.items():
        if child.stopped or now - child.looked < _LOOK_SECONDS:
            continue
        child.looked = now
        if _look(pid, child, now):
            child.stopped = "more than 1 GiB"
        elif child.cpu_seconds > CPU_SECONDS or now - child.awake > ASLEEP_SECONDS or now - child.began > WALL_SECONDS:
            child.stopped = "hangs"
        if child.stopped:
            _end_session(pid)


def _look(session: int, child: _Running, now: float) -> bool:
    """How far its processes are; whether one of them has too much memory."""
    cpu, asleep, most = 0.0, True, 0
    for fields in _of_session(session).values():
        cpu += sum(int(ticks) for ticks in fields[11:15]) / _TICK  # with those of children that ended
        asleep &= fields[0] in "ST"
        most = max(most, int(fields[21]) * _PAGE)
    if not asleep or cpu != child.cpu_seconds:
        child.awake = now
    child.cpu_seconds = cpu
    return most > MOST_BYTES


def _outcome(child: _Running, pid: int, code: int, used: resource.struct_rusage) -> Outcome:
    seconds = time.monotonic() - child.began
    if (child.folder / "fuzzer").exists():
        raise SystemExit(f"fuzz: case {child.number} cannot be made: {(child.folder / 'fuzzer').read_text()}")
    left = _left_behind(pid)
    huge = "more than 1 GiB" if used.ru_maxrss * 1024 > MOST_BYTES else ""  # of it, or of a process that it started
    case, before = pickle.loads((child.folder / "case.pickle").read_bytes())
    out, err = (_content(child.folder / name) for name in ("out", "err"))
    ended = Ended(code, out, err, seconds, used.ru_utime + used.ru_stime, child.stopped or huge or left)
    return Outcome(
        case, ended, judge(case.arguments, case.keeps, before, snapshot(child.folder / "here"), ended, case.makes)
    )


def _content(path: Path) -> bytes:
    return path.read_bytes()[: 1 << 22] if path.exists() else b""


def _of_session(session: int) -> dict[int, list[str]]:
    """Its processes, with the fields of /proc/PID/stat from the state on."""
    members = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in "ZX":
                members[int(folder.name)] = fields
    return members


def _end_session(session: int) -> None:
    for pid in _of_session(session):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _left_behind(session: int) -> str:
    deadline = time.monotonic() + LINGER_SECONDS
    while _of_session(session):
        if time.monotonic() > deadline:
            _end_session(session)
            return "left a process behind"
        time.sleep(0.02)
    return ""


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
