"""What is handed to compiled code and does not belong together is refused in a line: compiled code would use whatever lies in memory."""

from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

from tests.predict.queueing import by_events, case_of, study_of, tier
from tests.predict.saving import epochs_of, saving
from tierscope.errors import TierscopeError, UserError
from tierscope.plan.stations import stations_of
from tierscope.predict import events
from tierscope.predict.engine.inputs import LoaderInputs, Requests, SaveInputs, StartInputs, SystemInputs

pytest.importorskip("numba", reason="the event engine needs numba")


class Inputs(NamedTuple):
    requests: Requests
    start: StartInputs
    system: SystemInputs
    loader: LoaderInputs
    saving: SaveInputs

    def with_part(self, path: str, value: Any) -> "Inputs":
        """With another array, or number, at `system.ops`."""
        part, _, name = path.partition(".")
        outer, _, inner = name.partition(".")
        if inner:
            value = getattr(getattr(self, part), outer)._replace(**{inner: value})
        return self._replace(**{part: getattr(self, part)._replace(**{outer: value})})

    def at(self, path: str) -> Any:
        value: Any = self
        for name in path.split("."):
            value = getattr(value, name)
        return value


def kept(simulate: Any) -> Inputs:
    """What the engine is handed for the last epoch that is simulated."""
    handed: list[Inputs] = []
    run_epoch = events.engine()

    def keep(*inputs: Any) -> Any:
        handed.append(Inputs(*inputs))
        return run_epoch(*inputs)

    with mock.patch.object(events, "engine", return_value=keep):
        simulate()
    return handed[-1]


def system_of(nodes: int = 4) -> Any:
    near = tier("lfs", visible_to="node", device_shared_by=2, metadata_ops=700.0, bandwidth=1e6)
    return study_of(near, tier(metadata_ops=500.0, servers=3, bandwidth=2e5), files=96, nodes=nodes, cache_rate=0.4)


@pytest.fixture(scope="module")
def reading() -> Inputs:
    case = case_of(system_of())
    return kept(lambda: events.simulate(case.study, case.stations, case.reading, case.schedule, events.EventOptions()))


@pytest.fixture(scope="module")
def writing() -> Inputs:
    wanted = {"model_parameters": 2000, "steps_between_checkpoints": 2, "mode": "all_ranks", "background": True}
    tiers = (tier("lfs", visible_to="node", bandwidth=1e6), tier(metadata_ops=500.0, servers=3, bandwidth=2e5))
    study = saving(*tiers, epochs=2, files=96, nodes=4, ranks_per_node=2, batch=3, cache_rate=0.4, checkpoint=wanted)
    return kept(lambda: epochs_of(study))


def refused(inputs: Inputs) -> str:
    with pytest.raises(TierscopeError) as caught:
        events.engine()(*inputs)
    assert not isinstance(caught.value, UserError)  # it is our own bug
    return str(caught.value)


@pytest.mark.parametrize("path", ["files", "opens"])
def test_requests_of_too_few_ranks(reading: Inputs, path: str) -> None:
    few = reading.at(f"requests.{path}")[:3].copy()
    said = refused(reading.with_part(f"requests.{path}", few))
    assert said == f"event engine: requests.{path} has shape (3, 24) of {few.dtype}, not (4, 24) of {few.dtype}"


def test_draws_for_another_number_of_ranks(reading: Inputs) -> None:
    """A schedule of fewer ranks than begin, and of more."""
    eight = kept(lambda: by_events(case_of(system_of(nodes=8))))
    assert "start.nodes has shape (8,) of int64, not (4,) of int64" in refused(reading._replace(start=eight.start))
    assert "start.nodes has shape (4,) of int64, not (8,) of int64" in refused(eight._replace(start=reading.start))


def test_stations_of_a_smaller_system() -> None:
    """Nodes beyond those that stations were made for."""
    case = case_of(system_of(nodes=8))
    small = stations_of(system_of(nodes=4).system, 1)
    with pytest.raises(TierscopeError, match=r"system\.tiers\.servers_first leads to 10; must be 0 to 7"):
        by_events(replace(case, stations=small))


