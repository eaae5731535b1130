import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import dealt, make_study, sequence
from tests.plan.statistics_of_order import pair_excess, position_excess, successor_excess
from tierscope.plan.order import BLOCK, Order
from tierscope.spec.study import SHUFFLES

EPOCHS = range(1, 4)


@st.composite
def orders(draw: st.DrawFn, shuffles: tuple[str, ...] = SHUFFLES) -> Order:
    nodes, ranks_per_node = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    per_file = draw(st.integers(1, 7))
    files = draw(st.integers(-(-nodes * ranks_per_node // per_file), 150))
    study = make_study(
        files=files,
        per_file=per_file,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        shuffle=draw(st.sampled_from(shuffles)),
        shuffle_nodes=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 2**63 - 1)),
    )
    return Order.of(study)


def groups(order: Order) -> list[range]:
    """The ranks that shuffle together."""
    starts = range(0, order.ranks, order.group_ranks)
    return [range(start, min(start + order.group_ranks, order.ranks)) for start in starts]


def chunk(order: Order, ranks: range) -> set[int]:
    """The samples that a group owns."""
    low, high = order.stretch(ranks[0], ranks[-1])
    return set(order.base(np.arange(low, high, dtype=np.int64)).tolist())


def test_every_shuffle_is_tested_here() -> None:
    assert set(SHUFFLES) == {"global", "local", "chunked", "off"}


@pytest.mark.parametrize(
    ("shuffle", "shuffle_nodes", "group_ranks"),
    [("global", 1, 12), ("off", 1, 12), ("local", 1, 1), ("chunked", 1, 3), ("chunked", 2, 6), ("chunked", 99, 12)],
)
def test_who_shuffles_together(shuffle: str, shuffle_nodes: int, group_ranks: int) -> None:
    study = make_study(nodes=4, ranks_per_node=3, shuffle=shuffle, shuffle_nodes=shuffle_nodes)
    assert Order.of(study).group_ranks == group_ranks


@given(orders(), st.sampled_from(EPOCHS))
@settings(max_examples=examples(50))
def test_no_sample_is_read_twice_in_an_epoch_and_only_the_remainder_is_left_out(order: Order, epoch: int) -> None:
    read = np.concatenate([sequence(order, rank, epoch) for rank in range(order.ranks)]).tolist()
    assert len(set(read)) == len(read)
    assert set(read) <= set(range(order.samples))
    assert order.samples - len(read) == order.trimmed < order.ranks


@given(orders())
def test_the_groups_own_every_sample_once(order: Order) -> None:
    owned = [sample for group in groups(order) for sample in chunk(order, group)]
    assert sorted(owned) == list(range(order.samples))


@given(orders(("global", "off")), st.sampled_from(EPOCHS))
@settings(max_examples=examples(50))
def test_before_trimming_every_sample_is_there_once(order: Order, epoch: int) -> None:
    """One rank alone reads the whole order, and any number of ranks together read the front of it."""
    whole = sequence(replace(order, ranks=1, group_ranks=1), 0, epoch).tolist()
    assert sorted(whole) == list(range(order.samples))
    together = dealt(order, range(order.ranks), epoch).tolist()
    assert together == whole[: len(together)]


@given(orders(), st.sampled_from(EPOCHS))
@settings(max_examples=examples(50))
def test_every_rank_reads_the_same_number(order: Order, epoch: int) -> None:
    assert {len(sequence(order, rank, epoch)) for rank in range(order.ranks)} == {order.samples // order.ranks}


@given(
    st.integers(1, 400), st.integers(1, 5), st.integers(1, 24), st.integers(1, 24), st.sampled_from(["global", "off"])
)
@settings(max_examples=examples(50))
def test_the_global_order_is_the_same_for_any_number_of_ranks(
    files: int, per_file: int, some: int, others: int, shuffle: str
) -> None:
    found = []
    for ranks in (some, others):
        order = Order.of(make_study(files=files, per_file=per_file, nodes=ranks, shuffle=shuffle))
        found.append(dealt(order, range(ranks), 2).tolist())
    common = min(map(len, found))
    assert found[0][:common] == found[1][:common]


def test_ranks_on_one_node_or_on_many_read_the_same() -> None:
    one, many = (
        Order.of(make_study(nodes=nodes, ranks_per_node=8 // nodes, shuffle="global", files=100)) for nodes in (1, 8)
    )
    assert np.array_equal(dealt(one, range(8), 1), dealt(many, range(8), 1))


@given(orders(("local", "chunked")))
@settings(max_examples=examples(50))
def test_a_group_stays_in_its_chunk_for_ever(order: Order) -> None:
    for group in groups(order):
        own = chunk(order, group)
        assert len(own) in (
            order.samples * len(group) // order.ranks,
            -(-order.samples * len(group) // order.ranks),
        )
        for epoch in EPOCHS:
            assert set(dealt(order, group, epoch).tolist()) <= own


@given(st.integers(1, 16), st.integers(1, 30), st.integers(1, 3))
@settings(max_examples=examples(50))
def test_local_a_rank_reads_the_same_set_in_every_epoch_when_nothing_is_left_over(
    ranks: int, share: int, per_file: int
) -> None:
    order = Order.of(make_study(files=ranks * share, per_file=per_file, nodes=ranks, shuffle="local"))
    for rank in range(ranks):
        first, second = (sequence(order, rank, epoch).tolist() for epoch in (1, 2))
        assert sorted(first) == sorted(second)


@pytest.mark.parametrize("shuffle", ["global", "local", "chunked"])
def test_what_is_left_over_is_another_each_epoch(shuffle: str) -> None:
    order = Order.of(make_study(files=127, nodes=8, shuffle=shuffle, shuffle_nodes=3))
    assert order.trimmed == 7
    left = [
        frozenset(range(127)) - {int(sample) for rank in range(8) for sample in sequence(order, rank, epoch)}
        for epoch in range(1, 11)
    ]
    assert len(set(left)) > 5


@pytest.mark.parametrize("shuffle", ["global", "local", "chunked"])
@pytest.mark.parametrize("per_file", [1, 5])
def test_epochs_and_seeds_differ(shuffle: str, per_file: int) -> None:
    def found(seed: int, epoch: int) -> tuple[int, ...]:
        study = make_study(files=80, per_file=per_file, nodes=4, shuffle=shuffle, shuffle_nodes=2, seed=seed)
        return tuple(sequence(Order.of(study), 1, epoch).tolist())

    assert len({found(seed, epoch) for seed in range(5) for epoch in range(1, 6)}) == 25
    assert found(3, 2) == found(3, 2)


def test_ranks_of_a_local_shuffle_are_shuffled_differently() -> None:
    order = Order.of(make_study(files=160, nodes=4, shuffle="local"))
    where = np.empty(160, dtype=np.int64)
    where[order.base(np.arange(160, dtype=np.int64))] = np.arange(160)
    patterns = {tuple((where[sequence(order, rank, 1)] - 40 * rank).tolist()) for rank in range(4)}
    assert len(patterns) == 4


def test_off_is_file_order() -> None:
    order = Order.of(make_study(files=12, per_file=2, nodes=3, shuffle="off"))
    for epoch in EPOCHS:
        assert dealt(order, range(3), epoch).tolist() == list(range(24))


@pytest.mark.parametrize("shuffle", ["local", "chunked"])
def test_a_chunk_is_made_of_whole_files_but_for_its_ends(shuffle: str) -> None:
    order = Order.of(make_study(files=50, per_file=4, nodes=7, shuffle=shuffle))
    for group in groups(order):
        files = {sample // 4 for sample in chunk(order, group)}
        assert len(files) <= len(chunk(order, group)) // 4 + 2


def test_a_chunk_is_a_random_choice_of_files() -> None:
    """About half of it from the first half of the files, and about half of it odd."""
    order = Order.of(make_study(files=1000, nodes=2, shuffle="local"))
    own = chunk(order, range(1))
    assert 200 < sum(sample < 500 for sample in own) < 300
    assert 200 < sum(sample % 2 for sample in own) < 300


@pytest.mark.parametrize("samples", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_blocks_are_small_and_together_the_whole(samples: int) -> None:
    order = Order.of(make_study(files=samples))
    blocks = list(order.indices(0, 1))
    assert max(map(len, blocks)) <= BLOCK
    assert sorted(np.concatenate(blocks).tolist()) == list(range(samples))


@pytest.mark.parametrize("shuffle", ["global", "local"])
def test_positions_and_neighbours_are_uniform_over_epochs(shuffle: str) -> None:
    study = make_study(files=50, seed=11, shuffle=shuffle)
    found = np.stack([sequence(Order.of(study), 0, epoch) for epoch in range(1, 1001)])
    assert max(position_excess(found), successor_excess(found), pair_excess(found)) < 1


def test_a_rank_gets_every_sample_equally_often() -> None:
    """Over epochs, a rank of a global shuffle sees all samples, not some of them more often."""
    order = Order.of(make_study(files=48, nodes=3, seed=5))
    counts = np.zeros(48)
    for epoch in range(1, 1501):
        counts[sequence(order, 1, epoch)] += 1
    # Each count is binomial: 1500 draws with probability 1/3.
    assert np.abs(counts - 500).max() < 4 * np.sqrt(1500 * (1 / 3) * (2 / 3))


GOLDEN = {
    "global": [0, 2, 12, 13, 14],
    "local": [9, 12, 13, 19, 8],
    "chunked": [7, 12, 13, 8, 6],
    "off": [3, 7, 11, 15, 19],
}


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_golden_orders(shuffle: str) -> None:
    """The same seed gives the same plan on any machine."""
    study = make_study(files=10, per_file=2, nodes=2, ranks_per_node=2, shuffle=shuffle)
    assert sequence(Order.of(study), 3, 2).tolist() == GOLDEN[shuffle]


FIRST_OF_A_BILLION = """
import resource, sys, tracemalloc
from tierscope.plan.order import BLOCK, Order
from tierscope.plan.permutation import Permutation

computed = 0
once = Permutation._once

def counting(self, values):
    global computed
    computed += len(values)
    return once(self, values)

Permutation._once = counting
order = Order(samples=10**9, samples_per_file=int(sys.argv[1]), ranks=16, group_ranks=int(sys.argv[2]), seed=42, shuffled=True)
list(next(Order(1000, 1, 1, 1, 42, True).indices(0, 1)))  # what NumPy loads on first use is not ours
computed = 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tracemalloc.start()
block = next(iter(order.indices(5, 1)))
assert 0 <= int(block[0]) < 10**9 and len(block) == BLOCK
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(max(grown, tracemalloc.get_traced_memory()[1]), computed)
"""


@pytest.mark.parametrize(("per_file", "group_ranks"), [(1, 16), (1000, 1)])
def test_a_billion_samples_cost_no_memory_and_only_the_work_of_one_block(per_file: int, group_ranks: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FIRST_OF_A_BILLION, str(per_file), str(group_ranks)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown_bytes, computed = map(int, result.stdout.split())
    assert grown_bytes < 50e6
    assert computed < 2.5 * BLOCK  # one block through two permutations, and few walk a second time
