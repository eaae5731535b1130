"""A rate that a study uses and nobody gave is no rate of zero seconds."""

from dataclasses import replace
from typing import Any

import pytest

from tests.predict.planning import loaded
from tierscope.errors import UnidentifiedError, UserError
from tierscope.predict.combining import simulate_combination
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.settle import settle
from tierscope.spec import known as systems
from tierscope.spec import presets, sweep
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem
from tierscope.spec.load import load
from tierscope.spec.study import Study, Tier


def with_gfs(rate: float = 0.5, **changes: Any) -> Study:
    study = replace(loaded().study, sweep=())
    lfs, gfs = study.system.tiers
    system = replace(study.system, tiers=(lfs, replace(gfs, **changes)))
    return replace(study, system=system, placement=replace(study.placement, cache_rate=rate))


NO_OPENS: dict[str, Any] = {"metadata_ops": None}
LATENCY_ALONE: dict[str, Any] = {"bandwidth": None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (NO_OPENS, "system.tiers.gfs: the study opens files on it, but metadata_ops is not set"),
        (LATENCY_ALONE, "system.tiers.gfs: the study reads from it .latency alone limits no bytes., but bandwidth is"),
    ],
)
def test_what_the_study_uses_must_be_given(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        refuse_missing_rates(with_gfs(**changes))
    assert "\n" not in str(error.value)
    refuse_missing_rates(with_gfs(rate=1.0, **changes))  # nothing is read there


@pytest.mark.parametrize(
    "given",
    [{"metadata_latency": 1e-3}, {"open_bytes": 4096}, {"metadata_ops": 1e15}, {"visible_to": "node"}],
)
def test_anything_that_opens_take_is_enough(given: dict[str, Any]) -> None:
    refuse_missing_rates(with_gfs(**{**NO_OPENS, **given}))


def known_of(study: Study, **changes: Any) -> KnownSystem:
    figure = KnownFigure(1e8, "fitted", "fio", 1e8, 2e8)
    return KnownSystem("fio-ior", study.system, {"tiers.gfs.bandwidth": figure}, **changes)


def test_a_system_that_knows_only_a_part_is_not_identified() -> None:
    study = with_gfs(**NO_OPENS)
    with pytest.raises(
        UnidentifiedError, match=r"^not identified: the study opens files on it, but the system fio-ior"
    ) as error:
        refuse_missing_rates(study, known_of(study))
    assert "tierscope probe --tier gfs=DIR" in str(error.value)
    assert error.value.reason == "the study opens files on it, but the system fio-ior does not say gfs.metadata_ops"
    assert [point.tells for point in settle(known_of(study), study).points] == [(error.value.reason,)]
    assert "--set gfs.metadata_ops=RATE" in str(error.value)
    whole = CalibratedRange((1e5,), (4,), (0.0, 1.0))
    refuse_missing_rates(study, known_of(study, measured=whole))  # opens are in what it was fitted to


def test_what_is_free_can_be_said() -> None:
    study = load("demo", ["gfs.metadata_ops=unlimited", "gfs.bandwidth=unlimited", "sweep={}", "cache_rate=0%"]).study
    refuse_missing_rates(study)
    gfs: Tier = study.system.tiers[-1]
    assert (gfs.metadata_ops, gfs.bandwidth) == (1e15, 1e21)
    slow = load("demo", ["sweep={}", "cache_rate=0%"]).study
    free, paid = (simulate_combination({}, some, "bound", None).io_seconds for some in (study, slow))
    assert free < 1e-3 < paid


@pytest.mark.parametrize("name", presets.names())
def test_everything_that_ships_says_what_it_uses(name: str) -> None:
    for point in sweep.points(load(name).study):
        refuse_missing_rates(point.study)


@pytest.mark.parametrize("name", systems.names())
def test_every_system_says_what_studies_use(name: str) -> None:
    found = load("resnet50", ["sweep={}", "cache_rate=50%"], name)
    refuse_missing_rates(found.study, found.known)