@pytest.mark.parametrize("name", ["metadata", "servers_first", "node_link", "device_link", "gateway", "locks"])
def test_a_station_out_of_range(reading: Inputs, name: str) -> None:
    for first in (len(reading.system.per_op), -2):
        tiers = reading.system.tiers.copy()
        tiers[name][1] = first
        assert f"system.tiers.{name} leads to {first}; must be 0 to" in refused(
            reading.with_part("system.tiers", tiers)
        )


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("requests.tiers", 2, "requests.tiers leads to 2; must be 0 to 1"),
        ("requests.tiers", -1, "requests.tiers leads to -1; must be 0 to 1"),
        ("start.nodes", -1, "start.nodes leads to -1; must be 0 or more"),
        ("start.order", 4, "start.order leads to 4; must be 0 to 3"),
        ("start.order", 0, "a second place in start.order leads to 0; there must be none"),
    ],
)
def test_an_index_out_of_range(reading: Inputs, path: str, value: int, said: str) -> None:
    array = reading.at(path).copy()
    array.reshape(-1)[-1 if array.reshape(-1)[-1] != value else 0] = value
    assert said in refused(reading.with_part(path, array))


@pytest.mark.parametrize(
    ("path", "dtype"),
    [
        ("requests.tiers", np.int64),
        ("requests.files", np.int32),
        ("requests.opens", np.int8),
        ("start.order", np.float64),
        ("system.nbytes", np.int64),
        ("system.sharing", np.int64),
        ("system.per_byte", np.float32),
    ],
)
def test_another_type(reading: Inputs, path: str, dtype: type) -> None:
    """For some of them the engine would be compiled anew, which takes longer than what is asked of it."""
    array = reading.at(path)
    said = refused(reading.with_part(path, array.astype(dtype)))
    shape = array.shape
    assert said == f"event engine: {path} has shape {shape} of {np.dtype(dtype)}, not {shape} of {array.dtype}"


@pytest.mark.parametrize("path", ["fills", "fetched", "sizes", "first_stripes", "counts", "lasts"])
def test_what_only_some_studies_have(reading: Inputs, path: str) -> None:
    few = np.zeros((4, 23), reading.at(f"requests.{path}").dtype)
    assert f"requests.{path} has shape (4, 23)" in refused(reading.with_part(f"requests.{path}", few))


def test_parts_that_belong_together(reading: Inputs) -> None:
    counts = np.ones((4, 24), np.int64)
    assert "requests.offsets has shape (0, 0)" in refused(reading.with_part("requests.counts", counts))
    fetched = np.ones((4, 24), np.bool_)
    assert "start.window has shape (0,)" in refused(reading.with_part("requests.fetched", fetched))


@pytest.mark.parametrize(
    ("path", "shape"),
    [("system.ops", (2, 1)), ("system.nbytes", (1, 2, 1)), ("system.per_op", (3,)), ("system.credit", (1,))],
)
def test_a_system_of_another_shape(reading: Inputs, path: str, shape: tuple[int, ...]) -> None:
    assert "event engine: system." in refused(reading.with_part(path, np.ones(shape)))


@pytest.mark.parametrize(("path", "value"), [("system.reads", 2), ("loader.threads", 0), ("loader.prefetch", -1)])
def test_numbers_that_no_study_has(reading: Inputs, path: str, value: int) -> None:
    assert path.rpartition(".")[2] in refused(reading.with_part(path, value))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("saving.drained", 10_000, "saving.drained leads to 10000; must be"),
        ("saving.first", -1, "saving.first leads to -1; must be"),
        ("saving.kinds", 5, "saving.kinds leads to 5; must be 0 to 4"),
        ("saving.tiers", 2, "saving.tiers leads to 2; must be 0 to 1"),
        ("saving.left.resumes", 10_000, "saving.left.resumes leads to 10000; must be -1 to"),
    ],
)
def test_checkpoints_that_lead_out_of_their_tables(writing: Inputs, path: str, value: int, said: str) -> None:
    array = writing.at(path).copy()
    array[-1 if path != "saving.first" else 0] = value
    assert said in refused(writing.with_part(path, array))


def test_rows_of_checkpoints_and_their_number(writing: Inputs) -> None:
    rows = np.full_like(writing.saving.rows, writing.system.nbytes.shape[1])
    assert "saving.rows leads to" in refused(writing.with_part("saving.rows", rows))
    assert "saving.most leads to" in refused(writing.with_part("saving.most", 0))
    few = writing.saving.commit[:3].copy()
    assert "saving.commit has shape (3,)" in refused(writing.with_part("saving.commit", few))


def test_what_belongs_together_is_simulated_as_often_as_asked(reading: Inputs, writing: Inputs) -> None:
    for inputs in (reading, writing):
        times = [events.engine()(*inputs).seconds for _ in range(2)]
        assert np.array_equal(*times)
