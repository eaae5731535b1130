"""Unions of spans beside a count of single nanoseconds; with less room, gaps are closed and what that adds is told."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tierscope.analysis.time_spans import NO_SPANS, SpanUnion, TimeSpans, together, union_of

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=12)


def instants(spans: list[tuple[int, int]]) -> set[int]:
    return {instant for start, end in spans for instant in range(start, end)}


@given(SPANS, SPANS)
def test_beside_single_instants(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    this, other = union_of(first), union_of(second)
    assert this.total_ns == len(instants(first))
    assert this.overlap_ns(other) == other.overlap_ns(this) == len(instants(first) & instants(second))
    assert this.without(other).total_ns == len(instants(first) - instants(second))
    assert this.within(10, 30).total_ns == len(instants(first) & set(range(10, 30)))
    assert together([this, other]).total_ns == len(instants(first) | instants(second))
    assert (np.diff(this.starts) > 0).all()
    assert (this.starts[1:] > this.ends[:-1]).all()


@given(SPANS)
def test_the_order_of_coming_does_not_matter(spans: list[tuple[int, int]]) -> None:
    assert union_of(spans).starts.tolist() == union_of(reversed(spans)).starts.tolist()
    assert union_of(spans).shifted(1 << 60).total_ns == union_of(spans).total_ns


def test_too_many_spans_close_the_smallest_gaps_and_say_so() -> None:
    union = SpanUnion(most=4)
    starts = np.array([0, 10, 21, 33, 100, 200], np.int64)
    union.add_all(starts, starts + 9)
    spans = union.spans()
    assert len(spans.starts) <= 4
    assert spans.closed_ns == spans.total_ns - 6 * 9
    assert spans.extent == (0, 209)
    assert spans.ends[-1] - spans.starts[-1] == 9  # the largest gaps stay


def test_nothing() -> None:
    assert (NO_SPANS.total_ns, NO_SPANS.extent, NO_SPANS.overlap_ns(union_of([(1, 2)]))) == (0, None, 0)
    assert union_of([(5, 5)]).extent is None
    assert NO_SPANS.without(NO_SPANS).total_ns == 0
    assert isinstance(together([]), TimeSpans)
