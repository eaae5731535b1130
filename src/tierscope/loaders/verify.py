"""Which samples are compared with the checksums that were kept when they were staged (`reader.verify`), and the tables that hold these.

`all` compares every sample that is read. `sample` compares one read in N. Beside the fastest read there is (a file in the page cache, through C) a comparison out of
the blue takes long: 70 µs, since nothing of it is in the processor's cache, and the bytes once more. N is the power of two that keeps this
below one part in a hundred: 2048 for 4 KiB, 512 for 128 KiB, 128 from 1 MiB on. It follows from the size of samples alone, and which ones are compared
from their numbers and from how many epochs were read before: every run of a study compares the same ones, and in N epochs each has its turn.
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

_COMPARE_SECONDS, _COMPARE_RATE = 70e-6, 7.5e9  # of one comparison, and bytes a second
_READ_SECONDS, _READ_RATE = 4e-6, 5e9  # of the fastest read of a file
_SHARE, _LEAST = 0.01, 128
_SPREAD = 0x9E3779B1  # neighbours are far apart
_START = 0x7F4A7C15
_WORD = (1 << 32) - 1


def read_in(mode: str, record_bytes: int) -> int:
    """One read in so many is compared; 0: none."""
    if mode == VERIFY_OFF:
        return 0
    if mode == VERIFY_ALL:
        return 1
    comparing = _COMPARE_SECONDS + record_bytes / _COMPARE_RATE
    reading = _READ_SECONDS + record_bytes / _READ_RATE
    return max(_LEAST, 1 << (round(comparing / (_SHARE * reading)) - 1).bit_length())


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

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


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

    def close(self) -> None:
        """When nobody compares any more; who does it again opens the tables again."""
        for table in self.tables:
            table.close()

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
        spread = samples.astype(np.uint64) * np.uint64(_SPREAD) + np.uint64(_START + self.turn % self.every * limit)
        places: list[int] = np.flatnonzero((spread & np.uint64(_WORD)) < limit).tolist()
        return places


def chosen_between(chosen: list[int], start: int, stop: int) -> list[int]:
    """Those of a batch that begins and ends there."""
    return chosen[bisect_left(chosen, start) : bisect_left(chosen, stop)] if chosen else chosen
