"""The bound beside the event engine: never too short for its stations, and close where the studies need it."""

import sys
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.examples import examples
from tests.predict.queueing import Case, case_of, study_of, systems, tier, visits, work
from tierscope.errors import UserError
from tierscope.predict import bound, demand, events
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.spec import sweep
from tierscope.spec.load import load_study
from tierscope.spec.study import Placement, Study

pytestmark = pytest.mark.whole

EXACT = 1e-9
EPOCH = 2


def by_bound(case: Case) -> Outcome:
    return bound.simulate(case.study, case.stations, case.reading, case.schedule)


def by_events(case: Case) -> Outcome:
    pytest.importorskip("numba", reason="the event engine needs numba")
    return events.simulate(case.study, case.stations, case.reading, case.schedule, events.EventOptions(seed=1))


def alone(case: Case, rank: int) -> float:
    """I/O seconds of a rank that meets nobody: every operation takes as long as its slowest station, and its latency."""
    seconds = 0.0
    for sample in range(case.schedule.shape[1]):
        queues = case.stations.tiers[int(case.schedule.tiers[rank, sample])]
        operations = visits(case, rank, sample)
        opens = len(operations) - len(case.reading.pieces)
        for place, stations in enumerate(operations):
            speed = 1 - case.stations.background
            longest = max((work(case, station, nbytes) / speed[station] for station, nbytes in stations), default=0.0)
            seconds += longest + (queues.metadata_latency if place < opens else queues.latency)
    return seconds


@given(systems())
@settings(max_examples=examples(100))
def test_it_is_never_below_what_the_busiest_station_needs(case: Case) -> None:
    outcome = by_bound(case)
    assert outcome.seconds.max() >= demand.least_seconds(case.stations, outcome.load) * (1 - EXACT)


@given(systems())
@settings(max_examples=examples(100))
def test_its_times_fit_each_other(case: Case) -> None:
    outcome, threads = by_bound(case), max(1, case.study.workload.reader.read_threads)
    assert np.isfinite(outcome.busy).all()
    assert ((outcome.busy > 0) <= (outcome.ops > 0)).all()
    assert (outcome.io <= outcome.seconds * threads * (1 + EXACT)).all()
    np.testing.assert_allclose(outcome.wall * threads, outcome.busy)
    np.testing.assert_allclose(outcome.stall + outcome.compute, outcome.seconds)
    counted = events.counted(case.study, case.stations, case.reading, case.schedule)
    np.testing.assert_array_equal(outcome.ops, counted[0])
    np.testing.assert_array_equal(outcome.nbytes, counted[1])


@given(systems())
@settings(max_examples=examples(100))
def test_no_process_is_done_before_its_own_operations_are_if_it_ran_alone(case: Case) -> None:
    """Of servers that are alike: it knows a file's servers on average only."""
    study = replace(
        case.study,
        system=replace(
            case.study.system, tiers=tuple(replace(each, variation=0.0) for each in case.study.system.tiers)
        ),
    )
    even = case_of(study)
    outcome, threads = by_bound(even), max(1, study.workload.reader.read_threads)
    for rank in range(even.ranks):
        assert outcome.seconds[rank] * threads >= alone(even, rank) * (1 - EXACT)


def test_stripes_of_unequal_size_are_waited_for() -> None:
    """Five stripes on four servers: two of them lie on one, and the read ends with these."""
    case = case_of(study_of(tier(servers=8, stripe_count=4, stripe_size=512, bandwidth=512), files=64, record=5 * 512))
    assert alone(case, 0) == pytest.approx(128.0)
    assert by_events(case).seconds[0] == pytest.approx(128.0)
    assert by_bound(case).seconds[0] == pytest.approx(128.0)


@pytest.mark.parametrize(("prefetch", "compute"), [(0, 0.0), (0, 0.3), (1, 0.3), (2, 0.05), (2, 2.0)])
def test_one_rank_alone_takes_as_long_as_by_events(prefetch: int, compute: float) -> None:
    gfs = tier(metadata_ops=40, read_ops=80, bandwidth=1e5, servers=3, gateway_bandwidth=2e4, latency=0.01)
    case = case_of(study_of(gfs, files=40, batch=5, prefetch=prefetch, compute=compute, overhead=0.002))
    ours, theirs = by_bound(case), by_events(case)
    np.testing.assert_allclose(ours.busy, theirs.busy, rtol=EXACT)
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=EXACT)
    np.testing.assert_allclose(ours.stall, theirs.stall, rtol=EXACT)


@pytest.mark.parametrize("busy", ["metadata", "server", "gateway", "node link", "device link"])
def test_whatever_saturates_it_is_close(busy: str) -> None:
    rates = {"metadata": 1e3, "server": 1e6, "gateway": 1e6, "node link": 1e6, "device link": 1e6}
    rates[busy] /= 40
    gfs = tier(
        metadata_ops=rates["metadata"],
        servers=2,
        bandwidth=rates["server"],
        gateway_shared_by=5,
        gateway_bandwidth=rates["gateway"],
        node_bandwidth=rates["node link"],
        device_bandwidth=rates["device link"],
        latency=0.005,
    )
    case = case_of(study_of(gfs, files=2000, nodes=10, ranks_per_node=4))
    ours, theirs = by_bound(case), by_events(case)
    assert ours.seconds.max() == pytest.approx(theirs.seconds.max(), rel=0.02)
    assert demand.least_seconds(case.stations, ours.load) == pytest.approx(theirs.seconds.max(), rel=0.02)
    kinds = (ours.busy.sum(axis=(0, 1)).argmax(), theirs.busy.sum(axis=(0, 1)).argmax())
    assert kinds == ((0, 0) if busy == "metadata" else (1, 1))


