"""OUT/tune.json as it is read back: what was asked and decided before, with limits on all that anything is computed from."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tierscope.jsonable import JsonObject
from tierscope.output.typed_documents import DocumentKind
from tierscope.tuning.halving import MOST_REPETITIONS

SCHEMA_VERSION = 1
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class KeptQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    study: str
    vary: dict[str, list[str]]
    minimised: str


class KeptRound(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    entrants: Annotated[int, Meta(ge=1, le=10**9)]
    repetitions: Annotated[int, Meta(ge=1, le=MOST_REPETITIONS)]
    share: Annotated[float, Meta(gt=1e-12, le=1)]
    epochs: Annotated[int, Meta(ge=1, le=10**4)]
    is_last: bool


class KeptTuning(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`result` is for other programs: nothing is read from it."""

    schema_version: Literal[1]
    kind: Literal["tune"]
    asked: KeptQuestion
    rounds: list[KeptRound]
    overhead_seconds: Seconds | None
    again_seconds: Seconds
    staging_seconds: Seconds
    spent_seconds: Seconds
    result: JsonObject | None
    notes: list[str]


KEPT = DocumentKind(KeptTuning, "remove it; finished trials are kept if nothing else has changed", most_bytes=16 << 20)


def wrong_round(rounds: Sequence[KeptRound], entering: Sequence[int], epochs: int) -> str | None:
    """Why these cannot be the rounds of this tuning."""
    if len(rounds) > len(entering):
        return f"rounds has {len(rounds)} entries, and there are {len(entering)}"
    for index, (kept, most) in enumerate(zip(rounds, entering, strict=False)):
        if kept.entrants > most:
            return f"rounds[{index}].entrants = {kept.entrants}, and {most} candidates are left"
        if kept.epochs > epochs:
            return f"rounds[{index}].epochs = {kept.epochs}, and the study has {epochs}"
        if kept.is_last != (index == len(entering) - 1):
            return f"rounds[{index}].is_last is wrong"
        if index and kept.share < rounds[index - 1].share:
            return f"rounds[{index}].share is less than in the round before"
    return None
