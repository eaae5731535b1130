"""`--epoch`: any epoch of every run, or the median of those after the first."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.in_memory import tmp_path_factory
from tierscope.cli.main import main
from tierscope.output.store import RunStore

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

RESULTS = Path(__file__).parent.parent / "golden" / "results"
LOGS = RESULTS.parent / "logs"
MEASURED = str(RESULTS / "measured")
CSV = """rank,epoch,repetition,class,seconds
0,1,1,GFS-READ,9
0,2,1,GFS-READ,2
0,3,1,GFS-READ,4
0,1,2,GFS-READ,8
0,2,2,GFS-READ,3
0,3,2,GFS-READ,6
"""


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def times(tmp_path: Path) -> str:
    path = tmp_path / "times.csv"
    path.write_text(CSV)
    return str(path)


@pytest.mark.parametrize(("epoch", "seconds"), [("1", 8.5), ("2", 2.5), ("3", 5.0)])
def test_one_epoch_of_every_repetition(
    times: str, epoch: str, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, "analyze", times, "--epoch", epoch)
    assert found["epoch"] == int(epoch)
    assert (found["best"]["io_seconds"], found["best"]["n"]) == (seconds, 2)
    assert {point["epoch"] for point in found["points"]} == {int(epoch)}


def test_the_median_of_later_epochs_is_what_it_was(times: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain, median = shown(capsys, "analyze", times), shown(capsys, "analyze", times, "--epoch", "median")
    assert plain == median
    assert "epoch" not in plain
    assert (plain["best"]["io_seconds"], plain["best"]["n"]) == (3.5, 4)


def test_a_result_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "analyze", MEASURED, "--epoch", "2")
    ranks = [trace.table for trace in RunStore(MEASURED).load_all() if trace.about.sweep == found["best"]["sweep"]]
    assert found["best"]["n"] == len(ranks) == 2
    assert found["best"]["first_epoch_io_seconds"] is None
    every = shown(capsys, "analyze", MEASURED)
    second = [point for point in every["points"] if point["epoch"] == 2]
    assert [point["io_seconds"] for point in second] == [point["io_seconds"] for point in found["summary"]]


@pytest.mark.parametrize(
    ("result", "epochs"), [("traced", "1"), ("imported_dftracer", "1"), ("simulated", "2"), ("trained", "2")]
)
def test_every_kind_of_result(result: str, epochs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "analyze", str(RESULTS / result), "--epoch", epochs)["epoch"] == int(epochs)


def test_logs(capsys: pytest.CaptureFixture[str]) -> None:
    logs = [str(path) for path in sorted(LOGS.iterdir())]
    found = shown(capsys, "analyze", *logs, "--tier", "lfs=/lfs", "--tier", "gfs=/gfs", "--epoch", "1")
    assert found["epoch"] == 1


def test_a_chosen_epoch_is_not_taken_for_missing_marks(capsys: pytest.CaptureFixture[str]) -> None:
    every, one = (shown(capsys, "analyze", str(RESULTS / "traced"), *more) for more in ((), ("--epoch", "1")))
    kinds = [{finding["kind"] for finding in found["findings"]} for found in (every, one)]
    assert "no_marks" not in kinds[1] - kinds[0]


def test_the_headline_says_which_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", MEASURED, "--epoch", "2") == 0
    text = capsys.readouterr().out
    assert "(wall seconds of epoch 2)" in text
    assert "of I/O in epoch 2 (" in text
    assert "epoch 1 I/O" not in text


def test_estimate_and_explore_take_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    estimated = shown(capsys, "estimate", MEASURED, "--epoch", "3", "--improve", "GFS-META=50")
    assert estimated["epoch"] == 3
    explored = shown(capsys, "explore", MEASURED, "--epoch", "3", "--goal", "30ms", "--vary", "GFS-META=0:100:50")
    assert explored["epoch"] == 3
    assert run("explore", MEASURED, "--epoch", "3", "--goal", "30ms", "--vary", "GFS-META=0:100:50") == 0
    assert "30 ms of I/O in epoch 3, estimated by scaling" in capsys.readouterr().out


def test_a_report_says_it(tmp_path: Path) -> None:
    assert run("report", MEASURED, "--epoch", "2", "--out", str(tmp_path / "report")) == 0
    assert "wall seconds of epoch 2" in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["analyze", MEASURED, "--epoch", "4"], "--epoch 4: no such epoch; choose from 1, 2, 3, or median"),
        (["analyze", MEASURED, "--epoch", "0"], "--epoch 0: must be an epoch number, 1 or more, or median"),
        (["report", MEASURED, "--epoch", "last"], "--epoch last: must be an epoch number, 1 or more, or median"),
        (
            ["estimate", MEASURED, "--epoch", "2", "--with-model"],
            "--epoch and --with-model exclude each other: the model uses all epochs after the first; remove one",
        ),
        (
            ["explore", "--simulate", "demo", "--epoch", "2"],
            "--improve, --basis and --epoch cannot be combined with --simulate; use --vary and --set",
        ),
        (
            ["analyze", MEASURED, "--metrics", "--epoch", "2"],
            "--metrics and --au can only be combined with --json; remove the other options",
        ),
    ],
)
def test_what_cannot_be_taken_gets_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err == f"tierscope: {line}\n"


def test_an_epoch_that_some_runs_lack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "times.csv"
    path.write_text(CSV + "0,4,2,GFS-READ,1\n")
    assert run("analyze", str(path), "--epoch", "4") == 2
    assert capsys.readouterr().err == (
        "tierscope: --epoch 4: not every run has that epoch; choose from 1, 2, 3, or median\n"
    )
