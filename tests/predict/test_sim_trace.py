"""Simulated epochs as a trace: what reads a measured one reads it too, and nothing is lost on the way."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.examples import examples
from tests.predict.queueing import Case, case_of, study_of, systems, tier
from tests.small_study import small_study
from tests.traces import CLASSES, as_simulated, nothing_simulated, trace_of
from tierscope.analysis.times import from_traces
from tierscope.output.store import RunStore
from tierscope.predict import bound, events, to_trace
from tierscope.predict.outcome import Load, Outcome
from tierscope.predict.simulation import simulate_point
from tierscope.spec.study import Point
from tierscope.trace.columns import COLUMNS
from tierscope.trace.description import DescribedTier
from tierscope.trace.rank_trace import MAX_STEPS, StepTimes
from tierscope.trace.trace import RunKey, Trace

KEY = RunKey(3, 2)
EXACT = 1e-9


def outcome_of(case: Case, method: str = "bound") -> Outcome:
    if method == "bound":
        return bound.simulate(case.study, case.stations, case.reading, case.schedule)
    pytest.importorskip("numba", reason="the event engine needs numba")
    return events.simulate(case.study, case.stations, case.reading, case.schedule, events.EventOptions())


def trace(case: Case, *epochs: Outcome) -> Trace:
    system = case.study.system
    tiers = [each.name for each in system.tiers]
    about = structs.replace(nothing_simulated(), tiers=tuple(DescribedTier(name=name) for name in tiers))
    return to_trace.to_trace(KEY, about, tiers, system.ranks_per_node, epochs)


LFS = tier("lfs", visible_to="node", read_ops=50, latency=0.01)
GFS = tier(metadata_ops=100, bandwidth=1e5)
TWO: dict[str, Any] = {"nodes": 2, "ranks_per_node": 2, "files": 42, "batch": 3, "cache_rate": 0.4}


@pytest.mark.parametrize("method", ["bound", "events"])
def test_it_has_the_columns_of_a_measured_one(method: str) -> None:
    case = case_of(study_of(LFS, GFS, **TWO))
    found = trace(case, outcome_of(case, method))
    measured = trace_of({(0, 1): dict.fromkeys(CLASSES, 1.0)})
    assert found.table.schema == measured.table.schema == pl.Schema(COLUMNS)
    assert found.key == KEY
    assert found.table["point"].unique().to_list() == [3]
    assert found.table["repetition"].unique().to_list() == [2]
    assert found.cold.is_empty()
    for rows, theirs in ((found.ranks, measured.ranks), (found.io, measured.io)):
        filled = {name for name in COLUMNS if not theirs[name].null_count()}
        unknown = {"size_histogram", "latency_histogram", "order_digest"}
        if method == "bound":
            unknown |= {name for name in COLUMNS if "step" in name}
        assert {name for name in filled - unknown if rows[name].null_count()} == set()


@pytest.mark.parametrize("method", ["bound", "events"])
def test_it_can_be_stored_and_read_back(tmp_path: Path, method: str) -> None:
    case = case_of(study_of(LFS, GFS, **TWO))
    found = trace(case, outcome_of(case, method), outcome_of(case, method))
    found = replace(found, about=structs.replace(found.about, point=KEY.point))
    (tmp_path / "runs").mkdir(exist_ok=True)
    store = RunStore(str(tmp_path))
    store.save(found)
    assert store.load(KEY).table.equals(found.table)


@given(systems())
@settings(max_examples=examples(30))
def test_sums_are_those_of_the_simulation(case: Case) -> None:
    outcome = outcome_of(case)
    found = trace(case, outcome, outcome)
    system = case.study.system
    io = found.io.filter(pl.col("epoch") == 2)
    for column, values in (
        ("ops", outcome.ops),
        ("bytes", outcome.nbytes),
        ("busy_seconds", outcome.busy),
        ("wall_seconds", outcome.wall),
    ):
        for rank in range(system.ranks):
            for number, each in enumerate(system.tiers):
                for place, kind in enumerate(("open", "read")):
                    cell = io.filter(rank=rank, tier=each.name, kind=kind)[column].sum()
                    assert cell == pytest.approx(values[rank, number, place], rel=EXACT)
    closes = io.filter(kind="close")
    assert closes["ops"].sum() == io.filter(kind="open")["ops"].sum() == outcome.ops[:, :, 0].sum()
    assert closes["busy_seconds"].sum() == closes["wall_seconds"].sum() == closes["bytes"].sum() == 0
    assert (found.io["ops"] > 0).all()
    assert found.ranks["epoch"].to_list() == [epoch for epoch in (1, 2) for _ in range(system.ranks)]
    assert found.ranks["epoch_seconds"].to_list() == 2 * outcome.seconds.tolist()
    assert found.ranks["stall_seconds"].to_list() == 2 * outcome.stall.tolist()
    assert (found.table["node"] == found.table["rank"] // system.ranks_per_node).all()


@pytest.mark.parametrize("transfer", [10**6, 512])
def test_samples_are_counted_however_many_reads_they_take(transfer: int) -> None:
    case = case_of(study_of(LFS, GFS, transfer=transfer, record=1500, **TWO))
    ranks = trace(case, outcome_of(case)).ranks
    assert ranks["samples"].to_list() == [10] * 4
    assert ranks["payload_bytes"].to_list() == [10 * 1500] * 4


def test_payload_is_what_samples_hold_and_bytes_what_is_read_for_it() -> None:
    """A TFRecord has 16 bytes around each sample."""
    study = small_study("lfs.read_ops=100", "gfs.read_ops=100")
    found = simulate_point(KEY, Point(0, {}, study), "bound", lambda _: None)
    assert found.ranks["payload_bytes"].to_list() == [24 * 1000] * 2
    assert found.io["bytes"].sum() == 2 * 24 * (1000 + 16)


def test_a_system_of_latencies_alone_has_no_busiest_station() -> None:
    study = small_study("lfs.latency=10ms", "gfs.latency=20ms")
    found = simulate_point(KEY, Point(0, {}, study), "bound", lambda _: None)
    assert as_simulated(found).stations == ()
    assert found.ranks["epoch_seconds"].to_list() == pytest.approx([12 * 0.01 + 12 * 0.02] * 2)


def test_class_times_are_those_of_the_simulation() -> None:
    case = case_of(study_of(LFS, GFS, **TWO))
    outcome = outcome_of(case)
    times = from_traces([trace(case, outcome)], ["lfs", "gfs"]).table
    for number, name in enumerate(("LFS", "GFS")):
        for place, kind in enumerate(("META", "READ")):
            seconds = times.filter(pl.col("class") == f"{name}-{kind}").sort("rank")["seconds"].to_list()
            assert seconds == pytest.approx(outcome.busy[:, number, place].tolist())


def with_steps(steps: Any) -> Outcome:
    ranks = steps.shape[0]
    cells = np.ones((ranks, 1, 2))
    counts = np.ones((ranks, 1, 2), np.int64)
    sums = steps.sum(axis=1)
    return Outcome(
        seconds=sums[:, 1] + sums[:, 2],
        stall=sums[:, 1],
        compute=1.0,
        busy=cells,
        wall=cells,
        ops=counts,
        nbytes=counts,
        steps=steps,
        load=Load(seconds=np.ones(1), ops=np.ones(1, np.int64)),
    )


@given(st.integers(1, 5 * MAX_STEPS), st.integers(1, 3))
@settings(max_examples=examples(40))
def test_steps_are_added_up_as_the_recorder_adds_them(count: int, ranks: int) -> None:
    steps = np.random.default_rng(count).integers(0, 1000, (ranks, count, 3)) / 1024  # sums of these are exact
    found = to_trace.to_trace(KEY, nothing_simulated(), ["gfs"], 1, [with_steps(steps)]).ranks
    for rank in range(ranks):
        recorded = StepTimes()
        for step in steps[rank].tolist():
            recorded.add(*step)
        expected = recorded.finish()
        row = found.row(rank, named=True)
        names = ("step_read_seconds", "step_stall_seconds", "step_compute_seconds")
        np.testing.assert_array_equal(np.array([row[name] for name in names]).T, expected)
        assert row["steps_per_entry"] == recorded.steps_per_entry
        assert [sum(row[name]) for name in names] == steps[rank].sum(axis=0).tolist()
        assert len(row["step_read_seconds"]) <= MAX_STEPS
