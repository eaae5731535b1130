"""Which measurements would tell most: where systems that fit equally well disagree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.predict.calibrate import Calibration
from tierscope.predict.case import Case, simulate
from tierscope.predict.events import saving_of
from tierscope.predict.rates import apply, with_terms
from tierscope.predict.schedule import lay_out
from tierscope.spec.study import Study
from tierscope.units import counted

_SYSTEMS = 8
_MOST = 3
_OTHER = 4  # times the servers, the nodes, or the bytes of a file


@dataclass(frozen=True, slots=True)
class Proposal:
    """`spread_percent`: how far predictions for it are apart, of systems that fit what was measured."""

    what: str
    spread_percent: float | None  # None: nothing is known of it


def propose(cases: Sequence[Case], calibration: Calibration) -> tuple[Proposal, ...]:
    """The measurements that would help most, first the one where predictions differ most."""
    study = cases[0].study
    measured = {case.study.placement.cache_rate for case in cases}
    proposals = [
        Proposal(f"cache rate {rate:.0%}", _spread(cases[0], replace_rate(study, rate), calibration))
        for rate in (0.0, _hand_over(cases[0], calibration), 1.0)
        if not any(abs(rate - other) < 0.03 for other in measured)
    ]
    proposals += [Proposal(what, _spread(cases[0], other, calibration)) for what, other in _other_shapes(study, cases)]
    ordered = sorted(
        proposals, key=lambda proposal: -(proposal.spread_percent if proposal.spread_percent is not None else np.inf)
    )
    size = [
        Proposal("another file size: with only one, a server's time per read and per byte cannot be separated", 0.0)
    ]
    return (*(size if calibration.one_size else ()), *ordered[:_MOST])


def replace_rate(study: Study, rate: float) -> Study:
    return replace(study, placement=replace(study.placement, cache_rate=rate))


def _other_shapes(study: Study, cases: Sequence[Case]) -> list[tuple[str, Study]]:
    """Another number of servers of the last tier, and of nodes, unless several were measured."""
    shapes: list[tuple[str, Study]] = []
    home = study.system.tiers[-1]
    if len({case.study.system.tiers[-1].servers for case in cases}) == 1:
        other = home.servers * _OTHER if home.servers == 1 else max(1, home.servers // _OTHER)
        tiers = (*study.system.tiers[:-1], replace(home, servers=other))
        shapes.append(
            (f"{counted(other, 'server')} of {home.name}", replace(study, system=replace(study.system, tiers=tiers)))
        )
    if len({case.study.system.nodes for case in cases}) == 1:
        nodes = study.system.nodes * 2
        if study.workload.dataset.samples >= nodes * study.system.ranks_per_node:
            shapes.append((f"{nodes} nodes", replace(study, system=replace(study.system, nodes=nodes))))
    return shapes


def _hand_over(case: Case, calibration: Calibration) -> float:
    """The cache rate that the fitted system likes best: near it the bottleneck changes hands."""
    rates = np.linspace(0.1, 0.9, 9)
    if not _all_read(replace_rate(case.study, 0.5), calibration):
        return 0.5
    times = [
        _seconds(case, replace_rate(case.study, float(rate)), calibration, calibration.fit.values) for rate in rates
    ]
    return float(rates[int(np.argmin(times))])


def _spread(case: Case, study: Study, calibration: Calibration) -> float | None:
    """Of draws from the fit, and of rates that are only known to be at least something."""
    least = [estimate.low if estimate.kind == "at_least" else estimate.value for estimate in calibration.estimates]
    values = [*calibration.draws[:_SYSTEMS], calibration.fit.values, tuple(least)]
    if not _all_read(study, calibration):
        return None
    times = [_seconds(case, study, calibration, some) for some in values]
    if not min(times):
        return None
    return 100 * (max(times) / min(times) - 1)


def _all_read(study: Study, calibration: Calibration) -> bool:
    """Whether rates of every tier that the study would read from were fitted."""
    known = {parameter.tier for parameter in calibration.fit.parameters}
    rate, names = study.placement.cache_rate, [tier.name for tier in study.system.tiers]
    wanted = {*(names[:-1] if rate > 0 else []), *(names[-1:] if rate < 1 else [])}
    return wanted <= known


def _seconds(case: Case, study: Study, calibration: Calibration, values: Sequence[float]) -> float:
    reading: Reading = case.reading
    plan = Plan.of(study, reading.file_bytes)
    study = replace(study, placement=replace(study.placement, policy="pinned"))
    busy: Any = np.zeros((study.system.ranks, len(study.system.tiers), 3))
    schedule, saving = lay_out(study, plan, 2), saving_of(study, plan, 2)
    if not reading.pieces:  # samples are made in memory
        schedule = replace(schedule, opens=np.zeros_like(schedule.opens))
    other = Case(study, reading, schedule, busy, case.beside, saving=saving)
    return float(
        simulate(
            other, apply(with_terms(study.system, calibration.fit.terms), calibration.fit.parameters, values)
        ).io.max()
    )
