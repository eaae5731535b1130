"""The event engine gives the results that are stored, to the last bit."""

import json

import pytest

from tests.predict.engine_cases import STORED, cases, digest, numbers

pytest.importorskip("numba", reason="the event engine needs numba")

RESULTS = json.loads(STORED.read_text())


def test_every_case_is_stored_and_covers_what_the_engine_does() -> None:
    stored_cases = cases().values()
    assert list(cases()) == list(RESULTS)
    schedules = [stored.case.schedule for stored in stored_cases]
    assert any(schedule.fills is not None for schedule in schedules)
    assert any(schedule.fetched is not None for schedule in schedules)
    assert any(schedule.inside is not None for schedule in schedules)
    assert any(stored.varies for stored in stored_cases)
    assert any(stored.case.stations.sharing.any() for stored in stored_cases)


@pytest.mark.parametrize("name", RESULTS)
def test_the_engine_repeats_its_results_to_the_last_bit(name: str) -> None:
    """Where services vary, exp and log may differ in the last bit between maths libraries; then nine digits must agree."""
    stored, expected = cases()[name], RESULTS[name]
    outcome = stored.outcome()
    assert stored.varies == expected["varies"]
    if digest(outcome) == expected["digest"]:
        return
    found = numbers(outcome)
    assert stored.varies, f"results changed: {found}"
    assert found == pytest.approx({key: expected[key] for key in found}, rel=1e-9)
