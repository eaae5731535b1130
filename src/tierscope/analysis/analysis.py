"""The Analysis of a result: its class times, their breakdown, and what a reader must know about them."""

from collections.abc import Callable
from dataclasses import dataclass

from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.training import Training
from tierscope.analysis.wording import Finding
from tierscope.spec.goal import Goal
from tierscope.spec.study import Study
from tierscope.trace.trace import RunKey, Trace


@dataclass(frozen=True, slots=True)
class Analysis:
    name: str
    times: ClassTimes
    breakdown: Breakdown
    findings: list[Finding]
    conditions: Conditions
    goal: Goal | None
    study: Study | None = None
    training: Training | None = None  # of all points, also those that read nothing and are not in the times
    load_run: Callable[[RunKey], Trace] | None = None  # a run that it was made of; one that was read is not read again
