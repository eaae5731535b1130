"""--case: every command that looks at a result takes one case, and without it says something about each."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cased import write_cases
from tests.cli.test_commands import one_line, run

pytestmark = pytest.mark.whole

VARY = ("--vary", "GFS-META=0:100:50", "--vary", "LFS-READ=0:100:50")


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    return write_cases(tmp_path / "times.csv")


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def alone(tmp_path: Path, name: str) -> Path:
    return write_cases(tmp_path / f"{name}.csv", name)


@pytest.mark.parametrize("command", [("analyze",), ("estimate",), ("explore", "--goal", "2s", *VARY), ("report",)])
def test_an_unknown_case_is_one_line(command: tuple[str, ...], times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, *options = command
    assert run(name, times, *options, "--case", "zoom") == 2
    assert "--case zoom: no such case; did you mean zoo?" in one_line(capsys)
    assert run(name, times, *options, "--case", "elephant") == 2
    assert "choose from zoo, bee, cat" in one_line(capsys)


def test_a_result_without_cases_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("rank,epoch,class,seconds,cache_rate\n0,1,GFS-READ,1,0\n0,1,GFS-READ,2,1\n")
    assert run("estimate", path, "--case", "zoo") == 2
    assert "--case zoo: this result has no cases; remove --case" in one_line(capsys)


def test_simulate_takes_a_case_by_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explore", "--simulate", "demo", "--case", "zoo", "--goal", "4s", "--vary", "read_threads=1,2") == 2
    assert "--set case=NAME" in one_line(capsys)


@pytest.mark.parametrize("case", ["zoo", "bee", "cat"])
def test_one_case_of_several_is_as_if_it_had_been_run_alone(
    case: str, times: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        ("analyze",),
        ("estimate", "--improve", "GFS-META=50"),
        ("explore", "--goal", "1.5s", *VARY),
    ):
        name, *options = command
        by_option = printed(capsys, name, times, "--case", case, *options)
        assert by_option == printed(capsys, name, alone_in_order(tmp_path, case), "--case", case, *options)


def alone_in_order(tmp_path: Path, case: str) -> Path:
    """The very rows of the case: noise is drawn over all of them."""
    lines = (tmp_path / "times.csv").read_text().splitlines()
    path = tmp_path / f"only-{case}.csv"
    path.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.startswith(f"{case},"))]) + "\n")
    return path


def test_an_estimate_without_a_case_has_each_of_them(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--improve", "GFS-META=50")
    whole = printed(capsys, "estimate", times, *options)
    assert whole["best"] is whole["baseline_best"] is whole["change_percent"] is whole["sensitivity"] is None
    assert [one["case"] for one in whole["cases"]] == ["zoo", "bee", "cat"]
    for one in whole["cases"]:
        by_option = printed(capsys, "estimate", times, "--case", one["case"], *options)
        for key in ("best", "baseline_best", "change_percent", "bottleneck_moved", "warnings", "sensitivity"):
            assert one[key] == by_option[key], key
    assert run("estimate", times, *options) == 0
    text = capsys.readouterr().out
    assert "\nzoo: GFS-META +50 % changes nothing" in text
    assert "\nbee: With GFS-META +50 %: 1.02 s of I/O per epoch instead of 1.39 s (-26.2 %), at cache_rate 0%;" in text
    assert "\ncat: With GFS-META +50 %" in text
    assert "the best measured I/O time of each if only one class had more throughput:" in text


def test_an_exploration_without_a_case_has_each_of_them(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--goal", "1.5s", *VARY)
    whole = printed(capsys, "explore", times, *options)
    assert whole["grid"] is whole["pareto"] is whole["met_without"] is None
    assert [one["case"] for one in whole["cases"]] == ["zoo", "bee", "cat"]
    for one in whole["cases"]:
        by_option = printed(capsys, "explore", times, "--case", one["case"], *options)
        for key in ("grid", "pareto", "met_without", "warnings"):
            assert one[key] == by_option[key], key
    assert run("explore", times, *options) == 0
    text = capsys.readouterr().out
    assert ", at case " not in text  # each sentence begins with it
    assert "\nbee: " in text
    assert "\nzoo: " in text


def test_no_warning_of_one_case_comes_from_another(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a class was seen to serve on another system tells nothing about this one."""
    whole = printed(capsys, "estimate", times, "--improve", "GFS-META=900")
    for one in whole["cases"]:
        wheres = [warning["evidence"].get("where", "") for warning in one["warnings"]]
        assert all(f"case {one['case']}" in where for where in wheres if where)


def test_the_report_of_one_case_is_of_one(times: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", times, "--case", "bee", "--out", tmp_path / "bee") == 0
    page = (tmp_path / "bee" / "report.html").read_text()
    assert '<select id="case">' not in page
    assert run("report", times, "--out", tmp_path / "all") == 0
    page = (tmp_path / "all" / "report.html").read_text()
    assert '<select id="case">' in page
    assert (tmp_path / "all" / "figures" / "breakdown.svg").read_text().count('class="inset"') == 3
    capsys.readouterr()
