"""How long the rest of a study may take, from what was measured of it so far: an estimate with a low and a high end, or nothing.

A run that was done before at the same point takes as long again. Another point takes what known runs took per sample of a rank, or per byte of a rank: whichever of these is
less is the low end, the largest the high end, and neither is less than the emulated compute. So points of other sizes count with their size, and where nobody
knows which size matters, the range says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_LEAST_SHARE = 0.02  # of a run, before its pace says anything


@dataclass(frozen=True, slots=True)
class RunSize:
    """What one rank has to do in a run, over all epochs."""

    point: int
    samples: int
    nbytes: float
    compute_seconds: float


@dataclass(frozen=True, slots=True)
class Remaining:
    low_seconds: float
    high_seconds: float


@dataclass(frozen=True, slots=True)
class TimedRun:
    size: RunSize
    seconds: float


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """`share`: how much of it the slowest rank has done."""

    size: RunSize
    elapsed_seconds: float
    share: float

    @property
    def projected(self) -> TimedRun | None:
        """At its pace so far; None: too early to tell."""
        if self.share < _LEAST_SHARE or self.elapsed_seconds <= 0:
            return None
        return TimedRun(self.size, self.elapsed_seconds / self.share)


def remaining(done: Sequence[TimedRun], current: CurrentRun | None, todo: Sequence[RunSize]) -> Remaining | None:
    """`done`: runs that this command finished. None: nothing is known yet."""
    projected = current.projected if current else None
    known = [*done, *([projected] if projected else [])]
    if not known:
        return None if todo or current else Remaining(0.0, 0.0)
    low = high = 0.0
    if current is not None:
        ends = (projected.seconds, projected.seconds) if projected else _expected(current.size, done)
        low, high = (max(0.0, end - current.elapsed_seconds) for end in ends)
    for size in todo:
        shortest, longest = _expected(size, known)
        low, high = low + shortest, high + longest
    return Remaining(low, high)


def _expected(size: RunSize, known: Sequence[TimedRun]) -> tuple[float, float]:
    same = [run.seconds for run in known if run.size.point == size.point]
    if same:
        return min(same), max(same)
    guesses = [run.seconds * size.samples / run.size.samples for run in known if run.size.samples]
    guesses += [run.seconds * size.nbytes / run.size.nbytes for run in known if run.size.nbytes]
    guesses = guesses or [run.seconds for run in known]
    return max(size.compute_seconds, min(guesses)), max(size.compute_seconds, *guesses)
