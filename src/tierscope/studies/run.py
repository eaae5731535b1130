"""Run a study: stage its data, then every point of its sweep that is not finished yet, one durable trace each."""

import os
import random
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import polars as pl

from tierscope.bench.compute import compute_mode
from tierscope.bench.loading import fills_as_it_reads, pick_loader
from tierscope.bench.overhead import Overhead, described
from tierscope.bench.run import RunTask, ops_path
from tierscope.bench.tasks import ClaimTask, OverheadTask, StageTask, SurveyTask
from tierscope.data.capacity import check_capacity, check_disks, check_space
from tierscope.data.lease import lease, refuse_nested
from tierscope.data.stage import Missing, make_format
from tierscope.formats import NOTHING
from tierscope.plan.plan import Plan
from tierscope.spec import sweep
from tierscope.spec.emulation import has_rate, python_only
from tierscope.spec.study import Point, Study
from tierscope.studies.checkpoints import check_checkpoints, checkpoints_of
from tierscope.studies.collective import COLLECTIVE_NOTE, check_collective
from tierscope.studies.crews import Crews, crowding, nodes_here
from tierscope.studies.first_touch import check_policies, hit_rates, staged_as
from tierscope.studies.preloaded import Preloading, check_preload, needs_preload
from tierscope.studies.profiled import BUILTIN, Profiling
from tierscope.studies.reading import reading_of
from tierscope.studies.result import identity, make_scratch, open_result
from tierscope.studies.trained import check_training, meeting, metadata_cache, training_of
from tierscope.studies.watch import Watch
from tierscope.tiers.background import Background, loads_of
from tierscope.tiers.emulated import Board
from tierscope.tiers.files import tier_root
from tierscope.tiers.stations import StationMap, map_stations
from tierscope.tiers.striping import Striping
from tierscope.trace.op_list import collect_ops
from tierscope.trace.provenance import provenance
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.store import RunStore
from tierscope.trace.trace import RunKey, Trace, gather


def run_study(study: Study, out: str, crews: Crews, watch: Watch, ops: bool = False, profiler: str = BUILTIN) -> None:
    """All runs of the study that are not finished; what is finished is neither repeated nor touched."""
    points = list(sweep.points(study))
    check_policies((point.study for point in points), profiler)
    check_checkpoints((point.study for point in points), profiler)
    check_collective((point.study for point in points), crews.launcher)
    check_training((point.study for point in points), profiler)
    profiling = Profiling(profiler, out) if profiler != BUILTIN else None
    if profiling:
        for line in profiling.check([point.study for point in points], ops, crews.launcher):
            watch.note(line)
    else:
        check_preload([point.study for point in points], ops, crews.launcher)
    with open_result(out, study, profiler):
        store = RunStore(out)
        todo = _todo(study, points, store)
        total = len(points) * study.repetitions
        if not todo:
            watch.note(f"all {total} runs are finished" + ("; --ops is for runs that are made now" if ops else ""))
            return
        if len(todo) < total:
            watch.note(f"resuming: {total - len(todo)} of {total} runs are finished")
        for key in todo:
            pick_loader(points[key.point].study, seen=profiling is not None)  # or refuse it now, and not after hours
        _say_trimmed(points, watch)
        _say_idle_rates(study, watch)
        _say_python(points, watch)
        if any(point.study.workload.reader.file_access == "collective" for point in points):
            watch.note(COLLECTIVE_NOTE)
        with ExitStack() as leases:
            staging = _Staging(points, out, crews, watch, leases)
            staging.stage_for(points[key.point].study for key in todo)
            runner = _Runner(out, crews, watch, ops, profiling)
            watch.phase("measuring", sum(_samples(points[key.point].study) for key in todo), "samples")
            for key in todo:
                store.save(runner.run(key, points[key.point]))


def generate_data(study: Study, out: str, crews: Crews, watch: Watch) -> int:
    """Only stage the data; the bytes written."""
    points = list(sweep.points(study))
    check_policies(point.study for point in points)
    with open_result(out, study), ExitStack() as leases:
        return _Staging(points, out, crews, watch, leases).stage_for(point.study for point in points)


def _todo(study: Study, points: list[Point], store: RunStore) -> list[RunKey]:
    """What is left, each repetition in a random order of its own, so that drift does not look like an effect."""
    finished = store.finished()
    order: list[RunKey] = []
    for repetition in range(1, study.repetitions + 1):
        keys = [RunKey(point.index, repetition) for point in points]
        random.Random(f"{study.seed}/{repetition}").shuffle(keys)
        order += keys
    return [key for key in order if key not in finished]


