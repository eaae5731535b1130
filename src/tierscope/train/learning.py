"""How well a small network learns from samples in the order that a plan gives them."""

from collections.abc import Iterable

import numpy as np

from tierscope.train.digits import CLASSES, Digits, IntArray
from tierscope.train.perceptron import Perceptron, batches

GHOST, PLAIN = "ghost", "plain"
NETWORKS = (GHOST, PLAIN)


def learn(digits: Digits, written: IntArray, epochs: Iterable[IntArray], batch: int, network: str, seed: int) -> list[float]:  # fmt: skip
    """Accuracy on the test set after every epoch.

    `written`: which picture is sample s of the files; `epochs`: the samples that every rank reads, by (rank, turn). The same seed begins with
    the same weights, whatever the order.
    """
    random = np.random.default_rng([seed, 1])
    model = Perceptron(digits.train_pixels.shape[1], CLASSES, network == GHOST, random)
    accuracies: list[float] = []
    for samples in epochs:
        for taken in batches(written[samples], batch):
            model.step(digits.train_pixels[taken], digits.train_labels[taken])
        accuracies.append(model.accuracy(digits.test_pixels, digits.test_labels))
    return accuracies
