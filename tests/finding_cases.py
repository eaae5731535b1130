"""What holds for every kind of finding: it appears when it should and only then, in words that are made of its evidence."""

import string
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tierscope.analysis.wording import WORDING, Finding


class Case(NamedTuple):
    """When a kind is to be seen, with the evidence; and when not, though nearly."""

    yes: Callable[[], list[Finding]]
    evidence: dict[str, Any]
    no: Callable[[], list[Finding]]


def of_kind(kind: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.kind == kind]


def it_appears(kind: str, case: Case) -> None:
    (finding,) = of_kind(kind, case.yes())
    assert finding.evidence == case.evidence


def it_does_not_appear(kind: str, case: Case) -> None:
    assert of_kind(kind, case.no()) == []


def its_words_are_one_line_with_its_evidence(kind: str, case: Case) -> None:
    (finding,) = of_kind(kind, case.yes())
    assert "\n" not in finding.text + finding.suggestion
    assert "{" not in finding.text + finding.suggestion
    words = " ".join(WORDING[kind])
    assert {name for _, name, _, _ in string.Formatter().parse(words) if name} == set(finding.evidence)
    assert finding.suggestion


def finding_tests(cases: Mapping[str, Case]) -> tuple[Callable[[str], None], ...]:
    """The three of them over all kinds, as tests of the module that names them."""
    each = pytest.mark.parametrize("kind", list(cases))

    @each
    def appears(kind: str) -> None:
        it_appears(kind, cases[kind])

    @each
    def does_not_appear(kind: str) -> None:
        it_does_not_appear(kind, cases[kind])

    @each
    def words(kind: str) -> None:
        its_words_are_one_line_with_its_evidence(kind, cases[kind])

    return appears, does_not_appear, words
