import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.nightly import first_in_ci
from tests.plan.statistics_of_order import (
    Orders,
    chi_square_limit,
    pair_excess,
    position_excess,
    successor_excess,
)
from tierscope.plan.permutation import IndexArray, Permutation, derive_key

EPOCHS = 2000


def images(n: int, key: bytes) -> IndexArray:
    return Permutation(n, key)(np.arange(n, dtype=np.int64))


@given(st.integers(1, 3000), st.binary(min_size=1, max_size=40))
@example(1, b"k")
@example(2, b"k")
@example(3, b"k")
def test_each_index_is_hit_once(n: int, key: bytes) -> None:
    assert sorted(images(n, key).tolist()) == list(range(n))


@pytest.mark.parametrize("root", [2, 3, 10, 31, 32, 54])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_each_index_is_hit_once_around_squares(root: int, beside: int) -> None:
    n = root * root + beside
    assert sorted(images(n, b"square").tolist()) == list(range(n))


@given(st.integers(1, 2**62 - 1), st.binary(min_size=1, max_size=8), st.data())
def test_large_permutations_stay_inside_and_do_not_collide(n: int, key: bytes, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.integers(0, n - 1), max_size=20, unique=True))
    found = Permutation(n, key)(np.array(some, dtype=np.int64)).tolist()
    assert len(set(found)) == len(some)
    assert all(0 <= image < n for image in found)


@given(st.integers(1, 1000), st.data())
def test_blocks_do_not_matter(n: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, n))
    permutation, everything = Permutation(n, b"cut"), np.arange(n, dtype=np.int64)
    parts = [permutation(everything[:cut]), permutation(everything[cut:])]
    assert np.array_equal(np.concatenate(parts), permutation(everything))


def test_the_argument_is_left_alone() -> None:
    given_indices = np.arange(10, dtype=np.int64)
    Permutation(10, b"x")(given_indices)
    assert given_indices.tolist() == list(range(10))


@pytest.mark.parametrize("n", [0, -1, 2**62])
def test_impossible_sizes(n: int) -> None:
    with pytest.raises(ValueError, match="needs 1 ≤ n"):
        Permutation(n, b"x")


def test_keys_make_different_permutations() -> None:
    assert len({tuple(images(50, derive_key("key", number))) for number in range(100)}) == 100


def test_derived_keys_depend_on_every_part_and_on_where_it_ends() -> None:
    parts: list[tuple[int | str, ...]] = [(1, 2), (2, 1), (12,), (1, 2, 0), ("1", "2x"), ("epoch", 1), ("epoch1",)]
    assert len({derive_key(*some) for some in parts}) == len(parts)


def test_all_orders_of_three_appear_about_equally_often() -> None:
    orders = [tuple(images(3, derive_key("small", number)).tolist()) for number in range(1200)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert sum((count - 200) ** 2 / 200 for count in counts) < chi_square_limit(5)


@pytest.fixture(scope="module", params=first_in_ci([5, 36, 101, 8, 16, 50], 3))
def orders(request: pytest.FixtureRequest) -> Orders:
    n: int = request.param
    return np.stack([images(n, derive_key("uniform", number)) for number in range(EPOCHS)])


def test_every_index_is_at_every_position_equally_often(orders: Orders) -> None:
    assert position_excess(orders) < 1


def test_distances_between_successors_are_equally_frequent(orders: Orders) -> None:
    assert successor_excess(orders) < 1


def test_every_index_follows_every_other_equally_often(orders: Orders) -> None:
    assert pair_excess(orders) < 1


def test_the_statistics_find_what_they_are_for() -> None:
    """Rotations are uniform in position only; a fixed order not even there; NumPy's shuffle in every respect."""
    n, random = 50, np.random.default_rng(1)
    rotations = (np.arange(n) + random.integers(0, n, (EPOCHS, 1))) % n
    assert position_excess(rotations) < 1
    assert successor_excess(rotations) > 5
    assert pair_excess(rotations) > 5
    assert position_excess(np.tile(np.arange(n), (EPOCHS, 1))) > 5
    fair = random.permuted(np.tile(np.arange(n), (EPOCHS, 1)), axis=1)
    assert max(position_excess(fair), successor_excess(fair), pair_excess(fair)) < 1


def test_the_quantile_is_that_of_published_tables() -> None:
    for degrees, limit in [(10, 29.588), (50, 86.661), (100, 149.449)]:
        assert chi_square_limit(degrees) == pytest.approx(limit, rel=1e-2)


def test_golden_values() -> None:
    """The same seed gives the same plan on any machine, and in every later version that reads old results."""
    assert derive_key(42, "base").hex() == "48ab25a91f375c09608ff94e6ef0bc73b59505a6fcb2cfe40c363687d648d08e"
    assert images(12, derive_key(42, "base")).tolist() == [1, 2, 5, 7, 8, 10, 3, 9, 4, 6, 11, 0]
    first = Permutation(10**9, derive_key(42, "epoch", 1, 0))(np.arange(5, dtype=np.int64))
    assert first.tolist() == [998968307, 189608087, 848878484, 988178435, 488933422]


@pytest.mark.parametrize("indices", [[-1], [12], [0, 99]])
def test_an_index_outside_is_refused(indices: list[int]) -> None:
    with pytest.raises(IndexError, match="within 0 – 11"):
        Permutation(12, b"key")(np.array(indices, dtype=np.int64))
