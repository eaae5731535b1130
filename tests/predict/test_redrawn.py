"""Short epochs simulated again: their spread, and files on servers that nobody knows."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.predict.queueing import case_of, study_of, tier
from tierscope.plan.stations import stations_of
from tierscope.predict import events
from tierscope.predict.combining import simulate_combination
from tierscope.predict.redrawn import LAYOUTS, middle_layout, unknown_layouts
from tierscope.predict.simulation import Simulation, simulate_point
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import Point, Study
from tierscope.trace.described_stations import DrawnLayout
from tierscope.trace.description import Simulated
from tierscope.trace.trace import RunKey

MEASURED = CalibratedRange((1000.0,), (8,), (0.0, 0.5))
NEAR = tier("lfs", bandwidth=1e9, visible_to="node")


def servers(count: int, **keys: str) -> Study:
    """Eight ranks, and so few files that luck decides which server has most of them."""
    far = tier(bandwidth=1e5, servers=count, **keys)
    return study_of(NEAR, far, files=64, nodes=4, ranks_per_node=2, cache_rate=0.5)


def calibrated(study: Study) -> KnownSystem:
    return KnownSystem("box", study.system, {}, (), MEASURED)


def epoch_seconds(study: Study, layout: int, epoch: int) -> float:
    """The slowest rank's, with files laid out over the far tier's servers in this way."""
    simulation = Simulation.of(study)
    stations = stations_of(study.system, study.seed).with_layouts({1: layout})
    schedule = simulation.schedule(epoch)
    return float(events.simulate(study, stations, simulation.reading, schedule, events.EventOptions()).io.max())


class TestUnknownLayouts:
    def test_several_servers_where_one_was_measured(self) -> None:
        assert unknown_layouts(servers(4), calibrated(servers(1))) == (1,)
        assert (
            unknown_layouts(servers(8), calibrated(servers(4))) == ()
        )  # in turns over four fitted better than at random

    def test_files_that_were_fitted_as_lying_at_random(self) -> None:
        assert unknown_layouts(servers(4, layout="hash"), calibrated(servers(4, layout="hash"))) == (1,)

    @pytest.mark.parametrize("count", [1, 4])
    def test_none_where_the_same_servers_were_measured(self, count: int) -> None:
        assert unknown_layouts(servers(count), calibrated(servers(count))) == ()

    def test_none_of_a_system_that_somebody_described(self) -> None:
        described = replace(calibrated(servers(1)), measured=None)
        assert unknown_layouts(servers(4), described) == unknown_layouts(servers(4), None) == ()


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_epochs_of_other_layouts(seed: int) -> None:
    study = replace(servers(4), seed=seed)
    simulated = simulate_combination({}, study, "events", calibrated(servers(1)))
    truths = [epoch_seconds(study, layout, 2) for layout in range(100, 140)]
    held = np.mean([simulated.low_seconds <= truth <= simulated.high_seconds for truth in truths])
    assert held >= 0.75
    assert simulated.high_seconds / simulated.low_seconds < 2.5


def test_what_is_simulated_is_no_lucky_layout() -> None:
    study = servers(4)
    simulated = simulate_combination({}, study, "events", calibrated(servers(1)))
    low, high = np.quantile([epoch_seconds(study, layout, 2) for layout in range(100, 140)], [0.1, 0.9])
    assert low <= simulated.io_seconds <= high


def test_the_middle_of_layouts_is_between_the_others() -> None:
    study = servers(4)
    stations = stations_of(study.system, study.seed)
    layouts = [tier.hashed for tier in middle_layout(stations, [1], lambda some: float(some.tiers[1].hashed)).tiers]
    assert layouts == [0, LAYOUTS // 2 + 1]


class TestWhatIsSaidOfAnUnknownLayout:
    """A server of a layout that nobody has measured is no server that anybody has."""

    @staticmethod
    def described(study: Study, known: KnownSystem | None, method: str = "events") -> Simulated:
        trace = simulate_point(RunKey(0, 1), Point(0, {}, study), method, lambda _: None, known)
        assert isinstance(trace.about, Simulated)
        return trace.about

    def test_the_layout_is_told_and_no_server_by_its_number(self) -> None:
        about = self.described(servers(4), calibrated(servers(1)))
        assert about.drawn_layouts == (DrawnLayout(tier="gfs", servers=4, tried=LAYOUTS),)
        assert about.stations[0].station == "one of 4 gfs servers"
        assert about.stations[0].stations == 4
        assert about.stations[1].station == "lfs server 0"

    def test_no_number_where_it_is_unknown_and_was_not_drawn(self) -> None:
        about = self.described(servers(4), calibrated(servers(1)), "bound")
        assert about.drawn_layouts == ()
        assert about.stations[0].station == "one of 4 gfs servers"

    @pytest.mark.parametrize("known", [None, calibrated(servers(4))], ids=["described", "measured"])
    def test_nothing_where_it_is_known(self, known: KnownSystem | None) -> None:
        about = self.described(servers(4), known)
        assert about.drawn_layouts == ()
        assert about.stations[0].station.startswith("gfs server ")

    def test_nothing_where_whole_files_are_loaded_ahead(self) -> None:
        """They are read from servers as files take turns."""
        study = servers(4)
        reader = replace(study.workload.reader, read_ahead="all")
        ahead = replace(study, workload=replace(study.workload, reader=reader))
        assert self.described(ahead, calibrated(servers(1))).drawn_layouts == ()


@pytest.mark.parametrize("hashed", [1, 2, 7])
def test_engine_and_plan_find_files_on_the_same_servers(hashed: int) -> None:
    case = case_of(study_of(tier(bandwidth=1e5, servers=4, layout="hash"), files=200))
    stations = case.stations.with_layouts({0: hashed})
    outcome = events.simulate(case.study, stations, case.reading, case.schedule, events.EventOptions())
    queues = stations.tiers[0]
    visits = np.bincount([queues.server_of(0, int(file)) for file in case.schedule.files.reshape(-1)], minlength=4)
    first = queues.servers_first
    assert outcome.load.ops[first : first + 4].tolist() == visits.tolist()


def test_other_numbers_lay_files_out_in_other_ways() -> None:
    queues = case_of(study_of(tier(bandwidth=1e5, servers=4, layout="hash"), files=200)).stations.tiers[0]
    ways = {tuple(replace(queues, hashed=hashed).server_of(0, file) for file in range(200)) for hashed in range(20)}
    assert len(ways) == 20


def test_an_epoch_drawn_by_events_varies_where_its_bound_does_not() -> None:
    """All files of a global shuffle are read: each server has as much to do in every epoch, and yet ranks meet at one of them."""
    study = study_of(tier(bandwidth=1e5, servers=4), files=64, nodes=4, ranks_per_node=2)
    simulated = simulate_combination({}, study, "events", None)
    truths = [float(Simulation.of(study).epoch(epoch, "events", epoch).io.max()) for epoch in range(2, 42)]
    held = np.mean([simulated.low_seconds <= truth <= simulated.high_seconds for truth in truths])
    assert held >= 0.75
    assert simulated.high_seconds > 1.02 * simulated.low_seconds


def test_draws_of_a_system_with_other_ranks_are_of_this_study() -> None:
    """Assumed numbers of nodes and ranks are drawn with all other figures, and yet the study's are simulated."""
    study = servers(4)
    figures = {key: KnownFigure(2, "assumed", "nobody said", 1, 8) for key in ("ranks_per_node", "nodes")}
    known = KnownSystem("box", study.system, figures)
    assert {(system.nodes, system.ranks_per_node) for system in drawn_systems(study.system, known)} == {(4, 2)}
    assert simulate_combination({}, study, "events", known).high_seconds > 0


