"""Trials of a tuning: one candidate, one round, one repetition each, as a run of its own that is kept and resumed by itself."""

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tierscope.analysis.breakdown import break_down, counted_epochs
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.bench.crew import Crew
from tierscope.bench.tasks import OverheadTask, Who
from tierscope.measure.crews import Crews
from tierscope.measure.run import generate_data, run_study
from tierscope.output.store import RunStore
from tierscope.spec.study import Study
from tierscope.tuning.candidates import Candidate
from tierscope.tuning.halving import Round
from tierscope.units import about_seconds
from tierscope.watch import Silent, Watch

FOLDER = "trials"
LEAST_STEPS = 16  # fewer are over before threads and queues are at work
EPOCH, IO = "epoch_seconds", "io_seconds"
_PARTS = ("compute", "decode", "stall")
_NOTEWORTHY = 0.1  # of what was gained: less than that is no reason


@dataclass(frozen=True, slots=True)
class Trial:
    """`seconds` is what is minimised; the rest is why: classes of the slowest process, and what it did beside I/O."""

    seconds: float
    all_seconds: float  # of all epochs, as they passed
    classes: dict[str, float]
    parts: dict[str, float]


class _Remembering(Crew):
    """A crew that measures our own cost once for the same reader and data: it takes longer than many a short run."""

    def __init__(self) -> None:
        self.size = 0
        self.inner: Crew | None = None
        self.seconds = 0.0  # that it took
        self._known: dict[Any, Any] = {}

    def call(self, task: Any, progress: Callable[[int], None]) -> list[Any]:
        assert self.inner is not None
        if not isinstance(task, OverheadTask):
            return self.inner.call(task, progress)
        key = (task.study.workload.reader, task.study.workload.dataset)
        if key not in self._known:
            began = time.monotonic()
            self._known[key] = self.inner.call(task, progress)
            self.seconds += time.monotonic() - began
        return list(self._known[key])

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


class _Crews(Crews):
    """The same crews, remembering."""

    def __init__(self, crews: Crews) -> None:
        super().__init__()
        self._crews = crews
        self.remembering = _Remembering()

    @property
    def launcher(self) -> str:
        return self._crews.launcher

    def of(self, study: Study) -> tuple[Crew, list[Who]]:
        crew, who = self._crews.of(study)
        self.remembering.inner, self.remembering.size = crew, crew.size
        return self.remembering, who

    def close(self) -> None:
        self._crews.close()


class Trials:
    """Runs of candidates on one crew. A share of the samples is the same for all, in however many steps they are read."""

    def __init__(self, base: Study, out: str, minimised: str, crews: Crews) -> None:
        self._out, self._minimised, self._crews = out, minimised, _Crews(crews)
        self._limited = base.workload.train.total_training_steps is not None
        self._samples = _samples(base)
        step = base.system.ranks * base.workload.reader.batch_size
        self.least_share = min(1.0, LEAST_STEPS * step / self._samples)

    @property
    def own_cost_seconds(self) -> float:
        """That measuring our own cost took so far."""
        return self._crews.remembering.seconds

    def steps(self, study: Study, share: float) -> int | None:
        """None: all of an epoch."""
        if share >= 1 and not self._limited:
            return None
        step = study.system.ranks * study.workload.reader.batch_size
        return max(1, math.ceil(round(share * self._samples / step, 6)))

    def pilot(self, default: Candidate, watch: Watch) -> tuple[str, Study]:
        """Where the default's first short run is, and its study."""
        study = self._study(default, self.least_share, 1)
        folder = os.path.join(self._out, FOLDER, f"{default.number:04d}-pilot")
        if not RunStore(folder).finished():
            generate_data(study, folder, self._crews, watch)
        return folder, study

    def run_pilot(self, folder: str, study: Study, watch: Watch) -> Trial:
        is_new = not RunStore(folder).finished()
        return self._measure(study, folder, self.least_share, watch if is_new else Silent())

    def run(self, candidate: Candidate, index: int, this: Round, repetition: int) -> Trial:
        study = self._study(candidate, this.share, this.epochs)
        folder = os.path.join(self._out, FOLDER, f"{candidate.number:04d}-{index}-r{repetition}")
        return self._measure(study, folder, this.share, Silent())

    def recover(self) -> None:
        """After a run that failed: its ranks are gone."""
        self._crews.close()

    def _study(self, candidate: Candidate, share: float, epochs: int) -> Study:
        study = candidate.study
        train = replace(study.workload.train, epochs=epochs, total_training_steps=self.steps(study, share))
        return replace(study, workload=replace(study.workload, train=train))

    def _measure(self, study: Study, folder: str, share: float, watch: Watch) -> Trial:
        (trace,) = run_study(study, folder, self._crews, watch).load_all()
        times = from_traces([trace], [tier.name for tier in study.system.tiers])
        (point,) = break_down(times).summary
        seconds = point.io.median if self._minimised == IO else point.epoch_seconds or 0.0
        whole = times.epochs.group_by("epoch").agg(pl.col("epoch_seconds").max())["epoch_seconds"].sum()
        same = share * self._samples / _samples(study)  # the last step may read more than its share
        return Trial(seconds * same, float(whole), point.classes, _parts(times))


def _samples(study: Study) -> int:
    """What all ranks read in an epoch."""
    per_rank = study.workload.dataset.samples // study.system.ranks
    steps = study.workload.train.total_training_steps
    if steps is not None:
        per_rank = min(per_rank, steps * study.workload.reader.batch_size)
    return per_rank * study.system.ranks


def _parts(times: ClassTimes) -> dict[str, float]:
    counted = counted_epochs(times.epochs["epoch"].to_list())
    longest = times.epochs.filter(pl.col("epoch").is_in(counted)).group_by("epoch").agg(
        pl.col([f"{part}_seconds" for part in _PARTS]).max()
    )  # fmt: skip
    return {part: float(longest[f"{part}_seconds"].median() or 0.0) for part in _PARTS}  # type: ignore[arg-type]


def why(default: Sequence[Trial], winner: Sequence[Trial]) -> str:
    """The class that shrank most, or else what the process did beside I/O."""
    gained = _median([trial.seconds for trial in default]) - _median([trial.seconds for trial in winner])
    for group in ("classes", "parts"):
        before, after = (_medians([getattr(trial, group) for trial in trials]) for trials in (default, winner))
        shrunk = {name: before[name] - after.get(name, 0.0) for name in before}
        name = max(shrunk, key=lambda shrunk_name: shrunk[shrunk_name])
        if shrunk[name] > _NOTEWORTHY * max(gained, 0.0) and shrunk[name] > 0:
            what = f"{name} of the slowest process" if group == "classes" else name
            return f"{what} shrank most: from {about_seconds(before[name])} to {about_seconds(after.get(name, 0.0))} of an epoch"
    return "no class of I/O, compute, decoding or stalls shrank"


def _medians(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: _median([of_trial.get(name, 0.0) for of_trial in values]) for name in values[0]}


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)
