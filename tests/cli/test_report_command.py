"""report as a user types it: what is written where, what is said when it cannot be, and that nothing else is touched."""

import contextlib
import io
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.cli.test_whatif_commands import write_times
from tests.in_memory import tmp_path_factory
from tests.tiny import TINY

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

FIGURES = ("breakdown", "estimate", "goal", "processes", "time")


@pytest.fixture
def times(tmp_path: Path) -> Path:
    return write_times(tmp_path / "times.csv")


@pytest.fixture
def folder(times: Path) -> Path:
    return times.with_name("times-report")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Times with their report."""
    times = write_times(tmp_path_factory.mktemp("once") / "times.csv")
    assert run("report", times) == 0
    return times


@pytest.fixture
def reported(once: Path, times: Path) -> Path:
    """The times' folder, as a first report leaves it."""
    return Path(shutil.copytree(once.with_name("times-report"), times.with_name("times-report")))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small study and its result, and what was said."""
    folder, said = tmp_path_factory.mktemp("finished"), io.StringIO()
    (folder / "tiny.yaml").write_text(TINY)
    (folder / "out").mkdir()
    with contextlib.redirect_stdout(said):
        assert run("run", folder / "tiny.yaml", "--out", folder / "out", "--quiet") == 0
    return folder, said.getvalue()


def test_a_page_and_figures_are_written_beside_a_csv(
    times: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", times) == 0
    assert (folder / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == set(FIGURES)
    said = capsys.readouterr().out
    assert "Page: " in said
    assert "report.html" in said


def test_the_same_times_give_the_same_bytes(times: Path, folder: Path, once: Path) -> None:
    assert run("report", times) == 0
    contents = [
        {path.name: path.read_bytes() for path in (report / "figures").iterdir()}
        for report in (folder, once.with_name("times-report"))
    ]
    assert contents[0] == contents[1]


def test_a_study_ends_with_its_report(finished: tuple[Path, str]) -> None:
    place, said = finished
    assert (place / "out" / "report.html").exists()
    assert (place / "out" / "figures" / "breakdown.svg").exists()
    assert said.index("Results: ") < said.index("Page: ")


def test_results_are_said_to_be_there_when_the_report_cannot_be_written(
    finished: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Path(shutil.copytree(finished[0], tmp_path / "finished"))
    (place / "out" / "report.html").unlink()
    (place / "out" / "report.html").mkdir()
    assert run("run", place / "tiny.yaml", "--out", place / "out", "--quiet") == 2
    said = capsys.readouterr()
    assert "Results: " in said.out
    assert len(said.err.splitlines()) == 1
    assert (
        "report.html: cannot be written: Is a directory; use 'tierscope report --out' to write it elsewhere" in said.err
    )


@pytest.mark.parametrize("what", ["report.html is a directory", "figures is a file"])
def test_what_is_in_the_way_gets_one_line(
    times: Path, reported: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if what.startswith("report"):
        (reported / "report.html").unlink()
        (reported / "report.html").mkdir()
    else:
        for path in (reported / "figures").iterdir():
            path.unlink()
        (reported / "figures").rmdir()
        (reported / "figures").write_text("mine")
    assert run("report", times) == 2
    assert ("cannot be written" if what.startswith("report") else "figures: is not a directory") in one_line(capsys)


def test_drawings_of_other_data_do_not_stay(times: Path, reported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (reported / "figures" / "mine.svg").write_text("mine")
    write_times(times, rates=(0.5,))
    assert run("report", times) == 0
    assert {path.stem for path in (reported / "figures").glob("*.svg")} == {"breakdown", "estimate", "goal", "mine"}
    assert "Not drawn: time, processes; see the page for the reasons" in capsys.readouterr().out


def test_a_folder_of_somebody_else_is_left_alone(times: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    assert run("report", times) == 2
    assert "was not created by Tierscope" in one_line(capsys)
    assert os.listdir(folder) == ["thesis.tex"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "soon"), "--goal soon"),
        (("--goal", ""), "--goal"),
        (("--improve", "GFS-MATA=5"), "did you mean GFS-META?"),
        (("--out", ""), "--out is empty"),
    ],
)
def test_mistakes_get_one_line(
    times: Path, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", times, *arguments) == 2
    assert said in one_line(capsys)


def test_the_page_can_be_opened(times: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def note(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", note)
    assert run("report", times, "--open") == 0
    assert opened == [(folder / "report.html").as_uri()]


def test_without_a_browser_the_page_is_there_all_the_same(
    times: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _address: False)
    assert run("report", times, "--open") == 0
    assert "no browser found" in capsys.readouterr().err
    assert (folder / "report.html").exists()


def test_figures_that_stand_alone_say_what_they_must(times: Path, folder: Path) -> None:
    assert run("report", times, "--goal", "5s") == 0
    assert "goal: 5 s of I/O per epoch" in (folder / "figures" / "goal.svg").read_text()
    assert run("report", times) == 0
    assert "an example of a goal" in (folder / "figures" / "goal.svg").read_text()


RATES = """
study: tiny
workload:
  dataset: {format: raw, num_files_train: 24, record_length_bytes: 1 KiB}
  reader: {batch_size: 4}
  train: {epochs: 2}
