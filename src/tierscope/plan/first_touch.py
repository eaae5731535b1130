"""A plan whose reads are where the policy first-touch has left the files: what is read first is copied to the near tier and read from there later.

The decisions are those of `Caches`, as in a simulation: they depend on the order of reads only, never on who was faster. With one sample in a
file nobody reads a file twice in an epoch, so a copy is always complete before somebody wants it. A rank follows the cache that it
reads from: memory grows with what all ranks of that cache read in an epoch.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tierscope.plan.plan import Block, Plan
from tierscope.plan.policies import Cached, Caches
from tierscope.spec.study import Study


class FirstTouch:
    """The reads of a node's ranks. Epochs are best asked for in order."""

    def __init__(self, study: Study, plan: Plan, file_bytes: int, node: int) -> None:
        self._plan, self._home = plan, len(study.system.tiers) - 1
        self._caches = Caches(study, plan, file_bytes, node)
        self._latest: tuple[int, Cached] | None = None

    def reads(self, rank: int, epoch: int) -> Iterator[Block]:
        """As `Plan.reads`. What the cache holds is found out now, not when the first block is asked for."""
        if self._latest is None or self._latest[0] != epoch:
            self._latest = epoch, self._caches.epoch(epoch)
        return self._blocks(rank, epoch, self._latest[1])

    def _blocks(self, rank: int, epoch: int, cached: Cached) -> Iterator[Block]:
        row, start = rank - self._caches.first_rank, 0
        for block in self._plan.reads(rank, epoch):
            part = slice(start, start + len(block.samples))
            tiers = np.where(cached.hits[row, part], 0, self._home)
            yield replace(block, tiers=tiers, fills=cached.fills[row, part])
            start = part.stop
