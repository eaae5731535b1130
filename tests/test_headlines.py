"""Seven sentences on top of a result that were wrong while the numbers below them were right: each as it is printed now.

What was said before is in the docstring of each test. All are made by hand, small enough for every run of the tests.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.analysis.test_best import HIDDEN, SIZES, SWEPT
from tests.cli.test_commands import one_line, run
from tests.imports.darshan_logs import Did, needs_library, reading
from tests.imports.put_logs import LUSTRE, SHARED, horovod, logged, small_and_large, writing
from tests.predict.clocked import clocked
from tests.small_study import NEEDS_LIBRARY
from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.cli.main import _run
from tierscope.report.tables import BreakdownView

__all__ = ["logged"]  # a fixture


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def said(times: ClassTimes) -> list[str]:
    """The lines below the table."""
    console = Console(width=200, stderr=True)
    with console.capture() as caught:
        console.print(BreakdownView.of(Analysis("test", times, break_down(times), [], Conditions(), None)))
    return [line.strip() for line in caught.get().splitlines()]


# 1. Processes that wrote


@needs_library
def test_processes_that_wrote_one_shared_file_for_464_s(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: I/O: 0.000 µs."""
    log = logged(writing("/scratch/out.h5", -1, 256 * 450.0, **SHARED), processes=256, mounts=LUSTRE)
    assert run("analyze", log) == 0
    text = capsys.readouterr().out
    assert (
        "I/O of the slowest process: 464.000 s in the whole run in busy seconds (n=1), 100 % of it LUSTRE-WRITE; 256 ranks"
        in text
    )
    assert "shared, split over 256 ranks" in text
    assert "1 file, 115,200 s" in text
    found = shown(capsys, "analyze", log)
    assert found["best"]["bottleneck"] == "LUSTRE-WRITE"
    assert found["points"][0]["slowest_rank"] == 3
    assert found["totals"]["largest_class"] == "WRITE"
    assert not {"shared_files", "shared_split"} & {each["kind"] for each in found["findings"]}
    assert run("analyze", log, "--out", "kept") == 0
    assert run("report", "kept") == 0
    capsys.readouterr()
    page = Path("kept/report.html").read_text()
    assert "shared, split over 256 ranks" in page
    assert "1 file, 115,200 s" in page
    assert shown(capsys, "analyze", log, "--no-shared")["totals"]["apart"]["shared"]["write_seconds"] == 256 * 450.0


# 2. Data on no tier, and standard output


