"""Intervals of what is predicted for a table: what its rows do not tell is in them, or is said to be not identified."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.predict.test_measured_table import STUDY, made, with_client
from tierscope.commands.calibrate import write_known
from tierscope.predict.measured_table import FIRST_MEAN, SHARE, MeasuredTable
from tierscope.predict.table_fit import FittedTable
from tierscope.predict.table_intervals import PredictedFigure
from tierscope.predict.tables import CalibratedTable, _known, calibrate_table, validate_table
from tierscope.spec.figures import KnownFigure, numbers
from tierscope.spec.known import KnownSystem, load_system
from tierscope.spec.load import Loaded
from tierscope.watch import Silent

pytestmark = pytest.mark.whole


def predicted(known: KnownSystem, table: MeasuredTable) -> tuple[PredictedFigure, ...]:
    study = replace(with_client().study, system=known.system)
    return validate_table(table, Loaded(study, known=known), Silent()).figures


def fitted_to(table: MeasuredTable) -> CalibratedTable:
    return calibrate_table(table, with_client(), Silent())


def in_step(**costs: float) -> Loaded:
    """The client with steps that begin together."""
    client = with_client(**costs)
    workload = client.study.workload
    return Loaded(replace(client.study, workload=replace(workload, train=replace(workload.train, sync="step"))))


def test_a_single_row_does_not_tell_chance_from_cost(tmp_path: Path) -> None:
    """AU of two ranks in step: a constant cost says the same of one rank, what happens by chance says more."""
    constant = in_step(step_overhead=0.002)
    row, alone = made(constant, [(1, 2)], (SHARE,)), made(constant, [(1, 1)], (SHARE,))
    calibrated = calibrate_table(row, in_step(), Silent())
    assert list(calibrated.fitted.values) == ["step_jitter"]
    (itself,) = calibrated.figures
    assert itself.high - itself.low > 0.05  # a key hits a row whatever is wrong with the model
    write_known(calibrated.known, str(tmp_path / "system.yaml"))
    assert load_system(str(tmp_path / "system.yaml")) == calibrated.known
    loaded = Loaded(replace(in_step().study, system=calibrated.known.system), known=calibrated.known)
    (figure,) = validate_table(alone, loaded, Silent()).figures
    assert figure.low <= figure.measured <= figure.high


@pytest.mark.parametrize("ranks", [1, 32])
def test_a_single_number_of_ranks_does_not_tell_the_client_from_a_shared_limit(ranks: int) -> None:
    """Fewer ranks than were fitted, and more: decoding takes as long there, a link does not."""
    plain = with_client()
    tier = replace(plain.study.system.tiers[0], node_bandwidth=50e6)
    truth = replace(plain, study=replace(plain.study, system=replace(plain.study.system, tiers=(tier,))))
    known = fitted_to(made(truth, [(1, 8)], (FIRST_MEAN,))).known
    (itself,) = predicted(known, made(truth, [(1, 8)], (FIRST_MEAN,)))
    assert not itself.unidentified
    (figure,) = predicted(known, made(truth, [(1, ranks)], (FIRST_MEAN,)))
    assert figure.predicted == pytest.approx(figure.measured, rel=0.5) or figure.unidentified
    assert figure.low <= figure.measured <= figure.high


def test_what_is_assumed_of_a_system_is_in_the_interval() -> None:
    study = with_client().study
    tier = replace(study.system.tiers[0], latency=0.05)
    system = replace(study.system, tiers=(tier,))
    known = KnownSystem("box", system, {"tiers.gfs.latency": KnownFigure(0.05, "assumed", "why", 0.04, 0.06)})
    slower = replace(system, tiers=(replace(tier, latency=0.055),))
    measured = made(Loaded(replace(study, system=slower)), [(1, 2)], (FIRST_MEAN, SHARE))
    (first, share) = predicted(known, measured)
    assert first.low <= first.measured <= first.high
    assert share.low <= share.measured <= share.high
    assert not first.unidentified
    wide = replace(known, figures={"tiers.gfs.latency": KnownFigure(0.05, "assumed", "why", 0.005, 0.5)})
    (first, _) = predicted(wide, measured)
    assert first.unidentified == ("gfs.latency is assumed only to within 5 ms to 500 ms",)
    assert first.high > 5 * first.low


def test_fits_beside_what_is_assumed_take_it_along() -> None:
    """Decoding is fitted shorter where latency is assumed to be longer: the rows that were fitted stay where they are."""
    study = with_client(process_overhead=0.05).study
    tier = replace(study.system.tiers[0], latency=0.05)
    truth = Loaded(replace(study, system=replace(study.system, tiers=(tier,))))
    base = replace(study.system, tiers=(tier,), process_overhead=0.0)
    known = KnownSystem("box", base, {"tiers.gfs.latency": KnownFigure(0.05, "assumed", "why", 0.03, 0.08)})
    rows = made(truth, [(1, 1), (1, 2), (1, 4)], (FIRST_MEAN,))
    calibrated = calibrate_table(rows, Loaded(replace(study, system=base), known=known), Silent())
    draws = [draw for draw in calibrated.known.draws if draw["tiers.gfs.latency"] != 0.05]
    assert len(draws) > 3
    pairs = sorted((float(draw["tiers.gfs.latency"] or 0), float(draw["process_overhead"] or 0)) for draw in draws)
    assert pairs[0][1] > pairs[-1][1]
    for figure in predicted(calibrated.known, rows):
        assert figure.high < 1.25 * figure.low


def test_a_study_that_is_slower_than_was_measured_is_told_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No key that is fitted makes anything faster: the file says nothing of what storage gives, and no plain number is printed."""
    study, rows, system = tmp_path / "study.yaml", tmp_path / "rows.csv", tmp_path / "system.yaml"
    study.write_text(STUDY.replace("latency: 1 ms", "latency: 100 ms"))
    rows.write_text("ranks,au_percent\n1,95\n2,95\n")
    assert run("calibrate", rows, "--study", study, "-o", system, "--quiet") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The study is slower than was measured, and no fit makes it faster: AU of " in text
    assert "Mostly because of gfs.latency = 100 ms, 1 read for each sample: without it, AU is 100.00 %." in text
    assert "is at least" not in text
    assert text.count("not identified") == 2
    known = load_system(str(system))
    assert known.measured is not None
    assert not known.measured.served
    assert run("calibrate", rows, "--study", study, "--quiet", "--json") == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["evidence"]["key"] == "gfs.latency"
    assert run("validate", rows, "--study", study, "--system", system, "--quiet") == 0
    assert "the model itself may be" in " ".join(capsys.readouterr().out.split())
    study.write_text(STUDY)
    assert run("calibrate", rows, "--study", study, "--quiet") == 0
    assert "slower than was measured" not in capsys.readouterr().out


