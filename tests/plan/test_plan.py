from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import make_study, near_tier, sequence
from tierscope.plan.order import BLOCK
from tierscope.plan.plan import Plan
from tierscope.spec.study import SHUFFLES, Study

FILE_BYTES = 100
EPOCHS = range(1, 4)


def plan_of(study: Study) -> Plan:
    return Plan.of(study, FILE_BYTES)


def held(plan: Plan, tier: int, node: int | None, part: int = 0, parts: int = 1) -> list[int]:
    return [int(file) for block in plan.files_on(tier, node, part, parts) for file in block]


@st.composite
def studies(draw: st.DrawFn) -> Study:
    nodes, ranks_per_node = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    per_file = draw(st.integers(1, 5))
    tier = st.builds(
        near_tier,
        st.just("near"),
        st.none() | st.integers(0, 100 * FILE_BYTES),
        st.sampled_from(["node", "global"]),
    )
    return make_study(
        files=draw(st.integers(-(-nodes * ranks_per_node // per_file), 120)),
        per_file=per_file,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        shuffle=draw(st.sampled_from(SHUFFLES)),
        shuffle_nodes=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 1000)),
        cache_rate=draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        batch_size=draw(st.integers(1, 20)),
        near=draw(st.lists(tier, max_size=2)),
    )


def nodes_that_keep(study: Study, tier: int) -> list[int | None]:
    """Whose copies there are on a tier: each node's, or everybody's."""
    return list(range(study.system.nodes)) if study.system.tiers[tier].visible_to == "node" else [None]


@given(studies(), st.data())
@settings(max_examples=examples(50))
def test_reads_follow_the_order_in_whole_batches(study: Study, data: st.DataObject) -> None:
    plan = plan_of(study)
    rank, epoch = data.draw(st.integers(0, plan.ranks - 1)), data.draw(st.sampled_from(EPOCHS))
    blocks = list(plan.reads(rank, epoch))
    samples = np.concatenate([block.samples for block in blocks])
    assert samples.tolist() == sequence(plan.order, rank, epoch).tolist()
    assert all(len(block.samples) % plan.batch_size == 0 for block in blocks[:-1])
    assert plan.steps == sum(-(-len(block.samples) // plan.batch_size) for block in blocks)
    per_file = study.workload.dataset.num_samples_per_file
    for block in blocks:
        assert (block.files * per_file + block.inside).tolist() == block.samples.tolist()
        assert block.inside.max() < per_file
        assert block.tiers.tolist() == plan.placement.tiers_of(block.files).tolist()


@pytest.mark.parametrize("batch_size", [1, 3, 1000, BLOCK, BLOCK + 1, 3 * BLOCK, 10**6])
def test_batches_may_be_larger_than_blocks(batch_size: int) -> None:
    plan = plan_of(make_study(files=2 * BLOCK + 17, batch_size=batch_size))
    blocks = [block.samples for block in plan.reads(0, 1)]
    assert all(len(block) % batch_size == 0 for block in blocks[:-1])
    assert sorted(np.concatenate(blocks).tolist()) == list(range(2 * BLOCK + 17))
    assert plan.steps == -(-(2 * BLOCK + 17) // batch_size)


def test_ranks_are_counted_node_by_node() -> None:
    plan = plan_of(make_study(nodes=3, ranks_per_node=2))
    assert [plan.node_of(rank) for rank in range(plan.ranks)] == [0, 0, 1, 1, 2, 2]


@given(studies(), st.integers(1, 6))
@settings(max_examples=examples(50))
def test_parts_are_disjoint_and_complete(study: Study, parts: int) -> None:
    plan = plan_of(study)
    for tier in range(len(study.system.tiers)):
        for node in nodes_that_keep(study, tier):
            shared = [file for part in range(parts) for file in held(plan, tier, node, part, parts)]
            assert len(set(shared)) == len(shared)
            assert sorted(shared) == sorted(held(plan, tier, node))


@given(studies())
@settings(max_examples=examples(50))
def test_files_held_is_how_many_there_are(study: Study) -> None:
    plan = plan_of(study)
    for tier in range(len(study.system.tiers)):
        for node in nodes_that_keep(study, tier):
            assert plan.files_held(tier, node) == len(held(plan, tier, node))


@given(studies())
@settings(max_examples=examples(40))
def test_what_a_node_keeps_is_enough_for_all_that_its_ranks_read(study: Study) -> None:
    plan = plan_of(study)
    kept = {
        (tier, node): set(held(plan, tier, node))
        for tier in range(len(study.system.tiers))
        for node in nodes_that_keep(study, tier)
    }
    for rank in range(plan.ranks):
        for epoch in EPOCHS:
            for block in plan.reads(rank, epoch):
                for tier, file in zip(block.tiers.tolist(), block.files.tolist(), strict=True):
                    node = plan.node_of(rank) if study.system.tiers[tier].visible_to == "node" else None
                    assert file in kept[tier, node]


@given(studies())
@settings(max_examples=examples(50))
def test_the_last_tier_holds_every_file_and_a_shared_near_one_all_that_are_pinned(study: Study) -> None:
    plan = plan_of(study)
    files = study.workload.dataset.num_files_train
    last = len(study.system.tiers) - 1
    assert sorted(held(plan, last, None)) == list(range(files))
    near = [file for tier in range(last) for file in held(plan, tier, None)]
    assert len(near) == len(set(near)) == (round(study.placement.cache_rate * files) if last else 0)


@pytest.mark.parametrize(
    ("shuffle", "shuffle_nodes", "most"), [("local", 1, 32), ("chunked", 2, 64), ("global", 1, 128)]
)
def test_a_node_keeps_only_what_its_ranks_may_read(shuffle: str, shuffle_nodes: int, most: int) -> None:
    study = make_study(
        files=128, nodes=4, ranks_per_node=2, shuffle=shuffle, shuffle_nodes=shuffle_nodes, cache_rate=1.0
    )
    plan = plan_of(study)
    assert [plan.files_held(0, node) for node in range(4)] == [most] * 4


def test_many_samples_per_file_make_neighbours_share_a_file() -> None:
    """5 files of 4 samples over 3 nodes: two files lie across the border and are kept on both sides."""
    plan = plan_of(make_study(files=5, per_file=4, nodes=3, shuffle="local", cache_rate=1.0))
    kept = [held(plan, 0, node) for node in range(3)]
    assert sorted(file for files in kept for file in set(files)) != list(range(5))
    assert set().union(*kept) == set(range(5))
    assert sum(map(len, kept)) == 7


def test_near_tiers_fill_up_to_their_capacity_nearest_first() -> None:
    near = [near_tier("ram", 10 * FILE_BYTES), near_tier("ssd", 25 * FILE_BYTES + 99), near_tier("far", None, "global")]
    study = make_study(files=100, nodes=2, cache_rate=0.5, near=near)
    plan = plan_of(study)
    assert [plan.files_held(tier, 0) for tier in range(4)] == [10, 25, 15, 100]
    lower = plan_of(replace(study, placement=replace(study.placement, cache_rate=0.2)))
    assert [lower.files_held(tier, 0) for tier in range(4)] == [10, 10, 0, 100]


def test_too_little_room_in_the_last_near_tier_is_left_to_be_refused() -> None:
    plan = plan_of(make_study(files=100, cache_rate=0.5, near=[near_tier("ssd", 10 * FILE_BYTES)]))
    assert plan.files_held(0, 0) == 50


def test_a_capacity_of_nothing_is_skipped() -> None:
    plan = plan_of(make_study(files=100, cache_rate=0.5, near=[near_tier("ram", 0), near_tier("ssd")]))
    assert [plan.files_held(tier, 0) for tier in range(3)] == [0, 50, 100]


def test_a_sweep_of_the_cache_rate_moves_files_and_nothing_else() -> None:
    study = make_study(files=40, nodes=2, cache_rate=0.25)
    low = plan_of(study)
    high = plan_of(replace(study, placement=replace(study.placement, cache_rate=0.75)))
    for rank in range(2):
        for one, other in zip(low.reads(rank, 1), high.reads(rank, 1), strict=True):
            assert one.samples.tolist() == other.samples.tolist()
    assert set(held(low, 0, 0)) < set(held(high, 0, 0))


@pytest.mark.parametrize("parts", [1, 3])
def test_more_files_than_a_block_are_all_there(parts: int) -> None:
    files = parts * BLOCK * 2 + 5
    plan = plan_of(make_study(files=files, cache_rate=0.5))
    for tier, expected in ((0, round(files / 2)), (1, files)):
        blocks = [block for part in range(parts) for block in plan.files_on(tier, 0, part, parts)]
        assert max(map(len, blocks)) <= BLOCK
        assert len(np.unique(np.concatenate(blocks))) == sum(map(len, blocks)) == expected


def test_plans_of_huge_datasets_start_at_once() -> None:
    plan = plan_of(make_study(files=10**12, nodes=64, cache_rate=0.5))
    assert len(next(plan.reads(63, 1)).samples) == BLOCK
    assert len(next(plan.files_on(0, 5, 3, 8))) <= BLOCK
    assert plan.files_held(0, 5) == 5 * 10**11
