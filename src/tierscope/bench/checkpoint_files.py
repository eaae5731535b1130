"""One rank's files of a checkpoint: written through the tier's access, each operation recorded, and made to count.

A rank writes its files and says what they are in a receipt. Whoever leads writes `checkpoint.json` instead, last of all, with the sizes of
all files beside its own checksums; then the folder gets its name. With fsync every file, and both directories, are synced on the way.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tierscope.dataset.checkpoint_folder import MANIFEST, CheckpointFolder, receipt_name
from tierscope.dataset.snapshot import Snapshot
from tierscope.output.disk_errors import CHECKPOINT, explained
from tierscope.plan.checkpoints import CheckpointFile, receipt_document
from tierscope.storage.access import Access
from tierscope.trace.live_totals import MOVED, LiveTotals, Moved
from tierscope.trace.ops import BACKGROUND_LANE, CHECKPOINT_LANE, CLOSE, OPEN, SYNC, WRITE
from tierscope.trace.recorder import Lane, LaneTable, OpSink, SilentLane, moved_by_tier

_now = time.monotonic_ns


class CheckpointNotes:
    """Operations on checkpoints, each in the lane of the epoch in which it ended; a thread may write while epochs change. `silent`: none are noted."""

    def __init__(
        self,
        tier: int,
        tiers: int,
        sink: OpSink | None,
        silent: bool = False,
        background: bool = False,
        live: LiveTotals | None = None,
    ) -> None:
        self._tier, self._tiers, self._sink, self._silent = tier, tiers, sink, silent
        self._number = BACKGROUND_LANE if background else CHECKPOINT_LANE
        self._lock = threading.Lock()
        self._lane = self._new(1)
        self._ended = np.zeros((tiers, MOVED), np.int64)  # of lanes of earlier epochs
        if live is not None and not silent:
            live.follow(self.moved, lasting=True)

    def _new(self, epoch: int) -> Lane:
        if self._silent:
            return SilentLane(self._number, self._tiers)
        return Lane(self._number, self._tiers, epoch, sink=self._sink)

    def turn(self, epoch: int) -> LaneTable:
        """What was noted until here; all that follows is the given epoch's."""
        with self._lock:
            table, self._lane = self._lane.finish(), self._new(epoch)
            self._ended += moved_by_tier(table.ops, table.nbytes)
        return table

    def moved(self) -> Moved | None:
        with self._lock:
            moved = self._lane.moved()
            return None if moved is None else self._ended + moved

    def take(self, kind: int, file: int, offset: int, operation: Callable[[], int | None]) -> int:
        """Do it, and note it. Files have negative numbers: none is one of the dataset."""
        start = _now()
        result = operation() or 0
        end = _now()
        with self._lock:
            self._lane.begin(start)
            self._lane.end(self._tier, kind, -1 - file, offset, result if kind == WRITE else 0, end)
        return result


def within_epoch(lane: LaneTable, others: Sequence[LaneTable], epoch_ns: int) -> LaneTable:
    """The lane with wall seconds that, with those of all other lanes of the rank, are no more than the epoch.

    Threads may read ahead while a rank stands still for a checkpoint, and their clock does not know of its operations: what both count of the same
    instants is taken off the checkpoint's, in proportion. Less than that, where the epoch has room for both, stays.
    """
    taken = sum(int(other.wall_ns.sum()) for other in others)
    mine, room = int(lane.wall_ns.sum()), max(0, epoch_ns - taken)
    if lane.lane == BACKGROUND_LANE or mine <= room:
        return lane
    return replace(lane, wall_ns=(lane.wall_ns * (room / mine)).astype(lane.wall_ns.dtype))


class CheckpointFiles:
    """Those that one rank writes; one thread at a time. `stopped`: asked before every write, whether to leave off."""

    def __init__(
        self,
        folder: CheckpointFolder,
        parts: tuple[CheckpointFile, ...],
        snapshot: Snapshot,
        access: Access,
        notes: CheckpointNotes,
    ) -> None:
        self._folder, self._parts, self._snapshot, self._access, self._notes = folder, parts, snapshot, access, notes

    def write(self, step: int, fsync: bool, stopped: Callable[[], bool]) -> None:
        with explained(self._folder.unfinished(step), CHECKPOINT, by_name=True):
            folder = self._folder.make(step)
            for part in self._parts:
                pieces = self._snapshot.pieces(step, part.number, part.nbytes)
                self._write_file(f"{folder}/{part.name}", part.number, pieces, fsync, stopped)

    def write_receipt(self, step: int, rank: int, fsync: bool) -> None:
        """Of a rank that does not lead."""
        receipt = receipt_document(step, self._parts, self.sums(step))
        self._write_document(self._folder.unfinished(step), receipt_name(rank), receipt, fsync)

    def commit(self, step: int, manifest: bytes, fsync: bool) -> None:
        """By whoever leads, when all files are there: it counts from now on, or not at all."""
        with explained(self._folder.unfinished(step), CHECKPOINT, by_name=True):
            folder = self._folder.make(step)
            self._write_document(folder, MANIFEST, manifest, fsync)
            if fsync:
                self._sync_folder(folder)
            self._folder.finish(step)
            if fsync:
                self._sync_folder(self._folder.path)

    def prune(self, keep: int) -> None:
        with explained(self._folder.path, CHECKPOINT, by_name=True):
            self._folder.prune(keep)

    def sums(self, step: int) -> dict[int, int]:
        """Checksums of this rank's files by their numbers."""
        return {part.number: self._snapshot.checksum(step, part.number, part.nbytes) for part in self._parts}

    def _write_document(self, folder: str, name: str, document: bytes, fsync: bool) -> None:
        with explained(folder, CHECKPOINT, by_name=True):
            self._write_file(f"{folder}/{name}", 0, iter((memoryview(document),)), fsync, lambda: False)

    def _write_file(
        self, path: str, number: int, pieces: Iterator[memoryview], fsync: bool, stopped: Callable[[], bool]
    ) -> None:
        access, take = self._access, self._notes.take
        fd, offset = take(OPEN, number, 0, partial(access.create, path)), 0
        try:
            for piece in pieces:
                done = 0
                while done < len(piece):
                    if stopped():
                        return
                    at = offset + done
                    done += take(WRITE, number, at, partial(access.pwrite, fd, piece[done:], at))
                offset += len(piece)
            if fsync:
                take(SYNC, number, 0, partial(access.sync, fd))
            closing, fd = fd, -1
            take(CLOSE, number, 0, partial(access.close, closing))
        finally:
            if fd >= 0:
                access.close(fd)

    def _sync_folder(self, path: str) -> None:
        fd = self._access.open_folder(path)
        try:
            self._notes.take(SYNC, 0, 0, partial(self._access.sync, fd))
        finally:
            self._access.close(fd)
