"""--goal of every kind, as a user types it: estimate, explore, explore --simulate and report."""

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.cli.test_epoch_option import MEASURED
from tests.cli.test_whatif_commands import write_times
from tests.imports.darshan_logs import REAL

pytestmark = pytest.mark.whole

VARY = ("--vary", "GFS-META=0:100:50")


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("goal", "kind", "value", "seconds"),
    [
        ("io=30ms", "io", 0.03, 0.03),
        ("30ms", "io", 0.03, 0.03),
        ("epoch=1min", "epoch", 60.0, 60.0),
        ("au=1%", "au", 0.01, None),
    ],
)
def test_an_exploration_says_which_goal_it_is_about(
    goal: str, kind: str, value: float, seconds: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "explore", MEASURED, "--goal", goal, *VARY)
    assert (found["goal"], found["goal_seconds"]) == ({"kind": kind, "value": value}, seconds)
    assert all(option["epoch_seconds"] > 0 and 0 < option["au"] < 1 for option in found["pareto"])
    assert run("explore", MEASURED, "--goal", goal, *VARY) == 0


def test_an_estimate_is_judged_by_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    for goal, expected in (
        ("epoch=1min", "epoch_goal_met"),
        ("epoch=1us", "epoch_goal_missed"),
        ("au=99.9%", "au_goal_missed"),
    ):
        found = printed(capsys, "estimate", MEASURED, "--improve", "GFS-META=50", "--goal", goal)
        assert expected in [finding["kind"] for finding in found["findings"]]
    missed = next(finding for finding in found["findings"] if finding["kind"] == "au_goal_missed")
    assert missed["evidence"]["under_percent"] == pytest.approx(99.9 - missed["evidence"]["percent"])


