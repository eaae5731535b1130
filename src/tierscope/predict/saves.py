"""What the ranks of a study do for one checkpoint, as arrays of operations: who writes what where, what makes it count, what copies it on.

The same as ranks do (bench/checkpoint.py): every file is made, written piece by piece and synced; a rank that does not lead writes a receipt; ranks meet, whoever
leads writes down what there is, they meet again. Of a checkpoint with very many pieces neighbouring ones are simulated as one operation, which
takes as long as they do one after another.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tierscope.plan.checkpoints import (
    LARGEST_PIECE,
    CheckpointFile,
    is_due_after,
    leads,
    manifest_document,
    meets,
    parts_of,
    ranks_together,
    receipt_document,
    tier_of,
)
from tierscope.plan.stations import Stations, TierQueues, stripes
from tierscope.predict.engine.inputs import MEET, NONE, OPEN, READ, SYNC, WRITE, Left, SaveInputs
from tierscope.predict.outcome import FloatArray, UnderWay
from tierscope.spec.study import Study

IntArray = npt.NDArray[np.int64]
MOST_OPERATIONS = 50_000  # of a checkpoint; more pieces than that are simulated together
MOST_IN_EPOCH = 1_000_000
_MANIFEST_FILE = zlib.crc32(b"checkpoint.json")  # a name without a number: any server


@dataclass(frozen=True, slots=True)
class SavePlan:
    """One checkpoint of a study. Operations of a rank are those of SaveInputs; `splits` and `row_ops` are by row."""

    tier: int
    background: bool
    every: int
    first: IntArray
    commit: IntArray
    end: IntArray
    drained: IntArray
    kinds: IntArray
    tiers: IntArray
    files: IntArray
    rows: IntArray
    turns: FloatArray
    nbytes: IntArray
    splits: FloatArray  # bytes by (tier, row, stripe)
    row_ops: FloatArray  # by (tier, row): operations that each server counts
    documents: npt.NDArray[np.bool_]  # by rank: it writes one that says the step

    @property
    def ranks(self) -> IntArray:
        """Of every operation."""
        return np.repeat(np.arange(len(self.first)), self.drained - self.first)

    @property
    def taking_part(self) -> npt.NDArray[np.bool_]:
        """By rank: it does something for a checkpoint."""
        return self.first < self.end


@dataclass(frozen=True, slots=True)
class EpochSaves:
    """When an epoch's checkpoints are: after which of all steps."""

    before: int  # steps of earlier epochs
    steps: tuple[int, ...]
    at_end: bool
    last: bool
    batches: int  # of each rank in the epoch


