"""Real training, from traces made by hand: throughput, phases and whether storage matters are as computed on paper."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from tests.finding_cases import (
    Case,
    it_appears,
    it_does_not_appear,
    its_words_are_one_line_with_its_evidence,
    of_kind,
)
from tests.traces import TIERS, described_by, rank_epoch, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.findings import find
from tierscope.analysis.statistics import difference_of, mean_of, student_quantile
from tierscope.analysis.storage_stall import NO, UNCLEAR, YES
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.analysis.training import (
    PHASES,
    Training,
    about_training,
    reading_times,
    training_json,
    training_of,
)
from tierscope.analysis.wording import Finding
from tierscope.trace.rank_trace import Phases, RankTrace
from tierscope.trace.trace import RunKey, Trace, gather

LOG: dict[str, Any] = {
    "network": "lenet5",
    "device": "cpu",
    "software": "torch 2",
    "arithmetic": "fp32",
    "solver": "sgd",
    "data": "tiers",
    "first_loss": 2.0,
    "last_loss": 1.0,
    "peak_memory_bytes": None,
    "predicted_memory_bytes": 1000,
    "repeated": 0,
}
PARTS = Phases(copy_seconds=1.0, forward_seconds=2.0, backward_seconds=3.0, exchange_seconds=2.5, optimizer_seconds=0.5)


def run(
    seconds: Sequence[float],
    *,
    point: int = 0,
    repetition: int = 1,
    sweep: Mapping[str, Any] | None = None,
    stall: float = 1.0,
    checkpoint: float = 0.25,
    log: Mapping[str, Any] | None = None,
) -> Trace:
    """An epoch for each of the seconds, two ranks of 100 samples; rank 1 takes a second less."""
    ranks = [
        RankTrace(
            rank,
            0,
            tuple(
                rank_epoch(
                    epoch,
                    seconds=took - rank,
                    stall_seconds=stall + 10 * rank,
                    checkpoint_seconds=checkpoint,
                    phases=PARTS,
                )
                for epoch, took in enumerate(seconds, start=1)
            ),
        )
        for rank in range(2)
    ]
    about = {
        "kind": "measured",
        "point": point,
        "sweep": dict(sweep or {}),
        "tiers": [{"name": tier, "emulated": False} for tier in TIERS],
        "metadata_cache": "cold",
        "training": {**LOG, **(log or {})},
    }
    described = described_by(about)
    newer = {f"loader_{name}": log[name] for name in ("name", "workers") if log and name in log}
    if described.training and newer:
        described = structs.replace(described, training=structs.replace(described.training, **newer))
    return gather(RunKey(point, repetition), described, TIERS, ranks)


def times_of(*traces: Trace) -> ClassTimes:
    return from_traces(traces, TIERS)


def trained(*traces: Trace) -> Training:
    found = training_of(times_of(*traces))
    assert found is not None
    return found


def asked(
    tiers: Sequence[float],
    memory: Sequence[float],
    synthetic: Sequence[float] = (),
    checkpoint: float = 0.25,
    **log: Any,
) -> list[Trace]:
    """Seconds of the second epoch in every repetition."""
    origins = {"tiers": tiers, "memory": memory, "synthetic": synthetic}
    return [
        run(
            [50.0, took],
            point=point,
            repetition=repetition,
            sweep={"data": origin},
            checkpoint=checkpoint,
            log={"data": origin, **log},
        )
        for point, (origin, seconds) in enumerate(origins.items())
        for repetition, took in enumerate(seconds, start=1)
    ]


def test_throughput_is_that_of_all_ranks_over_the_longest_after_the_first_epoch() -> None:
    (point,) = trained(run([99.0, 10.0, 30.0]), run([99.0, 20.0, 20.0], repetition=2), run([99.0, 40.0, 40.0], repetition=3)).points  # fmt: skip
    rates = [400 / 40, 400 / 40, 400 / 80]
    assert point.samples_per_second.value == pytest.approx(25 / 3)
    half = 4.3027 * math.sqrt(sum((rate - 25 / 3) ** 2 for rate in rates) / 2 / 3)
    assert point.samples_per_second.limits == pytest.approx((25 / 3 - half, 25 / 3 + half))
    assert point.epoch_seconds == (20.0, 20.0, 40.0)
    assert (point.n, point.variability, point.seconds) == (3, 2.0, 80 / 3)


def test_no_rate_is_below_zero() -> None:
    """Of two repetitions that differ a lot: Student's interval alone would begin far below."""
    (point,) = trained(run([99.0, 10.0]), run([99.0, 40.0], repetition=2)).points
    low, high = point.samples_per_second.limits or (None, None)
    assert low == 0
    assert high
    assert high > 100


