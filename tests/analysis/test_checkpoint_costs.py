"""How often checkpoints are worth it: Young's and Daly's formulas, beside what they are to make largest."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.analysis.checkpoint_costs import best_interval, goodput

SECONDS = st.floats(0.01, 1e4)


def test_known_values() -> None:
    """One of 5 minutes with a failure a day: Young's is 2 h, Daly's 1 h 57 min of computing between them."""
    assert math.sqrt(2 * 300 * 86400) == 7200
    assert best_interval(300, 86400) == pytest.approx(7200 * (1 + math.sqrt(300 / 172800) / 3 + 300 / 172800 / 9) - 300)
    assert best_interval(300, 86400) == pytest.approx(7001.4, abs=0.1)
    assert goodput(7200, 0.0, 1e12, 0.0) == pytest.approx(1.0)
    assert goodput(90, 10, 1e12, 0.0) == pytest.approx(0.9)  # without failures, what is not standing still


@given(
    standstill=SECONDS, failures=st.floats(10, 1e7), lost=st.floats(0, 1e3), factor=st.sampled_from([0.5, 0.8, 1.25, 2])
)
def test_no_other_interval_is_better_by_much(standstill: float, failures: float, lost: float, factor: float) -> None:
    best = best_interval(standstill, failures)
    if standstill < failures / 2:  # what the formula is for
        here = goodput(best, standstill, failures, lost)
        assert goodput(factor * best, standstill, failures, lost) <= here * 1.01


@given(interval=SECONDS, standstill=SECONDS, failures=st.floats(10, 1e7), lost=st.floats(0, 1e4))
def test_a_share_of_the_time_that_failures_and_waiting_make_smaller(
    interval: float, standstill: float, failures: float, lost: float
) -> None:
    here = goodput(interval, standstill, failures, lost)
    assert 0 <= here <= interval / (interval + standstill) * (1 + 1e-9)
    assert goodput(interval, standstill, 2 * failures, lost) >= here * (1 - 1e-9)
    assert goodput(interval, 2 * standstill, failures, lost) <= here
