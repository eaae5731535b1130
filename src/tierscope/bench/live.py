"""How far every rank is, for whoever watches the run: a row of numbers per rank, in anonymous memory that ranks of the director's host share with it.

A thread of each rank writes its row a few times a second, if somebody follows at all; the director reads rows when it wants to. No message is sent, nobody waits for
anybody. Ranks of other hosts cannot reach the memory: their rows stay empty, and it is the reader's job to say so.
"""

import mmap
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.output.durable import boot_id
from tierscope.trace.live_totals import MOVED, LiveTotals

BETWEEN, PREPARING, WAITING, COMPUTING, MEETING, SAVING = range(6)  # what a rank does: WAITING is for data
_TOKEN = 16
_RETRIES = 5


@dataclass(slots=True)
class Pulse:
    """What a rank does now. Written by its loop, which costs a few stores per batch; read by the thread that publishes it."""

    epoch: int = 0
    samples: int = 0  # in all epochs
    doing: int = BETWEEN

    def begin(self, epoch: int) -> None:
        """An epoch, with making its files cold."""
        self.epoch, self.doing = epoch, PREPARING


@dataclass(frozen=True, slots=True)
class LiveBoardAt:
    """Where a board is, for ranks: only those of the same boot of the same host may believe the path, and only if the token is there."""

    path: str
    token: bytes
    boot: str
    ranks: int
    tiers: int
    tick_seconds: float


@dataclass(frozen=True, slots=True)
class RankState:
    """`beat_ns`: when it was written, by the host's monotonic clock. `moved`: by tier, bytes read and written, and operations."""

    rank: int
    beat_ns: int
    epoch: int
    doing: int
    samples: int
    moved: tuple[tuple[int, int, int], ...]


def _row(tiers: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            *((name, "<i8") for name in ("sequence", "beat_ns", "epoch", "doing", "samples")),
            ("moved", "<i8", (tiers, MOVED)),
        ]
    )


class LiveBoard:
    """The director's: made for one run, read while it goes on."""

    def __init__(self, ranks: int, tiers: int, tick_seconds: float) -> None:
        self._fd = os.memfd_create("tierscope-live")
        token = secrets.token_bytes(_TOKEN)
        os.truncate(self._fd, _TOKEN + ranks * _row(tiers).itemsize)
        self._memory = mmap.mmap(self._fd, 0)
        self._memory[:_TOKEN] = token
        self._rows = np.frombuffer(self._memory, _row(tiers), ranks, _TOKEN)
        path = f"/proc/{os.getpid()}/fd/{self._fd}"
        self.at = LiveBoardAt(path, token, boot_id(), ranks, tiers, tick_seconds)

    def states(self) -> tuple[RankState | None, ...]:
        """None: a rank that has not written, because it has not begun or cannot reach the board."""
        return tuple(_state(rank, self._rows) for rank in range(len(self._rows)))

    def close(self) -> None:
        """The memory goes when nobody looks at it any more."""
        os.close(self._fd)


def _state(rank: int, rows: npt.NDArray[np.void]) -> RankState | None:
    for _ in range(_RETRIES):
        before = int(rows[rank]["sequence"])
        row = rows[rank].copy()
        if before and before % 2 == 0 and int(rows[rank]["sequence"]) == before:
            moved = tuple((int(read), int(written), int(ops)) for read, written, ops in row["moved"])
            beat, epoch, doing, samples = (int(row[name]) for name in ("beat_ns", "epoch", "doing", "samples"))
            return RankState(rank, beat, epoch, doing, samples, moved)
        if not before:
            return None
    return None


def joined(at: LiveBoardAt) -> npt.NDArray[np.void] | None:
    """A rank's view of all rows; None: the board is another host's, or gone."""
    if at.boot != boot_id():
        return None
    try:
        fd = os.open(at.path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_size != _TOKEN + at.ranks * _row(at.tiers).itemsize:
            return None
        memory = mmap.mmap(fd, 0)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return np.frombuffer(memory, _row(at.tiers), at.ranks, _TOKEN) if memory[:_TOKEN] == at.token else None


def publish(rows: npt.NDArray[np.void], rank: int, pulse: Pulse, totals: LiveTotals) -> None:
    """The row of a rank; the sequence is odd while it is written."""
    moved, row = totals.now(), rows[rank : rank + 1]
    row["sequence"] += 1
    row["beat_ns"], row["epoch"] = time.monotonic_ns(), pulse.epoch
    row["doing"], row["samples"] = pulse.doing, pulse.samples
    row["moved"] = moved
    row["sequence"] += 1


@contextmanager
def publishing(at: LiveBoardAt | None, rank: int, pulse: Pulse, totals: LiveTotals | None) -> Iterator[None]:
    """While this lasts a thread keeps the rank's row up to date. Nothing happens where nobody follows or can."""
    rows = joined(at) if at is not None and totals is not None else None
    if at is None or totals is None or rows is None:
        yield
        return
    over = threading.Event()

    def keep() -> None:
        publish(rows, rank, pulse, totals)
        while not over.wait(at.tick_seconds):
            publish(rows, rank, pulse, totals)

    thread = threading.Thread(target=keep, name="live", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        publish(rows, rank, pulse, totals)
