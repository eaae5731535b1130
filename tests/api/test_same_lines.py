"""Bad input raises the line that the command prints."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tierscope as ts
from tests.api.commands import GOLDEN, LOGS, MEASURED, refused
from tests.tiny import TINY

pytestmark = pytest.mark.whole


def raised(call: Callable[[], object]) -> str:
    with pytest.raises(ts.TierscopeError) as error:
        call()
    return str(error.value)


def test_a_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert raised(lambda: ts.load(path)) == refused("analyze", path)
    assert raised(lambda: ts.calibrate(path, progress=False)) == refused("calibrate", path)
    log = tmp_path / "none.darshan"
    assert raised(lambda: ts.analyze_logs(log)) == refused("analyze", log)


def test_a_folder_that_is_no_result(tmp_path: Path) -> None:
    assert raised(lambda: ts.load(tmp_path)) == refused("analyze", tmp_path)


def test_a_result_without_a_finished_run(tmp_path: Path) -> None:
    out = shutil.copytree(MEASURED, tmp_path / "out")
    shutil.rmtree(out / "runs")
    assert raised(lambda: ts.load(out)) == refused("analyze", out)


@pytest.mark.parametrize("kept", [0, 0.3, 0.9])
def test_a_half_written_run(tmp_path: Path, kept: float) -> None:
    out = shutil.copytree(MEASURED, tmp_path / "out")
    run = out / "runs" / "0001-r1.parquet"
    os.truncate(run, int(kept * run.stat().st_size))
    line = raised(lambda: ts.load(out))
    assert line == refused("analyze", out)
    assert str(run) in line


def test_an_unknown_class_has_a_suggestion() -> None:
    result = ts.load(MEASURED)
    line = refused("estimate", MEASURED, "--improve", "GFS-MTA=50")
    assert "did you mean GFS-META?" in line
    assert raised(lambda: result.estimate({"GFS-MTA": 50})) == line
    other = refused("estimate", MEASURED, "--improve", "GPS-META=50")
    assert raised(lambda: result.estimate(GPS_META=50)) == other
    assert raised(lambda: result.explore("4s", {"GPS-META": "0:50:10"})) == refused(
        "explore", MEASURED, "--goal", "4s", "--vary", "GPS-META=0:50:10"
    )


@pytest.mark.parametrize("value", ["fast", "nan", "2e6", "-100"])
def test_an_impossible_percentage(value: str) -> None:
    line = refused("estimate", MEASURED, "--improve", f"GFS-META={value}")
    assert raised(lambda: ts.load(MEASURED).estimate(GFS_META=value)) == line


def test_goals_grids_epochs_and_cases() -> None:
    result = ts.load(MEASURED)
    assert raised(lambda: result.estimate(goal="soon")) == refused("estimate", MEASURED, "--goal", "soon")
    assert raised(lambda: result.explore("4s")) == refused("explore", MEASURED, "--goal", "4s")
    assert raised(lambda: ts.load(MEASURED, epoch=9)) == refused("analyze", MEASURED, "--epoch", "9")
    assert raised(lambda: ts.load(MEASURED, case="x")) == refused("analyze", MEASURED, "--case", "x")


def test_studies(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY.replace("batch_size: 4", "batch_size: four"))
    assert raised(lambda: ts.Study.from_yaml(study)) == refused("simulate", study, "--quiet")
    assert raised(lambda: ts.run(tmp_path / "no.yaml")) == refused("run", tmp_path / "no.yaml")
    assert raised(lambda: ts.Study.from_yaml("dmeo")) == refused("run", "dmeo")
    assert raised(lambda: ts.Study.from_yaml("demo", settings={"gfs.severs": 2})) == refused(
        "run", "demo", "--set", "gfs.severs=2"
    )
    assert raised(lambda: ts.simulate("demo", system="cori-gup")) == refused("simulate", "demo", "--system", "cori-gup")


def test_a_study_that_needs_what_is_not_installed(tmp_path: Path) -> None:
    """Both in a process of its own, where a package cannot be found."""
    study = tmp_path / "study.yaml"
    study.write_text(TINY.replace("format: raw", "format: hdf5"))
    hide = "import sys; sys.modules['h5py'] = None\n"
    call = f"{hide}import tierscope as ts\ntry: ts.run({str(study)!r}, {str(tmp_path / 'a')!r}, progress=False)\nexcept ts.UserError as error: print(error, file=sys.stderr)"
    command = (
        f"{hide}from tierscope.cli.main import main\nmain(['run', {str(study)!r}, '--out', {str(tmp_path / 'a')!r}])"
    )
    lines = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
        ).stderr
        for program in (call, command)
    ]
    assert lines[0] == lines[1].removeprefix("tierscope: ")
    assert "pip install 'tierscope[hdf5]'" in lines[0]


def test_requirements() -> None:
    assert raised(lambda: ts.require("resnet5", "cori-gpu")) == refused("require", "resnet5", "--system", "cori-gpu")
    assert raised(lambda: ts.require("resnet50")) == refused("require", "resnet50")
    bad: tuple[dict[str, Any], ...] = (
        *({"precision": "fp64"}, {"kept": "all"}, {"optimizer": "lamb"}),
        *({"servers": 0}, {"samples": 1.5}),
    )
    for options in bad:
        assert "must be" in raised(partial(ts.require, "resnet50", "cori-gpu", **options))


def test_logs_of_no_tier() -> None:
    """What is asked for next is said as the command's option."""
    assert raised(lambda: ts.analyze_logs([*LOGS, str(GOLDEN / "study.yaml")])) == refused(
        "analyze", *LOGS, GOLDEN / "study.yaml"
    )
    assert raised(lambda: ts.analyze_logs(LOGS, {"GFS!": "/gfs"})) == refused("analyze", *LOGS, "--tier", "GFS!=/gfs")
    assert raised(lambda: ts.analyze_logs([])) == "paths is empty; give the logs of one job"


@pytest.mark.parametrize("bad", [object(), {1}, b"x"])
def test_a_dictionary_with_what_is_no_yaml(bad: object) -> None:
    line = raised(lambda: ts.Study.from_dict({"study": "x", "workload": {"dataset": {"num_files_train": bad}}}))
    assert line.startswith("workload.dataset.num_files_train = ")


def test_a_dictionary_is_checked_as_a_file_is_without_lines() -> None:
    line = raised(lambda: ts.Study.from_dict({"study": "x", "workload": {"dataset": {"num_fils_train": 4}}}))
    assert line.startswith("study: ")
    assert "num_files_train" in line


@pytest.mark.parametrize("path", [3, None, b"bytes"])
def test_what_is_no_path(path: object) -> None:
    assert "must be a path" in raised(lambda: ts.load(path))  # type: ignore[arg-type]


def test_a_launcher_is_refused_and_nothing_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    assert "tierscope run" in raised(lambda: ts.run("demo"))


def test_tracing_without_the_library_says_how_to_preload_it() -> None:
    line = raised(ts.tracing)
    assert "not preloaded" in line
    assert "tierscope trace --tier NAME=/PATH -- python SCRIPT.py" in line


def test_calls_work_in_a_thread(tmp_path: Path) -> None:
    found: list[object] = []

    def work() -> None:
        try:
            study = ts.Study.from_yaml(GOLDEN / "study.yaml")
            found.append(ts.simulate(study, out=tmp_path / "out", method="bound", progress=False).best)
        except BaseException as error:  # noqa: BLE001  (shown below)
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(found[0], ts.ResultPoint), found
