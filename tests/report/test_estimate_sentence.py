"""The sentence of an estimate is about what points are ranked by, and says no more than that."""

import pytest

from tests.analysis.test_best import epochs
from tests.predict.clocked import clocked
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.goals import about_goal
from tierscope.predict.whatif import estimate
from tierscope.report.estimate_sentence import estimate_sentence
from tierscope.spec.goal import Goal

RATES = ((0.0, 2.0, 2.1, 1.1), (1.0, 0.2, 1.03, 0.03))  # cache rate, I/O, epoch, stall


def sentence(improvements: dict[str, float], compute: float) -> str:
    points = [({"cache_rate": rate}, epochs([whole], io, stall, compute)) for rate, io, whole, stall in RATES]
    times = clocked(points)
    return estimate_sentence(estimate(times, break_down(times), improvements))


@pytest.mark.parametrize(
    ("improvements", "compute", "said"),
    [
        (
            {"GFS-READ": 300.0},
            1.0,
            "With GFS-READ +300 %: the epoch takes about 1 s instead of 1.03 s (-2.9 %), at cache_rate 100%, "
            "with 50 ms of I/O instead of 200 ms (-75.0 %); the bottleneck is then GFS-READ.",
        ),
        ({"LFS-READ": 50.0}, 1.0, "LFS-READ +50 % changes nothing: the best is still an epoch of 1.03 s, at cache_rate 100%."),
        ({"LFS-READ": 50.0}, 0.0, "LFS-READ +50 % changes nothing: the best is still 200 ms of I/O per epoch, at cache_rate 100%."),
        (
            {"GFS-READ": 300.0},
            0.0,
            "With GFS-READ +300 %: 50 ms of I/O per epoch instead of 200 ms (-75.0 %), at cache_rate 100%; the bottleneck is then GFS-READ.",
        ),
    ],
)  # fmt: skip
def test_with_compute_the_epoch_comes_first(improvements: dict[str, float], compute: float, said: str) -> None:
    assert sentence(improvements, compute) == said


@pytest.mark.parametrize(
    ("goal", "end", "advice"),
    [
        (1.01, "missed by 20 ms: the shortest is 1.03 s; the largest class of its I/O is GFS-READ", "start with that class"),
        (
            0.9,
            "missed by 130 ms: the shortest is 1.03 s; time outside I/O alone exceeds the goal, so no storage can meet it",
            "reduce compute and other work beside I/O",
        ),
    ],
)  # fmt: skip
def test_compute_is_not_called_io_where_an_epoch_misses_its_goal(goal: float, end: str, advice: str) -> None:
    """Said before: mostly limited by GFS-READ, which took 3 % of the epoch."""
    points = [({"cache_rate": rate}, epochs([whole], io, stall, 1.0)) for rate, io, whole, stall in RATES]
    (finding,) = about_goal(break_down(clocked(points)), Goal("epoch", goal))
    assert finding.text.endswith(end)
    assert finding.suggestion == advice
