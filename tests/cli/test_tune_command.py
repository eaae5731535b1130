"""`tierscope tune` as a user types it."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.tuning.test_tune import PLANTED, quick  # noqa: F401  (a fixture)
from tierscope.analysis.statistics import interval
from tierscope.report.tuning import verdict
from tierscope.tuning.tuning import Tried, TriedRound, Tuning

pytestmark = pytest.mark.whole


@pytest.fixture
def planted_file(tmp_path: Path) -> Path:
    path = tmp_path / "planted.yaml"
    path.write_text(PLANTED)
    return path


@pytest.mark.usefixtures("quick")
def test_a_winner_is_printed_and_again_as_json(
    planted_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--vary", "transfer_size=64KiB", "--goal", "io", "--budget", "3s", "--quiet")
    arguments = ("tune", planted_file, *options, "--set", "num_files_train=16", "--out", tmp_path / "out")
    assert run(*arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "emulated tiers: gfs" in said
    assert "Winner: transfer_size 64 KiB: " in said
    assert "as fast as the default (" in said
    assert "Why: GFS-READ of the slowest process shrank most: from " in said
    assert "--set workload.reader.transfer_size='64 KiB'" in said
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["minimised"], found["better"]) == ("tuning", "io_seconds", True)
    assert found["speedup_low"] > 1.5
    assert found["budget_seconds"] == 3


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--vary", "read_thread=1,2"), "did you mean"),
        (("--vary", "read_threads=1,2", "--budget", "soon"), "--budget soon: is not a number; write it like"),
        (("--vary", "read_threads=1,2", "--budget", "0"), "--budget 0: must be above 0"),
        (("--vary", "read_threads=1,2", "--goal", "fast"), "--goal"),
        (("--vary", "read_threads=1,2", "--set", "batch=3"), "unknown key"),
        ((), "nothing varies"),
    ],
)
def test_mistakes_are_one_line(
    planted_file: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    assert run("tune", planted_file, "--out", planted_file.parent / "out", *arguments) == 2
    assert line in one_line(capsys)


def test_a_sweep_of_the_study_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tune", "demo", "--vary", "read_threads=1,2", "--out", tmp_path / "out") == 2
    assert "the study sweeps placement.cache_rate" in one_line(capsys)


def test_what_is_no_better_is_not_called_a_winner() -> None:
    tried = Tried({"read_threads": 2}, (TriedRound(None, 3, 1.0),))
    found = Tuning(
        "x", "epoch_seconds", tried, tried, interval([1.0] * 3), interval([0.9, 1.0, 1.1]), "", (tried,), (), 60.0, 1.0
    )
    assert verdict(found).startswith("Best: read_threads 2, not measurably better than the default (1.00×;")


def test_cases_of_the_study_are_refused_with_the_one_to_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tune", "mini-hierarchy", "--vary", "read_threads=1,2", "--out", tmp_path / "out") == 2
    assert one_line(capsys).endswith("but tune works on one case; add --set case=small-many-osts")
