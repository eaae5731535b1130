"""The model's answer is in the seconds of the measurement."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.small_study import small_study
from tierscope.predict import modelled
from tierscope.predict.modelled import ModelledPoint, answer

# (rank, tier, kind): after the improvement a rank is busy as long as before, but waits half as long on the clock.
BUSY = np.array([[[1.0, 1.0, 0.5], [2.0, 4.0, 0.5]]])
OUTCOMES = {
    "before": SimpleNamespace(busy_classes=BUSY, wall_classes=BUSY / 2),
    "after": SimpleNamespace(busy_classes=BUSY, wall_classes=BUSY / 4),
}


@pytest.mark.parametrize(("basis", "expected"), [("busy", 8.0), ("wall", 4.0)])
def test_measured_and_modelled_seconds_are_of_one_kind(
    basis: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = iter(("before", "after"))
    monkeypatch.setattr(modelled, "simulate", lambda case, system: OUTCOMES[next(turns)])
    study = small_study()
    case: Any = SimpleNamespace(study=study)
    point = ModelledPoint({"cache_rate": 0.0}, (case,), 8.0, 5.0, basis)
    found = answer([point], study.system, {})
    assert found.points[0].model_seconds == pytest.approx(expected)
    assert found.points[0].bottleneck_after == "GFS-READ"


def test_who_reads_faster_does_not_write_faster() -> None:
    """Rates of writing that are not given are those of reading as it was."""
    system = small_study("gfs.bandwidth=100 MB/s", "gfs.read_ops=50/s").system
    reads, writes = (modelled.improved(system, {f"GFS-{kind}": 100.0}).tiers[-1] for kind in ("READ", "WRITE"))
    assert (reads.bandwidth, reads.write_bandwidth, reads.read_ops, reads.write_ops) == (200e6, 100e6, 100.0, 50.0)
    assert (writes.bandwidth, writes.write_bandwidth, writes.write_ops) == (100e6, 200e6, 100.0)
