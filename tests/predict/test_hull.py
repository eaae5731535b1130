"""Whatever the factors, the largest sum is among the rows that are kept."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tierscope.predict.hull import Floats, upper_hull

Generator = np.random.Generator


def spherical(generator: Generator, rows: int, classes: int) -> Floats:
    """Every row is the largest in its own direction."""
    rays = np.abs(generator.normal(size=(rows, classes))) + 1e-3
    lengths: Floats = np.sqrt((rays**2).sum(axis=1, keepdims=True))
    return rays / lengths


def with_zero_columns(generator: Generator, rows: int, classes: int) -> Floats:
    return generator.gamma(9.0, 0.1, (rows, classes)) * generator.integers(0, 2, classes)


def with_duplicates(generator: Generator, rows: int, classes: int) -> Floats:
    return generator.choice(spherical(generator, max(1, rows // 3), classes), rows)


def of_all_magnitudes(generator: Generator, rows: int, classes: int) -> Floats:
    return 10.0 ** (generator.uniform(-9, 9, (rows, classes)) + generator.uniform(-90, 90, classes))


def on_a_plane(generator: Generator, rows: int, classes: int) -> Floats:
    """Many rows are equally large in one direction."""
    return generator.dirichlet(np.ones(classes), rows)


KINDS_OF_TIMES: dict[str, Callable[[Generator, int, int], Floats]] = {
    "independent": lambda generator, rows, classes: generator.gamma(9.0, 0.1, (rows, classes)),
    "spherical": spherical,
    "zero columns": with_zero_columns,
    "all zeros": lambda _, rows, classes: np.zeros((rows, classes)),
    "duplicates": with_duplicates,
    "magnitudes": of_all_magnitudes,
    "on a plane": on_a_plane,
}


def some_factors(generator: Generator, times: Floats, count: int = 64) -> Floats:
    """Such that every class counts somewhere, and with zeros."""
    classes = times.shape[1]
    factors = 10.0 ** generator.uniform(-2, 2, (count, classes)) * generator.integers(0, 2, (count, classes))
    tops = np.where(times.max(axis=0) > 0, times.max(axis=0), 1.0)
    return np.vstack([factors / tops, np.eye(classes), np.ones((1, classes)), 1 / tops[None]])


@settings(max_examples=examples(100), deadline=None)  # where all of them stay, it takes longest
@given(st.sampled_from(sorted(KINDS_OF_TIMES)), st.integers(1, 150), st.integers(1, 6), st.integers(0, 2**32))
def test_the_largest_sum_stays(kind: str, rows: int, classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    times = KINDS_OF_TIMES[kind](generator, rows, classes)
    kept = upper_hull(times)
    factors = some_factors(generator, times)
    np.testing.assert_allclose(
        (times[kept] @ factors.T).max(axis=0), (times @ factors.T).max(axis=0), rtol=1e-12, atol=0
    )


@settings(max_examples=examples(100))
@given(st.sampled_from([2, 10, 1000, 2**20]), st.integers(1, 150), st.integers(1, 5), st.integers(0, 2**32))
def test_the_largest_sum_of_whole_numbers_stays_to_the_last_bit(below: int, rows: int, classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    times = generator.integers(0, below, (rows, classes)).astype(np.float64)
    factors = 2.0 ** generator.integers(-6, 7, (64, classes)) * generator.integers(0, 2, (64, classes))
    kept = upper_hull(times)
    assert (times[kept] @ factors.T).max(axis=0).tolist() == (times @ factors.T).max(axis=0).tolist()


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(KINDS_OF_TIMES)), st.integers(1, 60), st.integers(1, 4), st.integers(0, 2**32))
def test_rows_are_named_once_and_in_order(kind: str, rows: int, classes: int, seed: int) -> None:
    kept = upper_hull(KINDS_OF_TIMES[kind](np.random.default_rng(seed), rows, classes)).tolist()
    assert kept == sorted(set(kept))
    assert set(kept) <= set(range(rows))
    assert kept


def test_the_times_are_left_as_they_are() -> None:
    times = spherical(np.random.default_rng(1), 100, 4)
    copy = times.copy()
    upper_hull(times)
    assert times.tolist() == copy.tolist()


@pytest.mark.parametrize(("rows", "classes"), [(300, 2), (300, 3), (1000, 4)])
def test_where_everybody_can_be_the_slowest_everybody_stays(rows: int, classes: int) -> None:
    times = spherical(np.random.default_rng(5), rows, classes)
    assert len(upper_hull(times)) == rows


def test_of_equal_rows_one_stays() -> None:
    times = np.tile(spherical(np.random.default_rng(2), 40, 3), (3, 1))
    assert upper_hull(times).tolist() == list(range(40))
    assert upper_hull(np.ones((50, 4))).tolist() == [0]
    assert upper_hull(np.zeros((50, 4))).tolist() == [0]


def test_of_one_class_only_the_largest_stays() -> None:
    assert upper_hull(np.array([[3.0], [7.0], [5.0], [7.0]])).tolist() == [1]
    assert upper_hull(np.array([[0.0, 3.0], [0.0, 5.0], [0.0, 4.0]])).tolist() == [1]


def test_of_many_processes_few_can_be_the_slowest() -> None:
    """3,072 processes with 192 files each, of which 65 % are near: the sums of that many times hardly differ."""
    generator = np.random.default_rng(3)
    near = generator.binomial(192, 0.65, 3072)
    counts = np.column_stack([192 - near, 192 - near, near, near])
    times = generator.gamma(counts * 2.0, [[0.01, 0.03, 0.02, 0.001]])
    assert 4 <= len(upper_hull(times)) < 0.15 * len(times)


def test_a_class_that_hardly_counts_is_not_forgotten() -> None:
    """It decides as soon as everything else is infinitely fast."""
    generator = np.random.default_rng(4)
    times = generator.gamma(50.0, 1.0, (500, 3)) * [1e9, 1.0, 1e-9]
    kept = upper_hull(times)
    assert set(times.argmax(axis=0).tolist()) <= set(kept.tolist())
    assert len(kept) < 40  # nor do cones go to waste on one class
