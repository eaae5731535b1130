"""Least squares of residuals that take long and are a little rough: Levenberg and Marquardt's method between bounds.

Derivatives are differences over steps that are large enough for the order of events not to matter, of several parameters at the same
time where there are several cores. Between two of them Broyden's formula carries them on: most steps need no new ones.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tierscope.predict.outcome import FloatArray

Residuals = Callable[[FloatArray], FloatArray]

STEP = 0.04  # of a logarithm, for differences
_LONGEST = 1.5  # of a logarithm, in one round
_LEAST_GAIN = 0.003  # of the squares: less, and it is over
_DAMPINGS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_FRESH = 3  # rounds before derivatives are taken anew


@dataclass(frozen=True, slots=True)
class Descended:
    """Where it ended, with the residuals there."""

    logs: FloatArray
    residuals: FloatArray

    @property
    def squares(self) -> float:
        return float(self.residuals @ self.residuals)


class Descent:
    """One problem: residuals of logarithms between bounds. `fixed` ones stay as they are."""

    def __init__(
        self, residuals: Residuals, low: FloatArray, high: FloatArray, fixed: Sequence[int] = (), workers: int = 1
    ) -> None:
        """`workers`: threads for derivatives, where residuals take long enough to be worth it."""
        self._residuals, self._low, self._high, self._workers = residuals, low, high, workers
        self._free = [place for place in range(len(low)) if place not in fixed]

    def run(self, start: FloatArray, rounds: int, told: Callable[[Descended], None] = lambda _: None) -> Descended:
        """Downhill for so many rounds at most; `told` of every better place."""
        logs = np.clip(start, self._low, self._high)
        here = Descended(logs, self._residuals(logs))
        slopes: FloatArray | None = None
        age, damping = 0, 1
        for _ in range(rounds):
            if slopes is None or age >= _FRESH:
                slopes, age = self.slopes(here), 0
            descended, damping = self._step(here, slopes, damping)
            if descended is None:
                if age == 0:
                    break
                slopes = None
                continue
            step = descended.logs - here.logs
            change = descended.residuals - here.residuals - slopes @ step
            slopes = slopes + np.outer(change, step) / max(float(step @ step), 1e-12)
            gain = 1 - descended.squares / max(here.squares, 1e-30)
            here, age = descended, age + 1
            told(here)
            if gain < _LEAST_GAIN:
                if age <= 1:
                    break
                slopes = None
        return here

    def slopes(self, here: Descended) -> FloatArray:
        """Of every residual by every parameter; 0 by those that are fixed."""
        slopes = np.zeros((len(here.residuals), len(here.logs)))
        moved, steps = [], []
        for place in self._free:
            step = STEP if here.logs[place] + STEP <= self._high[place] else -STEP
            other = here.logs.copy()
            other[place] += step
            moved.append(other)
            steps.append(step)
        for place, step, after in zip(self._free, steps, self._all(moved), strict=True):
            slopes[:, place] = (after - here.residuals) / step
        return slopes

    def _step(self, here: Descended, slopes: FloatArray, damping: int) -> tuple[Descended | None, int]:
        """The first step that leads down, and the damping to begin with next time; None: none does."""
        squares, down = slopes.T @ slopes, -(slopes.T @ here.residuals)
        scale = np.maximum(np.diag(squares), 1e-6 * max(float(np.diag(squares).max(initial=0.0)), 1e-12))
        free = np.ix_(self._free, self._free)
        for number in range(damping, len(_DAMPINGS)):
            damped = (squares + _DAMPINGS[number] * np.diag(scale))[free]
            step = np.zeros(len(here.logs))
            step[self._free] = np.linalg.solve(damped, down[self._free])
            logs = np.clip(here.logs + np.clip(step, -_LONGEST, _LONGEST), self._low, self._high)
            if np.allclose(logs, here.logs, rtol=0, atol=1e-7):
                continue
            descended = Descended(logs, self._residuals(logs))
            if descended.squares < here.squares:
                return descended, max(0, number - 1)
        return None, 1

    def _all(self, many: Sequence[FloatArray]) -> list[FloatArray]:
        """The engine runs without the interpreter's lock."""
        if self._workers < 2:
            return [self._residuals(logs) for logs in many]
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                return list(pool.map(self._residuals, many))
            finally:
                pool.shutdown(cancel_futures=True)
