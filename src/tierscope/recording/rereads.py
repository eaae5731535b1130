"""Are the epochs that the recorder saw in re-reads epochs at all? Decided when all is over, from what every rank read (native/rereads.py).

Sure is only what repeats itself: nearly every read of the first pass comes again in each later one, equally often, and the last pass
is as whole as the others. Where that does not hold, everything counts as one epoch, and the reason is named.
"""

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tierscope.native.lanes import NativeLane
from tierscope.native.rereads import (
    GAVE_UP_CLOCK,
    GAVE_UP_EPOCHS,
    GAVE_UP_LOCK,
    GENERATION,
    NO_PAGE,
    RereadPage,
    page_name,
    read_page,
)
from tierscope.native.state import MarkedEpoch, StateHead, read_chunks
from tierscope.trace.description import Doubt, Rereads
from tierscope.trace.ops import KINDS, READ

COVERED = 0.9  # of all that a rank ever read: so much is in a whole pass
TAIL = 0.05  # of a pass: what is read again at the very end, and begins no other one
REGULAR = 0.9  # of the reads come equally often in every pass
ODD = 0.05  # of the reads may come again in a single pass (headers, indexes)
IN_COMMON = 0.1  # of what ranks read in a single pass may be the same (indexes)
ALIKE = 0.9  # of the largest pass: so many reads, or bytes, has the smallest
LATE = 0.1  # of a pass: so late the beginning of the next may be noticed
LONGEST_RUN = 0.25  # of a pass: re-reads in a row inside of one
FEWEST_UNITS = 20  # different reads, below which nothing can be told
FEWEST_PER_THREAD = 4
WAIT = 8  # times as many reads as there are for each that is looked at: hardly ever longer until the next
MOST_KEYS = 1 << 20  # that are compared between ranks

_GAVE_UP: dict[int, Doubt] = {GAVE_UP_LOCK: "interrupted", GAVE_UP_EPOCHS: "too_many", GAVE_UP_CLOCK: "too_many"}


@dataclass(slots=True)
class RankReads:
    """A rank's page, and what its processes tell beside it. No page: one of them had none, or it is damaged."""

    page: RereadPage | None = None
    threads: int = 0
    mapped: bool = False
    scattered: bool = False  # over several hosts, each with a page of its own
    no_page: bool = False
    sums: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict)  # generation → reads and bytes


@dataclass(frozen=True, slots=True)
class Passes:
    """How often a rank read its data, or why that cannot be told; `late_reads`: until the next pass was noticed."""

    boundaries: tuple[int, ...] = ()
    doubt: Doubt | None = None
    late_reads: int = 0

    @property
    def count(self) -> int:
        return len(self.boundaries) + 1


def settle_epochs(
    folder: str, processes: Sequence[tuple[int, StateHead]]
) -> tuple[Rereads | None, dict[int, tuple[int, ...]]]:
    """What re-reads tell of these processes (rank, head), and with which generations the epochs of each rank begin.

    None: the program marked its epochs itself, and that counts. Looks through every process's chunks once more, in bounded memory.
    """
    names: dict[int, set[str]] = {}
    ranks: dict[int, RankReads] = {}
    for rank, head in processes:
        names.setdefault(rank, set()).add(page_name(head))
        if _look_through(head, ranks.setdefault(rank, RankReads())):
            return None, {}
    by_rank: dict[int, Passes] = {}
    for rank, reads in ranks.items():
        reads.scattered = len(names[rank]) > 1
        reads.page = read_page(os.path.join(folder, min(names[rank])))
        if reads.page is None or len(reads.page.keys):
            by_rank[rank] = passes_of(reads)
        reads.page = None  # one at a time
    pages = (page for rank in by_rank for page in _pages(folder, names[rank]))
    doubt = agreed(list(by_rank.values()), pages)
    if doubt or not by_rank:
        return Rereads(passes=1, doubt=doubt, late_reads=0), {}
    passes = next(iter(by_rank.values())).count
    late = max(passes_of_rank.late_reads for passes_of_rank in by_rank.values())
    return Rereads(passes=passes, doubt=None, late_reads=late), {
        rank: passes_of_rank.boundaries for rank, passes_of_rank in by_rank.items()
    }


