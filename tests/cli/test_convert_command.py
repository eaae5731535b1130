"""Files of DLIO at the command line: run, convert, metrics."""

import json
import shutil
from pathlib import Path

import pytest

from tests.in_memory import tmp_path_factory
from tests.spec.dlio_files import FOLDER
from tests.tiny import TINY
from tierscope.cli.main import _run
from tierscope.spec.load import load_study, parse_study

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

DLIO = FOLDER / "tiny.yaml"


def run(*arguments: object) -> int:
    return _run([str(argument) for argument in arguments])


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small file of DLIO, run by two ranks."""
    out = tmp_path_factory.mktemp("dlio") / "out"
    settings = ("--set", "ranks_per_node=2", "++workload.train.epochs=3", "--quiet")
    assert run("run", DLIO, "--out", out, *settings) == 0
    return out


def test_a_file_of_dlio_runs_and_leaves_its_summary(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert (summary["schema_version"], summary["num_accelerators"], summary["num_hosts"]) == (1, 2, 1)
    assert (summary["epochs"], summary["num_files_train"], summary["num_samples_per_file"]) == (3, 16, 2)
    assert summary["hostname"]
    assert summary["start"] <= summary["end"]
    metric = summary["metric"]
    assert len(metric["train_au_percentage"]) == 3
    assert all(0 < au <= 100 for au in metric["train_au_percentage"])
    assert metric["train_au_meet_expectation"] == "success"
    for each in metric["per_epoch"]:
        assert each["samples"] == 32
        assert each["bytes_read"] >= 32 * 4096
        slowest = each["slowest_rank"]["io_MB_per_second"] * each["seconds"] * 2**20
        assert 0 < slowest < each["bytes_read"]


def test_notes_say_what_becomes_of_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", DLIO, "--out", tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert "note: framework, reader.data_loader: no framework needed" in said
    assert "DLIO's files are not read" in said


def test_metrics_are_printed_and_nothing_is_written(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    assert run("analyze", finished, "--metrics") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[METRIC] ") for line in lines)
    assert "[METRIC] Number of Simulated Accelerators: 2" in lines
    assert "[METRIC] train_au_meet_expectation: success" in lines
    assert run("analyze", finished, "--au", "100%", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metric"]["train_au_meet_expectation"] == "fail"
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_resuming_writes_the_summary_again_and_keeps_the_goal(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    (out / "summary.json").unlink()
    assert run("run", out / "study.yaml", "--out", out, "--metrics", "--au", "10%") == 0
    assert "goal of AU, 10 %: met" in capsys.readouterr().out
    assert run("run", out / "study.yaml", "--out", out, "--metrics", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metric"]["train_au_goal_percentage"] == 10
    (out / "summary.json").write_text('{"wanted": {"au": "x"}}')
    assert run("run", out / "study.yaml", "--out", out, "--quiet") == 0
    assert json.loads((out / "summary.json").read_text())["metric"]["train_au_goal_percentage"] is None


def test_a_run_that_is_none_of_the_study_is_refused(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    shutil.copy(out / "runs" / "0000-r1.parquet", out / "runs" / "0009-r1.parquet")
    assert run("analyze", out, "--metrics") == 2
    assert "0009-r1.parquet" in one_line(capsys)


def test_a_sweep_has_an_entry_for_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    assert run("run", tmp_path / "tiny.yaml", "--out", tmp_path / "out", "--quiet", "--metrics") == 0
    assert "[METRIC] cache_rate = 0.5" in capsys.readouterr().out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["metric"] is None
    assert [point["sweep"] for point in summary["points"]] == [{"cache_rate": rate} for rate in (0.0, 0.5, 1.0)]
    assert all(len(point["metric"]["train_au_percentage"]) == 2 for point in summary["points"])


def test_convert_prints_the_study_that_run_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    override = "++workload.reader.batch_size=2"
    assert run("convert", DLIO, override, "--set", "ranks_per_node=2") == 0
    printed = capsys.readouterr()
    assert parse_study(printed.out, "x") == load_study(str(DLIO), [override, "ranks_per_node=2"])
    assert all(line.startswith("note: ") for line in printed.err.splitlines())
    assert "use 'tierscope run --au 0.1'" in printed.err


def test_a_converted_study_goes_on_where_the_file_stopped(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", DLIO, "++workload.train.epochs=3", "--set", "ranks_per_node=2") == 0
    (tmp_path / "study.yaml").write_text(capsys.readouterr().out)
    assert run("run", tmp_path / "study.yaml", "--out", finished) == 0
    assert "the run is finished" in capsys.readouterr().err


def test_a_file_of_dlio_is_simulated_on_a_known_system(tmp_path: Path) -> None:
    settings = ("--set", "nodes=1", "--set", "ranks_per_node=2", "--quiet", "--out", tmp_path / "out")
    assert run("simulate", DLIO, "++workload.reader.batch_size=2", "--system", "laptop", *settings) == 0
    assert not (tmp_path / "out" / "summary.json").exists()
    assert run("analyze", tmp_path / "out", "--metrics") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", DLIO, "++workload.reader.batchsize=1"), "did you mean reader.batch_size?"),
        (("run", DLIO, "workload.reader.batch_size=1"), "keys as ++workload.reader.batch_size=1"),
        (("run", DLIO, "other.yaml"), "one study at a time"),
        (("run", "demo", "++workload.reader.batch_size=1"), "use --set"),
        (("run", "demo", "--dlio"), "is a key of a Tierscope study"),
        (("convert", "demo"), "is a key of a Tierscope study"),
        (("convert", "nothing.yaml"), "no such file"),
        (("run", DLIO, "--au", "7"), "--au 7: must be within"),
        (("analyze", "nowhere", "--metrics"), "is not the result of a study"),
        (("analyze", "nowhere", "--metrics", "--csv", "x.csv"), "can only be combined with --json"),
    ],
)
def test_a_mistake_gets_one_line(arguments: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert said in one_line(capsys)
