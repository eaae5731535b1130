"""One run after another on a crew, each to a trace."""

import itertools
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import polars as pl
from msgspec import structs

from tierscope.bench.compute import compute_mode
from tierscope.bench.live import LiveBoardAt
from tierscope.bench.liveness import until_undisturbed
from tierscope.bench.overhead import Overhead, described
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask, ops_path
from tierscope.bench.tasks import OverheadTask
from tierscope.formats import NOTHING
from tierscope.loaders.choose import choose_loader, fills_as_it_reads
from tierscope.loaders.verify import read_in
from tierscope.measure.crews import Crews, crowding
from tierscope.measure.described import about_run
from tierscope.measure.first_touch import hit_rates
from tierscope.measure.live import Tracker
from tierscope.measure.preloaded import Preloading, needs_preload
from tierscope.measure.profiled import Profiling
from tierscope.measure.storages import devices_of, filesystems
from tierscope.measure.trained import meeting
from tierscope.output.op_list import collect_ops
from tierscope.output.result import clear_scratch, make_scratch
from tierscope.plan.reading import mean_read_bytes
from tierscope.spec.study import Point, Study
from tierscope.storage.background import Background, loads_of
from tierscope.storage.emulated import Board
from tierscope.trace.description import Measured, OwnCost
from tierscope.trace.provenance import provenance
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, Trace, gather
from tierscope.train.start import start_training
from tierscope.watch import Watch


def _others(run: ResolvedRun, board: Board | None) -> AbstractContextManager[object]:
    """Those who use emulated servers beside us."""
    study = run.study
    if board is None:
        return nullcontext()
    usual = study.workload.reader.transfer_size if run.format.reading == NOTHING else mean_read_bytes(study)
    return Background(board.path, loads_of(run.stations, usual), study.seed)


def _compared(run: ResolvedRun) -> str:
    """How many samples are compared with their checksums."""
    workload = run.study.workload
    every = read_in(workload.reader.verify, workload.dataset.record_length_bytes)
    if run.format.reading == NOTHING or not every:
        return ""
    return f"; verified: {f'one sample in {every}' if every > 1 else 'every sample'}"


