"""Which processes can ever be the slowest.

The time of a process is a sum of class times, each multiplied by a factor of at least zero that an improvement decides. The slowest
process is the maximum of such linear functions, so only those on the upper convex hull of all processes can be it, whatever the factors.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FEW = 16  # this many are kept without looking closer
_MOST_CELLS = 4096


def upper_hull(times: Floats) -> npt.NDArray[np.intp]:
    """Rows of `times` (processes × classes) that can have the largest sum under any factors ≥ 0, in ascending order.

    A few more than those may be among them, never fewer: the maximum over them is the maximum over all, up to rounding. Cones of
    directions are split in halves; inside a cone, a row that another row exceeds at every corner is out.
    """
    rows, classes = np.unique(times, axis=0, return_index=True)[1], times.max(axis=0) > 0
    rows.sort()
    scaled = times[rows][:, classes]
    if not classes.any() or len(rows) == 1:
        return rows[:1]
    scaled = scaled / scaled.max(axis=0)  # else most cones would look at classes that hardly count
    kept = np.zeros(len(rows), dtype=bool)
    cones = [(np.eye(scaled.shape[1]), np.arange(len(rows)))]
    looked_at = 0
    while cones:
        corners, alive = cones.pop()
        looked_at += 1
        alive = alive[_possible(scaled[alive] @ corners.T)]
        if len(alive) <= _FEW or looked_at + len(cones) > _MOST_CELLS:
            kept[alive] = True
        elif not kept[alive].all():
            cones += [(half, alive) for half in _halves(corners)]
    return rows[kept]


def _possible(values: Floats) -> npt.NDArray[np.bool_]:
    """Which rows can be the largest somewhere in a cone, given their values at its corners."""
    tops = np.unique([*values.argmax(axis=0), values.sum(axis=1).argmax()])
    possible = np.ones(len(values), dtype=bool)
    for top in tops:
        possible &= (values > values[top]).any(axis=1)
    possible[tops] = True
    return possible


def _halves(corners: Floats) -> tuple[Floats, Floats]:
    """The cone split across its longest edge."""
    lengths = ((corners[:, None] - corners[None]) ** 2).sum(axis=2)
    first, second = np.unravel_index(lengths.argmax(), lengths.shape)
    middle = (corners[first] + corners[second]) / 2
    left, right = corners.copy(), corners.copy()
    left[first] = right[second] = middle
    return left, right
