"""Fitting rates: what the event engine made with hidden rates is found again, and nothing configured is looked at."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("scipy")

from tierscope.predict.calibrate import (
    Calibration,
    FitSoFar,
    calibrate,
    finished_early,
    leave_one_out,
    linearised,
    same_leader,
    work,
)
from tierscope.predict.case import Case, simulate, with_slowest_weights
from tierscope.predict.choosing import OTHERS_TRIED, _Search, fit, sketched
from tierscope.predict.fit import Fit, FitProblem
from tierscope.predict.parameters import parameters_of
from tierscope.predict.propose import propose
from tierscope.predict.rates import PLAIN, Parameter, Serving, Terms, apply, without_rates
from tierscope.predict.simulation import Simulation
from tierscope.predict.solving import STARTS
from tierscope.spec.load import load_study
from tierscope.spec.study import Study

pytestmark = pytest.mark.whole

TRUTH = ("lfs.read_ops=null", "lfs.bandwidth=40MB/s", "gfs.metadata_ops=400/s", "gfs.bandwidth=60MB/s")


def study_at(rate: str, *settings: str) -> Study:
    return load_study("demo", ["sweep={}", f"cache_rate={rate}", "num_files_train=256", *TRUTH, *settings])


def case_of(study: Study, epoch: int, name: str = "") -> Case:
    """An epoch by the event engine, with its rates taken out."""
    simulation = Simulation.of(study)
    outcome = simulation.epoch(epoch, "events", seed=epoch)
    bare = replace(study, system=without_rates(study.system))
    return Case(bare, simulation.reading, simulation.schedule(epoch), outcome.busy, name=name or str(study.placement))


def cases(rates: Sequence[str] = ("0%", "50%", "100%"), *settings: str) -> list[Case]:
    """An epoch of every rate, and two where it matters which files are near."""
    return [
        case_of(study_at(rate, *settings), epoch, rate)
        for rate in rates
        for epoch in ((2,) if rate in ("0%", "100%") else (2, 3))
    ]


def steady() -> list[Case]:
    return cases(("0%", "50%", "100%"), "gfs.servers=1")


@cache
def calibrated() -> tuple[Calibration, tuple[int, ...], int]:
    """With the work that was told of, and what it was to be."""
    told: list[int] = []
    return calibrate(steady(), told.append), tuple(told), work(steady())


def fitted() -> Fit:
    return calibrated()[0].fit


@pytest.fixture
def calibration() -> Calibration:
    return calibrated()[0]


def of(found: Fit, path: str) -> float:
    return dict(zip([parameter.path for parameter in found.parameters], found.values, strict=True))[path]


def test_rates_are_removed_from_every_tier() -> None:
    system = without_rates(study_at("50%", "gfs.latency=2ms", "gfs.discipline=sharing", "process_overhead=1ms").system)
    for tier in system.tiers:
        rates = (tier.metadata_ops, tier.read_ops, tier.bandwidth, tier.latency, tier.metadata_latency, tier.background)
        assert not any(rates)
        assert tier.discipline == "fifo"
    assert system.process_overhead == 0
    assert [tier.servers for tier in system.tiers] == [1, 4]  # its shape stays


def test_hidden_rates_are_found_again() -> None:
    found = fitted()
    assert of(found, "tiers.gfs.metadata_ops") == pytest.approx(400, rel=0.03)
    assert of(found, "tiers.lfs.bandwidth") == pytest.approx(40e6, rel=0.03)
    assert found.loss < 0.01


def test_other_hidden_rates_give_another_answer() -> None:
    slower = cases(("0%", "50%", "100%"), "gfs.servers=1", "gfs.metadata_ops=200/s", "lfs.bandwidth=20MB/s")
    found = fit(slower, STARTS[:1], servings=(PLAIN,))
    assert of(found, "tiers.gfs.metadata_ops") == pytest.approx(200, rel=0.03)
    assert of(found, "tiers.lfs.bandwidth") == pytest.approx(20e6, rel=0.03)


def test_what_is_fitted_predicts_other_rates_servers_and_ranks() -> None:
    found = fitted()
    for settings in (("gfs.servers=1",), ("gfs.servers=4",), ("nodes=2",), ("nodes=8",)):
        for rate in ("20%", "80%"):
            unseen = case_of(study_at(rate, *settings), 2)
            predicted = simulate(unseen, found.system(unseen.study.system))
            assert predicted.io.max() == pytest.approx(unseen.io.max(), rel=0.05), (settings, rate)


def test_two_file_sizes_tell_an_operation_from_its_bytes() -> None:
    hidden = ("gfs.servers=1", "lfs.read_ops=500/s", "lfs.bandwidth=100MB/s")
    sizes = [
        case_of(study_at(rate, f"record_length_bytes={size}", *hidden), 2, f"{rate} {size}")
        for rate in ("0%", "100%")
        for size in ("16KiB", "256KiB")
    ]
    found = fit(sizes, STARTS[:1], servings=(PLAIN,))
    assert len(found.sizes) == 2
    service = 1 / of(found, "tiers.lfs.read_ops") + 131072 / of(found, "tiers.lfs.bandwidth")
    assert service == pytest.approx(1 / 500 + 131072 / 100e6, rel=0.05)
    assert "read_ops" not in {parameter.key for parameter in parameters_of(cases(("0%", "50%")))}


def test_only_tiers_that_were_read_from_have_parameters() -> None:
    assert {parameter.tier for parameter in parameters_of(cases(("0%",)))} == {"gfs"}
    assert {parameter.tier for parameter in parameters_of(cases(("100%",)))} == {"lfs"}


def test_next_to_no_latency_is_none() -> None:
    system = study_at("0%").system
    latency = Parameter("gfs", "latency", 1e-3, 1e-6, 1.0)
    assert apply(system, [latency], [1.2e-6]).tiers[1].latency == 0
    assert apply(system, [latency], [5e-3]).tiers[1].latency == 5e-3


class TestCalibration:
    def test_intervals_hold_what_was_hidden(self, calibration: Calibration) -> None:
        by_path = {each.parameter.path: each for each in calibration.estimates}
        for path, truth in (("tiers.gfs.metadata_ops", 400.0), ("tiers.lfs.bandwidth", 40e6)):
            each = by_path[path]
            assert each.kind == "fitted"
            assert each.high is not None
            assert 0.97 * each.low <= truth <= 1.03 * each.high
            assert each.sensitivity < -1  # more of it, less time

    def test_a_station_that_nobody_waited_for_is_at_least_something(self, calibration: Calibration) -> None:
        each = next(each for each in calibration.estimates if each.parameter.path == "tiers.lfs.metadata_ops")
        assert (each.kind, each.high) == ("at_least", None)
        assert each.low <= each.value
        assert abs(each.sensitivity) < 1

    def test_draws_are_of_all_parameters(self, calibration: Calibration) -> None:
        assert {len(draw) for draw in calibration.draws} == {len(calibration.estimates)}
        assert np.isfinite(calibration.draws).all()
        assert (np.array(calibration.draws) > 0).all()

    def test_the_model_error_is_that_of_points_between_others(self, calibration: Calibration) -> None:
        """Those at an end say how far one can see beyond, not how well between."""
        inside = [each.error for each in calibration.left_out if each.inside]
        assert {each.name for each in calibration.left_out if each.inside} == {"50%"}
        largest = max(abs(error) for error in inside)
        assert 0.5 * min(0.04, largest) <= calibration.model_error <= max(0.04, largest)

    def test_one_size_is_said(self, calibration: Calibration) -> None:
        assert calibration.one_size
        system = calibration.system(study_at("0%").system)
        assert system.model_error == calibration.model_error

    def test_measurements_are_proposed_that_were_not_made(self, calibration: Calibration) -> None:
        proposals = propose(steady(), calibration)
        texts = [each.what for each in proposals]
        assert texts[0].startswith("another file size")
        assert any("servers of gfs" in text for text in texts)
        assert not any(text in ("cache rate 0%", "cache rate 100%") for text in texts)

    def test_the_work_is_counted(self) -> None:
        _, told, promised = calibrated()
        assert sum(told) == promised

    def test_a_point_that_alone_tells_of_a_tier_is_not_left_out(self, calibration: Calibration) -> None:
        assert leave_one_out(cases(("0%", "100%")), calibration.fit) == ()
        assert {each.name for each in calibration.left_out} == {"0%", "50%", "100%"}


def test_one_epoch_is_too_little() -> None:
    from tierscope.errors import UserError  # noqa: PLC0415

    with pytest.raises(UserError, match="not enough to calibrate"):
        calibrate([case_of(study_at("0%"), 2)])


def test_leaders_are_compared_where_they_are_clear() -> None:
    clear, close = np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[0.0, 1.05], [1.0, 0.0]])
    other = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert same_leader(clear, clear)
    assert not same_leader(clear, other)
    assert same_leader(close, other)


def test_servers_that_share_themselves_are_told_from_steady_ones() -> None:
    assert (PLAIN, Serving("sharing", 0.1)) == (PLAIN, OTHERS_TRIED[1])  # among those that are tried
    hidden = ("gfs.discipline=sharing", "lfs.discipline=sharing", "gfs.service_variation=10%", "gfs.metadata_variation=10%", "lfs.service_variation=10%")  # fmt: skip
    rates = ("0%", "25%", "50%", "75%", "100%")  # of three, credit or portions explain about as much
    measured = cases(rates, "gfs.servers=1", "gfs.bandwidth=60MiB/s", "num_files_train=128", *hidden)
    found = fit(measured, STARTS[:1], servings=(PLAIN, OTHERS_TRIED[1]))
    assert found.serving.discipline == "sharing"
    assert of(found, "tiers.gfs.metadata_ops") == pytest.approx(400, rel=0.1)
    assert fitted().serving == PLAIN


def test_credit_is_found_where_it_is_and_left_out_where_it_is_not() -> None:
    hidden = (
        "gfs.servers=1",
        "gfs.metadata_ops=4000/s",
        "gfs.credit=50ms",
        "lfs.credit=50ms",
        "lfs.device_shared_by=4",
    )
    found = fit(cases(("0%", "50%", "100%"), *hidden), STARTS[:1], servings=(PLAIN,))
    assert found.terms.credit
    assert of(found, f"tiers.{found.terms.credit[0]}.credit") > 0.01
    assert fitted().terms.credit == ()
    assert fitted().terms.quotas == ()


def test_opens_that_queue_among_the_reads_are_told_from_a_metadata_server() -> None:
    hidden = ("gfs.servers=1", "gfs.metadata_ops=null", "gfs.bandwidth=20MB/s", "gfs.open_bytes=16KiB")
    found = fit(cases(("0%", "50%", "100%"), *hidden, "num_files_train=128"), STARTS[:1], servings=(PLAIN,))
    assert "gfs" in found.terms.linked
    both = (131072 + of(found, "tiers.gfs.open_bytes")) / of(found, "tiers.gfs.bandwidth")
    assert both == pytest.approx((131072 + 16384) / 20e6, rel=0.03)  # one size does not tell them apart
    assert fitted().terms.linked == ()


def test_what_is_at_least_something_is_drawn_up_to_a_factor() -> None:
    calibration = calibrated()[0]
    for place, each in enumerate(calibration.estimates):
        drawn = [draw[place] for draw in calibration.draws]
        if each.kind == "at_least":
            assert min(drawn) >= each.low * 0.999
            assert max(drawn) > 3 * min(drawn)
            assert max(drawn) <= 10.001 * each.low


def test_an_interrupted_calibration_is_the_best_fit_so_far() -> None:
    so_far = FitSoFar()

    def stop(_: int) -> None:
        if so_far.fit is not None:
            raise KeyboardInterrupt

    measured = steady()
    with pytest.raises(KeyboardInterrupt):
        calibrate(measured, stop, so_far)
    assert so_far.fit is not None
    early = finished_early(measured, so_far.fit)
    assert early.fit == so_far.fit
    assert early.left_out == ()
    assert len(early.draws) == len(calibrated()[0].draws)


def test_what_is_likelier_is_no_part_of_the_misfit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting that could be either is fitted as a queue's; whether a latency explains it as well is judged by what was measured alone."""
    hidden = ("gfs.servers=1", "gfs.latency=20ms", "gfs.bandwidth=600MB/s", "num_files_train=64")
    measured = cases(("0%",), *hidden)
    parameters = parameters_of(measured)
    true = {"latency": {"gfs": 0.02}, "bandwidth": {"gfs": 600e6, "lfs": 40e6}, "metadata_ops": {"gfs": 400.0}}
    logs = np.log(
        [true.get(each.key, {}).get(each.tier, each.low if not each.is_rate else each.high) for each in parameters]
    )
    problem = FitProblem(measured, parameters)
    misfit, loss = problem.misfit(logs), problem.loss(logs)
    assert misfit < 0.02
    assert misfit < loss
    monkeypatch.setattr("tierscope.predict.fit._LATENCY_WEIGHT", 5.0)
    assert problem.loss(logs) > 10 * loss
    assert problem.misfit(logs) == misfit


