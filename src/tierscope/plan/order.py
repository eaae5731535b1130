"""In which order each rank reads the samples of an epoch.

One scheme covers all shuffles. The files are laid out in a fixed random *base order*; ranks form groups,
and each group owns one stretch of it, which it permutes anew each epoch and deals out to its ranks:

    global   one group of all ranks: everybody may read everything
    chunked  a group per `shuffle_nodes` nodes: a node must reach a chunk that is larger than its share
    local    a group per rank: a rank keeps its share for ever and only reorders it
    off      as global, in file order, without any permutation

How a stretch is walked (`file_shuffle`, `sample_shuffle`):

    files and samples   samples are permuted over the whole stretch, and dealt out in turn
    files only          files are permuted; a rank reads a run of them, each from beginning to end
    samples only        files in order, in each of them its samples permuted; a rank reads a run of files
    neither             a rank reads its run of samples in order
    offset              batches lie one behind the other; of every so many batches as there are ranks, each rank draws one: its
                        offsets grow, by random jumps

With `file_access: multi` whole files are permuted and dealt out, samples inside their file. Where files do not divide over the ranks, or are fewer, a
rank's run begins and ends inside a file, and its neighbours read the rest of that.

With `rank_reads: all` nothing is dealt: every rank walks through the whole dataset, in a permutation of its own; without a shuffle from
where its share would begin, and round.

A stretch may begin and end inside a file: what lies there before the first and behind the last whole file keeps its place.

Every rank reads samples ÷ ranks samples, rounded down. The few that are left over are the tail of each group's
order of that epoch: other samples each time, unless the order is off.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierscope.plan.permutation import IndexArray, Permutation, Permutations, derive_key
from tierscope.spec.study import Reader, Study

BLOCK = 4096
_SAMPLES, _FILES, _OFFSETS = "samples", "files", "offsets"


@dataclass(frozen=True, slots=True)
class Order:
    samples: int
    samples_per_file: int
    ranks: int
    group_ranks: int
    seed: int
    shuffled: bool  # whether the base order of files is a random one
    walk: str = _SAMPLES  # what is permuted as a whole
    files_shuffled: bool = True  # of a walk over files
    inside_shuffled: bool = True  # of a walk over files
    batch: int = 1  # of a walk over offsets
    most: int | None = None  # samples of a rank in an epoch
    salt: int = 0  # another order from the same seed
    changes: bool = True  # from epoch to epoch
    replicated: bool = False  # every rank reads everything
    staggered: bool = True  # replicated and not shuffled: each begins at its own share

    @classmethod
    def of(cls, study: Study, repetition: int = 1) -> "Order":
        """`repetition`: of the run; only shuffles that are `random` look at it."""
        reader, system, train = study.workload.reader, study.system, study.workload.train
        group_ranks = {
            "global": system.ranks,
            "off": system.ranks,
            "chunked": min(system.ranks, reader.shuffle_nodes * system.ranks_per_node),
            "local": 1,
        }[reader.shuffle]
        dataset, steps = study.workload.dataset, train.total_training_steps
        random = "random" in (reader.file_shuffle, reader.sample_shuffle)
        return cls(
            samples=dataset.samples,
            samples_per_file=dataset.num_samples_per_file,
            ranks=system.ranks,
            group_ranks=group_ranks,
            seed=study.seed,
            shuffled=reader.shuffle != "off" and reader.file_shuffle != "off" and reader.sample_shuffle != "offset",
            walk=_walk(reader),
            files_shuffled="off" not in (reader.shuffle, reader.file_shuffle),
            inside_shuffled="off" not in (reader.shuffle, reader.sample_shuffle),
            batch=reader.batch_size,
            most=None if steps is None else steps * reader.batch_size,
            salt=repetition if random else 0,
            changes=train.seed_change_epoch,
            replicated=reader.rank_reads == "all",
        )

    @property
    def samples_per_rank(self) -> int:
        even = self.samples if self.replicated else self.samples // self.ranks
        return even if self.most is None else min(even, self.most)

    @property
    def is_consecutive(self) -> bool:
        """Whether a rank reads samples of a file one behind the other, at least those of a batch; one that reads everything does so but once, at the end."""
        if self.walk == _SAMPLES:
            return not self.shuffled and (self.group_ranks == 1 or self.replicated)
        return self.walk == _OFFSETS or not self.inside_shuffled

    @property
    def undivided(self) -> int:
        """Samples that nobody reads in an epoch, because they do not divide over the ranks; none where steps end before them."""
        if self.replicated or (self.most is not None and self.most <= self.samples // self.ranks):
            return 0
        return self.samples % self.ranks

    @property
    def trimmed(self) -> int:
        """Samples that nobody reads in an epoch, because they do not divide over the ranks, or steps end before them."""
        return max(0, self.samples - self.samples_per_rank * self.ranks)

    def stretch(self, first_rank: int, last_rank: int) -> tuple[int, int]:
        """The positions of the base order that the groups of these ranks may read."""
        first = first_rank - first_rank % self.group_ranks
        end = min(self.ranks, last_rank - last_rank % self.group_ranks + self.group_ranks)
        return first * self.samples // self.ranks, end * self.samples // self.ranks

    def indices(self, rank: int, epoch: int) -> Iterator[IndexArray]:
        """The samples that a rank reads in an epoch, in order, in blocks."""
        low, high = self.stretch(rank, rank)
        first = rank if self.replicated else rank - rank % self.group_ranks
        members = 1 if self.replicated else min(self.group_ranks, self.ranks - first)
        way = _Walk(self, epoch, first, members, low, high - low)
        ahead = self.ahead(rank)
        for start in range(0, self.samples_per_rank, BLOCK):
            turns = np.arange(start, min(start + BLOCK, self.samples_per_rank), dtype=np.int64)
            turns = (turns + ahead) % self.samples if self.replicated else turns
            yield self.base(low + way.positions(turns, rank - first))

    def ahead(self, rank: IndexArray | int) -> Any:
        """Of ranks that read everything in order: where each begins."""
        apart = self.replicated and self.staggered and not self.shuffled
        return rank * self.samples // self.ranks if apart else 0

    def reachable(self, rank: int) -> IndexArray:
        """All samples that a rank may ever read, sorted."""
        low, high = self.stretch(rank, rank)
        return np.sort(self.base(np.arange(low, high, dtype=np.int64)))

    def whole_epoch(self, epoch: int) -> IndexArray:
        """What `indices` gives, of all ranks at once: a row for each."""
        per_rank = self.samples_per_rank
        samples = np.empty((self.ranks, per_rank), np.int64)
        if self.walk != _SAMPLES or self.replicated:
            for rank in range(self.ranks):
                for number, block in enumerate(self.indices(rank, epoch)):
                    samples[rank, number * BLOCK : number * BLOCK + len(block)] = block
            return samples
        for first in range(0, self.ranks, self.group_ranks):
            members = min(self.group_ranks, self.ranks - first)
            low, high = self.stretch(first, first)
            way = _Walk(self, epoch, first, members, low, high - low)
            dealt = way.permuted(np.arange(per_rank * members, dtype=np.int64))
            samples[first : first + members] = self.base(low + dealt).reshape(per_rank, members).T
        return samples

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


def _walk(reader: Reader) -> str:
    if reader.sample_shuffle == "offset":
        return _OFFSETS
    apart = reader.shuffle != "off" and "off" in (reader.file_shuffle, reader.sample_shuffle)
    return _FILES if apart or reader.file_access == "multi" else _SAMPLES


class _Walk:
    """One group's way through its stretch of `length` samples in an epoch, which begins at `low` of the base order."""

    def __init__(self, order: Order, epoch: int, first: int, members: int, low: int, length: int) -> None:
        self._order, self._members = order, members
        turn = epoch if order.changes else 1
        self._key: tuple[int | str, ...]
        self._key = (order.seed, "epoch", turn, first, *([order.salt] if order.salt else []))
        self._head = min(length, -low % order.samples_per_file)  # of a file that begins before the stretch
        self._whole_files = (length - self._head) // order.samples_per_file
        shuffled, count = order.shuffled, length
        if order.walk == _FILES:
            shuffled, count = order.files_shuffled, self._whole_files
        self._shuffle = Permutation(count, derive_key(*self._key)) if shuffled and count else None

    def positions(self, turns: IndexArray, member: int) -> IndexArray:
        """Where in the stretch a member of the group reads, at these of its turns."""
        order = self._order
        if order.walk == _SAMPLES:
            return self.permuted(turns * self._members + member)
        if order.walk == _OFFSETS:
            return self._jumps(turns, member)
        # Runs are dealt before an epoch is cut short: they are those of whole epochs.
        return self._by_file(turns + member * (order.samples // order.ranks))

    def permuted(self, positions: IndexArray) -> IndexArray:
        return self._shuffle(positions) if self._shuffle else positions

    def _by_file(self, positions: IndexArray) -> IndexArray:
        per_file, permuted = self._order.samples_per_file, positions.copy()
        files, inside = np.divmod(positions - self._head, per_file)
        whole = (files >= 0) & (files < self._whole_files)
        files, inside = files[whole], inside[whole]
        if self._order.inside_shuffled:
            inside = Permutations(per_file, derive_key(*self._key, "inside"))(files, inside)
        permuted[whole] = self._head + self.permuted(files) * per_file + inside
        return permuted

    def _jumps(self, turns: IndexArray, member: int) -> IndexArray:
        batch, members = self._order.batch, self._members
        rounds, inside = np.divmod(turns, batch)
        drawn = Permutations(members, derive_key(*self._key, "offset"))(rounds, np.full_like(rounds, member))
        whole_rounds, rest = divmod(self._order.samples_per_rank, batch)
        sizes = np.where(rounds < whole_rounds, batch, rest)
        jumps: IndexArray = rounds * (members * batch) + drawn * sizes + inside
        return jumps
