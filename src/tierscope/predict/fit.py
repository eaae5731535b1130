"""Fit the rates of a system's stations to measured per-class, per-process times.

Nothing of what a study says about rates is looked at: `without_rates` takes it out first. What is fitted, as logarithms: for every
tier that was read from the rate of its metadata servers, of its object servers, and the latency of opens and reads outside
queues. METHOD: epoch times alone would fit as well and predict other systems wrongly; per-class times do not. An operation's
own time and its bytes are told apart only where files of two sizes were read.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.plan.reading import Reading
from tierscope.plan.stations import stations_of
from tierscope.predict import bound, events
from tierscope.predict.outcome import FloatArray, Outcome
from tierscope.predict.rates import (
    LEAST_LATENCY,
    PLAIN,
    Parameter,
    Serving,
    apply,
    with_serving,
)
from tierscope.predict.schedule import Schedule
from tierscope.predict.solving import STARTS, UNNOTICED, FitStart, least_squares
from tierscope.spec.study import Study, System, Tier

_SLOWEST_WEIGHT = 1.0
_PROCESS_WEIGHT = 0.5
_LATENCY_WEIGHT = 0.05  # of a latency's share of an operation: where waiting could be either, it is a queue's
_CLEARLY = 0.9  # of the plain servers' loss: then others are taken
_HARDLY = 0.2  # a variation of services that one throw of the dice is enough for; more throws for larger ones,
_FEW_THROWS, _MANY_THROWS = 3, 12  # to search with, and to choose by
_STEP = 2e-2  # of a logarithm, for differences: smaller ones drown in the order of events
_FIRST_ROUNDS = 15
_GOOD = 0.005  # a loss that leaves nothing to be explained
_NO_HOPE = 1.3  # times the loss to beat
_STRIDES = (0.5, 0.2, 0.07, 0.02)  # of a logarithm, to walk from where derivatives lead no further
_LONG_STRIDES = _STRIDES[:2]
_ROUNDS_PER_STRIDE = 3
_EXCHANGED = (  # of a tier: what can stand in for one another, and the sign of the other's change
    ("bandwidth", "read_ops", -1),
    ("bandwidth", "latency", 1),
    ("metadata_ops", "metadata_latency", 1),
)
_LATENCY_STRIDE = 6.0  # times as long: latencies may be next to nothing
# What else is tried. Sharing needs some variation: with none at all, those who came together would stay together for ever.
OTHERS_TRIED = (Serving("fifo", 0.7), Serving("fifo", 1.5), Serving("sharing", 0.1), Serving("sharing", 1.0))


@dataclass(frozen=True, slots=True)
class Case:
    """One measured epoch: what was read, and the busy seconds of every (rank, tier, kind: open, read)."""

    study: Study  # without rates
    reading: Reading
    schedule: Schedule
    busy: FloatArray
    beside: float = 0.0  # seconds of a rank per sample that are no I/O
    name: str = ""
    point: str = ""  # of the study, however it was reached: what is left out together
    sweep: SweepValues = field(default_factory=dict)

    @property
    def io(self) -> FloatArray:
        found: FloatArray = self.busy.sum(axis=(1, 2))
        return found


@dataclass(frozen=True, slots=True)
class Fit:
    """`values` belong to `parameters`; `loss` is the root mean square residual, relative to the I/O time."""

    parameters: tuple[Parameter, ...]
    values: tuple[float, ...]
    loss: float
    sizes: tuple[float, ...]  # of the files that were read
    serving: Serving = PLAIN  # of all tiers' servers: what fits best

    def system(self, system: System) -> System:
        return apply(with_serving(system, self.serving), self.parameters, self.values)


def served(cases: Sequence[Case], serving: Serving) -> list[Case]:
    """The same epochs, to be simulated with servers that serve so."""
    return [replace(case, study=replace(case.study, system=with_serving(case.study.system, serving))) for case in cases]


def parameters_of(cases: Sequence[Case]) -> tuple[Parameter, ...]:
    """What these measurements may tell, with guesses from what was served at most."""
    found: list[Parameter] = []
    sizes = {case.reading.sample_bytes / len(case.reading.pieces) for case in cases}
    tiers = cases[0].study.system.tiers
    for number, tier in enumerate(tiers):
        counts = [(case, events.counted(case.schedule, len(tiers), case.reading)) for case in cases]
        opened = [(case, float(ops[:, number, 0].sum())) for case, (ops, _) in counts if ops[:, number, 0].any()]
        if not opened:
            continue
        servers = [_servers(case.study, case.study.system.tiers[number]) for case, _ in opened]
        rate = max(
            ops / float(case.io.max()) / places for (case, ops), (places, _) in zip(opened, servers, strict=True)
        )
        waits = [float(case.busy[:, number, 0].sum()) / ops for case, ops in opened]
        found.append(Parameter(tier.name, "metadata_ops", 1.3 * rate, rate / 20, rate * 1e5))
        found.append(_latency(tier.name, "metadata_latency", min(waits)))
        moved = max(
            float(nbytes[:, number, 1].sum()) / float(case.io.max()) / places
            for (case, (_, nbytes)), (_, places) in zip(
                [pair for pair in counts if pair[1][1][:, number, 1].any()], servers, strict=True
            )
        )
        found.append(Parameter(tier.name, "bandwidth", 1.3 * moved, moved / 20, moved * 1e5))
        if len(sizes) > 1:
            found.append(Parameter(tier.name, "read_ops", UNNOTICED * rate, rate / 20, rate * 1e6))
        reads = [float(case.busy[:, number, 1].sum()) / ops for case, ops in opened]
        found.append(_latency(tier.name, "latency", min(reads)))
    return tuple(found)


def _servers(study: Study, tier: Tier) -> tuple[int, int]:
    """Metadata servers and object servers of a tier in all."""
    nodes = study.system.nodes
    shared_by = tier.device_shared_by or (1 if tier.visible_to == "node" else nodes)
    devices = -(-nodes // shared_by)
    return devices * tier.metadata_servers, devices * tier.servers


def _latency(tier: str, key: str, seconds: float) -> Parameter:
    most = max(seconds, 10 * LEAST_LATENCY)
    return Parameter(tier, key, max(2 * LEAST_LATENCY, most / 10), LEAST_LATENCY, most)


def simulate(case: Case, system: System, seed: int = 0) -> Outcome:
    """The case on a system; servers of their own luck, not of the study's seed."""
    study = replace(case.study, system=replace(system, process_overhead=case.beside))
    stations = stations_of(study.system, seed)
    if _has_numba():
        return events.simulate(study, stations, case.reading, case.schedule, events.EventOptions(seed=seed))
    return bound.simulate(study, stations, case.reading, case.schedule)


