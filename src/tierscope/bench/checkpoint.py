"""Checkpoints of a run, seen from one rank: when one is due, who waits for whom, and what it takes.

Synchronous: the rank writes while training stands still. With several writers all meet when their files are there, the leader (of the tier, or of
each node where the tier is a node's) makes the checkpoint count, all meet again, and older ones go. Ranks that write nothing do not wait.

In the background: a thread writes, training goes on; the next checkpoint and the end of the run wait for it. A single writer's thread
makes it count too; with several writers that happens at the wait, because only there they can meet. No copy of the model is made: nothing changes it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tierscope.bench.checkpoint_files import CheckpointFiles, CheckpointNotes
from tierscope.bench.group import Group
from tierscope.bench.recovery import read_back
from tierscope.dataset.checkpoint_folder import MANIFEST, CheckpointFolder, receipt_name
from tierscope.dataset.snapshot import Snapshot
from tierscope.plan.checkpoints import (
    checkpoint_bytes,
    is_due,
    is_due_after,
    leads,
    manifest_document,
    meets,
    parts_of,
    ranks_together,
    tier_of,
)
from tierscope.spec.study import Study
from tierscope.storage.access import Punctuality
from tierscope.storage.base import Storage
from tierscope.trace.live_totals import LiveTotals
from tierscope.trace.rank_trace import CheckpointLog, Tally
from tierscope.trace.recorder import LaneTable, OpSink

_now = time.monotonic_ns


class Checkpointer:
    """`silent`: somebody else records the operations."""

    def __init__(
        self,
        study: Study,
        node: int,
        storage: Storage,
        transfer_bytes: int,
        group: Group,
        sink: OpSink | None,
        silent: bool = False,
        live: LiveTotals | None = None,
    ) -> None:
        """`storage`: of the tier that checkpoints go to."""
        self._wanted, self._group, self._storage = study.workload.checkpoint, group, storage
        self._study, self._together = study, ranks_together(study, node)
        index, ranks = tier_of(study), study.system.ranks
        self._folder = CheckpointFolder(storage)
        self._parts = parts_of(self._wanted, group.rank, ranks)
        self._meets = meets(study)
        self._clears = group.rank == self._together[0]
        self._leads = leads(study, group.rank)
        self._notes = CheckpointNotes(index, len(study.system.tiers), sink, silent, self._wanted.background, live)
        self._access = storage.open_access()
        self._snapshot = Snapshot(study.seed, transfer_bytes)
        self._files = CheckpointFiles(self._folder, self._parts, self._snapshot, self._access, self._notes)
        self._before = self._step = 0  # steps of earlier epochs; of all
        self._complete: list[int] = []
        self._seconds: list[float] = []
        self._under_way: _Writing | None = None
        self._last = 0  # the step of the newest one
        self._held_up = False  # in this epoch

    def begin(self) -> None:
        """Before the first epoch, which begins with a barrier."""
        if self._clears:
            of = self._study.system.ranks
            keep = self._wanted.keep
            self._folder.begin((keep + 1) * checkpoint_bytes(self._wanted, self._together, of), keep)

    def after_step(self, done: int) -> None:
        """So many steps of the epoch are done."""
        self._step = self._before + done
        if is_due(self._wanted, self._step):
            self._save()

    def after_epoch(self, tally: Tally, epoch: int, last: bool) -> Tally:
        """With what belongs to the epoch's end; after the last one nothing is under way any more."""
        start = _now()
        if is_due_after(self._wanted, epoch) and self._last != self._step:
            self._save()
        if last:
            self._settle()
        self._before = self._step
        spent = (_now() - start) / 1e9
        held_up, self._held_up = self._held_up, False
        if not held_up:
            return replace(tally, checkpoint_seconds=0.0)  # looking whether one is due is none
        return replace(tally, seconds=tally.seconds + spent, checkpoint_seconds=tally.checkpoint_seconds + spent)

    def turn(self, epoch: int) -> tuple[LaneTable, Punctuality]:
        """What was recorded until here; what follows is of the given epoch."""
        punctuality, self._access.punctuality = self._access.punctuality, Punctuality()
        return self._notes.turn(epoch), punctuality

    def _save(self) -> None:
        self._settle()
        self._last = step = self._step
        if not self._parts and not self._meets:
            return
        self._held_up = True
        start = _now()
        if self._wanted.background:
            self._under_way = _Writing(step, self._write_alone)
            return
        self._write(step)
        self._commit(step)
        self._seconds.append((_now() - start) / 1e9)

    def _settle(self) -> None:
        """Wait for the one that is under way."""
        writing, self._under_way = self._under_way, None
        if writing is None:
            return
        self._held_up = True
        self._seconds.append(writing.wait())
        if self._meets:
            self._commit(writing.step)

    def _write_alone(self, step: int, stopped: Callable[[], bool]) -> None:
        """What a thread does."""
        self._write(step, stopped)
        if not self._meets and not stopped():
            self._commit(step)

    def _write(self, step: int, stopped: Callable[[], bool] = lambda: False) -> None:
        self._files.write(step, self._wanted.fsync, stopped)
        if not self._leads and not stopped():
            self._files.write_receipt(step, self._group.rank, self._wanted.fsync)

    def _commit(self, step: int) -> None:
        """Nothing that counts is removed before the new one counts on all nodes."""
        if self._meets:
            self._group.meet()
        if self._leads:
            sums = self._files.sums(step)
            manifest = manifest_document(self._study, self._together, step, self._parts, sums)
            self._files.commit(step, manifest, self._wanted.fsync)
        if self._meets:
            self._group.meet()
        self._complete.append(step)
        if self._leads:
            self._files.prune(self._wanted.keep)

    def finish(self) -> CheckpointLog:
        """After the last epoch; by all ranks."""
        nbytes = sum(part.nbytes for part in self._parts)
        log = CheckpointLog(tuple(self._seconds), nbytes, len(self._complete))
        return self._recover(log) if self._wanted.verify and self._last else log

    def _recover(self, log: CheckpointLog) -> CheckpointLog:
        folder = self._folder.finished(self._last)
        cools = not self._storage.abilities.emulated and bool(self._study.workload.reader.evict)
        if cools and self._parts:
            self._storage.sync(folder)  # pages that are not on the device yet cannot be evicted
        self._group.barrier()
        if not self._parts:
            return log
        kept_in = MANIFEST if self._leads else receipt_name(self._group.rank)
        done = read_back(self._storage, folder, self._parts, kept_in, self._access, self._snapshot.piece_bytes, cools)
        return replace(
            log, recovery_seconds=done.seconds, verified_bytes=done.nbytes, resident_bytes=done.resident_bytes
        )

    def close(self) -> None:
        """However the run ended."""
        if self._under_way:
            self._under_way.stop()
        self._access.leave()


class _Writing:
    """A checkpoint that a thread writes."""

    def __init__(self, step: int, write: Callable[[int, Callable[[], bool]], None]) -> None:
        self.step, self._write = step, write
        self._error: BaseException | None = None
        self._seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"checkpoint-{step}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        start = _now()
        try:
            self._write(self.step, self._stop.is_set)
        except BaseException as error:  # noqa: BLE001  (whoever waits for it raises it)
            self._error = error
        self._seconds = (_now() - start) / 1e9

    def wait(self) -> float:
        """The seconds that it took."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._seconds

    def stop(self) -> None:
        """Between two writes: what it wrote will never count."""
        self._stop.set()
        self._thread.join()
