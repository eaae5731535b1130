"""Checkpoints in a study: what the traces and their descriptions say, and what is refused before anything is touched."""

import os
from pathlib import Path

import polars as pl
import pytest

from tests.measure.test_run import run, traces
from tests.tiny import tiny
from tests.traces import as_measured, checkpoint_of
from tierscope.analysis.to_json import breakdown_json
from tierscope.bench.overhead import Overhead
from tierscope.commands.analyze import analyze
from tierscope.commands.simulate import simulate_study
from tierscope.errors import UserError
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.report.parts import title_label
from tierscope.spec.study import Study
from tierscope.trace.trace import Trace
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

FIVE = 1024 + 1024 + 4096 + 65536 + (4 << 20)
EVERY_EPOCH = "epochs_between_checkpoints=1"


def saved(*settings: str) -> Study:
    return tiny("sweep={}", "cache_rate=50%", "epochs=3", "checkpoint.fsync=false", *settings)


def written(trace: Trace, tier: str) -> dict[tuple[int, int], int]:
    rows = trace.io.filter(pl.col("kind") == "write", pl.col("tier") == tier)
    return {(epoch, rank): nbytes for epoch, rank, nbytes in rows.select("epoch", "rank", "bytes").iter_rows()}


def test_a_study_with_checkpoints(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(saved(EVERY_EPOCH, "checkpoint.verify=true", "mode=all_ranks"), out)
    (trace,) = traces(out)
    about = checkpoint_of(trace)
    assert (about.tier, about.count, about.bytes, about.writers) == ("gfs", 3, FIVE, 2)
    assert (about.verified, about.verified_bytes) == (True, FIVE)
    assert 0 < (about.seconds_median or 0) <= (about.seconds_max or 0)
    assert (about.recovery_seconds or 0) > 0
    assert all(FIVE / 2 <= nbytes < FIVE / 2 + 3000 for nbytes in written(trace, "gfs").values())
    assert len(written(trace, "gfs")) == 6
    analysis = analyze(str(out))
    assert analysis.breakdown.classes[-1] == "GFS-WRITE"
    result = breakdown_json(analysis.breakdown, analysis.findings, analysis.conditions)
    for point in (*result["points"], *result["summary"], result["best"]):
        assert 0 < point["checkpoint_seconds"] < point["epoch_seconds"]
        assert point["checkpoint_share"] == pytest.approx(point["checkpoint_seconds"] / point["epoch_seconds"], rel=0.5)


def test_without_verification_nothing_is_said_of_a_recovery(tmp_path: Path) -> None:
    run(saved("steps_between_checkpoints=100"), tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    about = checkpoint_of(trace)
    assert (about.count, about.bytes, about.seconds_max) == (0, FIVE, None)
    assert (about.verified, about.recovery_seconds) == (None, None)
    analysis = analyze(str(tmp_path / "out"))
    assert analysis.breakdown.best.checkpoint_seconds is None
    assert "checkpoint_share" not in {finding.kind for finding in analysis.findings}


def test_every_run_begins_without_those_of_the_one_before(tmp_path: Path) -> None:
    run(tiny(EVERY_EPOCH, "keep=5", "checkpoint.tier=lfs", "lfs.capacity=1 GiB"), tmp_path / "out")
    folder = tmp_path / "out" / "tiers" / "lfs" / "0" / "checkpoints"
    assert sorted(os.listdir(folder)) == ["step-000003", "step-000006", "tierscope.json"]
    assert os.listdir(tmp_path / "out" / "tiers" / "lfs" / "1" / "checkpoints") == ["tierscope.json"]
    assert all(checkpoint_of(trace).count == 2 for trace in traces(tmp_path / "out"))


def test_checkpoints_are_no_misses_of_first_touch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.measure.runner.Runner._overhead", lambda *_: Overhead(0.0, 0.0, 0.0))
    study = saved("steps_between_checkpoints=1", "policy=first-touch", "cache_rate=100%", "lfs.capacity=null")
    run(study, tmp_path / "out")
    (trace,) = traces(tmp_path / "out")
    plain = saved("policy=first-touch", "cache_rate=100%", "lfs.capacity=null")
    run(plain, tmp_path / "plain")
    assert as_measured(trace).hit_rate == as_measured(traces(tmp_path / "plain")[0]).hit_rate


def test_a_profiler_does_not_watch_them(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"--profiler darshan does not work with checkpoints; set .* to 0, or remove --profiler"
    ):
        run_study(saved(EVERY_EPOCH), str(tmp_path / "out"), Crews(), Silent(), profiler="darshan")
    assert not (tmp_path / "out").exists()


def test_more_than_the_tier_holds_is_refused(tmp_path: Path) -> None:
    said = r"workload.checkpoint.keep = 2; that many checkpoints and one more take .* on lfs, plus 12 KiB of data, but lfs holds only 1 MiB"
    with pytest.raises(UserError, match=said):
        run(saved(EVERY_EPOCH, "checkpoint.tier=lfs"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_simulation_is_with_them(tmp_path: Path) -> None:
    """The answer on top is what takes longest: writing, where that is longer than reading."""
    rates = ("lfs.bandwidth=1 GB/s", "gfs.bandwidth=1 GB/s", "gfs.metadata_ops=unlimited", "gfs.write_bandwidth=1 MB/s")
    for name, settings in (("with", (EVERY_EPOCH,)), ("without", ())):
        out = str(tmp_path / name)
        simulate_study(saved(*rates, *settings), out, "bound", Silent())
        analysis = analyze(out)
        best, writes = analysis.breakdown.best, name == "with"
        assert "checkpoints_not_simulated" not in {finding.kind for finding in analysis.findings}
        assert "without" not in title_label(analysis.conditions)
        assert (best.bottleneck == "GFS-WRITE") == writes
        assert (best.io.median > FIVE / 1e6) == ((best.epoch_seconds or 0.0) > FIVE / 1e6) == writes
        assert (best.checkpoint_seconds is not None) == writes


def test_ranks_do_not_copy_checkpoints_on(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"workload.checkpoint.drain = true; 'tierscope run' does not copy checkpoints .* 'tierscope simulate'",
    ):
        run(saved(EVERY_EPOCH, "checkpoint.tier=lfs", "drain=true", "lfs.capacity=null"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