def test_a_study_whose_only_rate_is_what_makes_it_slow_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without that rate, and without compute, an epoch would take no time: there is nothing to compare with."""
    study, rows = tmp_path / "study.yaml", tmp_path / "rows.csv"
    text = STUDY.replace("computation_time: 20 ms", "computation_time: 0 s")
    study.write_text(text.replace("bandwidth: 100 GB/s, latency: 1 ms", "bandwidth: 10 MB/s"))
    rows.write_text("ranks,epoch_s\n1,1\n2,1.1\n")
    assert run("calibrate", rows, "--study", study, "--quiet") == 0
    assert "The study is slower than was measured" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_a_single_step_has_no_utilisation(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, rows = tmp_path / "study.yaml", tmp_path / "rows.csv"
    study.write_text(STUDY)
    rows.write_text("ranks,au_percent,steps\n1,90,1\n2,80,1\n")
    assert run(command, rows, "--study", study, "--quiet") == 2
    assert "AU needs more than one step, and small has one for each rank" in one_line(capsys)
    rows.write_text("ranks,au_percent,steps\n1,90,1\n2,80,30\n")  # the other row tells something
    assert run(command, rows, "--study", study, "--quiet") == 0


def test_figures_of_other_fits_stand_in_the_order_of_their_keys() -> None:
    """As their file does, whatever the order of sets is today."""
    loaded = with_client()
    keys = ("process_overhead", "step_overhead", "step_jitter", "tiers.gfs.latency", "tiers.gfs.bandwidth")
    other = {key: float(numbers(loaded.study.system)[key] or 0.0) for key in keys}
    fitted = FittedTable(loaded.study.system, {}, {}, 0.0, 0.0, alike=(other, other))
    figures = list(_known(made(loaded, [(1, 2)], (SHARE,)), loaded, fitted).figures)
    assert len(figures) > 3
    assert figures == sorted(figures)