def _look_through(head: StateHead, reads: RankReads) -> bool:
    """Adds what a process tells to that of its rank. Whether it marked an epoch."""
    lanes: Counter[int] = Counter()
    for chunk in read_chunks(head):
        match chunk:
            case NativeLane():
                lanes[chunk.epoch] += 1
                reads.no_page |= chunk.epoch == NO_PAGE
                cells = chunk.cells[READ :: len(KINDS)]
                both = np.array([cells["ops"].sum(), cells["bytes"].sum()], float)
                generation = max(0, chunk.epoch - GENERATION)
                reads.sums[generation] = reads.sums.get(generation, 0) + both
            case MarkedEpoch() if chunk.start_ns:
                return True
            case _:
                pass
    reads.threads += max(lanes.values(), default=0)
    reads.mapped |= head.mapped_ops > 0
    return False


def _pages(folder: str, names: Iterable[str]) -> Iterator[RereadPage]:
    return (page for name in names if (page := read_page(os.path.join(folder, name))))


def passes_of(rank: RankReads) -> Passes:
    """Of one rank, by itself."""
    page = rank.page
    if rank.scattered:
        return Passes(doubt="scattered")
    if rank.no_page or page is None:
        return Passes(doubt="no_page")
    if page.gave_up in _GAVE_UP:
        return Passes(doubt=_GAVE_UP[page.gave_up])
    boundaries = page.boundaries
    covered = page.covered
    if boundaries and page.clock - page.epoch_start < TAIL * len(page.keys):
        boundaries, covered = boundaries[:-1], len(page.keys)
    doubt = _doubt_of_several_passes(page, rank, boundaries, covered) if boundaries else _doubt_of_one_pass(page, rank)
    if doubt:
        return Passes(doubt=doubt)
    late = page.latest * (page.mask + 1) + WAIT * page.mask
    return Passes(boundaries, late_reads=late if boundaries else 0)


def _doubt_of_one_pass(page: RereadPage, rank: RankReads) -> Doubt | None:
    again = page.reads > 1
    few = len(again) < max(FEWEST_UNITS, FEWEST_PER_THREAD * rank.threads)
    if rank.mapped:
        return "mapped"
    if few and (again.any() or page.nearly):
        return "few"
    return None if _most(page, ~again, 1 - ODD) else "uneven"


def _doubt_of_several_passes(
    page: RereadPage, rank: RankReads, boundaries: tuple[int, ...], covered: int
) -> Doubt | None:
    units, count = len(page.keys), len(boundaries) + 1
    if units < FEWEST_UNITS:
        return "few"
    if not _most(page, page.reads % np.maximum(page.passes, 1) == 0, REGULAR):
        return "uneven"
    if covered < COVERED * units:
        return "partial"
    whole = np.minimum(page.passes, count).sum() >= COVERED * count * units
    prompt = page.longest_run <= LONGEST_RUN * units and page.latest <= LATE * page.clock / count
    return None if whole and prompt and _alike(rank, boundaries) else "uneven"


def _most(page: RereadPage, which: npt.NDArray[np.bool_], share: float) -> bool:
    """So many of the reads are such ones, by number or by bytes: headers may be many, and a checkpoint may be large."""
    return bool(which.mean() >= share or page.sizes[which].sum() >= share * page.sizes.sum())


def _alike(rank: RankReads, boundaries: tuple[int, ...]) -> bool:
    """All passes read about as often, or as much: one that only looks at headers is no epoch."""
    sums = np.zeros((len(boundaries) + 1, 2))
    for generation, both in rank.sums.items():
        sums[bisect_right(boundaries, generation)] += both
    return bool((sums.min(axis=0) >= ALIKE * sums.max(axis=0)).any())


def agreed(ranks: Sequence[Passes], pages: Iterable[RereadPage]) -> Doubt | None:
    """Why ranks that are each sure of their passes do not have them in common; None: they have. Pages are looked at one by one."""
    doubt = next((passes.doubt for passes in ranks if passes.doubt), None)
    if doubt or len({passes.count for passes in ranks}) > 1:
        return doubt or "ranks_differ"
    if len(ranks) > 1 and ranks[0].count == 1 and _share_in_common(pages) > IN_COMMON:
        return "exchanged"
    return None


def _share_in_common(pages: Iterable[RereadPage]) -> float:
    """Of what all ranks read: how much of it others had read too. Of few keys, if there are many."""
    keys: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
    mask = 0
    for page in pages:
        mask |= page.mask
        keys = np.concatenate((keys, page.keys))
        keys = keys[keys & np.uint64(mask) == 0]
        while len(keys) > MOST_KEYS:
            mask = mask << 1 | 1
            keys = keys[keys & np.uint64(mask) == 0]
    return 1 - len(np.unique(keys)) / len(keys) if len(keys) else 0.0
