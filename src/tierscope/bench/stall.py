"""A watch over a rank: storage that does not answer is named, and the study stops instead of waiting for ever.

A read of a dead server may hang where no signal reaches it. A thread of the rank looks now and then what the others are in: one that is
in the same system call, about a file of a tier, at every look until the limit is told with the file's name. Flushes may take their time and do not count. What
it does not see: reads by io_uring, by processes of a loader's own, and by libraries that keep Python's lock while they read (HDF5, LMDB).
"""

import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tierscope.bench.liveness import suspended_now, suspended_too_long
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, Task, place_of
from tierscope.storage.files import tier_root

USUAL_SECONDS = 45.0  # so that a hang is over within a minute
_LOOKS = 10  # within the limit
_FLUSHES = {  # close, fsync, fdatasync, syncfs
    "x86_64": {3, 74, 75, 306},
    "aarch64": {57, 82, 83, 267},
}
_HERE = {-100 & 0xFFFFFFFF, -100 & 0xFFFFFFFFFFFFFFFF}  # AT_FDCWD: a path follows
_LONGEST_PATH = 4096
_OnStorage = ClaimTask | SurveyTask | StageTask | RunTask


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A rank on the same host that somebody has to watch, where no director can."""

    rank: int
    pid: int


@contextmanager
def watched(
    task: Task, rank: int, limit: float | None, tell: Callable[[str], None], neighbour: Neighbour | None = None
) -> Iterator[None]:
    """While a rank does a task: `tell` is called once, from another thread, with a line about what does not answer."""
    if limit is None or not isinstance(task, _OnStorage):
        yield
        return
    node = place_of(task.study, rank).node
    tiers = {tier.name: tier_root(tier, task.out, node) for tier in task.study.system.tiers}
    over = threading.Event()

    def watch() -> None:
        seen: dict[int, _Seen] = {}
        suspended = 0
        while not over.wait(limit / _LOOKS):
            seen = look(seen, tiers)
            for wait in seen.values():
                if wait.looks > _LOOKS:
                    tell(
                        f"rank {rank} (node {node}): no progress for {limit:g} s: it waits for {wait.path} on tier {wait.tier}, which does "
                        "not answer; finished runs are kept; rerun the same command when it does (--stall-limit sets the limit)"
                    )
                    return
            suspended = suspended + 1 if neighbour and suspended_now(neighbour.pid) else 0
            if neighbour and suspended >= _LOOKS:
                tell(str(suspended_too_long(f"rank {neighbour.rank}", neighbour.pid, limit)))
                return

    thread = threading.Thread(target=watch, name="stall", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A thread that was in a system call about a file of a tier; how often in a row, and how often it had been scheduled."""

    switches: str
    path: str
    tier: str
    looks: int


def look(before: dict[int, _Seen], tiers: dict[str, str]) -> dict[int, _Seen]:
    """By thread, what is waited for now. Looks are counted, not seconds: a process that was itself stopped has not waited."""
    seen = {}
    for thread in map(int, os.listdir("/proc/self/task")):
        with suppress(OSError, ValueError, IndexError):
            path, switches = _blocked_on(thread), _switches(thread)
            tier = next((name for name, root in tiers.items() if (path + "/").startswith(root + "/")), None)
            if tier is not None:
                then = before.get(thread)
                same = then is not None and (then.switches, then.path) == (switches, path)
                seen[thread] = _Seen(switches, path, tier, then.looks + 1 if then and same else 1)
    return seen


def _switches(thread: int) -> str:
    with open(f"/proc/self/task/{thread}/status", encoding="utf-8", errors="replace") as source:
        return "".join(line for line in source if "ctxt_switches" in line)


def _blocked_on(thread: int) -> str:
    """The file that a thread is in a system call about, a flush apart; empty: none."""
    with open(f"/proc/self/task/{thread}/syscall", encoding="ascii") as source:
        words = source.read().split()  # its number, its arguments in hex; or "running"
    if int(words[0]) in _FLUSHES.get(platform.machine(), ()):
        return ""
    first, second = int(words[1], 16), int(words[2], 16)
    return _text_at(second) if first in _HERE else os.readlink(f"/proc/self/fd/{first}")


def _text_at(address: int) -> str:
    """A path in this process's memory; where there is none it is an error, not the end of us."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        text = memory.read(4096 - address % 4096)
        if b"\0" not in text:
            text += memory.read(_LONGEST_PATH)
    return os.fsdecode(text.partition(b"\0")[0])
