"""The hardware-efficiency histogram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.arch.efficiency import BINS, COUNTED, Kernel, histogram, slowest

kernels = st.lists(
    st.builds(
        Kernel,
        st.sampled_from("abc"),
        st.floats(1e-9, 10),
        st.floats(0, 2),
        st.floats(0, 2),
        st.floats(0, 2),
    ),
    min_size=1,
    max_size=30,
)


def test_a_hand_computed_case() -> None:
    found = histogram([Kernel("a", 2.0, 0.55, 0.1, 0.2), Kernel("b", 1.0, 0.0, 0.0, 1.0)], COUNTED)
    assert found.seconds == (0, 0, 0, 0, 0, 2.0, 0, 0, 0, 1.0)
    assert found.ideal_seconds == pytest.approx(2.1)
    assert found.potential == pytest.approx(3 / 2.1)
    assert found.ideal_by_bin == pytest.approx((0, 0, 0, 0, 0, 1.1, 0, 0, 0, 1.0))
    assert found.unique_by_bin == (0, 0, 0, 0, 0, 1, 0, 0, 0, 1)


def test_kernels_of_one_name_count_once_in_each_bin_they_are_in() -> None:
    calls = [Kernel("a", 1.0, 0.55, 0, 0), Kernel("a", 1.0, 0.52, 0, 0), Kernel("a", 1.0, 0.95, 0, 0)]
    assert histogram(calls, COUNTED).unique_by_bin == (0, 0, 0, 0, 0, 1, 0, 0, 0, 1)


@given(kernels)
def test_no_time_is_lost_and_nothing_is_faster_than_perfect(some: list[Kernel]) -> None:
    found = histogram(some, COUNTED)
    assert len(found.seconds) == BINS
    assert found.total_seconds == pytest.approx(sum(kernel.seconds for kernel in some))
    assert found.ideal_seconds <= found.total_seconds * (1 + 1e-9)
    assert found.potential >= 1 - 1e-9


@given(kernels)
def test_kernels_of_one_name_are_added_up(some: list[Kernel]) -> None:
    found = slowest(some, len(some))
    assert {kernel.name for kernel in found} == {kernel.name for kernel in some}
    assert sum(kernel.seconds for kernel in found) == pytest.approx(sum(kernel.seconds for kernel in some))


def test_nothing_to_do_has_no_potential_that_a_number_could_say() -> None:
    assert histogram([Kernel("idle", 1.0, 0, 0, 0)], COUNTED).potential == float("inf")
