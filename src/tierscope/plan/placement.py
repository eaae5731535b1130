"""Which files are on which tier.

Pinned: every file has a fixed random priority, and the near tiers hold the files of highest priority. So the set
of a smaller cache rate is part of the set of a larger one: the largest is staged once for a whole sweep.
With several near tiers the nearest is filled first, up to its capacity, then the next. Exact at 0 and 1.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tierscope.plan.permutation import IndexArray, Permutation, derive_key


@dataclass(frozen=True, slots=True)
class Pinned:
    """`bounds[t]`: files with a priority below it are on tier t or a nearer one; the last tier has them all."""

    files: int
    seed: int
    bounds: tuple[int, ...]
    _priority: Permutation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_priority", Permutation(self.files, derive_key(self.seed, "placement")))

    @classmethod
    def at(cls, files: int, seed: int, cache_rate: float, rooms: list[int | None]) -> "Pinned":
        """`rooms[t]` is how many files the near tier t has room for; None: any number.

        The last near tier takes what is left, whatever its room: that it does not fit is told before staging.
        """
        cached = round(cache_rate * files)
        bounds: list[int] = []
        for index, room in enumerate(rooms):
            before = bounds[-1] if bounds else 0
            last = index == len(rooms) - 1
            bounds.append(cached if last or room is None else min(cached, before + room))
        return cls(files, seed, (*bounds, files))

    def tiers_of(self, files: IndexArray) -> npt.NDArray[np.intp]:
        """The tier that each file is read from (an index into the system's tiers)."""
        return self.tiers_at(self.priorities(files))

    def priorities(self, files: IndexArray) -> IndexArray:
        """Small ones are cached first; the same at every cache rate."""
        return self._priority(files)

    def tiers_at(self, priorities: IndexArray) -> npt.NDArray[np.intp]:
        return np.searchsorted(np.array(self.bounds), priorities, side="right")