system:
  nodes: 2
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node, capacity: 1 MiB, bandwidth: 1 GB/s}
    gfs: {path: "{out}/tiers/gfs", bandwidth: 100 MB/s, metadata_ops: 1000/s}
sweep:
  placement.cache_rate: [0%, 50%, 75%]
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("simulated")
    (place / "rates.yaml").write_text(RATES)
    assert run("simulate", place / "rates.yaml", "--out", place / "sim", "--quiet") == 0
    return place / "sim"


@pytest.fixture
def simulation(simulated: Path, tmp_path: Path) -> Path:
    """A copy: reports are written into it."""
    return Path(shutil.copytree(simulated, tmp_path / "sim"))


def test_a_simulation_is_laid_beside_what_others_measured(
    times: Path, folder: Path, simulation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run("report", times, "--beside", simulation) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.index("Page: ") < said.index("I/O time of the slowest process, CSV versus simulated")
    assert "CSV: times.csv in " in said
    assert "(n=2 points)" in said
    assert "Not compared: 1 point only of the CSV sweep and 1 point only of the simulated sweep." in said
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == {*FIGURES, "beside"}
    assert "simulated (events)" in (folder / "figures" / "beside.svg").read_text()
    assert 'id="beside"' in (folder / "report.html").read_text()


def test_a_csv_may_be_laid_beside_a_result(times: Path, simulation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("report", simulation, "--beside", times) == 0
    said = capsys.readouterr().out
    assert "simulated versus CSV" in said
    assert "within 90 %" not in said


def test_a_report_without_another_result_has_no_figure_of_one(times: Path, folder: Path) -> None:
    assert run("report", times, "--beside", times) == 0
    assert (folder / "figures" / "beside.svg").exists()
    assert run("report", times) == 0
    assert {path.stem for path in (folder / "figures").iterdir()} == set(FIGURES)
    assert 'id="beside"' not in (folder / "report.html").read_text()


def test_what_cannot_be_laid_beside_gets_one_line_and_writes_nothing(
    times: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flat.csv").write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1\n")
    (tmp_path / "other.csv").write_text("rank,epoch,class,seconds,nodes\n0,1,GFS-READ,1,2\n")
    (tmp_path / "apart.csv").write_text("rank,epoch,class,seconds,cache_rate\n0,1,GFS-READ,1,0.3\n")
    (tmp_path / "words.csv").write_text("Dear reader\n")
    (tmp_path / "empty").mkdir()
    for name, reason in {
        "flat.csv": ": sweeps nothing, but ",
        "other.csv": ": sweeps nodes, but ",
        "apart.csv": "no point of its sweep has the same values of cache_rate",
        "words.csv": "column rank is missing",
        "nowhere": "no such file or directory",
        "empty": "empty",
    }.items():
        assert run("report", times, "--beside", tmp_path / name) == 2, name
        line = one_line(capsys)
        assert reason in line, name
        assert name in line
    assert run("report", times, "--beside", "") == 2
    assert "--beside is empty" in one_line(capsys)
    assert not folder.exists()