def _busy(case: Case, system: System, seed: int) -> FloatArray:
    """Of `simulate`, the busy seconds alone."""
    if not _has_numba():
        return simulate(case, system, seed).busy
    study = replace(case.study, system=replace(system, process_overhead=case.beside))
    options = events.EventOptions(seed=seed)
    busy: FloatArray = events.times(study, stations_of(system, seed), case.reading, case.schedule, options).busy
    return busy


def _has_numba() -> bool:
    try:
        events.engine()
    except UserError:
        return False
    return True


class FitProblem:
    """Residuals of cases as a function of the parameters' logarithms."""

    def __init__(
        self,
        cases: Sequence[Case],
        parameters: Sequence[Parameter],
        weights: Sequence[FloatArray] | None = None,
        throws: int = _FEW_THROWS,
    ) -> None:
        """`weights`: of each case's ranks, for a bootstrap. `throws`: of the dice, where services vary."""
        self.cases, self.parameters, self._throws = tuple(cases), tuple(parameters), throws
        weights = weights or [np.ones(len(case.busy)) for case in cases]
        self._weighted = [_WeightedCase.of(case, some) for case, some in zip(cases, weights, strict=True)]

    def residuals(self, logs: FloatArray) -> FloatArray:
        return np.concatenate(list(self._residuals(logs)))

    def _residuals(self, logs: FloatArray) -> Iterator[FloatArray]:
        """Of one case after another, then of the latencies."""
        values = np.exp(logs)
        for number, weighted in enumerate(self._weighted):
            yield self._of_case(weighted, values, number)
        yield self._latencies(values)

    def _latencies(self, values: FloatArray) -> FloatArray:
        most = np.array([each.high for each in self.parameters])
        shares = [
            value / top for each, value, top in zip(self.parameters, values, most, strict=True) if not each.is_rate
        ]
        return _LATENCY_WEIGHT * math.sqrt(len(self.cases)) * np.array(shares)

    def _of_case(self, weighted: "_WeightedCase", values: FloatArray, number: int) -> FloatArray:
        """The same dice for the same case, whatever the parameters; other dice for every case, or their luck would be fitted too."""
        case = weighted.case
        system = apply(case.study.system, self.parameters, values.tolist())
        throws = self._throws if any(tier.service_variation > _HARDLY for tier in system.tiers) else 1
        outcomes = [_busy(case, system, seed=number * _MANY_THROWS + throw) for throw in range(throws)]
        longest = float(np.mean([busy.sum(axis=(1, 2)).max() for busy in outcomes]))
        difference = (np.mean(outcomes, axis=0) - case.busy) / weighted.scale
        classes = (difference * weighted.weights[:, None, None]).sum(axis=0) / weighted.weights.sum()
        own = difference.sum(axis=(1, 2)) * weighted.roots
        slowest = (longest - weighted.longest) / weighted.scale
        return np.concatenate((classes.reshape(-1), [_SLOWEST_WEIGHT * slowest], _PROCESS_WEIGHT * own))

    def solve(self, start: FloatArray, rounds: int = 40, fixed: Sequence[int] = ()) -> tuple[FloatArray, float]:
        """The best parameters near a start (logarithms), and their loss; those that are fixed stay."""
        solver = least_squares()
        free = [number for number in range(len(start)) if number not in fixed]
        low = np.log([self.parameters[number].low for number in free])
        high = np.log([self.parameters[number].high for number in free])

        def residuals(some: FloatArray) -> FloatArray:
            logs = start.copy()
            logs[free] = some
            return self.residuals(logs)

        begin = np.clip(start[free], low + 1e-9, high - 1e-9)
        solved = solver(
            residuals, begin, bounds=(low, high), loss="soft_l1", f_scale=0.05, diff_step=_STEP, max_nfev=rounds
        )
        logs = start.copy()
        logs[free] = solved.x
        return logs, self.loss(logs)

    def polish(self, logs: FloatArray, strides: Sequence[float] = _STRIDES) -> tuple[FloatArray, float]:
        """Downhill from there, one direction after another with shorter and shorter strides; the best found, and its loss.

        The order of events makes the residuals rough: where differences of close points say nothing, a stride still does.
        """
        low = np.log([each.low for each in self.parameters])
        high = np.log([each.high for each in self.parameters])
        best, least = logs, self.loss(logs)
        directions = self._directions()
        for stride in strides:
            for _ in range(_ROUNDS_PER_STRIDE):
                before = least
                for direction in directions:
                    for step in (stride, -stride):
                        moved = np.clip(best + step * direction, low, high)
                        found = self.loss(moved, unless=least)
                        if found < least:
                            best, least = moved, found
                            break
                if least == before:
                    break
        return best, least

    def _directions(self) -> list[FloatArray]:
        """Every parameter by itself; and pairs of a tier that can stand in for one another."""
        lengths = [1.0 if each.is_rate else _LATENCY_STRIDE for each in self.parameters]
        found = [length * axis for length, axis in zip(lengths, np.eye(len(lengths)), strict=True)]
        places = {(each.tier, each.key): place for place, each in enumerate(self.parameters)}
        for tier in dict.fromkeys(each.tier for each in self.parameters):
            for one, other, sign in _EXCHANGED:
                if (tier, one) in places and (tier, other) in places:
                    found.append(found[places[tier, one]] + sign * found[places[tier, other]])
        return found

    def loss(self, logs: FloatArray, unless: float = math.inf) -> float:
        """`unless`: it is clearly more than this; then infinite, as soon as the first cases tell."""
        count = sum(case.residuals for case in self._weighted) + sum(not each.is_rate for each in self.parameters)
        most, squares, found = unless**2 * count * (1 + 1e-9), 0.0, list[FloatArray]()
        for part in self._residuals(logs):
            found.append(part)
            squares += float(part @ part)
            if squares > most:
                return math.inf
        return float(np.sqrt(np.mean(np.concatenate(found) ** 2)))


