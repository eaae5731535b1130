"""One option simulated: what its intervals say of the epoch and of AU follows from what they say of the I/O time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.planning import loaded
from tierscope.predict.combining import simulate_combination
from tierscope.predict.epoch_spread import _epoch_with
from tierscope.predict.simulation import Simulation
from tierscope.spec.sweep import points


def option(**changes: Any) -> Any:
    study = next(points(loaded(**{"rates": "0%", "nodes": 4, "ranks": 4, "compute": "6 ms", **changes}).study)).study
    return study, simulate_combination({}, study, "bound", None)


@given(st.floats(0.2, 5.0), st.sampled_from(["2 ms", "6 ms", "30 ms"]))
@settings(max_examples=examples(30), deadline=None)
def test_an_epoch_changes_no_more_than_its_io(factor: float, compute: str) -> None:
    """A little more I/O is never a little less waiting than none: 94 % AU is not 100 % because reads may take 1 % less."""
    study, combination = option(compute=compute)
    outcome = Simulation.of(study).settled_epoch("bound", study.seed)
    epoch, io = combination.epoch_seconds, combination.io_seconds
    other = _epoch_with(study, outcome, epoch, io, io * factor)
    least, most = sorted((1.0, factor))
    assert min(epoch * least, outcome.compute) <= other <= epoch * most * (1 + 1e-9)
    assert other >= outcome.compute * (1 - 1e-9)
    assert (other >= epoch) if factor > 1 else (other <= epoch)


@pytest.mark.parametrize("compute", ["2 ms", "6 ms", "30 ms"])
def test_utilisation_is_no_less_certain_than_the_io_time(compute: str) -> None:
    _, combination = option(compute=compute)
    low, high = combination.interval("au")
    assert combination.au is not None
    assert low >= combination.au * combination.io_seconds / combination.high_seconds * (1 - 1e-9)
    assert high <= min(1.0, combination.au * combination.io_seconds / combination.low_seconds * (1 + 1e-9))
