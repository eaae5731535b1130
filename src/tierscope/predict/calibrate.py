"""From measured epochs to a system with fitted rates: how well each is known, what cannot be told, and what to measure next.

Intervals come from a bootstrap over epochs and process groups. A rate that could as well be sixteen times as high was not
determined: nobody waited for that station; it is given as "at least". How far predictions are from measurements that were left
out of the fit becomes the system's `model_error`, which intervals of later simulations carry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.predict.fit import Case, Fit, FitProblem, fit, served, simulate
from tierscope.predict.outcome import FloatArray
from tierscope.predict.rates import Parameter, Serving, apply, with_serving
from tierscope.spec.study import System

DRAWS = 24
SHARE = 0.9
MUCH = 16.0  # times a fitted rate: does it make a difference?
WORSE = 1.1  # times the loss of the fit that still is as good
_LEAST_LOSS = 0.002  # of the I/O time: what is closer than that cannot be told apart
_FEW_ROUNDS = 8
_LEAST_CASES = 2
_SEED = 7919


@dataclass(frozen=True, slots=True)
class FittedKey:
    """A fitted key. `kind`: fitted, or at_least: nothing is known above `low`, and `value` is no more than one that fits."""

    parameter: Parameter
    kind: str
    value: float
    low: float
    high: float | None
    sensitivity: float  # percent of the slowest I/O time, on average, for 10 % more of it


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that was predicted from a fit to all the others."""

    name: str
    measured_seconds: float
    predicted_seconds: float
    bottleneck_right: bool  # the predicted leading class is the measured one, or as good as: within a tenth

    @property
    def error(self) -> float:
        return self.predicted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True)
class Calibration:
    fit: Fit
    estimates: tuple[FittedKey, ...]
    draws: tuple[tuple[float, ...], ...]  # of all parameters together
    left_out: tuple[LeftOut, ...]
    model_error: float
    overhead: float
    one_size: bool

    def system(self, system: System) -> System:
        """With the fitted rates."""
        values = [each.value for each in self.estimates]
        fitted = apply(with_serving(system, self.fit.serving), self.fit.parameters, values)
        return replace(fitted, process_overhead=self.overhead, model_error=self.model_error)


def calibrate(cases: Sequence[Case], advance: Callable[[int], None] = lambda _: None) -> Calibration:
    """`advance` is told of every fit; there are `work(cases)` of them."""
    if len(cases) < _LEAST_CASES:
        raise UserError(
            "one epoch of one run is too little to calibrate on; measure at least cache rates 0 % and 100 %, two epochs each"
        )
    best = fit(cases)
    cases = served(cases, best.serving)
    advance(1)
    logs = np.log(best.values)
    problem = FitProblem(cases, best.parameters)
    draws = []
    for number in range(DRAWS):
        draws.append(_bootstrap(cases, best.parameters, logs, number))
        advance(1)
    estimates = tuple(_estimate(problem, best, logs, np.array(draws), place) for place in range(len(best.parameters)))
    advance(1)
    left_out = leave_one_out(cases, best.serving, advance)
    overhead = float(np.median([case.beside for case in cases]))
    values = tuple(tuple(_known(draw, estimates)) for draw in draws)
    return Calibration(
        best, estimates, values, left_out, _model_error(problem, logs, left_out), overhead, len(best.sizes) == 1
    )


def work(cases: Sequence[Case]) -> int:
    return DRAWS + 2 + len({_group(case) for case in cases})


def _group(case: Case) -> str:
    return case.point or case.name


def _known(draw: FloatArray, estimates: Sequence[FittedKey]) -> list[float]:
    """A draw of what was determined; the rest stays as it is."""
    return [
        each.value if each.kind == "at_least" else float(np.exp(value))
        for each, value in zip(estimates, draw, strict=True)
    ]


def _bootstrap(cases: Sequence[Case], parameters: Sequence[Parameter], logs: FloatArray, number: int) -> FloatArray:
    """Fitted again to epochs drawn anew within every point, and to nodes drawn anew within every epoch."""
    rng = np.random.default_rng((_SEED, number))
    by_point: dict[str, list[Case]] = {}
    for case in cases:
        by_point.setdefault(_group(case), []).append(case)
    chosen = [group[place] for group in by_point.values() for place in rng.integers(len(group), size=len(group))]
    weights = []
    for case in chosen:
        system = case.study.system
        times = np.bincount(rng.integers(system.nodes, size=system.nodes), minlength=system.nodes)
        weights.append(np.repeat(times, system.ranks_per_node).astype(np.float64))
    found, _ = FitProblem(chosen, parameters, weights).solve(logs, _FEW_ROUNDS)
    return found


