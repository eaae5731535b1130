"""Which method `auto` takes: events where they can be had, the bound where it is as good, else a line."""

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from tierscope.errors import UserError
from tierscope.predict import method
from tierscope.predict.method import chosen_method
from tierscope.spec import sweep
from tierscope.spec.load import load_study
from tierscope.spec.study import Point


def points(*changes: str) -> list[Point]:
    return list(sweep.points(load_study("fugaku-small-60ost", ["nodes=96", "num_files_train=18432", *changes])))


@pytest.fixture
def no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == "numba" else importlib.util.find_spec(name)

    monkeypatch.setattr(method, "find_spec", find)


def test_events_wherever_they_can_be_had() -> None:
    assert chosen_method(points(), "auto") == "events"


@pytest.mark.parametrize("given", ["bound", "events"])
@pytest.mark.usefixtures("no_numba")
def test_what_was_asked_for_is_taken(given: str) -> None:
    assert chosen_method(points("computation_time=1s"), given) == given


@pytest.mark.usefixtures("no_numba")
def test_the_bound_where_one_station_decides() -> None:
    assert chosen_method(points("sweep.cache_rate=[0%, 100%]"), "auto") == "bound"


@pytest.mark.usefixtures("no_numba")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("computation_time=1ms",), "workload.train: ranks compute between reads"),
        (("policy=first-touch",), "placement.policy = first-touch"),
        (("gfs.service_variation=1",), "system.tiers.gfs: its service times vary"),
        (("nodes=2", "gfs.gateway_shared_by=1", "lfs.device_shared_by=1"), "8 ranks with 2,304 samples each are few"),
        (("lfs.latency=1s", "sweep.cache_rate=[0%, 50%]"), "placement.cache_rate = 50%: no single station explains"),
    ],
)
def test_no_number_that_may_be_far_off(changes: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=f"{said}.*: the bound may be inaccurate, and events need numba; pip install"):
        chosen_method(points(*changes), "auto")
