"""A miss that this machine's lateness explains is not the model's, and every other one is."""

import pytest

from tierscope.spec.load import load_study
from validation import __main__ as validation
from validation.lateness import Late, judged, lateness_percent, with_lateness
from validation.table import Row, as_markdown

ROW = Row("some", "goal", "", "≤ 5 %")


@pytest.mark.parametrize(
    ("error", "spread", "late", "met"),
    [
        (-4.9, 0.0, 0.0, True),
        (-6.4, 0.1, 0.2, False),  # a quiet machine: the model is wrong
        (-6.4, 0.1, 2.0, None),  # sleepers that went on late made it longer
        (-14.2, 1.0, 2.0, False),  # but not by so much
        (+6.4, 0.1, 20.0, False),  # lateness makes nothing shorter
        (+6.4, 1.5, 0.0, None),
    ],
)
def test_what_the_machine_explains_is_not_judged(error: float, spread: float, late: float, met: bool | None) -> None:
    row = judged(ROW, error, 5.0, spread, late)
    assert row.met is met
    assert bool(row.unjudged) == (met is None)
    assert ("not judged" in as_markdown([row])) == (met is None)


@pytest.mark.parametrize(
    ("errors", "met", "note"),
    [((7.0, 4.0), True, "try 2"), ((9.0, 7.0), None, "try 2"), ((9.0, 9.0, 4.0), True, "try 3")],
)
def test_what_was_not_judged_has_another_try_and_beats_a_miss(
    errors: tuple[float, ...], met: bool | None, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = iter([judged(ROW, -error, 5.0, 0.0, 3.0) for error in errors])
    section = type("Fake", (), {"rows": staticmethod(lambda _short: [next(tries)])})
    monkeypatch.setattr("validation.__main__.importlib.import_module", lambda _: section)
    (row,) = validation._section("fake", True, None)
    assert row.met is met
    assert row.note.startswith(note)


def test_lateness_is_latency_of_emulated_tiers_alone() -> None:
    study = load_study("demo", ["sweep={}", "lfs.emulate=false"])
    near, far = with_lateness(study, Late(0.001, 0.002, 9)).system.tiers
    assert (near.latency, far.latency, far.metadata_latency) == (0.0, 0.002, 0.002)
    assert lateness_percent(study, Late()) == 0.0
