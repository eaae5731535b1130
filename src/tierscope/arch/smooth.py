"""A smooth function of several sizes through measured points, with how sure it is: Gaussian-process regression (Rasmussen and Williams, 2006).

Values are logarithms of seconds over a simple guess. Points near a measured one are sure, those far from all of them go back to the mean with the whole spread of what was
measured. The function is a sum of two: one that changes slowly with sizes, and a rougher one for what a library's choice of kernels does to a few sizes at a time. How far "near" is in
each size, and how large each part is, is chosen by leaving out each measured point in turn and predicting it from all others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PARTS = 2
MOST_VARIANCE = 25.0  # of logarithms of seconds: a factor of e**5 as one deviation is no measurement
_FITTED = 900  # points that the reach is chosen on
_JITTER = 1e-8
_REACHES = (0.25, 0.25)  # of each part, of what points span, as the search starts; and its share of the variance
_SHARES = (0.8, 0.15)
_NOISE = 0.05
_ROUNDS, _HALVINGS, _ENOUGH = 80, 12, 1e-5
_STEEP = 1e-4  # so much of the slope must a step gain
_NARROWEST, _WIDEST = 1e-2, 1e3  # reaches, in those that the search starts with: beyond that nothing changes
_LEAST, _MOST = 1e-4, 4.0  # variances, in that of all values


@dataclass(frozen=True, slots=True)
class SmoothPart:
    """`reach`: by feature, over what difference values stay alike; `spread`: variance that it explains."""

    reach: tuple[float, ...]
    spread: float


@dataclass(frozen=True, slots=True)
class Smooth:
    """`parts`: the smooth one first; `noise`: variance that no size explains."""

    parts: tuple[SmoothPart, ...]
    noise: float


def fit(points: Array, values: Array) -> Smooth:
    """The reaches and variances with the best prediction of points left out, of the first several hundred: quasi-Newton steps (BFGS) in their logarithms."""
    points, values = points[:_FITTED], values[:_FITTED]
    variance = max(float(np.var(values)), 1e-6)
    search = _Search(points, (values - np.mean(values)) / math.sqrt(variance), MOST_VARIANCE / variance)
    chosen = _lowest(search, search.start)
    parts, noise = search.read(chosen)
    return Smooth(tuple(SmoothPart(part.reach, part.spread * variance) for part in parts), noise * variance)


def left_out(points: Array, values: Array, smooth: Smooth) -> tuple[Array, Array]:
    """Each point predicted from all others: errors and standard deviations."""
    inverse, centred = _solved(points, values, smooth)
    diagonal = np.diag(inverse)
    return -(inverse @ centred) / diagonal, np.sqrt(1 / diagonal)


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
        inverse, centred = _solved(points, values, smooth)
        return cls(points, smooth, float(np.mean(values)), inverse @ centred, inverse)

    def at(self, asked: Array) -> tuple[Array, Array]:
        """Means, and the covariance of what is asked: points that are alike err alike."""
        across = _alike(asked, self.points, self.smooth)
        inner = _alike(asked, asked, self.smooth) - across @ self._inverse @ across.T
        return self.mean + across @ self._weights, inner


def _alike(left: Array, right: Array, smooth: Smooth) -> Array:
    """Covariance: Matérn's function of order 5/2 for the smooth part, 3/2 for the rough one."""
    return np.asarray(
        sum(
            part.spread * _matern(rough, _squares(left, right, np.array(part.reach)))[0]
            for rough, part in enumerate(smooth.parts)
        )
    )


def _squares(left: Array, right: Array, reach: Array) -> Array:
    a, b = left / reach, right / reach
    return np.asarray(np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T, 0.0))


def _matern(rough: int, squares: Array) -> tuple[Array, Array]:
    """The function, and minus twice its slope over squares."""
    distance = np.sqrt((3 if rough else 5) * squares)
    fading = np.exp(-distance)
    if rough:
        return (1 + distance) * fading, 3 * fading
    return (1 + distance + distance**2 / 3) * fading, 5 / 3 * (1 + distance) * fading


