"""A throttle told from services that vary, by the order of operations' times."""

import numpy as np
import pytest

from tierscope.probe.measure import repetition_of
from tierscope.probe.throttle import pace_of
from tierscope.probe.work import ProbeTimes

MS = 1e6
OWN = 0.2  # ms of an operation that nothing holds up


def times_of(seconds: np.ndarray) -> ProbeTimes:
    ends = np.cumsum(seconds * 1e9).astype(np.int64)
    return ProbeTimes(np.concatenate([[0], ends[:-1]]), ends, 0.0)


def throttled_in_slices(service: float = 4e-3, together: int = 25, count: int = 500) -> ProbeTimes:
    """Many at once, then one that waits for all: as the block layer's throttle does."""
    seconds = np.full(count, OWN * 1e-3)
    seconds[together - 1 :: together] = together * service - (together - 1) * OWN * 1e-3
    return times_of(seconds)


def bucket(service: float = 4e-3, burst: float = 0.1, count: int = 400) -> ProbeTimes:
    """The first ones are free, all others steady."""
    seconds = np.full(count, service)
    seconds[: int(burst / service)] = OWN * 1e-3
    return times_of(seconds)


def varied(variation: float, count: int = 500) -> ProbeTimes:
    rng = np.random.default_rng(5)
    spread = np.sqrt(np.log1p(variation**2))
    return times_of(4e-3 * rng.lognormal(-(spread**2) / 2, spread, count))


def test_a_throttle_is_credit_and_no_variation() -> None:
    found = repetition_of([throttled_in_slices()])
    assert found.credit_seconds == pytest.approx(25 * 4e-3, rel=0.15)
    assert found.variation < 0.2
    assert found.ops_per_second == pytest.approx(250, rel=0.05)


def test_a_burst_at_the_start_is_credit_too() -> None:
    found = repetition_of([bucket()])
    assert found.credit_seconds == pytest.approx(0.1, rel=0.15)
    assert found.variation < 0.2


@pytest.mark.parametrize("variation", [0.05, 0.3, 1.0, 2.3])
def test_services_that_vary_by_themselves_stay_so(variation: float) -> None:
    times = varied(variation)
    pace = pace_of(times.starts, times.ends, variation)
    assert pace.credit_seconds == 0
    assert pace.variation == variation


def test_few_operations_tell_nothing() -> None:
    times = throttled_in_slices(count=40)
    assert pace_of(times.starts, times.ends, 2.3).credit_seconds == 0
