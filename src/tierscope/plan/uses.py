"""Who of a node's ranks reads a file first and last in an epoch: they take it out of the page cache that ranks share, before and after.

Ranks go through their reads at about the same pace, so that the place of a read in its rank's order stands for its time; nobody has to talk.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tierscope.plan.plan import Block

FIRST, LAST = 1 << 31, 1 << 30  # of a file: this rank reads it before all others of its node; after them
COUNT = LAST - 1  # reads of this rank

FileUses = npt.NDArray[np.uint32]


def file_uses(reads_of: Callable[[int], Iterator[Block]], rank: int, sharing: Sequence[int], files: int) -> FileUses:
    """For every file how often this rank reads it, with FIRST and LAST; `reads_of`: a rank's reads, `sharing`: the ranks of its node."""
    never = np.iinfo(np.int64).max
    first, last = np.full(files, never, np.int64), np.full(files, -1, np.int64)
    uses = np.zeros(files, np.uint32)
    for number, other in enumerate(sharing):  # equal places: the same for all of them
        at = 0
        for block in reads_of(other):
            places = (at + np.arange(len(block.files), dtype=np.int64)) * len(sharing) + number
            np.minimum.at(first, block.files, places)
            np.maximum.at(last, block.files, places)
            if other == rank:
                np.add.at(uses, block.files, 1)
            at += len(block.files)
    mine, own = uses > 0, sharing.index(rank)
    uses[mine & (first % len(sharing) == own)] |= FIRST
    uses[mine & (last % len(sharing) == own)] |= LAST
    return uses