def _solved(points: Array, values: Array, smooth: Smooth) -> tuple[Array, Array]:
    matrix = _alike(points, points, smooth)
    matrix[np.diag_indices_from(matrix)] += smooth.noise + _JITTER * sum(part.spread for part in smooth.parts)
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64), values - np.mean(values)


class _Search:
    """Settings are logarithms: of each part's reaches and spread, one part after the other, and of the noise."""

    def __init__(self, points: Array, values: Array, most: float = _MOST) -> None:
        self._points, self._values = points, values
        span = np.log(np.maximum(points.max(0) - points.min(0), 1.0))
        starts = [[*(span + math.log(_REACHES[part])), math.log(_SHARES[part])] for part in range(PARTS)]
        self.start = np.array([*np.concatenate(starts), math.log(_NOISE)])
        variances = np.zeros(len(self.start), dtype=bool)
        variances[span.size :: span.size + 1] = variances[-1] = True
        self.low = np.where(variances, math.log(_LEAST), self.start + math.log(_NARROWEST))
        self.high = np.where(variances, math.log(min(most, _MOST)), self.start + math.log(_WIDEST))

    def read(self, settings: Array) -> tuple[tuple[SmoothPart, ...], float]:
        by_part = np.exp(settings[:-1]).reshape(PARTS, -1)
        parts = tuple(SmoothPart(tuple(map(float, row[:-1])), float(row[-1])) for row in by_part)
        return parts, math.exp(settings[-1])

    def loss(self, settings: Array) -> tuple[float, Array]:
        """Minus the logarithm of the density that points left out get, for each point, and its slope."""
        parts, noise = self.read(settings)
        inverse, values = _solved(self._points, self._values, Smooth(parts, noise))
        diagonal = np.diag(inverse)
        weights = inverse @ values
        if not (np.isfinite(weights).all() and (diagonal > 0).all()):
            return math.inf, np.zeros_like(settings)
        count = len(values)
        loss = float(np.sum(weights**2 / diagonal - np.log(diagonal))) / (2 * count)
        by_diagonal = -(1 / diagonal + (weights / diagonal) ** 2) / 2
        outer = np.outer(inverse @ (weights / diagonal), weights)
        by_matrix = -((outer + outer.T) / 2 + (inverse * by_diagonal) @ inverse) / count
        slopes = [self._part_slopes(rough, part, by_matrix) for rough, part in enumerate(parts)]
        return loss, np.array([*np.concatenate(slopes), noise * np.trace(by_matrix)])

    def _part_slopes(self, rough: int, part: SmoothPart, by_matrix: Array) -> list[float]:
        reach = np.array(part.reach)
        alike, slope = _matern(rough, _squares(self._points, self._points, reach))
        scaled = self._points / reach
        weighed = part.spread * by_matrix * slope
        nearer = 2 * ((scaled**2).T @ weighed.sum(1) - np.einsum("if,if->f", scaled, weighed @ scaled))
        return [*nearer, part.spread * float(np.sum(by_matrix * alike))]


def _lowest(search: _Search, start: Array) -> Array:
    """By BFGS with steps that are halved until they gain."""
    place, (loss, slope) = start, search.loss(start)
    inverse = np.eye(len(start)) / max(1.0, float(np.linalg.norm(slope)))
    for _ in range(_ROUNDS):
        way = -inverse @ slope
        if way @ slope >= 0:
            inverse = np.eye(len(start))
            way = -slope
        way *= min(1.0, 2.0 / max(1e-12, float(np.abs(way).max())))
        for halving in range(_HALVINGS):
            there = np.clip(place + way / 2**halving, search.low, search.high)
            new_loss, new_slope = search.loss(there)
            if new_loss <= loss + _STEEP * float(slope @ (there - place)):
                break
        else:
            break
        moved, turned, gained = there - place, new_slope - slope, loss - new_loss
        place, loss, slope = there, new_loss, new_slope
        if gained < _ENOUGH:
            break
        if (curve := float(moved @ turned)) > 1e-10:
            away = np.eye(len(start)) - np.outer(moved, turned) / curve
            inverse = away @ inverse @ away.T + np.outer(moved, moved) / curve
    return np.asarray(place)


def features_of(rows: Sequence[Sequence[float]]) -> Array:
    return np.array(rows, dtype=np.float64)
