"""Successive halving: who goes on, what fits into the time, and what may be said of the winner."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.tuning.halving import (
    FINALISTS,
    LEAST_REPETITIONS,
    MOST_REPETITIONS,
    Cost,
    Round,
    next_round,
    sizes,
    speedup,
    survivors,
)

TIMES = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("candidates", "entering"), [(1, (1,)), (3, (3,)), (4, (4, 2)), (9, (9, 3)), (27, (27, 9, 3)), (10, (10, 4, 2))]
)
def test_a_third_goes_on_until_a_few_are_left(candidates: int, entering: tuple[int, ...]) -> None:
    assert sizes(candidates) == entering


@given(st.integers(1, 10_000))
def test_rounds_shrink_to_the_finalists(candidates: int) -> None:
    found = sizes(candidates)
    assert found[0] == candidates
    assert 1 <= found[-1] <= FINALISTS
    assert all(later < earlier <= 3 * later for earlier, later in pairwise(found))


@given(st.integers(1, 500), TIMES, st.floats(0, 10), TIMES, st.floats(0.001, 1), st.integers(1, 20))
def test_the_first_round_takes_all_and_later_ones_fit_the_time(
    candidates: int, remaining: float, overhead: float, epoch: float, least: float, epochs: int
) -> None:
    cost, entering = Cost(overhead, epoch), sizes(candidates)
    first = next_round(entering, remaining, cost, least, epochs, is_first=True)
    assert first is not None
    assert first.entrants == candidates
    for index in range(1, len(entering)):
        later = next_round(entering[index:], remaining, cost, least, epochs, is_first=False)
        if later is None:
            continue
        assert least <= later.share <= 1
        assert 1 <= later.entrants <= entering[index]
        assert later.runs * cost.run_seconds(later.share, later.epochs) <= remaining * (1 + 1e-9)
        assert later.is_last == (index == len(entering) - 1)
        if later.is_last:
            assert LEAST_REPETITIONS <= later.repetitions <= MOST_REPETITIONS


def test_with_time_enough_the_last_round_is_whole_and_repeated() -> None:
    assert next_round([3], 1e6, Cost(0.1, 1), 0.1, 5, is_first=False) == Round(3, MOST_REPETITIONS, 1.0, 5, True)
    assert next_round([9, 3], 1e6, Cost(0.1, 1), 0.1, 5, is_first=True) == Round(9, 1, 1 / 3, 2, False)


def test_with_little_time_runs_get_shorter_then_fewer_go_on_then_none() -> None:
    cost = Cost(0.0, 10.0)
    shorter = next_round([3], 60.0, cost, 0.1, 2, is_first=False)
    assert shorter is not None
    assert shorter.entrants == 3
    assert shorter.share == pytest.approx(0.25)
    fewer = next_round([3], 20.0, cost, 0.1, 2, is_first=False)
    assert fewer is not None
    assert fewer.entrants == 2
    assert fewer.share == pytest.approx(0.1)
    assert next_round([3], 5.0, cost, 0.1, 2, is_first=False) is None


@given(st.dictionaries(st.integers(1, 50), st.lists(TIMES, min_size=1, max_size=5), min_size=1), st.integers(1, 50))
def test_survivors_are_the_fastest_best_first(seconds: dict[int, list[float]], keep: int) -> None:
    def median(number: int) -> float:
        ordered = sorted(seconds[number])
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    found = survivors(seconds, keep)
    assert len(found) == min(keep, len(seconds))
    medians = [median(number) for number in found]
    assert medians == sorted(medians)
    assert all(median(other) >= medians[-1] for other in seconds if other not in found)


@given(st.integers(3, 12).flatmap(lambda n: st.tuples(*[st.lists(TIMES, min_size=n, max_size=n)] * 2)))
def test_the_interval_holds_the_speedup(pair: tuple[list[float], list[float]]) -> None:
    found = speedup(*pair)
    assert found.n == len(pair[0])
    assert found.low * (1 - 1e-9) <= found.median <= found.high * (1 + 1e-9)


def test_of_few_repetitions_all_must_be_faster() -> None:
    assert speedup([2.0, 2.2, 2.1], [1.0, 1.1, 1.2]).low == pytest.approx(2.0 / 1.2)
    assert speedup([2.0, 2.2, 1.1], [1.0, 1.1, 1.2]).low < 1


def test_a_time_of_zero_is_no_error() -> None:
    assert speedup([0.0] * 3, [0.0] * 3).median == 1


@pytest.mark.parametrize(("n", "most"), [(3, 0.1), (6, 0.05), (9, 0.05)])
def test_equal_ones_are_seldom_called_better(n: int, most: float) -> None:
    """With noise of 10 %, in at most so many of a thousand cases, against one other."""
    draw = random.Random(1)
    better = 0
    for _ in range(1000):
        default, other = ([draw.lognormvariate(0, 0.1) for _ in range(n)] for _ in range(2))
        better += speedup(default, other).low > 1
    assert better / 1000 <= most
