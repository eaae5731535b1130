"""Reads of a plan whose files are copied as they are read: for every rank what the caches of the whole study say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import make_study, near_tier
from tierscope.errors import UserError
from tierscope.plan import policies
from tierscope.plan.first_touch import FirstTouch
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches
from tierscope.spec.study import Placement, Study

FILE = 100  # bytes
POLICIES = ["first-touch", "lru", "partition", "clairvoyant"]


def with_policy(study: Study, rate: float, policy: str = "first-touch") -> Study:
    return replace(study, placement=Placement(policy=policy, cache_rate=rate))


@st.composite
def small(draw: st.DrawFn) -> Study:
    return make_study(
        files=draw(st.integers(16, 60)),
        nodes=draw(st.integers(1, 3)),
        ranks_per_node=draw(st.integers(1, 3)),
        shuffle=draw(st.sampled_from(["global", "chunked", "local", "off"])),
        seed=draw(st.integers(0, 99)),
        batch_size=draw(st.integers(1, 9)),
        near=[
            near_tier(visible_to=draw(st.sampled_from(["node", "global"])), capacity=draw(st.integers(0, 60)) * FILE)
        ],
    )


@settings(max_examples=examples(40), deadline=None)
@given(study=small(), rate=st.floats(0, 1))
def test_blocks_carry_what_the_policy_decides(study: Study, rate: float) -> None:
    study = with_policy(study, rate)
    plan = Plan.of(study, FILE)
    whole = Caches(study, plan, FILE)
    nodes = [FirstTouch(study, plan, FILE, node) for node in range(study.system.nodes)]
    for epoch in (1, 2, 3):
        cached = whole.epoch(epoch)
        for rank in range(plan.ranks):
            for _ in range(2):  # a rank asks more than once for an epoch
                blocks = list(nodes[plan.node_of(rank)].reads(rank, epoch))
                planned = list(plan.reads(rank, epoch))
                for name in ("samples", "files", "inside"):
                    assert [getattr(block, name).tolist() for block in blocks] == [
                        getattr(block, name).tolist() for block in planned
                    ]
                tiers = np.concatenate([block.tiers for block in blocks])
                fills = np.concatenate([block.fills for block in blocks if block.fills is not None])
                assert tiers.tolist() == np.where(cached.hits[rank], 0, 1).tolist()
                assert fills.tolist() == cached.fills[rank].tolist()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("visible_to", ["node", "global"])
def test_the_cache_of_one_node_is_that_of_all(policy: str, visible_to: str) -> None:
    near = [near_tier(visible_to=visible_to)]
    study = with_policy(make_study(files=61, nodes=3, ranks_per_node=2, shuffle="local", near=near), 0.2, policy)
    plan = Plan.of(study, FILE)
    whole = Caches(study, plan, FILE)
    for node in range(3):
        own = Caches(study, plan, FILE, node)
        for epoch in (1, 2, 3):
            everything, found = whole.epoch(epoch), own.epoch(epoch)
            rows = slice(own.first_rank, own.first_rank + len(found.hits))
            assert rows.start <= 2 * node < rows.stop
            assert np.array_equal(found.hits, everything.hits[rows])
            assert np.array_equal(found.fills, everything.fills[rows])
            assert np.array_equal(found.window, everything.window[rows])


def test_with_one_sample_in_a_file_nothing_is_read_in_the_epoch_that_copies_it() -> None:
    study = with_policy(make_study(files=60, nodes=2, ranks_per_node=2, near=[near_tier(visible_to="global")]), 1.0)
    first = Caches(study, Plan.of(study, FILE), FILE).epoch(1)
    assert (first.hits.sum(), first.fills.sum()) == (0, 60)


def test_what_a_rank_cannot_lay_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MOST_HELD", 64)
    study = with_policy(make_study(files=128, nodes=2), 0.1)
    FirstTouch(study, Plan.of(study, FILE), FILE, 1)
    study = with_policy(make_study(files=130, nodes=2), 0.1)
    with pytest.raises(
        UserError,
        match=r"placement.policy = first-touch: would have to track caches of 65 files, at most 64 are supported; lower",
    ):
        FirstTouch(study, Plan.of(study, FILE), FILE, 1)
