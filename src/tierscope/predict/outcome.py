"""What a simulation hands over for one epoch, whichever way it was made."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
KINDS = ("open", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What stations had to do: seconds of work asked of each, and operations."""

    seconds: FloatArray
    ops: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Arrays by rank; busy, wall, ops and bytes by (rank, tier, kind of KINDS). A close takes no time."""

    seconds: FloatArray
    stall: FloatArray
    compute: float  # of each rank
    busy: FloatArray
    wall: FloatArray
    ops: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    steps: FloatArray | None  # (rank, step, (read, stall, compute)); None: not known
    load: Load
    copies: npt.NDArray[np.int64] | None = None  # files written to the near tier by each rank; None: none
    samples: int | None = None  # of each rank; None: not known
    payload_bytes: int | None = None  # of those samples, however often and with what around them they were read
    hit_rate: float | None = None  # share of samples that nobody went to the last tier for

    @property
    def io(self) -> FloatArray:
        """READ + META seconds of each rank."""
        found: FloatArray = self.busy.sum(axis=(1, 2))
        return found

    @property
    def slowest(self) -> int:
        return int(np.argmax(self.io))