def test_phases_are_those_of_the_longest_rank_and_add_up_to_its_epoch() -> None:
    (point,) = trained(run([99.0, 10.0])).points
    assert tuple(point.phases) == PHASES
    assert point.phases == {
        "stall": 1.0,
        "copy": 1.0,
        "forward": 2.0,
        "backward": 3.0,
        "optimizer": 0.5,
        "checkpoint": 0.25,
        "sync": 0.0,
        "other": 2.25,
    }
    assert math.fsum(point.phases.values()) == 10.0
    assert point.beside == {"read": 0.0, "preprocess": 0.0, "exchange": 2.5}
    assert point.utilisation == pytest.approx(0.55)
    assert (point.variability, point.samples_per_second.limits) == (None, None)


def test_a_single_epoch_counts_though_it_is_the_first() -> None:
    assert trained(run([10.0])).points[0].samples_per_second.value == 20.0


def test_points_are_in_the_order_of_the_sweep() -> None:
    runs = [run([1.0], point=point, sweep={"batch_size": size}) for point, size in enumerate((64, 8, 16))]
    assert [point.sweep["batch_size"] for point in trained(*runs[::-1]).points] == [64, 8, 16]


def test_predicted_memory_is_held_against_the_measured() -> None:
    log = {"peak_memory_bytes": 800, "device": "NVIDIA H200"}
    (point,) = trained(run([10.0], log=log)).points
    assert (point.memory_error, point.by_events) == (0.25, True)
    assert trained(run([10.0])).points[0].memory_error is None


def test_emulated_compute_is_no_training() -> None:
    assert training_of(times_of(trace_of({(0, 1): {"GFS-READ": 1.0}}))) is None
    assert about_training(None) == []


@pytest.mark.parametrize(
    ("tiers", "memory", "answer"),
    [
        ([20.0, 20.1, 19.9, 20.0, 20.0], [10.0, 10.1, 9.9, 10.0, 10.0], YES),
        ([20.0, 20.1, 19.9, 20.0, 20.0], [19.9, 20.0, 20.1, 19.9, 20.1], NO),
        ([20.0, 20.1, 19.9, 20.0, 20.0], [20.5, 20.6, 20.4, 20.5, 20.5], NO),  # memory was slower: nobody waits
        ([20.0, 30.0, 10.0, 25.0, 15.0], [19.0, 29.0, 9.0, 24.0, 14.0], UNCLEAR),
        ([20.0], [10.0], UNCLEAR),
    ],
)
def test_storage_matters_only_where_the_difference_says_so(
    tiers: list[float], memory: list[float], answer: str
) -> None:
    training = trained(*asked(tiers, memory))
    assert training.answer == answer
    (stall,) = training.stalls
    assert stall.storage is not None
    assert stall.storage.value == pytest.approx(sum(tiers) / len(tiers) - sum(memory) / len(memory))
    assert stall.input is None


def test_storage_and_input_are_told_apart() -> None:
    (stall,) = trained(*asked([20.0, 20.2], [15.0, 15.2], [12.0, 12.2])).stalls
    assert stall.storage is not None
    assert stall.input is not None
    assert [stall.storage.value, stall.input.value] == pytest.approx([5.0, 3.0])
    assert stall.storage.limits == pytest.approx((5 - 4.3027 * math.sqrt(0.02), 5 + 4.3027 * math.sqrt(0.02)), rel=1e-6)


