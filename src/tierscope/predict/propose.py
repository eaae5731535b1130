"""Which measurements would tell most: where systems that fit equally well disagree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.predict.calibrate import Calibration
from tierscope.predict.fit import Case, simulate
from tierscope.predict.rates import apply, with_serving
from tierscope.predict.schedule import lay_out
from tierscope.spec.study import Study

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
    found = [
        Proposal(f"cache rate {rate:.0%}", _spread(cases[0], replace_rate(study, rate), calibration))
        for rate in (0.0, _hand_over(cases[0], calibration), 1.0)
        if not any(abs(rate - other) < 0.03 for other in measured)
    ]
    found += [Proposal(what, _spread(cases[0], other, calibration)) for what, other in _other_shapes(study, cases)]
    ordered = sorted(found, key=lambda each: -(each.spread_percent if each.spread_percent is not None else np.inf))
    size = [
        Proposal("another file size: with one alone, an operation's own time and its bytes cannot be told apart", 0.0)
    ]
    return (*(size if calibration.one_size else ()), *ordered[:_MOST])


def replace_rate(study: Study, rate: float) -> Study:
    return replace(study, placement=replace(study.placement, cache_rate=rate))


def _other_shapes(study: Study, cases: Sequence[Case]) -> list[tuple[str, Study]]:
    """Another number of servers of the last tier, and of nodes, unless several were measured."""
    found: list[tuple[str, Study]] = []
    home = study.system.tiers[-1]
    if len({case.study.system.tiers[-1].servers for case in cases}) == 1:
        other = home.servers * _OTHER if home.servers == 1 else max(1, home.servers // _OTHER)
        tiers = (*study.system.tiers[:-1], replace(home, servers=other))
        found.append((f"{other} servers of {home.name}", replace(study, system=replace(study.system, tiers=tiers))))
    if len({case.study.system.nodes for case in cases}) == 1:
        nodes = study.system.nodes * 2
        if study.workload.dataset.samples >= nodes * study.system.ranks_per_node:
            found.append((f"{nodes} nodes", replace(study, system=replace(study.system, nodes=nodes))))
    return found


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
    least = [each.low if each.kind == "at_least" else each.value for each in calibration.estimates]
    values = [*calibration.draws[:_SYSTEMS], calibration.fit.values, tuple(least)]
    if not _all_read(study, calibration):
        return None
    times = [_seconds(case, study, calibration, some) for some in values]
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
    busy: Any = np.zeros((study.system.ranks, len(study.system.tiers), 2))
    other = Case(study, reading, lay_out(study, plan, 2), busy, case.beside)
    return float(
        simulate(
            other, apply(with_serving(study.system, calibration.fit.serving), calibration.fit.parameters, values)
        ).io.max()
    )
