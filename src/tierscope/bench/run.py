"""The rank's loop: for each epoch make its files cold, wait for the others, read every batch, compute, and take notes."""

import hashlib
import time
from dataclasses import dataclass

import numpy as np

from tierscope.bench.compute import make_compute
from tierscope.bench.group import Group
from tierscope.bench.loading import make_loader, make_source
from tierscope.data import cold
from tierscope.data.stage import make_format
from tierscope.errors import TierscopeError
from tierscope.plan.plan import Plan
from tierscope.spec.study import Study
from tierscope.tiers.emulated import sharpen_sleep
from tierscope.trace.rank_trace import RankEpoch, RankTrace, Residency, StepTimes
from tierscope.trace.recorder import OpSink

_now = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run: a study at one point of its sweep, all its epochs."""

    study: Study
    out: str
    board: str | None  # path of the emulated tiers' shared queues
    compute_mode: str
    host_parts: tuple[tuple[int, int], ...]  # by rank: its number among the ranks of its host, and how many they are
    ops_folder: str | None  # where ranks write their full lists of operations


def ops_path(folder: str, rank: int) -> str:
    return f"{folder}/rank-{rank}.ops"


def run_rank(task: RunTask, group: Group) -> RankTrace:
    node = group.rank // task.study.system.ranks_per_node
    try:
        return _Rank(task, group, node).run()
    except TierscopeError as error:
        raise error.prefixed(f"rank {group.rank} (node {node})") from None


class _Rank:
    def __init__(self, task: RunTask, group: Group, node: int) -> None:
        study = task.study
        self._task, self._group, self._node, self._study = task, group, node, study
        self._format = make_format(study)
        self._plan = Plan.of(study, self._format.file_bytes)
        self._source = make_source(study, task.out, node, task.board, self._format)
        self._compute = make_compute(task.compute_mode)
        self._sink = OpSink(ops_path(task.ops_folder, group.rank)) if task.ops_folder else None
        sharpen_sleep()

    def run(self) -> RankTrace:
        try:
            epochs = tuple(self._epoch(epoch) for epoch in range(1, self._plan.epochs + 1))
        finally:
            if self._sink:
                self._sink.close()
        return RankTrace(self._group.rank, self._node, epochs)

    def _epoch(self, epoch: int) -> RankEpoch:
        residency = self._make_cold()
        seconds_per_step = self._study.workload.train.computation_time
        loader = make_loader(self._study, self._source, epoch, self._sink)
        steps, digest = StepTimes(), hashlib.blake2b(digest_size=16)
        samples = payload_bytes = stall_ns = decode_ns = compute_ns = 0
        self._group.barrier()
        start = asked = _now()
        for batch in loader.batches(self._plan.reads(self._group.rank, epoch)):
            got = _now()
            samples += len(batch.samples)
            payload_bytes += sum(payload.nbytes for payload in batch.payloads)
            digest.update(np.array(batch.samples, dtype="<i8").tobytes())
            decode_ns += batch.decode_ns
            stall_ns += got - asked
            computed = _now()
            if seconds_per_step:
                self._compute(seconds_per_step)
                compute_ns += _now() - computed
            asked_next = _now()
            steps.add(batch.read_ns / 1e9, (got - asked) / 1e9, (asked_next - computed) / 1e9)
            self._group.progress(len(batch.samples))
            asked = _now()
        seconds = (_now() - start) / 1e9
        lanes, late_ops, late_ns = loader.finish()
        return RankEpoch(
            epoch=epoch,
            seconds=seconds,
            samples=samples,
            payload_bytes=payload_bytes,
            stall_seconds=stall_ns / 1e9,
            compute_seconds=compute_ns / 1e9,
            decode_seconds=decode_ns / 1e9,
            late_ops=late_ops,
            late_seconds=late_ns / 1e9,
            order_digest=digest.hexdigest(),
            steps=steps.finish(),
            steps_per_entry=steps.steps_per_entry,
            lanes=tuple(lanes),
            residency=residency,
        )

    def _make_cold(self) -> tuple[Residency, ...]:
        """Evict what will be read, together with the other ranks of the host; then see what is still there.

        Emulated tiers are left warm: there the queues make the time, and the disk underneath should not.
        """
        self._group.barrier()  # nobody still reads
        parts: list[tuple[int, int | None, int, int]] = []
        for index, tier in enumerate(self._study.system.tiers):
            if tier.visible_to == "node":
                per_node = self._study.system.ranks_per_node
                parts.append((index, self._node, self._group.rank % per_node, per_node))
            else:
                parts.append((index, None, *self._task.host_parts[self._group.rank]))
        found = []
        for index, node, part, of in parts:
            if not self._study.system.tiers[index].emulate:
                cold.evict(cold.paths_to_evict(self._plan, index, node, self._source.files[index], part, of))
        self._group.barrier()
        for index, node, part, of in parts:
            paths = cold.paths_to_evict(self._plan, index, node, self._source.files[index], part, of)
            found.append(Residency(self._source.tier_names[index], *cold.resident(paths)))
        return tuple(found)
