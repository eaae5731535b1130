"""A real task that is small enough to be trained hundreds of times: scikit-learn's hand-written digits, 1,797 pictures of 8 × 8.

The data set ships inside the package: nothing is downloaded. The split is fixed, whatever is varied: a seeded permutation, the first
1,280 for training, the other 517 to test on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NAME = "scikit-learn digits"
EXTRA = "shuffling"
TRAIN_SAMPLES = 1280  # 20 for each of 64 ranks
SPLIT_SEED = 0
CLASSES = 10
SORTED, RANDOM = "sorted", "random"
LAYOUTS = (SORTED, RANDOM)
_BRIGHTEST = 16.0


@dataclass(frozen=True, slots=True)
class Digits:
    """Pixels within 0–1, a row for each picture, and what it shows."""

    train_pixels: FloatArray
    train_labels: IntArray
    test_pixels: FloatArray
    test_labels: IntArray


@cache
def load_digits() -> Digits:
    try:
        from sklearn import datasets  # noqa: PLC0415  (optional, and slow)
    except ImportError as error:
        raise UserError(
            f"the digits dataset needs scikit-learn, which is not installed; pip install 'tierscope[{EXTRA}]'"
        ) from error
    pixels, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    pixels, labels = pixels[order].astype(np.float64) / _BRIGHTEST, labels[order].astype(np.int64)
    return Digits(pixels[:TRAIN_SAMPLES], labels[:TRAIN_SAMPLES], pixels[TRAIN_SAMPLES:], labels[TRAIN_SAMPLES:])


@contextmanager
def one_thread() -> Iterator[None]:
    """Products of small matrices take longer when threads share them, and their last digits depend on how many do. The package comes with scikit-learn."""
    load_digits()
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (optional)

    with threadpool_limits(1):
        yield


def written_order(labels: IntArray, layout: str, seed: int) -> IntArray:
    """In which order the samples were written to files. sorted: class after class, as folders of classes are packed; random: shuffled before."""
    if layout == SORTED:
        return np.argsort(labels, kind="stable")
    return np.random.default_rng([seed, 2]).permutation(len(labels))