def test_nobody_is_answered_who_did_not_ask() -> None:
    assert trained(run([10.0])).answer is None
    assert training_json("x", [(None, trained(run([10.0])))], [])["storage_matters"] is None


def test_points_that_read_nothing_are_no_candidates_for_the_best_io() -> None:
    every = times_of(*asked([20.0, 20.0], [10.0, 10.0], [9.0, 9.0]))
    reading, left_out = reading_times(every)
    assert left_out == 4
    assert set(reading.epochs["data"]) == set(reading.table["data"]) == {"tiers"}
    assert len(reading.about) == 2
    assert break_down(reading).best.sweep == {"data": "tiers"}
    synthetic = times_of(run([10.0], log={"data": "synthetic"}))
    assert reading_times(synthetic) == (synthetic, 0)  # else nothing would be left


def test_runs_that_read_nothing_count_as_finished() -> None:
    every = times_of(*asked([20.0, 20.0], [10.0, 10.0]))
    reading, left_out = reading_times(every)
    told = find(reading, break_down(reading), Conditions(), 4, None, training_of(every), left_out)
    assert "partial" not in {finding.kind for finding in told}
    told = find(reading, break_down(reading), Conditions(), 6, None, training_of(every), left_out)
    assert told[0] == Finding("partial", {"finished": 4, "total": 6})


def test_json_is_what_the_manual_says() -> None:
    training = trained(*asked([20.0] * 5, [10.0] * 5))
    found = training_json("mine", [("data", training)], about_training(training))
    json.dumps(found, allow_nan=False)
    assert (found["schema_version"], found["kind"], found["study"], found["network"]) == (1, "training", "mine", "lenet5")  # fmt: skip
    point = found["points"][0]
    assert (point["varied"], point["data"], point["n"], point["samples_per_second"]) == ("data", "tiers", 5, 10.0)
    assert point["interval"] == [10.0, 10.0]
    assert set(point["phases"]) == {*PHASES, *found["beside"]}
    assert (point["predicted_memory_bytes"], point["peak_memory_bytes"]) == (1000, None)
    assert found["storage_matters"]["answer"] == "yes"
    assert found["storage_matters"]["of"][0]["storage"]["share"] == 0.5
    assert found["findings"][0]["kind"] == "training_waits"


# Statistics


def test_quantiles_of_student_are_those_of_tables() -> None:
    for freedom, value in ((1, 12.7062), (4, 2.7764), (19, 2.0930), (30, 2.0423), (120, 1.9799), (10**9, 1.95996)):
        assert student_quantile(freedom) == pytest.approx(value, abs=6e-5)
    between = student_quantile(7.5)
    assert 2.3060 < between < 2.3646
    with pytest.raises(ValueError, match="at least two"):
        student_quantile(0)


def test_means_and_differences_of_known_values() -> None:
    assert mean_of([3.0]).limits is None
    half = 2.7764 * math.sqrt(0.5)
    assert mean_of([1.0, 2.0, 3.0, 4.0, 5.0]).limits == pytest.approx((3 - half, 3 + half))
    found = difference_of([1.0, 2.0, 3.5, 4.0, 5.0], [2.0, 2.2, 2.4, 1.9, 2.1])
    assert found.value == pytest.approx(0.98)
    assert found.limits == pytest.approx((-0.9951, 2.9551), abs=5e-4)  # scipy.stats.ttest_ind(equal_var=False)
    assert difference_of([2.0, 2.0], [1.0, 1.0]).limits == (1.0, 1.0)


# Findings


def said(*traces: Trace) -> list[Finding]:
    return about_training(trained(*traces))


def five(seconds: float, **more: Any) -> list[Trace]:
    return [run([50.0, seconds], repetition=repetition, **more) for repetition in range(1, 6)]


