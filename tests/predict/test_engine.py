"""Simulated epochs beside closed forms, and what must hold for all of them."""

import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.nightly import every_value_in_ci
from tests.predict.queueing import (
    RECORD,
    Case,
    asked,
    by_events,
    case_of,
    closed_throughput,
    study_of,
    systems,
    tier,
    walked_throughput,
)
from tests.small_study import loader_of, plan_of, reading, small_study, source_of, stage, totals
from tierscope.plan.reading import part_starts
from tierscope.plan.variation import log_parameters
from tierscope.predict import demand, events
from tierscope.predict.outcome import Outcome
from tierscope.predict.schedule import Schedule, first_of_file, lay_out
from tierscope.predict.simulation import Simulation
from tierscope.storage.emulated import varied

pytestmark = pytest.mark.whole

pytest.importorskip("numba", reason="the event engine needs numba")

EXACT = 1e-9
SIGMAS = 4  # a right result is farther off once in 16,000 times


def together(case: Case, seed: int = 0) -> Outcome:
    """As studies simulate: all ranks begin at the same time."""
    return events.simulate(case.study, case.stations, case.reading, case.schedule, events.EventOptions(seed=seed))


# Without load, and with too much of it


def test_one_rank_alone_waits_for_nobody() -> None:
    gfs = tier(metadata_ops=10, metadata_latency=0.003, read_ops=50, bandwidth=1e5, gateway_bandwidth=1e3, latency=0.02)
    lfs = tier("lfs", metadata_ops=200, bandwidth=1e6, latency=0.001)
    case = case_of(study_of(lfs, gfs, files=40, cache_rate=0.25, overhead=0.005, compute=0.01, batch=3, prefetch=0))
    outcome = together(case)
    far, near = 30, 10
    assert outcome.busy[0, 1, 0] == pytest.approx(far * (0.1 + 0.003), rel=EXACT)
    assert outcome.busy[0, 1, 1] == pytest.approx(far * (RECORD / 1e3 + 0.02), rel=EXACT)  # the gateway is the slowest
    assert outcome.busy[0, 0, 0] == pytest.approx(near * 0.005, rel=EXACT)
    assert outcome.busy[0, 0, 1] == pytest.approx(near * (RECORD / 1e6 + 0.001), rel=EXACT)
    reading_seconds = float(outcome.busy.sum()) + 40 * 0.005
    assert outcome.stall[0] == pytest.approx(reading_seconds, rel=EXACT)
    assert outcome.seconds[0] == pytest.approx(reading_seconds + 14 * 0.01, rel=EXACT)  # 13 batches of 3 and one of 1
    assert outcome.compute == pytest.approx(0.14)
    np.testing.assert_allclose(outcome.wall, outcome.busy)


@pytest.mark.parametrize("compute", [0.01, 0.3, 0.5, 2.0])
@pytest.mark.parametrize("prefetch", [1, 5])
def test_reading_ahead_hides_the_shorter_one(compute: float, prefetch: int) -> None:
    """Batches of 5 take 0.5 s; the first read and the last step hide behind nothing."""
    outcome = together(case_of(study_of(tier(latency=0.1), files=40, batch=5, prefetch=prefetch, compute=compute)))
    longest = max(8 * 0.5 + compute, 0.5 + 8 * compute)
    assert outcome.seconds[0] == pytest.approx(longest, rel=EXACT)
    assert outcome.stall[0] == pytest.approx(longest - 8 * compute, rel=EXACT)


def test_threads_share_a_batch() -> None:
    """Of 7 samples three threads read 3, 3 and 1."""
    outcome = together(case_of(study_of(tier(latency=0.1), files=14, batch=7, threads=3, prefetch=0)))
    assert outcome.seconds[0] == pytest.approx(2 * 3 * 0.1)
    assert outcome.io[0] == pytest.approx(14 * 0.1)
    assert outcome.wall.sum() == pytest.approx(2 * 3 * 0.1)


def test_reading_inline_is_one_thread_that_does_not_read_ahead() -> None:
    gfs = tier(metadata_ops=50, bandwidth=50_000, latency=0.01)
    plain: dict[str, Any] = {"files": 60, "nodes": 3, "batch": 4, "compute": 0.1}
    inline = together(case_of(study_of(gfs, threads=0, prefetch=3, **plain)))
    thread = together(case_of(study_of(gfs, threads=1, prefetch=0, **plain)))
    np.testing.assert_array_equal(inline.seconds, thread.seconds)
    np.testing.assert_array_equal(inline.busy, thread.busy)
    assert inline.seconds.max() > together(case_of(study_of(gfs, threads=1, prefetch=3, **plain))).seconds.max()


