"""The verdict says what the numbers say."""

from typing import Any

import numpy as np
import pytest

from tests.report.sources import alone, source_of, swept
from tests.traces import TIERS, times_of, trace_of
from tierscope.analysis.times import from_traces
from tierscope.dataset.holdings import HeldBytes
from tierscope.report.report_source import ReportSource
from tierscope.report.verdict import verdict


def test_the_verdict_says_where_the_bottleneck_changes_what_is_best_and_what_helps() -> None:
    held = {index: {"lfs": HeldBytes(index * 2**30, index * 2**32)} for index in range(3)}
    bottleneck, best, helping = verdict(source_of(swept(), held=held))
    assert "GFS-META from 0% to 50%, then LFS-READ at 100%" in bottleneck
    assert "best cache rate is 50%, with 3.11 s" in best
    assert "1 GiB on lfs of every node" in best
    assert helping.startswith("Faster GFS-META would help most: 50 % more takes about 21.4 % off")


def test_what_nodes_share_is_counted_once() -> None:
    held = {index: {"bb": HeldBytes(None, 3 * 2**30)} for index in range(3)}
    assert "3 GiB on bb in all" in verdict(source_of(swept(), held=held))[1]


def test_a_verdict_without_a_sweep_compares_nothing() -> None:
    sentences = verdict(source_of(alone()))
    assert sentences[0].startswith("GFS-META is the bottleneck: 64 %")
    assert sentences[1].startswith("The slowest process has 3.11 s")


def test_a_verdict_on_no_io_at_all() -> None:
    sentences = verdict(source_of(times_of([{"rank": 0, "epoch": 1, "class": "GFS-READ", "seconds": 0.0}], [])))
    assert "no I/O" in sentences[0]
    assert "No class by itself would help" in sentences[2]


def with_loop(**changes: Any) -> ReportSource:
    seconds = {(rank, epoch): {"GFS-READ": 2.0} for rank in range(2) for epoch in (1, 2)}
    trace = trace_of(seconds, sweep={}, steps=np.ones((5, 3)), steps_per_entry=4, **changes)
    return source_of(from_traces([trace], TIERS))


def test_without_compute_the_verdict_says_how_long_a_step_would_hide_it() -> None:
    assert "a step computes longer than 100 ms" in verdict(with_loop())[-1]


@pytest.mark.parametrize(("stall", "end"), [(0.1, "compute hides the storage."), (9.0, "storage is not hidden.")])
def test_with_compute_the_verdict_says_how_long_ranks_waited(stall: float, end: str) -> None:
    sentence = verdict(with_loop(compute_seconds=8.0, stall_seconds=stall))[-1]
    assert f"{10 * stall:.1f} % of an epoch" in sentence
    assert sentence.endswith(end)
