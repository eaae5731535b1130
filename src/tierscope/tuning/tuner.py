"""Tune: try combinations of a study's keys on the real system, drop the bad ones early, and say what won and why."""

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from msgspec import structs

from tierscope.analysis.statistics import interval
from tierscope.errors import DamagedDataError, ForeignDirectoryError, ResultError, UserError, shell_word
from tierscope.jsonable import JsonObject
from tierscope.measure.crews import Crews
from tierscope.output import disk_errors, manifest
from tierscope.output.result import locked
from tierscope.output.typed_documents import read_typed
from tierscope.spec import dump, keys
from tierscope.spec.study import Axis, Study
from tierscope.tuning.candidates import TuningChoice, candidates_of, read_vary
from tierscope.tuning.halving import LEAST_REPETITIONS, Cost, Round, next_round, sizes, speedup, survivors
from tierscope.tuning.kept import KEPT, SCHEMA_VERSION, wrong_round
from tierscope.tuning.trials import Trial, Trials, why
from tierscope.tuning.tuning import Refused, Tried, TriedRound, Tuning, tuning_json
from tierscope.units import about_seconds
from tierscope.watch import Watch

STATE = "tune.json"
_Results = dict[int, list[Trial]]  # by candidate


def tune(base: Study, vary: Sequence[str], minimised: str, budget: float, out: str, crews: Crews, watch: Watch) -> Tuning:  # fmt: skip
    """The same command goes on where it stopped: rounds are as they were decided, finished trials are kept."""
    if base.cases:
        raise UserError(
            f"the study has the cases {', '.join(case.name for case in base.cases)}, but tune works on one case; add --set case={base.cases[0].name}"
        )
    if base.sweep:
        raise UserError(
            f"the study sweeps {', '.join(axis.path for axis in base.sweep)}, but tune works on one point; add --set 'sweep={{}}'"
        )
    axes = read_vary(base, vary)
    choice = candidates_of(base, axes, out, crews.launcher)
    manifest.claim(out, "tune")
    with locked(out, "in use by another tune; wait for it to finish or choose another --out"):
        entering = sizes(len(choice.candidates) - 1)
        state = _State.open(out, _asked(base, axes, minimised), entering, base.workload.train.epochs)
        tuner = _Tuner(base, choice, budget, Trials(base, out, minimised, crews), state, watch)
        try:
            return tuner.tune(minimised, axes)
        finally:
            state.save()


def _asked(base: Study, axes: Sequence[Axis], minimised: str) -> JsonObject:
    varied = {axis.path: [str(value) for value in axis.values] for axis in axes}
    return {"study": dump.to_yaml(replace(base, goal=None)), "vary": varied, "minimised": minimised}


@dataclass(slots=True)
class _State:
    """OUT/tune.json: what was asked, what was decided so far, and in the end the result."""

    out: str
    asked: JsonObject
    rounds: list[Round] = field(default_factory=list)
    overhead_seconds: float | None = None  # of a candidate's first run
    again_seconds: float = 0.0  # and of the next ones
    staging_seconds: float = 0.0
    spent_before: float = 0.0
    result: JsonObject | None = None
    notes: list[str] = field(default_factory=list)  # about what was decided
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, out: str, asked: JsonObject, entering: Sequence[int], epochs: int) -> "_State":
        """`entering`: candidates of each round, at most; `epochs`: of the study."""
        path = os.path.join(out, STATE)
        try:
            kept = read_typed(path, KEPT)
        except FileNotFoundError:
            return cls(out, asked)
        if structs.asdict(kept.asked) != asked:
            changed = ", ".join(name for name in asked if getattr(kept.asked, name) != asked[name])
            raise UserError(f"{out}: contains a different tune ({changed} differs); choose another --out")
        if wrong := wrong_round(kept.rounds, entering, epochs):
            raise ResultError(f"{path}: is damaged: {wrong}; {KEPT.fix}")
        return cls(
            out,
            asked,
            [Round(**structs.asdict(kept_round)) for kept_round in kept.rounds],
            kept.overhead_seconds,
            kept.again_seconds,
            kept.staging_seconds,
            kept.spent_seconds,
            kept.result,
            kept.notes,
        )

    @property
    def spent_seconds(self) -> float:
        return self.spent_before + time.monotonic() - self.began

    def save(self) -> None:
        content = {
            "schema_version": SCHEMA_VERSION,
            "kind": "tune",
            "asked": self.asked,
            "rounds": [asdict(played) for played in self.rounds],
            "overhead_seconds": self.overhead_seconds,
            "again_seconds": self.again_seconds,
            "staging_seconds": self.staging_seconds,
            "spent_seconds": self.spent_seconds,
            "result": self.result,
            "notes": self.notes,
        }
        with disk_errors.explained(os.path.join(self.out, STATE), disk_errors.TABLE):
            manifest.put(self.out, {STATE: (json.dumps(content, indent=1) + "\n").encode()})


