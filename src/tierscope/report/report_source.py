"""All that a page or a figure is made of. Whoever wants one fills this in; nothing in `report` measures or looks at a disk."""

from collections.abc import Mapping
from dataclasses import dataclass

from tierscope.analysis.beside import Beside
from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.characterise import Character
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.training import Training
from tierscope.analysis.wording import Finding
from tierscope.dataset.holdings import HeldBytes
from tierscope.predict.explore import Exploration
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Estimate


@dataclass(frozen=True, slots=True)
class ReportSource:
    name: str
    times: ClassTimes
    breakdown: Breakdown
    findings: list[Finding]
    conditions: Conditions
    processes: Processes  # all of them
    estimate: Estimate  # of the improvements that figures show
    improvements_given: bool  # by the user; else they are only an example
    exploration: Exploration  # of the goal and the two classes that are shown at first
    goal_given: bool  # by the study or the user; else the exploration's goal is only a suggestion
    held: (
        Mapping[int, Mapping[str, HeldBytes]] | None
    )  # by index into breakdown.summary, then by near tier; None: not known
    workload: str  # the study in one sentence; empty: not known
    study_yaml: str | None  # the resolved study
    beside: Beside | None = None  # this result and another one
    character: Character | None = None  # of one run, where its trace is at hand
    character_where: str = ""  # which run that is; empty: the only one
    training: Training | None = None  # where a network was trained for real
