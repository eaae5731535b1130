"""Whole studies on tiers that are emulated in every way there is, with real ranks."""

import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.measure.test_run import Diary, run, traces
from tests.small_study import NEEDS_LIBRARY
from tests.tiny import tiny
from tests.traces import as_measured
from tierscope.bench.run import RunTask
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study

pytestmark = pytest.mark.whole

EMULATED = ("sweep={}", "cache_rate=0", "gfs.emulate=true")


def seconds(out: Path, kind: str) -> float:
    """Busy seconds of all ranks in all epochs."""
    (trace,) = traces(out)
    return float(trace.io.filter(pl.col("kind") == kind)["busy_seconds"].sum())


def test_all_keys_at_once(tmp_path: Path) -> None:
    settings = (
        "gfs.metadata_servers=2",
        "gfs.metadata_ops=2000/s",
        "gfs.metadata_latency=1 ms",
        "gfs.metadata_variation=50%",
        "gfs.servers=4",
        "gfs.read_ops=2000/s",
        "gfs.bandwidth=10 MB/s",
        "gfs.stripe_count=2",
        "gfs.stripe_size=512",
        "gfs.node_bandwidth=10 MB/s",
        "gfs.device_bandwidth=20 MB/s",
        "gfs.gateway_bandwidth=20 MB/s",
        "gfs.latency=1 ms",
        "gfs.service_variation=100%",
        "gfs.discipline=sharing",
        "gfs.background=30%",
        "read_threads=2",
    )
    diary = run(tiny(*EMULATED, *settings), tmp_path / "out")
    assert "gfs.metadata_servers: emulated only in Python, so data_loader: auto uses Python threads" in diary.notes
    (trace,) = traces(tmp_path / "out")
    assert as_measured(trace).loader == "threads"
    assert trace.ranks["samples"].sum() == 48
    assert trace.ranks["limited_ops"].sum() == 96
    assert seconds(tmp_path / "out", "open") > 48 * 0.001
    assert seconds(tmp_path / "out", "read") > 48 * 0.001
    assert not any(thread.name == "background" for thread in threading.enumerate())


def test_a_tier_with_and_without_emulation_is_staged_and_held_once(tmp_path: Path) -> None:
    """The same files lie under both."""
    diary = run(tiny("sweep={gfs.emulate: [true, false]}", "cache_rate=0", "gfs.latency=1 ms"), tmp_path / "out")
    assert [trace.ranks["limited_ops"].sum() > 0 for trace in traces(tmp_path / "out")] == [True, False]
    assert sum(phase[0] == "generating data" for phase in diary.phases) == 1


@NEEDS_LIBRARY
def test_what_c_emulates_too_is_read_by_it_and_nothing_is_said(tmp_path: Path) -> None:
    settings = ("gfs.metadata_latency=2 ms", "gfs.node_bandwidth=10 MB/s", "gfs.read_ops=1000/s", "gfs.background=50%")
    diary = run(tiny(*EMULATED, *settings), tmp_path / "out")
    assert not [note for note in diary.notes if "Python" in note]
    (trace,) = traces(tmp_path / "out")
    assert as_measured(trace).loader == "native"
    assert seconds(tmp_path / "out", "open") >= 48 * 0.002


def test_nothing_is_said_to_who_asked_for_threads(tmp_path: Path) -> None:
    study = tiny(*EMULATED, "gfs.read_ops=5000/s", "gfs.discipline=sharing", "data_loader=threads")
    assert not [note for note in run(study, tmp_path / "out").notes if "Python" in note]


def test_others_are_there_while_ranks_read_and_gone_when_they_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tiny(*EMULATED, "gfs.metadata_ops=1000/s", "gfs.background=50%", "data_loader=threads")
    crews = Crews()
    seen: list[str] = []

    class Failing:
        def __init__(self, crew: Any) -> None:
            self._crew = crew

        def call(self, task: Any, progress: Any) -> Any:
            if isinstance(task, RunTask):
                seen.extend(thread.name for thread in threading.enumerate())
                raise RuntimeError("a rank died")
            return self._crew.call(task, progress)

    of = crews.of
    monkeypatch.setattr(crews, "of", lambda study: (Failing(of(study)[0]), of(study)[1]))
    with pytest.raises(RuntimeError, match="a rank died"):
        run_study(study, str(tmp_path / "out"), crews, Diary())
    crews.close()
    assert "background" in seen
    assert not any(thread.name == "background" for thread in threading.enumerate())
