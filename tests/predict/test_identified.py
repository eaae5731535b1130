"""What a calibration cannot tell is bounds and a reason; whatever it writes can be simulated."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

pytest.importorskip("numba")

from tests.examples import examples
from tests.predict import planning
from tests.predict.planning import loaded
from tests.predict.queueing import case_of as queueing_case
from tests.predict.queueing import study_of, tier
from tierscope.cli.settling import study_to_settle
from tierscope.commands.calibrate import Calibrated
from tierscope.errors import UserError
from tierscope.predict.calibrate import Calibration, FittedKey
from tierscope.predict.case import Case
from tierscope.predict.exploration import SimulatedExploration
from tierscope.predict.explore_simulated import ExplorationRequest, explore_simulated, simulate_combination
from tierscope.predict.fit import Fit
from tierscope.predict.modelled import ModelledPoint, answer
from tierscope.predict.plan_json import largest_fed_json
from tierscope.predict.rates import PLAIN, Parameter, Serving, Terms, without_rates
from tierscope.predict.searches import find_most
from tierscope.predict.settle import settle
from tierscope.predict.simulation import Simulation
from tierscope.report.models import ModelAnswerView, SimulatedExplorationView
from tierscope.report.plans import LargestFedView
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem, dump_system, parse_system
from tierscope.spec.study import Axis, Study
from tierscope.watch import Silent

NEAR = tier("lfs", bandwidth=1e6, visible_to="node")
FAR = tier("gfs", bandwidth=1e5, metadata_ops=500.0)
MEASURED = CalibratedRange((1000.0,), (4,), (0.0, 0.5, 1.0))


def asked(record: int = 1000, rate: float = 0.5, ranks: int = 4) -> Study:
    study = study_of(NEAR, FAR, files=64, ranks_per_node=ranks, cache_rate=rate, record=record)
    return replace(study, system=replace(study.system, model_error=0.03))


def known(**figures: KnownFigure) -> KnownSystem:
    paths = {f"tiers.gfs.{key}": figure for key, figure in figures.items()}
    return KnownSystem("box", asked().system, paths, (), MEASURED)


AT_LEAST = KnownFigure(500.0, "fitted", "to a run", 83.0, None)


class TestAFasterServer:
    """What was fitted as latency may be the client's, and then a faster server does not help."""

    def test_is_told_where_latency_leads(self) -> None:
        slow = replace(FAR, latency=0.05)
        before = replace(known(), system=replace(known().system, tiers=(NEAR, slow)))
        study = study_of(NEAR, replace(slow, bandwidth=2e5), files=64, ranks_per_node=4, cache_rate=0.0)
        found = simulate_combination({}, study, "events", before)
        assert any("fitted as latency" in why for why in found.unidentified)
        assert found.low_seconds < 0.7 * found.io_seconds
        as_it_was = simulate_combination({}, replace(study, system=before.system), "events", None)
        assert found.high_seconds >= 0.97 * as_it_was.io_seconds  # a faster server may bring nothing

    def test_is_a_number_where_it_does_not(self) -> None:
        study = study_of(NEAR, replace(FAR, bandwidth=2e5), files=64, ranks_per_node=4, cache_rate=0.0)
        assert simulate_combination({}, study, "events", known()).unidentified == ()


class TestAnotherCrowd:
    """Four ranks were measured: whether they queued or each waited for its own latency is told by another number of them."""

    @staticmethod
    def either(path: str = "bandwidth") -> KnownSystem:
        """A rate, or up to ten times that and a latency that takes its place: four ranks cannot tell."""
        figure = KnownFigure(1e5, "fitted", "to a run", 1e5, None)
        shares = [10 ** (number / 9) for number in range(10)]
        draws = tuple(
            {f"tiers.gfs.{path}": 1e5 * share, "tiers.gfs.latency": 0.04 * (1 - 1 / share) + 1e-5} for share in shares
        )
        latency = KnownFigure(1e-5, "fitted", "to a run", 1e-6, 1e-4)
        far = replace(FAR, latency=1e-5)
        system = replace(asked().system, tiers=(NEAR, far))
        return KnownSystem("box", system, {f"tiers.gfs.{path}": figure, "tiers.gfs.latency": latency}, draws, MEASURED)

    @staticmethod
    def on(system: KnownSystem, ranks: int, rate: float = 0.0) -> Any:
        study = asked(rate=rate, ranks=ranks)
        shaped = replace(system.system, ranks_per_node=ranks, model_error=0.03)
        return simulate_combination({}, replace(study, system=shaped), "events", system)

    @pytest.mark.parametrize(("rate", "near"), [(0.0, 1e6), (0.4, 1e6)])
    def test_is_told_with_bounds(self, rate: float, near: float) -> None:
        """Also where the near tier is what takes longest, were nobody to wait for anybody."""
        system = self.either()
        tiers = (replace(NEAR, bandwidth=near), system.system.tiers[1])
        found = self.on(replace(system, system=replace(system.system, tiers=tiers)), 16, rate)
        assert any("gfs.bandwidth is only known to be at least" in why for why in found.unidentified)
        assert found.low_seconds < 0.85 * found.io_seconds

    def test_bounds_reach_to_a_limit_of_every_rank(self) -> None:
        """Four times the ranks get four times as much, if what was fitted as a server's rate is a limit of each of them; draws need not go so far."""
        system = self.either()
        close = tuple(draw for draw in system.draws if (draw["tiers.gfs.bandwidth"] or 0.0) < 1.5e5)
        found = self.on(replace(system, draws=close * 4), 16)
        assert found.unidentified
        assert found.low_seconds < 0.3 * found.io_seconds

    def test_is_a_number_for_as_many_as_were_measured(self) -> None:
        assert self.on(self.either(), 4).unidentified == ()


