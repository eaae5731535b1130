"""Successive halving: how many candidates enter each round, how long its runs may be, and who goes on.

Choose it where a short run already tells the bad from the good: a third goes on to runs three times as long, so all rounds cost about the
same. It assumes that ranks at a short run are roughly those at a long one; the last round, with whole runs and repetitions, decides.
Pure: times come from whoever measures. Jamieson and Talwalkar 2016.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierscope.analysis.statistics import FEW, Interval, interval

FACTOR = 3
FINALISTS = 3
LEAST_REPETITIONS = 3  # of the last round
MOST_REPETITIONS = 9  # from there on an interval can leave one outlier out
_MIDDLE_REPETITIONS = 2
_SHORTEST = 1e-9  # a time of zero is divided by, too


@dataclass(frozen=True, slots=True)
class Round:
    """What one round is: `entrants` candidates and the default, each `repetitions` times, with `share` of an epoch's samples."""

    entrants: int
    repetitions: int
    share: float
    epochs: int
    is_last: bool

    @property
    def runs(self) -> int:
        return (self.entrants + 1) * self.repetitions


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a run: what it takes before and after its epochs, and a whole epoch."""

    overhead_seconds: float
    epoch_seconds: float

    def run_seconds(self, share: float, epochs: int) -> float:
        return self.overhead_seconds + share * epochs * self.epoch_seconds

    def share_in(self, seconds: float, epochs: int) -> float:
        """The share of an epoch that fits; below zero: not even the overhead does."""
        return (seconds - self.overhead_seconds) / max(_SHORTEST, epochs * self.epoch_seconds)


def sizes(candidates: int) -> tuple[int, ...]:
    """How many enter each round; the last of them are the finalists. The default is always there and not counted."""
    entrants = [candidates]
    while entrants[-1] > FINALISTS:
        entrants.append(math.ceil(entrants[-1] / FACTOR))
    return tuple(entrants)


def next_round(
    entering: Sequence[int], remaining_seconds: float, cost: Cost, least_share: float, epochs: int, is_first: bool
) -> Round | None:
    """The round for the first of `entering` (this round's candidates and those of all that follow) in the time that is left.

    Runs get shorter first, then fewer candidates go on. None: not even one fits beside the default. The first round is never None.
    """
    few = min(2, epochs)  # an epoch that counts, after the first
    rounds_left = len(entering)
    is_last = rounds_left == 1
    entrants = entering[0]
    repetitions = LEAST_REPETITIONS if is_last else 1 if is_first else _MIDDLE_REPETITIONS
    most_share = max(least_share, float(FACTOR) ** (1 - rounds_left))
    for_a_run = remaining_seconds / rounds_left / ((entrants + 1) * repetitions)
    used = epochs if is_last and cost.run_seconds(most_share, epochs) <= for_a_run else few
    share = min(most_share, max(least_share, cost.share_in(for_a_run, used)))
    run_seconds = cost.run_seconds(share, used)
    if is_last and run_seconds > 0:
        fitting = int(remaining_seconds / ((entrants + 1) * run_seconds))
        repetitions = min(MOST_REPETITIONS, max(LEAST_REPETITIONS, fitting))
    if not is_first and (entrants + 1) * repetitions * run_seconds > remaining_seconds:
        entrants = min(entrants, int(remaining_seconds / (repetitions * run_seconds)) - 1)
    return Round(entrants, repetitions, share, used, is_last) if entrants >= 1 else None


def survivors(seconds: Mapping[int, Sequence[float]], keep: int) -> list[int]:
    """The `keep` candidates with the smallest medians, best first; of equals the one with the smaller number."""
    order = sorted(seconds, key=lambda number: (interval(seconds[number]).median, number))
    return order[:keep]


def speedup(default: Sequence[float], other: Sequence[float]) -> Interval:
    """How many times faster the other is, from repetitions that alternated.

    Six or more: each repetition gives a ratio, with the usual interval of their median. Fewer: all that any of the default's times
    against any of the other's would say; by chance alone it lies above 1 once in twenty times with three of each.
    """
    before, after = ([max(_SHORTEST, value) for value in values] for values in (default, other))
    if len(before) >= FEW:
        return interval([earlier / later for earlier, later in zip(before, after, strict=True)])
    middle = interval(before).median / interval(after).median
    return Interval(middle, min(before) / max(after), max(before) / min(after), len(before), "range")