@dataclass(frozen=True, slots=True)
class _WeightedCase:
    """A case with what its residuals are relative to."""

    case: Case
    weights: FloatArray
    scale: float
    longest: float
    roots: FloatArray

    @classmethod
    def of(cls, case: Case, weights: FloatArray) -> "_WeightedCase":
        io = case.io
        return cls(
            case, weights, float(np.average(io, weights=weights)), float(io.max()), np.sqrt(weights / weights.sum())
        )

    @property
    def residuals(self) -> int:
        """How many there are: of classes, of the slowest process, of every process."""
        ranks, tiers, kinds = self.case.busy.shape
        return int(tiers * kinds + 1 + ranks)


def fit(cases: Sequence[Case], starts: Sequence[FitStart] = STARTS, servings: Sequence[Serving] | None = None) -> Fit:
    """The first way of serving is taken unless another fits clearly better; None: plain servers, and all others that are tried."""
    servings = (PLAIN, *OTHERS_TRIED) if servings is None else servings
    parameters = parameters_of(cases)
    if any(each.key == "read_ops" for each in parameters):
        starts = (*starts, *(replace(start, by_operation=True) for start in starts))
    (logs, loss), chosen = _fit_served(cases, parameters, servings[0], starts), servings[0]
    enough = _CLEARLY * loss
    others = servings[1:] if loss > _GOOD and _has_numba() else ()  # mean values cannot tell them apart
    for other in others:
        found = _fit_served(cases, parameters, other, starts, unless=_NO_HOPE * min(loss, enough))
        if found[1] < min(loss, enough):
            (logs, loss), chosen = found, other
    sizes = tuple(sorted({case.reading.sample_bytes / len(case.reading.pieces) for case in cases}))
    return Fit(parameters, tuple(np.exp(logs).tolist()), loss, sizes, chosen)


def _fit_served(
    cases: Sequence[Case],
    parameters: Sequence[Parameter],
    serving: Serving,
    starts: Sequence[FitStart],
    unless: float = math.inf,
) -> tuple[FloatArray, float]:
    """From every start with long strides; on from the best two with short ones, and many throws of the dice where services vary.

    `unless`: its loss is more than this with few throws.
    """
    cases = served(cases, serving)
    problem = FitProblem(cases, parameters)
    first = [problem.solve(start.of(parameters), _FIRST_ROUNDS)[0] for start in starts]
    tries = sorted((problem.polish(logs, _LONG_STRIDES) for logs in first), key=lambda found: found[1])
    if tries[0][1] > unless:
        return tries[0]
    if serving.variation > _HARDLY:
        problem = FitProblem(cases, parameters, throws=_MANY_THROWS)
    return min((problem.polish(logs) for logs, _ in tries[:2]), key=lambda found: found[1])
