"""A watch over a rank: storage that does not answer is named, and the study stops instead of waiting for ever.

A read of a dead server may hang where no signal reaches it. A thread of the rank looks now and then whether any other thread of it
has used the processor at all; where none has for as long as the limit, it tells what file they wait for. A rank rests while it computes, waits
for others, syncs or writes checkpoints: that may take its time. Not watched: emulated tiers, whose queues sleep; loaders that read in
processes of their own; libraries that keep Python's lock while they read (HDF5, LMDB).
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tierscope.bench.loading import pick_loader
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, Task, place_of
from tierscope.loaders import LOADERS
from tierscope.tiers.files import tier_root

OnStorage = ClaimTask | SurveyTask | StageTask | RunTask
USUAL_SECONDS = 50.0  # so that a hang is over within a minute
_LOOKS = 10  # within the limit
_NOISE = 1e-4  # of the time: what a waiting process may use all the same
_HERE = {-100 & 0xFFFFFFFF, -100 & 0xFFFFFFFFFFFFFFFF}  # AT_FDCWD: a path follows
_LONGEST_PATH = 4096


class Rest:
    """Entered while storage is not what is waited for; may be entered again inside itself."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


@contextmanager
def watched(task: Task, rank: int, limit: float | None, rest: Rest, tell: Callable[[str], None]) -> Iterator[None]:
    """While a rank does a task: `tell` is called once, from another thread, with a line about what does not answer."""
    if limit is None or not isinstance(task, OnStorage) or not _can_be(task):
        yield
        return
    over = threading.Event()
    arguments = (over, limit, rest, lambda: tell(_line(task, rank, limit)))
    thread = threading.Thread(target=_watch, args=arguments, name="stall", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _can_be(task: OnStorage) -> bool:
    if not isinstance(task, RunTask):
        return True
    return task.board is None and task.watched is None and LOADERS.load(pick_loader(task.study)).records


def _watch(over: threading.Event, limit: float, rest: Rest, tell: Callable[[], None]) -> None:
    """Looks are counted, not seconds: a process that was itself stopped or starved has not waited."""
    pause, still, before = limit / _LOOKS, 0, _used()
    while not over.wait(pause):
        used = _used()
        still = 0 if rest.depth or used - before > _NOISE * pause else still + 1
        before = used
        if still >= _LOOKS:
            tell()
            return


def _used() -> float:
    """Seconds of processor that all other threads of this process have used."""
    return time.process_time() - time.thread_time()


def _line(task: OnStorage, rank: int, limit: float) -> str:
    node = place_of(task.study, rank).node
    roots = {tier.name: tier_root(tier, task.out, node) for tier in task.study.system.tiers}
    place = "storage"
    for path in blocked_on():
        tier = next((name for name, root in roots.items() if (path + "/").startswith(root + "/")), None)
        if tier is not None:
            place = f"{path} on tier {tier}"
            break
    return (
        f"rank {rank} (node {node}): no progress for {limit:g} s: it waits for {place}, which does not answer; finished runs are "
        "kept, run the same command again when it does (--stall-limit: how long to wait)"
    )


def blocked_on() -> Iterator[str]:
    """Files that threads of this process wait for inside the system, as far as it tells."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/self/task/{thread}/syscall", encoding="ascii") as source:
                words = source.read().split()
            first, second = int(words[1], 16), int(words[2], 16)
            path = _text_at(second) if first in _HERE else os.readlink(f"/proc/self/fd/{first}")
            if path.startswith("/"):
                yield path


def _text_at(address: int) -> str:
    """A path in this process's memory; what is not there is an error, not the end of it."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        page = 4096 - address % 4096
        text = memory.read(page)
        if b"\0" not in text:
            text += memory.read(_LONGEST_PATH)
    return os.fsdecode(text.partition(b"\0")[0])