def _estimate(problem: FitProblem, best: Fit, logs: FloatArray, draws: FloatArray, place: int) -> FittedKey:
    parameter = best.parameters[place]
    low, high = np.exp(np.quantile(draws[:, place], [(1 - SHARE) / 2, (1 + SHARE) / 2]))
    sensitivity = _sensitivity(problem, logs, place)
    value = best.values[place]
    low, high = min(float(low), value), max(float(high), value)
    if not parameter.is_rate:
        return FittedKey(parameter, "fitted", value, low, high, sensitivity)
    enough = max(best.loss, _LEAST_LOSS) * WORSE
    if _refitted(problem, logs, place, MUCH) > enough:
        return FittedKey(parameter, "fitted", value, low, high, sensitivity)
    least = value
    for factor in (1.5, 2.0, 3.0, 5.0, 10.0):
        if _refitted(problem, logs, place, 1 / factor) > enough:
            break
        least = value / factor
    return FittedKey(parameter, "at_least", value, least, None, sensitivity)


def _refitted(problem: FitProblem, logs: FloatArray, place: int, factor: float) -> float:
    """The loss with one parameter moved and all others fitted anew."""
    moved = logs.copy()
    moved[place] += np.log(factor)
    return problem.solve(moved, _FEW_ROUNDS, fixed=[place])[1]


def _sensitivity(problem: FitProblem, logs: FloatArray, place: int) -> float:
    more = logs.copy()
    more[place] += np.log(1.1)
    changes = []
    for case in problem.cases:
        before, after = (
            float(simulate(case, apply(case.study.system, problem.parameters, np.exp(some).tolist())).io.max())
            for some in (logs, more)
        )
        changes.append(100 * (after / before - 1))
    return float(np.mean(changes))


def leave_one_out(
    cases: Sequence[Case], serving: Serving, advance: Callable[[int], None] = lambda _: None
) -> tuple[LeftOut, ...]:
    """Each point predicted from a fit of rates to all the others; points that alone tell of a tier cannot be left out.

    How servers serve is the one thing that was chosen with all points in sight.
    """
    groups = list(dict.fromkeys(_group(case) for case in cases))
    everything = _tiers_seen(cases)
    found: list[LeftOut] = []
    for group in groups:
        rest = [case for case in cases if _group(case) != group]
        if len(rest) >= _LEAST_CASES and _tiers_seen(rest) == everything:
            fitted = fit(rest, servings=(serving,))
            for case in (case for case in cases if _group(case) == group):
                outcome = simulate(case, fitted.system(case.study.system))
                right = same_leader(case.busy[int(case.io.argmax())], outcome.busy[outcome.slowest])
                found.append(LeftOut(case.name, float(case.io.max()), float(outcome.io.max()), right))
        advance(1)
    return tuple(found)


def same_leader(measured: FloatArray, predicted: FloatArray) -> bool:
    """Whether the classes of two slowest processes have the same leader, unless the two largest measured ones are within a tenth."""
    first, second = np.sort(measured.reshape(-1))[::-1][:2]
    return bool(measured.argmax() == predicted.argmax()) or bool(first <= 1.1 * second)


def _tiers_seen(cases: Sequence[Case]) -> set[int]:
    return {int(tier) for case in cases for tier in np.unique(case.schedule.tiers)}


def _model_error(problem: FitProblem, logs: FloatArray, left_out: Sequence[LeftOut]) -> float:
    """Root mean square of the errors at points that were left out; of the fit itself where none could be."""
    if left_out:
        return float(np.sqrt(np.mean([each.error**2 for each in left_out])))
    errors = []
    for case in problem.cases:
        outcome = simulate(case, apply(case.study.system, problem.parameters, np.exp(logs).tolist()))
        errors.append(float(outcome.io.max()) / float(case.io.max()) - 1)
    return float(np.sqrt(np.mean(np.square(errors))))