class _Revocable:
    """Progress that an attempt made can be taken back."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._advanced = watch, 0
        self.phase, self.note = watch.phase, watch.note

    def advance(self, amount: int) -> None:
        self._advanced += amount
        self._watch.advance(amount)

    def begin(self) -> None:
        self._advanced = 0

    def take_back(self) -> None:
        self.advance(-self._advanced)


class Runner:
    """One run after another on the crew, each to a trace."""

    def __init__(
        self,
        out: str,
        crews: Crews,
        watch: Watch,
        ops: bool,
        profiling: Profiling | None,
        tracker: Tracker | None = None,
    ) -> None:
        self._out, self._crews, self._ops, self._profiling, self._tracker = out, crews, ops, profiling, tracker
        self._watch = _Revocable(watch)
        self._overheads: dict[Any, Overhead] = {}

    def run(self, key: RunKey, point: Point) -> Trace:
        """Attempts during which somebody was suspended are thrown away."""
        what = f"point {key.point}, repetition {key.repetition}"
        attempts = itertools.count(1)
        return until_undisturbed(what, lambda: self._followed(key, point, next(attempts)), self._discard)

    def _followed(self, key: RunKey, point: Point, attempt: int) -> Trace:
        """An attempt that can be seen while it goes on, if anybody wants to."""
        if self._tracker is None:
            return self._attempt(key, point, None)
        counted = self._profiling is None and not needs_preload(point.study)
        with self._tracker.following(key, point, attempt, counted) as board:
            return self._attempt(key, point, board)

    def _discard(self, line: str) -> None:
        """All that an attempt left: it did not happen."""
        clear_scratch(self._out)
        self._watch.take_back()
        self._watch.note(line)

    def _attempt(self, key: RunKey, point: Point, live: LiveBoardAt | None) -> Trace:
        self._watch.begin()
        study = point.study
        crew, who = self._crews.of(study)
        trained = study.workload.model.network is not None
        mode = compute_mode(*crowding(who)) if study.workload.train.computation_time else "real" if trained else "none"
        run = ResolvedRun.of(study, choose_loader(study, seen=self._profiling is not None))
        if self._profiling:
            return self._run_profiled(key, point, run, mode, self._profiling, live)
        if needs_preload(study):
            return self._run_profiled(key, point, run, mode, Preloading(self._out, crowding(who)[0]), live)
        board = Board(run.stations.count) if any(view for view in run.stations.views) else None
        scratch = self._scratch(key) if self._ops else None
        overhead = self._overhead(run)
        task = RunTask(
            study,
            run.loader,
            self._out,
            board.path if board else None,
            mode,
            scratch,
            repetition=key.repetition,
            ranks_on_host=crowding(who)[0],
            train=start_training if trained else None,
            live=live,
        )
        try:
            with meeting(study, self._out) as place, _others(run, board):
                task = replace(task, meeting=place)
                ranks: list[RankTrace] = crew.call(task, self._watch.advance)
        finally:
            if board:
                board.close()
        if scratch:
            self._collect_ops(key, study, scratch)
        about = self._about(point, mode, ranks, OwnCost(**described(overhead)))
        if fills_as_it_reads(study):
            about = structs.replace(about, policy=study.placement.policy, hit_rate=hit_rates(ranks))
        return gather(key, about, [tier.name for tier in study.system.tiers], ranks)

    def _run_profiled(
        self,
        key: RunKey,
        point: Point,
        run: ResolvedRun,
        mode: str,
        profiling: Profiling | Preloading,
        live: LiveBoardAt | None,
    ) -> Trace:
        """What a profiler costs, and what our harness does beside it, nobody measured: there is no own cost."""
        measured = profiling.measure(key, run, mode, self._crews, self._watch, live)
        about = structs.replace(
            self._about(point, mode, measured.ranks),
            provides=measured.provides,
            profiler=measured.profiler,
            recorder=measured.recorder,
            logs=measured.logs,
            coverage=measured.coverage,
        )
        trace = gather(key, about, [tier.name for tier in point.study.system.tiers], measured.ranks)
        return replace(trace, table=pl.concat([trace.table, measured.io]))

    def _overhead(self, run: ResolvedRun) -> Overhead:
        study = run.study
        key = (study.workload.reader, study.workload.dataset, run.loader)
        if key not in self._overheads:
            crew, _ = self._crews.of(study)
            self._overheads[key] = crew.call(OverheadTask(study, run.loader), lambda _: None)[0]
            cost = self._overheads[key]
            if len(self._overheads) > 1:
                return cost
            self._watch.note(
                f"overhead: recorder {cost.recorder_per_op * 1e6:.2f} µs per operation, "
                f"harness {cost.harness_per_sample * 1e6:.1f} µs per sample without storage{_compared(run)}"
            )
        return self._overheads[key]

    def _about(self, point: Point, mode: str, ranks: list[RankTrace], own_cost: OwnCost | None = None) -> Measured:
        origin = provenance(self._crews.launcher, *filesystems(point.study, self._out))
        return about_run(point, mode, ranks, origin, own_cost, devices_of(point.study, self._out))

    def _scratch(self, key: RunKey) -> str:
        """A folder of our own for the ranks' raw lists."""
        return make_scratch(self._out, f"ops-{key.point:04d}-r{key.repetition}")

    def _collect_ops(self, key: RunKey, study: Study, scratch: str) -> None:
        per_node = study.system.ranks_per_node
        tiers = [tier.name for tier in study.system.tiers]
        for node in range(study.system.nodes):
            raw = {rank: ops_path(scratch, rank) for rank in range(node * per_node, (node + 1) * per_node)}
            name = f"{key.point:04d}-r{key.repetition}-node{node}.parquet"
            collect_ops(os.path.join(self._out, "ops", name), raw, tiers)
        clear_scratch(self._out)