@pytest.mark.parametrize(("discipline", "latency"), [("fifo", 0.04), ("fifo", 0.0), ("sharing", 0.0)])
@pytest.mark.parametrize("variation", [0.0, 0.8])
@pytest.mark.parametrize("background", [0.0, 0.25])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_saturated_station_never_rests(
    discipline: str, latency: float, variation: float, background: float, threads: int
) -> None:
    """Its work, and the latency behind the last operation, are all of the epoch."""
    gfs = tier(
        bandwidth=1e5, latency=latency, service_variation=variation, background=background, discipline=discipline
    )
    outcome = together(case_of(study_of(gfs, files=2000, nodes=20, ranks_per_node=2, threads=threads, batch=4)), seed=3)
    needed = outcome.load.seconds.sum() / (1 - background) + latency
    assert outcome.seconds.max() == pytest.approx(needed, rel=EXACT)
    if not variation:
        assert outcome.load.seconds.sum() == pytest.approx(outcome.nbytes.sum() / 1e5, rel=EXACT)


def test_a_saturated_link_never_rests() -> None:
    gfs = tier(servers=8, bandwidth=1e6, gateway_bandwidth=1e5, latency=0.04)
    outcome = together(case_of(study_of(gfs, files=2000, nodes=20, ranks_per_node=2)))
    assert outcome.seconds.max() == pytest.approx(outcome.nbytes.sum() / 1e5 + 0.04, rel=EXACT)


def test_a_large_read_is_spread_over_its_servers() -> None:
    """Four stripes of a file are read at once, the fifth comes second on its server."""
    gfs = tier(servers=4, stripe_count=4, stripe_size=512, bandwidth=512)
    alone = together(case_of(study_of(gfs, files=1, record=5 * 512)))
    assert alone.seconds[0] == pytest.approx(2.0)
    assert alone.load.seconds.tolist() == [2.0, 1.0, 1.0, 1.0]


def test_a_read_is_charged_to_those_servers_only_that_hold_a_part_of_it() -> None:
    """Two reads of a file of two stripes: one for each of its two servers, as an emulated tier does it."""
    gfs = tier(servers=2, stripe_count=2, stripe_size=512, read_ops=1)
    case = case_of(study_of(gfs, files=1, record=1024, transfer=512))
    assert case.reading.pieces == ((0, 512), (512, 512))
    assert together(case).load.ops.tolist() == [1, 1]
    assert demand.loads(case.study, case.stations, case.reading, case.schedule).ops.tolist() == [1, 1]


def test_samples_of_one_file_lie_on_different_stripes() -> None:
    """Four samples of a stripe each: every server has one of them."""
    gfs = tier(servers=4, stripe_count=4, stripe_size=512, bandwidth=512)
    case = case_of(study_of(gfs, files=1, per_file=4, record=512, shuffle="off"))
    assert together(case).load.seconds.tolist() == [1.0, 1.0, 1.0, 1.0]


# Those who are served at once


def test_two_equal_jobs_at_once_both_end_at_twice_their_time() -> None:
    shared = tier(bandwidth=RECORD, discipline="sharing")
    assert together(case_of(study_of(shared, files=2, nodes=2))).seconds == pytest.approx([2.0, 2.0])
    queued = replace(shared, discipline="fifo")
    assert sorted(together(case_of(study_of(queued, files=2, nodes=2))).seconds) == pytest.approx([1.0, 2.0])


def test_a_job_that_comes_later_slows_the_first_one_only_from_then_on() -> None:
    """At 0.4 s the first still needs 0.6 s: it ends at 1.6 s; the other one then still needs 0.4 s."""
    case = case_of(study_of(tier(bandwidth=RECORD, discipline="sharing"), files=2, nodes=2))
    outcome = by_events(replace(case, starts=np.array([0.0, 0.4])))
    assert outcome.seconds == pytest.approx([1.6, 2.0 - 0.4])


# The machine-repairman model: customers who think and one station


