"""How many bytes each sample has, where they differ: normally distributed, a pure function of (seed, sample)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tierscope.plan.permutation import IndexArray, derive_key, mixed
from tierscope.spec.study import Dataset

_FARTHEST = 4  # standard deviations from the mean


@dataclass(frozen=True)
class SampleSizes:
    """`ragged`: every sample has its own size; else all of a file have the same."""

    mean: int
    stdev: int
    samples_per_file: int
    seed: int
    ragged: bool

    @classmethod
    def of(cls, dataset: Dataset, seed: int, ragged: bool) -> "SampleSizes":
        return cls(
            dataset.record_length_bytes, dataset.record_length_bytes_stdev, dataset.num_samples_per_file, seed, ragged
        )

    @property
    def largest(self) -> int:
        return self.mean + _FARTHEST * self.stdev

    @cached_property
    def _keys(self) -> npt.NDArray[np.uint64]:
        return np.frombuffer(derive_key(self.seed, "sizes")[:16], "<u8").astype(np.uint64)

    def of_file(self, file: int) -> IndexArray:
        """The sizes of a file's samples."""
        if not self.ragged:
            return np.repeat(self._drawn(np.array([file], np.uint64)), self.samples_per_file)
        first = file * self.samples_per_file
        return self._drawn(np.arange(first, first + self.samples_per_file, dtype=np.uint64))

    def of_numbers(self, numbers: IndexArray) -> IndexArray:
        """Of many at once: samples where they are ragged, else files."""
        return self._drawn(numbers.astype(np.uint64))

    def _drawn(self, numbers: npt.NDArray[np.uint64]) -> IndexArray:
        """Two uniform numbers make a normal one (Box and Muller), rounded: the last bits of a logarithm are not the same on every machine."""
        first, second = (
            ((mixed(numbers, key) >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53 for key in self._keys
        )
        normal = np.rint(np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second) * 2**20) / 2**20
        drawn = np.rint(self.mean + self.stdev * np.clip(normal, -_FARTHEST, _FARTHEST))
        sizes: IndexArray = np.maximum(drawn, 1).astype(np.int64)
        return sizes
