"""Terms that a tier may have beside rates: credit, opens among the reads, limited streams, files at random; each against its definition."""

import heapq
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.examples import examples
from tests.predict.queueing import by_events, case_of, study_of, tier
from tierscope.plan.stations import mixed
from tierscope.predict import bound
from tierscope.predict.outcome import Outcome

BANDWIDTH = 1e5
RECORD = 1000


def simulated(**keys: Any) -> tuple[Any, Outcome]:
    shape = {name: keys.pop(name) for name in ("ranks_per_node", "files", "overhead", "record") if name in keys}
    case = case_of(study_of(tier(**keys), **shape))
    return case, by_events(case)


def token_bucket(ranks: list[int], nbytes: float, rate: float, burst: float, beside: float) -> list[float]:
    """Busy seconds of ranks that each read so many times from one bucket: tokens come at a rate, up to a burst, and may be owed."""
    tokens, last = burst, 0.0
    busy = [0.0] * len(ranks)
    left = list(ranks)
    order = [(0.0, rank, rank) for rank in range(len(ranks))]
    turn = itertools.count(len(ranks))  # of those at the same time, who was planned first
    while order:
        now, _, rank = heapq.heappop(order)
        tokens, last = min(burst, tokens + (now - last) * rate) - nbytes, now
        done = now if tokens >= 0 else now - tokens / rate
        busy[rank] += done - now
        left[rank] -= 1
        if left[rank]:
            heapq.heappush(order, (done + beside, next(turn), rank))
    return busy


@given(
    ranks=st.integers(1, 5),
    credit=st.floats(0.0, 0.2),
    beside=st.sampled_from([0.0, 0.003, 0.02, 0.2]),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_server_with_credit_is_a_token_bucket(ranks: int, credit: float, beside: float) -> None:
    _, outcome = simulated(
        bandwidth=BANDWIDTH, credit=credit, ranks_per_node=ranks, files=12 * ranks, overhead=beside, record=RECORD
    )
    expected = token_bucket([12] * ranks, RECORD, BANDWIDTH, credit * BANDWIDTH, beside)
    np.testing.assert_allclose(np.sort(outcome.io), np.sort(expected), rtol=1e-6, atol=1e-9)


def test_no_credit_is_no_change() -> None:
    """The same to the last bit: systems without the new keys are what they were."""
    _, plain = simulated(bandwidth=BANDWIDTH, ranks_per_node=3)
    _, same = simulated(bandwidth=BANDWIDTH, ranks_per_node=3, credit=0.0, open_bytes=0, layout="turns")
    assert (plain.busy == same.busy).all()


def test_opens_take_their_bytes_of_the_server_that_reads_use() -> None:
    _, outcome = simulated(bandwidth=BANDWIDTH, open_bytes=500, ranks_per_node=1, files=10, record=RECORD)
    assert outcome.busy[0, 0, 0] == pytest.approx(10 * 500 / BANDWIDTH)
    assert outcome.busy[0, 0, 1] == pytest.approx(10 * RECORD / BANDWIDTH)
    _, both = simulated(bandwidth=BANDWIDTH, open_bytes=500, ranks_per_node=4, files=40, record=RECORD)
    assert both.seconds.max() == pytest.approx(40 * (RECORD + 500) / BANDWIDTH, rel=0.05)


def test_a_stream_is_limited_whoever_else_reads() -> None:
    for ranks in (1, 4):
        _, outcome = simulated(stream_bandwidth=BANDWIDTH, ranks_per_node=ranks, files=10 * ranks, record=RECORD)
        np.testing.assert_allclose(outcome.io, 10 * RECORD / BANDWIDTH)
    _, shared = simulated(
        stream_bandwidth=BANDWIDTH, bandwidth=2 * BANDWIDTH, ranks_per_node=4, files=40, record=RECORD
    )
    assert shared.seconds.max() == pytest.approx(40 * RECORD / (2 * BANDWIDTH), rel=0.1)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "open_bytes": st.integers(1, 5000),
            "layout": st.sampled_from(["turns", "hash"]),
            "credit": st.floats(0, 1),
            "servers": st.integers(1, 5),
            "metadata_ops": st.floats(10, 1000),
            "node_bandwidth": st.floats(1e4, 1e6),
        },
    )
)
@settings(max_examples=examples(40), deadline=None)
def test_events_and_bound_ask_the_same_of_every_station(keys: dict[str, Any]) -> None:
    case, outcome = simulated(bandwidth=BANDWIDTH, ranks_per_node=3, files=30, **keys)
    other = bound.simulate(case.study, case.stations, case.reading, case.schedule)
    np.testing.assert_allclose(outcome.load.seconds, other.load.seconds)
    assert np.isfinite(other.busy).all()
    assert (other.busy >= 0).all()


