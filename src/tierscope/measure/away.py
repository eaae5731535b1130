"""Runs on a machine without a table library (an accelerator's, where nothing can be installed): NumPy and torch are enough.

One rank in this process, no tables: each run is one file in a folder, which `tierscope train --take FOLDER` makes a
result of where Polars is. Runs that are there are kept, so rerunning the same command resumes. What would need more than one rank, emulated tiers or recorded operations is refused.
"""

import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tierscope.bench.group import Alone
from tierscope.bench.liveness import noting_stops, refuse_suspended, until_undisturbed
from tierscope.bench.overhead import described, measure_overhead
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask, run_rank
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, perform
from tierscope.errors import UserError
from tierscope.measure.storages import check_dropping, check_storages, filesystems
from tierscope.measure.trained import check_training
from tierscope.output import handover
from tierscope.output.disk_errors import explained, plain
from tierscope.output.durable import write_file
from tierscope.plain_files import read_plain
from tierscope.recording.recorders import BUILTIN
from tierscope.spec import dump, sweep
from tierscope.spec.study import FRAMEWORKS, Point, Study
from tierscope.trace.provenance import provenance
from tierscope.trace.rank_trace import RankTrace
from tierscope.train.start import refuse_large_batch, start_training

STUDY = "study.yaml"
_MOST_BYTES = 1 << 20  # of a study
NAME = "{point:04d}-r{repetition}.npz"


def run_away(
    study: Study, folder: str, data: str, say: Callable[[str], None], has_time: Callable[[], bool] = lambda: True
) -> bool:
    """Points and repetitions that are not in the folder yet; whether all are now. `data`: where tiers with {out} in their paths lie; `has_time`: for one more run."""
    points = list(sweep.points(study))
    _check(study, points, data)
    for point in points:
        refuse_large_batch(point.study, 0)
    _claim(study, folder)
    staged: set[Any] = set()
    for repetition in range(1, study.repetitions + 1):
        for point in points:
            path = os.path.join(folder, NAME.format(point=point.index, repetition=repetition))
            if os.path.lexists(path):
                continue
            if not has_time():
                return False
            _stage(point.study, data, staged)
            started = time.monotonic()
            run = ResolvedRun.of(point.study)
            task = RunTask(run.study, run.loader, data, None, "real", None, repetition=repetition, train=start_training)
            ranks = [until_undisturbed(f"point {point.index}, repetition {repetition}", partial(_run_rank, task), say)]
            handover.save(path, _about(point, repetition, data, run), ranks)
            say(
                f"point {point.index} {json.dumps(dict(point.sweep))} repetition {repetition}: {time.monotonic() - started:.1f} s"
            )
    return True


def _claim(study: Study, folder: str) -> None:
    """A folder that is new, or has runs of the same study."""
    path, text = os.path.join(folder, STUDY), dump.to_yaml(study).encode()
    with explained(folder, plain("choose another directory")):
        os.makedirs(folder, exist_ok=True)
        if not os.path.lexists(path):
            write_file(path, text)
        elif read_plain(path, _MOST_BYTES) != text:
            raise UserError(f"{folder}: contains runs of another study; choose another directory")


def _run_rank(task: RunTask) -> RankTrace:
    with noting_stops() as stops:
        rank = run_rank(task, Alone())
        refuse_suspended((), stops.take())
    return rank


def _check(study: Study, points: list[Point], data: str) -> None:
    check_training((point.study for point in points), BUILTIN)
    check_storages((point.study for point in points), data)
    check_dropping((point.study for point in points), data)
    for point in points:
        if point.study.system.ranks != 1:
            raise UserError("system.nodes × system.ranks_per_node must be 1 with --hand-over; set both to 1")
    for point in points:
        loader = point.study.workload.reader.data_loader
        if loader in FRAMEWORKS:
            raise UserError(
                f"workload.reader.data_loader = {loader} does not work with --hand-over, which preloads no recorder into its workers; set auto"
            )
    if any(tier.emulate for point in points for tier in point.study.system.tiers):
        raise UserError("emulate: true does not work with --hand-over; use real paths")
    if study.workload.model.network is None and not any("model" in path for path in study.changing):
        raise UserError("--hand-over works only with 'tierscope train'; name a network with --model")


def _stage(study: Study, data: str, staged: set[Any]) -> None:
    key = (study.workload.dataset, study.placement, study.seed)
    if key not in staged:
        for task in (ClaimTask(study, data), SurveyTask(study, data), StageTask(study, data)):
            perform(task, Alone())
        staged.add(key)


def _about(point: Point, repetition: int, data: str, run: ResolvedRun) -> handover.HandedRun:
    return handover.HandedRun(
        point=point.index,
        repetition=repetition,
        overhead=described(measure_overhead(run)),
        provenance=provenance("one process, handed over", *filesystems(point.study, data)),
    )