def test_it_needs_no_numba_and_events_say_that_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("tierscope.predict.engine.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "numba", None)
    simulation = Simulation.of(study_of(tier(metadata_ops=10, latency=0.1)))
    assert simulation.epoch(1, "bound").seconds[0] > 0
    with pytest.raises(UserError, match=r"needs numba.*--method bound"):
        simulation.epoch(1, "events")


# The studies that it is for


@cache
def by_rate(preset: str) -> dict[Any, Study]:
    return {point.sweep["cache_rate"]: point.study for point in sweep.points(load_study(preset))}


@cache
def both(preset: str, rate: float) -> tuple[Outcome, Outcome]:
    pytest.importorskip("numba", reason="the event engine needs numba")
    simulation = Simulation.of(by_rate(preset)[rate])
    return simulation.epoch(EPOCH, "bound"), simulation.epoch(EPOCH, "events", seed=1)


LARGE = [round(number * 0.05, 2) for number in range(21)]
SMALL = [0.0, 0.25, 0.45, 0.6, 0.65, 1.0]


@pytest.mark.parametrize("rate", SMALL)
def test_many_small_files(rate: float) -> None:
    ours, theirs = both("fugaku-small-60ost", rate)
    assert ours.seconds.max() == pytest.approx(theirs.seconds.max(), rel=0.01)


@pytest.mark.parametrize("rate", LARGE)
def test_two_large_files_of_each_process(rate: float) -> None:
    ours, theirs = both("fugaku-large-60ost", rate)
    assert ours.seconds.max() == pytest.approx(theirs.seconds.max(), rel=0.03)


def classes(outcome: Outcome) -> tuple[int, float]:
    """The class that the slowest process spent most of its time in, and how far ahead of the next."""
    found = outcome.busy[outcome.slowest].ravel()
    second, first = np.sort(found)[-2:]
    return int(found.argmax()), float(first / max(second, 1e-300))


def leaders(outcome: Outcome) -> set[int]:
    """The classes that lead in the slowest process, and in those that are as slow."""
    as_slow = outcome.busy[outcome.io > 0.999 * outcome.io.max()]
    return set(as_slow.reshape(len(as_slow), -1).argmax(axis=1).tolist())


@pytest.mark.parametrize(
    ("preset", "rate"),
    [*(("fugaku-small-60ost", rate) for rate in SMALL), *(("fugaku-large-60ost", rate) for rate in LARGE)],
)
def test_the_bottleneck_is_the_same_class(preset: str, rate: float) -> None:
    """As far as it can be told: not where two classes, or two processes with different ones, are as long as each other."""
    bound, events = both(preset, rate)
    ours, theirs = classes(bound), classes(events)
    assert min(ours[1], theirs[1]) < 1.1 or leaders(bound) & leaders(events)


def test_the_bottleneck_moves_with_the_cache_rate() -> None:
    """What the test above would not notice if all rates had one bottleneck."""
    assert {classes(both("fugaku-small-60ost", rate)[0])[0] for rate in SMALL} == {1, 3}  # LFS-READ, GFS-META


@pytest.mark.parametrize("settings", [("read_threads=0",), ("prefetch_size=0",)])
def test_threads_rest_while_a_step_computes(settings: tuple[str, ...]) -> None:
    study = load_study("demo", ["sweep={}", "cache_rate=30%", "computation_time=20ms", *settings])
    simulation = Simulation.of(study)
    ours, theirs = simulation.epoch(2, "bound"), simulation.epoch(2, "events")
    assert ours.io.max() == pytest.approx(theirs.io.max(), rel=0.08)
    assert ours.seconds.max() == pytest.approx(theirs.seconds.max(), rel=0.08)


def test_an_epoch_too_large_to_lay_out_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts say nearly what the order of every file says."""
    study = load_study("fugaku-small-60ost", ["sweep={}", "cache_rate=65%", "num_files_train=147456"])
    whole, staging = Simulation.of(study).epoch(2, "bound"), Simulation.of(study).staging_seconds()
    monkeypatch.setattr("tierscope.predict.simulation.DRAWN_FROM", 1000)
    drawn = Simulation.of(study).epoch(2, "bound")
    assert drawn.ops.sum() == whole.ops.sum()
    assert drawn.io.max() == pytest.approx(whole.io.max(), rel=0.03)
    assert drawn.hit_rate == pytest.approx(0.65, abs=0.01)
    assert Simulation.of(study).staging_seconds() == pytest.approx(staging, rel=0.01)


@pytest.mark.parametrize("rate", [0.5, 1.0])
@pytest.mark.parametrize("write", [0.5, 2.0])
@pytest.mark.parametrize("per_file", [1, 4])
def test_what_readers_copy_first_is_waited_for(rate: float, write: float, per_file: int) -> None:
    """Ranks that copy what they touch write first, and read among the writes; when there is no more room, they only read."""
    pytest.importorskip("numba", reason="the event engine needs numba")
    near = tier("lfs", bandwidth=2e5, write_bandwidth=write * 1e5, visible_to="node")
    plain = study_of(
        near, tier(bandwidth=1e5, latency=1e-3), ranks_per_node=6, files=600 // per_file, per_file=per_file
    )
    study = replace(plain, placement=Placement(policy="first-touch", cache_rate=rate))
    exact, close = (Simulation.of(study).epoch(1, method) for method in ("events", "bound"))
    assert close.io.max() == pytest.approx(exact.io.max(), rel=0.1)
    leads = exact.busy[exact.slowest] > 0.8 * exact.busy[exact.slowest].sum()
    if leads.any():
        assert close.busy[close.slowest].argmax() == leads.argmax()
