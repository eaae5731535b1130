"""How long a step is taken to be, and who says so.

Without a measurement a step takes the roofline at least, and up to SLOWEST times that: so slow were the slowest steps of six networks on an H200
(`python -m validation accelerator`). An answer that differs between the ends of what is known is unclear.
"""

from dataclasses import dataclass

SLOWEST = 12.0  # times the roofline
ROOFLINE, GIVEN, PREDICTED, MEASURED = "roofline", "given", "predicted", "measured"


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Of one accelerator's first batch, without input and exchange. `low`, `high`: between these it is; `outside`: sizes beyond what the device file has."""

    seconds: float
    low: float
    high: float
    source: str
    about: str
    outside: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()


def from_roofline(seconds: float) -> StepSeconds:
    return StepSeconds(seconds, seconds, SLOWEST * seconds, ROOFLINE, f"the roofline, or up to {SLOWEST:g} × that")


def given(seconds: float) -> StepSeconds:
    return StepSeconds(seconds, seconds, seconds, GIVEN, "--step-seconds")