def test_another_number_of_servers_is_less_certain() -> None:
    """What was measured on one server says less of four."""
    more = replace(asked(rate=0.0).system, tiers=(NEAR, replace(FAR, servers=4)))
    there = simulate_combination({}, replace(asked(rate=0.0), system=more), "events", known())
    spread = [
        found.high_seconds / found.low_seconds
        for found in (simulate_combination({}, asked(rate=0.0), "events", known()), there)
    ]
    as_measured = replace(known(), system=more)
    alone = simulate_combination({}, replace(asked(rate=0.0), system=more), "events", as_measured)
    assert spread[1] > 1.02 * alone.high_seconds / alone.low_seconds
    assert spread[1] > spread[0]


class TestAnotherSize:
    def test_from_one_size_is_bounds_and_a_reason(self) -> None:
        found = simulate_combination({}, asked(16000, 0.0), "events", known())
        assert any("calibrated only with reads of" in why for why in found.unidentified)
        assert found.low_seconds < 0.2 * found.io_seconds  # all of it may be the operation's own
        assert found.high_seconds >= found.io_seconds

    def test_from_two_sizes_is_a_number(self) -> None:
        two = replace(known(), measured=replace(MEASURED, read_bytes=(1000.0, 64000.0)))
        assert simulate_combination({}, asked(16000, 0.0), "events", two).unidentified == ()

    def test_below_all_sizes_is_bounds_and_a_reason(self) -> None:
        larger = replace(known(), measured=replace(MEASURED, read_bytes=(64000.0, 256000.0)))
        found = simulate_combination({}, asked(16000, 0.0), "events", larger)
        assert any("only with reads of 64 kB and more" in why for why in found.unidentified)
        assert (
            found.low_seconds <= found.io_seconds < 0.5 * found.high_seconds
        )  # a read of 16 kB may take as long as one of 64

    def test_what_is_taken_for_a_metadata_server_may_be_the_bytes(self) -> None:
        """Opens that wait behind reads look like a slow metadata server: then smaller files are opened sooner, too."""
        opens = replace(FAR, bandwidth=1e7, metadata_ops=20.0)
        larger = replace(known(), measured=replace(MEASURED, read_bytes=(64000.0, 256000.0)))
        larger = replace(larger, system=replace(larger.system, tiers=(NEAR, opens)))
        study = study_of(NEAR, opens, files=64, ranks_per_node=4, record=16000)
        simulated = simulate_combination({}, study, "events", larger)
        assert simulated.unidentified
        assert simulated.low_seconds < 0.35 * simulated.io_seconds

    def test_the_same_size_is_a_number(self) -> None:
        found = simulate_combination({}, asked(), "events", known())
        assert found.unidentified == ()
        assert found.high_seconds < 1.4 * found.low_seconds


class TestAtLeast:
    def test_where_it_matters_it_is_told(self) -> None:
        slow = study_of(NEAR, replace(FAR, bandwidth=1e7), files=64, ranks_per_node=4, cache_rate=0.0)
        found = simulate_combination({}, slow, "events", known(metadata_ops=AT_LEAST))
        assert found.unidentified == ("gfs.metadata_ops is only known to be at least 83/s",)
        assert found.high_seconds > 2 * found.low_seconds

    def test_where_it_does_not_it_is_not(self) -> None:
        found = simulate_combination({}, asked(rate=1.0), "events", known(metadata_ops=AT_LEAST))
        assert found.unidentified == ()


