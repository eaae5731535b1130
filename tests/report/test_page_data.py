"""What goes into a page: the browser gets the very numbers."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.sources import alone, random_times, rows_at, source_of, swept
from tests.traces import times_of
from tierscope.analysis.wording import WORDING
from tierscope.predict.ceilings import ceilings
from tierscope.report.page_data import live_data, packed


def unpacked(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def test_packed_numbers_come_back_to_the_last_bit() -> None:
    values = [0.1, 1e-300, float("inf"), 3.0000000000000004]
    assert unpacked(packed(values)).tolist() == values


def test_the_browser_gets_the_numbers_of_the_hull(tmp_path: Path) -> None:
    source = source_of(random_times(tmp_path / "times.csv", rates=3, ranks=50, epochs=3))
    data = json.loads(json.dumps(live_data(source), allow_nan=False))
    hull = source.processes.reduced()
    assert [point["sweep"] for point in data["points"]] == [point.sweep for point in hull.points]
    for shipped, point in zip(data["points"], hull.points, strict=True):
        assert [epoch["epoch"] for epoch in shipped["epochs"]] == [2, 3]
        for epoch, times in zip(shipped["epochs"], point.epochs, strict=True):
            assert epoch["ranks"] == times.ranks.tolist()
            assert (unpacked(epoch["seconds"]).reshape(times.seconds.shape) == times.seconds).all()


def test_ceilings_and_their_wording_are_there() -> None:
    source = source_of(swept())
    data = live_data(source)
    known = ceilings(source.processes)
    assert [(each["class"], each["kind"], each["where"]) for each in data["ceilings"]] == [
        (each.class_name, each.kind, each.where) for each in known
    ]
    for shipped, each in zip(data["ceilings"], known, strict=True):
        assert unpacked(shipped["numbers"]).tolist() == [each.per_second, each.share, *each.seconds]
        kinds = (f"beyond_{each.kind}", f"idle_beyond_{each.kind}")
        assert all(data["wording"][kind] == list(WORDING[kind]) for kind in kinds)


def test_the_summary_keeps_its_order_where_the_processes_have_another() -> None:
    rows = [
        row
        for machine in ("a", "b")
        for rate in (0.0, 1.0)
        for row in rows_at({"machine": machine, "cache_rate": rate}, 1.0 + rate, 1.0)
    ]
    source = source_of(times_of(rows, ["machine", "cache_rate"]))
    data = live_data(source)
    assert [data["points"][index]["sweep"] for index in data["summary"]] == [
        point.sweep for point in source.breakdown.summary
    ]
    assert [part["text"] for part in data["slices"]] == ["machine a", "machine b"]
    assert [part["ticks"] for part in data["slices"]] == [["0%", "100%"]] * 2
    assert data["axis"] == "cache rate"


def test_without_a_sweep_there_is_one_slice_of_one_point() -> None:
    data = live_data(source_of(alone()))
    assert (data["axis"], data["has_rates"], len(data["points"])) == ("", False, 1)
    assert [part["points"] for part in data["slices"]] == [[0]]


@pytest.mark.parametrize(("goal", "text"), [(0.4, "400 ms"), (None, "2.49 s")])
def test_a_goal_stands_there_as_it_was_given_and_a_suggestion_rounded(goal: float | None, text: str) -> None:
    data = live_data(source_of(swept(), goal))
    assert data["goal"]["given"] == (goal is not None)
    assert data["goal"]["text"] == text
