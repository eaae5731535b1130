"""Why a row does not hold: what is said of it beyond the conditions that it shares with rows that are not failing."""

from collections.abc import Iterable

from tierscope.papers.verdict import Verdict


def reasons(verdict: Verdict, beside: Iterable[Verdict]) -> list[str]:
    conditions = {part for other in beside if other.outcome != "does not hold" for part in parts(other)}
    return [part for part in parts(verdict) if part not in conditions]


def parts(verdict: Verdict) -> list[str]:
    return [part for part in verdict.why.split("; ") if part]
