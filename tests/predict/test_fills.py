"""Copies to the near tier, by readers or behind their backs: who waits for whom, and what stations have to do."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.queueing import study_of, tier
from tierscope.plan import caches
from tierscope.predict import bound, events
from tierscope.predict.outcome import Outcome
from tierscope.predict.schedule import Schedule
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Placement, Study


def with_policy(study: Study, policy: str, rate: float = 1.0, epochs: int = 1) -> Study:
    train = replace(study.workload.train, epochs=epochs)
    placement = Placement(policy=policy, cache_rate=rate)
    return replace(study, workload=replace(study.workload, train=train), placement=placement)


def simulated(study: Study, epoch: int = 1, method: str = "events") -> Outcome:
    simulation = Simulation.of(study)
    return [simulation.epoch(number, method) for number in range(1, epoch + 1)][-1]


def near(bandwidth: float = 1000, **keys: Any) -> Any:
    return tier("lfs", visible_to="node", bandwidth=bandwidth, **keys)


def by_station(study: Study, outcome: Outcome) -> dict[str, tuple[Any, int]]:
    stations = Simulation.of(study).stations
    return {
        stations.name_of(number): (pytest.approx(float(outcome.load.seconds[number])), int(outcome.load.ops[number]))
        for number in range(stations.count)
    }


def test_a_reader_writes_what_it_keeps_before_it_reads_on() -> None:
    """As ranks do: 0.5 s of reading, 0.1 s of making the copy, a second of writing it, twice."""
    study = with_policy(study_of(near(metadata_ops=10), tier("gfs", bandwidth=2000), files=2), "first-touch")
    for method in ("events", "bound"):
        outcome = simulated(study, method=method)
        assert outcome.seconds.tolist() == [pytest.approx(3.2)]
        assert outcome.busy == pytest.approx(np.array([[[0.2, 0, 2.0], [0, 1.0, 0]]]))
        assert outcome.ops.tolist() == [[[2, 0, 2], [2, 2, 0]]]
        assert outcome.nbytes.tolist() == [[[0, 0, 2000], [0, 2000, 0]]]
        assert by_station(study, outcome) == {
            "lfs metadata server 0": (0.2, 2),
            "lfs server 0": (2.0, 2),
            "gfs server 0": (1.0, 2),
        }
        assert outcome.copies is not None
        assert (outcome.copies.tolist(), outcome.hit_rate) == ([2], 0.0)


def test_a_copy_is_written_at_the_tiers_rate_of_writing() -> None:
    study = with_policy(study_of(near(write_bandwidth=500, latency=0.1), tier("gfs", bandwidth=2000), files=2, transfer=500), "first-touch")  # fmt: skip
    for method in ("events", "bound"):
        outcome = simulated(study, method=method)
        assert outcome.busy[0, 0].tolist() == pytest.approx([0, 0, 2 * (2.0 + 2 * 0.1)])
        assert outcome.ops[0, 0, 2] == 4


@pytest.mark.parametrize("discipline", ["fifo", "sharing"])
def test_the_rest_of_a_file_is_read_and_all_of_it_written(discipline: str) -> None:
    """A file of two samples. The first is read by 0.5 s, the rest by 1 s, both are written by 3 s; the second sample is read from there."""
    far = tier("gfs", bandwidth=2000, discipline=discipline)
    whole = study_of(near(discipline=discipline), far, files=1, per_file=2, batch=2, shuffle="off")
    study = with_policy(whole, "first-touch")
    outcome = simulated(study)
    assert outcome.seconds.tolist() == [pytest.approx(4.0)]
    assert by_station(study, outcome) == {
        "lfs server 0": (3.0, 2),
        "gfs server 0": (1.0, 2),
    }


@st.composite
def systems(draw: st.DrawFn) -> Study:
    discipline = st.sampled_from(["fifo", "sharing"])
    first = near(
        draw(st.sampled_from([1e4, 1e5])),
        metadata_ops=draw(st.sampled_from([None, 300.0])),
        discipline=draw(discipline),
        servers=2,
        stripe_count=draw(st.integers(1, 2)),
        stripe_size=512,
        node_bandwidth=draw(st.sampled_from([None, 3e4])),
    )
    last = tier("gfs", bandwidth=2e4, metadata_ops=200.0, metadata_servers=2, discipline=draw(discipline), servers=3)
    return study_of(
        first,
        last,
        files=draw(st.integers(12, 40)),
        nodes=draw(st.integers(1, 2)),
        ranks_per_node=draw(st.integers(1, 2)),
        batch=draw(st.integers(1, 4)),
        threads=draw(st.integers(0, 3)),
        compute=draw(st.sampled_from([0.0, 0.05])),
        cache_rate=draw(st.floats(0, 1)),
        seed=draw(st.integers(0, 9)),
        shuffle=draw(st.sampled_from(["global", "local"])),
    )


@settings(max_examples=examples(60), deadline=None)
@given(study=systems(), policy=st.sampled_from(["first-touch", "lru"]), epoch=st.integers(1, 3))
def test_what_the_engine_serves_is_what_the_bound_counts(study: Study, policy: str, epoch: int) -> None:
    study = with_policy(study, policy, study.placement.cache_rate, epochs=3)
    outcome = simulated(study, epoch)
    counted = simulated(study, epoch, "bound")
    assert outcome.load.ops.tolist() == counted.load.ops.tolist()
    assert outcome.load.seconds == pytest.approx(counted.load.seconds)
    assert np.array_equal(outcome.ops, counted.ops)
    assert outcome.hit_rate == counted.hit_rate == outcome.ops[:, 0, 1].sum() / outcome.ops[:, :, 1].sum()


@settings(max_examples=examples(80), deadline=None)
@given(study=systems(), epoch=st.integers(1, 3))
def test_every_miss_of_a_clairvoyant_cache_is_read_once_from_the_last_tier(study: Study, epoch: int) -> None:
    """By the reader or ahead of it; and all batches are consumed."""
    study = with_policy(study, "clairvoyant", study.placement.cache_rate, epochs=3)
    simulation = Simulation.of(study)
    schedule = simulation.schedule(epoch)
    ranks, samples = schedule.shape
    possible = np.zeros(ranks) if schedule.fetched is None else schedule.fetched.sum(axis=1)
    for method in ("events", "bound"):
        outcome = simulation.epoch(epoch, method)
        assert outcome.hit_rate is not None
        assert (
            outcome.ops[:, 1, 1].sum() == outcome.ops[:, 1, 0].sum() == round((1 - outcome.hit_rate) * ranks * samples)
        )
        ahead = outcome.ops[:, :, 1].sum(axis=1) - samples
        assert (ahead <= possible).all()
        assert (ahead >= 0).all()
        assert (outcome.seconds > 0).all()
        assert (outcome.stall >= -1e-9).all()


def fetching(capacity: int | None) -> Outcome:
    """Inline reads: 0.9 s of the last tier, 0.3 s of the near one, to write too; a second of compute after each."""
    first, last = near(1000 / 0.3, capacity=capacity), tier("gfs", bandwidth=1000 / 0.9)
    study = with_policy(study_of(first, last, files=4, threads=0, compute=1.0), "clairvoyant")
    return simulated(study)


def test_fetches_ahead_hide_behind_compute() -> None:
    """0.9 read, 1.9 computed. Fetched 0.9–2.1, waited for since 1.9; –2.4 read, 3.4 computed. Fetched 2.1–3.3; …"""
    outcome = fetching(None)
    assert outcome.seconds.tolist() == [pytest.approx(6.0)]
    assert outcome.busy[:, :, :2].tolist() == [[[0, pytest.approx(0.9)], [0, pytest.approx(0.9 + 0.2)]]]
    assert outcome.ops[0, :, 1].tolist() == [3, 4]


def test_a_fetch_asks_those_servers_only_that_hold_a_part_of_what_it_reads() -> None:
    """Four files of two stripes, read stripe by stripe: one read of each server for each file, by whomever."""
    last = tier("gfs", read_ops=2.0, servers=2, stripe_count=2, stripe_size=512)
    study = study_of(near(), last, files=4, record=1024, transfer=512, threads=0, compute=1.0)
    study = with_policy(study, "clairvoyant")
    outcome = simulated(study)
    assert outcome.ops[0, 0, 1] > 0
    found = by_station(study, outcome)
    assert (found["gfs server 0"], found["gfs server 1"]) == ((2.0, 4), (2.0, 4))


def test_without_room_a_fetch_waits_for_the_one_before_it_to_be_read() -> None:
    """Fetched –2.1, read –2.4; fetched 2.4–3.6, waited for since 3.4, read –3.9, computed –4.9; fetched 3.9–5.1, read –5.4."""
    outcome = fetching(1000)
    assert outcome.seconds.tolist() == [pytest.approx(6.4)]
    assert outcome.busy[0, 1, 1] == pytest.approx(0.9 + 0.2 + 0.2 + 0.2)


def test_no_room_no_fetch() -> None:
    outcome = fetching(999)
    assert outcome.seconds.tolist() == [pytest.approx(4 * 1.9)]
    assert outcome.ops[0, :, 1].tolist() == [0, 4]


@pytest.mark.parametrize("policy", ["first-touch", "lru", "clairvoyant"])
@pytest.mark.parametrize("compute", [0.0, 0.02])
def test_the_bound_is_near_the_engine(policy: str, compute: float) -> None:
    first = tier("lfs", visible_to="node", device_shared_by=4, read_ops=900.0, bandwidth=1e6)
    last = tier("gfs", bandwidth=1e6, metadata_ops=1500.0, servers=4)
    study = study_of(first, last, files=6400, nodes=8, ranks_per_node=2, batch=4, compute=compute)
    study = with_policy(study, policy, 0.5, epochs=3)
    for epoch in (1, 3):
        exact, quick = simulated(study, epoch), simulated(study, epoch, "bound")
        over = 0.3 if policy == "clairvoyant" else 0.06  # an upper bound there
        assert (1 - 0.06) * exact.seconds.max() <= quick.seconds.max() <= (1 + over) * exact.seconds.max()


def flags(schedule: Schedule) -> Schedule:
    nothing = np.zeros(schedule.shape, np.bool_)
    return replace(schedule, fills=nothing, fetched=nothing, window=np.zeros(schedule.shape[0], np.int64))


def test_no_copies_are_no_change() -> None:
    study = study_of(
        near(discipline="sharing", service_variation=0.5), tier("gfs", bandwidth=900, metadata_ops=9), threads=2
    )
    study = replace(study, placement=Placement(cache_rate=0.5))
    simulation = Simulation.of(study)
    plain = simulation.schedule(1)
    outcomes = [
        events.simulate(study, simulation.stations, simulation.reading, schedule, events.EventOptions(seed=3))
        for schedule in (plain, flags(plain))
    ]
    for name in ("seconds", "stall", "busy", "wall", "steps", "ops"):
        first, second = (getattr(outcome, name) for outcome in outcomes)
        assert np.array_equal(first, second), name
    quick = [
        bound.simulate(study, simulation.stations, simulation.reading, schedule) for schedule in (plain, flags(plain))
    ]
    assert np.array_equal(quick[0].busy, quick[1].busy)


@given(reads=st.lists(st.integers(0, 7), min_size=4, max_size=40), room=st.integers(0, 6))
def test_without_numba_the_rules_are_the_same(reads: Sequence[int], room: int) -> None:
    rows = np.array([reads[: len(reads) // 2 * 2]]).reshape(2, -1)
    held, counts = np.zeros((2, 0), np.int64), np.zeros(2, np.int64)
    for evicts in (False, True):
        arguments = (rows, held, counts, room, evicts, 8)
        for compiled, plain in zip(
            caches.read_through(*arguments), caches.read_through.py_func(*arguments), strict=True
        ):
            assert np.array_equal(compiled, plain)
    for compiled, plain in zip(caches.foresee(rows, room, 1, 8), caches.foresee.py_func(rows, room, 1, 8), strict=True):
        assert np.array_equal(compiled, plain)