def _samples(study: Study) -> int:
    ranks = study.system.ranks
    return study.workload.dataset.samples // ranks * ranks * study.workload.train.epochs


def _say_trimmed(points: list[Point], watch: Watch) -> None:
    for ranks, samples in sorted({(p.study.system.ranks, p.study.workload.dataset.samples) for p in points}):
        if samples % ranks:
            watch.note(f"{samples} samples do not divide over {ranks} ranks: {samples % ranks} left out of every epoch")


def _say_idle_rates(study: Study, watch: Watch) -> None:
    """Rates describe a tier; someone may expect them to act."""
    idle = [tier.name for tier in study.system.tiers if not tier.emulate and has_rate(tier)]
    if idle:
        watch.note(f"{', '.join(idle)}: measured as they are; the rates given for them act only with emulate: true")


def _say_python(points: list[Point], watch: Watch) -> None:
    """Where `auto` does not mean what it usually does."""
    auto = [point.study for point in points if point.study.workload.reader.data_loader == "auto"]
    found = {
        f"{tier.name}.{key}": None
        for study in auto
        for tier in study.system.tiers
        if (key := python_only(tier)) is not None
    }
    if found:
        watch.note(f"{', '.join(found)}: emulated in Python only, so data_loader: auto reads with its threads there")
    if any(fills_as_it_reads(study) for study in auto):
        watch.note("first-touch: files are copied in Python only, so data_loader: auto reads with its threads there")


def _others(study: Study, stations: StationMap, board: Board | None) -> AbstractContextManager[object]:
    """Those who use emulated servers beside us."""
    if board is None:
        return nullcontext()
    usual = study.workload.reader.transfer_size
    if make_format(study).reading != NOTHING:
        pieces = [nbytes for _, nbytes in reading_of(study).pieces]
        usual = sum(pieces) // max(1, len(pieces))
    return Background(board.path, loads_of(stations, usual), study.seed)


def about_run(point: Point, mode: str, ranks: list[RankTrace], origin: dict[str, Any]) -> dict[str, Any]:
    """What a trace says of itself; `origin`: where and with what it was measured."""
    study = point.study
    plan = Plan.of(study, make_format(study).file_bytes)
    return {
        "kind": "measured",
        "study": identity(study),
        "point": point.index,
        "sweep": dict(point.sweep),
        "provides": ["epochs", "lanes", "busy", "wall", "steps", "cold"],
        "tiers": [{"name": tier.name, "emulated": tier.emulate} for tier in study.system.tiers],
        "ranks": study.system.ranks,
        "nodes": study.system.nodes,
        "trimmed_samples": plan.order.undivided,
        "compute": mode,
        "loader": ", ".join(sorted({rank.loader for rank in ranks})),
        **({"checkpoint": checkpoints_of(study, ranks)} if study.workload.checkpoint.wanted else {}),
        **training_of(study, ranks),
        "metadata_cache": metadata_cache(study),
        "provenance": origin,
    }


class _Staging:
    """Data for points: the largest cache rate once for all points that share a dataset. First-touch points need the last tier only."""

    def __init__(self, points: list[Point], out: str, crews: Crews, watch: Watch, leases: ExitStack) -> None:
        self._out, self._crews, self._watch, self._leases = out, crews, watch, leases
        self._leased: set[str] = set()
        self._largest: dict[Any, Study] = {}
        for point in points:
            wanted = staged_as(point.study)
            key = self._key(wanted)
            known = self._largest.get(key)
            if known is None or known.placement.cache_rate < wanted.placement.cache_rate:
                self._largest[key] = wanted
        for largest in self._largest.values():
            check_capacity(largest)
            check_disks(largest, out)
        self._staged: set[Any] = set()

    @staticmethod
    def _key(study: Study) -> Any:
        """All that decides which files lie where, but for the cache rate."""
        reader = study.workload.reader
        paths = tuple(
            (tier.name, tier.path, tier.visible_to, tier.capacity, Striping.of(tier)) for tier in study.system.tiers
        )
        layout = (study.system.nodes, study.system.ranks_per_node, reader.shuffle, reader.shuffle_nodes)
        return study.workload.dataset, study.seed, paths, layout

    def stage_for(self, studies: Iterable[Study]) -> int:
        """Make sure that the data of these studies is there; the bytes written. Whether all of it fits is asked first."""
        wanted = {self._key(study): self._largest[self._key(study)] for study in studies}
        missing = {key: self._survey(study) for key, study in wanted.items() if key not in self._staged}
        nbytes = check_space(pair for pairs in missing.values() for pair in pairs)
        if nbytes:
            self._watch.phase("generating data", nbytes, "bytes")
        written = 0
        for key, pairs in missing.items():
            if not all(share.sealed and not share.files for _, share in pairs):
                crew, _ = self._crews.of(wanted[key])
                written += sum(crew.call(StageTask(wanted[key], self._out), self._watch.advance))
            self._staged.add(key)
        return written

    def _survey(self, study: Study) -> list[tuple[str, Missing]]:
        """What is missing, with the host that would write it."""
        crew, who = self._crews.of(study)
        nodes = nodes_here(study, who)
        refuse_nested(study, self._out, nodes[0])
        crew.call(ClaimTask(study, self._out), lambda _: None)
        lease(study, self._out, nodes, self._leased, self._leases)
        found = crew.call(SurveyTask(study, self._out), lambda _: None)
        return [(who[rank].host, share) for rank, shares in enumerate(found) for share in shares]