def test_hashed_files_lie_at_random_and_everybody_finds_them() -> None:
    case, _ = simulated(bandwidth=BANDWIDTH, servers=4, layout="hash", files=400)
    queues = case.stations.tiers[0]
    places = [queues.server_of(0, file) for file in range(400)]
    counts = np.bincount(places, minlength=4)
    assert 60 < counts.min() < counts.max() < 140
    assert counts.max() > 105  # not evenly, as turns are
    assert mixed(np.arange(400)).tolist() == [mixed(file) for file in range(400)]


@pytest.mark.parametrize("credit", [0.02, 0.2])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.8])
def test_the_bound_is_near_events_with_credit(credit: float, rate: float) -> None:
    near = tier("lfs", bandwidth=1.5 * BANDWIDTH, credit=credit, visible_to="node")
    far = tier("gfs", bandwidth=BANDWIDTH, credit=credit, open_bytes=200, latency=1e-3)
    case = case_of(study_of(near, far, ranks_per_node=6, files=600, cache_rate=rate))
    by_bound = bound.simulate(case.study, case.stations, case.reading, case.schedule)
    assert by_bound.io.max() == pytest.approx(by_events(case).io.max(), rel=0.12)


def portions(ranks: int, reads: int, work: float, period: float, beside: float) -> list[float]:
    """Busy seconds of ranks that each read so many times: every period allows so many seconds of work, which may be owed from the ones before."""
    busy = [0.0] * ranks
    left = [reads] * ranks
    order = [(0.0, rank, rank) for rank in range(ranks)]
    turn = itertools.count(ranks)
    number, used = 0, 0.0  # the period whose portion is handed out, and what was taken of it
    while order:
        now, _, rank = heapq.heappop(order)
        if now >= (number + 1) * period - 1e-12:
            number, used = int(now / period + 1e-9), 0.0
        used += work
        while used > period * (1 + 1e-9):
            number, used = number + 1, used - period
        done = max(now, number * period)
        busy[rank] += done - now
        left[rank] -= 1
        if left[rank]:
            heapq.heappush(order, (done + beside, next(turn), rank))
    return busy


@given(
    ranks=st.integers(1, 5),
    period=st.sampled_from([0.0137, 0.1003, 0.2501]),
    beside=st.sampled_from([0.0, 0.0031, 0.0207]),
)
@settings(max_examples=examples(30), deadline=None)
def test_a_server_with_a_period_hands_out_portions(ranks: int, period: float, beside: float) -> None:
    _, outcome = simulated(
        bandwidth=BANDWIDTH, quota_period=period, ranks_per_node=ranks, files=12 * ranks, overhead=beside, record=RECORD
    )
    expected = portions(ranks, 12, RECORD / BANDWIDTH, period, beside)
    np.testing.assert_allclose(np.sort(outcome.io), np.sort(expected), rtol=1e-6, atol=1e-7)


def test_portions_change_bursts_and_no_throughput() -> None:
    """Many reads take what the rate says, but for one portion."""
    _, plain = simulated(bandwidth=BANDWIDTH, ranks_per_node=4, files=400, record=RECORD)
    _, in_portions = simulated(bandwidth=BANDWIDTH, ranks_per_node=4, files=400, record=RECORD, quota_period=0.1)
    assert 0 <= float(plain.io.max() - in_portions.io.max()) <= 0.1
    expected = 400 * RECORD / BANDWIDTH
    assert abs(float(in_portions.io.max()) - expected) <= 0.1
