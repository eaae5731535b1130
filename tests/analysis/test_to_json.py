"""The JSON that other people's scripts rely on."""

import json
from types import NoneType
from typing import Any

import numpy as np
import pytest

from tests.traces import CLASSES, TIERS, times_of, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.analysis.to_json import breakdown_json
from tierscope.analysis.wording import Finding

# What the issue promises, and what came on top; a key may be added, never taken away or changed.
POINT: dict[str, tuple[type, ...]] = {
    "sweep": (dict,),
    "epoch": (int,),
    "ranks": (int,),
    "repetitions": (int,),
    "basis": (str,),
    "slowest_rank": (int,),
    "io_seconds": (float,),
    "epoch_seconds": (float, NoneType),
    "compute_seconds": (float, NoneType),
    "classes": (dict,),
    "ops": (dict,),
    "bytes": (dict,),
    "bottleneck": (str, NoneType),
    "io_seconds_low": (float,),
    "io_seconds_high": (float,),
    "interval": (str,),
    "hit_rate": (float, NoneType),
    "checkpoint_seconds": (float, NoneType),
    "checkpoint_share": (float, NoneType),
    "step_sync_seconds": (dict, NoneType),
}
SUMMARY: dict[str, tuple[type, ...]] = {
    "sweep": (dict,),
    "io_seconds": (float,),
    "io_seconds_low": (float,),
    "io_seconds_high": (float,),
    "interval": (str,),
    "n": (int,),
    "classes": (dict,),
    "bottleneck": (str, NoneType),
    "epoch_seconds": (float, NoneType),
    "compute_seconds": (float, NoneType),
    "epoch_seconds_low": (float, NoneType),
    "epoch_seconds_high": (float, NoneType),
    "stall_share": (float, NoneType),
    "au": (float, NoneType),
    "slowest_au": (float, NoneType),
    "first_epoch_io_seconds": (float, NoneType),
    "hit_rate": (float, NoneType),
    "checkpoint_seconds": (float, NoneType),
    "checkpoint_share": (float, NoneType),
    "write_seconds": (float,),
    "background_write_seconds": (float, NoneType),
    "staging_seconds": (float, NoneType),
    "break_even_epochs": (int, NoneType),
    "feasibility": (dict, NoneType),
}
BEST = {**SUMMARY, "smallest_equal": (dict, NoneType)}
WHOLE: dict[str, tuple[type, ...]] = {
    "schema_version": (int,),
    "kind": (str,),
    "basis": (str,),
    "io_classes": (list,),
    "ranked_by": (str,),
    "processes": (int, NoneType),
    "simulated": (bool,),
    "methods": (list,),
    "profilers": (list,),
    "emulated_tiers": (list,),
    "resident_share": (dict,),
    "metadata_cache": (dict,),
    "evict_seconds": (float, NoneType),
    "coverage": (dict, NoneType),
    "overhead": (dict,),
    "points": (list,),
    "summary": (list,),
    "best": (dict,),
    "findings": (list,),
}
FINDING: dict[str, tuple[type, ...]] = {"kind": (str,), "evidence": (dict,), "text": (str,), "suggestion": (str,)}


def measured() -> ClassTimes:
    """Two cache rates, two epochs, two ranks."""
    traces = [
        trace_of(
            {
                (rank, epoch): {"GFS-META": (3.0 - point) * epoch + rank, "LFS-READ": 0.25}
                for rank in (0, 1)
                for epoch in (1, 2)
            },
            point=point,
            sweep={"cache_rate": rate},
            steps=np.ones((3, 3)),
        )
        for point, rate in enumerate([0.0, 0.65])
    ]
    return from_traces(traces, TIERS)


def as_json(times: ClassTimes, findings: list[Finding] | None = None, emulated: list[str] | None = None) -> Any:
    """As a script sees it: through text, without NaN."""
    return json.loads(
        json.dumps(
            breakdown_json(break_down(times), findings or [], Conditions(emulated=tuple(emulated or ()))),
            allow_nan=False,
        )
    )


