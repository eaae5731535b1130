import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tierscope.plan.placement import Pinned

SEEDS = st.integers(0, 2**63 - 1)
RATES = st.floats(0, 1)


def tiers(placement: Pinned) -> list[int]:
    """The tier of every file."""
    return placement.tiers_of(np.arange(placement.files, dtype=np.int64)).tolist()  # type: ignore[no-any-return]


def cached(files: int, seed: int, rate: float) -> set[int]:
    """What lies on the near one of two tiers."""
    return {file for file, tier in enumerate(tiers(Pinned.at(files, seed, rate, [None]))) if tier == 0}


@given(st.integers(1, 2000), SEEDS, RATES)
@example(7, 1, 0.5)
def test_the_number_of_cached_files_is_exact(files: int, seed: int, rate: float) -> None:
    assert len(cached(files, seed, rate)) == round(rate * files)


@given(st.integers(1, 500), SEEDS)
def test_exact_at_none_and_all(files: int, seed: int) -> None:
    assert cached(files, seed, 0.0) == set()
    assert cached(files, seed, 1.0) == set(range(files))


@given(st.integers(1, 500), SEEDS, st.lists(RATES, min_size=2, max_size=5).map(sorted))
def test_a_larger_set_contains_the_smaller_one(files: int, seed: int, rates: list[float]) -> None:
    sets = [cached(files, seed, rate) for rate in rates]
    for smaller, larger in itertools.pairwise(sets):
        assert smaller <= larger


def test_the_percent_steps_of_a_sweep_are_nested() -> None:
    sets = [cached(1536, 42, percent / 100) for percent in range(0, 101, 5)]
    assert all(smaller < larger for smaller, larger in itertools.pairwise(sets))


def test_the_set_is_random_and_depends_on_the_seed() -> None:
    one, other = cached(1000, 1, 0.5), cached(1000, 2, 0.5)
    assert 180 < len(one & other) < 320
    assert 180 < sum(file < 500 for file in one) < 320


@given(st.integers(1, 300), SEEDS, RATES, st.lists(st.none() | st.integers(0, 300), min_size=0, max_size=4))
def test_near_tiers_are_filled_nearest_first_up_to_their_room(
    files: int, seed: int, rate: float, rooms: list[int | None]
) -> None:
    counts = np.bincount(tiers(Pinned.at(files, seed, rate, rooms)), minlength=len(rooms) + 1).tolist()
    left = round(rate * files) if rooms else 0
    for index, room in enumerate(rooms):
        last_near = index == len(rooms) - 1
        expected = left if last_near or room is None else min(left, room)
        assert counts[index] == expected
        left -= expected
    assert counts[-1] == files - (round(rate * files) if rooms else 0)


@given(st.integers(1, 300), SEEDS, RATES, RATES, st.integers(0, 300))
def test_a_file_never_moves_farther_when_more_is_cached(
    files: int, seed: int, one: float, other: float, room: int
) -> None:
    low, high = sorted((one, other))
    before, after = (tiers(Pinned.at(files, seed, rate, [room, None])) for rate in (low, high))
    assert all(late <= early for early, late in zip(before, after, strict=True))


def test_golden_placement() -> None:
    """The same seed pins the same files on any machine."""
    assert cached(20, 42, 0.3) == {0, 6, 11, 12, 14, 19}


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_one_tier_holds_everything(rate: float) -> None:
    assert set(tiers(Pinned.at(50, 1, rate, []))) == {0}
