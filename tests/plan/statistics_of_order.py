"""How far orders are from uniformly random ones, and how far chance alone takes them."""

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Orders = npt.NDArray[np.int64]  # one row per epoch: the sample at each position


def chi_square_limit(degrees: int, probability: float = 0.999) -> float:
    """The quantile of the chi-square distribution, by Wilson and Hilferty."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + NormalDist().inv_cdf(probability) * math.sqrt(spread)) ** 3)


def position_excess(orders: Orders) -> float:
    """Is every sample at every position equally often? Above 1: less uniform than chance in 999 of 1000 cases.

    A table of n × n counts that both sum to the number of epochs has (n − 1)² degrees of freedom; permutations
    without replacement inflate the plain statistic by n ÷ (n − 1).
    """
    epochs, n = orders.shape
    counts = np.zeros((n, n))
    for position in range(n):
        counts[position] = np.bincount(orders[:, position], minlength=n)
    expected = epochs / n
    statistic = ((counts - expected) ** 2 / expected).sum() * (n - 1) / n
    return float(statistic / chi_square_limit((n - 1) ** 2))


def successor_excess(orders: Orders) -> float:
    """Is every distance from a sample to the next one equally often? Rotations and strides are not."""
    epochs, n = orders.shape
    distances = (np.diff(orders, axis=1) % n).ravel()
    counts = np.bincount(distances, minlength=n)[1:]
    expected = epochs  # n − 1 pairs per epoch over n − 1 distances
    return float(((counts - expected) ** 2 / expected).sum() / chi_square_limit(n - 2))


def pair_excess(orders: Orders) -> float:
    """Does each sample follow each other one equally often?"""
    epochs, n = orders.shape
    counts = np.bincount((orders[:, :-1] * n + orders[:, 1:]).ravel(), minlength=n * n).reshape(n, n)
    off_diagonal = counts[~np.eye(n, dtype=bool)]
    expected = epochs / n
    return float(((off_diagonal - expected) ** 2 / expected).sum() / chi_square_limit(n * (n - 1) - 1))
