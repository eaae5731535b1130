"""Conditions: read from the descriptions of traces, the worst case of all runs."""

from typing import Any

from tests.analysis.test_findings import cold_rows
from tests.traces import TIERS, trace_of
from tierscope.analysis.conditions import Conditions, conditions
from tierscope.analysis.times import from_traces


def of(*abouts: dict[str, Any], cold: list[tuple[str, int, int | None]] | None = None) -> Conditions:
    traces = [
        trace_of({(0, 1): {"GFS-READ": 1.0}}, point=point, sweep={"cache_rate": point / 10}, about=about)
        for point, about in enumerate(abouts)
    ]
    return conditions(from_traces(traces, TIERS), cold_rows(cold or []))


def tiers(**emulated: bool) -> dict[str, Any]:
    return {"tiers": [{"name": name, "emulated": flag} for name, flag in emulated.items()]}


def test_a_tier_that_is_emulated_in_any_run_is_called_so() -> None:
    found = of(tiers(lfs=False, gfs=True), tiers(lfs=False, gfs=False), cold=[("lfs", 10, 0), ("gfs", 10, 10)])
    assert found.emulated == ("gfs",)
    assert found.resident == {"lfs": 0.0}


def test_the_warmest_epoch_counts_and_is_unknown_when_any_is() -> None:
    cold = [("lfs", 300, 0), ("lfs", 100, 25), ("gfs", 10, 0), ("gfs", 10, None)]
    assert of(tiers(lfs=False, gfs=False), cold=cold).resident == {"gfs": None, "lfs": 0.25}


def test_the_worst_overhead_counts() -> None:
    overheads = [{"recorder_seconds_per_op": cost, "harness_seconds_per_sample": 10 * cost} for cost in (1.0, 3.0, 2.0)]
    found = of(*({"overhead": overhead} for overhead in overheads))
    assert (found.recorder_seconds_per_op, found.harness_seconds_per_sample) == (3.0, 30.0)
    assert of({}).recorder_seconds_per_op is None
    assert of({"overhead": {"recorder_seconds_per_op": None}}).recorder_seconds_per_op is None


def test_metadata_of_emulated_tiers_is_not_called_warm() -> None:
    warm = {"metadata_cache": "warm"}
    assert not of({**tiers(lfs=True, gfs=True), **warm}).warm_metadata
    assert of({**tiers(lfs=True, gfs=False), **warm}).warm_metadata == ["gfs"]


def test_metadata_is_cold_only_where_it_was_in_all_runs_and_could_be() -> None:
    """Names of files in memory cannot be dropped; the worst of all runs counts."""
    real, cold = tiers(lfs=False, gfs=False), {"metadata_cache": "cold"}
    assert of({**real, **cold}).metadata == {"gfs": "cold", "lfs": "cold"}
    in_memory = {"provenance": {"filesystems": {"lfs": "tmpfs", "gfs": "ext4"}}}
    assert of({**real, **cold, **in_memory}).metadata == {"gfs": "cold", "lfs": "warm"}
    assert of({**real, **cold}, {**real, "metadata_cache": "warm"}).metadata == {"gfs": "warm", "lfs": "warm"}
    assert of({**real, "metadata_cache": "unused"}).metadata == {}


def test_other_profilers_are_named() -> None:
    assert of({"profiler": "dftracer"}, {"profiler": "dftracer"}).profilers == ("dftracer",)
    assert of({}).profilers == ()
