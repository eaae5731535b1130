"""What solves a fit, and where it begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierscope.errors import UserError
from tierscope.predict.outcome import FloatArray
from tierscope.predict.rates import Parameter

UNNOTICED = 20.0  # times what would explain all of it


def check_solver() -> None:
    """Refuse to fit where the solver is not installed, before anything is said or done."""
    least_squares()


def least_squares() -> Callable[..., Any]:
    try:
        from scipy.optimize import least_squares as solver  # noqa: PLC0415  (an extra, and slow to import)
    except ModuleNotFoundError:
        raise UserError("calibration needs SciPy, which is not installed; pip install 'tierscope[predict]'") from None
    return solver  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class FitStart:
    """Where a search begins: rates and latencies times these; whether a read's time is its operation's, not its bytes'."""

    rates: float
    latencies: float
    by_operation: bool = False

    def of(self, parameters: Sequence[Parameter]) -> FloatArray:
        guess = [self._guess(parameter) for parameter in parameters]
        logs: FloatArray = np.log(
            np.clip(guess, [parameter.low for parameter in parameters], [parameter.high for parameter in parameters])
        )
        return logs

    def _guess(self, parameter: Parameter) -> float:
        if parameter.key in ("credit", "quota_period", "open_bytes"):
            return parameter.guess
        if not parameter.is_rate:
            return parameter.guess * self.latencies
        exchanged = {"bandwidth": UNNOTICED, "read_ops": 1 / UNNOTICED}.get(parameter.key, 1.0)
        return parameter.guess * self.rates * (exchanged if self.by_operation else 1.0)


STARTS = (FitStart(1.0, 1.0), FitStart(3.0, 3.0), FitStart(0.8, 1e-3))  # the last: all waiting is a queue's
