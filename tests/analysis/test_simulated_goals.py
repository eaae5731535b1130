"""Goals of simulations: where only the value in the middle meets one it may be missed, and where that is not identified the bad end counts."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from tests.traces import TIERS, trace_of
from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.goals import about_goal, is_goal_met
from tierscope.analysis.severity import CRITICAL, WARNING, severity_of
from tierscope.analysis.simulated_intervals import au_interval, first_batch_interval
from tierscope.analysis.times import from_traces
from tierscope.analysis.wording import Finding
from tierscope.spec.goal import Goal
from tierscope.trace.description import Simulated


def simulated(low: float, high: float, epoch: tuple[float, float] = (1.0, 1.0), **about: Any) -> Breakdown:
    """One rank that reads for 5 s in an epoch of 10 s, of which it computes 5 s."""
    told = {"kind": "simulated", "method": "bound", "spread": {"1": [low, high]}}
    trace = trace_of(
        {(0, 1): {"GFS-READ": 5.0}}, sweep={"cache_rate": 0.5}, about=told, compute_seconds=5.0, stall_seconds=5.0
    )
    assert isinstance(trace.about, Simulated)
    trace = replace(trace, about=structs.replace(trace.about, **{"epoch_spread": {1: epoch}, **about}))
    return break_down(from_traces([trace], TIERS, "busy"))


def assert_says_how_unsure(finding: Finding, met: bool) -> None:
    """A goal that counts as met may still be missed: that is a warning."""
    assert finding.text.startswith("the goal of ")
    assert "may be missed" in finding.text
    assert (finding.evidence["decided"] == "met") is met
    assert severity_of(finding) == (WARNING if met else CRITICAL)


NARROW, WIDE = (0.9, 1.2), (0.5, 4.0)
WHY = {"unidentified": ("nobody knows",)}


@pytest.mark.parametrize(
    ("spread", "about", "goal", "kind", "met"),
    [
        (NARROW, {}, Goal("io", 6.0), "goal_met", True),
        (NARROW, {}, Goal("io", 5.5), "goal_unsure", True),
        (NARROW, {}, Goal("io", 4.6), "goal_missed", False),
        (NARROW, WHY, Goal("io", 5.5), "goal_unsure", False),
        (NARROW, WHY, Goal("io", 4.6), "goal_unsure", False),
        (NARROW, WHY, Goal("io", 4.4), "goal_missed", False),
        (NARROW, WHY, Goal("io", 6.0), "goal_met", True),
        (WIDE, {}, Goal("io", 6.0), "goal_unsure", False),
        (WIDE, {}, Goal("io", 20.0), "goal_met", True),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("epoch", 29.0), "goal_unsure", False),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("epoch", 30.0), "epoch_goal_met", True),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("au", 0.4), "goal_unsure", False),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("au", 0.8), "goal_unsure", False),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("au", 0.16), "au_goal_met", True),
        (WIDE, {"epoch_spread": {1: (0.6, 3.0)}}, Goal("au", 0.9), "au_goal_missed", False),
    ],
)
def test_a_goal_is_judged_by_what_is_known(
    spread: tuple[float, float], about: dict[str, Any], goal: Goal, kind: str, met: bool
) -> None:
    breakdown = simulated(*spread, **about)
    (finding,) = about_goal(breakdown, goal)
    assert finding.kind == kind
    if kind == "goal_unsure":
        assert_says_how_unsure(finding, met)
    assert is_goal_met(breakdown, goal) is met


@pytest.mark.parametrize(
    ("seconds", "goal", "said", "met"),
    [
        ((5.0, 5.4), 5.3, "its range 5 s to 5.4 s; the median decides: met", True),
        ((5.0, 5.4), 5.1, "its range 5 s to 5.4 s; the median decides: missed", False),
        ((5.0, 5.4), 5.4, "is met", True),
        ((5.0, 5.4), 4.9, "is missed by", False),
        ((5.0,), 5.0, "is met", True),
        ((5.0, *(5.1,) * 8, 5.4), 5.3, "is met", True),
        ((5.0, 5.0, *(5.1,) * 6, 5.4, 5.4), 5.2, "its 95% interval 5 s to 5.4 s; the median decides: met", True),
    ],
)
def test_a_goal_inside_what_was_measured_may_be_missed(
    seconds: tuple[float, ...], goal: float, said: str, met: bool
) -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": value}}, repetition=number, sweep={"cache_rate": 0.5})
        for number, value in enumerate(seconds, start=1)
    ]
    breakdown = break_down(from_traces(traces, TIERS, "busy"))
    (finding,) = about_goal(breakdown, Goal("io", goal))
    assert said in finding.text
    assert (finding.kind == "goal_unsure") is ("the median decides" in said)
    if finding.kind == "goal_unsure":
        assert_says_how_unsure(finding, met)
    assert is_goal_met(breakdown, Goal("io", goal)) is met


def test_au_and_first_batch_have_the_ends_of_epoch_and_io() -> None:
    best = simulated(*WIDE, epoch=(0.8, 2.0), first_batch={1: (0.1, 0.3)}).best
    au, first = au_interval(best), first_batch_interval(best)
    assert au is not None
    assert (au.low, au.median, au.high) == pytest.approx((0.25, 0.5, 0.625))
    assert first is not None
    assert (first.low, first.median, first.high) == pytest.approx((0.15, 0.3, 1.2))
