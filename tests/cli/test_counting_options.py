"""What counts as I/O time: three options that every command about a result takes."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run

TIMES = "rank,epoch,class,seconds\n0,1,GFS-READ,1\n0,1,GFS-META,2\n0,1,GFS-WRITE,4\n"


@pytest.fixture
def times(tmp_path: Path) -> Path:
    path = tmp_path / "times.csv"
    path.write_text(TIMES)
    return path


@pytest.mark.parametrize(
    ("classes", "seconds", "counted"),
    [
        (None, 7.0, ["GFS-READ", "GFS-META", "GFS-WRITE"]),
        ("read,meta", 3.0, ["GFS-READ", "GFS-META"]),
        ("META , Read", 3.0, ["GFS-READ", "GFS-META"]),
        ("write", 4.0, ["GFS-WRITE"]),
    ],
)
@pytest.mark.parametrize("command", ["analyze", "estimate"])
def test_the_io_time_is_the_sum_of_what_counts(
    times: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    classes: str | None,
    seconds: float,
    counted: list[str],
) -> None:
    options = [] if classes is None else ["--classes", classes]
    assert run(command, times, "--json", *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["best"]["io_seconds"], found["io_classes"]) == (seconds, counted)


@pytest.mark.parametrize(
    ("classes", "headline"),
    [
        ("read,meta,write", "I/O: 7.000 s per epoch in busy seconds (n=1)"),
        ("read,meta", "I/O: 3.000 s per epoch in busy seconds, READ and META only (n=1)"),
        ("write", "I/O: 4.000 s per epoch in busy seconds, WRITE only (n=1)"),
    ],
)
def test_the_headline_names_what_counts_where_that_is_not_all(
    times: Path, capsys: pytest.CaptureFixture[str], classes: str, headline: str
) -> None:
    assert run("analyze", times, "--classes", classes) == 0
    shown = capsys.readouterr().out
    assert headline in shown
    assert ("GFS-META" in shown.splitlines()[2]) == ("meta" in classes)


def test_no_time_of_what_counts_is_not_called_no_io(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,0\n0,1,GFS-WRITE,5\n")
    assert run("analyze", times, "--classes", "read") == 0
    assert "No READ on these tiers was recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ("reads", "--classes reads: reads is not a class; choose from read, meta, write"),
        ("read,", "--classes read,: an empty name is not a class; choose from read, meta, write"),
        ("read,read", "--classes read,read: read is given twice; remove one"),
    ],
)
def test_a_class_that_is_not_there(times: Path, capsys: pytest.CaptureFixture[str], classes: str, said: str) -> None:
    assert run("analyze", times, "--classes", classes) == 2
    assert one_line(capsys) == f"tierscope: {said}"


def test_a_class_that_this_result_has_not(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1\n")
    assert run("analyze", times, "--classes", "write") == 2
    assert one_line(capsys) == "tierscope: --classes write: none in this result; choose from read"


def test_what_does_not_count_cannot_be_improved(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("estimate", times, "--classes", "read,meta", "--improve", "GFS-WRITE=50") == 2
    assert "--improve GFS-WRITE: no such class" in one_line(capsys)


def test_a_headline_of_busy_seconds_says_so(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", times) == 0
    assert "I/O: 7.000 s per epoch in busy seconds" in capsys.readouterr().out
