"""Which reads find their file on the near tier: against the rules written down plainly."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import make_study, near_tier
from tierscope.errors import UserError
from tierscope.plan import caches as rules
from tierscope.plan import policies
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Cached, Caches
from tierscope.predict.schedule import lay_out
from tierscope.spec.study import Placement, Study

FILE = 100  # bytes


def with_policy(study: Study, policy: str, cache_rate: float, epochs: int = 3) -> Study:
    train = replace(study.workload.train, epochs=epochs)
    return replace(
        study, workload=replace(study.workload, train=train), placement=Placement(policy=policy, cache_rate=cache_rate)
    )


def plan_of(study: Study) -> Plan:
    return Plan.of(study, FILE)


def caches_of(study: Study) -> Caches:
    return Caches(study, plan_of(study), FILE)


def epochs_of(study: Study) -> list[Cached]:
    found = caches_of(study)
    return [found.epoch(number) for number in range(1, study.workload.train.epochs + 1)]


def reads_of(study: Study) -> list[list[list[int]]]:
    """By cache and epoch: its files, as its ranks take turns."""
    order, per_node = plan_of(study).order, study.system.ranks_per_node
    nodes = 1 if study.system.tiers[0].visible_to == "node" else study.system.nodes
    found = []
    for first in range(0, study.system.nodes, nodes):
        ranks = range(first * per_node, (first + nodes) * per_node)
        epochs = []
        for epoch in range(1, study.workload.train.epochs + 1):
            by_rank = [np.concatenate(list(order.indices(rank, epoch))) // order.samples_per_file for rank in ranks]
            epochs.append([int(file) for turn in zip(*by_rank, strict=True) for file in turn])
        found.append(epochs)
    return found


def in_turn(study: Study, flags: np.ndarray, cache_number: int) -> list[bool]:
    """The same order as `reads_of`, of what is known by (rank, sample)."""
    nodes = 1 if study.system.tiers[0].visible_to == "node" else study.system.nodes
    ranks = nodes * study.system.ranks_per_node
    return [bool(flag) for flag in flags[cache_number * ranks : (cache_number + 1) * ranks].T.reshape(-1)]


def first_touch(reads: list[int], room: int) -> tuple[list[bool], list[bool]]:
    held: set[int] = set()
    hits, fills = [], []
    for file in reads:
        hits.append(file in held)
        fills.append(file not in held and len(held) < room)
        if fills[-1]:
            held.add(file)
    return hits, fills


def lru(reads: list[int], room: int) -> tuple[list[bool], list[bool]]:
    held: OrderedDict[int, None] = OrderedDict()
    hits, fills = [], []
    for file in reads:
        hits.append(file in held)
        fills.append(file not in held and room > 0)
        if room:
            held[file] = None
            held.move_to_end(file)
        if len(held) > room:
            held.popitem(last=False)
    return hits, fills


def most_hits(reads: list[int], room: int) -> int:
    """Whatever is kept: all ways are tried."""

    @cache
    def best(position: int, held: frozenset[int]) -> int:
        if position == len(reads):
            return 0
        file = reads[position]
        if file in held:
            return 1 + best(position + 1, held)
        ways = [held]
        if len(held) < room:
            ways.append(held | {file})
        else:
            ways += [held - {other} | {file} for other in held]
        return max(best(position + 1, way) for way in ways if len(way) <= room)

    return best(0, frozenset())


@st.composite
def small(draw: st.DrawFn) -> Study:
    return make_study(
        files=draw(st.integers(16, 40)),
        per_file=draw(st.integers(1, 3)),
        nodes=draw(st.integers(1, 3)),
        ranks_per_node=draw(st.integers(1, 3)),
        shuffle=draw(st.sampled_from(["global", "chunked", "local", "off"])),
        seed=draw(st.integers(0, 99)),
        near=[near_tier(visible_to=draw(st.sampled_from(["node", "global"])))],
    )


@pytest.mark.parametrize(("policy", "rule"), [("first-touch", first_touch), ("lru", lru)])
@settings(max_examples=examples(60), deadline=None)
@given(study=small(), rate=st.floats(0, 1))
def test_as_the_plain_rule_has_it(
    policy: str, rule: Callable[[list[int], int], tuple[list[bool], list[bool]]], study: Study, rate: float
) -> None:
    study = with_policy(study, policy, rate)
    room = round(rate * study.workload.dataset.num_files_train)
    found = epochs_of(study)
    for number, epochs in enumerate(reads_of(study)):
        hits, fills = rule([file for epoch in epochs for file in epoch], room)
        assert [flag for epoch in found for flag in in_turn(study, epoch.hits, number)] == hits
        assert [flag for epoch in found for flag in in_turn(study, epoch.fills, number)] == fills
    assert not any(epoch.fetched.any() for epoch in found)


@settings(max_examples=examples(150), deadline=None)
@given(reads=st.lists(st.integers(0, 5), min_size=1, max_size=10), room=st.integers(0, 4))
def test_no_rule_hits_more_often_than_the_clairvoyant_one(reads: list[int], room: int) -> None:
    hits, _, _ = rules.foresee(np.array([reads]), room, 1, 6)
    assert hits.sum() == most_hits(reads, room)


@settings(max_examples=examples(60), deadline=None)
@given(study=small(), rate=st.floats(0, 1))
def test_a_clairvoyant_cache_hits_at_least_as_often_as_the_others_and_holds_what_fits(
    study: Study, rate: float
) -> None:
    dataset = replace(study.workload.dataset, num_samples_per_file=1)
    study = replace(study, workload=replace(study.workload, dataset=dataset))
    room = round(rate * dataset.num_files_train)
    found = epochs_of(with_policy(study, "clairvoyant", rate))
    ranks_each = len(found[0].hits) // len(reads_of(study))
    for other in ("first-touch", "lru"):
        theirs = epochs_of(with_policy(study, other, rate))
        assert sum(epoch.hits.sum() for epoch in found) >= sum(epoch.hits.sum() for epoch in theirs)
    for number, epochs in enumerate(reads_of(with_policy(study, "clairvoyant", rate))):
        held: set[int] = set()
        everything = [file for epoch in epochs for file in epoch]
        hits = [flag for epoch in found for flag in in_turn(study, epoch.hits, number)]
        fills = [flag for epoch in found for flag in in_turn(study, epoch.fills, number)]
        for position, file in enumerate(everything):
            assert not hits[position] or file in held
            held = held | {file} if fills[position] else held
            # What is held for a later hit: a fill, and no other fill of it in between.
            waiting = {
                other
                for other in held
                if (later := next((p for p in range(position + 1, len(everything)) if everything[p] == other), None))
                and hits[later]
            }
            assert len(waiting) <= room
            window = found[position // len(epochs[0])].window[number * ranks_each]
            assert len(waiting) + window * ranks_each <= room
    for epoch in found:
        assert not (epoch.fetched & epoch.hits).any()
        assert (epoch.fetched | epoch.hits)[epoch.window > 0].all()
        assert not epoch.fetched[epoch.window == 0].any()


@pytest.mark.parametrize("policy", ["first-touch", "lru", "clairvoyant"])
def test_nothing_is_held_before_it_was_read(policy: str) -> None:
    """Global shuffle, one cache for all: from the second epoch on all of it is there, if there is room."""
    study = with_policy(make_study(nodes=2, near=[near_tier(visible_to="global")]), policy, 1.0)
    assert [epoch.hits.mean() for epoch in epochs_of(study)] == [0.0, 1.0, 1.0]
    study = with_policy(study, policy, 0.0)
    found = epochs_of(study)
    assert [epoch.hits.mean() for epoch in found] == [0.0, 0.0, 0.0]
    assert not any(epoch.fills.any() or epoch.fetched.any() for epoch in found)


def test_reads_again_in_the_first_epoch_are_hits() -> None:
    study = with_policy(make_study(files=8, per_file=4), "first-touch", 1.0)
    first, second, _ = epochs_of(study)
    assert first.hits.sum() == 8 * 4 - 8
    assert first.fills.sum() == 8
    assert second.hits.all()


def test_first_touch_fills_its_share_and_keeps_it() -> None:
    study = with_policy(make_study(files=100, near=[near_tier(visible_to="global")]), "first-touch", 0.3)
    first, second, third = epochs_of(study)
    assert first.fills[0].nonzero()[0].tolist() == list(range(30))
    assert (second.hits.sum(), third.hits.sum(), second.fills.sum(), third.fills.sum()) == (30, 30, 0, 0)


@pytest.mark.parametrize(("nodes", "rate", "share"), [(4, 0.125, 0.5), (4, 0.25, 1.0), (4, 0.5, 1.0), (1, 0.5, 0.5)])
def test_a_partition_is_of_the_nodes_own_share(nodes: int, rate: float, share: float) -> None:
    study = with_policy(make_study(files=64, nodes=nodes, shuffle="local"), "partition", rate)
    for epoch in epochs_of(study):
        assert epoch.hits.mean(axis=1).tolist() == [share] * nodes
        assert not epoch.fills.any()
    files = plan_of(study).order.whole_epoch(1)
    first, second = epochs_of(study)[:2]
    assert set(files[first.hits]) == set(plan_of(study).order.whole_epoch(2)[second.hits])


def test_a_shared_partition_has_room_once() -> None:
    near = [near_tier(visible_to="global")]
    study = with_policy(make_study(files=64, nodes=4, shuffle="local", near=near), "partition", 0.25)
    assert epochs_of(study)[0].hits.mean() == 0.25


def test_a_capacity_is_room_too() -> None:
    near = [near_tier(visible_to="global", capacity=10 * FILE + 99)]
    study = with_policy(make_study(files=64, near=near), "first-touch", 0.5)
    assert epochs_of(study)[1].hits.sum() == 10


@pytest.mark.parametrize("policy", ["first-touch", "lru", "partition", "clairvoyant"])
def test_epochs_may_be_asked_for_in_any_order(policy: str) -> None:
    study = with_policy(make_study(files=60, nodes=2, shuffle="local"), policy, 0.2)
    in_order, found = epochs_of(study), caches_of(study)
    for number in (3, 1, 2, 2, 3):
        again = found.epoch(number)
        assert np.array_equal(again.hits, in_order[number - 1].hits)
        assert np.array_equal(again.fills, in_order[number - 1].fills)


def test_more_than_can_be_followed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MOST_HELD", 64)
    caches_of(with_policy(make_study(files=64), "lru", 1.0, epochs=1))
    caches_of(with_policy(make_study(files=64), "lru", 0.5, epochs=9))
    with pytest.raises(
        UserError,
        match=r"placement.policy = lru: would have to track caches of 65 files, at most 64 are supported; lower",
    ):
        caches_of(with_policy(make_study(files=65), "lru", 1.0, epochs=1))
    with pytest.raises(UserError, match=r"placement.policy = clairvoyant: would have to track caches of 128"):
        caches_of(with_policy(make_study(files=64), "clairvoyant", 0.1, epochs=2))


def test_the_tier_of_a_read_is_where_its_file_is() -> None:
    study = with_policy(make_study(files=32, near=[near_tier(visible_to="global")]), "lru", 1.0)
    plan = plan_of(study)
    first, second = (lay_out(study, plan, epoch, caches_of(study)) for epoch in (1, 2))
    assert (first.tiers == 1).all()
    assert (second.tiers == 0).all()
    assert first.fills is not None
    assert first.fills.all()
    assert second.fills is None
    assert (first.hit_rate(2), second.hit_rate(2)) == (0.0, 1.0)


def test_another_tier_needs_another_open() -> None:
    """Four samples of a file in one batch: the first is read from the last tier, the rest from the copy."""
    study = with_policy(make_study(files=8, per_file=4, shuffle="off"), "first-touch", 1.0)
    schedule = lay_out(study, plan_of(study), 1, caches_of(study))
    assert schedule.tiers[0, :4].tolist() == [1, 0, 0, 0]
    assert schedule.opens[0, :4].tolist() == [True, True, False, False]


def test_a_policy_is_not_taken_for_pinned() -> None:
    study = with_policy(make_study(), "lru", 0.5)
    with pytest.raises(UserError, match=r"placement.policy = lru; only pinned is supported here"):
        lay_out(study, plan_of(study), 1)
