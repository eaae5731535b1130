"""A file that all ranks used: Darshan keeps one record of it (rank −1), with sums over ranks, and of the slowest and the fastest rank their seconds and bytes.

METHOD: these two ranks get what is recorded of them, split over READ, META and WRITE as the record's own seconds are; the other ranks get equal parts of the
rest. Sums over ranks are the record's. Where the numbers contradict each other (the two have more than all, or less than the mean of the
others), sums win: the two are scaled, or all ranks get equal parts. Which rank did how many operations is not recorded: those that move bytes go with the bytes, others evenly.

Costs: arrays as long as there are ranks, and as there are records, whatever the product.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_ROUNDING = 1e-9  # of sums over ranks


@dataclass(frozen=True, slots=True)
class NamedRank:
    """The slowest or the fastest rank of every record; a rank that the job does not have: not known."""

    ranks: Ints
    seconds: Floats
    moved: Ints  # bytes, read and written


@dataclass(frozen=True, slots=True)
class SharedSums:
    """Records over all ranks: a row for each kind of operation, a column for each record."""

    seconds: Floats
    ops: Ints
    moved: Ints
    slowest: NamedRank
    fastest: NamedRank


@dataclass(frozen=True, slots=True)
class RankSums:
    """A row for each kind, a column for each rank."""

    seconds: Floats
    ops: Ints
    moved: Ints


@dataclass(frozen=True, slots=True)
class _Places:
    """Which ranks are named: `slowest` and `fastest` are places among the ranks, good where the masks say so; `others`: how many are not named."""

    slowest: Ints
    fastest: Ints
    knows_slowest: Bools
    knows_fastest: Bools  # and it is another one
    others: Ints

    @classmethod
    def of(cls, shared: SharedSums, processes: int) -> "_Places":
        slowest, fastest = shared.slowest.ranks, shared.fastest.ranks
        knows_slowest = (slowest >= 0) & (slowest < processes)
        knows_fastest = knows_slowest & (fastest >= 0) & (fastest < processes) & (fastest != slowest)
        return cls._known(slowest, fastest, knows_slowest, knows_fastest, processes)

    @classmethod
    def _known(
        cls, slowest: Ints, fastest: Ints, knows_slowest: Bools, knows_fastest: Bools, processes: int
    ) -> "_Places":
        others = processes - knows_slowest.astype(np.int64) - knows_fastest
        return cls(slowest, fastest, knows_slowest, knows_fastest, others)

    def without(self, records: Bools, processes: int) -> "_Places":
        """Of these records nobody is named."""
        known = self.knows_slowest & ~records, self.knows_fastest & ~records
        return self._known(self.slowest, self.fastest, *known, processes)

    def spread(
        self, per_rank: npt.NDArray[Any], slow: npt.NDArray[Any], fast: npt.NDArray[Any], processes: int
    ) -> npt.NDArray[Any]:
        """Sums of ranks: `per_rank` of a record to everybody, but `slow` and `fast` to the two that are named."""
        sums = np.full(processes, per_rank.sum(), per_rank.dtype)
        for ranks, own, known in ((self.slowest, slow, self.knows_slowest), (self.fastest, fast, self.knows_fastest)):
            np.add.at(sums, ranks[known], own[known] - per_rank[known])
        return sums


def split_over_ranks(shared: SharedSums, processes: int) -> RankSums:
    places = _Places.of(shared, processes)
    seconds, contradicts = _seconds(shared, places, processes)
    places = places.without(contradicts, processes)
    moved, ops = np.zeros((2, len(shared.ops), processes), np.int64)
    named = _named_bytes(shared, places)
    for kind, (of_kind, done) in enumerate(zip(shared.moved, shared.ops, strict=True)):
        slow, fast = named[0][kind], named[1][kind]
        moved[kind] = _whole_parts(of_kind, slow, fast, places, processes)
        slow_ops, fast_ops = (_in_proportion(done, part, of_kind, processes) for part in (slow, fast))
        ops[kind] = _whole_parts(done, slow_ops, fast_ops, places, processes)
    return RankSums(seconds, ops, moved)


def _seconds(shared: SharedSums, places: _Places, processes: int) -> tuple[Floats, Bools]:
    """And of which records the numbers contradict each other: nobody is named then."""
    whole = shared.seconds.sum(axis=0)
    equal = whole / processes
    slow = np.where(places.knows_slowest, shared.slowest.seconds, 0.0)
    fast = np.where(places.knows_fastest, shared.fastest.seconds, 0.0)
    named = slow + fast
    too_much = (named > whole) | (places.others == 0)
    factor = np.divide(whole, named, out=np.ones_like(whole), where=too_much & (named > 0))
    slow, fast = slow * factor, fast * factor
    per_rank = np.maximum(whole - slow - fast, 0.0) / np.maximum(places.others, 1)
    contradicts = np.maximum(per_rank, fast) > slow * (1 + _ROUNDING)
    equally = contradicts | (too_much & (named == 0))
    slow, fast, per_rank = (np.where(equally, equal, part) for part in (slow, fast, per_rank))
    shares = np.divide(shared.seconds, whole, out=np.zeros_like(shared.seconds), where=whole > 0)
    seconds = np.stack([places.spread(per_rank * share, slow * share, fast * share, processes) for share in shares])
    return np.maximum(seconds, 0.0), contradicts  # what rounding left below zero


def _named_bytes(shared: SharedSums, places: _Places) -> tuple[Ints, Ints]:
    """Bytes of the slowest and of the fastest rank by kind: as the record's own bytes are split, and never more than there are."""
    whole = shared.moved.sum(axis=0)
    slow = np.where(places.knows_slowest, np.clip(shared.slowest.moved, 0, whole), 0)
    fast = np.where(places.knows_fastest, np.clip(shared.fastest.moved, 0, whole), 0)
    too_much = slow + fast > whole
    scaled = np.floor(slow * (whole / np.maximum(slow + fast, 1))).astype(np.int64).clip(0, whole)
    slow, fast = np.where(too_much, scaled, slow), np.where(too_much, whole - scaled, fast)
    left, parts = shared.moved.copy(), []
    for wanted in (slow, fast):
        part, missing = np.zeros_like(left), wanted.copy()
        for kind, available in enumerate(left):
            behind = left[kind + 1 :].sum(axis=0)  # what later kinds can still give
            fair = np.floor(wanted * (shared.moved[kind] / np.maximum(whole, 1))).astype(np.int64)
            part[kind] = np.clip(fair, np.maximum(missing - behind, 0), np.minimum(missing, available))
            missing -= part[kind]
        left -= part
        parts.append(part)
    return parts[0], parts[1]


def _in_proportion(done: Ints, part: Ints, whole: Ints, processes: int) -> Ints:
    """Operations of a rank that moved a part of the bytes; an equal part of those that move none."""
    share = np.divide(part, whole, out=np.full(len(done), 1 / processes), where=whole > 0)
    return np.asarray(np.minimum(np.floor(done * share), done), np.int64)


def _whole_parts(whole: Ints, slow: Ints, fast: Ints, places: _Places, processes: int) -> Ints:
    """Whole numbers that add up: what does not divide goes to the first ranks, one each."""
    slow, fast = np.where(places.knows_slowest, slow, 0), np.where(places.knows_fastest, fast, 0)
    over = slow + fast > whole
    fast = np.where(over, whole - slow, fast)
    rest = whole - slow - fast
    per_rank = np.where(places.others > 0, rest // np.maximum(places.others, 1), 0)
    undivided = int((rest - per_rank * places.others).sum())
    parts: Ints = places.spread(per_rank, slow, fast, processes)
    parts += undivided // processes
    parts[: undivided % processes] += 1
    return parts