class _Runner:
    """One run after another on the crew, each to a trace."""

    def __init__(self, out: str, crews: Crews, watch: Watch, ops: bool, profiling: Profiling | None) -> None:
        self._out, self._crews, self._watch, self._ops, self._profiling = out, crews, watch, ops, profiling
        self._overheads: dict[Any, Overhead] = {}

    def run(self, key: RunKey, point: Point) -> Trace:
        study = point.study
        crew, who = self._crews.of(study)
        trained = study.workload.model.network is not None
        mode = compute_mode(*crowding(who)) if study.workload.train.computation_time else "real" if trained else "none"
        if self._profiling:
            return self._run_profiled(key, point, mode, self._profiling)
        if needs_preload(study):
            return self._run_profiled(key, point, mode, Preloading(self._out))
        stations = map_stations(study.system, study.seed, study.workload.reader.read_threads)
        board = Board(stations.count) if any(view for view in stations.views) else None
        scratch = self._scratch(key) if self._ops else None
        overhead = self._overhead(study)
        task = RunTask(
            study,
            self._out,
            board.path if board else None,
            mode,
            scratch,
            repetition=key.repetition,
            ranks_on_host=crowding(who)[0],
        )
        try:
            with meeting(study, self._out) as place, _others(study, stations, board):
                task = replace(task, meeting=place)
                ranks: list[RankTrace] = crew.call(task, self._watch.advance)
        finally:
            if board:
                board.close()
        if scratch:
            self._collect_ops(key, study, scratch)
        about = {**self._about(point, mode, ranks), "overhead": described(overhead)}
        if fills_as_it_reads(study):
            about |= {"policy": study.placement.policy, "hit_rate": hit_rates(ranks)}
        return gather(key, about, [tier.name for tier in study.system.tiers], ranks)

    def _run_profiled(self, key: RunKey, point: Point, mode: str, profiling: Profiling | Preloading) -> Trace:
        """What a profiler costs, and what our harness does beside it, nobody measured: there is no `overhead`."""
        measured = profiling.measure(key, point.study, mode, self._watch)
        about = {**self._about(point, mode, measured.ranks), **measured.about}
        trace = gather(key, about, [tier.name for tier in point.study.system.tiers], measured.ranks)
        return replace(trace, table=pl.concat([trace.table, measured.io]))

    def _overhead(self, study: Study) -> Overhead:
        key = (study.workload.reader, study.workload.dataset, pick_loader(study))
        if key not in self._overheads:
            crew, _ = self._crews.of(study)
            self._overheads[key] = crew.call(OverheadTask(study), lambda _: None)[0]
            cost = self._overheads[key]
            if len(self._overheads) > 1:
                return cost
            self._watch.note(
                f"own cost: recorder {cost.recorder_per_op * 1e6:.2f} µs per operation, "
                f"harness {cost.harness_per_sample * 1e6:.1f} µs per sample on storage that costs nothing"
            )
        return self._overheads[key]

    def _about(self, point: Point, mode: str, ranks: list[RankTrace]) -> dict[str, Any]:
        roots = {tier.name: tier_root(tier, self._out, 0) for tier in point.study.system.tiers}
        return about_run(point, mode, ranks, provenance(self._crews.launcher, roots))

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
        shutil.rmtree(os.path.dirname(scratch), ignore_errors=True)
