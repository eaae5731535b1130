"""Step times in bounded memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.trace import rank_trace
from tierscope.trace.rank_trace import StepTimes

STEP = st.tuples(*(st.integers(0, 1000) for _ in range(3)))


@given(st.lists(STEP, max_size=100), st.sampled_from([2, 4, 8]))
def test_entries_are_sums_of_consecutive_steps(steps: list[tuple[int, int, int]], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_trace, "MAX_STEPS", limit)
        times = StepTimes()
        for step in steps:
            times.add(*map(float, step))
        found = times.finish()
    each = times.steps_per_entry
    expected = [np.sum(steps[first : first + each], axis=0) for first in range(0, len(steps), each)]
    assert len(found) <= limit
    np.testing.assert_array_equal(found, np.array(expected).reshape(-1, 3))


@given(st.integers(0, 70))
def test_entries_are_no_coarser_than_needed(steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_trace, "MAX_STEPS", 8)
        times = StepTimes()
        for _ in range(steps):
            times.add(1.0, 2.0, 3.0)
        times.finish()
    needed = 1
    while steps > 8 * needed:
        needed *= 2
    assert times.steps_per_entry == needed


def test_what_is_handed_over_is_a_copy() -> None:
    times = StepTimes()
    times.add(1.0, 2.0, 3.0)
    first = times.finish()
    times.add(4.0, 5.0, 6.0)
    assert first.tolist() == [[1.0, 2.0, 3.0]]
    assert times.finish().tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