def assert_shape(found: dict[str, Any], expected: dict[str, tuple[type, ...]]) -> None:
    assert set(found) == set(expected)
    for name, value in found.items():
        assert type(value) in expected[name], f"{name} is {value!r}"


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(measured(), id="measured"),
        pytest.param(times_of([{"rank": 0, "class": "GFS-READ", "seconds": 0.0}]), id="csv"),
        pytest.param(times_of([{"rank": 0, "class": "GFS-READ", "seconds": 1.0, "x": "a"}], ["x"]), id="csv of texts"),
    ],
)
def test_the_keys_and_their_types(times: ClassTimes) -> None:
    found = as_json(times, [Finding("trimmed", {"samples": 3})])
    assert_shape(found, WHOLE)
    assert_shape(found["best"], BEST)
    for point in found["points"]:
        assert_shape(point, POINT)
        assert all(type(value) is float for value in point["classes"].values())
        assert set(point["ops"]) == set(point["bytes"]) == set(point["classes"])
        assert all(type(value) in (int, NoneType) for name in ("ops", "bytes") for value in point[name].values())
    for point in [*found["summary"], *([found["best"]["smallest_equal"]] if found["best"]["smallest_equal"] else [])]:
        assert_shape(point, SUMMARY)
    for finding in found["findings"]:
        assert_shape(finding, FINDING)
    assert (found["schema_version"], found["kind"]) == (1, "breakdown")


def test_the_numbers_of_a_point() -> None:
    first, second = as_json(measured())["points"][:2]
    assert first == {
        "sweep": {"cache_rate": 0.0},
        "epoch": 1,
        "ranks": 2,
        "repetitions": 1,
        "basis": "wall",
        "slowest_rank": 1,
        "io_seconds": 4.25,
        "io_seconds_low": 4.25,
        "io_seconds_high": 4.25,
        "interval": "range",
        "epoch_seconds": 10.0,
        "compute_seconds": 0.0,
        "classes": {"GFS-READ": 0.0, "GFS-META": 4.0, "LFS-READ": 0.25, "LFS-META": 0.0},
        "ops": {"GFS-READ": 0, "GFS-META": 1, "LFS-READ": 1, "LFS-META": 0},
        "bytes": {"GFS-READ": 0, "GFS-META": 0, "LFS-READ": 100, "LFS-META": 0},
        "bottleneck": "GFS-META",
        "hit_rate": None,
        "checkpoint_seconds": None,
        "checkpoint_share": None,
        "step_sync_seconds": {"endless_prefetch": 3.0, "no_prefetch": 3.0},
    }
    assert (second["epoch"], second["io_seconds"]) == (2, 7.25)
    assert list(first["classes"]) == list(CLASSES)


def test_the_best() -> None:
    best = as_json(measured())["best"]
    assert (best["sweep"], best["io_seconds"], best["bottleneck"]) == ({"cache_rate": 0.65}, 5.25, "GFS-META")
    assert (best["first_epoch_io_seconds"], best["n"]) == (3.25, 1)
    assert best["smallest_equal"]["sweep"] == {"cache_rate": 0.65}


def test_the_spread_over_repetitions() -> None:
    rows = [{"rank": 0, "class": "GFS-READ", "seconds": s, "repetition": r} for r, s in enumerate((2.0, 1.0, 4.0), 1)]
    found = as_json(times_of(rows))
    for point in (found["points"][0], found["summary"][0], found["best"]):
        assert [point[f"io_seconds{end}"] for end in ("_low", "", "_high")] == [1.0, 2.0, 4.0]
    assert (found["points"][0]["repetitions"], found["best"]["n"]) == (3, 3)


def test_findings_and_emulation_are_told() -> None:
    found = as_json(measured(), [Finding("trimmed", {"samples": 3})], ["gfs"])
    assert found["emulated_tiers"] == ["gfs"]
    (finding,) = found["findings"]
    assert (finding["kind"], finding["evidence"]) == ("trimmed", {"samples": 3})
    assert finding["text"].startswith("3 samples")
    assert finding["suggestion"]


def test_the_basis_is_that_of_the_seconds() -> None:
    traces = [trace_of({(0, 1): {"GFS-READ": 1.0}}, wall_share=0.25)]
    found = as_json(from_traces(traces, TIERS, "wall"))
    assert (found["basis"], found["points"][0]["basis"], found["points"][0]["io_seconds"]) == ("wall", "wall", 0.25)