@pytest.mark.parametrize("command", [("explore", *VARY), ("estimate",), ("report",)])
@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("epoch=4s", "an epoch goal needs the epoch and stall seconds of every rank"),
        ("au=90%", "an AU goal needs the epoch and stall seconds"),
        ("speed=3", "speed is not a kind of goal"),
        ("au=90", "must be within 0% – 100%"),
    ],
)
def test_a_goal_that_cannot_be_judged_is_one_line(
    command: tuple[str, ...], goal: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = write_times(tmp_path / "times.csv")
    name, *options = command
    assert run(name, times, *options, "--goal", goal) == 2
    assert words in one_line(capsys)


def test_a_page_takes_a_goal_of_an_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    shutil.copytree(MEASURED, out)
    assert run("report", out, "--goal", "epoch=1min") == 0
    assert "What meets a goal of 60 s per epoch" in (out / "report.html").read_text()
    assert run("report", out, "--goal", "au=50%") == 0
    assert '"kind":"au","value":0.5' in (out / "report.html").read_text()


def simulated(capsys: pytest.CaptureFixture[str], goal: str, *more: object) -> dict[str, Any]:
    pytest.importorskip("numba")
    small = ("--set", "num_files_train=64", "--set", "sweep={}", "--set", "computation_time=1ms")
    return printed(capsys, "explore", "--simulate", "demo", *small, "--goal", goal, *more)


@pytest.mark.parametrize("goal", ["io=1us", "epoch=1us", "au=100%"])
def test_another_thread_never_makes_a_goal_harder(goal: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, goal, "--vary", "read_threads=1,2,4")
    grid = sorted(found["grid"], key=lambda each: each["settings"]["read_threads"])
    for name, better in (("io_seconds", 1), ("epoch_seconds", 1), ("au", -1)):
        values = [better * each[name] for each in grid]
        assert all(
            later <= earlier * (1 + 1e-9) if earlier > 0 else later <= earlier * (1 - 1e-9)
            for earlier, later in itertools.pairwise(values)
        ), name
    assert all(each["io_seconds"] <= each["epoch_seconds"] * (1 + 1e-9) for each in grid)


def test_a_simulated_goal_is_judged_on_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    vary = ("--vary", "read_threads=1,4")
    least = simulated(capsys, "epoch=1us", *vary)["grid"]
    goal = max(each["epoch_seconds"] for each in least)
    found = simulated(capsys, f"epoch={goal + 1e-6}s", *vary)
    assert all(each["met"] for each in found["grid"])
    assert not any(each["met"] for each in least)
    assert simulated(capsys, "au=1%", *vary)["goal"] == {"kind": "au", "value": 0.01}


def test_a_simulated_au_goal_needs_compute(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--set", "num_files_train=64", "--set", "sweep={}", "--set", "computation_time=0")
    assert run("explore", "--simulate", "demo", *small, "--goal", "au=90%", "--vary", "read_threads=1,2") == 2
    assert "an AU goal needs compute" in one_line(capsys)


@pytest.mark.parametrize("goal", ["au=90%", "{au: 90%}"])
def test_a_study_with_an_au_goal_needs_compute(goal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before it is simulated or run; and of a result that exists, before it is judged."""
    small = ("--set", "num_files_train=64", "--set", "sweep={}", "--set", "computation_time=0")
    for command in ("simulate", "run"):
        assert run(command, "demo", *small, "--set", f"goal={goal}", "--out", tmp_path / command) == 2
        assert "an AU goal needs compute" in one_line(capsys)
        assert not (tmp_path / command).exists()
    out = tmp_path / "out"
    assert run("simulate", "demo", *small, "--out", out) == 0
    study = out / "study.yaml"
    capsys.readouterr()
    study.write_text(re.sub("(?m)^goal: .*$", f"goal: {goal}", study.read_text()))
    for command in ("analyze", "estimate", "report"):
        assert run(command, out) == 2
        assert "an AU goal needs compute" in one_line(capsys)
    assert run("analyze", out, "--goal", "io=1s") == 0


@pytest.mark.parametrize("option", ["--minimize", "--goal"])
def test_tune_has_an_objective_under_both_names(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tune", "demo", option, "speed", "--out", tmp_path / "out") == 2
    assert "'speed' is not one of 'epoch', 'io'" in capsys.readouterr().err


def test_a_goal_of_tune_leads_to_its_objective(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tune", "demo", "--goal", "au=90%", "--out", tmp_path / "out") == 2
    assert one_line(capsys).endswith("tune has no goal, use --minimize")


LOGGED = REAL.parent / "dftracer" / "v1_dlio_unet3d"


@pytest.mark.skipif(not LOGGED.is_dir(), reason="shared data is not here")
class TestLogs:
    def test_what_logs_do_not_tell_is_said_before_tiers_are_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", LOGGED, "--goal", "au=90%") == 2
        assert "an AU goal needs the stall seconds of every rank" in one_line(capsys)
        assert run("analyze", LOGGED, "--metrics", "--tier", "gfs=/p") == 2
        assert "--metrics and --au need the --out of 'tierscope run'" in one_line(capsys)
        assert run("analyze", LOGGED, "--metrics") == 2
        assert "--metrics and --au need the --out of 'tierscope run'" in one_line(capsys)

    @pytest.mark.parametrize(("goal", "code"), [("epoch=1min", 0), ("epoch=1s", 1)])
    def test_an_epoch_is_judged_by_its_seconds(self, goal: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", LOGGED, "--tier", "gfs=/p/lustre3", "--goal", goal, "--json") == code
        kinds = {finding["kind"] for finding in json.loads(capsys.readouterr().out)["findings"]}
        assert kinds & {"epoch_goal_met", "epoch_goal_missed"} == {f"epoch_goal_{'missed' if code else 'met'}"}


def test_a_bare_share_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", write_times(tmp_path / "times.csv"), "--goal", "90%") == 2
    assert "did you mean au=90%?" in one_line(capsys)


def test_a_directory_without_a_result_says_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", tmp_path) == 2
    assert "is empty" in one_line(capsys)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.darshan").touch()
    assert run("analyze", tmp_path) == 2
    assert "no logs here; in subdirectories: run; name one of them" in one_line(capsys)
