"""A tender is a study, the figures that it needs and a test: new or ours, and true."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.predict.planning import loaded
from tierscope.commands.explore import check_tender, write_tender
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.predict.combining import simulate_combination
from tierscope.predict.exploration import Combination
from tierscope.report.tender import goal_argument
from tierscope.spec import dump
from tierscope.spec.goal import Goal, GoalKind
from tierscope.spec.load import load_study

GOAL = Goal("io", 600.0)


def option(**changes: Any) -> Combination:
    study = loaded(**changes).study
    return simulate_combination({}, replace(study, sweep=()), "bound", None)


def test_a_tender_holds_the_study_the_figures_and_the_test(tmp_path: Path) -> None:
    target = write_tender(str(tmp_path / "tender"), option(capacity="3.2 TB"), GOAL)
    assert sorted(os.listdir(target)) == [
        "README.md",
        "accept.sh",
        "lock",
        "required.json",
        "study.yaml",
        "tierscope.json",
    ]
    study = load_study(os.path.join(target, "study.yaml"))
    assert study.goal == GOAL
    assert (study.sweep, any(tier.emulate for tier in study.system.tiers)) == ((), False)
    required = json.loads(Path(target, "required.json").read_text())
    assert required["tiers"]["gfs"]["bandwidth_in_all"] == 200e6
    assert required["tiers"]["lfs"] == {
        "devices": 4,
        "servers": 1,
        "capacity": 3.2e12,
        "read_ops": 20000.0,
        "bandwidth": 400e6,
        "bandwidth_in_all": 1.6e9,
    }
    readme = Path(target, "README.md").read_text()
    assert "| gfs | bandwidth in all | 200 MB/s |" in readme
    assert "sh accept.sh OUT" in readme
    script = Path(target, "accept.sh").read_text()
    assert 'tierscope run study.yaml --out "$out"' in script
    assert "tierscope analyze \"$out\" --goal 'io=600 s'" in script
    subprocess.run(["sh", "-n", os.path.join(target, "accept.sh")], check=True)


def test_a_tender_may_be_written_anew_and_nothing_else_is_touched(tmp_path: Path) -> None:
    target = write_tender(str(tmp_path / "tender"), option(), GOAL)
    Path(target, "notes.txt").write_text("mine")
    write_tender(target, option(nodes=2), Goal("epoch", 60.0))
    assert "epoch=60 s" in Path(target, "accept.sh").read_text()
    assert Path(target, "notes.txt").read_text() == "mine"


def test_a_stranger_s_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    for refused in (lambda: check_tender(str(tmp_path)), lambda: write_tender(str(tmp_path), option(), GOAL)):
        with pytest.raises(ForeignDirectoryError, match="was not created by Tierscope"):
            refused()
    assert os.listdir(tmp_path) == ["README.md"]


@pytest.mark.parametrize("parent", ["/proc", "/proc/no/such", "{tmp}/file", "{tmp}/file/below"])
def test_a_place_that_cannot_be_written_is_refused_before_the_search(parent: str, tmp_path: Path) -> None:
    """A search may take minutes."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=r"choose (another|a) directory"):
        check_tender(f"{parent.format(tmp=tmp_path)}/tender")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_of_others_is_not_replaced_and_said_before_the_search(tmp_path: Path) -> None:
    target = Path(write_tender(str(tmp_path / "tender"), option(), GOAL))
    check_tender(str(target))
    (target / "README.md").unlink()
    mark = json.loads((target / "tierscope.json").read_text())
    (target / "tierscope.json").write_text(json.dumps(mark | {"names": ["study.yaml", "required.json", "accept.sh"]}))
    (target / "README.md").write_text("mine")
    with pytest.raises(ForeignDirectoryError, match=r"README\.md: was not created by Tierscope; move it away"):
        check_tender(str(target))


def test_looking_whether_a_tender_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "tender").mkdir()
    for name in ("tender", "new", "new/below"):
        check_tender(str(tmp_path / name))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["tender"]


def test_clean_takes_a_tender_and_keeps_what_is_not_ours(tmp_path: Path) -> None:
    target = Path(write_tender(str(tmp_path / "tender"), option(), GOAL))
    (target / "notes.md").write_text("mine")
    assert run("clean", target, "--yes") == 0
    left = sorted(os.listdir(target))
    assert "notes.md" in left
    assert not {"README.md", "accept.sh", "required.json", "study.yaml"} & set(left)


def test_a_mark_without_a_list_gains_no_name(tmp_path: Path) -> None:
    """Anyone may call a file README.md: it is ours only where the mark says so."""
    target = Path(write_tender(str(tmp_path / "tender"), option(), GOAL))
    mark = json.loads((target / "tierscope.json").read_text())
    (target / "tierscope.json").write_text(json.dumps({key: value for key, value in mark.items() if key != "names"}))
    run("clean", target, "--yes")
    assert (target / "README.md").exists()


def test_what_no_benchmark_can_run_is_no_acceptance_test(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"placement\.policy = lru"):
        write_tender(str(tmp_path / "tender"), option(policy="lru"), GOAL)
    with pytest.raises(UserError, match="no option fits and meets the goal"):
        write_tender(str(tmp_path / "tender"), None, GOAL)
    assert not (tmp_path / "tender").exists()


@pytest.mark.parametrize("text", ["io=600 s", "epoch=60 s", "au=90%"])
def test_the_goal_is_written_as_the_option_takes_it(text: str) -> None:
    assert goal_argument(GoalKind().parse(text)) == text


def test_each_case_has_a_tender_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(dump.to_yaml(load_study("demo")) + "cases: {few: {nodes: 1}, many: {nodes: 2}}\n")
    asked = ("explore", "--simulate", study, "--method", "bound", "--goal", "io=1h", "--vary", "gfs.servers=1,2")
    tender = ("--tender", tmp_path / "tender")
    assert run(*asked, *tender) == 2
    assert "the study has several cases; choose one with --set case=few" in one_line(capsys)
    assert not (tmp_path / "tender").exists()
    assert run(*asked, "--set", "case=many", *tender) == 0
    assert load_study(str(tmp_path / "tender" / "study.yaml")).system.nodes == 2


def test_options_that_read_different_amounts_are_no_tender(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("explore", "--simulate", "demo", "--method", "bound", "--goal", "io=1h", "--set", "sweep={}")
    assert run(*asked, "--vary", "num_files_train=64,128", "--tender", tmp_path / "tender") == 2
    assert "different amounts of data cannot be ranked" in capsys.readouterr().err
    assert not (tmp_path / "tender" / "study.yaml").exists()
