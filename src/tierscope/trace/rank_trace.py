"""What one rank hands over after a run: plain NumPy, so that ranks need no table library."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.recorder import LaneTable

MAX_STEPS = 512


class StepTimes:
    """Seconds per step, in bounded memory: past MAX_STEPS entries, neighbours are added up pairwise."""

    def __init__(self) -> None:
        self._values = np.zeros((MAX_STEPS, 3), np.float64)
        self._used = 0
        self._partial = np.zeros(3)
        self._in_partial = 0
        self.steps_per_entry = 1

    def add(self, read: float, stall: float, compute: float) -> None:
        self._partial += (read, stall, compute)
        self._in_partial += 1
        if self._in_partial < self.steps_per_entry:
            return
        if self._used < MAX_STEPS:
            self._push()
        else:
            self._coarsen()

    def _coarsen(self) -> None:
        self._values[: MAX_STEPS // 2] = self._values[0::2] + self._values[1::2]
        self._used //= 2
        self.steps_per_entry *= 2

    def _push(self) -> None:
        self._values[self._used] = self._partial
        self._used += 1
        self._partial = np.zeros(3)
        self._in_partial = 0

    def finish(self) -> npt.NDArray[np.float64]:
        """Rows of (read, stall, compute) seconds; `steps_per_entry` steps each, the last one perhaps fewer."""
        if self._in_partial:
            if self._used == MAX_STEPS:
                self._coarsen()
            self._push()
        return self._values[: self._used].copy()


@dataclass(frozen=True, slots=True)
class Residency:
    """How much of what was checked was in the page cache when its reading began; None: could not be told.

    `evict_seconds`: what evicting and looking took, summed over threads; in no operation, but in the epoch.
    """

    tier: str
    checked_bytes: int
    resident_bytes: int | None
    evict_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a rank's own loop saw of an epoch."""

    seconds: float
    samples: int
    payload_bytes: int
    stall_seconds: float
    compute_seconds: float
    decode_seconds: float
    preprocess_seconds: float = 0.0
    sync_seconds: float = 0.0  # waiting for other ranks after steps
    checkpoint_seconds: float = 0.0  # that training stood still for checkpoints
    order_digest: str  # of the samples in the order in which they were delivered
    steps_per_entry: int
    steps: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Where the time of real training's steps went; what is emulated has none. Exchange (all-reduce) goes on during backward."""

    copy_seconds: float = 0.0
    forward_seconds: float = 0.0
    backward_seconds: float = 0.0
    exchange_seconds: float = 0.0
    optimizer_seconds: float = 0.0
    overlapped_seconds: float = 0.0  # that the host waited for a batch while its device computed: no stall


def without_overlap(tally: Tally, seconds: float) -> Tally:
    """What the host waited for a batch while its device computed counts as compute."""
    hidden = min(seconds, tally.stall_seconds)
    stall, compute = tally.stall_seconds - hidden, tally.compute_seconds + hidden
    return replace(tally, stall_seconds=stall, compute_seconds=compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLog:
    """What one rank's training was, and how it went."""

    network: str
    parameters: int
    device: str
    software: str
    first_loss: float
    last_loss: float
    device_memory_bytes: int | None = None  # None: it does not say
    peak_memory_bytes: int | None = None  # of the device's allocator; None: it does not say
    ahead_bytes: int = 0  # of batches that the device holds beside the one it computes
    repeated: int = 0  # times that a stored sample fills the network's input; 0: it is as large or larger


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEpoch(Tally):
    """That, and what its lanes, its tiers and the page cache had to say."""

    epoch: int
    limited_ops: int  # emulated operations that a rate limits
    late_ops: int  # those of them whose real work took longer than their emulated service
    late_seconds: float
    lanes: tuple[LaneTable, ...]
    residency: tuple[Residency, ...]
    span_ns: tuple[int, int] = (0, 0)  # when it began and ended, by the calendar's clock
    phases: Phases = Phases()
    kernel: KernelIo | None = None  # counted while it read; None: cannot be told


@dataclass(frozen=True, slots=True)
class CheckpointLog:
    """One rank's checkpoints in a run."""

    seconds: tuple[float, ...]  # of writing each, with what it waited for others meanwhile
    nbytes: int  # of its own files in each
    complete: int  # that all ranks finished
    recovery_seconds: float | None = None  # of reading its files of the last one back; None: nobody did
    verified_bytes: int | None = None
    resident_bytes: int | None = None  # of those, in the page cache before; None: not known


@dataclass(frozen=True, slots=True)
class RankTrace:
    rank: int
    node: int
    epochs: tuple[RankEpoch, ...]
    loader: str = ""  # that it read with
    checkpoints: CheckpointLog | None = None  # None: none were asked for
    training: TrainingLog | None = None  # None: compute was emulated
