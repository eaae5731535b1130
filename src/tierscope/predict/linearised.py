"""What a fit's derivatives tell without fitting again: how far its numbers may be off, and what they were without a point.

Around the best fit residuals are nearly linear. Then the numbers scatter as the normal distribution of least squares says, and a fit
without some of the measurements is one step away (a jackknife). What the measurements say nothing of scatters by a factor of e.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.predict.fit import FitProblem
from tierscope.predict.outcome import FloatArray

_UNKNOWN = 1.0  # standard deviation of a logarithm of which nothing is known
_UNSEEN = 0.004  # of the I/O time: residuals are never closer than that
_LONGEST = 1.0  # of a step, in each logarithm
_SEED = 7919


@dataclass(frozen=True, slots=True)
class Linearised:
    """A problem at its best fit: residuals and their slopes there."""

    problem: FitProblem
    logs: FloatArray
    residuals: FloatArray
    slopes: FloatArray

    @property
    def scatter(self) -> float:
        """Standard deviation of a residual, from what was left of them."""
        rows = self.problem.rows[-1].stop
        freedom = max(self.problem.observations - len(self.logs), self.problem.observations / 4)
        return max(_UNSEEN, float(np.sqrt(np.sum(self.residuals[:rows] ** 2) / freedom)))

    def covariance(self) -> FloatArray:
        """Of the logarithms."""
        measured = self.slopes[: self.problem.rows[-1].stop]
        covariance: FloatArray = self.scatter**2 * np.asarray(np.linalg.inv(self._normal(measured)), np.float64)
        return covariance

    def draws(self, count: int) -> FloatArray:
        """Of all parameters together, within their limits."""
        rng = np.random.default_rng(_SEED)
        low, high = (
            np.log([getattr(parameter, end) for parameter in self.problem.parameters]) for end in ("low", "high")
        )
        draws: FloatArray = np.clip(rng.multivariate_normal(self.logs, self.covariance(), count), low, high)
        return draws

    def without(self, cases: Sequence[int]) -> FloatArray:
        """The parameters' logarithms, had these cases not been measured."""
        rows = np.ones(len(self.residuals), np.bool_)
        for case in cases:
            rows[self.problem.rows[case]] = False
        slopes, residuals = self.slopes[rows], self.residuals[rows]
        step = -np.linalg.solve(self._normal(slopes), slopes.T @ residuals)
        low, high = (
            np.log([getattr(parameter, end) for parameter in self.problem.parameters]) for end in ("low", "high")
        )
        logs: FloatArray = np.clip(self.logs + np.clip(step, -_LONGEST, _LONGEST), low, high)
        return logs

    def sensitivity(self, place: int) -> float:
        """Percent of the slowest I/O time, on average, for 10 % more of a parameter."""
        changes = []
        for rows, case in zip(self.problem.rows, self.problem.cases, strict=True):
            slowest = rows.start + case.busy[0].size
            relative = float(case.io.mean()) / float(case.io.max()) / case.slowest_weight
            changes.append(self.slopes[slowest, place] * relative)
        return 100 * float(np.log(1.1)) * float(np.mean(changes))

    def _normal(self, slopes: FloatArray) -> FloatArray:
        normal: FloatArray = slopes.T @ slopes + (self.scatter / _UNKNOWN) ** 2 * np.eye(len(self.logs))
        return normal
