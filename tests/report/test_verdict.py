"""The verdict says what the numbers say."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.report.sources import alone, source_of, swept
from tests.traces import TIERS, times_of, trace_of
from tierscope.analysis.times import from_traces
from tierscope.report.report_source import ReportSource
from tierscope.report.verdict import verdict
from tierscope.spec.feasibility import Feasibility, TierRoom


def room(bytes_per_node: int, capacity: int | None = None) -> Feasibility:
    return Feasibility((TierRoom("lfs", bytes_per_node, 4 * bytes_per_node, capacity),))


def test_the_verdict_says_where_the_bottleneck_changes_what_is_best_and_what_helps() -> None:
    held = {(rate,): room(bytes_per_node=n * 2**30) for n, rate in enumerate((0.0, 0.5, 1.0))}
    bottleneck, best, helping = verdict(source_of(replace(swept(), feasibility=held)))
    assert "GFS-META from 0% to 50%, then LFS-READ at 100%" in bottleneck
    assert "best cache rate is 50%, with 3.11 s" in best
    assert "1 GiB on lfs on every node" in best
    assert helping.startswith(
        "Faster GFS-META would help most: 50 % more throughput saves about 21.4 % of the best time"
    )


def test_what_nodes_share_is_counted_once() -> None:
    held = {(rate,): Feasibility((TierRoom("bb", None, 3 * 2**30, None),)) for rate in (0.0, 0.5, 1.0)}
    assert "3 GiB on bb in total" in verdict(source_of(replace(swept(), feasibility=held)))[1]


def test_a_point_that_does_not_fit_is_never_the_best_one() -> None:
    """50 % is the shortest; where it does not fit, the next one is recommended."""
    held = {(rate,): room(bytes_per_node=n * 2**30, capacity=2**29 if rate == 0.5 else 2**40) for n, rate in enumerate((0.0, 0.5, 1.0))}  # fmt: skip
    sentences = " ".join(verdict(source_of(replace(swept(), feasibility=held))))
    assert "best cache rate is 100%" in sentences
    assert "50%" not in sentences.partition("best cache rate is")[2].partition(".")[0]


def test_where_nothing_fits_nothing_is_called_the_best() -> None:
    held = {(rate,): room(bytes_per_node=2**30, capacity=1) for rate in (0.0, 0.5, 1.0)}
    assert "best cache rate" not in " ".join(verdict(source_of(replace(swept(), feasibility=held))))


def test_a_verdict_without_a_sweep_compares_nothing() -> None:
    sentences = verdict(source_of(alone()))
    assert sentences[0].startswith("GFS-META is the bottleneck: 64 %")
    assert sentences[1].startswith("The slowest process has 3.11 s")


def test_a_verdict_on_no_io_at_all() -> None:
    sentences = verdict(source_of(times_of([{"rank": 0, "epoch": 1, "class": "GFS-READ", "seconds": 0.0}], [])))
    assert "no I/O" in sentences[0]
    assert "No single class would help" in sentences[2]


def with_loop(**changes: Any) -> ReportSource:
    seconds = {(rank, epoch): {"GFS-READ": 2.0} for rank in range(2) for epoch in (1, 2)}
    trace = trace_of(seconds, sweep={}, steps=np.ones((5, 3)), steps_per_entry=4, **changes)
    return source_of(from_traces([trace], TIERS))


def test_without_compute_the_verdict_says_how_long_a_step_would_hide_it() -> None:
    assert "a step computed longer than 100 ms" in verdict(with_loop())[-1]


@pytest.mark.parametrize(("stall", "end"), [(0.1, "compute hides storage."), (9.0, "storage is not hidden.")])
def test_with_compute_the_verdict_says_how_long_ranks_waited(stall: float, end: str) -> None:
    sentence = verdict(with_loop(compute_seconds=8.0, stall_seconds=stall))[-1]
    assert f"the rank with the longest epoch waited for data {10 * stall:.1f} % of it" in sentence
    assert sentence.endswith(end)
