"""From result directories to a calibrated system: what was measured, without what was configured."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.output.durable import writing_named
from tierscope.output.result import read_study, refuse_other_runs
from tierscope.output.store import RunStore
from tierscope.predict.calibrate import Calibration, FitSoFar, calibrate, finished_early, work
from tierscope.predict.case import FITTED_POLICIES, Case, with_slowest_weights
from tierscope.predict.measured_cases import cases_of_run
from tierscope.predict.propose import Proposal, propose
from tierscope.predict.rates import NO_RATES, RATES, without_rates
from tierscope.signals import stopped_by
from tierscope.spec import sweep
from tierscope.spec.figures import KnownFigure, numbers
from tierscope.spec.known import KnownSystem, dump_system, within_limits
from tierscope.spec.study import Study
from tierscope.trace.description import Simulated
from tierscope.units import counted
from tierscope.watch import Watch

MOST_CASES = 200
MOST_OPERATIONS = 20_000_000  # of all cases together: a fit simulates them some thousand times
_LEAST_CASES = 2


@dataclass(frozen=True, slots=True)
class MeasuredCases:
    """Cases of all directories, and the study of the first: its shape is what a calibrated system takes over."""

    cases: tuple[Case, ...]
    study: Study
    simulated: bool  # some of it was

    @property
    def to_fit(self) -> tuple[Case, ...]:
        """With their weights; evenly over all, and not more than a fit can take: more do not tell more."""
        largest = max(case.schedule.files.size * (1 + len(case.reading.pieces)) for case in self.cases)
        most = min(MOST_CASES, max(_LEAST_CASES, MOST_OPERATIONS // largest))
        chosen = self.cases
        if len(self.cases) > most:
            chosen = tuple(self.cases[place] for place in np.linspace(0, len(self.cases) - 1, most).astype(int))
        return tuple(with_slowest_weights(chosen))


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
            raise UserError(f"{out}: no run has finished yet; run the study first")
        refuse_other_runs(study, store)
        points = {point.index: point.study for point in sweep.points(study)}
        for trace in store.load_all():
            simulated |= isinstance(trace.about, Simulated)
            cases += cases_of_run(trace, points[trace.key.point], out if len(outs) > 1 else "")
    if first is None:
        raise UserError("no result; name the --out of one or more runs")
    return MeasuredCases(tuple(cases), replace(first, system=without_rates(first.system)), simulated)


def _refuse_what_is_no_result(outs: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for out in outs:
        if os.path.exists(out) and not os.path.isdir(out):
            raise UserError(
                f"{out}: is a file; name the --out of 'tierscope run', or add --study for a table of measurements"
            )
        place = os.path.realpath(out)
        if place in seen:
            raise UserError(f"{out}: is the same result as {seen[place]}; remove one")
        seen[place] = out


def _refuse_swept_rates(study: Study, out: str) -> None:
    """One system is fitted: its rates cannot differ from point to point."""
    for path in study.changing:
        key = path.rpartition(".")[2]
        if path.startswith("system.") and key in (*RATES, *NO_RATES, "discipline", "process_overhead"):
            by = "sweep changes" if any(axis.path == path for axis in study.sweep) else "cases change"
            raise UserError(f"{out}: its {by} {path}, which is what is fitted; use results of one system")
    if study.placement.policy not in FITTED_POLICIES or "placement.policy" in study.changing:
        raise UserError(
            f"{out}: placement.policy is {study.placement.policy}, or varies; rates can only be fitted to runs with {' or '.join(FITTED_POLICIES)}"
        )


def _refuse_other_tiers(first: Study, study: Study, out: str) -> None:
    names, others = ([tier.name for tier in compared.system.tiers] for compared in (first, study))
    if names != others:
        raise UserError(
            f"{out}: has the tiers {', '.join(others)}, but the first result has {', '.join(names)}; use results of one system"
        )


@dataclass(frozen=True, slots=True)
class Calibrated:
    name: str
    study: Study  # without rates
    calibration: Calibration
    proposals: tuple[Proposal, ...]
    epochs: int
    stopped: str = ""  # by what it was interrupted: then it is the best fit until then

    @property
    def known(self) -> KnownSystem:
        """As `--system` takes it: fitted rates, how far they may be off, draws of them together, and what was measured."""
        return _known_system(self)


def calibrate_results(outs: Sequence[str], watch: Watch) -> Calibrated:
    measured = cases_of(outs)
    if measured.simulated:
        watch.note("some of these results are simulated: the fit only reproduces the model")
    cases = measured.to_fit
    watch.phase("calibrating", work(cases), "fits")
    so_far = FitSoFar()
    try:
        calibration = calibrate(cases, watch.advance, so_far)
    except KeyboardInterrupt as error:
        if so_far.fit is None:
            raise
        early = finished_early(cases, so_far.fit)
        return Calibrated(measured.study.study, measured.study, early, (), len(cases), stopped_by(error))
    proposals = propose(cases, calibration)
    return Calibrated(measured.study.study, measured.study, calibration, proposals, len(cases))


def _known_system(calibrated: Calibrated) -> KnownSystem:
    system = calibrated.calibration.system(calibrated.study.system)
    parameters = calibrated.calibration.fit.parameters
    text = f"to {counted(calibrated.epochs, 'epoch')} of {calibrated.name}, by tierscope calibrate"
    figures: dict[str, KnownFigure] = {}
    values = numbers(system)
    for estimate in calibrated.calibration.estimates:
        value = values[estimate.parameter.path]
        if value:
            figures[estimate.parameter.path] = KnownFigure(
                value, "fitted", text, min(estimate.low, value), estimate.high and max(estimate.high, value)
            )
    names = [parameter.path for parameter in parameters]
    draws = [
        {name: value for name, value in zip(names, draw, strict=True) if name in figures}
        for draw in calibrated.calibration.draws
    ]
    return within_limits(KnownSystem(calibrated.name, system, figures, tuple(draws), calibrated.calibration.measured))


def write_system(calibrated: Calibrated, path: str) -> None:
    write_known(calibrated.known, path)


def write_known(known: KnownSystem, path: str) -> None:
    try:
        with writing_named(path) as file:
            file.write(dump_system(known).encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another -o") from None
