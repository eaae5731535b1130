"""A job's Darshan logs: which process each is of, which rank that belongs to, which epoch it saw.

One job is a set of logs. A build with MPI writes one log for all ranks; a build without writes one for every process, loader workers
too. A worker that was forked names its parent, and counts for it. One that was spawned does not: it counts for the only program that can have started it,
by its time, its job and its interpreter (`darshan_spawned.py`), and for itself where there are several or none, as any other process does.
Several logs of one process are its epochs, in the order of their start; a gap given by the user instead lets an epoch begin wherever no log started for so long.
MPI programs that a job ran one after another are its steps, not epochs of one another: their times add up by rank.
"""

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierscope.imports.darshan_reader import DarshanLog, processes_of
from tierscope.imports.darshan_spawned import is_spawned, starters

CLOCK_SECONDS = 1.0  # old logs have whole seconds
_PID = re.compile(r"_id\d+-(\d+)_")


@dataclass(frozen=True, slots=True)
class Placed:
    """A log, the rank of its first process, its epoch, and which process it is of.

    `spawned`: None, or of a spawned worker whether the process that it counts for was found by its time.
    """

    log: DarshanLog
    first_rank: int
    epoch: int
    process: Hashable
    spawned: bool | None = None


def place_logs(logs: Sequence[DarshanLog], gap: float | None) -> Iterator[Placed]:
    """Processes in the order of their start, ranks after one another."""
    ordered = sorted(_without_copies(logs), key=lambda log: (log.job["start_seconds"], log.path))
    of_process = _by_process(ordered)
    parents: dict[Hashable, Hashable] = {key: _parent(process_logs[0]) for key, process_logs in of_process.items()}
    roots = {key: process_logs for key, process_logs in of_process.items() if _root(key, parents) == key}
    guessed = starters(roots)
    parents |= guessed
    ranks: dict[object, int] = {}
    next_rank = 0
    for key in of_process:
        root = _root(key, parents)
        if root not in ranks:
            ranks[root] = next_rank
            next_rank += max(map(processes_of, of_process[root]))
    by_start = _epochs_by_gap(ordered, gap) if gap else {}
    for key, process_logs in of_process.items():
        spawned = key in guessed if key in roots and is_spawned(process_logs[0]) else None
        are_steps = len(set(map(step_of, process_logs))) > 1
        for number, log in enumerate(_without_tail(process_logs), start=1):
            process = (key, step_of(log)) if are_steps else key
            epoch = by_start.get(log.path, 1 if are_steps else number)
            yield Placed(log, ranks[_root(key, parents)], epoch, process, spawned)


def steps_of(placed: Sequence[Placed]) -> tuple[str, ...]:
    """Commands of the MPI programs that ran one after another, each on the same ranks; empty: there is only one."""
    commands: dict[int, dict[Hashable, str]] = {}
    for placed_log in placed:
        if processes_of(placed_log.log) > 1:
            of_ranks = commands.setdefault(placed_log.first_rank, {})
            of_ranks.setdefault(placed_log.process, placed_log.log.job["command"].strip())
    return tuple(command for of_ranks in commands.values() if len(of_ranks) > 1 for command in of_ranks.values())


def _without_copies(logs: Sequence[DarshanLog]) -> list[DarshanLog]:
    """A log that was given twice counts once: two with the same name, times and records are the same."""
    alike: dict[tuple[Any, ...], list[DarshanLog]] = {}
    for log in logs:
        same_name = alike.setdefault((os.path.basename(log.path), log.job["start_seconds"], log.job["end_seconds"]), [])
        if not any(_same_records(log, other) for other in same_name):
            same_name.append(log)
    return [log for same_name in alike.values() for log in same_name]


def _same_records(log: DarshanLog, other: DarshanLog) -> bool:
    return all(
        np.array_equal(mine.counters, theirs.counters) and mine.times.tobytes() == theirs.times.tobytes()
        for mine, theirs in zip(log.records.values(), other.records.values(), strict=True)
    )


def _by_process(ordered: Sequence[DarshanLog]) -> dict[Hashable, list[DarshanLog]]:
    """Logs of one process after one another; where two overlap in time, they are of two hosts with the same number."""
    by_process: dict[Hashable, list[DarshanLog]] = {}
    for log in ordered:
        key = process_of(log)
        while key in by_process and by_process[key][-1].job["end_seconds"] > log.job["start_seconds"] + CLOCK_SECONDS:
            key = (key, "elsewhere")
        by_process.setdefault(key, []).append(log)
    return by_process


def process_of(log: DarshanLog) -> Hashable:
    """What tells a process from others: its number; all ranks of an MPI job are one."""
    return "mpi" if processes_of(log) > 1 else _number(log)


def _number(log: DarshanLog) -> int | str:
    pid = _PID.search(os.path.basename(log.path))
    return int(pid[1]) if pid else log.path


def step_of(log: DarshanLog) -> Hashable:
    """Which run of an MPI program a log is of; one process has one."""
    return (_number(log), log.job["command"]) if processes_of(log) > 1 else None


def _parent(log: DarshanLog) -> int | None:
    text = log.job["metadata"].get("fork_parent", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _root(key: Hashable, parents: Mapping[Hashable, Hashable]) -> Hashable:
    """The process that started it, or started that one."""
    seen = {key}
    while (parent := parents.get(key)) is not None and parent in parents and parent not in seen:
        key = parent
        seen.add(key)
    return key


def _without_tail(logs: list[DarshanLog]) -> list[DarshanLog]:
    """Without what a process leaves after its last epoch: a log of nothing. One is kept, so that the process is seen."""
    kept = list(logs)
    while len(kept) > 1 and not any(map(len, kept[-1].records.values())):
        kept.pop()
    return kept


def _epochs_by_gap(ordered: list[DarshanLog], gap: float) -> dict[str, int]:
    epochs: dict[str, int] = {}
    epoch, last = 1, ordered[0].job["start_seconds"] if ordered else 0.0
    for log in ordered:
        epoch += log.job["start_seconds"] - last > gap
        last = log.job["start_seconds"]
        epochs[log.path] = epoch
    return epochs