def test_a_sketch_has_its_part_of_the_credit() -> None:
    """What servers make up for at the beginning of an epoch is not there in full for a few of its samples."""
    settings = (
        "gfs.servers=1",
        "gfs.metadata_ops=null",
        "gfs.credit=2s",
        "gfs.bandwidth=20MB/s",
        "num_files_train=4096",
    )
    study = study_at("0%", *settings)
    case = case_of(study, 2)
    (short,) = sketched([case])
    assert short.share < 0.5
    assert short.schedule.files.flags.c_contiguous  # for anything else the engine is compiled again: 15 s
    assert simulate(short, study.system).io.max() == pytest.approx(short.io.max(), rel=0.06)


class TestUnevenSharing:
    """Ranks that share a server unevenly: some end sooner, the last one when all has been served."""

    @staticmethod
    def unevenly(case: Case, seed: int) -> Case:
        dice = np.random.default_rng(seed)
        shares = dice.uniform(0.75, 1.0, len(case.busy))
        shares[int(case.io.argmax())] = 1.0
        return replace(case, busy=case.busy * shares[:, None, None])

    def saturated(self) -> list[Case]:
        """One slow server that all ranks wait for: its rate shows in the slowest rank, hardly in means over ranks."""
        settings = ("gfs.servers=1", "gfs.bandwidth=4MB/s", "gfs.metadata_ops=4000/s", "lfs.bandwidth=4GB/s")
        points = [(rate, epoch) for rate in ("0%", "50%", "75%") for epoch in (2, 3)]
        whole = [replace(case_of(study_at(rate, *settings), epoch, rate), point=rate) for rate, epoch in points]
        return [self.unevenly(case, turn) for turn, case in enumerate(whole)]

    def test_the_slowest_counts_for_more_where_it_repeats(self) -> None:
        uneven = self.saturated()
        assert {case.slowest_weight for case in with_slowest_weights(uneven)} == {3.0}
        same = [replace(case, busy=uneven[0].busy) for case in uneven]
        assert {case.slowest_weight for case in with_slowest_weights(same)} == {1.0}

    def test_the_server_is_as_fast_as_its_slowest_rank_says(self) -> None:
        """By means over ranks alone it would seem 9 % faster."""
        chosen = fit(with_slowest_weights(self.saturated()), servings=(PLAIN,))
        assert of(chosen, "tiers.gfs.bandwidth") == pytest.approx(4e6, rel=0.04)
        place = [parameter.path for parameter in chosen.parameters].index("tiers.gfs.bandwidth")
        change = linearised(with_slowest_weights(self.saturated()), chosen).sensitivity(place)
        assert -10 < change < -3  # percent of the time for a tenth more, whatever the slowest weighs


def test_a_fit_is_not_chosen_for_a_lucky_throw() -> None:
    """With one throw of the dice services that vary a little seem to fit best; with many they do not."""
    dice = np.random.default_rng(1)
    varying = cases(("0%", "50%", "100%"), "gfs.service_variation=0.4", "gfs.metadata_variation=0.4")
    noisy = [replace(case, busy=case.busy * dice.lognormal(0, 0.03, case.busy.shape)) for case in varying]
    search = _Search(noisy, lambda _: None, lambda: None)
    search.begin(Terms(PLAIN), STARTS[:1])
    search.try_terms([Serving("fifo", 0.2)])
    lucky = search.best
    search.settle()
    assert lucky.terms != search.best.terms
    others = [search._by_throws(candidate, 40, 0).score for candidate in (lucky, search.best)]
    assert others[1] < others[0] - 2  # by other throws than those that it was chosen by
