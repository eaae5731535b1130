"""Medians and intervals of few values, against the binomial distribution."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.analysis.statistics import FEW, Interval, interval, middle

VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


def coverage(n: int, below: int) -> float:
    """How surely the median lies between the values with `below` smaller and `below` larger ones."""
    tail = sum(math.comb(n, k) for k in range(below + 1))
    return 1 - float(2 * tail / 2**n)


@pytest.mark.parametrize("n", range(FEW, 80))
def test_the_interval_is_the_narrowest_with_95_percent(n: int) -> None:
    found = interval([float(value) for value in range(n)])
    below = int(found.low)
    assert found.high == n - 1 - below
    assert coverage(n, below) >= 0.95
    assert coverage(n, below + 1) < 0.95 or (below + 1) * 2 >= n
    assert (found.kind, found.n) == ("95%", n)


@pytest.mark.parametrize(
    ("n", "low", "high"), [(6, 1, 6), (9, 2, 8), (12, 3, 10), (20, 6, 15), (30, 10, 21), (100, 40, 61)]
)
def test_the_interval_of_the_tables(n: int, low: int, high: int) -> None:
    """Order statistics as printed in textbooks."""
    found = interval([float(value) for value in range(1, n + 1)])
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("n", range(1, FEW))
def test_few_values_give_their_range(n: int) -> None:
    assert coverage(n, 0) < 0.95
    found = interval([float(value) for value in range(n)][::-1])
    assert (found.low, found.high, found.n, found.kind) == (0.0, n - 1.0, n, "range")


def test_very_many_values_are_no_problem() -> None:
    found = interval([float(value) for value in range(5000)])
    assert 2400 < found.low < found.median < found.high < 2600


@given(VALUES)
def test_the_median_is_the_median(values: list[float]) -> None:
    found = interval(values)
    assert found.median == pytest.approx(statistics.median(values))
    assert min(values) <= found.low <= found.high <= max(values)
    assert found.low <= found.median <= found.high


@given(VALUES)
def test_the_middle_items_make_the_median(keys: list[float]) -> None:
    chosen = middle(list(enumerate(keys)), keys)
    assert len(chosen) == 2 - len(keys) % 2
    assert sum(key for _, key in chosen) / len(chosen) == pytest.approx(statistics.median(keys))
    assert len({index for index, _ in chosen}) == len(chosen)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((1, 2), (3, 4), False), ((1, 3), (3, 4), True), ((1, 9), (3, 4), True), ((1, 1), (1, 1), True)],
)
def test_overlap_goes_both_ways(one: tuple[int, int], other: tuple[int, int], expected: bool) -> None:
    a, b = (Interval(low, low, high, 2, "range") for low, high in (one, other))
    assert a.overlaps(b) is b.overlaps(a) is expected
