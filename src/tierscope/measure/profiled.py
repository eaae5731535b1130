"""Runs of a study that a site's profiler measures (`tierscope run --profiler`).

Every run has ranks of its own, started with the profiler preloaded and ended before its logs are read. Our own timers are off. What ranks say of
themselves (epochs, samples, stalls, the order of reads) is kept as ever; operations, their bytes and their seconds are the profiler's.

OUT/logs/0003-r1/   what it wrote in the run of point 3, repetition 1
"""

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl

from tierscope.bench.live import LiveBoardAt
from tierscope.bench.profiled import Watched, is_epoch_folder
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import WhoTask
from tierscope.errors import ForeignDirectoryError, StoppedError, UserError
from tierscope.imports.paths import TierRules
from tierscope.loaders import LOADERS
from tierscope.loaders.choose import choose_loader
from tierscope.measure.crews import Crews
from tierscope.measure.natively import refuse_native
from tierscope.output import manifest
from tierscope.output.durable import make_folders, move_file
from tierscope.output.folders import enter_directory
from tierscope.output.ours import Rules, log_rules
from tierscope.output.result import clear_scratch, make_scratch
from tierscope.output.walk import remove_ours
from tierscope.recording.profilers import Profiler, Ran
from tierscope.recording.recorders import BUILTIN, RECORDERS, RecordingRequest
from tierscope.spec.study import Study
from tierscope.spec.traced import TracedTier
from tierscope.storage.files import tier_root
from tierscope.trace.coverage import Coverage
from tierscope.trace.description import Imported, ProfiledLogs
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, Trace
from tierscope.watch import Watch

_WRITING_SECONDS = 600.0  # for a profiler to write its logs when its process ends
_PROVIDES = ("epochs", "busy", "steps", "cold")


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """`io`: rows of a trace; the rest is what its description has beside, and instead of, our own."""

    ranks: list[RankTrace]
    io: pl.DataFrame
    provides: tuple[str, ...]
    profiler: str | None = None
    recorder: str | None = None
    logs: ProfiledLogs | None = None
    coverage: Coverage | None = None


