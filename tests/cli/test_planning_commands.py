"""Plans as a user asks for them: what does not fit is said on top, prices have units, searches end, goals decide the exit code."""

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.predict.planning import TEXT
from tierscope.commands.calibrate import write_known
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import KnownFigure, numbers
from tierscope.spec.known import KnownSystem
from tierscope.spec.load import load

pytestmark = pytest.mark.whole

STUDY = {
    "seed": 3, "files": 64, "record": "100 kB", "shuffle": "global", "chunk": 1, "compute": "0 s", "nodes": 4, "ranks": 2,
    "visible": "node", "capacity": "2 MB", "policy": "pinned", "rates": "0%, 25%, 50%, 100%",
}  # fmt: skip


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # no sentence is broken
    return write(tmp_path)


def write(folder: Path, **changes: Any) -> str:
    Path(folder, "study.yaml").write_text(TEXT.format(**{**STUDY, **changes}))
    return "study.yaml"


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_simulate_says_on_top_what_does_not_fit_and_goes_on(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", study, "--out", "made", "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(
        "2 points of 4 do not fit and are not recommended: at cache_rate 100%, 6.1 MiB per node do not fit on lfs"
    )
    shown = "\n".join(lines)
    assert "Best: cache_rate 25%" in shown
    assert "does not fit" in shown
    assert "What would fit instead (simulated):" in shown
    assert "a rank sees only 12.5 % of the samples" in shown
    found = printed(capsys, "simulate", study, "--out", "made", "--quiet")
    assert found["best"]["sweep"] == {"cache_rate": 0.25}
    assert [point["feasibility"]["fits"] for point in found["summary"]] == ["yes", "yes", "no", "no"]
    assert {room["tier"] for room in found["summary"][0]["feasibility"]["tiers"]} == {"lfs"}
    assert found["remedies"][0]["option"]["feasibility"]["fits"] == "yes"
    page = Path("made/report.html").read_text()
    assert "does not fit" in page
    assert "What would fit instead" in page


def test_the_same_study_is_refused_by_run(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", study, "--out", "ran", "--quiet") == 2
    assert "on lfs for each node, which holds" in one_line(capsys)


def test_estimate_and_explore_of_a_simulation_recommend_what_fits(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("simulate", study, "--out", "made", "--quiet", "--json")
    capsys.readouterr()
    after = printed(capsys, "estimate", "made", "--improve", "LFS-READ=900")
    assert after["best"]["feasibility"]["fits"] == "yes"
    found = printed(capsys, "explore", "made", "--goal", "1h", "--vary", "GFS-META=0,50")
    assert all(option["feasibility"]["fits"] == "yes" for option in found["pareto"])
    assert found["pareto"][0]["staging_seconds"] is not None


BARE = ["--goal", "1h", "--vary", "gfs.servers=1,4"]


def test_a_bare_price_is_refused_with_the_very_command(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["explore", "--simulate", study, *BARE, "--cost", "gfs.servers=1000", "--cost", "lfs-gib=2"]
    assert run(*given) == 2
    line = one_line(capsys)
    command = line.partition("run: ")[2]
    assert command.startswith("tierscope explore")
    assert "--cost gfs.servers=1000/server --cost lfs.capacity=2/GiB" in command
    assert run(*shlex.split(command)[1:]) == 0
    out = capsys.readouterr().out
    assert "Cost: in addition to the unchanged study (gfs.servers 1000/server, lfs.capacity 2/GiB)." in out


def test_options_are_ranked_with_what_they_leave_unsolved(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "explore", "--simulate", study, "--goal", "60ms", "--vary", "gfs.servers=1,2,4,8", "--cost", "gfs.servers=10/server")  # fmt: skip
    costs = [option["cost"] for option in found["pareto"]]
    assert costs == sorted(costs)
    assert found["prices"] == {"system.tiers.gfs.servers": "10/server"}
    for option in found["grid"]:
        assert option["unsolved"]["bottleneck"] == option["bottleneck"]
        assert (option["unsolved"]["shortfall"] == 0) == option["met"]
        assert option["unsolved"]["worst_shortfall"] >= option["unsolved"]["shortfall"]
    assert run("explore", "--simulate", study, "--goal", "1us", "--vary", "gfs.servers=1,2") == 0
    shown = capsys.readouterr().out
    assert "cannot be met by these combinations: the shortest is" in shown
    assert "misses by" in shown
    assert "What would fit instead" in shown


def test_nothing_beyond_the_price_is_named_where_nothing_meets_the_goal(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ["--cost", "gfs.servers=10/server", "--max-price", "25"]
    assert run("explore", "--simulate", study, "--goal", "1us", "--vary", "gfs.servers=2,4,8", *prices) == 0
    lines = capsys.readouterr().out.split("What ")[0].splitlines()
    (sentence,) = [line for line in lines if "cannot be met" in line]
    assert "(misses by " in sentence
    assert "servers 4" in sentence
    assert not any(line.split()[:1] == ["8"] for line in lines)


def test_units_keep_their_letters_on_top(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, capacity="null", rates="100%")
    assert run("explore", "--simulate", study, "--goal", "1h", "--vary", "gfs.servers=2,4") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "is not set" in line]
    assert line.startswith("Capacity of lfs is not set: whether ")
    assert "MiB per node fit is unknown" in line


def test_the_most_that_storage_feeds(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, compute="20 ms", ranks=1, nodes=1)
    found = printed(capsys, "explore", "--simulate", study, "--most", "ranks_per_node", "--goal", "au=90%")
    assert (found["kind"], found["key"], found["monotonic"], found["limit_reached"]) == (
        "largest",
        "ranks_per_node",
        True,
        False,
    )
    assert found["at"]["au"] >= 0.9 > found["beyond"]["au"]
    assert run("explore", "--simulate", study, "--most", "nodes=2", "--goal", "au=90%") == 0
    shown = capsys.readouterr().out
    assert "Largest nodes: 2, with" in shown
    assert (
        "The upper limit of 2 (as requested) was reached before the goal was missed: raise it with --most nodes=N"
        in shown
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--most", "nodes", "--vary", "gfs.servers=1,2"], "--most cannot be combined with"),
        (["--vary", "gfs.servers=1,4", "--max-price", "5"], "nothing has a price"),
        (["--vary", "gfs.servers=4,8", "--cost", "gfs.servers=10/server", "--max-price", "5"], "the cheapest option that fits and meets the goal costs 20"),
        (["--vary", "gfs.servers=1,4", "--tender", ""], "--tender is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_one_line(
    study: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explore", "--simulate", study, "--goal", "1h", *options) == 2
    assert said in one_line(capsys)


def test_options_of_simulated_plans_are_refused_for_measured_ones(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explore", "made", "--goal", "4s", "--vary", "GFS-META=0,50", "--tender", "x") == 2
    assert "require --simulate" in one_line(capsys)


def test_a_tender_is_written_and_its_test_passes_or_fails(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explore", "--simulate", study, *BARE, "--tender", "tender") == 0
    assert "Written: tender" in capsys.readouterr().out
    assert run("explore", "--simulate", study, "--goal", "1us", "--vary", "gfs.servers=1,4", "--tender", "other") == 2
    assert not os.path.exists("other")


def test_the_exit_code_says_whether_a_goal_is_met(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("simulate", study, "--out", "made", "--quiet", "--json")
    assert run("analyze", "made", "--goal", "1h") == 0
    assert run("analyze", "made", "--goal", "1us") == 1
    assert "is missed by" in capsys.readouterr().out
    assert run("analyze", "made", "--goal", "au=90%") == 2  # there is no compute: it cannot be judged


def test_a_goal_that_only_an_impossible_point_meets_is_missed(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("simulate", study, "--out", "made", "--quiet", "--json")
    summary = json.loads(capsys.readouterr().out)["summary"]
    possible = min(point["io_seconds"] for point in summary if point["feasibility"]["fits"] == "yes")
    impossible = min(point["io_seconds"] for point in summary if point["feasibility"]["fits"] == "no")
    assert impossible < possible
    assert run("analyze", "made", "--goal", f"{(possible + impossible) / 2}s") == 1


def test_an_acceptance_test_can_be_run_for_real(tmp_path: Path, study: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As a vendor would: run the study, then judge it."""
    write(tmp_path, nodes=1, ranks=1, files=8, record="1 kB", rates="50%")
    assert run("explore", "--simulate", study, *BARE, "--tender", "tender") == 0
    assert run("run", "tender/study.yaml", "--out", "out", "--quiet") == 0
    assert run("analyze", "out", "--goal", "io=3600 s") == 0
    assert run("analyze", "out", "--goal", "io=1 us") == 1


@pytest.mark.parametrize(("ran", "judged", "code"), [(0, 0, 0), (0, 1, 1), (3, 0, 3), (2, 0, 2)])
def test_the_test_script_passes_exit_codes_on(ran: int, judged: int, code: int, tmp_path: Path, study: str) -> None:
    """With a stand-in for the program."""
    assert run("explore", "--simulate", study, *BARE, "--tender", "tender") == 0
    (tmp_path / "tierscope").write_text(f'#!/bin/sh\necho "$@" >> said\n[ "$1" = run ] && exit {ran}\nexit {judged}\n')
    (tmp_path / "tierscope").chmod(0o755)
    found = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert subprocess.run(["sh", "tender/accept.sh", "OUT"], check=False, env=found).returncode == code
    said = Path("tender/said").read_text().splitlines()
    assert said[0] == "run study.yaml --out OUT"
    assert said[1:] == ([] if ran else ["analyze OUT --goal io=3600 s"])


def test_a_calibrated_system_has_remedies_too(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Opens on its shared tier are in what it was fitted to; the result remembers that."""
    system = load(study).study.system
    system = replace(system, tiers=(system.tiers[0], replace(system.tiers[1], metadata_ops=None)))
    figures = {path: KnownFigure(value, "source", "x") for path, value in numbers(system).items() if value is not None}
    measured = CalibratedRange((1e5,), (8,), (0.0, 1.0))
    write_known(KnownSystem("mine", system, figures, measured=measured), "system.yaml")
    found = printed(capsys, "simulate", study, "--system", "system.yaml", "--out", "made", "--quiet")
    names = {remedy["name"] for remedy in found["remedies"]}
    assert names >= {"the largest cache rate that fits", "first touch: nodes keep what they read first"}
    assert run("report", "made", "--out", "page") == 0
    page = Path("page/report.html").read_text()
    assert all(name in page for name in names)


def test_an_option_with_something_that_has_no_price_is_neither_free_nor_within_a_limit(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["explore", "--simulate", study, "--goal", "30ms", "--vary", "gfs.servers=2,4", "--vary", "gfs.metadata_servers=2,4"]  # fmt: skip
    prices = ["--cost", "gfs.servers=10/server"]
    assert run(*asked, *prices) == 0
    shown = capsys.readouterr().out
    assert "without buying anything" not in shown
    assert " 20 + unpriced" in shown
    assert "unpriced: gfs.metadata_servers; add --cost gfs.metadata_servers=PRICE/server." in shown
    assert run(*asked, *prices, "--max-price", "1000") == 2
    assert "there is no price for gfs.metadata_servers" in one_line(capsys)
    both = [*prices, "--cost", "gfs.metadata_servers=5/server"]
    assert {option["cost"] for option in printed(capsys, *asked, *both)["pareto"]} == {25.0}


def test_what_costs_nothing_but_changes_the_study_is_not_called_met_already(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["explore", "--simulate", study, "--goal", "1h", "--vary", "gfs.servers=2,4", "--cost", "gfs.servers=10/server"]  # fmt: skip
    assert run(*asked) == 0
    shown = capsys.readouterr().out
    assert "The goal is already met without buying anything; 2 of 2 combinations meet it (1 not listed: needs" in shown
    assert run(*asked[:-4], "--vary", "gfs.servers=2", "--vary", "read_threads=2", *asked[-2:]) == 0
    assert "The goal can be met without buying anything" in capsys.readouterr().out


def test_options_without_prices_have_the_smallest_increase_first(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where the larger one needs fewer files cached; and the tender asks for the first."""
    write(tmp_path, rates="0%, 50%, 100%", capacity="8 MB")
    asked = ["explore", "--simulate", study, "--vary", "gfs.bandwidth=200MB/s,400MB/s"]
    slow, fast = (
        option["io_seconds"] for option in printed(capsys, *asked, "--set", "cache_rate=0%", "--goal", "1us")["grid"]
    )
    assert fast < slow
    goal = f"{(slow + fast) / 2}s"
    found = printed(capsys, *asked, "--goal", goal)
    assert [option["settings"]["bandwidth"] for option in found["pareto"]] == [200e6, 400e6]
    assert found["pareto"][0]["best_cache_rate"] > found["pareto"][1]["best_cache_rate"]
    assert run(*asked, "--goal", goal, "--tender", str(tmp_path / "tender")) == 0
    assert "smallest increase over the study first, then the smallest cache rate:" in capsys.readouterr().out
    assert json.loads((tmp_path / "tender" / "required.json").read_text())["tiers"]["gfs"]["bandwidth"] == 200e6


def test_every_option_that_is_not_listed_is_accounted_for(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explore", "--simulate", study, "--goal", "1h", "--vary", "gfs.bandwidth=50MB/s,1GB/s"]
    prices = ["--vary", "gfs.servers=2,3,4", "--cost", "gfs.servers=10/server", "--max-price", "10"]
    assert run(*asked, *prices) == 0
    shown = capsys.readouterr().out
    assert (
        "6 of 6 combinations meet it (1 not listed: needs at least as much of every key as a listed one; "
        "3 not listed: no price for gfs.bandwidth; 1 not listed: costs over 10)"
    ) in shown
    assert "Less than the unchanged study has, 1 of 1 listed option: gfs.bandwidth." in shown
    assert printed(capsys, *asked, *prices)["pareto"][0]["less_than_study"] == ["system.tiers.gfs.bandwidth"]


@pytest.mark.parametrize("asked", [("--vary", "gfs.servers=2,4"), ("--most", "nodes=2")])
def test_why_simulate_has_other_times_is_said(
    asked: tuple[str, str], study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "Times are of the second epoch alone."
    for epochs, is_said in ((2, True), (1, False)):
        assert run("explore", "--simulate", study, "--goal", "1h", "--set", f"epochs={epochs}", *asked) == 0
        assert (said in capsys.readouterr().out) is is_said
