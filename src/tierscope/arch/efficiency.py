"""The hardware-efficiency histogram (Ibrahim et al., PMBS 2021): how much of the run time is spent at which efficiency.

A kernel's efficiency is the largest of its use of tensor cores, of the other cores and of the memory: it cannot be faster than the one that it
uses most. Time × efficiency is what a perfect implementation of the same work would take; the rest is the potential, of every bin and of all.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BINS = 10
COUNTED = "counted operations and bytes over time"
COUNTERS = "hardware counters"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, or one operation of the framework with all its kernels. Utilisations are shares of the device's peaks."""

    name: str
    seconds: float
    tensor: float
    fp32: float
    memory: float

    @property
    def efficiency(self) -> float:
        """More than a peak was counted where caches served part of the bytes: then it is at the peak."""
        return min(1.0, max(self.tensor, self.fp32, self.memory))


@dataclass(frozen=True, slots=True)
class Histogram:
    """`seconds[i]`: spent in kernels of efficiency i/10 to (i+1)/10; `ideal_seconds`: of the same work at full efficiency.

    `ideal_by_bin`: of each bin; `unique_by_bin`: kernels by name, which may be in several bins. Empty: not kept.
    """

    source: str
    seconds: tuple[float, ...]
    ideal_seconds: float
    kernels: int
    ideal_by_bin: tuple[float, ...] = ()
    unique_by_bin: tuple[int, ...] = ()

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds)

    @property
    def potential(self) -> float:
        """How many times as fast a perfect implementation would be."""
        return self.total_seconds / self.ideal_seconds if self.ideal_seconds else float("inf")


def bin_of(kernel: Kernel) -> int:
    return min(BINS - 1, int(kernel.efficiency * BINS))


def histogram(kernels: Iterable[Kernel], source: str) -> Histogram:
    seconds, ideal, count = [0.0] * BINS, [0.0] * BINS, 0
    names: list[set[str]] = [set() for _ in range(BINS)]
    for kernel in kernels:
        place = bin_of(kernel)
        seconds[place] += kernel.seconds
        ideal[place] += kernel.seconds * kernel.efficiency
        names[place].add(kernel.name)
        count += 1
    return Histogram(source, tuple(seconds), math.fsum(ideal), count, tuple(ideal), tuple(map(len, names)))


def slowest(kernels: Sequence[Kernel], count: int = 10) -> list[Kernel]:
    """By what they lose: time × (1 − efficiency), kernels of one name added up."""
    sums: dict[str, list[float]] = {}
    for kernel in kernels:
        sums.setdefault(kernel.name, [0.0, 0.0, 0.0, 0.0])
        entry = sums[kernel.name]
        for place, value in enumerate((1.0, kernel.tensor, kernel.fp32, kernel.memory)):
            entry[place] += kernel.seconds * value
    merged = [
        Kernel(name, total, tensor / total, fp32 / total, memory / total)
        for name, (total, tensor, fp32, memory) in sums.items()
        if total
    ]
    return sorted(merged, key=lambda kernel: kernel.seconds * (1 - kernel.efficiency), reverse=True)[:count]
