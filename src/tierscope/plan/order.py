"""In which order each rank reads the samples of an epoch.

One scheme covers all shuffles. The files are laid out in a fixed random *base order*; ranks form groups,
and each group owns one stretch of it, which it permutes anew each epoch and deals out to its ranks in turn:

    global   one group of all ranks: everybody may read everything
    chunked  a group per `shuffle_nodes` nodes: a node must reach a chunk that is larger than its share
    local    a group per rank: a rank keeps its share for ever and only reorders it
    off      as global, in file order, without any permutation

Every rank reads samples ÷ ranks samples, rounded down. The few that are left over are the tail of each group's
order of that epoch: other samples each time, unless the order is off.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tierscope.plan.permutation import IndexArray, Permutation, derive_key
from tierscope.spec.study import Study

BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Order:
    samples: int
    samples_per_file: int
    ranks: int
    group_ranks: int
    seed: int
    shuffled: bool

    @classmethod
    def of(cls, study: Study) -> "Order":
        reader, system = study.workload.reader, study.system
        group_ranks = {
            "global": system.ranks,
            "off": system.ranks,
            "chunked": min(system.ranks, reader.shuffle_nodes * system.ranks_per_node),
            "local": 1,
        }[reader.shuffle]
        dataset = study.workload.dataset
        return cls(
            samples=dataset.samples,
            samples_per_file=dataset.num_samples_per_file,
            ranks=system.ranks,
            group_ranks=group_ranks,
            seed=study.seed,
            shuffled=reader.shuffle != "off",
        )

    @property
    def samples_per_rank(self) -> int:
        return self.samples // self.ranks

    @property
    def trimmed(self) -> int:
        """Samples that nobody reads in an epoch, because they do not divide over the ranks."""
        return self.samples - self.samples_per_rank * self.ranks

    def stretch(self, first_rank: int, last_rank: int) -> tuple[int, int]:
        """The positions of the base order that the groups of these ranks may read."""
        first = first_rank - first_rank % self.group_ranks
        end = min(self.ranks, last_rank - last_rank % self.group_ranks + self.group_ranks)
        return first * self.samples // self.ranks, end * self.samples // self.ranks

    def indices(self, rank: int, epoch: int) -> Iterator[IndexArray]:
        """The samples that a rank reads in an epoch, in order, in blocks."""
        low, high = self.stretch(rank, rank)
        first = rank - rank % self.group_ranks
        members = min(self.group_ranks, self.ranks - first)
        shuffle = Permutation(high - low, derive_key(self.seed, "epoch", epoch, first)) if self.shuffled else None
        for start in range(0, self.samples_per_rank, BLOCK):
            turns = np.arange(start, min(start + BLOCK, self.samples_per_rank), dtype=np.int64)
            positions = turns * members + (rank - first)
            yield self.base(low + (shuffle(positions) if shuffle else positions))

    def whole_epoch(self, epoch: int) -> IndexArray:
        """What `indices` gives, of all ranks at once: a row for each."""
        per_rank = self.samples_per_rank
        found = np.empty((self.ranks, per_rank), np.int64)
        for first in range(0, self.ranks, self.group_ranks):
            members = min(self.group_ranks, self.ranks - first)
            low, high = self.stretch(first, first)
            positions = np.arange(per_rank * members, dtype=np.int64)
            if self.shuffled:
                positions = Permutation(high - low, derive_key(self.seed, "epoch", epoch, first))(positions)
            found[first : first + members] = self.base(low + positions).reshape(per_rank, members).T
        return found

    def base(self, positions: IndexArray) -> IndexArray:
        """Samples at positions of the base order: whole files, in a fixed random order of files."""
        if not self.shuffled:
            return positions
        files, inside = np.divmod(positions, self.samples_per_file)
        return self.base_files(files) * self.samples_per_file + inside

    def base_files(self, positions: IndexArray) -> IndexArray:
        if not self.shuffled:
            return positions
        return Permutation(self.samples // self.samples_per_file, derive_key(self.seed, "base"))(positions)
