"""`run --profiler dftracer` for real: what DFTracer counts in a run of ours is what our own recorder counts, and what the plan says."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.tiny import TINY
from tests.traces import dftracer_job, profiled_logs
from tierscope.output.store import RunStore
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.spec import sweep
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.trace import Trace

pytestmark = [
    pytest.mark.dftracer,
    pytest.mark.skipif(
        importlib.util.find_spec("dftracer") is None, reason="dftracer is not installed: make test-imports"
    ),
]

SETTINGS = {
    "one sample per file, one thread": [],
    "records in files, read by the rank itself": [
        "format=tfrecord",
        "num_files_train=6",
        "num_samples_per_file=4",
        "read_threads=0",
        "transfer_size=512",
    ],
}


def tierscope(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tierscope.cli.main", *map(str, words)]
    wide = {**os.environ, "COLUMNS": "160"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=wide)


@pytest.fixture(scope="module", params=SETTINGS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The same study, measured by DFTracer and by ourselves."""
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "study.yaml").write_text(TINY)
    settings = [word for each in SETTINGS[request.param] for word in ("--set", each)]
    for name in ("dftracer", "builtin"):
        done = tierscope("run", folder / "study.yaml", *settings, "--out", folder / name, "--profiler", name, "--json")
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.json").write_text(done.stdout)
    return folder, SETTINGS[request.param]


def traces(folder: Path) -> list[Trace]:
    return list(RunStore(str(folder)).load_all())


def counts(trace: Trace) -> list[tuple[Any, ...]]:
    """Operations and bytes by epoch, rank, node, tier and kind."""
    summed = trace.io.group_by("epoch", "rank", "node", "tier", "kind").agg(pl.col("ops", "bytes").sum())
    return sorted(summed.rows())


def test_operations_and_bytes_are_those_of_our_own_recorder(both: tuple[Path, list[str]]) -> None:
    folder, _ = both
    pairs = list(zip(traces(folder / "dftracer"), traces(folder / "builtin"), strict=True))
    assert len(pairs) == 3
    for theirs, ours in pairs:
        assert counts(theirs) == counts(ours)
        assert theirs.io["busy_seconds"].sum() > 0
        assert profiled_logs(theirs).missed_ops == profiled_logs(theirs).missed_bytes == 0


def test_bytes_of_every_rank_epoch_and_tier_are_those_of_the_plan(both: tuple[Path, list[str]]) -> None:
    folder, settings = both
    points = list(sweep.points(parse_study(TINY, "study.yaml", settings)))
    for trace, point in zip(traces(folder / "dftracer"), points, strict=True):
        reads = trace.io.filter(pl.col("kind") == "read").group_by("rank", "epoch", "tier").agg(pl.col("bytes").sum())
        assert {row[:3]: row[3] for row in reads.iter_rows()} == planned_bytes(point.study)


def planned_bytes(study: Study) -> dict[tuple[int, int, str], int]:
    form = make_format(study)
    plan = Plan.of(study, form.file_bytes)
    found: dict[tuple[int, int, str], int] = {}
    for rank in range(study.system.ranks):
        for epoch in (1, 2):
            for block in plan.reads(rank, epoch):
                for inside, tier in zip(block.inside.tolist(), block.tiers.tolist(), strict=True):
                    key = rank, epoch, study.system.tiers[tier].name
                    found[key] = found.get(key, 0) + sum(extent.nbytes for extent in form.extents(inside))
    return found


def test_samples_are_delivered_in_the_same_order(both: tuple[Path, list[str]]) -> None:
    folder, _ = both
    for theirs, ours in zip(traces(folder / "dftracer"), traces(folder / "builtin"), strict=True):
        order = [trace.ranks.sort("rank", "epoch")["order_digest"].to_list() for trace in (theirs, ours)]
        assert order[0] == order[1]
        assert len(set(order[0])) == 4


def test_eviction_opens_no_file(both: tuple[Path, list[str]]) -> None:
    """It goes through the descriptors that read: nothing is opened beside epochs."""
    for trace in traces(both[0] / "dftracer"):
        assert profiled_logs(trace).facts.outside_epochs.ops == 0
        assert dftracer_job(profiled_logs(trace).facts).other_calls["posix_fadvise64"] >= 6


def test_the_result_says_who_measured(both: tuple[Path, list[str]]) -> None:
    out = both[0] / "dftracer"
    shown = json.loads((both[0] / "dftracer.json").read_text())
    assert shown["profilers"] == ["dftracer"]
    assert shown["overhead"]["recorder_seconds_per_op"] is None
    assert "measured with dftracer" in tierscope("analyze", out).stdout
    assert "measured with dftracer" in tierscope("estimate", out).stdout
    assert "<dt>Profiler</dt><dd>dftracer</dd>" in (out / "report.html").read_text()
    assert tierscope("explore", out, "--goal", "1s", "--vary", "GFS-READ=0:100:50").returncode == 0


def test_the_kept_logs_tell_epochs_and_ranks_to_anybody(both: tuple[Path, list[str]]) -> None:
    out = both[0] / "dftracer"
    tiers = [f"--tier={name}={out / 'tiers' / name}" for name in ("lfs", "gfs")]
    logs = sorted((out / "logs" / "0001-r1").iterdir())
    again = tierscope("analyze", *logs, *tiers, "--epoch-span", "tierscope.epoch", "--json")
    points = json.loads(again.stdout)["points"]
    (trace,) = [each for each in traces(out) if each.key.point == 1]
    for point in points:
        reads = trace.io.filter(pl.col("epoch") == point["epoch"], pl.col("rank") == point["slowest_rank"])
        assert sum(point["ops"].values()) == reads["ops"].sum() > 0


def test_finished_runs_are_not_repeated_and_a_lost_one_is(both: tuple[Path, list[str]]) -> None:
    folder, each = both
    settings = [word for setting in each for word in ("--set", setting)]
    run = ["run", folder / "study.yaml", *settings, "--out", folder / "dftracer"]
    files = sorted((folder / "dftracer" / "runs").iterdir())
    before = [path.stat().st_mtime_ns for path in files]
    os.unlink(files[1])
    done = tierscope(*run, "--profiler", "dftracer")
    assert done.returncode == 0, done.stderr
    assert "resuming: 2 of 3 runs are finished" in done.stderr
    after = [path.stat().st_mtime_ns for path in files]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    refused = tierscope(*run)
    assert refused.returncode == 2
    assert "was measured with dftracer, not with builtin" in refused.stderr


def test_kills_lose_no_finished_run(both: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, each = both
    out, settings = tmp_path / "out", [word for setting in each for word in ("--set", setting)]
    words = ["run", folder / "study.yaml", *settings, "--out", out, "--profiler", "dftracer", "--quiet"]
    command = [sys.executable, "-m", "tierscope.cli.main", *map(str, words)]
    kept: dict[Path, int] = {}
    for seconds in (0.6, 1.0, 1.3, 1.6, 1.9):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as director:
            time.sleep(seconds)
            director.kill()
        assert {path: path.stat().st_mtime_ns for path in kept} == kept
        kept = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.parquet")}
    assert tierscope(*words).returncode == 0
    for theirs, ours in zip(traces(out), traces(folder / "builtin"), strict=True):
        assert counts(theirs) == counts(ours)
    assert sorted(os.listdir(out / "logs")) == ["0000-r1", "0001-r1", "0002-r1"]
    assert all(len(list(logs.iterdir())) == 3 for logs in (out / "logs").iterdir())
    assert not (out / ".scratch").exists()
