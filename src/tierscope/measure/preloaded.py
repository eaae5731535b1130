"""Runs whose loader reads where no recorder in Python can see it: in worker processes, in a framework's own threads.

Every run has ranks of its own, started with our preload library, as a command under `tierscope trace` is. What ranks say of themselves
(epochs, samples, stalls, the order of reads) is kept as ever; operations, their bytes and their seconds are those of all their processes.
"""

import importlib.util
import os
import time
from collections.abc import Sequence

import polars as pl

from tierscope.bench.live import LiveBoardAt
from tierscope.bench.profiled import PRELOADED, Watched
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask
from tierscope.errors import UserError
from tierscope.loaders import LOADERS
from tierscope.measure.crews import Crews
from tierscope.measure.profiled import ProfiledRun, tier_prefixes
from tierscope.measure.trained import meeting
from tierscope.native import library
from tierscope.output.result import clear_scratch, make_scratch
from tierscope.recording.builtin import Builtin
from tierscope.recording.collect import collect
from tierscope.recording.coverage import coverage_of
from tierscope.recording.recorders import RecordingRequest
from tierscope.spec.study import FRAMEWORKS, Study
from tierscope.trace.description import RANK_WALL
from tierscope.trace.kernel_io import counted_since, kernel_io
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey
from tierscope.train.start import start_training
from tierscope.watch import Watch

_ENDING_SECONDS = 60.0


def needs_preload(study: Study) -> bool:
    """Asked without importing a framework, which only ranks need."""
    return study.workload.reader.data_loader in FRAMEWORKS


def check_preload(studies: Sequence[Study], ops: bool, launcher: str) -> None:
    """Before anything is touched: refuse what cannot work."""
    wanting = [study for study in studies if needs_preload(study)]
    if not wanting:
        return
    name = wanting[0].workload.reader.data_loader
    key = f"workload.reader.data_loader = {name}"
    package = LOADERS[name].package
    if package and importlib.util.find_spec(package) is None:
        raise UserError(f"{key} needs the package {package}; pip install 'tierscope[{LOADERS[name].extra}]'")
    if library.load() is None:
        raise UserError(f"{key} needs Tierscope's C library, which was not built; {library.BUILD_ADVICE}")
    if launcher != "local":
        raise UserError(
            f"{key} works only with ranks on this machine; under a launcher, trace your own program: "
            "'mpirun … tierscope trace …' records any loader"
        )
    if ops:
        raise UserError(f"{key}: operations are summed, not listed; remove --ops")
    for study in wanting:
        emulated = next((tier.name for tier in study.system.tiers if tier.emulate), None)
        if emulated and study.system.nodes > 1:
            raise UserError(
                f"{key} with emulated tiers works only on one node, but system.nodes = {study.system.nodes} and tier {emulated} is emulated; "
                "set nodes: 1, or data_loader: auto"
            )


class Preloading:
    """`ranks_on_host`: all ranks are on this one."""

    def __init__(self, out: str, ranks_on_host: int = 0) -> None:
        self._out, self._ranks_on_host = out, ranks_on_host

    def measure(
        self, key: RunKey, run: ResolvedRun, compute: str, crews: Crews, watch: Watch, live: LiveBoardAt | None = None
    ) -> ProfiledRun:
        study = run.study
        folder = make_scratch(self._out, f"preload-{key.point:04d}-r{key.repetition}")
        tiers = tier_prefixes(study, self._out)
        evict = bool(study.workload.reader.evict) and LOADERS[run.loader].evicted_in_c
        variables = Builtin().prepare(folder, RecordingRequest(command=(), tiers=tiers, evict=evict))
        before = kernel_io()
        with meeting(study, self._out) as place, crews.apart(study, variables, numbered=True) as crew:
            task = RunTask(
                study,
                run.loader,
                self._out,
                None,
                compute,
                None,
                Watched(PRELOADED, folder),
                key.repetition,
                self._ranks_on_host,
                place,
                start_training if study.workload.model.network else None,
                live,
            )
            ranks: list[RankTrace] = crew.call(task, watch.advance)
            crew.leave(_ENDING_SECONDS)
        kernel = counted_since(before)
        collected = collect(folder, [tier.name for tier in tiers], lambda _: False, time.monotonic_ns())
        emulated = [tier.name for tier in study.system.tiers if tier.emulate]
        covered = coverage_of(folder, collected, kernel, emulated)
        clear_scratch(self._out, os.path.basename(folder))
        per_node, epochs = study.system.ranks_per_node, study.workload.train.epochs
        rows = collected.table.filter(
            pl.col("record") == "io", pl.col("rank").is_not_null(), pl.col("epoch") <= epochs
        ).with_columns(
            point=pl.lit(key.point, pl.Int32),
            repetition=pl.lit(key.repetition, pl.Int32),
            node=(pl.col("rank") // per_node).cast(pl.Int32),
        )
        wall = ("wall", RANK_WALL) if RANK_WALL in collected.provides else ()
        if not wall:  # sums over processes are no wall seconds
            rows = rows.with_columns(wall_seconds=pl.lit(None, pl.Float64))
        provides = ("epochs", "lanes", "busy", *wall, "steps", "cold")
        return ProfiledRun(ranks, rows, provides, recorder=PRELOADED, coverage=covered)
