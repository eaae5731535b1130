"""From what ranks hand over to one table."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.traces import OP_BYTES, TIERS, Cell, described_by, empty_lane, lane_of, rank_epoch
from tierscope.trace.columns import COLUMNS
from tierscope.trace.ops import KINDS
from tierscope.trace.rank_trace import RankTrace, Residency
from tierscope.trace.trace import RunKey, Trace, gather

KEY = RunKey(3, 2)
ABOUT = described_by({"loader": "here"})
CELLS = st.dictionaries(
    st.tuples(st.sampled_from(TIERS), st.sampled_from(KINDS)), st.integers(0, 10**9).map(lambda ns: ns / 1e9)
)


def gathered(*ranks: RankTrace) -> Trace:
    return gather(KEY, ABOUT, TIERS, list(ranks))


@settings(max_examples=examples(50))
@given(st.lists(st.lists(CELLS, max_size=3), max_size=4))
def test_nothing_is_lost_or_added(ranks: list[list[dict[Cell, float]]]) -> None:
    trace = gathered(
        *(
            RankTrace(
                number, number // 2, (rank_epoch(lanes=tuple(lane_of(cells, i, 0.5) for i, cells in enumerate(lanes))),)
            )
            for number, lanes in enumerate(ranks)
        )
    )
    found = {
        (row["rank"], row["lane"], row["tier"], row["kind"]): (row["busy_seconds"], row["wall_seconds"])
        for row in trace.io.iter_rows(named=True)
    }
    assert found == {
        (number, lane, *cell): (seconds, round(seconds * 0.5 * 1e9) / 1e9)
        for number, lanes in enumerate(ranks)
        for lane, cells in enumerate(lanes)
        for cell, seconds in cells.items()
    }
    assert trace.ranks["rank"].to_list() == list(range(len(ranks)))
    assert trace.table.schema == pl.Schema(COLUMNS)


def test_a_row_says_which_run_and_who() -> None:
    lanes = (lane_of({("gfs", "read"): 0.25}, number=4),)
    trace = gathered(RankTrace(5, 2, (rank_epoch(3, lanes=lanes),)))
    row = trace.io.row(0, named=True)
    assert {name: row[name] for name in ("point", "repetition", "epoch", "node", "rank", "lane")} == {
        "point": 3,
        "repetition": 2,
        "epoch": 3,
        "node": 2,
        "rank": 5,
        "lane": 4,
    }
    assert (row["ops"], row["bytes"], row["epoch_seconds"]) == (1, OP_BYTES, None)
    assert trace.key == KEY
    assert trace.about is ABOUT


def test_histograms_end_with_their_last_count() -> None:
    lane = empty_lane()
    lane.ops[1] = 5
    lane.sizes[48 + 3], lane.latencies[48 + 47] = 5, 5
    row = gathered(RankTrace(0, 0, (rank_epoch(lanes=(lane,)),))).io.row(0, named=True)
    assert row["kind"] == KINDS[1]
    assert row["size_histogram"] == [0, 0, 0, 5]
    assert row["latency_histogram"] == [0] * 47 + [5]


def test_an_operation_that_took_no_time_is_still_one() -> None:
    trace = gathered(RankTrace(0, 0, (rank_epoch(lanes=(lane_of({("lfs", "stat"): 0.0}),)),)))
    assert trace.io.select("kind", "ops", "busy_seconds").rows() == [("stat", 1, 0.0)]


def test_a_rank_keeps_its_times_and_steps() -> None:
    steps = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    epoch = rank_epoch(
        2, seconds=7.0, samples=8, stall_seconds=1.5, late_ops=3, order_digest="ab", steps=steps, steps_per_entry=4
    )
    row = gathered(RankTrace(1, 0, (epoch,))).ranks.row(0, named=True)
    assert (row["epoch_seconds"], row["samples"], row["stall_seconds"], row["late_ops"]) == (7.0, 8, 1.5, 3)
    assert (row["order_digest"], row["steps_per_entry"]) == ("ab", 4)
    assert [row[f"step_{name}_seconds"] for name in ("read", "stall", "compute")] == [
        [1.0, 4.0],
        [2.0, 5.0],
        [3.0, 6.0],
    ]


def test_an_epoch_without_steps_has_empty_lists() -> None:
    assert gathered(RankTrace(0, 0, (rank_epoch(),))).ranks["step_read_seconds"].to_list() == [[]]


def test_what_could_not_be_told_about_the_page_cache_is_null() -> None:
    residency = (Residency("lfs", 10, 4), Residency("gfs", 20, None))
    trace = gathered(RankTrace(0, 0, (rank_epoch(residency=residency),)))
    found = trace.cold.select("tier", "checked_bytes", "resident_bytes").rows()
    assert found == [("lfs", 10, 4), ("gfs", 20, None)]
    assert trace.io.is_empty()
