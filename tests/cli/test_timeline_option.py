"""`characterise LOGS --timeline TRACE`: the hidden share of a job that DFTracer saw, and one line with exit code 2 where clocks cannot be aligned."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.dftracer_lines import START, began, call, complete, named, write
from tests.imports.test_profiler_trace import span, written

DATA, MARK = "/gfs/data/b.bin", "/gfs/data/tierscope-mark-a1"
OPTIONS = ("--tier", "gfs=/gfs")


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A mark at 10 µs, and a read of 1,000 µs from 1,000 on."""
    lines = [*began(), *named(DATA, MARK), call("read", MARK, 10, 2, ret=1), call("pread", DATA, 1000, 1000, ret=4096)]
    return write(tmp_path / "t.pfw", lines)


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run("characterise", *arguments, *OPTIONS, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def test_half_of_the_io_is_hidden(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the trace's clock, which is 5,000 µs behind, compute lasts from −3,500 to −2,500."""
    events = [
        span("tierscope.mark a1", 5, 12, "user_annotation"),
        span("aten::mm", 1505, 1000),
        span("end", 9000, 1, "x"),
    ]
    trace = written(tmp_path / "torch.json", [{**event, "ts": event["ts"] - 5000} for event in events])
    merged = shown(capsys, log, "--timeline", trace)
    assert merged["hidden"]["value"] == pytest.approx(0.5, abs=0.02)
    (rank,) = merged["merged"]["by_rank"]
    assert (rank["rank"], rank["marks"], rank["aligned_by"]) == (0, 1, "marks")
    assert rank["hidden_range"][0] <= rank["hidden_seconds"] <= rank["hidden_range"][1]
    assert rank["uncertainty_seconds"] == pytest.approx(7e-6)
    figure = tmp_path / "m.svg"
    assert run("characterise", log, "--timeline", trace, "--figure", figure, *OPTIONS) == 0
    said = capsys.readouterr().out
    assert "Clocks aligned by 1 mark that both recorded, within ±7 µs." in said
    assert figure.read_bytes().startswith(b"<?xml")


def test_epoch_time_aligns_too_and_says_that_nothing_checks_it(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = written(tmp_path / "torch.json", [span("aten::mm", 0, 4000)], baseTimeNanoseconds=START * 1000)
    assert run("characterise", log, "--timeline", trace, *OPTIONS) == 0
    said = capsys.readouterr().out
    assert "Clocks aligned by epoch time, assumed within ±10 ms; nothing checks that" in said


def test_compute_spans_of_the_log_need_no_other_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*began(), *named(DATA), call("pread", DATA, 0, 1000, ret=8), complete("TorchFramework.compute", 250, 5000)]
    known = shown(capsys, write(tmp_path / "t.pfw", lines))
    assert known["hidden"]["value"] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("events", "header", "why"),
    [
        (
            [span("aten::mm", 0, 1)],
            {},
            "its clock cannot be aligned with the logs: it has neither an epoch time nor a tierscope.mark span",
        ),
        (
            [span("aten::mm", 0, 1), span("tierscope.mark zz", 0, 1, "u")],
            {},
            "the logs have no operation on its tierscope-mark-* file",
        ),
        ([span("aten::mm", 0, 1)], {"baseTimeNanoseconds": 5}, "by its epoch time it lies"),
        (
            [span("aten::mm", 0, 1), span("tierscope.mark a1", 0, 0, "u")],
            {},
            "by its epoch time it lies|its mark is shorter",
        ),
    ],
)
def test_a_clock_that_cannot_be_aligned_is_refused(
    events: list[dict[str, Any]],
    header: dict[str, Any],
    why: str,
    log: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = written(tmp_path / "torch.json", events, **header)
    if "shorter" in why:
        longer = [
            *began(),
            *named(DATA, MARK),
            call("read", MARK, 10, 900, ret=1),
            call("pread", DATA, 2000, 10, ret=8),
        ]
        log = write(tmp_path / "t.pfw", longer)
        why = "its mark is shorter than the operation in it"
    assert run("characterise", log, "--timeline", trace, *OPTIONS) == 2
    assert why in one_line(capsys)


def test_which_rank_a_trace_is_of_is_never_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for pid in (1, 2) for line in (*began(pid), *named(DATA), call("pread", DATA, 1000, 50, pid, ret=8))]
    log = write(tmp_path / "t.pfw", lines)
    trace = written(tmp_path / "torch.json", [span("aten::mm", 0, 4000)], baseTimeNanoseconds=START * 1000)
    assert run("characterise", log, "--timeline", trace, *OPTIONS) == 2
    assert "it does not say which rank it is of; give it as --timeline RANK=" in one_line(capsys)
    known = shown(capsys, log, "--timeline", f"1={trace}")
    assert [rank["rank"] for rank in known["merged"]["by_rank"]] == [1]
    assert run("characterise", log, "--timeline", f"7={trace}", *OPTIONS) == 2
    assert "the logs have no I/O of rank 7" in one_line(capsys)
    assert run("characterise", log, "--timeline", f"1={trace}", "--timeline", f"1={trace}", *OPTIONS) == 2
    assert "is of rank 1, like another one" in one_line(capsys)