class TestAFigureThatMayBeAnything:
    """What somebody assumed to lie anywhere leaves a pair of bounds, and no answer."""

    @staticmethod
    def assumed(low: float, high: float) -> KnownSystem:
        figure = KnownFigure(1e5, "assumed", "no figure is public", low, high)
        return KnownSystem("box", asked().system, {"tiers.gfs.bandwidth": figure}, (), None)

    def test_is_told_where_it_matters(self) -> None:
        found = simulate_combination({}, asked(rate=0.0), "events", self.assumed(2e4, 5e5))
        assert found.unidentified == ("gfs.bandwidth is assumed only to within 20 kB/s to 500 kB/s",)
        assert found.high_seconds > 2 * found.low_seconds

    @pytest.mark.parametrize(("low", "high", "rate"), [(8e4, 1.2e5, 0.0), (2e4, 5e5, 1.0)], ids=["close", "unused"])
    def test_is_not_where_it_does_not(self, low: float, high: float, rate: float) -> None:
        assert simulate_combination({}, asked(rate=rate), "events", self.assumed(low, high)).unidentified == ()

    def test_no_number_of_ranks_is_an_answer(self) -> None:
        """However many meet the goal with the rates as simulated: what is certain comes first, then the point to measure."""
        plain = loaded(rates="0%", compute="20 ms", nodes=1, ranks=1, capacity="1 GB")
        figure = KnownFigure(1e8, "assumed", "no figure is public", 1e6, 5e9)
        box = KnownSystem("box", plain.study.system, {"tiers.gfs.bandwidth": figure}, (), None)
        fed = find_most(replace(plain, known=box), "ranks_per_node", "au=90%", "bound", Silent())
        assert fed.sure == 0 < fed.value
        assert fed.safe is None
        shown = console_text(LargestFedView("mine.yaml", fed))
        assert shown.splitlines()[1].startswith(
            "Not identified: no number of ranks per node is certain to meet the goal. With rates as simulated,"
        )
        simulated = fed.tried[fed.value].study
        assert simulated is not None
        files = simulated.workload.dataset.num_files_train
        point = f"--set system.ranks_per_node={fed.value} --set placement.cache_rate=0% --set workload.dataset.num_files_train={files} --out OUT"
        assert f"Measure this point: tierscope run mine.yaml {point};" in shown
        assert largest_fed_json(fed)["unidentified"] == ["gfs.bandwidth is assumed only to within 1 MB/s to 5 GB/s"]


