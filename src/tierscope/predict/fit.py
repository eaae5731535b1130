"""Fit the rates of a system's stations to measured per-class, per-process times.

Nothing of what a study says about rates is looked at: `without_rates` takes it out first. What is fitted, as logarithms: for every
tier that was read from the rate of its metadata servers, of its object servers, and the latency of opens and reads outside
queues; for every tier that was written to (checkpoints, copies) the rate at which its servers write; where they are asked for (choosing.py) also the
credit of its servers, the bytes of an open among the reads, and the limit of a stream. METHOD: epoch times alone would fit as well and predict other
systems wrongly; per-class times do not. An operation's
own time and its bytes are told apart only where files of two sizes were read.
"""

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.predict.case import Case, simulated_busy
from tierscope.predict.descent import Descent
from tierscope.predict.outcome import FloatArray
from tierscope.predict.rates import (
    Parameter,
    Serving,
    Terms,
    apply,
    with_terms,
)
from tierscope.spec.study import System, Tier

_PROCESS_WEIGHT = 0.5
_CLASS_WEIGHT = (
    0.05  # of a class's own relative error, beside its share of the I/O time: small classes tell of their tier
)
_LEAST_CLASS = 1e-3  # of the I/O time: what is less has no weight of its own
_LATENCY_WEIGHT = 0.05  # of a latency's share of all I/O time: where waiting could be either, it is a queue's
_HARDLY = 0.2  # a variation of services that one throw of the dice is enough for to search; more throws for larger ones
FEW_THROWS, MANY_THROWS = 3, 12  # to search with, and to choose by
_THROWN_OPERATIONS = (
    600_000  # to choose by: of all throws together. The more operations there are, the less does one throw decide
)
_MANY_OPERATIONS = 50_000  # of all cases: so many are worth a thread for each core
_STRIDES = (0.5, 0.2, 0.07)  # of a logarithm, to walk from where derivatives lead no further
_ROUNDS_PER_STRIDE, _HARDLY_LESS = 3, 0.98
_LATENCY_STRIDE = 6.0  # times as long: latencies may be next to nothing
_EXCHANGED = (  # of a tier: what can stand in for one another, and the sign of the other's change
    ("bandwidth", "read_ops", -1),
    ("bandwidth", "latency", 1),
    ("write_bandwidth", "latency", 1),
    ("metadata_ops", "metadata_latency", 1),
    ("open_bytes", "metadata_latency", -1),
    ("bandwidth", "open_bytes", 1),
)
_OPEN_LATENCY = 0.4  # weight of an open's latency beside that of a read's: opens are trips more than queues
_OPEN_SHARE = 0.3  # weight of an open's bytes beside that of latencies: an open is small beside the file
_OUTLIER = 0.05  # of the I/O time: residuals above count less and less


@dataclass(frozen=True, slots=True)
class Fit:
    """`values` belong to `parameters`; `loss` is the root mean square residual, relative to the I/O time."""

    parameters: tuple[Parameter, ...]
    values: tuple[float, ...]
    loss: float
    sizes: tuple[float, ...]  # of the files that were read
    terms: Terms = Terms()  # what fits best

    @property
    def serving(self) -> Serving:
        """Of all tiers' servers."""
        return self.terms.serving

    def system(self, system: System) -> System:
        return apply(with_terms(system, self.terms), self.parameters, self.values)


