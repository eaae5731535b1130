"""From measured epochs to a system with fitted rates: how well each is known, what cannot be told, and what to measure next.

Intervals come from the fit's derivatives (linearised.py). A rate that could as well be sixteen times as high was not
determined: nobody waited for that station; it is given as "at least", and drawn up to ten times that. How far predictions are from measurements
between others that were left out becomes the system's `model_error`, which intervals of later simulations carry; leaving out a point at an
end says how far one can see beyond, and is kept apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.predict.case import Case, read_sizes, simulate, with_terms_of
from tierscope.predict.choosing import MOST_TRIES, fit, sketched
from tierscope.predict.descent import Descended
from tierscope.predict.fit import Fit, FitProblem, many_throws, softened
from tierscope.predict.freedom import Freedom
from tierscope.predict.linearised import Linearised
from tierscope.predict.outcome import FloatArray
from tierscope.predict.rates import LEAST_LATENCY, NEGLIGIBLE, Parameter, apply, consistent, with_terms
from tierscope.predict.spread import DEVIATIONS
from tierscope.spec.calibrated import AT_LEAST_FACTOR, CalibratedRange
from tierscope.spec.study import System

DRAWS = 24
_LEAST_CASES = 2
# What a model error is before anything was left out: about that of cache rates that were not measured, of which docs/validation.md has many (section beds);
# a few there are much farther off. How many such errors that is worth is a guess.
_USUAL_ERROR, _WORTH = 0.04, 3.0
_SUSPECT = 0.1  # an error of a step that is worth a fit
_ROUNDS_WITHOUT = 6  # of a fit without a point, which begins at that with it
_REFINING = 8  # tries that refining on all cases is worth


@dataclass(frozen=True, slots=True)
class FittedKey:
    """A fitted key. `kind`: fitted, or at_least: nothing is known above `low`, and `value` is no more than one that fits."""

    parameter: Parameter
    kind: str
    value: float
    low: float
    high: float | None
    sensitivity: float  # percent of the slowest I/O time, on average, for 10 % more of it
    ends: tuple[
        tuple[float, ...], ...
    ] = ()  # at_least: how the others' logarithms change where it is the least, and where it is much more


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that was predicted from a fit to all the others."""

    name: str
    measured_seconds: float
    predicted_seconds: float
    bottleneck_right: bool  # the predicted leading class is the measured one, or as good as: within a tenth
    inside: bool = True  # its cache rate lies between those of the others

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
    measured: CalibratedRange = CalibratedRange()

    def _drawn_latencies(self) -> set[int]:
        """Latencies that are none here, but some in draws where waiting is less a queue's: only what is there can be drawn."""
        none = [place for place, estimate in enumerate(self.estimates) if _no_latency(estimate)]
        return {place for place in none if any(draw[place] > NEGLIGIBLE for draw in self.draws)}

    def system(self, system: System) -> System:
        """With the fitted rates."""
        values = [
            max(estimate.value, 2 * LEAST_LATENCY) if place in self._drawn_latencies() else estimate.value
            for place, estimate in enumerate(self.estimates)
        ]
        fitted = apply(with_terms(system, self.fit.terms), self.fit.parameters, values)
        return replace(consistent(fitted), process_overhead=self.overhead, model_error=self.model_error)


def _no_latency(fitted_key: FittedKey) -> bool:
    return fitted_key.parameter.key.endswith("latency") and fitted_key.value <= NEGLIGIBLE


class FitSoFar:
    """Whoever is interrupted has this: the best fit so far."""

    def __init__(self) -> None:
        self.fit: Fit | None = None

    def told(self, better: Fit) -> None:
        self.fit = better


