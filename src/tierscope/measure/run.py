"""Run a study: stage its data, then every point of its sweep that is not finished yet, one durable trace each."""

import random
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace

from tierscope.bench.tasks import FitTask
from tierscope.loaders.choose import choose_loader, fills_as_it_reads
from tierscope.measure.checkpoints import check_checkpoints
from tierscope.measure.collective import COLLECTIVE_NOTE, check_collective
from tierscope.measure.crews import Crews, crowding
from tierscope.measure.first_touch import check_policies
from tierscope.measure.live import Tracker, size_of
from tierscope.measure.preloaded import check_preload
from tierscope.measure.profiled import Profiling
from tierscope.measure.runner import Runner
from tierscope.measure.staging import StudyStaging
from tierscope.measure.storages import check_dropping, check_storages, storage_notes
from tierscope.measure.trained import check_training
from tierscope.output.result import open_result
from tierscope.output.store import RunStore
from tierscope.plan.order import Order
from tierscope.recording.recorders import BUILTIN
from tierscope.spec import sweep
from tierscope.spec.emulation import has_rate, python_only
from tierscope.spec.goal_compute import refuse_au_without_compute
from tierscope.spec.study import Point, Study
from tierscope.trace.trace import RunKey
from tierscope.train.start import refuse_large_batch
from tierscope.units import counted
from tierscope.watch import Watch


def run_study(
    study: Study,
    out: str,
    crews: Crews,
    watch: Watch,
    ops: bool = False,
    profiler: str = BUILTIN,
    tracker: Tracker | None = None,
) -> RunStore:
    """All runs of the study that are not finished; what is finished is neither repeated nor touched. All of them, to be read.

    `tracker`: told of runs while they go on, for whoever shows them.
    """
    points = list(sweep.points(study))
    refuse_au_without_compute(study, points)
    check_storages((point.study for point in points), out, profiler)
    check_dropping((point.study for point in points), out)
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
    with open_result(out, study, profiler) as store:
        todo = _todo(study, points, store)
        total = len(points) * study.repetitions
        if not todo:
            watch.note(
                f"{'the run is' if total == 1 else f'all {total} runs are'} finished"
                + ("; --ops affects only new runs" if ops else "")
            )
            return store
        if len(todo) < total:
            watch.note(f"resuming: {total - len(todo)} of {counted(total, 'run')} are finished")
        left = [points[index].study for index in dict.fromkeys(key.point for key in todo)]  # however many repetitions
        for remaining in left:
            choose_loader(remaining, seen=profiling is not None)  # or refuse it now, and not after hours
        _say_trimmed(points, watch)
        _say_idle_rates(points, watch)
        _say_python(points, watch)
        for line in storage_notes(left, out):
            watch.note(line)
        if any(point.study.workload.reader.file_access == "collective" for point in points):
            watch.note(COLLECTIVE_NOTE)
        if tracker is not None:
            tracker.plan(total, [size_of(points[key.point]) for key in todo])
        with ExitStack() as leases:
            refuse_large_batches(left, crews)
            staging = StudyStaging(points, out, crews, watch, leases)
            staging.stage_for(left)
            runner = Runner(out, crews, watch, ops, profiling, tracker)
            watch.phase("measuring", sum(_samples(points[key.point].study) for key in todo), "samples")
            for key in todo:
                store.save(runner.run(key, points[key.point]))
        return store


def _todo(study: Study, points: list[Point], store: RunStore) -> list[RunKey]:
    """What is left, each repetition in a random order of its own, so that drift does not look like an effect."""
    finished = store.finished()
    order: list[RunKey] = []
    for repetition in range(1, study.repetitions + 1):
        keys = [RunKey(point.index, repetition) for point in points]
        random.Random(f"{study.seed}/{repetition}").shuffle(keys)
        order += keys
    return [key for key in order if key not in finished]


def refuse_large_batches(studies: Iterable[Study], crews: Crews) -> None:
    """Those whose steps would not fit the ranks' devices or cannot be trained, and devices that are not there: before hours of writing data."""
    distinct: dict[object, Study] = {}
    for study in studies:
        model = replace(study.workload.model, data="tiers")
        steps = study.workload.reader.batch_size, Order.of(study).samples_per_rank
        distinct.setdefault((model, steps, study.system.ranks_per_node, study.system.nodes), study)
    for study in distinct.values():
        if study.workload.model.network is not None:
            crew, who = crews.of(study)
            crew.call(FitTask(study, refuse_large_batch, crowding(who)[0]), lambda _: None)


def _samples(study: Study) -> int:
    return Order.of(study).samples_per_rank * study.system.ranks * study.workload.train.epochs


def _say_trimmed(points: list[Point], watch: Watch) -> None:
    dealt = [p.study for p in points if p.study.workload.reader.rank_reads == "share"]
    for ranks, samples in sorted({(study.system.ranks, study.workload.dataset.samples) for study in dealt}):
        if samples % ranks:
            watch.note(
                f"{counted(samples, 'sample')} do not divide evenly among {counted(ranks, 'rank')}: {samples % ranks} dropped in every epoch"
            )


def _say_idle_rates(points: list[Point], watch: Watch) -> None:
    """Rates describe a tier; someone may expect them to act."""
    tiers = (tier for point in points for tier in point.study.system.tiers)
    idle = dict.fromkeys(tier.name for tier in tiers if not tier.emulate and has_rate(tier))
    if idle:
        watch.note(f"{', '.join(idle)}: measured as they are; their rates apply only with emulate: true")


def _say_python(points: list[Point], watch: Watch) -> None:
    """Where `auto` does not mean what it usually does."""
    auto = [point.study for point in points if point.study.workload.reader.data_loader == "auto"]
    python_keys = {
        f"{tier.name}.{key}": None
        for study in auto
        for tier in study.system.tiers
        if (key := python_only(tier)) is not None
    }
    if python_keys:
        watch.note(f"{', '.join(python_keys)}: emulated only in Python, so data_loader: auto uses Python threads")
    if any(fills_as_it_reads(study) for study in auto):
        watch.note("first-touch: files are copied only in Python, so data_loader: auto uses Python threads")


def generate_data(study: Study, out: str, crews: Crews, watch: Watch) -> int:
    """Only stage the data; the bytes written."""
    points = list(sweep.points(study))
    check_storages((point.study for point in points), out)
    check_policies(point.study for point in points)
    with open_result(out, study), ExitStack() as leases:
        return StudyStaging(points, out, crews, watch, leases).stage_for(point.study for point in points)