def cycles(discipline: str, variation: float, think: float, seed: int) -> tuple[float, float]:
    """Opens per second of 6 ranks whose open takes 1 s of the one server on average, and its relative error from n."""
    ranks, each = 6, 60_000
    gfs = tier(
        metadata_ops=1.0,
        metadata_variation=variation,
        metadata_latency=think / 3,
        latency=2 * think / 3,
        discipline=discipline,
    )
    outcome = together(case_of(study_of(gfs, files=ranks * each, nodes=ranks, shuffle="off")), seed=seed)
    per_cycle = float(outcome.io.sum()) / (ranks * each)
    return ranks / per_cycle, max(1.0, variation) / math.sqrt(ranks * each)


@pytest.mark.parametrize(("variation", "think"), every_value_in_ci([1.0, 0.4, 2.5], [0.9, 4.5, 20.0]))
def test_throughput_of_a_closed_network(variation: float, think: float) -> None:
    """For those served at once it does not depend on how services vary: it is that of exponential ones."""
    throughput, error = cycles("sharing", variation, think, seed=round(think * 10 + variation * 100))
    tolerance = SIGMAS * error
    assert tolerance < 0.02
    assert throughput == pytest.approx(closed_throughput(6, 1.0, think), rel=tolerance)


@pytest.mark.parametrize(("variation", "think"), every_value_in_ci([0.4, 1.0, 2.5], [0.9, 4.5]))
def test_throughput_of_varying_services_one_after_another(variation: float, think: float) -> None:
    """No closed form: beside a queue that is walked through service by service."""
    throughput, error = cycles("fifo", variation, think, seed=round(think * 10 + variation * 100))
    services = np.random.default_rng(5).lognormal(*log_parameters(variation), 200_000)
    other_error = max(1.0, variation) / math.sqrt(len(services))
    walked = walked_throughput(6, services.tolist(), think)
    assert throughput == pytest.approx(walked, rel=SIGMAS * math.hypot(error, other_error))


def test_one_after_another_services_that_vary_less_give_more() -> None:
    """There it does depend on it: what the test above could not tell from a station that ignores variation."""
    even, _ = cycles("fifo", 0.2, 4.5, seed=1)
    uneven, _ = cycles("fifo", 2.5, 4.5, seed=1)
    exact = closed_throughput(6, 1.0, 4.5)
    assert even > 1.03 * exact
    assert uneven < 0.97 * exact


@pytest.mark.parametrize("variation", [0.15, 1.0, 2.0])
def test_services_have_the_mean_and_the_variation_that_are_asked_for(variation: float) -> None:
    """Every rank has a device of its own and asks it once."""
    count = 20_000
    gfs = tier(visible_to="node", read_ops=0.5, service_variation=variation)
    case = case_of(study_of(gfs, files=count, nodes=count))
    found = together(case, seed=11).io / 2.0
    assert found.min() > 0
    assert found.mean() == pytest.approx(1.0, abs=SIGMAS * variation / math.sqrt(count))
    # Of a lognormal distribution, with w = 1 + v²: excess kurtosis w⁴ + 2 w³ + 3 w² − 6 = k, so the variance of the sample variance is v⁴ (2 + k) / n.
    wide = 1 + variation**2
    error = variation**2 * math.sqrt((wide**4 + 2 * wide**3 + 3 * wide**2 - 4) / count)
    assert found.var() == pytest.approx(variation**2, abs=SIGMAS * error)


@pytest.mark.parametrize("variation", [0.15, 1.0, 2.0])
def test_services_vary_as_those_of_an_emulated_tier_do(variation: float) -> None:
    """Mean, variation, those of logarithms, and the largest difference of the two distributions (Kolmogorov and Smirnov)."""
    count = 20_000
    gfs = tier(visible_to="node", read_ops=0.5, service_variation=variation)
    simulated = np.sort(together(case_of(study_of(gfs, files=count, nodes=count)), seed=12).io / 2.0)
    dice = random.Random(13)
    emulated = np.sort([varied(10**9, variation, dice) / 1e9 for _ in range(count)])
    root = math.sqrt(2 / count)
    assert simulated.mean() == pytest.approx(emulated.mean(), abs=SIGMAS * variation * root)
    _, deviation = log_parameters(variation)
    assert np.log(simulated).mean() == pytest.approx(np.log(emulated).mean(), abs=SIGMAS * float(deviation) * root)
    assert np.log(simulated).std() == pytest.approx(np.log(emulated).std(), rel=SIGMAS * root / math.sqrt(2))
    both = np.concatenate([simulated, emulated])
    shares = [np.searchsorted(some, both, side="right") / count for some in (simulated, emulated)]
    assert np.abs(shares[0] - shares[1]).max() < 2.15 * root  # more once in 5,000 times


