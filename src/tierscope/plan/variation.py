"""The one rule by which services vary: times a lognormal factor of mean 1 with the given coefficient of variation.

Lognormal, because real services have a long tail and are never negative. With variation v the factor's logarithm is normal with the variance
ln(1 + v²) and the mean −ln(1 + v²)/2. What emulates a tier draws here; what simulates it by events draws the same in compiled code (`predict/engine/stations.py`);
the bound and calibration assume it.
"""

import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def log_parameters(variation: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the factor's logarithm."""
    variance = np.log1p(np.square(np.asarray(variation, np.float64)))
    return -variance / 2, np.sqrt(variance)


def factor(variation: float, dice: random.Random) -> float:
    """Of one service."""
    return dice.lognormvariate(*_log_parameters_of_one(variation))


def mean_factors(variation: FloatArray, services: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Of the sum of so many services of each station: nearly lognormal too, with the variation of a mean (Fenton and Wilkinson's approximation)."""
    factors: FloatArray = rng.lognormal(*log_parameters(variation / np.sqrt(np.maximum(services, 1))))
    return factors


@lru_cache(maxsize=64)
def _log_parameters_of_one(variation: float) -> tuple[float, float]:
    mean, deviation = log_parameters(variation)
    return float(mean), float(deviation)
