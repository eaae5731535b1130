"""The model's answer is in the seconds of the measurement, and leaves writes to the scaling."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.small_study import small_study
from tierscope.predict import modelled
from tierscope.predict.modelled import ModelledPoint, answer

# (rank, tier, kind): after the improvement a rank is busy as long as before, but waits half as long on the clock.
BUSY = np.array([[[1.0, 1.0], [2.0, 4.0]]])
OUTCOMES = {"before": SimpleNamespace(busy=BUSY, wall=BUSY / 2), "after": SimpleNamespace(busy=BUSY, wall=BUSY / 4)}


@pytest.mark.parametrize(
    ("basis", "writes", "expected"), [("busy", (0.0, 0.0), 8.0), ("wall", (0.0, 0.0), 4.0), ("wall", (2.0, 1.0), 4.0)]
)
def test_measured_and_modelled_seconds_are_of_one_kind(
    basis: str, writes: tuple[float, float], expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = iter(("before", "after"))
    monkeypatch.setattr(modelled, "simulate", lambda case, system: OUTCOMES[next(turns)])
    study = small_study()
    case: Any = SimpleNamespace(study=study)
    point = ModelledPoint({"cache_rate": 0.0}, (case,), 8.0, 5.0, basis, writes)
    found = answer([point], study.system, {})
    assert found.points[0].model_seconds == pytest.approx(expected)
    assert found.points[0].bottleneck_after == "GFS-READ"
