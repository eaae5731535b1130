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

PATIENCE_SECONDS = 60.0
CPU_SECONDS = 20.0
MOST_BYTES = 1 << 30
ADDRESS_BYTES = 16 << 30  # so that nothing brings the machine down before we look
LINGER_SECONDS = 3.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
                running[_fork(number, seed, seeds, folder)] = _Running(number, folder, time.monotonic())
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
    for pid, child in running.items():
        if child.stopped:
            continue
        with suppress(OSError, ValueError, IndexError):
            if int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE > MOST_BYTES:
                child.stopped = "more than 1 GiB"
        if time.monotonic() - child.began > PATIENCE_SECONDS or _cpu_seconds(pid) > CPU_SECONDS:
            child.stopped = "hangs"
        if child.stopped:
            _end_session(pid)


def _cpu_seconds(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _outcome(child: _Running, pid: int, code: int, used: resource.struct_rusage) -> Outcome:
    seconds = time.monotonic() - child.began
    if (child.folder / "fuzzer").exists():
        raise SystemExit(f"fuzz: case {child.number} cannot be made: {(child.folder / 'fuzzer').read_text()}")
    left = _left_behind(pid)
    huge = "more than 1 GiB" if used.ru_maxrss * 1024 > MOST_BYTES else ""  # of it, or of a process that it started
    case, before = pickle.loads((child.folder / "case.pickle").read_bytes())
    out, err = (_content(child.folder / name) for name in ("out", "err"))
    ended = Ended(code, out, err, seconds, used.ru_utime + used.ru_stime, child.stopped or huge or left)
    return Outcome(case, ended, judge(case.arguments, case.keeps, before, snapshot(child.folder / "here"), ended))


def _content(path: Path) -> bytes:
    return path.read_bytes()[: 1 << 22] if path.exists() else b""


def _of_session(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(folder.name))
    return found


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
