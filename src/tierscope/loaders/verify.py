"""Which samples are compared with the checksums that were kept when they were staged (`reader.verify`), and the tables that hold these.

`all` compares every sample that is read. `sample` compares one read in 128, and of samples below 64 KiB one in 512: a checksum takes about half as
long as copying the bytes out of the page cache, and asking for it 20 µs, so that this costs less than one part in a hundred of the fastest read
there is. Which ones follows from the sample's number and from how many epochs were read before, so that every run of a study compares
the same ones; in as many epochs each of them has its turn.
"""

from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tierscope.plan.permutation import IndexArray
from tierscope.spec.study import VERIFY_ALL, VERIFY_OFF
from tierscope.storage.base import Storage
from tierscope.storage.sums import SampleSums, SumsLayout

_EVERY_LARGE, _EVERY_SMALL, _LARGE_BYTES = 128, 512, 64 << 10
_SPREAD = 0x9E3779B1  # neighbours are far apart
_BEGIN = 0x7F4A7C15
_WORD = (1 << 32) - 1


def read_in(mode: str, record_bytes: int) -> int:
    """One read in so many is compared; 0: none."""
    if mode == VERIFY_OFF:
        return 0
    return 1 if mode == VERIFY_ALL else _EVERY_LARGE if record_bytes >= _LARGE_BYTES else _EVERY_SMALL


class SumsTable:
    """A tier's table, opened when it is first needed; a worker process opens its own."""

    def __init__(self, path: str, layout: SumsLayout, storage: Storage) -> None:
        self.path, self._layout = path, layout
        self._storage = None if storage.abilities.paths else storage
        self._opened: SampleSums | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def opened(self) -> SampleSums:
        """OSError, or ValueError with what is wrong with it."""
        if self._opened is None:
            self._opened = SampleSums(self.path, self._layout, self._storage)
        return self._opened


@dataclass(frozen=True, slots=True)
class SampleChecks:
    """`every`: one read in so many is compared; 0: none. `turn`: epochs that were read before. `tables`: of each tier."""

    every: int
    tables: tuple[SumsTable, ...]
    turn: int = 0

    def prepare(self) -> None:
        """What the first comparison would otherwise pay for, while nobody measures. A table that is not there is told when it is needed."""
        for table in self.tables if self.every else ():
            with suppress(OSError, ValueError):
                table.opened().verify([], [])

    def at(self, turn: int) -> Self:
        return replace(self, turn=turn)

    def next(self) -> Self:
        """In the epoch behind."""
        return self.at(self.turn + 1)

    def chosen(self, samples: IndexArray) -> list[int]:
        """Where in these the ones are that are compared, in order."""
        if self.every <= 1:
            return list(range(len(samples))) if self.every else []
        limit = (_WORD + 1) // self.every
        spread = samples.astype(np.uint64) * np.uint64(_SPREAD) + np.uint64(_BEGIN + self.turn % self.every * limit)
        found: list[int] = np.flatnonzero((spread & np.uint64(_WORD)) < limit).tolist()
        return found


def chosen_between(chosen: list[int], start: int, stop: int) -> list[int]:
    """Those of a batch that begins and ends there."""
    return chosen[bisect_left(chosen, start) : bisect_left(chosen, stop)] if chosen else chosen
