"""Rows of DLIO's similarity test: recomputed from what is printed, judged only where the quantity is the same, and never from a damaged file."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tierscope.errors import ResultError
from tierscope.papers.dlio_similarity import make, printed_differences, section
from tierscope.papers.measured_similarity import PLACE, MissingMeasurement, SimilarityFile, measured_similarity
from tierscope.papers.rows import rows_of

ROWS = {"D-F8", *(f"D-F8-{number}" for number in range(1, 9)), "D-X-1"}


def spread(value: float) -> dict[str, float]:
    return {"median": value, "low": value, "high": value, "n": 3}


def runs(cosine: float, second_median: float = 50.0) -> dict[str, Any]:
    pairs = {"io_seconds": (2.0, 1.9), "transfer_median": (100.0, second_median), "files": (4.0, 4.0)}
    return {
        "cosine": spread(cosine),
        "metrics": [
            {
                "metric": name,
                "first": spread(first),
                "second": spread(second),
                "difference": spread((first - second) / max(first, second)),
            }
            for name, (first, second) in pairs.items()
        ],
    }


def document(application: float = 0.95, second_median: float = 50.0) -> dict[str, Any]:
    workload = {
        "name": "imagenet",
        "row": "D-F8-1",
        "yaml": "x.yaml",
        "shipped": True,
        "made": "2026-01-01",
        "compared": {"dlio-ours": runs(0.8, second_median), "application-dlio": runs(application, second_median)},
        "repeated": spread(0.99),
    }
    log = {"name": "l", "what": "a log", "cosine": 0.9, "made": "2026-01-01", "metrics": []}
    head = {"schema_version": 1, "made": "2026-01-01", "ranks": 1, "storage": ["latency=1ms"], "versions": {}}
    return {**head, "workloads": [workload], "logs": [log]}


def read(tmp_path: Path, content: dict[str, Any]) -> SimilarityFile:
    (tmp_path / "s.json").write_text(json.dumps(content))
    measured = measured_similarity(tmp_path / "s.json")
    assert isinstance(measured, SimilarityFile)
    return measured


def outcomes(measured: SimilarityFile | MissingMeasurement) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in section(measured).verdicts}


def test_every_row_has_a_verdict_and_is_published(tmp_path: Path) -> None:
    made = section(read(tmp_path, document()))
    assert {verdict.id for verdict in made.verdicts} == ROWS
    assert set(rows_of("dlio")) >= ROWS
    assert [figure.id for figure in made.figures] == ["D-F8"]
    assert "<svg" in made.figures[0].svg


def test_another_quantity_is_printed_beside_and_not_judged(tmp_path: Path) -> None:
    verdicts = {verdict.id: verdict for verdict in section(read(tmp_path, document())).verdicts}
    assert verdicts["D-F8-1"].outcome == "beside"
    assert "not the same quantity" in verdicts["D-F8-1"].why
    assert "0.80 (0.80–0.80, n=3)" in verdicts["D-F8-1"].ours
    assert verdicts["D-F8-2"].outcome == "not available here"


def test_how_often_tierscope_is_alike_is_said_first(tmp_path: Path) -> None:
    """Applications that are like DLIO must not be taken for Tierscope being so."""
    (above,) = (verdict for verdict in section(read(tmp_path, document())).verdicts if verdict.id == "D-F8-7")
    assert above.outcome == "beside"
    assert above.ours.startswith("DLIO beside Tierscope: above 0.90 in 0 of 1: imagenet 0.80")
    assert "our applications beside DLIO: imagenet 0.95" in above.ours


def test_what_holds_it_down_is_found_in_what_was_measured(tmp_path: Path) -> None:
    def said(second_median: float) -> str:
        verdicts = section(read(tmp_path, document(second_median=second_median))).verdicts
        return next(verdict.ours for verdict in verdicts if verdict.id == "D-F8-8")

    assert "request sizes in 4, time and bandwidth in 2 of 6 rows" in said(1.0)
    assert "DLIO beside Tierscope: request sizes in 1 of 1" in said(1.0)
    assert "DLIO beside Tierscope: time and bandwidth in 1 of 1" in said(100.0)


def test_the_cosines_of_the_printed_differences() -> None:
    """0.950 for ImageNet by hand: transfer sizes are equal, bandwidths are not."""
    assert [metric.difference for metric in printed_differences()["D-F8-1"]][-2:] == [-0.65, -0.53]
    assert outcomes(MissingMeasurement("no file")) == {**dict.fromkeys(ROWS, "not available here"), "D-X-1": "holds"}


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (("workloads", 0, "compared", "dlio-ours", "cosine", "high"), 7.0, "cosine.high"),
        (("workloads", 0, "compared", "dlio-ours", "cosine", "low"), 0.9, "a median of 0.8 is not between"),
        (("workloads", 0, "compared", "dlio-ours", "metrics", 0, "metric"), "speed", "speed is not a metric"),
        (("workloads", 0, "compared", "dlio-ours", "metrics", 0, "difference", "low"), -7.0, "difference.low"),
        (("workloads", 0, "compared", "dlio-ours", "metrics", 0, "first", "median"), -1.0, "first.median"),
        (("workloads", 0, "compared", "dlio-ours", "metrics", 0, "first", "high"), 1e300, "first.high"),
        (("workloads", 0, "compared", "dlio-ours", "metrics", 0, "metric"), "files", "files is given twice"),
        (("workloads", 0, "compared"), {}, "has no comparison dlio-ours"),
        (("workloads", 0, "compared"), {"a-b": runs(0.5)}, "compared"),
        (("workloads", 0, "repeated", "n"), 0, "repeated.n"),
        (("workloads", 0, "repeated", "n"), 10**9, "repeated.n"),
        (("workloads", 0, "repeated", "high"), 1.5, "repeated.high"),
        (("workloads", 0, "row"), 5, "row"),
        (("workloads", 0, "row"), "D-F8-9", "row"),
        (("workloads", 0, "name"), "\x1b[2J", "name"),
        (("logs", 0, "cosine"), -1.0, "cosine"),
        (("logs", 0, "metrics"), [{"metric": "speed", "difference": 0.0}], "speed is not a metric"),
        (("logs", 0, "metrics"), [{"metric": "files", "difference": 2.0}], "difference"),
        (("workloads",), document()["workloads"] * 2, "imagenet is given twice"),
        (("ranks",), -1, "ranks"),
        (("schema_version",), 2, "schema_version"),
        (("made",), None, "made"),
        (("made",), "yesterday", "made"),
    ],
)
def test_a_damaged_file_is_refused(place: tuple[Any, ...], value: object, why: str, tmp_path: Path) -> None:
    content = copy.deepcopy(document())
    inner: Any = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ResultError, match=why):
        read(tmp_path, content)


def test_the_file_of_the_project_names_nobody_and_no_place() -> None:
    if not PLACE.exists():
        pytest.skip("not a clone")
    text = PLACE.read_text(encoding="utf-8")
    assert not any(word in text for word in ("/home", "/tmp", "/dev", "/root", "/p/", "/grand"))
    measured = measured_similarity()
    assert isinstance(measured, SimilarityFile)
    assert len(measured.workloads) >= 5
    assert {verdict.id for verdict in make(short=True).verdicts} == ROWS
