"""Estimates and explorations of every group of points: each case, or all points that read the same amount of data, is ranked by itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tierscope.analysis.breakdown import Breakdown, PointGroup, break_down
from tierscope.analysis.groups import group_names
from tierscope.analysis.times import ClassTimes
from tierscope.predict.explore import Exploration
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Estimate, estimates, scaled

MOST_GROUPS = 24  # more are a sweep over the amount of data, of which nobody reads as many answers


@dataclass(frozen=True, slots=True)
class EstimatedGroups:
    """`after`: all points with the improvements. `parts`: an estimate of each group, by `names`; a single one has no name."""

    before: Breakdown
    after: Breakdown
    names: tuple[str, ...]
    parts: tuple[Estimate, ...]

    @property
    def left_out(self) -> int:
        """Groups beyond those that are estimated."""
        return len(self.before.groups) - len(self.parts)

    @property
    def improvements(self) -> dict[str, float]:
        return self.parts[0].improvements


@dataclass(frozen=True, slots=True)
class ExploredGroup:
    """What meets the goal among the points of one group; `case`: None where the study has none."""

    name: str
    case: str | None
    exploration: Exploration


@dataclass(frozen=True, slots=True)
class ExploredGroups:
    parts: tuple[ExploredGroup, ...]
    left_out: int = 0

    @property
    def first(self) -> Exploration:
        return self.parts[0].exploration


def estimate_groups(
    times: ClassTimes, before: Breakdown, improvements: Mapping[str, float], processes: Processes | None = None
) -> EstimatedGroups:
    """`processes`: those of these times, where they are known already."""
    after = break_down(scaled(times, improvements), before.ranked_by)
    known = processes or Processes.of(times, before.ranked_by)
    parts = estimates(known, before, improvements, after, MOST_GROUPS)
    return EstimatedGroups(before, after, tuple(group_names(before)[: len(parts)]), parts)


def explore_groups(
    breakdown: Breakdown, processes: Processes, explore_group: Callable[[Processes], Exploration]
) -> ExploredGroups:
    """`explore_group`: of the processes of a case, of which one group is ranked."""
    shown = breakdown.groups[:MOST_GROUPS]
    parts = tuple(
        ExploredGroup(name, group.case, explore_group(of_group))
        for name, group, of_group in _with_processes(breakdown, shown, processes)
    )
    return ExploredGroups(parts, len(breakdown.groups) - len(shown))


def _with_processes(
    breakdown: Breakdown, shown: tuple[PointGroup, ...], processes: Processes
) -> Iterator[tuple[str, PointGroup, Processes]]:
    for name, group in zip(group_names(breakdown), shown, strict=False):
        yield name, group, processes.in_group_of(group.best.sweep)