class _Tries:
    """Tells of each try, of no more than were promised, and of those that were not needed in the end."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance, self._done = advance, 0

    def advance(self) -> None:
        if self._done < MOST_TRIES:
            self._done += 1
            self._advance(1)

    def rest(self) -> None:
        self._advance(MOST_TRIES - self._done + _REFINING)


def calibrate(
    cases: Sequence[Case], advance: Callable[[int], None] = lambda _: None, so_far: FitSoFar | None = None
) -> Calibration:
    """`cases` have their weights (`with_slowest_weights`). `advance` is told of every step; there are `work(cases)` of them. `so_far` has the best fit when it is interrupted."""
    if len(cases) < _LEAST_CASES:
        raise UserError(
            "one run is not enough to calibrate; measure at least cache rates 0 % and 100 %, two epochs each"
        )
    tries = _Tries(advance)
    best = fit(cases, told=(so_far or FitSoFar()).told, tried=tries.advance)
    tries.rest()
    linear = linearised(cases, best)
    advance(1)
    return _calibration(cases, best, linear, advance)


def finished_early(cases: Sequence[Case], best: Fit) -> Calibration:
    """Of a fit that was interrupted: its intervals are those of its derivatives on a few points, and nothing is left out."""
    linear = linearised(sketched(cases), best)
    return _calibration(cases, best, linear, lambda _: None, leave_out=False)


def linearised(cases: Sequence[Case], best: Fit) -> Linearised:
    """The fit on these cases, with its slopes."""
    problem = FitProblem(with_terms_of(cases, best.terms), best.parameters, throws=many_throws(cases))
    logs = np.log(best.values)
    here = Descended(logs, softened(problem.residuals(logs)))
    return Linearised(problem, logs, here.residuals, problem.descent.slopes(here))


def _calibration(
    cases: Sequence[Case], best: Fit, linear: Linearised, advance: Callable[[int], None], leave_out: bool = True
) -> Calibration:
    freedom = Freedom.of(cases, best, linear)
    estimates = _estimates(best, linear, freedom)
    draws = _draws(linear, estimates, freedom)
    advance(1)
    left_out = leave_one_out(cases, best, advance, linear) if leave_out else ()
    return Calibration(
        best,
        estimates,
        draws,
        left_out,
        _model_error(linear, left_out),
        float(np.median([case.beside for case in cases])),
        len(best.sizes) == 1,
        measured_range(cases),
    )


def work(cases: Sequence[Case]) -> int:
    return MOST_TRIES + _REFINING + 2 + len({_group(case) for case in cases})


def _group(case: Case) -> str:
    return case.point or case.name


def measured_range(cases: Sequence[Case]) -> CalibratedRange:
    """Sizes, ranks and cache rates that a fit to these cases is known for."""
    return CalibratedRange(
        read_bytes=read_sizes(cases),
        ranks=tuple(sorted({case.study.system.ranks for case in cases})),
        cache_rates=tuple(sorted({case.study.placement.cache_rate for case in cases})),
    )


def _draws(linear: Linearised, estimates: Sequence[FittedKey], freedom: Freedom) -> tuple[tuple[float, ...], ...]:
    """Of what was determined, all together; of what is at least something, evenly in logarithms up to a factor. All of them fit."""
    drawn = linear.draws(DRAWS) - linear.logs
    open_ended = [place for place, estimate in enumerate(estimates) if estimate.kind == "at_least"]
    for turn, place in enumerate(open_ended):  # one of them in each draw: together they would not fit
        rows = np.arange(turn, DRAWS, len(open_ended))
        shares = (np.arange(len(rows)) + 0.5) / len(rows)
        least, much = (np.array(end) for end in estimates[place].ends)
        for row, share in zip(rows, shares, strict=True):
            step = (1 - share) * least + share * much
            step[place] = np.log(estimates[place].low * AT_LEAST_FACTOR**share) - freedom.here[place]
            drawn[row] = freedom.refitted(step, place)
    draws = np.exp([freedom.fitting(step) for step in drawn])
    for place in open_ended:
        draws[:, place] = np.clip(draws[:, place], estimates[place].low, estimates[place].low * AT_LEAST_FACTOR)
    return tuple(tuple(draw) for draw in draws.tolist())


def _estimates(best: Fit, linear: Linearised, freedom: Freedom) -> tuple[FittedKey, ...]:
    deviations = np.sqrt(np.diag(linear.covariance()))
    estimates = []
    for place, parameter in enumerate(best.parameters):
        value, sensitivity = best.values[place], linear.sensitivity(place)
        low, high = (float(np.exp(linear.logs[place] + sign * DEVIATIONS * deviations[place])) for sign in (-1, 1))
        low, high = max(low, parameter.low), min(high, parameter.high)
        low, high = min(low, value), max(high, value)
        much = freedom.much(place) if parameter.is_rate else None
        if much is None:
            estimates.append(FittedKey(parameter, "fitted", value, low, high, sensitivity))
            continue
        least, shifts = freedom.least(place)
        estimates.append(FittedKey(parameter, "at_least", value, least, None, sensitivity, (shifts, much)))
    return tuple(estimates)


def leave_one_out(
    cases: Sequence[Case],
    best: Fit,
    advance: Callable[[int], None] = lambda _: None,
    linear: Linearised | None = None,
) -> tuple[LeftOut, ...]:
    """Each point predicted as if it had not been measured; points that alone tell of a tier cannot be left out.

    The terms of the model are what was chosen with all points in sight. Numbers are fitted anew without the point; with `linear` they are
    taken from the fit's derivatives, one step away, unless that predicts the point badly: then it may be the step that is wrong.
    """
    jackknife, linear = linear is not None, linear or linearised(cases, best)
    everything = _tiers_seen(cases)
    points_left_out: list[LeftOut] = []
    for group in dict.fromkeys(_group(case) for case in cases):
        places = [place for place, case in enumerate(cases) if _group(case) == group]
        rest = [case for place, case in enumerate(cases) if place not in places]
        if len(rest) >= _LEAST_CASES and _tiers_seen(rest) == everything:
            logs = linear.without(places)
            here = [_left_out(cases[place], rest, _with(best, logs)) for place in places] if jackknife else []
            if not here or max(abs(left_out.error) for left_out in here) > _SUSPECT:
                problem = FitProblem(with_terms_of(rest, best.terms), best.parameters)
                logs = problem.descent.run(logs, _ROUNDS_WITHOUT).logs
                here = [_left_out(cases[place], rest, _with(best, logs)) for place in places]
            points_left_out += here
        advance(1)
    return tuple(points_left_out)


def _with(best: Fit, logs: FloatArray) -> Fit:
    return replace(best, values=tuple(np.exp(logs).tolist()))


def _left_out(case: Case, rest: Sequence[Case], fitted: Fit) -> LeftOut:
    outcome = simulate(case, fitted.system(case.study.system))
    right = same_leader(case.busy[int(case.io.argmax())], outcome.busy_classes[outcome.slowest])
    rates, rate = [other.study.placement.cache_rate for other in rest], case.study.placement.cache_rate
    inside = min(rates) < rate < max(rates) or rates.count(rate) > 0
    return LeftOut(case.name, float(case.io.max()), float(outcome.io.max()), right, inside)


def same_leader(measured: FloatArray, predicted: FloatArray) -> bool:
    """Whether the classes of two slowest processes have the same leader, unless the two largest measured ones are within a tenth."""
    first, second = np.sort(measured.reshape(-1))[::-1][:2]
    return bool(measured.argmax() == predicted.argmax()) or bool(first <= 1.1 * second)


def _tiers_seen(cases: Sequence[Case]) -> set[tuple[int, str]]:
    """Tiers that were read, and those that were written to."""
    read = {(int(tier), "read") for case in cases for tier in np.unique(case.schedule.tiers)}
    return read | {(int(tier), "write") for case in cases for tier in np.flatnonzero(case.busy[:, :, 2].any(axis=0))}


def _model_error(linear: Linearised, left_out: Sequence[LeftOut]) -> float:
    """Of predictions between measured points: a mean of the usual error and of those at points that were left out, or of the fit itself."""
    errors = [float(np.log1p(max(point.error, -0.9))) for point in left_out if point.inside]
    if not errors:
        slowest = [
            rows.start + case.busy[0].size for rows, case in zip(linear.problem.rows, linear.problem.cases, strict=True)
        ]
        weights = [case.slowest_weight for case in linear.problem.cases]
        errors = [float(linear.residuals[row]) / weight for row, weight in zip(slowest, weights, strict=True)]
    squares = _WORTH * _USUAL_ERROR**2 + float(np.sum(np.square(errors)))
    return float(np.sqrt(squares / (_WORTH + len(errors))))