class FitProblem:
    """Residuals of cases as a function of the parameters' logarithms."""

    def __init__(
        self,
        cases: Sequence[Case],
        parameters: Sequence[Parameter],
        weights: Sequence[FloatArray] | None = None,
        throws: int | None = None,
    ) -> None:
        """`weights`: of each case's ranks, for a bootstrap. `throws`: of the dice; None: as few as will do to search."""
        self.cases, self.parameters, self._throws = tuple(cases), tuple(parameters), throws
        weights = weights or [np.ones(len(case.busy)) for case in cases]
        self._weighted = [_WeightedCase.of(case, some) for case, some in zip(cases, weights, strict=True)]
        self._per_second = self._latency_shares()

    def _latency_shares(self) -> dict[int, float]:
        """By a latency's place: the share of all I/O time that each second of it would take, at most; by that of an open's bytes, of a file's."""
        names = [tier.name for tier in self.cases[0].study.system.tiers]
        busy = sum(case.busy.sum(axis=0) for case in self.cases)
        shares = {}
        for place, parameter in enumerate(self.parameters):
            if parameter.key.endswith("latency"):
                kind = 0 if parameter.key.startswith("metadata") else 1
                own = busy[names.index(parameter.tier)]
                share = float((own[1:].sum() if kind else own[0]) / busy.sum()) / parameter.high
                shares[place] = share * (1.0 if kind else _OPEN_LATENCY)
            elif parameter.key == "open_bytes":
                shares[place] = _OPEN_SHARE / max(case.reading.sample_bytes for case in self.cases)
        return shares

    def residuals(self, logs: FloatArray) -> FloatArray:
        return np.concatenate(list(self._residuals(logs)))

    def _residuals(self, logs: FloatArray) -> Iterator[FloatArray]:
        """Of one case after another, then of latencies."""
        values = np.exp(logs)
        for number, weighted in enumerate(self._weighted):
            yield self._of_case(weighted, values, number)
        yield self._latencies(values)

    def _latencies(self, values: FloatArray) -> FloatArray:
        shares = [value * self._per_second[place] for place, value in enumerate(values) if place in self._per_second]
        return _LATENCY_WEIGHT * math.sqrt(len(self.cases)) * np.array(shares)

    def _of_case(self, weighted: "_WeightedCase", values: FloatArray, number: int) -> FloatArray:
        """The same dice for the same case, whatever the parameters; other dice for every case, or their luck would be fitted too."""
        case = weighted.case
        system = apply(case.study.system, self.parameters, values.tolist())
        throws = self._throws_for(system)
        outcomes = [simulated_busy(case, system, number * MANY_THROWS + throw, throw) for throw in range(throws)]
        longest = float(np.mean([busy.sum(axis=(1, 2)).max() for busy in outcomes]))
        difference = (np.mean(outcomes, axis=0) - case.busy) / weighted.scale
        classes = (difference * weighted.weights[:, None, None]).sum(axis=0) / weighted.weights.sum()
        own = difference.sum(axis=(1, 2)) * weighted.roots
        slowest = case.slowest_weight * (longest - weighted.longest) / weighted.scale
        relative = _CLASS_WEIGHT * classes / weighted.shares
        return np.concatenate((classes.reshape(-1), [slowest], _PROCESS_WEIGHT * own, relative.reshape(-1)))

    def _throws_for(self, system: System) -> int:
        """Where nothing varies, only the order in which ranks start is chance."""
        least = FEW_THROWS if any(map(_needs_throws, system.tiers)) else 1
        if self._throws is None:
            return least
        varies = any(tier.service_variation or tier.layout == "hash" for tier in system.tiers)
        return max(least, self._throws if varies else min(self._throws, FEW_THROWS))

    @property
    def descent(self) -> Descent:
        return self.descent_with()

    def descent_with(self, fixed: Sequence[int] = ()) -> Descent:
        low, high = (np.log([getattr(parameter, end) for parameter in self.parameters]) for end in ("low", "high"))
        workers = len(os.sched_getaffinity(0)) if _operations(self.cases) > _MANY_OPERATIONS else 1
        return Descent(lambda logs: softened(self.residuals(logs)), low, high, fixed, workers)

    @property
    def rows(self) -> list[slice]:
        """Of the residuals, those of each case; those of latencies are behind them."""
        ends = np.cumsum([0, *(weighted.residuals for weighted in self._weighted)]).tolist()
        return [slice(first, end) for first, end in itertools.pairwise(ends)]

    @property
    def observations(self) -> int:
        """Numbers that were measured: classes of a case, its slowest process, and how processes differ."""
        return sum(int((case.busy.sum(axis=0) > 0).sum()) + 2 for case in self.cases)

    def polish(self, logs: FloatArray, strides: Sequence[float] = _STRIDES) -> tuple[FloatArray, float]:
        """Downhill from there, one direction after another with shorter and shorter strides; the best found, and its loss.

        The order of events makes the residuals rough: where differences of close points say nothing, a stride still does.
        """
        low, high = (np.log([getattr(parameter, end) for parameter in self.parameters]) for end in ("low", "high"))
        best, least = logs, self.loss(logs)
        directions = self._directions()
        for stride in strides:
            for _ in range(_ROUNDS_PER_STRIDE):
                before = least
                for direction in directions:
                    for step in (stride, -stride):
                        moved = np.clip(best + step * direction, low, high)
                        loss = self.loss(moved, unless=least)
                        if loss < least:
                            best, least = moved, loss
                            break
                if least > _HARDLY_LESS * before:
                    break
        return best, least

    def _directions(self) -> list[FloatArray]:
        """Every parameter by itself; and pairs of a tier that can stand in for one another."""
        lengths = [1.0 if parameter.is_rate else _LATENCY_STRIDE for parameter in self.parameters]
        directions = [length * axis for length, axis in zip(lengths, np.eye(len(lengths)), strict=True)]
        places = {(parameter.tier, parameter.key): place for place, parameter in enumerate(self.parameters)}
        for tier in dict.fromkeys(parameter.tier for parameter in self.parameters):
            for key, other, sign in _EXCHANGED:
                if (tier, key) in places and (tier, other) in places:
                    directions.append(directions[places[tier, key]] + sign * directions[places[tier, other]])
        return directions

    def loss(self, logs: FloatArray, unless: float = math.inf) -> float:
        """Root mean square residual. `unless`: it is more than this; then infinite, as soon as the first cases tell."""
        count = sum(case.residuals for case in self._weighted) + len(self._per_second)
        most, squares, parts = unless**2 * count * (1 + 1e-9), 0.0, list[FloatArray]()
        for part in self._residuals(logs):
            parts.append(part)
            squares += float(part @ part)
            if squares > most:
                return math.inf
        return float(np.sqrt(np.mean(np.concatenate(parts) ** 2)))

    def misfit(self, logs: FloatArray) -> float:
        """Root mean square residual of what was measured alone: what is likelier of two fits that are as good does not count."""
        residuals = np.concatenate(
            [self._of_case(weighted_case, np.exp(logs), n) for n, weighted_case in enumerate(self._weighted)]
        )
        return float(np.sqrt(np.mean(residuals**2)))


