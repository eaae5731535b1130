"""Combinations that may be ranked against each other: those of one case that read the same amount of data in an epoch, as in a measured sweep.

Half the files are read in half the time, but that makes no system better: such combinations have lists of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tierscope.analysis.cases import case_of
from tierscope.analysis.comparable import comparable_groups
from tierscope.jsonable import JsonObject
from tierscope.predict.exploration import Combination, Remedy, SimulatedExploration
from tierscope.units import about_bytes


@dataclass(frozen=True, slots=True)
class CombinationGroup:
    """`amount`: bytes of an epoch; None: not known. `pareto`: of these alone, cheapest first."""

    case: str | None
    amount: float | None
    combinations: tuple[Combination, ...]
    pareto: tuple[Combination, ...]
    remedies: tuple[Remedy, ...] = ()  # where none of them fits and meets the goal

    @property
    def name(self) -> str:
        """What its list is called, where there are several."""
        of_case = "" if self.case is None else f"Case {self.case}"
        amount = "" if self.amount is None else f"{about_bytes(self.amount)} per epoch"
        return ", ".join(part for part in (of_case, amount) if part)


def rank_apart(
    combinations: Sequence[Combination], rank: Callable[[Sequence[Combination]], Sequence[Combination]]
) -> list[Combination]:
    """What `rank` makes of every group, one after the other."""
    return [combination for group in apart(combinations) for combination in rank(group)]


def groups_apart(exploration: SimulatedExploration) -> list[CombinationGroup]:
    """Case by case in the order of the study; in each, those that read the most first."""
    groups = []
    for group in apart(exploration.combinations):
        settings = [combination.settings for combination in group]
        pareto = tuple(option for option in exploration.pareto if option.settings in settings)
        instead = tuple(remedy for remedy in exploration.remedies if remedy.option.settings in settings)
        case, amount = case_of(group[0].settings), group[0].read_bytes
        groups.append(CombinationGroup(case, amount, tuple(group), pareto, instead))
    return groups


def apart(combinations: Sequence[Combination]) -> list[list[Combination]]:
    """The groups, in the order of `groups_apart`."""
    by_case: dict[str | None, list[Combination]] = {}
    for combination in combinations:
        by_case.setdefault(case_of(combination.settings), []).append(combination)
    return [
        [of_case[index] for index in group]
        for of_case in by_case.values()
        for group in comparable_groups([combination.read_bytes for combination in of_case])
    ]


def apart_json(exploration: SimulatedExploration, shown: Callable[[Combination], JsonObject]) -> JsonObject:
    """Where there are several groups, each with its own list, and none over all of them."""
    groups = groups_apart(exploration)
    if len(groups) < 2:
        return {}
    lists = [
        {
            **({} if group.case is None else {"case": group.case}),
            "amount": group.amount,
            "settings": [combination.settings for combination in group.combinations],
            "pareto": [shown(combination) for combination in group.pareto],
        }
        for group in groups
    ]
    return {"pareto": None, "groups" if groups[0].case is None else "cases": lists}
