"""DLIO's metrics against cases computed by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.traces import described_by, lane_of, rank_epoch, without_loop
from tierscope.analysis.metrics import MB, epoch_metrics, metric_json, metric_lines, point_metrics
from tierscope.errors import ResultError
from tierscope.spec.dlio_making import MetricOptions
from tierscope.trace.rank_trace import RankEpoch, RankTrace
from tierscope.trace.trace import RunKey, Trace, gather

TIERS = ["lfs", "gfs"]


def epoch(number: int, steps: Sequence[tuple[float, float]], nbytes: int = 0, **changes: Any) -> RankEpoch:
    """Steps of (stall, compute) seconds, one after the other; a read, an open and a write of so many bytes."""
    lane = lane_of({("gfs", "read"): 1.0, ("gfs", "open"): 1.0, ("gfs", "write"): 1.0})
    lane.nbytes[lane.nbytes > 0] = nbytes
    times = np.array([(0.0, stall, compute) for stall, compute in steps]).reshape(-1, 3)
    plain: dict[str, Any] = {
        "seconds": float(times.sum()),
        "stall_seconds": float(times[:, 1].sum()),
        "compute_seconds": float(times[:, 2].sum()),
        "samples": 4 * len(steps),
        "steps": times,
        "lanes": (lane,),
    }
    return rank_epoch(number, **{**plain, **changes})


def trace(*ranks: Sequence[RankEpoch], repetition: int = 1) -> Trace:
    handed = [RankTrace(number, 0, tuple(epochs)) for number, epochs in enumerate(ranks)]
    return gather(RunKey(0, repetition), described_by({}), TIERS, handed)


def test_au_by_hand() -> None:
    """10 s: a first step of 3 s that does not count, then 3 × (1 s waiting + 1 s computing), and 1 s beside them."""
    steps = [(2.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]
    (found,) = epoch_metrics(trace([epoch(1, steps, seconds=10.0)]), MetricOptions())
    (rank,) = found.ranks
    assert rank.au == pytest.approx(100 * 3 / (10 - 3))
    assert rank.whole_au == pytest.approx(100 * 4 / 10)


def test_what_is_left_out_can_be_chosen() -> None:
    run = trace([epoch(1, [(2.0, 1.0), (1.0, 1.0), (0.0, 1.0), (3.0, 1.0)])])

    def au(start: int, end: int) -> float | None:
        return epoch_metrics(run, MetricOptions(None, start, end))[0].au

    assert au(0, 0) == pytest.approx(100 * 4 / 10)
    assert au(1, 1) == pytest.approx(100 * 2 / 3)
    assert au(2, 1) == pytest.approx(100)
    assert au(2, 2) is None
    assert au(9, 0) is None


def test_checkpoints_are_no_part_of_dlios_au_but_of_the_whole_epoch() -> None:
    run = trace([epoch(1, [(1.0, 1.0), (1.0, 1.0)], seconds=9.0, checkpoint_seconds=5.0)])
    (rank,) = epoch_metrics(run, MetricOptions())[0].ranks
    assert rank.au == pytest.approx(100 * 1 / (9 - 5 - 2))
    assert rank.whole_au == pytest.approx(100 * 2 / 9)


def test_steps_that_were_added_up_are_left_out_together() -> None:
    (found,) = epoch_metrics(trace([epoch(1, [(2.0, 2.0), (0.0, 2.0)], steps_per_entry=4)]), MetricOptions())
    assert found.au == pytest.approx(100)


def test_no_compute_is_no_utilisation() -> None:
    assert epoch_metrics(trace([epoch(1, [(1.0, 0.0), (1.0, 0.0)])]), MetricOptions())[0].au == 0


def test_bytes_are_those_that_reads_returned() -> None:
    run = trace([epoch(1, [(1.0, 1.0)] * 2, 8 * MB), epoch(2, [(0.5, 0.5)] * 2, 8 * MB)])
    first, second = epoch_metrics(run, MetricOptions())
    assert first.ranks[0].bytes_read == 8 * MB
    assert [first.mb_per_second, second.mb_per_second] == pytest.approx([8 / 4, 8 / 2])
    assert [first.samples_per_second, second.samples_per_second] == pytest.approx([8 / 4, 8 / 2])


def test_means_hide_the_slowest_rank_and_it_is_shown() -> None:
    """Rank 0 computes all the time, rank 1 half of it and takes twice as long."""
    quick, slow = epoch(1, [(0.0, 1.0)] * 4, 4 * MB), epoch(1, [(1.0, 1.0)] * 4, 4 * MB)
    (point,) = point_metrics([trace([quick], [slow])], MetricOptions(0.9))
    metric = metric_json(point, 0.9)
    assert metric["train_au_percentage"] == [pytest.approx(75)]
    assert metric["train_throughput_samples_per_second"] == [pytest.approx(16 / 4 + 16 / 8)]
    assert metric["train_io_MB_per_second"] == [pytest.approx(4 / 4 + 4 / 8)]
    (each,) = metric["per_epoch"]
    assert each["slowest_rank"]["rank"] == 1
    assert each["slowest_rank"]["au_percentage"] == pytest.approx(50)
    assert each["over_ranks"]["au_percentage"] == {"mean": 75, "stdev": 25, "min": 50, "max": 100}
    assert (each["seconds"], each["bytes_read"], each["samples"]) == (8.0, 8 * MB, 32)


def test_mean_and_standard_deviation_over_epochs_and_repetitions() -> None:
    runs = [
        trace([epoch(1, [(0.0, 1.0)] * 3), epoch(2, [(1.0, 1.0)] * 3)]),
        trace([epoch(1, [(0.0, 1.0)] * 3), epoch(2, [(1.0, 1.0)] * 3)], repetition=2),
    ]
    (point,) = point_metrics(runs, MetricOptions())
    metric = metric_json(point, None)
    assert metric["train_au_percentage"] == pytest.approx([100, 50, 100, 50])
    assert (metric["train_au_mean_percentage"], metric["train_au_stdev_percentage"]) == (
        pytest.approx(75),
        pytest.approx(25),
    )
    assert metric["train_throughput_mean_samples_per_second"] == pytest.approx(3)
    assert metric["train_throughput_stdev_samples_per_second"] == pytest.approx(1)
    assert metric["train_au_meet_expectation"] is None


@pytest.mark.parametrize(("goal", "verdict", "word"), [(0.75, "success", "met"), (0.76, "fail", "missed")])
def test_the_goal_is_met_or_missed(goal: float, verdict: str, word: str) -> None:
    (point,) = point_metrics([trace([epoch(1, [(1.0, 1.0), (1.0, 3.0)])])], MetricOptions(goal))
    metric = metric_json(point, goal)
    assert metric["train_au_meet_expectation"] == verdict
    lines = metric_lines(point, 1, goal)
    assert all(line.startswith("[METRIC] ") for line in lines)
    assert f"[METRIC] train_au_meet_expectation: {verdict}" in lines
    assert f"[METRIC] goal of AU, {100 * goal:g} %: {word}" in lines
    assert "[METRIC] Training Accelerator Utilization [AU] (%): 75.0000 (0.0000)" in lines


def test_a_single_step_leaves_nothing_to_count() -> None:
    (point,) = point_metrics([trace([epoch(1, [(1.0, 1.0)])])], MetricOptions(0.9))
    metric = metric_json(point, 0.9)
    assert (metric["train_au_percentage"], metric["train_au_meet_expectation"]) == ([None], None)
    assert any("unknown (no counted step)" in line for line in metric_lines(point, 1, 0.9))


def test_who_did_not_see_the_loop_has_no_metrics() -> None:
    with pytest.raises(ResultError, match="samples and epoch times of every rank, which only 'tierscope run' records"):
        epoch_metrics(without_loop(trace([epoch(1, [(1.0, 1.0)])])), MetricOptions())


def test_an_epoch_that_took_no_time_has_no_rate() -> None:
    """Also where a file says 5e-324 s: a rate of infinity spoils every sum."""
    run = trace([epoch(1, [(0.0, 0.0)], seconds=5e-324)])
    metric = metric_json(point_metrics([run], MetricOptions())[0], None)
    assert metric["train_throughput_mean_samples_per_second"] == 0.0
