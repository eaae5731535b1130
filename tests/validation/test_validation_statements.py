"""The Hierarchy study's statements, read off made-up sweeps."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tierscope.papers.hierarchy_facts import LFS_READ, Facts, facts, least_meta, least_read, processes_of
from tierscope.papers.hierarchy_sweeps import Times, slowest
from validation.fugaku import penalty, statements
from validation.theory import agreement

AS_STATED = Facts(
    best=0.65,
    best_seconds=9.0,
    hand_over=0.6,
    meta_before=True,
    shared=0.45,
    best_with_meta=0.6,
    gain_with_meta=-12.8,
    best_with_read=0.65,
    gain_with_read=-24.0,
    goal_seconds=4.0,
    least_read=120.0,
)


def made_up(*points: tuple[float, float, float]) -> Times:
    """One process per point: (rate, LFS-READ, GFS-META)."""
    return {rate: np.array([[0.0, read, meta, 0.0]]) for rate, read, meta in points}


FALLING_THEN_RISING = made_up((0.55, 3.0, 7.0), (0.6, 4.0, 5.5), (0.65, 6.0, 3.0), (0.7, 9.5, 0.5))


def test_facts_are_read_off_the_slowest_process() -> None:
    found = facts(FALLING_THEN_RISING)
    assert (found.best, found.best_seconds) == (0.65, 9.0)
    assert found.hand_over == 0.65
    assert found.meta_before
    assert found.shared == pytest.approx(4.0 / 9.5)
    assert found.best_with_meta == 0.55
    assert found.gain_with_meta == pytest.approx(100 * ((3 + 7 / 1.5) / 9 - 1))
    assert found.best_with_read == 0.7
    assert found.gain_with_read == pytest.approx(100 * ((9.5 / 1.5 + 0.5) / 9 - 1))
    assert found.goal_seconds == pytest.approx(6 / 2.2 + 3 / 2.4)


def test_the_slowest_process_is_picked_again_after_an_improvement() -> None:
    times = {**FALLING_THEN_RISING, 0.65: np.array([[0.0, 6.0, 3.0, 0.0], [0.0, 1.0, 7.9, 0.0]])}
    processes = processes_of(times)
    seconds = processes.io_seconds(processes.factors({"LFS-READ": 100.0})[None, :])
    assert seconds[2, 0] == pytest.approx(0.5 + 7.9)


def test_a_class_that_comes_back_moves_the_hand_over() -> None:
    times = {**FALLING_THEN_RISING, 0.75: np.array([[0.0, 4.0, 6.0, 0.0]]), 0.8: np.array([[0.0, 10.0, 0.0, 0.0]])}
    found = facts(times)
    assert found.hand_over == 0.8
    assert not found.meta_before


def test_what_is_stated_holds() -> None:
    assert all(each.holds for each in statements(AS_STATED, steps=0))


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"best": 0.75}, "best rate"),
        ({"hand_over": 0.7}, "LFS-READ is the bottleneck from"),
        ({"meta_before": False}, "GFS-META is the bottleneck below the hand-over"),
        ({"shared": 0.1}, "both share the slowest process at 60%: the lesser has"),
        ({"best_with_meta": 0.5}, "best rate, GFS-META +50 %"),
        ({"gain_with_meta": -16.0}, "best I/O time, GFS-META +50 %"),
        ({"best_with_read": 0.55}, "best rate, LFS-READ +50 %"),
        ({"gain_with_read": -20.0}, "best I/O time, LFS-READ +50 %"),
        ({"goal_seconds": 4.5}, "I/O time at 65 %, LFS-READ +120 % and GFS-META +140 %"),
        ({"least_read": 105.0}, "least LFS-READ for 4 s at 65 % with GFS-META +140 %"),
    ],
)
def test_each_statement_can_fail_alone(change: dict[str, Any], broken: str) -> None:
    assert [each.what for each in statements(replace(AS_STATED, **change)) if not each.holds] == [broken]


def test_a_step_is_allowed_only_where_it_is() -> None:
    off = replace(AS_STATED, best=0.7)
    assert all(each.holds for each in statements(off))
    assert not all(each.holds for each in statements(off, steps=0))


def test_least_improvement_is_that_of_the_neediest_process() -> None:
    seconds = np.array([[0.0, 6.0, 2.4, 0.0], [0.0, 3.0, 6.0, 0.0]])
    least = least_read(seconds, 140.0)
    assert least == pytest.approx(100.0)
    after = seconds @ np.array([1, 1 / (1 + least / 100), 1 / 2.4, 1])
    assert after.max() == pytest.approx(4.0)
    assert least_meta(seconds, least) == pytest.approx(140.0)
    assert least_read(seconds, 0.0) == math.inf
    assert least_read(np.array([[0.0, 1.0, 1.0, 0.0]]), 0.0) == 0.0


def test_penalty_grows_when_another_rate_becomes_best() -> None:
    worse = {**FALLING_THEN_RISING, 0.65: FALLING_THEN_RISING[0.65] + 1.0}
    assert penalty(worse) > penalty(FALLING_THEN_RISING) > 0


def test_agreement_leaves_out_what_is_too_close_to_call() -> None:
    truth = made_up((0.0, 5.0, 5.2), (0.5, 5.0, 6.0), (1.0, 6.0, 0.0))
    guess = made_up((0.0, 5.2, 5.0), (0.5, 6.6, 5.0), (1.0, 6.0, 0.0))
    found = agreement(truth, guess)
    assert found.same_class == {0.0: None, 0.5: False, 1.0: True}
    assert found.differences[0.5] == pytest.approx(11.6 / 11 - 1)
    assert slowest(truth[1.0])[LFS_READ] == 6.0
