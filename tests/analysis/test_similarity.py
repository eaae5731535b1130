"""Similarity: 1 with itself, 1 when all is halved though every metric differs, and what is not in both is named."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import trace_of
from tierscope.analysis.character_metrics import METRICS, Fact, WriteUse
from tierscope.analysis.characterise import Character, characterise
from tierscope.analysis.similarity import cosine_of, similarity
from tierscope.report.similarity import cosine_sentence, insensitive_sentence

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


def writing(count: int, mean: float, consecutive: float) -> Character:
    used = WriteUse(count, int(count * mean), 1.0, Fact(mean), Fact(100.0), Fact(consecutive))
    return replace(ONE, writes=used)


def test_writes_are_compared_beside_the_cosine() -> None:
    found = similarity(writing(1024, 1024.0, 99.0), writing(1, 1024.0**2, 50.0))
    assert found.cosine == pytest.approx(1.0)
    assert {each.name: each.ratio for each in found.writes} == {
        "writes": 1024.0,
        "write_mean": 1024.0,
        "write_sequential_percent": 1.0,
        "write_consecutive_percent": 1.98,
    }
    assert [each.name for each in found.far_apart] == ["writes", "write_mean"]
    assert cosine_sentence(found) == (
        "Cosine similarity 1.0000 (n=10 of 10 metrics), but 2 metrics differ 2× or more: writes (1,024×), mean write (1,024×)."
    )
    assert insensitive_sentence(found) == ""


def test_where_only_one_writes_the_other_has_no_writes() -> None:
    found = similarity(writing(8, 10.0, 0.0), ONE)
    assert [(each.name, each.first, each.second) for each in found.writes] == [("writes", 8.0, 0.0)]
    assert found.left_out == ()
    assert similarity(ONE, ONE).writes == ()


def test_what_is_not_known_of_writes_is_named() -> None:
    streams = replace(ONE, writes=replace(writing(8, 10.0, 0.0).writes, consecutive_percent=Fact(None, reason="stdio")))
    found = similarity(streams, writing(8, 10.0, 0.0))
    assert [(each.name, each.reason) for each in found.left_out] == [("write_consecutive_percent", "A: stdio")]


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


def changed(**values: float) -> Character:
    return replace(ONE, metrics={**ONE.metrics, **{name: Fact(value) for name, value in values.items()}})


def test_the_metric_that_holds_it_down_is_named_first_and_by_how_much() -> None:
    """All alike but one: without it the cosine is 1, and without any other it falls."""
    likeness = similarity(ONE, changed(bandwidth_per_operation=12.5))
    (lowering,) = likeness.held_down_by
    assert lowering.name == "bandwidth_per_operation"
    assert lowering.cosine_without == pytest.approx(1.0)
    assert likeness.rise(lowering) == pytest.approx(1 - (likeness.cosine or 0))
    assert all(likeness.rise(metric) < 0 for metric in likeness.metrics if metric.name != lowering.name)


def test_a_tenfold_difference_hides_in_a_high_cosine_and_is_named() -> None:
    likeness = similarity(ONE, changed(bandwidth_per_operation=12.5))
    assert likeness.cosine is not None
    assert likeness.cosine > 0.95  # as high as DLIO's own table
    assert [(metric.name, metric.ratio) for metric in likeness.far_apart] == [("bandwidth_per_operation", 10.0)]
    gone = similarity(ONE, changed(bandwidth_per_operation=0.0))
    assert gone.cosine == pytest.approx(gone.least_for_one)
    assert math.isinf(gone.far_apart[0].ratio)


def test_runs_of_different_scale_are_told_and_compared_without_what_grows() -> None:
    assert similarity(ONE, ONE).same_scale
    larger = changed(io_seconds=80.0, bytes=10_000.0, files=40.0)
    likeness = similarity(ONE, larger)
    assert not likeness.same_scale
    assert likeness.cosine_of_habits == pytest.approx(1.0)
    assert (likeness.cosine or 1) < 0.9
    assert not similarity(ONE, replace(ONE, epochs=ONE.epochs + 1)).same_scale
    assert not similarity(ONE, replace(ONE, ranks=ONE.ranks * 2)).same_scale


@given(NUMBERS, NUMBERS)
def test_the_cosine_without_a_metric_is_the_cosine_of_the_others(first: list[float], second: list[float]) -> None:
    likeness = similarity(having(*first), having(*second))
    for metric in likeness.metrics:
        others = [other for other in likeness.metrics if other is not metric]
        assert metric.cosine_without == cosine_of(others)
    rises = [likeness.rise(metric) for metric in likeness.held_down_by]
    assert rises == sorted(rises, reverse=True)


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
