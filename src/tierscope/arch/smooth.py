"""A smooth function of several sizes through measured points, with how sure it is: Gaussian-process regression (Rasmussen and Williams, 2006).

Values are logarithms of seconds over a simple guess. Points near a measured one are sure, those far from all of them go back to the mean with the whole spread of what was
measured. How far "near" is, in each size, is chosen by leaving out each measured point in turn and predicting it from all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STEPS = (0.5, 2.0)
_ROUNDS = 12
_FITTED = 900  # points that the reach is chosen on
_JITTER = 1e-9
_NOISES = (0.02, 0.04, 0.08, 0.15, 0.3)  # share of the spread that does not depend on sizes


@dataclass(frozen=True, slots=True)
class Smooth:
    """`reach`: by feature, over what difference values stay alike; `noise`: variance that no size explains, `spread`: variance that sizes explain."""

    reach: tuple[float, ...]
    spread: float
    noise: float


def fit(points: Array, values: Array) -> Smooth:
    """The reach and noise with the best prediction of points left out, of the first several hundred."""
    points, values = points[:_FITTED], values[:_FITTED]
    span = np.maximum(points.max(0) - points.min(0), 1.0)
    reach = span / 2
    noise = _NOISES[2]
    best = _left_out_loss(points, values, reach, noise)
    for _ in range(_ROUNDS):
        before = best
        for feature in range(points.shape[1]):
            for step in _STEPS:
                trial = reach.copy()
                trial[feature] *= step
                if (loss := _left_out_loss(points, values, trial, noise)) < best:
                    best, reach = loss, trial
                    break
        for level in _NOISES:
            if (loss := _left_out_loss(points, values, reach, level)) < best:
                best, noise = loss, level
        if before - best < 1e-3 * len(values):
            break
    spread = _spread(points, values, reach, noise)
    return Smooth(tuple(float(width) for width in reach), spread, spread * noise)


def left_out(points: Array, values: Array, smooth: Smooth) -> tuple[Array, Array]:
    """Each point predicted from all others: errors and standard deviations."""
    inverse, centred = _solved(points, values, np.array(smooth.reach), smooth.noise / smooth.spread)
    diagonal = np.diag(inverse)
    errors = (inverse @ centred) / diagonal
    return -errors, np.sqrt(smooth.spread / diagonal)


@dataclass(frozen=True, slots=True)
class Surface:
    """A fitted function, ready to be asked."""

    points: Array
    smooth: Smooth
    mean: float
    _weights: Array
    _inverse: Array

    @classmethod
    def through(cls, points: Array, values: Array, smooth: Smooth) -> "Surface":
        reach, noise = np.array(smooth.reach), smooth.noise / smooth.spread
        inverse, centred = _solved(points, values, reach, noise)
        return cls(points, smooth, float(np.mean(values)), inverse @ centred, inverse)

    def at(self, asked: Array) -> tuple[Array, Array]:
        """Means, and the covariance of what is asked: points that are alike err alike."""
        reach = np.array(self.smooth.reach)
        across = _alike(asked, self.points, reach)
        inner = _alike(asked, asked, reach) - across @ self._inverse @ across.T
        return self.mean + across @ self._weights, self.smooth.spread * inner


def _alike(left: Array, right: Array, reach: Array) -> Array:
    """Matérn's function of order 5/2."""
    a, b = left / reach, right / reach
    squares = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T, 0.0)
    distance = np.sqrt(5 * squares)
    return np.asarray((1 + distance + distance**2 / 3) * np.exp(-distance))


def _solved(points: Array, values: Array, reach: Array, noise: float) -> tuple[Array, Array]:
    matrix = _alike(points, points, reach) + (noise + _JITTER) * np.eye(len(points))
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64), values - np.mean(values)


def _spread(points: Array, values: Array, reach: Array, noise: float) -> float:
    inverse, centred = _solved(points, values, reach, noise)
    diagonal = np.diag(inverse)
    return float(np.mean((inverse @ centred) ** 2 / diagonal))


def _left_out_loss(points: Array, values: Array, reach: Array, noise: float) -> float:
    """Minus the logarithm of the density that points left out get, with the spread that fits best."""
    inverse, centred = _solved(points, values, reach, noise)
    diagonal = np.diag(inverse)
    squares = (inverse @ centred) ** 2 / diagonal  # of errors over variances
    return float(0.5 * len(values) * np.log(np.mean(squares)) - 0.5 * np.sum(np.log(diagonal)))


def features_of(rows: Sequence[Sequence[float]]) -> Array:
    return np.array(rows, dtype=np.float64)
