"""Which process started one that Python's multiprocessing spawned: no log says so, but often only one can have.

Its starter is a program of the same interpreter, in the same job, that ran when it began. When it ended says nothing: workers are seen to outlive the
log of their starter by many seconds. Logs may be missing, so what all children of one process share is a check: they have the number of its resource tracker's pipe.
"""

import os
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import islice

from tierscope.imports.darshan_reader import DarshanLog, processes_of

_WORKER = re.compile(r"--multiprocessing-fork|from multiprocessing\.(spawn|forkserver) import")
_TRACKER = re.compile(r"from multiprocessing\.(resource|semaphore)_tracker import")
_TRACKER_PIPE = re.compile(r"tracker_fd=(\d+)")
_VERSION = re.compile(r"[\d.]+$")


def is_spawned(log: DarshanLog) -> bool:
    """A worker, as its command says; its resource tracker does no I/O that matters."""
    return bool(_WORKER.search(log.job["command"]))


def starters(processes: Mapping[Hashable, Sequence[DarshanLog]]) -> dict[Hashable, Hashable]:
    """For each spawned process that only one of the others can have started, that one. `processes`: their logs in order, of those that nobody forked."""
    spawned = {key: logs[0] for key, logs in processes.items() if is_spawned(logs[0]) or _is_tracker(logs[0])}
    programs = [key for key in processes if key not in spawned]
    children: dict[Hashable, list[Hashable]] = defaultdict(list)
    for key, log in spawned.items():
        able = list(islice((program for program in programs if _can_start(processes[program], log)), 2))
        if len(able) == 1 and processes_of(processes[able[0]][0]) == 1:
            children[able[0]].append(key)
    return {
        child: program
        for program, started in children.items()
        if _are_siblings([spawned[child] for child in started])
        for child in started
    }


def _is_tracker(log: DarshanLog) -> bool:
    return bool(_TRACKER.search(log.job["command"]))


def _can_start(program: Sequence[DarshanLog], child: DarshanLog) -> bool:
    ran = program[0].job["start_seconds"] <= child.job["start_seconds"] <= program[-1].job["end_seconds"]
    return ran and _job(program[0]) == _job(child) and _interpreter(program[0]) in ("", _interpreter(child))


def _job(log: DarshanLog) -> int | None:
    """None: there was no scheduler, so Darshan gave the number of the process."""
    number: int = log.job["job_id"]
    return None if f"_id{number}-{number}_" in os.path.basename(log.path) else number


def _interpreter(log: DarshanLog) -> str:
    """Without its version, which may be written or not; empty: not known."""
    first = log.job["command"].split(maxsplit=1)[:1]
    return _VERSION.sub("", os.path.basename(first[0])) if first else ""


def _are_siblings(logs: Sequence[DarshanLog]) -> bool:
    """Whether one process can have started them all: it has one tracker at most, and so one pipe to it."""
    pipes = {match[1] for log in logs if (match := _TRACKER_PIPE.search(log.job["command"]))}
    return len(pipes) <= 1 and sum(map(_is_tracker, logs)) <= 1