# What holds for all


@given(systems(), st.integers(0, 2**63 - 1))
@settings(max_examples=examples(100))
def test_stations_do_all_that_is_asked_of_them_and_nothing_else(case: Case, seed: int) -> None:
    even = replace(case, stations=replace(case.stations, variation=np.zeros(case.stations.count)))
    wanted, outcome = asked(case), together(even, seed)
    np.testing.assert_array_equal(outcome.load.ops, wanted.ops)
    np.testing.assert_allclose(outcome.load.seconds, wanted.seconds, rtol=EXACT)
    by_bound = demand.loads(case.study, case.stations, case.reading, case.schedule)
    np.testing.assert_array_equal(by_bound.ops, wanted.ops)
    np.testing.assert_allclose(by_bound.seconds, wanted.seconds, rtol=EXACT)
    np.testing.assert_array_equal(together(case, seed).load.ops, wanted.ops)  # services that vary too


@given(systems(), st.integers(0, 2**63 - 1))
@settings(max_examples=examples(100))
def test_times_of_an_epoch_fit_each_other(case: Case, seed: int) -> None:
    outcome, study = together(case, seed), case.study
    threads, slack = max(1, study.workload.reader.read_threads), 1 + EXACT
    assert (outcome.io <= outcome.seconds * threads * slack).all()
    assert (outcome.wall <= outcome.busy * slack).all()
    assert (outcome.wall.sum(axis=(1, 2)) <= outcome.seconds * slack).all()
    assert (outcome.io <= outcome.wall.sum(axis=(1, 2)) * threads * slack).all()
    np.testing.assert_allclose(outcome.stall + outcome.compute, outcome.seconds, rtol=EXACT)
    assert outcome.steps is not None
    np.testing.assert_allclose(outcome.steps.sum(axis=1)[:, 1], outcome.stall, rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(outcome.steps.sum(axis=1)[:, 2], outcome.compute, rtol=EXACT)
    assert outcome.seconds.max() * slack >= demand.least_seconds(case.stations, outcome.load)
    samples, pieces = case.schedule.shape[1], len(case.reading.pieces)
    assert (outcome.ops[:, :, 1].sum(axis=1) == samples * pieces).all()
    assert (outcome.nbytes.sum(axis=(1, 2)) == samples * study.workload.dataset.record_length_bytes).all()
    assert ((outcome.busy > 0) <= (outcome.ops > 0)).all()


def arrays(outcome: Outcome) -> list[Any]:
    return [outcome.seconds, outcome.stall, outcome.busy, outcome.wall, outcome.steps, outcome.load.seconds]


@given(systems(), st.integers(0, 2**63 - 1))
@settings(max_examples=examples(50))
def test_the_same_seed_gives_the_same_epoch(case: Case, seed: int) -> None:
    first, second = together(case, seed), together(case, seed)
    for one, other in zip(arrays(first), arrays(second), strict=True):
        np.testing.assert_array_equal(one, other)
    varies = case.stations.variation[first.load.ops > 0].any()
    if varies:
        assert together(case, seed ^ 1).load.seconds.tolist() != first.load.seconds.tolist()
    else:
        np.testing.assert_allclose(together(case, seed ^ 1).load.seconds, first.load.seconds, rtol=EXACT)


def test_epochs_that_are_simulated_at_the_same_time_do_not_share_their_dice() -> None:
    gfs = tier(metadata_ops=100, metadata_variation=1.0, bandwidth=1e6, service_variation=0.5)
    case = case_of(study_of(gfs, files=40_000, nodes=4))
    one_by_one = [together(case, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda seed: together(case, seed), range(4)))
    for one, other in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(one.busy, other.busy)


def test_who_comes_first_depends_on_the_seed() -> None:
    case = case_of(study_of(tier(bandwidth=1e5), files=40, nodes=20))
    found = {int(np.argmin(together(case, seed).seconds)) for seed in range(30)}
    assert len(found) > 10


@given(
    st.integers(1, 12),
    st.integers(1, 8),
    st.floats(0.01, 10),
    st.floats(1, 20),
    st.floats(0, 0.5),
    st.sampled_from(["fifo", "sharing"]),
)
@settings(max_examples=examples(100))
def test_a_faster_station_alone_never_makes_the_epoch_longer(
    ranks: int, each: int, rate: float, factor: float, latency: float, discipline: str
) -> None:
    def longest(ops: float) -> float:
        gfs = tier(metadata_ops=ops, latency=latency, discipline=discipline)
        return float(together(case_of(study_of(gfs, files=ranks * each, nodes=ranks))).seconds.max())

    assert longest(rate * factor) <= longest(rate) * (1 + EXACT)


@given(systems(), st.sampled_from([0.25, 3.0, 8.0]))
@settings(max_examples=examples(50))
def test_when_everything_is_slower_so_is_the_epoch(case: Case, factor: float) -> None:
    """Time has no unit of its own."""
    stations, study = case.stations, case.study
    tiers = tuple(
        replace(queues, latency=queues.latency * factor, metadata_latency=queues.metadata_latency * factor)
        for queues in stations.tiers
    )
    slower = replace(
        case,
        stations=replace(stations, tiers=tiers, per_op=stations.per_op * factor, per_byte=stations.per_byte * factor),
        study=replace(
            study,
            workload=replace(
                study.workload,
                train=replace(study.workload.train, computation_time=study.workload.train.computation_time * factor),
            ),
            system=replace(study.system, process_overhead=study.system.process_overhead * factor),
        ),
    )
    ours, theirs = together(case), together(slower)
    if factor in {0.25, 8.0}:  # multiplying by powers of two rounds nothing: not even ties are broken differently
        np.testing.assert_array_equal(ours.seconds * factor, theirs.seconds)
        np.testing.assert_array_equal(ours.busy * factor, theirs.busy)
    assert theirs.load.seconds.sum() == pytest.approx(ours.load.seconds.sum() * factor)


# What is simulated is what loaders do


@given(systems())
@settings(max_examples=examples(50))
def test_the_schedule_is_the_plan(case: Case) -> None:
    plan = Simulation.of(case.study).plan
    for rank in range(plan.ranks):
        blocks = list(plan.reads(rank, 1))
        np.testing.assert_array_equal(case.schedule.files[rank], np.concatenate([block.files for block in blocks]))
        np.testing.assert_array_equal(case.schedule.tiers[rank], np.concatenate([block.tiers for block in blocks]))


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 5))
def test_parts_of_threads_begin_where_the_loader_begins_them(samples: int, batch: int, threads: int) -> None:
    found = list(part_starts(samples, batch, threads))
    expected = []
    for first in range(0, samples, batch):
        size = len(range(samples)[first : first + batch])
        share = math.ceil(size / threads)
        expected += [first + start for start in range(size) if start % share == 0]
    assert found == expected


