"""A measured epoch that rates are fitted to: what was read and written, how long it took, and the same simulated."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.plan.reading import Reading
from tierscope.plan.stations import stations_of
from tierscope.predict import bound, events
from tierscope.predict.outcome import FloatArray, Outcome
from tierscope.predict.rates import Terms, with_terms
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study, System

_MOST_WEIGHT, _FEWEST_PAIRS = 3.0, 3
FITTED_POLICIES = ("pinned", "first-touch")  # who reads what from where is known from the plan alone


@dataclass(frozen=True, slots=True)
class Case:
    """One measured epoch: what was read and written, and the busy seconds of every (rank, tier, kind: open, read, write)."""

    study: Study  # without rates
    reading: Reading
    schedule: Schedule
    busy: FloatArray
    beside: float = 0.0  # seconds of a rank per sample that are no I/O
    name: str = ""
    point: str = ""  # of the study, however it was reached: what is left out together
    sweep: SweepValues = field(default_factory=dict)
    saving: events.Saving | None = None  # its checkpoints; None: none
    share: float = 1.0  # of an epoch: so much of what servers have to begin with is its own
    slowest_weight: float = 1.0  # of its slowest process, beside means over its processes

    @property
    def io(self) -> FloatArray:
        seconds: FloatArray = self.busy.sum(axis=(1, 2))
        return seconds


def with_terms_of(cases: Sequence[Case], terms: Terms) -> list[Case]:
    """The same epochs, to be simulated with servers that serve so."""
    return [replace(case, study=replace(case.study, system=with_terms(case.study.system, terms))) for case in cases]


def read_sizes(cases: Sequence[Case]) -> tuple[float, ...]:
    """Mean bytes of a read, of every dataset."""
    return tuple(sorted({case.reading.read_bytes for case in cases}))


def simulate(case: Case, system: System, seed: int = 0) -> Outcome:
    """The case on a system; servers of their own luck, not of the study's seed."""
    study = replace(case.study, system=replace(system, process_overhead=case.beside))
    stations = stations_of(study.system, seed).with_stock(case.share)
    if has_numba():
        options = events.EventOptions(study.workload.train.sync == "step", seed)
        return events.simulate(study, stations, case.reading, case.schedule, options, case.saving)
    return bound.simulate(study, stations, case.reading, case.schedule, case.saving)


def with_slowest_weights(cases: Sequence[Case]) -> list[Case]:
    """Where the slowest process is nearer to itself from epoch to epoch than means over processes are, it counts for more: ranks that share a server unevenly end together all the same."""
    points: dict[str, list[Case]] = {}
    for case in cases:
        points.setdefault(case.point or case.name, []).append(case)
    pairs = [pair for epochs in points.values() for pair in itertools.pairwise(epochs)]
    slowest = _apart([(float(before.io.max()), float(after.io.max())) for before, after in pairs])
    mean = _apart([(float(before.io.mean()), float(after.io.mean())) for before, after in pairs])
    enough = len(pairs) >= _FEWEST_PAIRS
    weight = float(np.clip(mean / max(slowest, 1e-9), 1.0, _MOST_WEIGHT)) if enough else 1.0
    return [replace(case, slowest_weight=weight) for case in cases]


def _apart(pairs: Sequence[tuple[float, float]]) -> float:
    """Root mean square of the logarithms' differences."""
    logs = np.log(np.maximum(pairs, 1e-12)) if pairs else np.zeros((1, 2))
    return float(np.sqrt(np.mean(np.square(logs[:, 1] - logs[:, 0]))))


def simulated_busy(case: Case, system: System, seed: int, layout: int = 0) -> FloatArray:
    """Of `simulate`, the busy seconds alone. `layout`: how files at random lie on servers, of several ways."""
    if not has_numba():
        return simulate(case, system, seed).busy_classes
    study = replace(case.study, system=replace(system, process_overhead=case.beside))
    options = events.EventOptions(study.workload.train.sync == "step", seed)
    stations = stations_of(system, seed).with_stock(case.share)
    if layout:
        places = [place for place, tier in enumerate(stations.tiers) if tier.hashed]
        stations = stations.with_layouts(dict.fromkeys(places, 1 + layout))
    times = events.times(study, stations, case.reading, case.schedule, options, case.saving)
    busy: FloatArray = times.busy
    if times.saved is not None and case.saving is not None and not case.saving.plan.background:
        busy = busy + times.saved.busy[0, :, :, :3]
        busy[:, :, 2] += times.saved.busy[0, :, :, 3]
    return busy


def has_numba() -> bool:
    try:
        events.engine()
    except UserError:
        return False
    return True
