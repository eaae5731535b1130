"""What a simulation hands over for one epoch, whichever way it was made."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
KINDS = ("open", "read", "write")
SAVE_KINDS = (*KINDS, "sync")
CATEGORIES = ("META", "READ", "WRITE")  # of KINDS, as classes are called


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What stations had to do: seconds of work asked of each, and operations."""

    seconds: FloatArray
    ops: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """Checkpoints that an epoch leaves under way, by rank: operations that writers and drains are at (-1: none), and which do not count yet."""

    resumes: IntArray
    resumes_drain: IntArray
    unsettled: npt.NDArray[np.bool_]
    since: FloatArray

    @classmethod
    def nothing(cls, ranks: int) -> "UnderWay":
        none = np.full(ranks, -1, np.int64)
        return cls(resumes=none, resumes_drain=none.copy(), unsettled=np.zeros(ranks, np.bool_), since=np.zeros(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOutcome:
    """Checkpoints of an epoch. Arrays of operations by (writer or drain, rank, tier, kind of SAVE_KINDS)."""

    tier: int
    background: bool  # what writers do is not part of the I/O time; what drains do never is
    begun: int  # in this epoch
    seconds: tuple[float, ...]  # of each that ended in this epoch: of the rank that took longest
    standstill: FloatArray  # by rank: seconds that training stood still
    busy: FloatArray
    ops: IntArray
    nbytes: IntArray
    under_way: UnderWay | None = None  # None: nothing, or not known

    @property
    def counted(self) -> FloatArray:
        """Busy seconds by (rank, tier, kind of KINDS) that are part of the I/O time: a sync is one of writing."""
        busy: FloatArray = self.busy[0, :, :, :3].copy()
        busy[:, :, 2] += self.busy[0, :, :, 3]
        return busy * 0.0 if self.background else busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Arrays by rank; busy, wall, ops and bytes by (rank, tier, kind of KINDS), of reading threads. A close takes no time."""

    seconds: FloatArray
    stall: FloatArray
    compute: float  # of each rank
    busy: FloatArray
    wall: FloatArray
    ops: IntArray
    nbytes: IntArray
    steps: FloatArray | None  # (rank, step, (read, stall, compute)); None: not known
    load: Load
    copies: IntArray | None = None  # files written to the near tier by each rank; None: none
    samples: int | None = None  # of each rank; None: not known
    payload_bytes: int | None = None  # of those samples, however often and with what around them they were read
    hit_rate: float | None = None  # share of samples that nobody went to the last tier for
    sampled_share: float | None = (
        None  # of its operations that were simulated by events and stand for all; None: all of them
    )
    sampling_error: float = 0.0  # relative standard error of its times that comes of it
    first_batch: FloatArray | None = (
        None  # seconds of each rank from the epoch's start until it has one; None: not known
    )
    saved: SaveOutcome | None = None  # None: no checkpoints

    @property
    def busy_classes(self) -> FloatArray:
        """Busy seconds by (rank, tier, kind of KINDS), with what ranks that stand still write."""
        return self.busy if self.saved is None else self.busy + self.saved.counted

    @property
    def wall_classes(self) -> FloatArray:
        return self.wall if self.saved is None else self.wall + self.saved.counted * self.saved_share[:, None, None]

    @property
    def saved_share(self) -> FloatArray:
        """By rank: of the seconds of writing checkpoints, what the epoch has room for beside those of reading threads, which may read ahead meanwhile."""
        assert self.saved is not None
        mine = self.saved.counted.sum(axis=(1, 2))
        room = np.maximum(0.0, self.seconds - self.wall.sum(axis=(1, 2)))
        share: FloatArray = np.divide(room, mine, out=np.ones_like(mine), where=mine > room)
        return share

    @property
    def io(self) -> FloatArray:
        """READ, META and WRITE seconds of each rank."""
        seconds: FloatArray = self.busy_classes.sum(axis=(1, 2))
        return seconds

    @property
    def slowest(self) -> int:
        return int(np.argmax(self.io))

    @property
    def rank_au(self) -> FloatArray | None:
        """DLIO's accelerator utilisation of each rank, a share of 1: without its first step, where that is known; None: nothing is computed."""
        if not self.compute:
            return None
        compute, seconds = np.full(len(self.seconds), self.compute), self.seconds
        if self.steps is not None and self.steps.shape[1] > 1:
            first = self.steps[:, 0]
            compute, seconds = compute - first[:, 2], seconds - first[:, 1] - first[:, 2]
        share: FloatArray = compute / seconds
        return share


def read_in_epoch(outcome: Outcome) -> float:
    """Bytes of the samples that all ranks get; of what they read, where that is not known."""
    if outcome.payload_bytes is None:
        return float(outcome.nbytes.sum())
    return float(outcome.payload_bytes) * len(outcome.seconds)


def three_kinds(some: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Opens and reads by (rank, tier, kind), with no writes beside them."""
    return np.concatenate([some, np.zeros_like(some[:, :, :1])], axis=2) if some.shape[2] == 2 else some