@needs_library
def test_data_on_no_known_tier_is_asked_for(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: 21 ms, metadata is 97 %."""
    log = logged(*horovod(), processes=4, mounts=[("/home", "nfs")])
    assert run("analyze", log) == 2
    line = one_line(capsys)
    assert "100 % of the bytes and 100 % of the time match no tier (/gpfs/alpine/imagenet 2 TiB in 1,184 s)" in line
    command = line.partition("add the tiers: tierscope ")[2]
    assert command == f"analyze {log} --tier gfs=/gpfs/alpine/imagenet"
    found = shown(capsys, *command.split())
    assert found["best"]["bottleneck"] == "GFS-READ"
    assert found["best"]["io_seconds"] == pytest.approx(296.0, rel=1e-3)
    for other in ("characterise", "compare"):
        assert run(other, *([log] if other == "characterise" else [log, log])) == 2
        assert f"tierscope {other} {log}" in one_line(capsys)


@needs_library
def test_standard_output_that_takes_its_time_is_a_finding(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """39.5 million writes were filed under the program itself: nothing to do."""
    printed = Did(
        "<STDOUT>", 0, {"OPENS": 1, "WRITES": 39_500_000, "BYTES_WRITTEN": 1 << 32, "F_WRITE_TIME": 64.0}, "STDIO"
    )
    log = logged(reading("/scratch/a", seconds=296.0), printed, mounts=LUSTRE)
    found = shown(capsys, "analyze", log)
    (said,) = [each for each in found["findings"] if each["kind"] == "standard_streams"]
    assert "<STDOUT>" in said["text"]
    assert said["evidence"]["ops"] == 39_500_001
    assert said["evidence"]["seconds"] == 64.0
    assert "program_files" not in {each["kind"] for each in found["findings"]}
    totals = found["totals"]
    assert totals["apart"]["standard_streams"]["write_seconds"] == totals["write_seconds"] == 64.0
    assert "LUSTRE-WRITE" not in totals["classes"] or not totals["classes"]["LUSTRE-WRITE"]["seconds"]


# 3. Several threads


THREADS = """
study: threads
workload:
  dataset: {format: raw, num_files_train: 400, record_length_bytes: 128 KiB}
  reader: {batch_size: 4, read_threads: 4, prefetch_size: 4}
  train: {epochs: 2}
system:
  tiers:
    lfs: {path: /lfs, visible_to: node, read_ops: 100000/s, bandwidth: 10 GB/s, latency: 1 us}
    gfs: {path: /gfs, metadata_ops: 100000/s, latency: 40 ms, bandwidth: 10 GB/s}
placement: {cache_rate: 0%}
sweep:
  placement.cache_rate: [0%, 50%, 100%]
"""


def test_four_threads_take_no_more_than_has_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: 13,333 s of I/O in an epoch of 3,333 s, and a goal that wall seconds meet was missed."""
    study, out = tmp_path / "threads.yaml", tmp_path / "out"
    study.write_text(THREADS)
    assert run("simulate", study, "--out", out, "--method", "bound") == 0
    capsys.readouterr()
    wall, busy = (shown(capsys, "analyze", out, *more) for more in ((), ("--basis", "busy")))
    assert wall["basis"] == "wall"
    for point, sums in zip(wall["summary"], busy["summary"], strict=True):
        assert point["io_seconds"] <= point["epoch_seconds"] * (1 + 1e-9)
        assert sums["io_seconds"] == pytest.approx(4 * point["io_seconds"], rel=0.1) or point["io_seconds"] < 0.1
    first = wall["summary"][0]["io_seconds"]
    assert busy["summary"][0]["io_seconds"] > 2 * first
    goal = ("--goal", f"io={1.01 * first}s", "--vary", "GFS-READ=0:50:50")
    assert shown(capsys, "explore", out, *goal)["met_without"] == {"cache_rate": 0.0}
    assert run("explore", out, *goal) == 0
    assert "is already met without any improvement, at cache_rate 0%." in capsys.readouterr().out


# 4. I/O that compute hides


def test_caching_that_changes_next_to_nothing_says_so_first() -> None:
    """Said before: recommended 100 %, because there is least I/O."""
    first, best, *_ = [line for line in said(HIDDEN) if "aching" in line or "Best" in line]
    assert first == "Caching shortens the epoch by 9 % (5–11 %, n = 3); at the best point compute hides the I/O."
    assert best.startswith("Best: cache_rate 50% with an epoch of 0.343 s")


# 5. Points that read different amounts of data


def test_four_small_files_are_not_the_best_of_all() -> None:
    """Said before: Best: 4 files of 128 KiB, because they read the least data."""
    lines = said(clocked(SIZES, SWEPT))
    assert "Each of these points reads a different amount of data, so they are not ranked." in lines
    assert not [line for line in lines if "best" in line.lower()]


# 6. The mean of what a histogram shows


@needs_library
@pytest.mark.parametrize("options", [[], ["--no-shared"]])
def test_the_mean_read_is_of_the_reads_in_the_histogram(
    options: list[str], logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said before: a mean of 3.2 MiB above a histogram with 97 % at 1 to 10 KiB."""
    streamed = reading("/scratch/c", 0, READS=5, BYTES_READ=5 << 30)._replace(module="STDIO")  # of no known size
    log = logged(*small_and_large(), streamed, processes=4, mounts=LUSTRE)
    found = shown(capsys, "characterise", log, *options)
    metrics, bins = found["metrics"], found["transfer_sizes"]["value"]
    mean, reads = metrics["transfer_mean"]["value"], sum(one["reads"] for one in bins)
    low = sum(one["reads"] * one["low"] for one in bins) / reads
    high = sum(one["reads"] * one["high"] for one in bins) / reads
    assert low <= mean <= high
    assert reads == (30 if options else 1000)
    if not options:
        assert metrics["sequential_percent"]["value"] == pytest.approx(90.0)
        assert metrics["consecutive_percent"]["value"] == pytest.approx(10.0)


@needs_library
def test_syncs_do_not_make_writes_smaller(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: 2,048 writes of 512 B on average, above a log of 1,024 writes and as many syncs."""
    log = logged(writing("/scratch/out", 0, 4.0, FSYNCS=1024), mounts=LUSTRE)
    writes = shown(capsys, "characterise", log)["writes"]
    assert (writes["writes"], writes["transfer_mean"]["value"]) == (1024, 1024.0)
    assert run("analyze", log, "--out", "kept") == 0
    capsys.readouterr()
    kept = shown(capsys, "characterise", "kept")["writes"]["transfer_mean"]
    assert kept["value"] is None
    assert "syncs" in kept["reason"]


# 7. Epochs of a stranger's program


UNEVEN = """
import os, random
dice = random.Random(3)
fd = os.open("gfs/data", os.O_RDONLY)
for epoch in range(2):
    for _ in range(400):
        os.pread(fd, 64, 64 * dice.randrange(128))
"""


@NEEDS_LIBRARY
def test_epochs_that_cannot_be_told_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Said before: six epochs, in a program with two that draws its samples with replacement, without any doubt."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "gfs").mkdir()
    (tmp_path / "gfs" / "data").write_bytes(bytes(64 * 128))
    program = [sys.executable, "-S", "-c", UNEVEN]
    assert _run(["trace", "--tier", "gfs=gfs", "--out", "out", "--epochs", "rereads", "--", *program]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert " in the whole run (n=1), " in text
    assert "epochs could not be detected from re-reads: " in text
    assert "→ call tierscope.mark_epoch(n) at the start of epoch n" in text
    (point,) = shown_points(tmp_path / "out", capfd)
    assert point["epoch"] == 1


def shown_points(out: Path, capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert _run(["analyze", str(out), "--json"]) == 0
    return list(json.loads(capfd.readouterr().out)["points"])
