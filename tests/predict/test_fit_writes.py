"""Rates of writing are fitted to epochs with checkpoints or first-touch copies, from results as `calibrate` takes them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("scipy")

from tierscope.commands.calibrate import cases_of
from tierscope.commands.simulate import simulate_study
from tierscope.errors import UserError
from tierscope.predict.choosing import fit, sketched
from tierscope.predict.fit import Fit
from tierscope.predict.parameters import parameters_of
from tierscope.predict.rates import PLAIN
from tierscope.predict.solving import STARTS
from tierscope.spec.load import load_study
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

TRUTH = (
    *("num_files_train=64", "epochs=2", "nodes=2", "gfs.servers=1", "gfs.metadata_ops=400/s", "gfs.bandwidth=60MB/s"),
    *("lfs.read_ops=null", "lfs.bandwidth=40MB/s", "lfs.capacity=null", "gfs.write_bandwidth=15MB/s", "lfs.write_bandwidth=10MB/s"),
)  # fmt: skip
SAVES = ("steps_between_checkpoints=2", "mode=all_ranks", "model_parameters=400000", "precision=fp32", "optimizer=none")


def fitted(tmp_path: Path, *settings: str) -> Fit:
    out = str(tmp_path / "out")
    simulate_study(load_study("demo", [*TRUTH, *settings]), out, "events", Silent())
    return fit(cases_of([out]).cases, STARTS[:1], (PLAIN,))


def of(found: Fit, path: str) -> float:
    return dict(zip([parameter.path for parameter in found.parameters], found.values, strict=True))[path]


def test_checkpoints_tell_how_fast_their_tier_writes(tmp_path: Path) -> None:
    """With a barrier after every step, so that ranks begin to write together, whoever was first to read."""
    found = fitted(tmp_path, "sweep={}", "sweep.cache_rate=[0%, 50%, 100%]", "sync=step", *SAVES)
    assert of(found, "tiers.gfs.write_bandwidth") == pytest.approx(15e6, rel=0.05)
    assert of(found, "tiers.lfs.bandwidth") == pytest.approx(40e6, rel=0.1)
    assert "tiers.lfs.write_bandwidth" not in [parameter.path for parameter in found.parameters]
    assert found.loss < 0.01


def test_copies_of_first_touch_tell_how_fast_the_near_tier_writes(tmp_path: Path) -> None:
    """All of them are made in the first epoch, which counts where there is no other."""
    found = fitted(tmp_path, "sweep={}", "policy=first-touch", "cache_rate=100%", "epochs=1")
    assert of(found, "tiers.lfs.write_bandwidth") == pytest.approx(10e6, rel=0.05)
    assert "tiers.lfs.bandwidth" not in [parameter.path for parameter in found.parameters]
    assert found.loss < 0.01


def test_writes_are_among_what_is_compared(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    simulate_study(load_study("demo", [*TRUTH, "sweep={}", "cache_rate=0%", *SAVES]), out, "events", Silent())
    (case,) = cases_of([out]).cases
    assert case.busy.shape == (8, 2, 3)
    assert (case.busy[:, 1, 2] > 0).all()
    assert np.all(case.busy[:, 0, 2] == 0)
    assert case.beside == pytest.approx(0.0, abs=1e-3)
    keys = {parameter.path for parameter in parameters_of([case])}
    assert {"tiers.gfs.bandwidth", "tiers.gfs.write_bandwidth"} <= keys


def test_a_sketch_has_the_one_epoch_that_writes(tmp_path: Path) -> None:
    """Checkpoints may be written in few epochs: without those nothing would be known of writing."""
    out = str(tmp_path / "out")
    simulate_study(load_study("demo", [*TRUTH, "sweep={}", "cache_rate=0%", *SAVES]), out, "events", Silent())
    (case,) = cases_of([out]).cases
    reads = replace(case, busy=case.busy * (1, 1, 0), saving=None)
    few = sketched([*[reads] * 8, case])
    assert len(few) == 2
    assert "tiers.gfs.write_bandwidth" in {parameter.path for parameter in parameters_of(few)}


def test_a_policy_that_cannot_be_measured_is_not_fitted(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    simulate_study(load_study("demo", [*TRUTH, "sweep={}", "policy=lru"]), out, "bound", Silent())
    with pytest.raises(
        UserError,
        match=r"placement.policy is lru, or varies; rates can only be fitted to runs with pinned or first-touch",
    ):
        cases_of([out])


def test_runs_that_only_write_checkpoints_are_fitted(tmp_path: Path) -> None:
    found = fitted(tmp_path, "sweep={}", "cache_rate=0%", "format=synthetic", "epochs=3", "sync=step", *SAVES)
    assert of(found, "tiers.gfs.write_bandwidth") == pytest.approx(15e6, rel=0.05)
    assert "tiers.gfs.bandwidth" not in [parameter.path for parameter in found.parameters]
