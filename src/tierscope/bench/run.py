"""The rank's loop: for each epoch wait for the others, read every batch from files that are made cold, compute, and take notes."""

import time
from dataclasses import dataclass, fields, replace
from typing import Any

from tierscope.bench.checkpoint import Checkpointer
from tierscope.bench.checkpoint_files import within_epoch
from tierscope.bench.coldness import Coldness
from tierscope.bench.compute import make_compute, step_seconds
from tierscope.bench.group import Group
from tierscope.bench.live import BETWEEN, SAVING, LiveBoardAt, Pulse, publishing
from tierscope.bench.loading import in_memory, make_loader, make_source, node_storages
from tierscope.bench.mpi_files import together
from tierscope.bench.profiled import PRELOADED, Watched, frames_of
from tierscope.bench.pull import pull
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.statistics_file import StatisticsReader
from tierscope.bench.work import EmulatedWork, MakeTraining, RankPlace, TrainingSession, Work
from tierscope.dataset.copies import Copies
from tierscope.dataset.memory import check_memory
from tierscope.errors import TierscopeError
from tierscope.loaders import LOADERS, SampleSource
from tierscope.loaders.ahead import AheadLoader, SamplesInMemory
from tierscope.loaders.base import EpochLoader
from tierscope.loaders.choose import fills_as_it_reads
from tierscope.loaders.held import HeldLoader
from tierscope.loaders.nothing import NoReads
from tierscope.plan.checkpoints import tier_of
from tierscope.plan.first_touch import FirstTouch
from tierscope.plan.plan import Reads
from tierscope.plan.side_reads import SideReads
from tierscope.spec.study import Study
from tierscope.storage.emulated import sharpen_sleep
from tierscope.trace.kernel_io import counted_since, kernel_io
from tierscope.trace.live_totals import LiveTotals
from tierscope.trace.rank_trace import Phases, RankEpoch, RankTrace, without_overlap
from tierscope.trace.recorder import OpSink, Recording


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run: a study at one point of its sweep, all its epochs."""

    study: Study
    loader: str  # as `choose_loader` has it for all ranks
    out: str
    board: str | None  # path of the emulated tiers' shared queues
    compute_mode: str
    ops_folder: str | None  # where ranks write their full lists of operations
    watched: Watched | None = None  # by another profiler: then we record no operation
    repetition: int = 1
    ranks_on_host: int = 0  # 0: all of them
    meeting: str | None = None  # where ranks that train together find one another
    train: MakeTraining | None = None  # who trains the study's network; needed where it has one
    live: LiveBoardAt | None = None  # where ranks say how far they are; None: nobody follows


def ops_path(folder: str, rank: int) -> str:
    return f"{folder}/rank-{rank}.ops"


def run_rank(task: RunTask, group: Group) -> RankTrace:
    node = group.rank // task.study.system.ranks_per_node
    try:
        rank = _Rank(task, group, node)
        with publishing(task.live, group.rank, rank.pulse, rank.totals):
            return rank.run()
    except TierscopeError as error:
        raise error.prefixed(f"rank {group.rank} (node {node})") from None


class _Rank:
    def __init__(self, task: RunTask, group: Group, node: int) -> None:
        study = task.study
        self._task, self._group, self._node, self._study = task, group, node, study
        self._run = ResolvedRun.of(study, task.loader, task.repetition)
        self._format, self._plan = self._run.format, self._run.plan
        self._silent = task.watched is not None
        self.pulse = Pulse()
        self.totals = LiveTotals(len(study.system.tiers)) if task.live else None
        seen = task.watched is not None and task.watched.profiler != PRELOADED
        self._storages = node_storages(self._run, task.out, node, task.board, group.rank)
        self._source = make_source(self._run, self._storages, task.out, node, task.board, seen)
        self._together = together(study, group.rank) if study.workload.reader.file_access == "collective" else ()
        if self._together:
            self._source = replace(self._source, together=self._together)
        self._reads: Reads = self._plan
        self._side = SideReads.of(study)
        self._copies: Copies | None = None
        if fills_as_it_reads(study):
            self._reads = FirstTouch(study, self._plan, self._format.file_bytes, node)
            self._copies = Copies(self._storages[0], self._source.files[0])
        self._coldness = Coldness(self._run, self._storages, self._source.tier_names, group)
        self._compute = make_compute(task.compute_mode)
        self._training = self._make_training() if study.workload.model.network else None
        if self._training and self._training.pin:
            self._source = replace(self._source, pin=self._training.pin)
        self._held: SamplesInMemory | None = None
        self._lasting: EpochLoader | None = None  # a loader that reads all epochs
        self._sink = OpSink(ops_path(task.ops_folder, group.rank)) if task.ops_folder else None
        self._frames = frames_of(task.watched, self._plan.epochs)
        self._checkpoints: Checkpointer | None = None
        if study.workload.checkpoint.wanted:
            storage, transfer = self._storages[tier_of(study)], self._source.transfer_bytes
            self._checkpoints = Checkpointer(
                study, node, storage, transfer, group, self._sink, self._silent, self.totals
            )
        sharpen_sleep()

    def _make_training(self) -> TrainingSession:
        group, task = self._group, self._task
        assert task.train is not None, "a study with a network needs somebody who trains it"
        on_host = task.ranks_on_host or group.size
        place = RankPlace(group.rank, group.size, group.rank % on_host, on_host, task.meeting)
        return task.train(self._study, place)

    def run(self) -> RankTrace:
        if self._copies and self._leads_near_tier():
            self._copies.begin()  # epochs begin with a barrier
        checkpoints, training = self._checkpoints, self._training
        if training:
            training.begin()
        try:
            if checkpoints:
                checkpoints.begin()
            epochs = tuple(self._epoch(epoch) for epoch in range(1, self._plan.epochs + 1))
            log = checkpoints.finish() if checkpoints else None
        finally:
            if checkpoints:
                checkpoints.close()
            if self._sink:
                self._sink.close()
        for ranks in self._together:
            ranks.leave()
        done = training.finish() if training else None
        return RankTrace(self._group.rank, self._node, epochs, self._run.loader, log, done)

    def _epoch(self, epoch: int) -> RankEpoch:
        self.pulse.begin(epoch)
        cold = self._make_cold(epoch)
        recording = Recording(len(self._source.files), epoch, self._sink, silent=self._silent, live=self.totals)
        loader = self._loader(recording, cold)
        side = self._side_reader(recording, cold)
        blocks = self._reads.reads(self._group.rank, epoch)
        self._frames.begin(epoch)
        self._group.barrier()
        began, start = time.time_ns(), time.monotonic_ns()
        train = self._study.workload.train
        checkpoints = self._checkpoints
        after = checkpoints.after_step if checkpoints else None
        before = None if self._silent else kernel_io()
        batches = loader.batches(blocks)
        if side:
            batches = side.before(batches)
        settle = self._training.settle if self._training else None
        tally = pull(batches, self._work(epoch), self._group, train.sync == "step", after, self.pulse, settle)
        self.pulse.doing = SAVING if checkpoints else BETWEEN
        if checkpoints:
            tally = checkpoints.after_epoch(tally, epoch, last=epoch == self._plan.epochs)
        span = began, began + time.monotonic_ns() - start  # the calendar may be set meanwhile
        self.pulse.doing = BETWEEN
        self._frames.end()
        lanes, punctuality = loader.finish()
        if self.totals:
            self.totals.end_epoch()
        kernel = counted_since(before)
        if side:
            lane, more = side.finish()
            lanes.append(lane)
            punctuality.add(more)
            if cold and side.cold:
                cold.reads.add(side.cold.tallies)
        if cold:
            cold.look_afterwards(self._source, self._reads, epoch)
        if checkpoints:
            lane, more = checkpoints.turn(epoch + 1)
            lanes.append(within_epoch(lane, lanes, round(tally.seconds * 1e9)))
            punctuality.add(more)
        phases = self._training.turn() if self._training else Phases()
        tally = without_overlap(tally, phases.overlapped_seconds)
        return RankEpoch(
            **{field.name: getattr(tally, field.name) for field in fields(tally)},
            epoch=epoch,
            limited_ops=punctuality.limited_ops,
            late_ops=punctuality.late_ops,
            late_seconds=punctuality.late_ns / 1e9,
            lanes=tuple(lanes),
            residency=cold.seen() if cold else (),
            span_ns=span,
            phases=phases,
            kernel=kernel,
        )

    def _side_reader(self, recording: Recording, cold: Coldness | None) -> StatisticsReader | None:
        rank = self._group.rank
        if self._side is None or not self._side.count(rank, recording.epoch):
            return None
        return StatisticsReader(self._side, self._source, recording, rank, cold.of_statistics() if cold else None)

    def _work(self, epoch: int) -> Work:
        if self._training:
            return self._training
        train = self._study.workload.train
        return EmulatedWork(self._compute, step_seconds(train, self._study.seed, self._group.rank, epoch))

    def _loader(self, recording: Recording, cold: Coldness | None) -> EpochLoader:
        if self._lasting is not None:
            return self._lasting
        source = replace(self._source, cold=cold.reads) if cold else self._source
        if source.checks:  # other samples in every epoch
            turn = (self._task.repetition - 1) * self._plan.epochs + recording.epoch - 1
            source = replace(source, checks=source.checks.at(turn))
        if self._study.workload.model.data == "synthetic":
            return NoReads(self._study.workload.reader.batch_size)
        if not LOADERS.load(self._run.loader).records:
            self._lasting = self._framework_loader(source, recording)
            return self._lasting
        if not in_memory(self._study):
            return make_loader(self._run, source, recording)
        samples, largest = self._plan.order.reachable(self._group.rank), self._format.slot_bytes
        first = self._held is None
        if self._held is None:
            self._check_memory(len(samples))
            self._held = SamplesInMemory(samples, largest, source.pin)
        loader = make_loader(self._run, source, recording) if first else None
        batch = self._study.workload.reader.batch_size
        return AheadLoader(self._held, batch, loader, self._plan.blocks_of(samples))

    def _framework_loader(self, source: SampleSource, recording: Recording) -> EpochLoader:
        """Of all epochs. From memory too it is the framework's loader that makes batches: its own cost is what such a run shows."""
        source = replace(source, feeds_network=self._training is not None)
        if not in_memory(self._study):
            return make_loader(self._run, source, recording)
        samples = self._plan.order.reachable(self._group.rank)
        self._check_memory(len(samples))
        loader: Any = make_loader(self._run, replace(source, held=samples), recording)
        return HeldLoader(loader, self._plan.blocks_of(samples))

    def _check_memory(self, samples: int) -> None:
        ranks = self._task.ranks_on_host or self._group.size
        check_memory(samples * self._format.slot_bytes * ranks, self._study.workload)

    def _make_cold(self, epoch: int) -> Coldness | None:
        """Before an epoch in which files are evicted as they are read; None: they are not, or nothing is read.

        Copies that ranks made in the epoch before are synced: pages that are not on the device yet cannot be evicted.
        """
        if not self._study.workload.reader.evict or self._study.workload.model.data == "synthetic":
            return None
        self._group.barrier()  # nobody still reads
        if in_memory(self._study) and epoch > 1:
            return None  # and nobody will
        cold = self._coldness
        if self._copies and epoch > 1 and cold.tiers[0].looks:
            if self._first_of_node:
                self._copies.sync()
            self._group.barrier()
        cold.drop_metadata()
        cold.begin(self._reads, epoch)
        return cold

    @property
    def _first_of_node(self) -> bool:
        return self._group.rank % self._study.system.ranks_per_node == 0

    def _leads_near_tier(self) -> bool:
        """Whether this rank is the one of those who share the near tier's copies that makes room for them."""
        return self._first_of_node if self._study.system.tiers[0].visible_to == "node" else self._group.rank == 0
