"""The Tuning: what was tried on the real system, what won, by how much and why; and its JSON, which scripts rely on."""

from dataclasses import dataclass

from tierscope.analysis.statistics import Interval
from tierscope.analysis.to_json import SCHEMA_VERSION
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.tuning.halving import LEAST_REPETITIONS

NO_BETTER = "no better than the default, as far as can be told"


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
    emulated: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # `--set` of every key of the winner

    @property
    def is_decided(self) -> bool:
        """Whether there were repetitions enough to say anything about the winner."""
        return self.speedup.n >= LEAST_REPETITIONS

    @property
    def is_better(self) -> bool:
        return self.is_decided and self.speedup.low > 1


def tuning_json(found: Tuning) -> JsonObject:
    known = found.is_decided
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "tuning",
        "study": found.study,
        "minimised": found.minimised,
        "emulated": list(found.emulated),
        "baseline": {
            "settings": {},
            "seconds": found.baseline.rounds[-1].seconds,
            "rounds": [_round(each) for each in found.baseline.rounds],
        },
        "winner": {
            "settings": found.winner.settings,
            "seconds": found.seconds.median,
            "low": found.seconds.low if known else None,
            "high": found.seconds.high if known else None,
            "n": found.seconds.n,
        },
        "cannot_be_told_apart": list(found.equals),
        "better": found.is_better,
        "speedup": found.speedup.median,
        "speedup_low": found.speedup.low if known else None,
        "speedup_high": found.speedup.high if known else None,
        "why": found.why,
        "trials": [
            {
                "settings": each.settings,
                "rounds": [_round(one) for one in each.rounds],
                "dropped_in_round": each.dropped_in_round,
            }
            for each in found.tried
        ],
        "refused": [{"settings": each.settings, "line": each.line} for each in found.refused],
        "budget_seconds": found.budget_seconds,
        "spent_seconds": found.spent_seconds,
        "notes": list(found.notes),
        "findings": [],
    }


def _round(each: TriedRound) -> JsonObject:
    return {"steps": each.steps, "repetitions": each.repetitions, "seconds": each.seconds}
