"""DLIO's equations and benchmark: a row about two things needs both."""

import pytest

from tierscope.papers import dlio_basics
from tierscope.papers.dlio_basics import _LargestReads


@pytest.mark.parametrize(("size", "outcome"), [(16_384, "holds"), (4_096, "does not hold")])
def test_transfer_buffers_of_all_formats_are_one_row(monkeypatch: pytest.MonkeyPatch, size: int, outcome: str) -> None:
    monkeypatch.setattr(_LargestReads, "seen", classmethod(lambda cls: cls({"csv": size}, 16_384)))
    verdict = dlio_basics._transfer()
    assert verdict.outcome == outcome
    assert "TFRecord's half holds" in verdict.why


def test_equations_hold_by_hand() -> None:
    outcomes = {verdict.id: verdict.outcome for verdict in dlio_basics._equations()}
    assert (outcomes["D-E-1"], outcomes["D-E-2"]) == ("holds", "holds")