class Profiling:
    def __init__(self, name: str, out: str) -> None:
        if not RECORDERS[name].profiler:
            raise UserError(f"--profiler {name}: is not a profiler; remove --profiler")
        self.name, self._out, self._profiler = name, out, cast(Profiler, RECORDERS.load(name)())

    def check(self, studies: Sequence[Study], ops: bool, launcher: str) -> list[str]:
        """Before anything is touched: refuse what cannot work; lines worth saying about the rest."""
        name = self.name
        if launcher != "local":
            raise UserError(
                f"--profiler {name} works only with ranks on this machine; under a launcher, set it in the ranks' environment "
                "yourself (LD_PRELOAD and its variables, workload.reader.data_loader: threads), then 'tierscope analyze LOGS'"
            )
        if ops:
            raise UserError(f"--ops requires --profiler {BUILTIN}; remove --ops, or --profiler {name}")
        notes = self._profiler.check_study(studies)
        for study in studies:
            _refuse_unseen(study, name)
        instead = {choose_loader(study, seen=True) for study in studies if LOADERS[choose_loader(study)].in_c}
        if instead:
            notes.append(f"{name} does not record reads of the native loader: {', '.join(sorted(instead))} instead")
        return notes

    def measure(
        self, key: RunKey, run: ResolvedRun, compute: str, crews: Crews, watch: Watch, live: LiveBoardAt | None = None
    ) -> ProfiledRun:
        study = run.study
        name = f"{key.point:04d}-r{key.repetition}"
        folder = make_scratch(self._out, f"profile-{name}")
        tiers = tier_prefixes(study, self._out)
        variables = self._profiler.prepare(folder, RecordingRequest(command=(), tiers=tiers))
        with crews.apart(study, variables) as crew:
            who = crew.call(WhoTask(), lambda _: None)
            watched = Watched(self.name, folder)
            task = RunTask(study, run.loader, self._out, None, compute, None, watched, key.repetition, live=live)
            ranks: list[RankTrace] = crew.call(task, watch.advance)
            if bad := crew.leave(_WRITING_SECONDS):
                raise StoppedError(
                    f"{bad[0]} while {self.name} was writing its logs; finished runs are kept; rerun to continue"
                )
        logs = self._keep(folder, os.path.join(self._out, "logs", name))
        rules = TierRules({tier.name: tier.prefixes for tier in tiers})
        ran = [Ran(identity.rank, identity.pid, _spans(rank)) for identity, rank in zip(who, ranks, strict=True)]
        try:
            trace = self._profiler.trace_of(logs, rules, ran)
        except UserError as error:
            raise error.prefixed(os.path.dirname(logs[0])) from None
        io = _rows(trace, key, study)
        assert isinstance(trace.about, Imported)
        missed_bytes, missed_ops = self._missed_bytes(io, ranks), _unpaired(io)
        seen = ProfiledLogs(facts=trace.about.facts, missed_ops=missed_ops, missed_bytes=missed_bytes)
        return ProfiledRun(ranks, io, _PROVIDES, profiler=self.name, logs=seen)

    def _keep(self, folder: str, target: str) -> list[str]:
        """The logs where they stay, below the result; what logs a killed run left there go.

        Those of an epoch are named after it: by themselves, two of a process may have one name, and begin in one second.
        """
        paths = {}
        for path in self._profiler.written(folder):
            first = os.path.relpath(path, folder).split(os.sep)[0]
            name = f"{first}_{os.path.basename(path)}" if is_epoch_folder(first) else os.path.basename(path)
            paths[path] = os.path.join(target, name)
        try:
            make_folders(target, self._out)
            run = os.path.basename(target)
            old = log_rules(manifest.recorded_logs(self._out)).inside(run)
            remove_ours(enter_directory(target, self._out), old or Rules())
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise ForeignDirectoryError(
                f"{target}: is a link or not a directory; remove it, or choose another --out"
            ) from None
        names = (*map(os.path.basename, paths.values()), *self._profiler.adds)
        manifest.record_logs(self._out, [f"{run}/{name}" for name in names])
        for path, kept in paths.items():
            move_file(path, kept, self._out)
        clear_scratch(self._out)
        if not paths:
            raise UserError(f"{self.name} wrote no log; check its output, or remove --profiler")
        return list(paths.values())

    def _missed_bytes(self, io: pl.DataFrame, ranks: Sequence[RankTrace]) -> int:
        """How much less was seen than ranks did, at least. Nothing at all of an epoch: those sums would be no measurement."""
        reads = io.filter(pl.col("kind") == "read").group_by("rank", "epoch").agg(pl.col("bytes").sum())
        seen = {(rank, epoch): nbytes for rank, epoch, nbytes in reads.iter_rows()}
        missed = 0
        for rank in ranks:
            for epoch in rank.epochs:
                seen_bytes = seen.get((rank.rank, epoch.epoch), 0)
                if not seen_bytes and epoch.payload_bytes:
                    raise UserError(
                        f"{self.name} recorded no reads of rank {rank.rank} in epoch {epoch.epoch}; check its output, "
                        "or remove --profiler"
                    )
                missed += max(0, epoch.payload_bytes - seen_bytes)
        return missed


def _unpaired(io: pl.DataFrame) -> int:
    """Opens without a close and closes without an open, where the profiler tells these apart: our loaders do as many of either."""
    told = io.filter(pl.col("kind").is_in(["open", "close"]))
    sign = pl.when(pl.col("kind") == "open").then(pl.col("ops")).otherwise(-pl.col("ops"))
    return int(told.group_by("epoch", "rank", "tier").agg(sign.sum().abs().alias("ops"))["ops"].sum())


def _refuse_unseen(study: Study, name: str) -> None:
    """What a preloaded profiler cannot see, or would see wrongly."""
    for tier in study.system.tiers:
        if tier.emulate:
            raise UserError(
                f"system.tiers.{tier.name}.emulate = true, but {name} records only real calls, not emulated waits; "
                "set emulate: false, or remove --profiler"
            )
    refuse_native(study.workload.reader, f"{name} does not record reads of the native loader", "remove --profiler")


def tier_prefixes(study: Study, out: str) -> tuple[TracedTier, ...]:
    """Every tier's directories on all nodes, as written and as symbolic links lead."""

    def both(roots: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for root in roots for path in (root, os.path.realpath(root))))

    nodes = range(study.system.nodes)
    return tuple(TracedTier(tier, both(tier_root(tier, out, node) for node in nodes)) for tier in study.system.tiers)


def _spans(rank: RankTrace) -> list[tuple[int, int, int]]:
    return [(epoch.epoch, *epoch.span_ns) for epoch in rank.epochs]


def _rows(trace: Trace, key: RunKey, study: Study) -> pl.DataFrame:
    """What the profiler saw on the study's tiers, as rows of this run."""
    ours = pl.col("tier").is_in([tier.name for tier in study.system.tiers])
    return trace.io.filter(ours, pl.col("rank").is_between(0, study.system.ranks - 1)).with_columns(
        point=pl.lit(key.point, pl.Int32),
        repetition=pl.lit(key.repetition, pl.Int32),
        node=(pl.col("rank") // study.system.ranks_per_node).cast(pl.Int32),
    )
