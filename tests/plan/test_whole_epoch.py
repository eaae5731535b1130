"""All ranks' samples at once are what each rank gets alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import make_study, sequence
from tierscope.plan.order import BLOCK, Order
from tierscope.spec.study import SHUFFLES


def stacked(order: Order, epoch: int) -> list[list[int]]:
    return [sequence(order, rank, epoch).tolist() for rank in range(order.ranks)]


@given(
    files=st.integers(1, 150),
    per_file=st.integers(1, 7),
    nodes=st.integers(1, 7),
    ranks_per_node=st.integers(1, 4),
    shuffle=st.sampled_from(SHUFFLES),
    shuffle_nodes=st.integers(1, 4),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(1, 5),
)
@settings(max_examples=examples(150))
def test_it_is_every_ranks_own_order(epoch: int, **study: int | str) -> None:
    """Also where ranks do not divide into groups, samples not over ranks, or there are fewer samples than ranks."""
    order = Order.of(make_study(**study))  # type: ignore[arg-type]
    found = order.whole_epoch(epoch)
    assert found.shape == (order.ranks, order.samples_per_rank)
    assert found.dtype == np.int64
    assert found.tolist() == stacked(order, epoch)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_beyond_a_block(shuffle: str) -> None:
    order = Order.of(make_study(files=3 * (BLOCK + 5) + 2, nodes=3, shuffle=shuffle, shuffle_nodes=2))
    assert order.samples_per_rank > BLOCK
    assert order.whole_epoch(2).tolist() == stacked(order, 2)
