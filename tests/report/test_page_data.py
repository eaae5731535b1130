"""What goes into a page: the browser gets the very numbers."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cased import cased_times
from tests.report.sources import alone, random_times, rows_at, source_of, swept
from tests.traces import times_of
from tierscope.analysis.wording import WORDING
from tierscope.predict.ceilings import ceilings
from tierscope.report.page_data import live_data, packed
from tierscope.spec.feasibility import Feasibility, TierRoom


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
    assert [(each["class"], each["kind"], each["where"]) for each in data["cases"][0]["ceilings"]] == [
        (each.class_name, each.kind, each.where) for each in known
    ]
    for shipped, each in zip(data["cases"][0]["ceilings"], known, strict=True):
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
    (part,) = data["parts"]
    assert [data["points"][index]["sweep"] for index in part["summary"]] == [
        point.sweep for point in source.breakdown.summary
    ]
    assert [one["text"] for one in part["slices"]] == ["machine a", "machine b"]
    assert [one["ticks"] for one in part["slices"]] == [["0%", "100%"]] * 2
    assert part["axis"] == "cache rate"


def test_without_a_sweep_there_is_one_slice_of_one_point() -> None:
    data = live_data(source_of(alone()))
    (part,) = data["parts"]
    assert (part["axis"], part["has_rates"], len(data["points"])) == ("", False, 1)
    assert [one["points"] for one in part["slices"]] == [[0]]


@pytest.mark.parametrize(("goal", "text"), [(0.4, "400 ms"), (None, "2.49 s")])
def test_a_goal_stands_there_as_it_was_given_and_a_suggestion_rounded(goal: float | None, text: str) -> None:
    data = live_data(source_of(swept(), goal))
    assert data["goal"]["given"] == (goal is not None)
    assert data["parts"][0]["goal"]["text"] == text


def test_each_case_has_its_points_its_goal_and_what_was_seen_of_it() -> None:
    source = source_of(cased_times())
    data = live_data(source)
    assert [part["name"] for part in data["parts"]] == ["zoo", "bee", "cat"]
    for part, shown in zip(source.parts, data["parts"], strict=True):
        own = data["cases"][shown["case"]]
        assert {data["points"][index]["sweep"]["case"] for index in own["points"]} == {part.name}
        assert [data["points"][index]["sweep"] for index in shown["summary"]] == [
            point.sweep for point in part.breakdown.summary
        ]
        assert shown["points"] == sorted(shown["summary"]) == own["points"]
        assert shown["goal"]["value"] == part.exploration.goal.value
        assert all(f"case {part.name}" in ceiling["where"] for ceiling in own["ceilings"])
    assert len({part["goal"]["value"] for part in data["parts"]}) == 3


def test_keys_that_change_together_are_one_axis_and_one_slice() -> None:
    places = ((64, 512), (128, 256), (256, 128))
    rows = [row for files, size in places for row in rows_at({"files": files, "size": size}, files / 64, 0.5)]
    (part,) = live_data(source_of(times_of(rows, ["files", "size"])))["parts"]
    assert part["axis"] == "files × size"
    assert [one["ticks"] for one in part["slices"]] == [["64 × 512", "128 × 256", "256 × 128"]]


def test_what_does_not_fit_is_not_ranked_in_the_browser() -> None:
    """The page's own best and its grid choose among ranked points only; all are drawn."""
    rooms = {(rate,): Feasibility((TierRoom("lfs", 9, 9, 1 if rate == 0.5 else 99),)) for rate in (0.0, 0.5, 1.0)}
    (part,) = live_data(source_of(replace(swept(), feasibility=rooms)))["parts"]
    assert (part["points"], part["summary"]) == ([0, 2], [0, 1, 2])


def test_what_does_not_fit_anywhere_is_never_recommended() -> None:
    """Ranked all the same, for there is nothing else to show: so the page must be told to recommend nothing."""
    rooms = {(rate,): Feasibility((TierRoom("lfs", 9, 9, 1),)) for rate in (0.0, 0.5, 1.0)}
    (part,) = live_data(source_of(replace(swept(), feasibility=rooms)))["parts"]
    assert "do not fit on lfs" in part["unfit"]
    (fitting,) = live_data(source_of(swept()))["parts"]
    assert fitting["unfit"] == ""


def test_only_what_is_known_to_be_held_has_a_price() -> None:
    rooms = {(rate,): Feasibility((TierRoom("lfs", 9, int(20 * rate), 99),)) for rate in (0.0, 0.5, 1.0)}
    known = live_data(source_of(replace(swept(), feasibility=rooms), near_tiers=("lfs",)))
    assert known["priced_tiers"] == ["lfs"]
    assert [point["held"] for point in known["points"]] == [{"lfs": 0}, {"lfs": 10}, {"lfs": 20}]
    del rooms[(0.5,)]
    assert live_data(source_of(replace(swept(), feasibility=rooms), near_tiers=("lfs",)))["priced_tiers"] == []
    assert live_data(source_of(swept()))["priced_tiers"] == []
