"""From result directories to a calibrated system: what was measured, without what was configured."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tierscope.analysis.breakdown import counted_epochs, sweep_text
from tierscope.errors import UserError
from tierscope.output.durable import writing_named
from tierscope.output.result import read_study, refuse_other_runs
from tierscope.output.store import RunStore
from tierscope.plan.plan import Plan
from tierscope.plan.reading import reading_of
from tierscope.predict.calibrate import Calibration, calibrate, work
from tierscope.predict.fit import Case
from tierscope.predict.propose import Proposal, propose
from tierscope.predict.rates import NO_RATES, RATES, without_rates
from tierscope.predict.schedule import lay_out
from tierscope.spec import sweep
from tierscope.spec.dump import identity
from tierscope.spec.figures import KnownFigure, numbers
from tierscope.spec.known import KnownSystem, dump_system, within_limits
from tierscope.spec.study import Study
from tierscope.trace.description import Simulated
from tierscope.trace.ops import CATEGORY
from tierscope.trace.trace import Trace
from tierscope.units import counted
from tierscope.watch import Watch

MOST_CASES = 200
MOST_OPERATIONS = 20_000_000  # of all cases together: a fit simulates them some thousand times
_LEAST_CASES = 2
_PLACES = {"META": 0, "READ": 1}


@dataclass(frozen=True, slots=True)
class MeasuredCases:
    """Cases of all directories, and the study of the first: its shape is what a calibrated system takes over."""

    cases: tuple[Case, ...]
    study: Study
    simulated: bool  # some of it was

    @property
    def to_fit(self) -> tuple[Case, ...]:
        """Evenly over all, and not more than a fit can take: more do not tell more."""
        largest = max(case.schedule.files.size * (1 + len(case.reading.pieces)) for case in self.cases)
        most = min(MOST_CASES, max(_LEAST_CASES, MOST_OPERATIONS // largest))
        if len(self.cases) <= most:
            return self.cases
        return tuple(self.cases[place] for place in np.linspace(0, len(self.cases) - 1, most).astype(int))


def cases_of(outs: Sequence[str], stores: Mapping[str, RunStore] | None = None) -> MeasuredCases:
    """Every counted epoch of every run. Rates that a study configures are removed before anything looks. `stores`: of results that were read before."""
    cases: list[Case] = []
    first: Study | None = None
    simulated = False
    _refuse_what_is_no_result(outs)
    for out in outs:
        study = read_study(out)
        _refuse_swept_rates(study, out)
        first = first or study
        _refuse_other_tiers(first, study, out)
        store = (stores or {}).get(out) or RunStore(out)
        if not store.finished():
            raise UserError(f"{out}: no run is finished yet; run the study first")
        refuse_other_runs(study, store)
        points = {point.index: point.study for point in sweep.points(study)}
        for trace in store.load_all():
            simulated |= isinstance(trace.about, Simulated)
            cases += _cases(trace, points[trace.key.point], out if len(outs) > 1 else "")
    if first is None:
        raise UserError("no result is named; give the --out of earlier runs")
    return MeasuredCases(tuple(cases), replace(first, system=without_rates(first.system)), simulated)


def _refuse_what_is_no_result(outs: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for out in outs:
        if os.path.exists(out) and not os.path.isdir(out):
            raise UserError(
                f"{out}: is a file; the model needs to know who read what: give the --out of a 'tierscope run'"
            )
        place = os.path.realpath(out)
        if place in seen:
            raise UserError(f"{out}: is the same result as {seen[place]}; give it once")
        seen[place] = out


def _refuse_swept_rates(study: Study, out: str) -> None:
    """One system is fitted: its rates cannot differ from point to point."""
    for path in study.changing:
        key = path.rpartition(".")[2]
        if path.startswith("system.") and key in (*RATES, *NO_RATES, "discipline", "process_overhead"):
            by = "sweep changes" if any(axis.path == path for axis in study.sweep) else "cases change"
            raise UserError(f"{out}: its {by} {path}, which is what is fitted; give results of one system")
    if study.placement.policy != "pinned" or "placement.policy" in study.changing:
        raise UserError(f"{out}: placement.policy is not pinned; rates are fitted to runs with pinned files only")


def _refuse_other_tiers(first: Study, study: Study, out: str) -> None:
    names, others = ([tier.name for tier in each.system.tiers] for each in (first, study))
    if names != others:
        raise UserError(
            f"{out}: has the tiers {', '.join(others)}, the first result {', '.join(names)}; give results of one system"
        )


def _cases(trace: Trace, study: Study, out: str) -> list[Case]:
    bare = replace(study, system=without_rates(study.system))
    reading = reading_of(study)
    plan = Plan.of(bare, reading.file_bytes)
    values = dict(trace.about.sweep)
    where = sweep_text(values)
    name = f"{out}: {where}" if out else where
    ranks = trace.ranks
    found = []
    for epoch in sorted(counted_epochs(ranks["epoch"].to_list())):
        busy = _busy(trace, study, epoch)
        if not busy.any():
            raise UserError(
                f"{name or 'a run'}: its I/O took no time in epoch {epoch}, and rates cannot be fitted to that; give results of real reads"
            )
        beside = _beside(ranks.filter(pl.col("epoch") == epoch), busy, study)
        found.append(
            Case(bare, reading, lay_out(bare, plan, epoch), busy, beside, name=name, point=identity(bare), sweep=values)
        )
    return found


def _busy(trace: Trace, study: Study, epoch: int) -> Any:
    tiers = {tier.name: number for number, tier in enumerate(study.system.tiers)}
    busy = np.zeros((study.system.ranks, len(tiers), 2))
    rows = trace.io.filter(pl.col("epoch") == epoch).select("rank", "tier", "kind", "busy_seconds")
    for rank, tier, kind, seconds in rows.iter_rows():
        place = _PLACES.get(CATEGORY[kind])
        if place is not None and rank is not None:
            busy[rank, tiers[tier], place] += seconds
    return busy


def _beside(ranks: pl.DataFrame, busy: Any, study: Study) -> float:
    """Seconds per sample that a rank spent on neither I/O nor waiting for compute; where threads overlap, unknown: nothing."""
    reader, train = study.workload.reader, study.workload.train
    if reader.read_threads > 1 or train.computation_time or ranks["epoch_seconds"].null_count():
        return 0.0
    ordered = ranks.sort("rank")
    rest = ordered["epoch_seconds"].to_numpy() - busy.sum(axis=(1, 2))
    return max(0.0, float(np.median(rest / np.maximum(1, ordered["samples"].to_numpy()))))


@dataclass(frozen=True, slots=True)
class Calibrated:
    name: str
    study: Study  # without rates
    calibration: Calibration
    proposals: tuple[Proposal, ...]
    epochs: int


def calibrate_results(outs: Sequence[str], watch: Watch) -> Calibrated:
    measured = cases_of(outs)
    if measured.simulated:
        watch.note("some of these results are simulated: what is fitted to them is the model itself")
    cases = measured.to_fit
    watch.phase("calibrating", work(cases), "fits")
    found = calibrate(cases, watch.advance)
    proposals = propose(cases, found)
    return Calibrated(measured.study.study, measured.study, found, proposals, len(cases))


def write_system(found: Calibrated, path: str) -> None:
    """As `--system` takes it: fitted rates, how far they may be off, and draws of them together."""
    system = found.calibration.system(found.study.system)
    parameters = found.calibration.fit.parameters
    text = f"to {counted(found.epochs, 'epoch')} of {found.name}, by tierscope calibrate"
    figures: dict[str, KnownFigure] = {}
    values = numbers(system)
    for each in found.calibration.estimates:
        value = values[each.parameter.path]
        if value:
            figures[each.parameter.path] = KnownFigure(
                value, "fitted", text, min(each.low, value), each.high and max(each.high, value)
            )
    names = [parameter.path for parameter in parameters]
    draws = [
        {name: value for name, value in zip(names, draw, strict=True) if name in figures}
        for draw in found.calibration.draws
    ]
    known = within_limits(KnownSystem(found.name, system, figures, tuple(draws)))
    try:
        with writing_named(path) as file:
            file.write(dump_system(known).encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; give another -o") from None
