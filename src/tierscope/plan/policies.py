"""Which reads find their file on the near tier, policy by policy, and which leave it there.

    first-touch   a cache takes what is read until it is full, then nothing more
    lru           a full cache gives up the file that was touched longest ago
    partition     a cache holds files of its own ranks' shares from the start (of highest priority first, where room lacks)
    clairvoyant   Belady's rule with bypass over the whole training: kept is what is read soonest again. Room that it leaves free is
                  for files fetched ahead, in the order in which they will be read

There is a cache per node where the near tier is visible to a node, and one for all where it is global. Its unit is a file. Assumed:
ranks read in step (all their first samples, then all their second ones); a file is there for the next reader as soon as
the read that fills it is done; fetching ahead restarts with each epoch. All caches begin empty, but for partition.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Plan
from tierscope.spec.study import STAGED_POLICIES, Study

MOST_HELD = 100_000_000  # files in all caches together, and reads that a clairvoyant one foresees; about 1 GB

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cached:
    """Of an epoch, by (rank, sample)."""

    hits: Flags  # the file is on the near tier
    fills: Flags  # the file stays there; where it was not fetched, it is copied behind the reader's back
    fetched: Flags  # it is fetched ahead to the near tier, and read from there, unless the reader is there first
    window: IndexArray  # by rank: files fetched ahead at most


@lru_cache(maxsize=4)
def files_of(order: Order, epoch: int) -> IndexArray:
    """By (rank, sample)."""
    return order.whole_epoch(epoch) // order.samples_per_file


def room_of(study: Study, file_bytes: int) -> int:
    """Files that one cache holds."""
    room = round(study.placement.cache_rate * study.workload.dataset.num_files_train)
    capacity = study.system.tiers[0].capacity
    return room if capacity is None else min(room, capacity // max(1, file_bytes))


def nodes_per_cache(study: Study) -> int:
    return 1 if study.system.tiers[0].visible_to == "node" else study.system.nodes


def own_files(plan: Plan, first_node: int, nodes: int, room: int, step: int = 1) -> IndexArray:
    """What a partition's cache of these nodes holds; `step`: one file of so many."""
    low, _ = plan.file_positions(first_node)
    _, high = plan.file_positions(first_node + nodes - 1)
    files = plan.order.base_files(np.arange(low, high, step, dtype=np.int64))
    return files[np.argsort(plan.placement.priorities(files), kind="stable")[:room]]


class Caches:
    """The caches of a study, epoch after epoch. They remember what they hold, and go back to the beginning when asked for an earlier epoch."""

    def __init__(self, study: Study, plan: Plan, file_bytes: int, node: int | None = None) -> None:
        """`node`: only the cache that this node reads from; rows are then of the ranks that share it, from `first_rank` on."""
        self._plan, self._policy, self._for_one_node = plan, study.placement.policy, node is not None
        self._room = room_of(study, file_bytes)
        self._files = study.workload.dataset.num_files_train
        self._nodes_per_cache = nodes_per_cache(study)
        self._ranks_per_cache = self._nodes_per_cache * study.system.ranks_per_node
        self._first = (node or 0) // self._nodes_per_cache
        self._count = 1 if self._for_one_node else study.system.nodes // self._nodes_per_cache
        self._epochs = study.workload.train.epochs
        self._foreseen: list[Cached] = []
        self._partition: IndexArray | None = None
        self._forget()
        epoch_reads = plan.order.samples_per_rank * self._ranks_per_cache * self._count
        reads = epoch_reads * self._epochs
        most = reads if self._policy == "clairvoyant" else min(reads, self._room * self._count)
        if self._for_one_node:  # nobody else asks whether the epoch itself can be laid out
            most = max(most, epoch_reads)
        if self._policy not in STAGED_POLICIES and most > MOST_HELD:
            raise UserError(
                f"placement.policy = {self._policy}: would have to track caches of {most:,} files, at most {MOST_HELD:,} are supported; "
                "lower train.epochs or num_files_train, or set pinned"
            )

    @property
    def first_rank(self) -> int:
        return self._first * self._ranks_per_cache

    def _forget(self) -> None:
        self._done = 0
        self._held = np.zeros((self._count, 0), np.int32 if self._files < 2**31 else np.int64)
        self._counts = np.zeros(self._count, np.int64)

    def epoch(self, number: int) -> Cached:
        """Counted from 1."""
        if self._policy == "partition":
            return self._own(self._files_of(number))
        if self._policy == "clairvoyant":
            self._foreseen = self._foreseen or self._foresee(max(number, self._epochs))
            return self._foreseen[number - 1]
        if number <= self._done:
            self._forget()
        while self._done < number:
            self._done += 1
            cached = self._read_through(self._files_of(self._done))
        return cached

    def _files_of(self, epoch: int) -> IndexArray:
        order = self._plan.order
        if not self._for_one_node:
            return files_of(order, epoch)
        ranks = range(self.first_rank, self.first_rank + self._ranks_per_cache)
        return np.stack([np.concatenate([*order.indices(rank, epoch)]) for rank in ranks]) // order.samples_per_file

    def _own(self, files: IndexArray) -> Cached:
        if self._partition is None:
            parts = [
                own_files(self._plan, (self._first + cache) * self._nodes_per_cache, self._nodes_per_cache, self._room)
                + cache * self._files
                for cache in range(self._count)
            ]
            self._partition = np.sort(np.concatenate(parts))
        cache = np.arange(len(files))[:, None] // self._ranks_per_cache
        return _plain(np.isin(files + cache * self._files, self._partition))

    def _read_through(self, files: IndexArray) -> Cached:
        from tierscope.plan.caches import read_through  # noqa: PLC0415  (imports numba, which is slow)

        evicts = self._policy == "lru"
        hits, fills, self._held, self._counts = read_through(
            self._in_turn(files), self._held, self._counts, self._room, evicts, self._files
        )
        return _plain(self._by_rank(hits), self._by_rank(fills))

    def _foresee(self, epochs: int) -> list[Cached]:
        from tierscope.plan.caches import foresee  # noqa: PLC0415

        reads = np.concatenate([self._in_turn(self._files_of(epoch)) for epoch in range(1, epochs + 1)], axis=1)
        hits, fills, peaks = foresee(reads, self._room, epochs, self._files)
        per_epoch = reads.shape[1] // epochs
        cached: list[Cached] = []
        for epoch in range(epochs):
            at = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
            here, kept = self._by_rank(hits[:, at]), self._by_rank(fills[:, at])
            window = np.repeat((self._room - peaks[:, epoch]) // self._ranks_per_cache, self._ranks_per_cache)
            fetched = ~here & (window > 0)[:, None]
            cached.append(Cached(here, kept, fetched, window))
        return cached

    def _in_turn(self, files: IndexArray) -> IndexArray:
        """By (cache, read), as the ranks of a cache take turns."""
        samples = files.shape[1]
        turned = files.reshape(self._count, self._ranks_per_cache, samples).transpose(0, 2, 1)
        return turned.reshape(self._count, -1).astype(self._held.dtype)

    def _by_rank(self, flags: Flags) -> Flags:
        turned = flags.reshape(self._count, -1, self._ranks_per_cache).transpose(0, 2, 1)
        return np.ascontiguousarray(turned).reshape(self._count * self._ranks_per_cache, -1)


def _plain(hits: Flags, fills: Flags | None = None) -> Cached:
    """Nothing is fetched ahead."""
    nothing = np.zeros(hits.shape, np.bool_)
    return Cached(hits, nothing if fills is None else fills, nothing, np.zeros(len(hits), np.int64))
