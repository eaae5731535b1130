"""The Plan: the resolved, deterministic schedule that a benchmark carries out and a simulation imitates."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tierscope.plan.order import BLOCK, Order
from tierscope.plan.permutation import IndexArray
from tierscope.plan.placement import Pinned
from tierscope.spec.study import Study


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive reads of one rank: sample s is number `inside` of `file`, and is read from `tier`.

    `fills`: what was read is copied to the nearest tier then; None: never.
    """

    samples: IndexArray
    files: IndexArray
    inside: IndexArray
    tiers: npt.NDArray[np.intp]
    fills: npt.NDArray[np.bool_] | None = None


class Reads(Protocol):
    def reads(self, rank: int, epoch: int) -> Iterator[Block]:
        """What a rank reads in an epoch (counted from 1), in order, in blocks of whole batches."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Pure functions of (study, rank, epoch); nothing in it grows with the number of samples."""

    order: Order
    placement: Pinned
    ranks_per_node: int
    batch_size: int
    epochs: int

    @classmethod
    def of(cls, study: Study, file_bytes: int, repetition: int = 1) -> "Plan":
        """`file_bytes` is the size of a file on disk, which the format knows; `repetition` is the run's."""
        order = Order.of(study, repetition)
        system = study.system
        near = system.tiers[:-1]
        files = study.workload.dataset.num_files_train
        rooms: list[int | None] = []
        for tier in near:
            if tier.capacity is None:
                rooms.append(None)
                continue
            fits = tier.capacity // max(1, file_bytes)
            share = _files_of_a_node(order, system.ranks_per_node) if tier.visible_to == "node" else files
            if share < files:  # a node's part of the cached files is random: leave room for its scatter
                fits = max(0, fits - round(5 * math.sqrt(fits)))
            rooms.append(files * min(fits, share) // share)
        placement = Pinned.at(files, study.seed, study.placement.cache_rate, rooms)
        reader, train = study.workload.reader, study.workload.train
        return cls(order, placement, system.ranks_per_node, reader.batch_size, train.epochs)

    @property
    def ranks(self) -> int:
        return self.order.ranks

    @property
    def steps(self) -> int:
        """Batches of a rank in an epoch; the last one may be smaller."""
        return -(-self.order.samples_per_rank // self.batch_size)

    def node_of(self, rank: int) -> int:
        return rank // self.ranks_per_node

    def reads(self, rank: int, epoch: int) -> Iterator[Block]:
        """What a rank reads in an epoch (counted from 1), in order, in blocks of whole batches."""
        waiting = np.empty(0, dtype=np.int64)
        for indices in self.order.indices(rank, epoch):
            waiting = np.concatenate([waiting, indices])
            whole = len(waiting) // self.batch_size * self.batch_size
            if whole:
                yield self._block(waiting[:whole])
                waiting = waiting[whole:]
        if len(waiting):
            yield self._block(waiting)

    def blocks_of(self, samples: IndexArray) -> Iterator[Block]:
        """Some samples in the order given, in blocks of whole batches."""
        size = max(1, BLOCK // self.batch_size) * self.batch_size
        for start in range(0, len(samples), size):
            yield self._block(samples[start : start + size])

    def _block(self, samples: IndexArray) -> Block:
        files, inside = np.divmod(samples, self.order.samples_per_file)
        return Block(samples, files, inside, self.placement.tiers_of(files))

    def files_on(self, tier: int, node: int | None, part: int = 0, parts: int = 1) -> Iterator[IndexArray]:
        """The files to be held on a tier, in blocks; `part` of `parts` equal parts of them, for sharing work.

        `node` is the node whose own copies these are (only files that its ranks may read), or None for a tier
        that all nodes share. The last tier holds every file.
        """
        home = tier == len(self.placement.bounds) - 1
        low, high = 0, self.placement.files
        if node is not None and not home:
            low, high = self.file_positions(node)
        for start in range(low + part, high, parts * BLOCK):
            positions = np.arange(start, min(start + parts * BLOCK, high), parts, dtype=np.int64)
            files = self.order.base_files(positions)
            kept = files if home else files[self.placement.tiers_of(files) == tier]
            if len(kept):
                yield kept

    def file_positions(self, node: int) -> tuple[int, int]:
        """The stretch of the files' base order that a node's ranks may read from."""
        first = node * self.ranks_per_node
        low, high = self.order.stretch(first, min(first + self.ranks_per_node, self.ranks) - 1)
        return low // self.order.samples_per_file, -(-high // self.order.samples_per_file)

    def files_held(self, tier: int, node: int | None) -> int:
        """How many files `files_on` gives in all."""
        bounds = self.placement.bounds
        if tier == len(bounds) - 1:
            return self.placement.files
        if node is None or self.order.group_ranks == self.ranks:
            return bounds[tier] - (bounds[tier - 1] if tier else 0)
        return sum(len(files) for files in self.files_on(tier, node))


def _files_of_a_node(order: Order, ranks_per_node: int) -> int:
    """The most files that one node's ranks may read."""
    group = max(order.group_ranks, ranks_per_node)
    samples = -(-order.samples * min(group, order.ranks) // order.ranks)
    return min(order.samples // order.samples_per_file, -(-samples // order.samples_per_file) + 1)
