"""One hidden layer, trained by many emulated ranks in one process; gradients are written out, so NumPy is all it needs.

Data-parallel training averages the gradients of ranks whose batches are equally large. That is the gradient of the mean loss over the
union of their batches, so one process computes a step of all ranks: arrays are by (rank, sample of its batch, …).

With `ghost` a rank normalises what its hidden units get over its own batch and nobody else's (batch normalisation as frameworks do it
unless told to synchronise; "ghost" batches: Hoffer, Hubara, Soudry, NIPS 2017). What is tested is normalised with running means and variances,
averaged over ranks: a framework would take those of one rank, or average them, when it writes a checkpoint.

Assumptions: stochastic gradient descent with momentum at a constant rate; no weight decay; ranks never miss a step.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tierscope.train.digits import FloatArray, IntArray

HIDDEN = 64
LEARNING_RATE = 0.2
MOMENTUM = 0.9
RUNNING = 0.1  # of a step, in running means and variances: torch's default
_SMALLEST_VARIANCE = 1e-5  # torch's default


@dataclass(frozen=True, slots=True)
class _Normalised:
    """Of each rank's batch."""

    values: FloatArray
    deviation: FloatArray
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, hidden: FloatArray) -> "_Normalised":
        mean, variance = hidden.mean(axis=1, keepdims=True), hidden.var(axis=1, keepdims=True)
        deviation = np.sqrt(variance + _SMALLEST_VARIANCE)
        return cls((hidden - mean) / deviation, deviation, mean, variance)

    def backward(self, gradient: FloatArray) -> FloatArray:
        """Through the mean and the variance of the batch too."""
        along = self.values * (gradient * self.values).mean(axis=1, keepdims=True)
        by_input: FloatArray = (gradient - gradient.mean(axis=1, keepdims=True) - along) / self.deviation
        return by_input


class Perceptron:
    def __init__(self, inputs: int, classes: int, ghost: bool, random: np.random.Generator, hidden: int = HIDDEN) -> None:  # fmt: skip
        self.ghost = ghost
        self.parameters: dict[str, FloatArray] = {
            "into": random.normal(0.0, np.sqrt(2 / inputs), (inputs, hidden)),
            "shift": np.zeros(hidden),
            **({"scale": np.ones(hidden)} if ghost else {}),
            "out": random.normal(0.0, np.sqrt(2 / hidden), (hidden, classes)),
            "bias": np.zeros(classes),
        }
        self.running_mean, self.running_variance = np.zeros(hidden), np.ones(hidden)
        self._velocity = {name: np.zeros_like(value) for name, value in self.parameters.items()}

    def step(self, pixels: FloatArray, labels: IntArray) -> float:
        """One step of all ranks: `pixels` by (rank, sample, pixel), `labels` by (rank, sample). The loss before it."""
        loss, gradients, normalised = self._backward(pixels, labels)
        if normalised is not None:
            self.running_mean += RUNNING * (normalised.mean.mean(axis=(0, 1)) - self.running_mean)
            self.running_variance += RUNNING * (normalised.variance.mean(axis=(0, 1)) - self.running_variance)
        for name, gradient in gradients.items():
            self._velocity[name] = MOMENTUM * self._velocity[name] + gradient
            self.parameters[name] = self.parameters[name] - LEARNING_RATE * self._velocity[name]
        return loss

    def gradients(self, pixels: FloatArray, labels: IntArray) -> tuple[float, dict[str, FloatArray]]:
        """The mean loss over all ranks' samples, and its derivative by every parameter."""
        loss, gradients, _ = self._backward(pixels, labels)
        return loss, gradients

    def accuracy(self, pixels: FloatArray, labels: IntArray) -> float:
        """The share of pictures that are named right; with running means and variances."""
        hidden = pixels @ self.parameters["into"]
        if self.ghost:
            hidden = (hidden - self.running_mean) / np.sqrt(self.running_variance + _SMALLEST_VARIANCE)
            hidden = hidden * self.parameters["scale"]
        scores = np.maximum(hidden + self.parameters["shift"], 0) @ self.parameters["out"] + self.parameters["bias"]
        return float((np.argmax(scores, axis=1) == labels).mean())

    def _backward(
        self, pixels: FloatArray, labels: IntArray
    ) -> tuple[float, dict[str, FloatArray], _Normalised | None]:
        own, count = self.parameters, labels.size
        hidden = _times(pixels, own["into"])
        normalised = _Normalised.of(hidden) if self.ghost else None
        scaled = hidden if normalised is None else normalised.values * own["scale"]
        active = np.maximum(scaled + own["shift"], 0)
        scores = _times(active, own["out"]) + own["bias"]
        chances = np.exp(scores - scores.max(axis=-1, keepdims=True))
        chances /= chances.sum(axis=-1, keepdims=True)
        rows, right = np.arange(count), labels.reshape(-1)
        flat = chances.reshape(count, -1)
        loss = float(-np.log(np.maximum(flat[rows, right], np.finfo(np.float64).tiny)).mean())
        flat[rows, right] -= 1.0
        by_score = chances / count
        by_scaled = _times(by_score, own["out"].T) * (active > 0)
        gradients = {
            "out": _outer(active, by_score),
            "bias": by_score.sum(axis=(0, 1)),
            "shift": by_scaled.sum(axis=(0, 1)),
        }
        by_hidden = by_scaled
        if normalised is not None:
            gradients["scale"] = (by_scaled * normalised.values).sum(axis=(0, 1))
            by_hidden = normalised.backward(by_scaled * own["scale"])
        gradients["into"] = _outer(pixels, by_hidden)
        return loss, gradients, normalised


def _times(left: FloatArray, right: FloatArray) -> FloatArray:
    """One product for all ranks: a small one for each would take several times as long."""
    product: FloatArray = (left.reshape(-1, left.shape[-1]) @ right).reshape(*left.shape[:-1], right.shape[-1])
    return product


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    """Summed over ranks and samples."""
    product: FloatArray = left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
    return product


def batches(samples: IntArray, batch: int) -> Iterable[IntArray]:
    """What all ranks take step by step, of an epoch by (rank, sample). A last batch of one sample has no variance, and is left out."""
    for start in range(0, samples.shape[1], batch):
        taken = samples[:, start : start + batch]
        if taken.shape[1] > 1 or batch == 1:
            yield taken
