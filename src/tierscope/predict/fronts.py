"""Which options are worth showing: of each combination the smallest cache rate that does it, of all combinations those that no other beats."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tierscope.predict.exploration import Combination
from tierscope.spec.goal import Goal


def best_rate(group: Sequence[Combination], goal: Goal) -> Combination:
    """Of one combination's cache rates that fit: the smallest that meets the goal, or the one that misses it by least. Of those that do not, where none fits."""
    possible = [combination for combination in group if combination.feasibility.is_possible] or group
    meeting = [combination for combination in possible if combination.met]
    if meeting:
        return min(meeting, key=lambda combination: (combination.cache_rate, combination.shortfall(goal)))
    return min(possible, key=lambda combination: combination.shortfall(goal))


def certain_rate(group: Sequence[Combination], goal: Goal) -> Combination | None:
    """The smallest cache rate that fits and meets the goal at the bad end of its interval too; None: none does."""
    certain = [option for option in group if option.is_recommended and not option.missing(goal, worst=True)]
    return best_rate(certain, goal) if certain else None


def pareto(combinations: Sequence[Combination], order: Mapping[str, int], goal: Goal) -> list[Combination]:
    """Those that fit, meet the goal and are beaten by none in every respect: what meets it at the bad end of its interval too is not beaten by what may miss it.

    `order`: −1 for keys of which less is more.
    """
    meeting = [combination for combination in combinations if combination.is_recommended]

    def spent(combination: Combination) -> list[Any]:
        return [
            *(order[name] * value for name, value in combination.settings.items() if isinstance(value, int | float)),
            combination.cache_rate,
            bool(combination.missing(goal, worst=True)),
        ]

    beaten = set()
    for (left, this), (right, other) in itertools.permutations(enumerate(meeting), 2):
        pairs = list(zip(spent(this), spent(other), strict=True))
        if _texts(this) != _texts(other):
            continue
        if all(a <= b for a, b in pairs) and (any(a < b for a, b in pairs) or left < right):
            beaten.add(right)
    return [combination for place, combination in enumerate(meeting) if place not in beaten]


def ranked(options: Sequence[Combination], goal: Goal) -> list[Combination]:
    """Cheapest first; those with something that has no price last. Of what costs the same, what asks for the least beyond the study, then the smallest cache rate."""
    return sorted(
        options, key=lambda option: (option.price_rank, option.increase, option.cache_rate, option.shortfall(goal))
    )


def _texts(combination: Combination) -> list[str]:
    """Settings that are no numbers: which of two is more, nobody can say."""
    return [value for value in combination.settings.values() if isinstance(value, str)]
