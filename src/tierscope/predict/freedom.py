"""How far a fitted number can be moved before the fit is worse, all others fitted anew: what is known of it, and what goes with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.predict.case import Case, with_terms_of
from tierscope.predict.choosing import sketched
from tierscope.predict.fit import Fit, FitProblem
from tierscope.predict.linearised import Linearised
from tierscope.predict.outcome import FloatArray

MUCH = 16.0  # times a fitted rate: does it make a difference?
WORSE = 1.25  # times the loss of the fit that still is as good
_LEAST_LOSS = 0.008  # of the I/O time: what is closer than that cannot be told apart
_HOPELESS = 0.15  # a loss from which no fit leads back
_FEW_ROUNDS = 4
_HALVINGS = 5
_ABOUT = 1.2  # times the loss that still is as good: of a draw
_STEPS_DOWN = (1.5, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)


@dataclass(frozen=True, slots=True)
class Freedom:
    """How far a rate can be moved on a sketch of the measurements, with all others fitted anew, until the fit is worse."""

    few: FitProblem
    here: FloatArray
    enough: float

    @classmethod
    def of(cls, cases: Sequence[Case], best: Fit, linear: Linearised) -> "Freedom":
        few = FitProblem(with_terms_of(sketched(cases), best.terms), best.parameters)
        here = few.descent.run(linear.logs, _FEW_ROUNDS).logs
        return cls(few, here, max(few.misfit(here), _LEAST_LOSS) * WORSE)

    def much(self, place: int) -> tuple[float, ...] | None:
        """How the others' logarithms change where it is much more; None: that does not fit."""
        for with_latency in (False, True):
            moved = self._moved(place, MUCH, with_latency)
            if moved is not None and (self.few.misfit(moved) < _HOPELESS) and (shifts := self._refitted(moved, place)):
                return shifts
        return None

    def least(self, place: int) -> tuple[float, tuple[float, ...]]:
        """How small it may be, and how the others' logarithms change with it."""
        least, shifts = float(np.exp(self.here[place])), (0.0,) * len(self.here)
        for factor in _STEPS_DOWN:
            moved = self._moved(place, 1 / factor, with_latency=False)
            refitted = None if moved is None else self._refitted(moved, place)
            if moved is None or refitted is None:
                break
            least, shifts = float(np.exp(moved[place])), refitted
        return least, shifts

    def fitting(self, step: FloatArray) -> FloatArray:
        """Where a step away from the fit leads to, or as much of it as leads to one that is about as good."""
        low, high = (np.log([getattr(parameter, end) for parameter in self.few.parameters]) for end in ("low", "high"))
        for _ in range(_HALVINGS):
            moved = np.clip(self.here + step, low, high)
            if self.few.misfit(moved) <= self.enough * _ABOUT:
                return moved
            step = step / 2
        return self.here

    def refitted(self, step: FloatArray, place: int) -> FloatArray:
        """A step away from the fit with all parameters but one fitted anew."""
        low, high = (np.log([getattr(parameter, end) for parameter in self.few.parameters]) for end in ("low", "high"))
        moved = np.clip(self.here + step, low, high)
        shifts: FloatArray = self.few.descent_with(fixed=[place]).run(moved, _FEW_ROUNDS // 2).logs - self.here
        return shifts

    def _moved(self, place: int, factor: float, with_latency: bool) -> FloatArray | None:
        """`with_latency`: all that an operation takes becomes latency; None: there is none, or it is beyond a limit."""
        parameter, moved = self.few.parameters[place], self.here.copy()
        moved[place] += np.log(factor)
        if not np.log(parameter.low) <= moved[place]:
            return None
        moved[place] = min(moved[place], np.log(parameter.high))
        if with_latency:
            key = "metadata_latency" if parameter.key == "metadata_ops" else "latency"
            others = [
                n for n, other in enumerate(self.few.parameters) if (other.tier, other.key) == (parameter.tier, key)
            ]
            if not others:
                return None
            moved[others[0]] = np.log(self.few.parameters[others[0]].high)
        return moved

    def _refitted(self, moved: FloatArray, place: int) -> tuple[float, ...] | None:
        """How the others change; None: the fit is worse."""
        logs = self.few.descent_with(fixed=[place]).run(moved, _FEW_ROUNDS).logs
        if self.few.misfit(logs) > self.enough:
            return None
        shifts = logs - self.here
        shifts[place] = 0.0
        return tuple(shifts.tolist())
