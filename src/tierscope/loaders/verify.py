"""Which samples are compared with the checksums that were kept when they were staged (`reader.verify`), and the tables that hold these.

`all` compares every sample that is read. `sample` compares one read in 128: a checksum takes about as long as copying the bytes out of the page cache, so that
costs less than one part in a hundred of the fastest read there is. Which ones follows from the sample's number and from how many epochs
were read before, so that every run of a study compares the same ones; in 128 epochs each of them has its turn.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tierscope.plan.permutation import IndexArray
from tierscope.spec.study import VERIFY_ALL, VERIFY_OFF, VERIFY_SOME
from tierscope.storage.base import Storage
from tierscope.storage.sums import SampleSums, SumsLayout

EVERY = {VERIFY_OFF: 0, VERIFY_SOME: 128, VERIFY_ALL: 1}
_SPREAD = 0x9E3779B1  # neighbours are far apart
_BEGIN = 0x7F4A7C15
_WORD = (1 << 32) - 1


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

    def chosen(self, samples: Sequence[int]) -> list[int]:
        """Where in these the ones are that are compared."""
        if self.every <= 1:
            return list(range(len(samples))) if self.every else []
        limit = (_WORD + 1) // self.every
        begin = _BEGIN + self.turn * limit
        return [at for at, sample in enumerate(samples) if (sample * _SPREAD + begin) & _WORD < limit]

    def chosen_of_many(self, samples: IndexArray) -> list[int]:
        """The same, for thousands of them."""
        if self.every <= 1:
            return self.chosen(range(len(samples)))
        limit = (_WORD + 1) // self.every
        spread = samples.astype(np.uint64) * np.uint64(_SPREAD) + np.uint64(_BEGIN + self.turn % self.every * limit)
        found: list[int] = np.flatnonzero((spread & np.uint64(_WORD)) < limit).tolist()
        return found
