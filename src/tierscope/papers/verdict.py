"""What Tierscope gets for a published row, and whether that agrees with it."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal[
    "holds",
    "does not hold",
    "beside",  # an absolute figure of another machine: both are printed, neither is judged
    "not available here",
    "listed",  # setup, left open, quoted, ambiguous
]
Source = Literal[
    "arithmetic", "modelled", "input", "measured", "emulated", "simulated", "fitted", "conditional", "predicted", ""
]

UNEXPLAINED = "why it does not is not known"  # of a row that held when this version was released
RATIO_OFF, POINTS_OFF = 0.10, 3.0  # of a published ratio; or percentage points


@dataclass(frozen=True, slots=True)
class Verdict:
    """`ours`: the value with its interval and n, as text. `source`: how it was come by; "fitted" where published figures of the same study were used.
    `why`: the condition, or the reason for an outcome that is not "holds". `made`: when, for rows that come from a dated file."""

    id: str
    ours: str
    outcome: Outcome
    source: Source = ""
    why: str = ""
    made: str = ""


def ratio_agrees(ours: float, published: float) -> bool:
    """Within a tenth of a published ratio such as a speed-up."""
    return abs(ours / published - 1) <= RATIO_OFF


def gain_agrees(ours: float, published: float) -> bool:
    """Speed-ups whose gain was published as a percentage: +4 % is no tenth of 1.04, or no gain at all would agree with it."""
    return points_agree(100 * (ours - 1), 100 * (published - 1))


def direction(low: float, high: float, published: float) -> str:
    """Of a speed-up with its interval: whether it is one at all, and whether the published one was."""
    if low <= 1 <= high:
        return "no clear difference"
    return "the same direction" if (low > 1) == (published > 1) else "the opposite direction"


def points_agree(ours: float, published: float) -> bool:
    """Percentages: within three points, or a tenth."""
    return abs(ours - published) <= POINTS_OFF or ratio_agrees(ours, published)