def when(study: Study, epoch: int, batches: int) -> EpochSaves:
    """`batches`: of each rank in an epoch."""
    wanted, before = study.workload.checkpoint, (epoch - 1) * batches
    every, done = wanted.steps_between_checkpoints, epoch * batches
    steps = tuple(range(before // every * every + every, done + 1, every)) if every else ()
    at_end = is_due_after(wanted, epoch) and done not in steps
    dates = (*steps, done) if at_end else steps
    return EpochSaves(before, dates, at_end, epoch == study.workload.train.epochs, batches)


def save_plan(study: Study, stations: Stations, saves_in_epoch: int) -> SavePlan | None:
    """None: the study saves nothing."""
    wanted, ranks = study.workload.checkpoint, study.system.ranks
    if not wanted.wanted:
        return None
    files = [parts_of(wanted, rank, ranks) for rank in range(ranks)]
    piece = min(study.workload.reader.transfer_size, LARGEST_PIECE)
    pieces = sum(-(-part.nbytes // piece) for parts in files for part in parts) * (3 if wanted.drain else 1)
    most = max(1, min(MOST_OPERATIONS, MOST_IN_EPOCH // max(1, saves_in_epoch)))
    operations = _Operations(stations.tiers, piece, max(1, -(-pieces // most)))
    marks = np.array([_add_rank(operations, study, rank, parts) for rank, parts in enumerate(files)])
    documents = np.array([bool(parts) or meets(study) for parts in files])
    return operations.plan(tier_of(study), wanted.background, wanted.steps_between_checkpoints, marks, documents)


def _add_rank(
    operations: "_Operations", study: Study, rank: int, parts: Sequence[CheckpointFile]
) -> tuple[int, int, int, int]:
    """All operations of a rank: where they begin, where those that make it count and those that copy it on do, and where they end."""
    wanted, tier, together, leading = study.workload.checkpoint, tier_of(study), meets(study), leads(study, rank)
    first = operations.count
    sums = dict.fromkeys((part.number for part in parts), 0)
    for part in parts:
        operations.file(tier, part.number, part.nbytes, wanted.fsync)
    if together and not leading:
        operations.file(tier, rank, len(receipt_document(1, parts, sums)), wanted.fsync)
    commit = operations.count
    if together:
        operations.add(MEET, tier)
    if leading and (parts or together):
        folder = ranks_together(study, rank // study.system.ranks_per_node)
        operations.file(tier, _MANIFEST_FILE, len(manifest_document(study, folder, 1, parts, sums)), wanted.fsync)
        for _ in range(2 if wanted.fsync else 0):  # the folder, and the one around it
            operations.add(SYNC, tier)
    if together:
        operations.add(MEET, tier)
    end = operations.count
    for part in parts if wanted.drain else ():
        operations.copy(tier, len(operations.queues) - 1, part.number, part.nbytes)
    return first, commit if together or not wanted.background else end, end, operations.count


@dataclass(slots=True)
class _Operations:
    """Operations as they are added, and the rows of data that they move."""

    queues: tuple[TierQueues, ...]
    piece: int
    lump: int  # pieces that are simulated together
    columns: list[list[float]] = field(default_factory=lambda: [[] for _ in range(6)])
    rows: dict[tuple[int, float, tuple[int, ...]], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.columns[0])

    def add(self, kind: int, tier: int, file: int = 0, row: int = NONE, turns: float = 1.0, nbytes: int = 0) -> None:
        for column, value in zip(self.columns, (kind, tier, file, row, turns, nbytes), strict=True):
            column.append(value)

    def file(self, tier: int, file: int, nbytes: int, fsync: bool) -> None:
        self.add(OPEN, tier, file)
        for row, turns, size in self._pieces(tier, nbytes):
            self.add(WRITE, tier, file, row, turns, size)
        if fsync:
            self.add(SYNC, tier)

    def copy(self, near: int, far: int, file: int, nbytes: int) -> None:
        """Piece by piece from one tier to another."""
        self.add(OPEN, near, file)
        self.add(OPEN, far, file)
        for source, target in zip(self._pieces(near, nbytes), self._pieces(far, nbytes), strict=True):
            self.add(READ, near, file, *source)
            self.add(WRITE, far, file, *target)

    def _pieces(self, tier: int, nbytes: int) -> Iterator[tuple[int, float, int]]:
        """Row, turns and bytes of each operation on a file."""
        queues, step = self.queues[tier], self.piece * self.lump
        for offset in range(0, nbytes, step):
            size = min(step, nbytes - offset)
            turns = float(-(-size // self.piece))
            split = tuple(stripes(offset, size, queues.stripe_count, queues.stripe_size))
            yield self.rows.setdefault((tier, turns, split), len(self.rows)), turns, size

    def plan(
        self, tier: int, background: bool, every: int, marks: IntArray, documents: npt.NDArray[np.bool_]
    ) -> SavePlan:
        widest = max(queue.stripe_count for queue in self.queues)
        splits = np.zeros((len(self.queues), len(self.rows), widest))
        row_ops = np.zeros((len(self.queues), len(self.rows)))
        for (at, turns, split), row in self.rows.items():
            splits[at, row, : len(split)] = split
            row_ops[at, row] = self._server_ops(self.queues[at], turns)
        whole = [np.array(column, np.int64) for column in self.columns]
        kinds, tiers, files, rows, _, nbytes = whole
        turns_of = np.array(self.columns[4], np.float64)
        first, commit, end, drained = (np.ascontiguousarray(mark, np.int64) for mark in marks.T)
        return SavePlan(tier, background, every, first, commit, end, drained, kinds, tiers, files, rows, turns_of, nbytes, splits, row_ops, documents)  # fmt: skip

    def _server_ops(self, queues: TierQueues, turns: float) -> float:
        """Of so many pieces one after another, those that each server has a part of."""
        if turns == 1 or queues.stripe_count == 1:
            return turns
        touched = min(queues.stripe_count, math.ceil(self.piece / queues.stripe_size))
        return turns * touched / queues.stripe_count


def save_inputs(plan: SavePlan | None, epoch: EpochSaves | None, first_row: int, before: UnderWay | None) -> SaveInputs:
    """For the engine; `first_row`: of those that are behind the rows of reads."""
    if plan is None or epoch is None:
        nothing, no_times = np.zeros(0, np.int64), np.zeros(0)
        left = Left(nothing, nothing, np.zeros(0, np.bool_), no_times)
        return SaveInputs(*(nothing,) * 8, no_times, nothing, 0, 0, 0, False, False, False, left)
    ranks = len(plan.first)
    under_way = before or UnderWay.nothing(ranks)
    return SaveInputs(
        first=plan.first,
        commit=plan.commit,
        end=plan.end,
        drained=plan.drained,
        kinds=plan.kinds,
        tiers=plan.tiers,
        files=plan.files,
        rows=plan.rows + first_row,
        turns=plan.turns,
        nbytes=plan.nbytes,
        every=plan.every,
        before=epoch.before,
        most=len(epoch.steps),
        at_end=epoch.at_end,
        last=epoch.last,
        background=plan.background,
        left=Left(under_way.resumes, under_way.resumes_drain, under_way.unsettled, under_way.since),
    )


def more_digits(plan: SavePlan, epoch: EpochSaves) -> IntArray:
    """By rank: bytes that documents of these steps have beyond those of step 1."""
    more = sum(len(str(step)) - 1 for step in epoch.steps)
    return np.where(plan.documents, more, 0).astype(np.int64)
