"""Similarity: 1 with itself, 1 when all is halved though every metric differs, and what is not in both is named."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import trace_of
from tierscope.analysis.character_metrics import METRICS, Fact
from tierscope.analysis.characterise import Character, characterise
from tierscope.analysis.similarity import similarity

PLAIN = characterise(trace_of({(0, 1): {"GFS-READ": 2.0}}))
NUMBERS = st.lists(st.floats(0, 1e12), min_size=len(METRICS), max_size=len(METRICS))


def having(*values: float) -> Character:
    return replace(PLAIN, metrics={name: Fact(value) for name, value in zip(METRICS, values, strict=True)})


ONE = having(8.0, 1000.0, 10.0, 40.0, 20.0, 16.0, 125.0, 90.0, 80.0, 4.0)


def test_a_run_is_like_itself() -> None:
    for character in (ONE, PLAIN):
        found = similarity(character, character)
        assert found.cosine == pytest.approx(1.0, abs=1e-12)
        assert all(each.difference == 0 for each in found.metrics)


def test_halving_everything_is_seen_by_the_differences_only() -> None:
    half = having(*(fact.value / 2 for fact in ONE.metrics.values() if fact.value is not None))
    found = similarity(ONE, half)
    assert found.cosine == pytest.approx(1.0)
    assert [each.difference for each in found.metrics] == [0.5] * len(METRICS)
    assert found.largest is not None
    assert found.largest.difference == 0.5
    assert similarity(half, ONE).largest.difference == -0.5  # type: ignore[union-attr]


def test_by_hand() -> None:
    """All alike but the bytes, which are twice as many, and the files, of which there are none."""
    values = [fact.value or 0.0 for fact in ONE.metrics.values()]
    values[1], values[9] = 2000.0, 0.0
    found = similarity(ONE, having(*values))
    assert found.cosine == pytest.approx(8.5 / math.sqrt(9.25 * 9.0))
    assert {each.name: each.difference for each in found.metrics if each.difference} == {"bytes": -0.5, "files": 1.0}
    assert found.largest is not None
    assert found.largest.name == "files"


def test_what_either_lacks_is_left_out_and_named() -> None:
    found = similarity(ONE, PLAIN)
    assert {each.name for each in found.left_out} == {"sequential_percent", "consecutive_percent", "files"}
    assert all(each.reason.startswith("B: ") for each in found.left_out)
    assert len(found.metrics) == len(METRICS) - 3


def test_nothing_in_common() -> None:
    nothing = replace(PLAIN, metrics=dict.fromkeys(METRICS, Fact(None, reason="lost")))
    found = similarity(nothing, nothing)
    assert (found.cosine, found.largest, found.metrics) == (None, None, ())
    assert found.left_out[0].reason == "A: lost; B: lost"


@pytest.mark.parametrize(
    ("exact", "pair"),
    [
        (100.0, (100.0, 100.0)),  # within the other's limits: no difference is known
        (64.0, (64.0, 64.0)),
        (32.0, (64.0, 32.0)),
        (256.0, (127.0, 256.0)),
    ],
)
def test_limits_are_taken_where_they_are_nearest(exact: float, pair: tuple[float, float]) -> None:
    binned = replace(ONE, metrics={**ONE.metrics, "transfer_min": Fact(80.0, "histogram", 64.0, 127.0)})
    single = replace(ONE, metrics={**ONE.metrics, "transfer_min": Fact(exact, "operations")})
    each = next(each for each in similarity(binned, single).metrics if each.name == "transfer_min")
    assert (each.first, each.second) == pair
    assert each.at_least
    other = next(each for each in similarity(single, binned).metrics if each.name == "transfer_min")
    assert (other.second, other.first) == pair


def test_the_same_basis_is_compared_by_its_values() -> None:
    one, other = (
        replace(ONE, metrics={**ONE.metrics, "transfer_max": Fact(high, "histogram", high / 2, high)})
        for high in (64.0, 128.0)
    )
    each = next(each for each in similarity(one, other).metrics if each.name == "transfer_max")
    assert (each.difference, each.at_least) == (-0.5, False)


@given(NUMBERS, NUMBERS)
def test_bounds_and_symmetry(first: list[float], second: list[float]) -> None:
    found, turned = similarity(having(*first), having(*second)), similarity(having(*second), having(*first))
    assert found.cosine is not None
    assert 0 <= found.cosine <= 1
    assert found.cosine == turned.cosine
    for one, other in zip(found.metrics, turned.metrics, strict=True):
        assert one.difference == -other.difference
        assert abs(one.difference) <= 1
