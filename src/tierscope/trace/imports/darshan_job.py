"""A job's Darshan logs: which process each is of, which rank that belongs to, which epoch it saw.

One job is a set of logs. A build with MPI writes one log for all ranks; a build without writes one for every process, loader workers
too. A worker that was forked names its parent, and counts for it; any other process counts for itself, since no log says to whom it
belongs. Several logs of one process are its epochs, in the order of their start; a gap given by the user instead lets an epoch begin wherever no log started for so long.
"""

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tierscope.trace.imports.darshan_reader import DarshanLog

MOST_RANKS = 1 << 20
CLOCK_SECONDS = 1.0  # old logs have whole seconds
_PID = re.compile(r"_id\d+-(\d+)_")


@dataclass(frozen=True, slots=True)
class Placed:
    """A log, the rank of its first process, its epoch, and which process it is of."""

    log: DarshanLog
    first_rank: int
    epoch: int
    process: Hashable


def place_logs(logs: Sequence[DarshanLog], gap: float | None) -> Iterator[Placed]:
    """Processes in the order of their start, ranks after one another."""
    unique = {_identity(log): log for log in logs}  # a log that was given twice counts once
    ordered = sorted(unique.values(), key=lambda log: (log.job["start_seconds"], log.path))
    of_process = _by_process(ordered)
    parents = {key: _parent(found[0]) for key, found in of_process.items()}
    ranks: dict[object, int] = {}
    next_rank = 0
    for key in of_process:
        root = _root(key, parents)
        if root not in ranks:
            ranks[root] = next_rank
            next_rank += max(map(processes_of, of_process[root]))
    by_start = _epochs_by_gap(ordered, gap) if gap else {}
    for key, found in of_process.items():
        for number, log in enumerate(_without_tail(found), start=1):
            yield Placed(log, ranks[_root(key, parents)], by_start.get(log.path, number), key)


def _identity(log: DarshanLog) -> tuple[Any, ...]:
    """Two logs with the same name and the same records are the same log."""
    content = tuple(hash(each.counters.tobytes() + each.times.tobytes()) for each in log.records.values())
    return os.path.basename(log.path), log.job["start_seconds"], log.job["end_seconds"], content


def _by_process(ordered: Sequence[DarshanLog]) -> dict[Hashable, list[DarshanLog]]:
    """Logs of one process after one another; where two overlap in time, they are of two hosts with the same number."""
    found: dict[Hashable, list[DarshanLog]] = {}
    for log in ordered:
        key = process_of(log)
        while key in found and found[key][-1].job["end_seconds"] > log.job["start_seconds"] + CLOCK_SECONDS:
            key = (key, "elsewhere")
        found.setdefault(key, []).append(log)
    return found


def process_of(log: DarshanLog) -> Hashable:
    """What tells a process from others: its number; all ranks of an MPI job are one."""
    if processes_of(log) > 1:
        return "mpi"
    pid = _PID.search(os.path.basename(log.path))
    return int(pid[1]) if pid else log.path


def processes_of(log: DarshanLog) -> int:
    return max(1, min(int(log.job["processes"]), MOST_RANKS))


def _parent(log: DarshanLog) -> int | None:
    text = log.job["metadata"].get("fork_parent", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _root(key: Hashable, parents: Mapping[Hashable, int | None]) -> Hashable:
    """The process that forked it, or forked that one."""
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
