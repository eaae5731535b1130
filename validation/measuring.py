"""Measured runs of emulated systems, for sections that compare the model with them."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import SweepPoint
from tierscope.commands.analyze import analyze
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.spec.load import load_study
from tierscope.watch import Silent


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tierscope-validation-") as folder:
        yield folder


def measure(preset: str, settings: Sequence[str], out: str) -> Analysis:
    """Run a preset with settings into a directory, and analyse it."""
    crews = Crews()
    try:
        run_study(load_study(preset, settings), out, crews, Silent())
    finally:
        crews.close()
    return analyze(out)


def leader_is_clear(point: SweepPoint) -> bool:
    """The two largest classes differ by more than a tenth."""
    first, second = sorted(point.classes.values(), reverse=True)[:2]
    return first > 1.1 * second


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
