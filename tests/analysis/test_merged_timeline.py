"""Clocks aligned by marks or epoch time, or refused; the hidden share of known overlaps; nothing outside the profiled stretch counts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.analysis.merged_timeline import (
    BASIS,
    ProfiledCompute,
    RankOperations,
    UnalignedError,
    align,
    hidden_of_merged,
    merge,
    merge_own,
)
from tierscope.analysis.time_spans import union_of

S = 1_000_000_000
SPANS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(1, 20)).map(lambda pair: (pair[0] * S, sum(pair) * S)),
    min_size=1,
    max_size=8,
)


def profile(
    compute: list[tuple[int, int]], marks: dict[str, tuple[int, int]] | None = None, epoch: int | None = None
) -> ProfiledCompute:
    spans = union_of(compute)
    window = (min(0, int(spans.starts[0])), max(130 * S, int(spans.ends[-1])))
    return ProfiledCompute("t.json", spans, "test", window, marks or {}, epoch)


def operations(io: list[tuple[int, int]], marks: dict[str, tuple[int, int]] | None = None) -> RankOperations:
    return RankOperations(0, union_of(io), marks or {}, 10_000_000)


@given(SPANS, SPANS, st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_shifting_either_clock_changes_nothing(
    io: list[tuple[int, int]], compute: list[tuple[int, int]], log_ns: int, trace_ns: int
) -> None:
    mark = {"a": (0, 2000)}
    merged = merge(profile(compute, mark), operations(io, {"a": (500, 1500)}))
    moved_compute = [(start + trace_ns, end + trace_ns) for start, end in compute]
    moved = ProfiledCompute(
        "t.json", union_of(moved_compute), "test", (trace_ns, 130 * S + trace_ns), {"a": (trace_ns, trace_ns + 2000)}
    )
    moved_io = [(start + log_ns, end + log_ns) for start, end in io]
    other = merge(moved, operations(moved_io, {"a": (log_ns + 500, log_ns + 1500)}))
    assert (other.hidden_ns, other.io_ns, other.low_ns, other.high_ns) == (
        merged.hidden_ns,
        merged.io_ns,
        merged.low_ns,
        merged.high_ns,
    )
    assert 0 <= merged.low_ns <= merged.hidden_ns <= merged.high_ns <= merged.io_ns
    assert merged.hidden_ns <= merged.compute_ns


def test_a_known_overlap() -> None:
    """Compute from 0 to 10 s and 20 to 30 s; I/O from 5 to 25 s by a clock that is 100 s ahead: half of it is hidden."""
    marks = {"a": (40 * S, 40 * S + 3000)}
    merged = merge(
        profile([(0, 10 * S), (20 * S, 30 * S)], marks),
        operations([(105 * S, 125 * S)], {"a": (140 * S + 1000, 140 * S + 2000)}),
    )
    assert merged.share == pytest.approx(0.5, abs=1e-6)
    assert merged.alignment.by == "marks"
    assert merged.alignment.offset_ns == 100 * S
    assert merged.alignment.uncertainty_ns == 3000  # 1 µs on both sides, and 2 of rounding
    hidden = hidden_of_merged([merged])
    assert hidden.share == pytest.approx(0.5, abs=1e-6)
    assert hidden.basis == BASIS


def test_io_outside_the_profiled_stretch_is_not_taken_for_waiting() -> None:
    traced = ProfiledCompute("t.json", union_of([(0, 10 * S)]), "test", (0, 10 * S), {}, 0)
    merged = merge(traced, operations([(2 * S, 4 * S), (20 * S, 80 * S)]))
    assert merged.share == 1.0
    assert merged.io_outside_ns == 60 * S


def test_two_marks_narrow_the_offset_and_a_drift_is_refused() -> None:
    first, second = (0, 100_000), (10 * S, 10 * S + 100_000)
    narrow = align(
        profile([(0, S)], {"a": first, "b": second}),
        operations([(0, S)], {"a": (60_000, 70_000), "b": (10 * S + 20_000, 10 * S + 30_000)}),
    )
    alone = align(profile([(0, S)], {"a": first}), operations([(0, S)], {"a": (60_000, 70_000)}))
    assert narrow.uncertainty_ns < alone.uncertainty_ns
    with pytest.raises(
        UnalignedError, match="its 2 marks contradict each other by 999,836 µs: a clock was set or drifts"
    ):
        align(
            profile([(0, S)], {"a": first, "b": second}),
            operations([(0, S)], {"a": (60_000, 70_000), "b": (11 * S, 11 * S + 10)}),
        )


def test_what_cannot_be_aligned_is_refused_with_the_reason() -> None:
    io = operations([(0, S)])
    with pytest.raises(UnalignedError, match="neither an epoch time nor a tierscope"):
        align(profile([(0, S)]), io)
    with pytest.raises(UnalignedError, match=r"no operation on its tierscope-mark-\* file"):
        align(profile([(0, S)], {"a": (0, 1)}), io)
    with pytest.raises(UnalignedError, match=r"by its epoch time it lies 3,599\.000 s away"):
        align(profile([(0, S)], epoch=3600 * S), io)


def test_the_uncertainty_of_epoch_time_widens_the_range() -> None:
    merged = merge(profile([(0, 10 * S)], epoch=0), operations([(10 * S, 10 * S + 10_000_000)]))
    assert (merged.alignment.by, merged.hidden_ns) == ("epoch time", 0)
    assert merged.high_ns == 10_000_000  # all of it, if the clocks are 10 ms apart


def test_compute_of_the_log_itself() -> None:
    own = RankOperations(3, union_of([(0, 4 * S)]), {}, 0, union_of([(1 * S, 2 * S)]))
    merged = merge_own(own, "x")
    assert merged is not None
    assert (merged.share, merged.rank, merged.alignment.uncertainty_ns) == (0.25, 3, 0)
    assert merge_own(operations([(0, S)]), "x") is None
    assert hidden_of_merged([]).reason == "there is no I/O in the profiled stretch"


def test_no_number_where_hardly_anything_was_recorded_or_clocks_are_far_apart() -> None:
    """Said before: 100 % hidden, of a profile that had seen a thousandth of the I/O."""
    marks, mark = {"a": (40 * S, 40 * S + 3000)}, {"a": (140 * S + 1000, 140 * S + 2000)}
    little = merge(profile([(0, 10 * S)], marks), operations([(105 * S, 106 * S), (200 * S, 400 * S)], mark))
    assert hidden_of_merged([little]).share is None
    assert "% of the I/O time only" in hidden_of_merged([little]).reason
    apart = replace(merge(profile([(0, 10 * S)], marks), operations([(105 * S, 106 * S)], mark)), low_ns=0)
    assert "between 0 and 100 %" in hidden_of_merged([apart]).reason
