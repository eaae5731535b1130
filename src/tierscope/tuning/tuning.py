"""The Tuning: what was tried on the real system, what won, by how much and why; and its JSON, which scripts rely on."""

from dataclasses import dataclass

from tierscope.analysis.statistics import Interval
from tierscope.analysis.to_json import SCHEMA_VERSION
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.tuning.halving import LEAST_REPETITIONS

NO_BETTER = "not measurably better than the default"


@dataclass(frozen=True, slots=True)
class TriedRound:
    """`seconds` is the median of the repetitions; `steps` None: all of an epoch."""

    steps: int | None
    repetitions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate: its settings by short name, and how it did in each round that it took part in."""

    settings: SweepValues
    rounds: tuple[TriedRound, ...]
    dropped_in_round: int | None = None  # None: it came to the end


@dataclass(frozen=True, slots=True)
class Refused:
    """A combination that cannot be run, and the line that says why."""

    settings: SweepValues
    line: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """`winner` is the fastest of the others, whether or not it is `better` than the default."""

    study: str
    minimised: str
    baseline: Tried
    winner: Tried
    seconds: Interval  # of the winner
    speedup: Interval
    why: str
    tried: tuple[Tried, ...]
    refused: tuple[Refused, ...]
    budget_seconds: float
    spent_seconds: float
    equals: tuple[SweepValues, ...] = ()  # finalists whose intervals overlap the winner's
    notes: tuple[str, ...] = ()
    inert: tuple[Refused, ...] = ()  # combinations that do what another one does, and the line that says so
    emulated: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # `--set` of every key of the winner that has an effect
    changes: SweepValues | None = None  # of the winner's settings those that have an effect; None: all

    @property
    def winning_settings(self) -> SweepValues:
        return self.winner.settings if self.changes is None else self.changes

    @property
    def is_decided(self) -> bool:
        """Whether there were repetitions enough to say anything about the winner."""
        return self.speedup.n >= LEAST_REPETITIONS

    @property
    def is_better(self) -> bool:
        return self.is_decided and self.speedup.low > 1


def tuning_json(tuning: Tuning) -> JsonObject:
    known = tuning.is_decided
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "tuning",
        "study": tuning.study,
        "minimised": tuning.minimised,
        "emulated": list(tuning.emulated),
        "baseline": {
            "settings": {},
            "seconds": tuning.baseline.rounds[-1].seconds,
            "rounds": [_round(tried_round) for tried_round in tuning.baseline.rounds],
        },
        "winner": {
            "settings": tuning.winning_settings,
            "seconds": tuning.seconds.median,
            "low": tuning.seconds.low if known else None,
            "high": tuning.seconds.high if known else None,
            "n": tuning.seconds.n,
        },
        "cannot_be_told_apart": list(tuning.equals),
        "better": tuning.is_better,
        "speedup": tuning.speedup.median,
        "speedup_low": tuning.speedup.low if known else None,
        "speedup_high": tuning.speedup.high if known else None,
        "why": tuning.why,
        "trials": [
            {
                "settings": tried.settings,
                "rounds": [_round(tried_round) for tried_round in tried.rounds],
                "dropped_in_round": tried.dropped_in_round,
            }
            for tried in tuning.tried
        ],
        "refused": [{"settings": refused.settings, "line": refused.line} for refused in tuning.refused],
        "inert": [{"settings": refused.settings, "line": refused.line} for refused in tuning.inert],
        "budget_seconds": tuning.budget_seconds,
        "spent_seconds": tuning.spent_seconds,
        "notes": list(tuning.notes),
        "findings": [],
    }


def _round(tried_round: TriedRound) -> JsonObject:
    return {"steps": tried_round.steps, "repetitions": tried_round.repetitions, "seconds": tried_round.seconds}
