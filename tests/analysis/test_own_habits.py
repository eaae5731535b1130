"""How tiers are used, from the sums of a trace."""

from typing import Any

import polars as pl

from tierscope.analysis.own_habits import habits_of
from tierscope.trace.columns import COLUMNS
from tierscope.trace.described_logs import Habit


def row(kind: str, ops: int, nbytes: int = 0, **more: Any) -> dict[str, Any]:
    plain = {"record": "io", "epoch": 1, "rank": 0, "lane": 0, "tier": "gfs", "kind": kind, "ops": ops, "bytes": nbytes}
    return {**plain, "size_histogram": [ops], **more}


def habits(*rows: dict[str, Any]) -> dict[str, Habit]:
    return habits_of(pl.DataFrame(list(rows), COLUMNS))


def test_opens_and_reads_of_all_ranks_and_lanes_are_added_up() -> None:
    found = habits(
        row("open", 1), row("open", 2, rank=1), row("read", 4, 40), row("read", 8, 80, lane=1), row("close", 16)
    )
    assert found == {"gfs": Habit(opens=3, reads=12, read_bytes=120, sizes=((1, 12),))}


def test_of_several_epochs_the_busiest_counts() -> None:
    rows = [row(kind, ops, ops, epoch=epoch) for epoch, ops in ((1, 5), (2, 9), (3, 7)) for kind in ("open", "read")]
    assert habits(*rows)["gfs"] == Habit(opens=9, reads=9, read_bytes=9, sizes=((1, 9),))


def test_tiers_are_apart_each_with_its_own_busiest_epoch() -> None:
    found = habits(
        row("read", 1), row("read", 2, epoch=2), row("read", 5, tier="lfs"), row("read", 4, tier="lfs", epoch=2)
    )
    assert {tier: habit.reads for tier, habit in found.items()} == {"gfs": 2, "lfs": 5}


def test_processes_that_are_no_ranks_do_not_count() -> None:
    assert habits(row("read", 1, rank=None)) == {}


def test_a_log_with_one_number_for_all_metadata_does_not_tell_opens() -> None:
    found = habits(row("meta", 9), row("read", 4, 40), row("open", 1, tier="lfs"))
    assert found["gfs"] == Habit(reads=4, read_bytes=40, sizes=((1, 4),))
    assert found["lfs"].opens == 1


def test_sizes_are_limits_with_what_is_below_them() -> None:
    histograms = [[0, 1, 2], [0, 0, 0, 5], []]
    found = habits(*(row("read", 1, lane=lane, size_histogram=each) for lane, each in enumerate(histograms)))
    assert found["gfs"].sizes == ((1, 0), (2, 1), (4, 2), (8, 5))


def test_without_histograms_sizes_are_not_known() -> None:
    assert habits(row("read", 1, size_histogram=None))["gfs"].sizes is None


def test_nothing_was_done() -> None:
    assert habits() == {}
    assert habits(row("write", 9, 90)) == {}