def test_files_of_one_sample_are_always_opened() -> None:
    plan = Simulation.of(study_of(tier(latency=1), files=6)).plan
    assert first_of_file(np.zeros((1, 6), np.int64), plan.order, batch=6, threads=1).all()


@pytest.mark.parametrize("threads", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "settings_",
    [
        ("num_samples_per_file=1",),
        ("num_samples_per_file=6", "num_files_train=9", "shuffle=off", "batch_size=8"),
        ("num_samples_per_file=6", "num_files_train=9", "shuffle=global", "transfer_size=512"),
    ],
    ids=["single", "in order", "shuffled"],
)
def test_operations_are_those_that_a_real_loader_does(tmp_path: Path, threads: int, settings_: tuple[str, ...]) -> None:
    study = small_study(f"read_threads={threads}", *settings_)
    stage(study, str(tmp_path))
    plan, simulation = plan_of(study), Simulation.of(study)
    loader = loader_of(study, source_of(study, str(tmp_path)))
    with reading(loader, plan.reads(0, 2)) as batches:
        assert sum(len(batch.samples) for batch in batches) == plan.order.samples_per_rank
    lanes, _ = loader.finish()
    schedule: Schedule = lay_out(study, plan, 2)
    ops, nbytes = events.counted(study, simulation.stations, simulation.reading, schedule)
    assert ops[0, :, 0].tolist() == totals(lanes, "ops", "open")
    assert ops[0, :, 1].tolist() == totals(lanes, "ops", "read")
    assert nbytes[0, :, 1].tolist() == totals(lanes, "nbytes", "read")
    assert ops.sum() > 0
