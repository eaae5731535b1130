"""Every number of a study at the ends of what is declared for it: refused with a line, or finite all the way through."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.nightly import first_in_ci
from tierscope.errors import TierscopeError, UserError
from tierscope.predict.case import Case
from tierscope.predict.explore_simulated import simulate_combination
from tierscope.predict.modelled import ModelAnswer, ModelledPoint, answer
from tierscope.predict.simulation import Simulation, check_rates, simulate_point
from tierscope.spec import keys, kinds, sweep
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.spec.whatif import read_goal
from tierscope.trace.trace import RunKey

TEXT = """
study: ends
workload:
  dataset: {num_files_train: 16, num_samples_per_file: 2, record_length_bytes: 64 KiB}
  reader: {batch_size: 2, preprocess: busy}
  train: {epochs: 2, computation_time: 1ms, computation_time_distribution: normal, computation_time_stdev: 0.1ms}
system:
  nodes: 2
  ranks_per_node: 2
  tiers:
    lfs: {path: "{out}/lfs", visible_to: node, bandwidth: 1 GB/s, metadata_ops: 10000/s, latency: 10us}
    gfs: {path: "{out}/gfs", servers: 2, bandwidth: 100 MB/s, metadata_ops: 1000/s, read_ops: 1000/s, gateway_bandwidth: 1 GB/s}
placement: {cache_rate: 50%}
"""
LEAVES = keys.leaf_keys(Study, ["lfs", "gfs"])


def kind_of(path: str) -> kinds.Kind:
    kind = LEAVES[path].kind
    return kind.kind if isinstance(kind, kinds.Optional) else kind


def ends(kind: kinds.Bounded) -> Iterator[float]:
    """Within the declared limits, and beyond them."""
    low, high = kind._low, kind._high
    yield from (value for value in (low, high, kind.least, 5e-324, 1e-310, 1e-30, 1e308) if value is not None)


COUNTS = (kinds.Integer, kinds.Bytes)  # how much there is to do: checked where it is planned
QUANTITIES = [
    path for path in LEAVES if isinstance(kind_of(path), kinds.Bounded) and not isinstance(kind_of(path), COUNTS)
]


def of_one_tier(tier: str) -> list[Any]:
    """The others' numbers of the same key: nightly. Each of them is for the other test in every run."""
    other = {"gfs": "lfs", "lfs": "gfs"}[tier]
    mine = [path for path in QUANTITIES if f".{other}." not in path]
    return first_in_ci([*mine, *(path for path in QUANTITIES if path not in mine)], len(mine))


@pytest.mark.parametrize("path", of_one_tier("gfs"))
def test_a_number_at_its_limits_is_refused_or_of_no_harm(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.predict.spread.DRAWS", 5)
    kind = kind_of(path)
    assert isinstance(kind, kinds.Bounded)
    for value in dict.fromkeys(ends(kind)):
        if (study := made(f"{path}={value!r}")) is None:
            continue
        (point,) = sweep.points(study)
        table = simulate_point(RunKey(0, 1), point, "bound", lambda _: None, None).table
        for name in ("busy_seconds", "wall_seconds", "epoch_seconds", "stall_seconds"):
            assert np.isfinite(table[name].drop_nulls().to_numpy()).all(), (path, value, name)


@pytest.mark.parametrize("path", of_one_tier("lfs"))
def test_what_is_made_of_a_number_at_its_limits_is_finite(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`estimate --with-model` and `explore --simulate`; fewer draws, and mean values, to be quick."""
    monkeypatch.setattr("tierscope.predict.case.has_numba", lambda: False)
    monkeypatch.setattr("tierscope.predict.spread.DRAWS", 2)
    kind = kind_of(path)
    assert isinstance(kind, kinds.Bounded)
    for value in dict.fromkeys(ends(kind)):
        if (study := made(f"{path}={value!r}")) is None:
            continue
        found = answered(study)
        numbers = [found.simple_off_percent, *(point.model_seconds for point in found.points)]
        one = simulate_combination({}, study, "bound", None)
        numbers += [one.io_seconds, one.low_seconds, one.high_seconds, one.epoch_seconds, one.au or 0.0]
        assert np.isfinite(numbers).all(), (path, value)


def answered(study: Study) -> ModelAnswer:
    simulation = Simulation.of(study)
    outcome = simulation.epoch(2, "bound")
    case = Case(study, simulation.reading, simulation.schedule(2), outcome.busy)
    point = ModelledPoint({}, (case,), measured_seconds=1.0, simple_seconds=0.9)
    return answer([point], study.system, {"GFS-READ": 50.0, "GFS-META": 50.0, "LFS-READ": 50.0})


def made(setting: str) -> Study | None:
    """None: it is refused."""
    try:
        study = parse_study(TEXT, "ends.yaml", [setting])
        check_rates(study)
    except UserError:
        return None
    return study


@pytest.mark.parametrize("text", ["1e-310", "5e-324s", "1e-13", "1e308"])
def test_a_goal_is_a_time_that_can_be(text: str) -> None:
    with pytest.raises(TierscopeError, match="must be"):
        read_goal(text)


@pytest.mark.parametrize("value", ["1e-310", "1e-320", "5e-324"])
@pytest.mark.parametrize(
    "kind", [kinds.Seconds(0, 60), kinds.Rate(0), kinds.Bandwidth(0), kinds.Fraction(0, 1), kinds.Seconds(above=0)]
)
def test_what_is_nearly_zero_is_a_slip(kind: kinds.Bounded, value: str) -> None:
    with pytest.raises(ValueError, match="at least"):
        kind.parse(value)
