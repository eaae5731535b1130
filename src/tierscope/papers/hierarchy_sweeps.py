"""The Hierarchy study's cases in virtual time: class seconds of every process at every cache rate, in the second epoch as the study has them, or in others."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from tierscope.predict.simulation import Simulation, hash_seed
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from tierscope.spec.sweep import points

FloatArray = npt.NDArray[np.float64]
Times = dict[float, FloatArray]  # by cache rate: seconds of (process, class)

PRESET = "fugaku-hierarchy"
SMALL_60, SMALL_1, LARGE_60 = "small-60ost", "small-1ost", "large-60ost"
CLASSES = ("LFS-META", "LFS-READ", "GFS-META", "GFS-READ")
EPOCH = 2
RATES = tuple(step / 20 for step in range(21))
FEW_RATES = (0.0, 0.2, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)


def slowest(seconds: FloatArray) -> FloatArray:
    """The class times of the slowest process."""
    row: FloatArray = seconds[seconds.sum(axis=1).argmax()]
    return row


@dataclass(frozen=True, slots=True)
class HierarchySweep:
    """An epoch of a case at all rates: seconds of (process, class), and of the longest epoch."""

    times: Mapping[float, FloatArray]
    epochs: Mapping[float, float]

    @property
    def io(self) -> dict[float, float]:
        return {rate: float(slowest(busy).sum()) for rate, busy in self.times.items()}

    @property
    def best(self) -> float:
        io = self.io
        return min(io, key=lambda rate: io[rate])

    @property
    def gain(self) -> float:
        """How much shorter the epoch is with the best rate than without cached files."""
        return 1 - min(self.epochs.values()) / self.epochs[0.0]

    @property
    def gaps(self) -> list[float]:
        """Seconds by which epochs exceed the slowest process's I/O."""
        return [self.epochs[rate] - seconds for rate, seconds in self.io.items()]

    def leader(self, rate: float) -> str:
        """The largest class of the slowest process: the bottleneck, as in the study."""
        return CLASSES[int(slowest(self.times[rate]).argmax())]

    def of_class(self, rate: float, name: str) -> float:
        return float(slowest(self.times[rate])[CLASSES.index(name)])

    def share(self, rate: float, name: str) -> float:
        return self.of_class(rate, name) / self.io[rate]


@cache
def case_study(case: str) -> Study:
    """A case of the preset, without its sweep."""
    return next(point.study for point in points(load_study(PRESET)) if point.sweep["case"] == case)


def second_epoch(study: Study, rates: Sequence[float], method: str = "events") -> Times:
    """As `tierscope simulate` would have it, for all rates."""
    return dict(sweep_of(study, rates, method=method).times)


def sweep_of(study: Study, rates: Sequence[float], epoch: int = EPOCH, method: str = "events") -> HierarchySweep:
    def simulate_rate(rate: float) -> tuple[FloatArray, float]:
        here = replace(study, placement=replace(study.placement, cache_rate=rate))
        outcome = Simulation.of(here).epoch(epoch, method, seed=hash_seed(study.seed, 1, epoch))
        return outcome.busy[:, :, :2].reshape(len(outcome.busy), len(CLASSES)), float(outcome.seconds.max())

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        by_rate = dict(zip(rates, pool.map(simulate_rate, rates), strict=True))
    return HierarchySweep(
        {rate: busy for rate, (busy, _) in by_rate.items()}, {rate: seconds for rate, (_, seconds) in by_rate.items()}
    )


def with_seed(study: Study, seed: int | None) -> Study:
    return study if seed is None else replace(study, seed=seed)