@pytest.mark.parametrize("files", [2048, 12_000])
def test_epochs_too_long_to_be_drawn_hold_other_layouts_too(files: int) -> None:
    """The one with the median time is simulated of both; the interval of the longer one is that of its bound."""
    study = study_of(tier(bandwidth=1e5, servers=64), files=files, nodes=8, ranks_per_node=8)
    simulated = simulate_combination({}, study, "events", calibrated(study_of(tier(bandwidth=1e5))))
    simulation = Simulation.of(study)
    times = []
    for layout in range(100, 112):
        laid_out = replace(simulation, stations=simulation.stations.with_layouts({0: layout}))
        times.append(float(laid_out.epoch(2, "events", 2).io.max()))
    assert simulated.low_seconds < simulated.io_seconds < simulated.high_seconds
    assert np.mean([simulated.low_seconds <= truth <= simulated.high_seconds for truth in times]) >= 0.75


def test_policies_are_simulated_on_the_same_layout() -> None:
    """Nothing is cached, so who decides what is cached cannot matter."""
    pinned = study_of(NEAR, tier(bandwidth=1e5, servers=64), files=2048, nodes=8, ranks_per_node=8)
    touched = replace(pinned, placement=replace(pinned.placement, policy="first-touch"))
    known = calibrated(study_of(NEAR, tier(bandwidth=1e5)))
    times = [simulate_combination({}, study, "events", known).io_seconds for study in (pinned, touched)]
    assert times[0] == pytest.approx(times[1], rel=0.02)


def test_repetitions_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    study = servers(4)
    first = simulate_combination({}, study, "events", None)
    monkeypatch.setattr(events, "simulate", lambda *_: pytest.fail("simulated again"))
    again = Simulation.of(study).drawn_again(None, "events", ())
    assert again is not None
    assert np.quantile(again, 0.95) >= first.io_seconds * 0.9


def test_the_bound_asks_the_same_servers_as_events_in_every_layout() -> None:
    study = study_of(tier(bandwidth=1e5, servers=4, open_bytes=10), files=64, nodes=4, ranks_per_node=2)
    simulation = Simulation.of(study)
    for layout in (0, 1, 5):
        stations = simulation.stations.with_layouts({0: layout})
        loads = [replace(simulation, stations=stations).epoch(2, method).load.seconds for method in ("events", "bound")]
        np.testing.assert_allclose(loads[0], loads[1])


def test_checkpoints_have_an_interval_on_both_sides() -> None:
    """They are written over the servers that are simulated, and drawn over the same."""
    study = study_of(NEAR, tier(bandwidth=1e5, servers=4), files=64, nodes=4, ranks_per_node=2)
    every = replace(study.workload.checkpoint, steps_between_checkpoints=2, mode="all_ranks", model_parameters=3000)
    study = replace(study, workload=replace(study.workload, checkpoint=every))
    study = replace(study, system=replace(study.system, model_error=0.03))
    simulated = simulate_combination({}, study, "events", calibrated(study_of(NEAR, tier(bandwidth=1e5))))
    assert simulated.low_seconds > 0.8 * simulated.io_seconds
    assert simulated.high_seconds > 1.02 * simulated.io_seconds