def _needs_throws(tier: Tier) -> bool:
    return tier.service_variation > _HARDLY or tier.layout == "hash"


def many_throws(cases: Sequence[Case]) -> int:
    """As many as make one lucky throw count for little: of a fit, and of the order in which ranks happen to start."""
    return max(1, min(MANY_THROWS, _THROWN_OPERATIONS // max(1, _operations(cases))))


def _operations(cases: Sequence[Case]) -> int:
    return sum(case.schedule.files.size * (1 + len(case.reading.pieces)) for case in cases)


def softened(residuals: FloatArray) -> FloatArray:
    """Large ones count less: a single epoch that something disturbed must not decide."""
    soft: FloatArray = np.sign(residuals) * _OUTLIER * np.sqrt(2 * (np.sqrt(1 + np.square(residuals / _OUTLIER)) - 1))
    return soft


@dataclass(frozen=True, slots=True)
class _WeightedCase:
    """A case with what its residuals are relative to."""

    case: Case
    weights: FloatArray
    scale: float
    longest: float
    roots: FloatArray
    shares: FloatArray  # of the I/O time, by (tier, kind)

    @classmethod
    def of(cls, case: Case, weights: FloatArray) -> "_WeightedCase":
        io = case.io
        scale = float(np.average(io, weights=weights))
        shares = np.maximum(np.average(case.busy, axis=0, weights=weights) / scale, _LEAST_CLASS)
        return cls(case, weights, scale, float(io.max()), np.sqrt(weights / weights.sum()), shares)

    @property
    def residuals(self) -> int:
        """How many there are: of classes, of the slowest process, of every process, and of classes by themselves."""
        ranks, tiers, kinds = self.case.busy.shape
        return int(2 * tiers * kinds + 1 + ranks)
