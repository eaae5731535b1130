"""The fit: which terms of the model the measurements ask for, and the numbers that go with them.

Searched on a sketch of the measurements (one epoch of some points, no more operations than tell something), refined on all of them. Plain
servers come first. A term (credit, portions, opens among the reads, another way of serving, a limit of streams, files at random) is kept when it
lowers Bayes's information criterion: it must explain more than chance would. Everything begins where the best so far ended.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.predict.case import Case, has_numba, read_sizes, with_terms_of
from tierscope.predict.descent import Descended
from tierscope.predict.fit import Fit, FitProblem, many_throws
from tierscope.predict.moved import moved_by
from tierscope.predict.outcome import FloatArray
from tierscope.predict.parameters import parameters_of
from tierscope.predict.rates import PLAIN, Parameter, Serving, Terms
from tierscope.predict.solving import STARTS, FitStart

MOST_POINTS = 8  # of a sketch
MOST_OPERATIONS = 3_000  # of each of them
MOST_TRIES = 100
_MOSTLY_QUEUES = FitStart(0.8, 0.3)
_ONLY_QUEUES = FitStart(0.8, 0.1)
_PRICE = 1.0  # of a number that is fitted: epochs of one point are not independent of each other
_FIRST_ROUNDS, _MORE_ROUNDS, _FEW_ROUNDS, _LAST_ROUNDS = 8, 8, 4, 4
_POLISHED = 4  # kinds of terms
_STARTED_OVER = _LAID_OUT = 3  # of them
_SETTLED, _SETTLED_AGAIN = 24, 4  # fits that are judged by many throws, and of these, fitted again by them
_NEAR = 70.0  # scores that a polish may make up for
_PERIODS = (0.1, 0.02)  # seconds: of portions
_UNSEEN = 0.004  # of the I/O time: what is closer than that cannot be told apart
_GOOD = 0.005  # a loss that leaves nothing to be explained
_OPENS_MATTER = 0.02  # of the I/O time at a tier
_VARIES = 0.2  # services that need many throws of the dice
# What else is tried. Sharing needs some variation: with none at all, those who came together would stay together for ever.
OTHERS_TRIED = (
    Serving("fifo", 0.2),
    Serving("sharing", 0.1),
    Serving("fifo", 0.7),
    Serving("sharing", 1.0),
    Serving("fifo", 1.5),
)
Told = Callable[[Fit], None]


@dataclass(frozen=True, slots=True)
class _Candidate:
    terms: Terms
    parameters: tuple[Parameter, ...]
    logs: FloatArray
    score: float  # Bayes's information criterion: less is better
    loss: float

    @property
    def by_path(self) -> dict[str, float]:
        return {parameter.path: float(value) for parameter, value in zip(self.parameters, self.logs, strict=True)}

    def fit(self, sizes: tuple[float, ...]) -> Fit:
        return Fit(self.parameters, tuple(np.exp(self.logs).tolist()), self.loss, sizes, self.terms)


def fit(
    cases: Sequence[Case],
    starts: Sequence[FitStart] = STARTS,
    servings: Sequence[Serving] | None = None,
    told: Told = lambda _: None,
    tried: Callable[[], None] = lambda: None,
) -> Fit:
    """`servings`: the only ways of serving that are tried, the first without asking; None: plain servers, and others where they fit better.

    `told` of every better fit: whoever is interrupted has that. `tried` is called about MOST_TRIES times at most.
    """
    search = _Search(cases, told, tried)
    first, *others = (PLAIN, *OTHERS_TRIED) if servings is None else servings
    search.begin(Terms(first), starts)
    if has_numba():  # mean values cannot tell them apart
        search.try_terms(others)
        search.polish()
        search.try_servings([other for other in others if not _is_small(other)])
        search.leave_out()
        search.start_over()
        search.settle()
    return search.refined()


def sketched(cases: Sequence[Case]) -> list[Case]:
    """One epoch of some of the points, and of each no more samples than tell something; times in proportion."""
    points: dict[str, Case] = {}
    for case in cases:
        points.setdefault(case.point or case.name, case)
    chosen = list(points.values())
    if len(chosen) < MOST_POINTS:
        chosen = list(cases) if len(cases) <= MOST_POINTS else chosen
    places = np.unique(np.linspace(0, len(chosen) - 1, min(MOST_POINTS, len(chosen))).round().astype(int))
    picked = [chosen[place] for place in places]
    return [_shortened(case) for case in (*picked, *_missed(cases, picked))]


def _missed(cases: Sequence[Case], picked: Sequence[Case]) -> list[Case]:
    """Cases of classes that no picked one has: checkpoints may be written in few epochs."""
    added: list[Case] = []
    everything = np.any([case.busy.any(axis=0) for case in cases], axis=0)
    while True:
        missing = everything & ~np.any([case.busy.any(axis=0) for case in (*picked, *added)], axis=0)
        if not missing.any():
            return added
        added.append(max(cases, key=lambda case: int((case.busy.any(axis=0) & missing).sum())))


def _shortened(case: Case) -> Case:
    """Whole where checkpoints are written: they belong to steps, not to samples."""
    ranks, samples = case.schedule.shape
    kept = max(16, MOST_OPERATIONS // (ranks * (1 + len(case.reading.pieces))))
    if kept >= samples or (case.saving is not None and len(case.saving.epoch.steps)):
        return case
    schedule = case.schedule
    short = schedule.some(0, kept)
    whole, part = (moved_by(case.study, case.reading, some, None)[0] for some in (schedule, short))
    return replace(
        case, schedule=short, busy=case.busy * part / np.maximum(whole, 1), share=case.share * kept / samples
    )


def _is_small(serving: Serving) -> bool:
    """One after another with services that vary a little: so real servers do, and it costs no more to simulate."""
    return serving.discipline == "fifo" and serving.variation <= _VARIES


def _size(terms: Terms, parameters: Sequence[Parameter]) -> float:
    """Of a model: numbers that are fitted, and choices that are made."""
    unusual = 0.0 if _is_small(terms.serving) else 2.0
    return len(parameters) + unusual + len(terms.hashed)


class _Search:
    def __init__(self, cases: Sequence[Case], told: Told, tried: Callable[[], None]) -> None:
        self._cases, self._few, self._told, self._tried = cases, sketched(cases), told, tried
        self._sizes = read_sizes(cases)
        self._best: _Candidate | None = None
        self._all: list[_Candidate] = []
        self.plain: _Candidate  # of plain servers, where all else begins

    @property
    def best(self) -> _Candidate:
        assert self._best is not None
        return self._best

    def begin(self, terms: Terms, starts: Sequence[FitStart]) -> None:
        parameters = parameters_of(self._few, terms)
        if any(parameter.key == "read_ops" for parameter in parameters):
            starts = (*starts, *(replace(start, by_operation=True) for start in starts[:1]))
        for start in starts:
            self._take(self._fitted(terms, start.of(parameters), _FIRST_ROUNDS))
        self._take(self._fitted(terms, self.best.logs, _MORE_ROUNDS))
        self.plain = self.best

    def try_terms(self, others: Sequence[Serving]) -> None:
        """Credit, opens among the reads, services that vary a little, or several: each may be of use only with the others."""
        if self.best.loss <= _GOOD:
            return
        plain, read = self.plain, self._tiers_read()
        servings = tuple(dict.fromkeys((plain.terms.serving, *(other for other in others if _is_small(other)))))
        opening = tuple(name for name in read if self._opens_share(name) >= _OPENS_MATTER)
        homes = (read[-1:],) if opening[-1:] == read[-1:] else ((),)
        for serving, linked, credit in itertools.product(
            servings, dict.fromkeys(((), *homes, opening)), dict.fromkeys(((), read[:1], read[-1:], read))
        ):
            terms = replace(plain.terms, serving=serving, credit=credit, linked=linked)
            if terms != plain.terms:
                self._try(terms, plain, afresh=True)
        for name in read:
            self._try_portions(name)
        for streams in dict.fromkeys((*((name,) for name in read), read)) if len(self._sizes) > 1 else ():
            self._try(replace(self.best.terms, streams=streams), self.best)
        several = tuple(tier.name for tier in self._few[0].study.system.tiers if tier.servers > 1)
        for candidate in self._nearest(_LAID_OUT) if several else ():
            self._try(replace(candidate.terms, hashed=several), candidate)

    def _try_portions(self, name: str) -> None:
        """Of a tier whose idle time counts for something: portions instead of credit, also of those that come more often; by strides too, for a period has no slope to go down."""
        terms = self.best.terms
        credit = tuple(other for other in terms.credit if other != name)
        quotas = replace(terms, credit=credit, quotas=(*terms.quotas, name))
        known = self.best.by_path
        for period in _PERIODS:
            parameters = parameters_of(self._few, quotas)
            logs = [
                np.log(period)
                if parameter.key == "quota_period" and parameter.tier == name
                else known.get(parameter.path, np.log(parameter.guess))
                for parameter in parameters
            ]
            self._take(self._fitted(quotas, np.array(logs), _MORE_ROUNDS))

    def try_servings(self, others: Sequence[Serving]) -> None:
        for other in others:
            if self.best.loss <= _GOOD:
                return
            if other.discipline == "sharing":
                self._try(replace(self.best.terms, serving=other, credit=(), quotas=()), self.plain, afresh=True)
                self._try(Terms(other), self.plain, afresh=True)
                start = STARTS[0].of(parameters_of(self._few, Terms(other)))
                self._take(self._fitted(Terms(other), start, 2 * _MORE_ROUNDS))
                same = sorted(
                    (tried for tried in self._all if tried.terms.serving == other), key=lambda tried: tried.score
                )
                for candidate in same[:2]:
                    if candidate.score < self.best.score + _NEAR:
                        self._take(self._polished(candidate))
            else:
                self._try(replace(self.best.terms, serving=other), self.best)

    def start_over(self) -> None:
        """The best terms again with all waiting at one tier a queue's, while the other tiers keep their numbers: a slow server looks much like a fast one that is far away."""
        if self.best.loss <= _GOOD:
            return
        for candidate, name in itertools.product(self._nearest(_STARTED_OVER), self._tiers_read()):
            logs = candidate.logs.copy()
            places = [place for place, parameter in enumerate(candidate.parameters) if parameter.tier == name]
            logs[places] = _ONLY_QUEUES.of([candidate.parameters[place] for place in places])
            again = self._fitted(candidate.terms, logs, _MORE_ROUNDS)
            self._take(again)
            if again.score < candidate.score:
                self._take(self._polished(again))

    def leave_out(self) -> None:
        """Terms that are no longer needed beside the others."""
        for name in self.best.terms.credit:
            terms = self.best.terms
            self._try(replace(terms, credit=tuple(other for other in terms.credit if other != name)), self.best)
        for name in self.best.terms.quotas:
            terms = self.best.terms
            self._try(replace(terms, quotas=tuple(other for other in terms.quotas if other != name)), self.best)
        for name in self.best.terms.linked:
            terms = self.best.terms
            self._try(replace(terms, linked=tuple(other for other in terms.linked if other != name)), self.best)

    def refined(self) -> Fit:
        """On all that was measured."""
        best = self.best
        throws = many_throws(self._cases)
        problem = FitProblem(with_terms_of(self._cases, best.terms), best.parameters, throws=throws)
        descended = problem.descent.run(best.logs, _LAST_ROUNDS)
        done = replace(best, logs=descended.logs, loss=problem.loss(descended.logs)).fit(self._sizes)
        self._told(done)
        return done

    def _try(self, terms: Terms, start: _Candidate, afresh: bool = False) -> None:
        """From where another fit ended; `afresh`: also from where all waiting is a queue's, for terms change what is waiting and what is latency."""
        parameters = parameters_of(self._few, terms)
        known = start.by_path
        warm = np.array([known.get(parameter.path, np.log(parameter.guess)) for parameter in parameters])
        queued = _MOSTLY_QUEUES.of(parameters)
        for logs in (warm, queued) if afresh else (warm,):
            self._take(self._fitted(terms, logs, _MORE_ROUNDS))

    def _fitted(self, terms: Terms, logs: FloatArray, rounds: int) -> _Candidate:
        problem = FitProblem(with_terms_of(self._few, terms), parameters_of(self._few, terms))
        descended = problem.descent.run(logs, rounds)
        self._tried()
        return self._judged(problem, terms, descended)

    def _polished(self, start: _Candidate) -> _Candidate:
        """On from there with strides, and down again."""
        problem = FitProblem(with_terms_of(self._few, start.terms), start.parameters)
        logs, _ = problem.polish(start.logs)
        self._tried()
        return self._judged(problem, start.terms, problem.descent.run(logs, _FEW_ROUNDS))

    def _judged(self, problem: FitProblem, terms: Terms, descended: Descended) -> _Candidate:
        parameters = problem.parameters
        n, squares = problem.observations, descended.squares
        score = n * float(np.log(squares / n + _UNSEEN**2)) + _PRICE * _size(terms, parameters) * float(np.log(n))
        return _Candidate(terms, parameters, descended.logs, score, problem.loss(descended.logs))

    def polish(self) -> None:
        """The best of each kind of terms, for derivatives alone stop too soon."""
        if self.best.loss <= _GOOD:
            return
        for candidate in self._nearest(_POLISHED):
            self._take(self._polished(candidate))

    def settle(self) -> None:
        """The best by many throws of the dice: with one throw a fit may owe its score to luck, or to the order in which ranks start."""
        if self.best.loss <= _GOOD:
            return
        throws = many_throws(self._few)
        apart = {(tried.terms, *np.round(tried.logs, 1).tolist()): tried for tried in self._by_score(self._all)[::-1]}
        judged = [self._by_throws(tried, throws, 0) for tried in self._by_score(apart.values())[:_SETTLED]]
        again = [self._by_throws(tried, throws, _LAST_ROUNDS) for tried in self._by_score(judged)[:_SETTLED_AGAIN]]
        self._best = self._by_score([*again, *judged])[0]
        self._told(self._best.fit(self._sizes))

    def _by_throws(self, start: _Candidate, throws: int, rounds: int) -> _Candidate:
        problem = FitProblem(with_terms_of(self._few, start.terms), start.parameters, throws=throws)
        self._tried()
        return self._judged(problem, start.terms, problem.descent.run(start.logs, rounds))

    @staticmethod
    def _by_score(some: Iterable[_Candidate]) -> list[_Candidate]:
        return sorted(some, key=lambda tried: tried.score)

    def _nearest(self, count: int) -> list[_Candidate]:
        """So many kinds of terms, by their best scores."""
        return self._by_score(self._best_by_terms())[:count]

    def _best_by_terms(self) -> list[_Candidate]:
        by_terms: dict[Terms, _Candidate] = {}
        for candidate in self._all:
            if candidate.terms not in by_terms or candidate.score < by_terms[candidate.terms].score:
                by_terms[candidate.terms] = candidate
        return list(by_terms.values())

    def _take(self, candidate: _Candidate) -> None:
        self._all.append(candidate)
        if self._best is None or candidate.score < self._best.score:
            self._best = candidate
            self._told(candidate.fit(self._sizes))

    def _tiers_read(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parameter.tier for parameter in self.best.parameters))

    def _opens_share(self, name: str) -> float:
        place = [tier.name for tier in self._few[0].study.system.tiers].index(name)
        busy = sum(case.busy[:, place].sum(axis=0) for case in self._few)
        return float(busy[0] / max(float(busy.sum()), 1e-12))
