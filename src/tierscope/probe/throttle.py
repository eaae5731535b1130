"""A throttled or caching device told from one whose services vary: by the order of its operations' times.

Behind a throttle many operations take no time and then one waits for all of them, or the first ones are free and the others steady: single times
vary widely, sums of them hardly. Services that vary by themselves know nothing of each other: their sums vary as chance has it. What a
device is ahead of its steady pace at most is its credit.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
_LEAST = 48  # operations: with fewer nothing can be told
_BOUNDED = 0.5  # of the range that sums of independent times have: it hardly ever is below 0.7
_VARIES = 0.3  # less is a variation that nobody needs to explain
_BY_CHANCE, _SEVERAL = (
    4.0,
    3.0,
)  # standard deviations of a sum, and operations: so far ahead at the start, and it is no chance


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one process: how much services vary beside their order, and the idle time that the device makes up for."""

    variation: float
    credit_seconds: float


def pace_of(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], variation: float) -> Pace:
    """`variation`: of single times. Operations of one process in nanoseconds, one after another."""
    count = len(starts)
    times: FloatArray = (ends - starts) / 1e9
    later = times[count // 2 :]
    mean = float(later.mean()) if count >= _LEAST else 0.0
    if not mean:
        return Pace(variation, 0.0)
    own = float(later.std()) / mean
    ahead = _most_ahead(starts, ends, mean)
    if own > _VARIES and _wandering(later) < _BOUNDED * own * mean * np.sqrt(len(later)):
        return Pace(0.0, ahead)
    if own < variation and ahead > mean * (_SEVERAL + _BY_CHANCE * own * np.sqrt(count)):
        return Pace(own, ahead)
    return Pace(variation, 0.0)


def _wandering(times: FloatArray) -> float:
    """How far the sum of the first ones is from its mean at most, both ways together."""
    path = np.cumsum(times - times.mean())
    return float(path.max() - path.min())


def _most_ahead(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], mean: float) -> float:
    """Seconds of work done in any stretch beyond what the steady pace allows in it: the burst of a token bucket."""
    work = mean * np.arange(len(starts))
    before = np.minimum.accumulate(work - (starts - starts[0]) / 1e9)
    ahead: FloatArray = work + mean - (ends - starts[0]) / 1e9 - before
    return float(ahead.max())