STEADY = [20.0] * 5
CASES = {
    "training_waits": Case(
        lambda: said(*asked(STEADY, [10.0] * 5)),
        {"where": "the only point", "percent": 50.0, "low_percent": 50.0, "high_percent": 50.0, "repetitions": 5},
        lambda: said(*asked(STEADY, [19.5] * 5)),
    ),
    "training_waits_little": Case(
        lambda: said(*asked(STEADY, [19.5] * 5)),
        {"where": "the only point", "percent": 2.5, "low_percent": 2.5, "high_percent": 2.5, "repetitions": 5},
        lambda: said(*asked(STEADY, [10.0] * 5)),
    ),
    "training_wait_unclear": Case(
        lambda: said(*asked([10.0, 30.0], [8.0, 28.0])),
        {
            "where": "the only point",
            "percent": 10.0,
            "low_percent": pytest.approx(10 - 5 * 4.3027 * math.sqrt(200)),
            "high_percent": pytest.approx(10 + 5 * 4.3027 * math.sqrt(200)),
            "repetitions": 2,
        },
        lambda: said(*asked(STEADY, [10.0] * 5)),
    ),
    "training_wait_unknown": Case(
        lambda: said(*asked([20.0], [15.0])),
        {"where": "the only point", "percent": 25.0},
        lambda: said(*asked([20.0, 20.0], [15.0, 15.0])),
    ),
    "input_matters": Case(
        lambda: said(*asked(STEADY, [15.0] * 5, [5.0] * 5)),
        {"where": "the only point", "percent": 50.0, "low_percent": 50.0, "high_percent": 50.0},
        lambda: said(*asked(STEADY, [15.0] * 5, [14.5] * 5)),
    ),
    "loader_limits": Case(
        lambda: said(*asked(STEADY, STEADY, [10.0] * 5, name="pytorch", workers=2)),
        {
            "where": "the only point",
            "percent": 50.0,
            "low_percent": 50.0,
            "high_percent": 50.0,
            "what": "torch's DataLoader (2 workers)",
            "repetitions": 5,
        },
        lambda: said(*asked(STEADY, STEADY, [19.5] * 5, name="pytorch", workers=2)),
    ),
    "few_repetitions": Case(lambda: said(*five(20.0)[:4]), {"repetitions": 4, "enough": 5}, lambda: said(*five(20.0))),
    "low_utilisation": Case(
        lambda: said(run([50.0, 20.0], stall=13.0)),
        {
            "where": "the only point",
            "percent": pytest.approx(27.5),
            "stall_percent": pytest.approx(65.0),
            "clock": "the host's clock",
            "untried": ["--storage-matters"],
        },
        lambda: said(run([50.0, 20.0], stall=1.0)),
    ),
    "nothing_read": Case(
        lambda: said(run([20.0], log={"data": "synthetic"})),
        {"where": "the only point", "why": "samples are generated on the device"},
        lambda: said(run([20.0])),
    ),
    "sample_repeated": Case(
        lambda: said(run([20.0], log={"repeated": 4})),
        {"times": 4, "network": "lenet5"},
        lambda: said(run([20.0], log={"repeated": 0})),
    ),
    "same_loss": Case(
        lambda: said(run([20.0], log={"last_loss": 2.0})),
        {"where": "the only point", "loss": 2.0},
        lambda: said(run([20.0], log={"last_loss": 1.999})),
    ),
}


def test_points_that_were_asked_for_to_compare_with_are_no_critical_finding() -> None:
    """They stood before what the comparison says."""
    compared = said(*asked(STEADY, STEADY, [19.5] * 5))
    assert "nothing_read" not in {finding.kind for finding in compared}


@pytest.mark.parametrize("kind", CASES)
def test_it_appears_when_it_should(kind: str) -> None:
    it_appears(kind, CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_it_does_not_appear_otherwise(kind: str) -> None:
    it_does_not_appear(kind, CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_its_words_are_one_line(kind: str) -> None:
    its_words_are_one_line_with_its_evidence(kind, CASES[kind])


def test_a_comparison_that_was_made_is_not_recommended() -> None:
    traces = [run([50.0, 20.0], point=n, sweep={"data": origin}, log={"data": origin}, stall=13.0) for n, origin in enumerate(("tiers", "memory"))]  # fmt: skip
    (finding,) = of_kind("low_utilisation", said(*traces))
    assert "--storage-matters" not in finding.suggestion