def console_text(view: Any) -> str:
    console = Console(width=500, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def test_further_away_intervals_are_wider() -> None:
    widths = []
    for ranks in (4, 8, 16):
        found = simulate_combination({}, asked(ranks=ranks), "events", known())
        widths.append(found.high_seconds / found.low_seconds)
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize(("policy", "fits"), [("pinned", True), ("first-touch", True), ("lru", False)])
def test_a_study_is_settled_if_rates_can_be_fitted_to_its_runs(policy: str, fits: bool, tmp_path: Path) -> None:
    """What `--for` takes is what `calibrate` takes, and the reason says so."""
    path = tmp_path / "study.yaml"
    text = planning.TEXT.format(**{**planning.PLAIN, "policy": policy, "rates": "0%, 50%"})
    path.write_text(text)
    if not fits:
        with pytest.raises(UserError, match=f"placement.policy is {policy}.*with pinned or first-touch"):
            study_to_settle(str(path))
        return
    study = study_to_settle(str(path))
    assert study is not None
    box = KnownSystem("box", study.system, {}, (), CalibratedRange((100016.0,), (8,), (0.0, 0.5)))
    assert settle(box, study).open_points == 0


def test_the_fewest_points_that_settle_a_study() -> None:
    """Another size at five rates, and one open rate that matters without the near tier: one point tells both."""
    study = replace(asked(16000), sweep=(Axis("placement.cache_rate", (0.0, 0.25, 0.5, 0.75, 1.0)),))
    found = settle(known(), study)
    assert (found.asked, found.open_points, len(found.points)) == (5, 5, 1)
    assert settle(known(), replace(asked(), sweep=study.sweep)).points == ()


@st.composite
def calibrations(draw: st.DrawFn) -> Calibrated:
    """Whatever a fit may end with: rates beyond all limits, terms of tiers that nobody read, errors of any size."""
    read = draw(st.sampled_from([("lfs", "gfs"), ("gfs",), ("lfs",)]))
    linked = tuple(name for name in read if draw(st.booleans()))
    credit = tuple(name for name in read if draw(st.booleans()))
    serving = draw(st.sampled_from([PLAIN, Serving("sharing", 0.1), Serving("fifo", 1.5)]))
    terms = Terms(serving, () if serving.discipline == "sharing" else credit, linked)
    numbers = st.floats(1e-9, 1e30)
    parameters, estimates = [], []
    for name in read:
        keys = ["open_bytes" if name in linked else "metadata_ops", "metadata_latency", "bandwidth", "latency"]
        for key in [*keys, *(["credit"] if name in terms.credit else [])]:
            value = draw(numbers)
            parameter = Parameter(name, key, value, 1e-9, 1e30)
            open_ended = parameter.is_rate and draw(st.booleans())
            kind, high = ("at_least", None) if open_ended else ("fitted", value * draw(st.floats(1, 100)))
            parameters.append(parameter)
            estimates.append(FittedKey(parameter, kind, value, value / draw(st.floats(1, 100)), high, 0.0))
    values = tuple(each.value for each in estimates)
    draws = tuple(tuple(value * draw(st.floats(0.1, 10)) for value in values) for _ in range(2))
    fit = Fit(tuple(parameters), values, 0.1, (1000.0,), terms)
    found = Calibration(
        fit, tuple(estimates), draws, (), draw(st.floats(0, 1e3)), draw(st.floats(0, 1e3)), True, MEASURED
    )
    study = asked()
    return Calibrated("any", replace(study, system=without_rates(study.system)), found, (), 2)


@given(calibrations())
@settings(max_examples=examples(40), deadline=None)
def test_every_system_that_calibrate_writes_is_one_that_simulate_takes(found: Calibrated) -> None:
    text = dump_system(found.known)
    read = parse_system(text, "any.yaml")
    assert dump_system(read) == text
    tiers: list[Any] = [each for each in read.system.tiers if each.bandwidth or each.latency]
    if len(tiers) == 2:
        Simulation.of(replace(asked(), system=read.system)).epoch(1, "bound")


class TestWhatIsNotIdentified:
    """Another size than was measured: bounds, a word on top, and no recommendation that rests on the number between them."""

    @staticmethod
    def explored(goal: str) -> tuple[SimulatedExploration, str]:
        plain = loaded(vary=("gfs.servers=2, 4",), rates="0%")
        measured = CalibratedRange((1000.0,), (8,), (0.0, 0.5, 1.0))
        known = KnownSystem("box", plain.study.system, {}, (), measured)
        wanted = ExplorationRequest(("gfs.servers=2,4",), goal, (), "bound")
        found = explore_simulated(replace(plain, known=known), wanted, Silent())
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(SimulatedExplorationView("study.yaml", found))
        return found, console.export_text()

    def test_is_said_on_top_and_not_recommended(self) -> None:
        best = min(self.explored("io=1s")[0].combinations, key=lambda each: each.io_seconds)
        assert best.unidentified
        assert best.high_seconds > 1.2 * best.io_seconds
        found, text = self.explored(f"io={(best.io_seconds + best.high_seconds) / 2}s")
        assert found.pareto == ()
        assert "cannot be met" not in text
        lines = text.splitlines()
        assert lines[1].startswith("Not identified, 2 of 2 options: reads of 100016 B")
        assert any("is not identified" in line for line in lines[1:8])
        assert sum(" not identified " in line for line in lines) >= 2  # each of the options, below "leaves unsolved"

    def test_is_an_option_where_the_worse_bound_meets_the_goal(self) -> None:
        best = max(self.explored("io=1s")[0].combinations, key=lambda each: each.high_seconds)
        found, text = self.explored(f"io={1.01 * best.high_seconds}s")
        assert found.pareto
        assert "Not identified, 2 of 2 options" in text


def test_a_faster_server_by_the_model_is_bounds_where_latency_was_fitted(capsys: pytest.CaptureFixture[str]) -> None:
    """`estimate --with-model` says what `simulate` says."""
    slow = replace(FAR, latency=0.05)
    study = study_of(NEAR, slow, files=64, ranks_per_node=4, cache_rate=0.0)
    system = KnownSystem("box", study.system, {}, (), MEASURED)
    measured = queueing_case(study)
    case = Case(study, measured.reading, measured.schedule, np.ones((4, 2, 3)))
    found = answer([ModelledPoint({"cache_rate": 0.0}, (case,), 8.0, 5.0)], study.system, {"GFS-READ": 100.0}, system)
    (point,) = found.points
    assert any("fitted as latency" in why for why in point.unidentified)
    assert point.low_seconds < 0.8 * point.model_seconds
    Console(width=200).print(ModelAnswerView(found))
    text = capsys.readouterr().out
    assert "Not identified at" in text
    assert "Best:" not in text