class _Tuner:
    def __init__(
        self,
        base: Study,
        choice: TuningChoice,
        budget: float,
        trials: Trials,
        state: _State,
        watch: Watch,
    ) -> None:
        self._base, self._refused, self._budget = base, choice.refused, budget
        self._inert = choice.inert
        self._candidates = {candidate.number: candidate for candidate in choice.candidates}
        self._trials, self._state, self._watch = trials, state, watch
        self._results: list[_Results] = []  # by round
        self._notes: list[str] = []

    def tune(self, minimised: str, axes: Sequence[Axis]) -> Tuning:
        cost = self._pilot()
        entering = sizes(len(self._candidates) - 1)
        entrants = [number for number in self._candidates if number]
        for index in range(len(entering)):
            left = [min(size, len(entrants)) for size in entering[index:]]
            this = self._decide(index, left, cost)
            if this is None:
                self._say(
                    self._notes,
                    f"the budget of {about_seconds(self._budget)} ended after round {index} of {len(entering)}; "
                    "rerun with a larger --budget to continue",
                )
                break
            results = self._run_round(index, len(entering), this, entrants[: this.entrants])
            self._results.append(results)
            entrants = survivors({number: _seconds(runs) for number, runs in results.items() if number}, len(results))
            if not entrants:
                raise UserError(f"none of the combinations can run; the first: {self._refused[0].line}")
            if not this.is_last:
                entrants = entrants[: entering[index + 1]]
            cost = self._cost(this, [results[0], *(results[number] for number in entrants)])
            self._state.save()
        tuning = self._tuning(entrants[0], minimised, axes)
        self._state.result = tuning_json(tuning)
        return tuning

    def _say(self, notes: list[str], text: str) -> None:
        notes.append(text)
        self._watch.note(text)

    def _pilot(self) -> Cost:
        """The default for a moment: how long runs take on this system. Its times are no part of the result."""
        state, default = self._state, self._candidates[0]
        before = time.monotonic()
        folder, study = self._trials.pilot(default, self._watch)
        staged = time.monotonic()
        trial = self._trials.run_pilot(folder, study, self._watch)
        if state.overhead_seconds is None:
            state.overhead_seconds = max(0.0, time.monotonic() - staged - trial.all_seconds)
            state.again_seconds = max(0.0, state.overhead_seconds - self._trials.own_cost_seconds)
            state.staging_seconds = staged - before
        return Cost(state.overhead_seconds, trial.all_seconds / self._trials.least_share)

    def _cost(self, this: Round, runs: Sequence[Sequence[Trial]]) -> Cost:
        """Of those that go on and the default, from the round before."""
        seconds = [trial.all_seconds for trials in runs for trial in trials]
        return Cost(self._state.again_seconds, sum(seconds) / len(seconds) / this.epochs / this.share)

    def _decide(self, index: int, left: Sequence[int], cost: Cost) -> Round | None:
        state = self._state
        if index < len(state.rounds):
            return state.rounds[index]
        least = max(self._trials.least_share, state.rounds[-1].share if state.rounds else 0.0)
        remaining = self._budget - state.spent_seconds
        if not index:
            datasets = {candidate.study.workload.dataset for candidate in self._candidates.values()}
            remaining -= (len(datasets) - 1) * state.staging_seconds
        this = next_round(left, remaining, cost, least, self._base.workload.train.epochs, is_first=not index)
        if this is None:
            return None
        takes = this.runs * cost.run_seconds(this.share, this.epochs)
        if not index and takes > remaining:
            self._say(
                state.notes,
                f"the first round takes about {about_seconds(takes)}, more than the budget of {about_seconds(self._budget)}"
                "; it is completed anyway",
            )
        elif this.entrants < left[0]:
            self._say(
                state.notes,
                f"round {index + 1}: {this.entrants} of {left[0]} continue, because time is short; raise --budget for more",
            )
        state.rounds.append(this)
        state.save()
        return this

    def _run_round(self, index: int, rounds: int, this: Round, entrants: Sequence[int]) -> _Results:
        """All once, then all again: each repetition in a random order of its own, so that drift does not look like an effect."""
        results: _Results = {number: [] for number in (0, *entrants)}
        self._watch.phase(f"round {index + 1} of {rounds}", len(results) * this.repetitions, "runs")
        for repetition in range(1, this.repetitions + 1):
            if this.is_last and repetition > LEAST_REPETITIONS and self._state.spent_seconds > self._budget:
                self._state.rounds[index] = replace(this, repetitions=repetition - 1)
                break
            order = list(results)
            random.Random(f"{self._base.seed}/{index}/{repetition}").shuffle(order)
            for number in order:
                trial = self._try(number, index, this, repetition)
                if trial is None:
                    del results[number]
                else:
                    results[number].append(trial)
                self._watch.advance(1)
        return results

    def _try(self, number: int, index: int, this: Round, repetition: int) -> Trial | None:
        """None: only now did it turn out that it cannot be run."""
        candidate = self._candidates[number]
        try:
            return self._trials.run(candidate, index, this, repetition)
        except (ResultError, ForeignDirectoryError, DamagedDataError):
            raise
        except UserError as error:
            if not number or index or repetition > 1:
                raise
            self._trials.recover()
            self._refused.append(Refused(candidate.settings, str(error)))
            return None

    def _tuning(self, best: int, minimised: str, axes: Sequence[Axis]) -> Tuning:
        last = self._results[-1]
        default, winner = last[0], last[best]
        tried = {number: self._tried(number) for number in self._results[0]}
        names = keys.short_names([axis.path for axis in axes])
        settings = self._candidates[best].effective_settings
        seconds = {number: interval(_seconds(trials)) for number, trials in last.items()}
        equals = [number for number in last if number not in (0, best) and seconds[number].overlaps(seconds[best])]
        commands = tuple(f"--set {axis.path}={_text(self._base, axis.path, settings[names[axis.path]])}" for axis in axes if names[axis.path] in settings)  # fmt: skip
        return Tuning(
            study=self._base.study,
            minimised=minimised,
            baseline=tried.pop(0),
            winner=tried[best],
            seconds=seconds[best],
            speedup=speedup(_seconds(default), _seconds(winner)),
            why=why(default, winner),
            tried=tuple(tried.values()),
            refused=tuple(self._refused),
            inert=tuple(self._inert),
            budget_seconds=self._budget,
            spent_seconds=self._state.spent_seconds,
            equals=tuple(self._candidates[number].effective_settings for number in equals),
            notes=(*self._state.notes, *self._notes),
            emulated=tuple(tier.name for tier in self._base.system.tiers if tier.emulate),
            commands=commands,
            changes=settings,
        )

    def _tried(self, number: int) -> Tried:
        took_part = [index for index, results in enumerate(self._results) if number in results]
        study = self._candidates[number].study
        rounds = tuple(
            TriedRound(
                self._trials.steps(study, self._state.rounds[index].share),
                len(self._results[index][number]),
                interval(_seconds(self._results[index][number])).median,
            )
            for index in took_part
        )
        came_to_end = took_part[-1] == len(self._results) - 1
        return Tried(self._candidates[number].settings, rounds, None if came_to_end else took_part[-1])


def _seconds(trials: Sequence[Trial]) -> list[float]:
    return [trial.seconds for trial in trials]


def _text(study: Study, path: str, value: Any) -> str:
    kind = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])[path].kind
    text = "null" if value is None else kind.format(value)
    return shell_word(text)
