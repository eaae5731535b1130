"""The calendar's clock may be set while a study runs: nothing that is measured depends on it."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.small_study import small_study, stage
from tierscope.bench import run as run_module
from tierscope.bench.group import Alone
from tierscope.bench.run import RunTask, run_rank
from tierscope.loaders.choose import choose_loader
from tierscope.report.summary import _times
from tierscope.trace import provenance as provenance_module
from tierscope.trace.provenance import provenance
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, gather

HOUR_NS = 3600 * 10**9


class Calendar:
    """A clock that jumps by so much from one look to the next."""

    def __init__(self, steps: Iterator[int]) -> None:
        self._steps, self._shift = steps, 0

    def time_ns(self) -> int:
        self._shift += next(self._steps)
        return time.time_ns() + self._shift


def measured(out: Path, monkeypatch: pytest.MonkeyPatch, steps: Iterator[int]) -> RankTrace:
    study = small_study("epochs=3")
    stage(study, str(out))
    clock = SimpleNamespace(time_ns=Calendar(steps).time_ns, monotonic_ns=time.monotonic_ns)
    monkeypatch.setattr(run_module, "time", clock)
    return run_rank(RunTask(study, choose_loader(study), str(out), None, "none", None), Alone())


@pytest.mark.parametrize("step", [-HOUR_NS, HOUR_NS, -(10**15)])
def test_a_clock_that_is_set_changes_no_duration(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = measured(tmp_path, monkeypatch, chain([0], repeat(step)))
    for epoch in trace.epochs:
        assert 0 < epoch.seconds < 60
        assert 0 <= epoch.stall_seconds <= epoch.seconds
        began, ended = epoch.span_ns
        assert 0 <= ended - began < 60 * 10**9
        assert (ended - began) / 1e9 >= epoch.seconds * 0.9
        assert all((lane.busy_ns >= 0).all() and lane.busy_ns.sum() < 60e9 for lane in epoch.lanes)


def test_where_it_comes_from_stays_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run ends, by the calendar, an hour before the first: a summary's begin is not behind its end."""
    ends = iter([datetime(2026, 7, 1, 12, tzinfo=UTC), datetime(2026, 7, 1, 11, tzinfo=UTC)])
    monkeypatch.setattr(provenance_module, "datetime", SimpleNamespace(now=lambda _zone: next(ends)))
    rank = measured(tmp_path, monkeypatch, repeat(0))
    runs = []
    for repetition in (1, 2):
        about: dict[str, Any] = {"provenance": provenance("local", {})}
        runs.append(gather(RunKey(0, repetition), about, ["lfs", "gfs"], [rank]))
    start, end = _times(runs)
    assert start is not None
    assert end == "2026-07-01T12:00:00+00:00"
    assert "2026-07-01T10:59" < start < "2026-07-01T11:00:01"
