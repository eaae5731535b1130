"""All that a page or a figure is made of. Whoever wants one fills this in; nothing in `report` measures or looks at a disk."""

from dataclasses import dataclass, replace

from tierscope.analysis.beside import Beside
from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.characterise import Character
from tierscope.analysis.checkpoint_costs import CheckpointCosts
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.training import Training
from tierscope.analysis.wording import Finding
from tierscope.predict.exploration import Remedy
from tierscope.predict.explore import Exploration
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Estimate


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A group of points that are ranked by themselves: a case, or all that read the same amount of data."""

    name: str  # empty: there is only one
    breakdown: Breakdown  # as if nothing else had been run
    processes: Processes  # of its case, with this group ranked
    estimate: Estimate  # of the improvements that figures show
    exploration: Exploration  # of the goal and the two classes that are shown at first


@dataclass(frozen=True, slots=True)
class ReportSource:
    """`estimate` and `exploration` are those of the first part; usually there is only one."""

    name: str
    times: ClassTimes
    breakdown: Breakdown
    findings: list[Finding]
    conditions: Conditions
    processes: Processes  # all of them
    parts: tuple[ReportPart, ...]
    improvements_given: bool  # by the user; else they are only an example
    goal_given: bool  # by the study or the user; else the exploration's goal is only a suggestion
    workload: str  # the study in one sentence, a line for each case; empty: not known
    study_yaml: str | None  # the resolved study
    besides: tuple[Beside, ...] = ()  # this result and each of some others
    character: Character | None = None  # of one run, where its trace is at hand
    character_where: str = ""  # which run that is; empty: the only one
    training: Training | None = None  # where a network was trained for real
    costs: tuple[CheckpointCosts, ...] = ()  # of checkpoints, by point
    near_tiers: tuple[str, ...] = ()  # of the study: what is held on them can be priced
    remedies: tuple[Remedy, ...] = ()  # what would fit, where the best of a simulation does not

    @property
    def estimate(self) -> Estimate:
        return self.parts[0].estimate

    @property
    def exploration(self) -> Exploration:
        return self.parts[0].exploration

    @property
    def parts_left_out(self) -> int:
        return len(self.breakdown.groups) - len(self.parts)

    def of_part(self, part: ReportPart) -> "ReportSource":
        """As if nothing else had been run."""
        return replace(self, breakdown=part.breakdown, processes=part.processes, parts=(part,))
