"""Files that all ranks used: what ranks get adds up to the record, is never negative, and the slowest stays the slowest."""

import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tierscope.imports.darshan_shared import NamedRank, SharedSums, split_over_ranks

SECONDS = st.floats(0, 1e6, allow_nan=False)
COUNTS = st.integers(0, 1 << 40)


class Record(NamedTuple):
    seconds: tuple[float, float, float]
    ops: tuple[int, int, int]
    moved: tuple[int, int, int]
    slowest: tuple[int, float, int] = (-1, 0.0, 0)  # rank, seconds, bytes
    fastest: tuple[int, float, int] = (-1, 0.0, 0)


def shared(records: list[Record]) -> SharedSums:
    def column(place: int, dtype: type) -> np.ndarray:
        return np.array([record[place] for record in records], dtype).reshape(len(records), 3).T

    def named(which: str) -> NamedRank:
        ranks, seconds, moved = zip(*(getattr(record, which) for record in records), strict=True)
        return NamedRank(np.array(ranks, np.int64), np.array(seconds), np.array(moved, np.int64))

    return SharedSums(column(0, float), column(1, int), column(2, int), named("slowest"), named("fastest"))


@st.composite
def possible_records(draw: st.DrawFn, processes: int) -> Record:
    """As Darshan makes them: of the seconds and bytes of every rank."""
    of_ranks = np.array(draw(st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=processes, max_size=processes)))
    moved = np.array(draw(st.lists(st.tuples(COUNTS, COUNTS), min_size=processes, max_size=processes)), np.int64)
    ops = draw(st.tuples(COUNTS, COUNTS, COUNTS))
    spent = of_ranks.sum(axis=1)
    slowest, fastest = int(spent.argmax()), int(spent.argmin())
    total = of_ranks.sum(axis=0)
    return Record(
        (total[0], total[1], total[2]),
        ops,
        (int(moved[:, 0].sum()), 0, int(moved[:, 1].sum())),
        (slowest, spent[slowest], int(moved[slowest].sum())),
        (fastest, spent[fastest], int(moved[fastest].sum())),
    )


NAMED = st.tuples(st.integers(-3, 12), SECONDS, COUNTS)
ANY = st.builds(
    Record,
    st.tuples(SECONDS, SECONDS, SECONDS),
    st.tuples(COUNTS, COUNTS, COUNTS),
    st.tuples(COUNTS, st.just(0), COUNTS),
    NAMED,
    NAMED,
)


@given(st.lists(ANY, min_size=1, max_size=6), st.integers(1, 9))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_a_record_says_sums_are_kept_and_nothing_is_negative(records: list[Record], processes: int) -> None:
    whole = shared(records)
    found = split_over_ranks(whole, processes)
    assert found.seconds.shape == found.ops.shape == found.moved.shape == (3, processes)
    assert np.array_equal(found.ops.sum(axis=1), whole.ops.sum(axis=1))
    assert np.array_equal(found.moved.sum(axis=1), whole.moved.sum(axis=1))
    assert found.seconds.sum(axis=1) == pytest.approx(whole.seconds.sum(axis=1), rel=1e-12, abs=1e-9)
    assert min(found.ops.min(), found.moved.min(), found.seconds.min()) >= 0


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), possible_records(n))))
@settings(max_examples=examples(200), deadline=None)
def test_the_two_ranks_that_are_recorded_get_what_is_recorded(case: tuple[int, Record]) -> None:
    processes, record = case
    found = split_over_ranks(shared([record]), processes)
    spent = found.seconds.sum(axis=0)
    (slowest, slow, slow_bytes), (fastest, fast, fast_bytes) = record.slowest, record.fastest
    assert spent[slowest] == pytest.approx(slow, rel=1e-9, abs=1e-9)
    assert spent[slowest] >= spent.max() * (1 - 1e-12)
    assert spent[fastest] == pytest.approx(fast, rel=1e-9, abs=1e-9)
    for rank, moved in ((slowest, slow_bytes), (fastest, fast_bytes)):
        assert abs(int(found.moved[:, rank].sum()) - moved) <= 3  # what does not divide goes round
    whole = sum(record.seconds)
    for kind, seconds in enumerate(record.seconds):
        if whole:
            assert found.seconds[kind] == pytest.approx(spent * seconds / whole, rel=1e-9, abs=1e-9)


def test_others_get_equal_parts_of_the_rest() -> None:
    record = Record((6.0, 2.0, 2.0), (100, 10, 0), (1000, 0, 0), (2, 5.0, 700), (0, 1.0, 100))
    found = split_over_ranks(shared([record]), 4)
    assert found.seconds.sum(axis=0) == pytest.approx([1, 2, 5, 2])
    assert found.seconds[0] == pytest.approx([0.6, 1.2, 3.0, 1.2])
    assert found.moved[0].tolist() == [100, 100, 700, 100]
    assert found.ops[0].tolist() == [10, 10, 70, 10]
    assert sorted(found.ops[1].tolist()) == [2, 2, 3, 3]


def test_a_rank_that_read_for_all_has_all_reads() -> None:
    record = Record((3.0, 1.0, 0.0), (8, 4, 0), (800, 0, 0), (1, 3.25, 800), (0, 0.25, 0))
    found = split_over_ranks(shared([record]), 4)
    assert found.ops[0].tolist() == [0, 8, 0, 0]
    assert found.moved[0].tolist() == [0, 800, 0, 0]


def test_two_that_have_more_than_all_are_scaled() -> None:
    record = Record((3.0, 0.0, 0.0), (0, 0, 0), (0, 0, 0), (0, 4.0, 0), (1, 2.0, 0))
    assert split_over_ranks(shared([record]), 3).seconds[0] == pytest.approx([2, 1, 0])


def test_a_slowest_rank_below_the_mean_cannot_be() -> None:
    record = Record((8.0, 0.0, 0.0), (0, 0, 0), (0, 0, 0), (0, 0.0, 0), (1, 0.0, 0))
    assert split_over_ranks(shared([record]), 4).seconds[0] == pytest.approx([2, 2, 2, 2])


def test_many_records_over_many_ranks_take_neither_time_nor_memory() -> None:
    """100,000 of them over 65,536 ranks: the product would be 52 GB of seconds alone."""
    count, processes = 100_000, 65_536
    ranks = np.arange(count) % processes
    seconds, ones = np.full((3, count), 65_536.0), np.full((3, count), 7)
    named = (
        NamedRank(ranks, np.full(count, 9.0), np.full(count, 2)),
        NamedRank(ranks[::-1].copy(), np.full(count, 1.0), np.full(count, 1)),
    )
    began = time.process_time()
    found = split_over_ranks(SharedSums(seconds, ones, ones, *named), processes)
    assert time.process_time() - began < 2
    assert found.moved.sum(axis=1).tolist() == [7 * count] * 3
    assert found.seconds.sum() == pytest.approx(3 * 65_536.0 * count)
