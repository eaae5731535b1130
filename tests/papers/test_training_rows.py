"""Rows of the Training study: every judged row has a verdict, ways over links are the published ones, and a verdict can fail."""

import pytest

from tierscope.analysis.statistics import Interval
from tierscope.cli.main import _run
from tierscope.loaders.choose import choose_loader
from tierscope.papers import (
    training_accuracy,
    training_basics,
    training_formats,
    training_links,
    training_node,
    training_workers,
)
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.reproduce import check_section
from tierscope.papers.section import PaperSection
from tierscope.papers.sections import STUDIES
from tierscope.papers.training_model import P100Steps, p100_steps
from tierscope.papers.tuned_studies import TunedPoint, TunedSweep
from tierscope.spec import sweep
from tools.docs.papers import unexplained

pytestmark = pytest.mark.whole

STUDY = STUDIES["training"]
MADE_UP = {name: P100Steps(0.002, 1e-4 * 4**number, 0.001, 2e-4 * 4**number) for number, name in enumerate(("lenet5", "alexnet", "resnet50", "resnet101"))}  # fmt: skip
MISSING = MissingMeasurement("no file here")


def checked(module: str, made: PaperSection) -> dict[str, str]:
    check_section("training", next(entry for entry in STUDY.sections if entry.module == module), made.verdicts)
    assert all(verdict.ours for verdict in made.verdicts)
    return {verdict.id: verdict.outcome for verdict in made.verdicts}


def test_sections_give_exactly_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever verdict they have: one seed and one epoch give one as well."""
    monkeypatch.setattr(training_accuracy, "FEW_SEEDS", 1)
    monkeypatch.setattr(training_accuracy, "EPOCHS", 1)
    checked("training_basics", training_basics.make(True))
    checked("training_links", training_links.make(True))
    checked("training_accuracy", training_accuracy.make(True))
    for name, section in (("training_node", training_node.section), ("training_workers", training_workers.section)):
        checked(name, section(MADE_UP))
        assert set(checked(name, section(MISSING)).values()) == {"not available here"}


def test_every_row_that_does_not_hold_says_why() -> None:
    steps = p100_steps()
    verdicts = [verdict for module in (training_node, training_workers) for verdict in module.section(steps).verdicts]
    assert sum(verdict.outcome == "does not hold" for verdict in verdicts) > 10
    assert unexplained((verdict.id, verdict.outcome, verdict.why) for verdict in verdicts) == []


def test_a_slight_gain_is_less_than_a_tenth_and_an_assumption_shows_nothing() -> None:
    """One server's network is full of ResNet-101's gradients at the fast end."""
    steps = p100_steps()
    assert not isinstance(steps, MissingMeasurement)
    outcomes = {verdict.id: verdict.outcome for verdict in training_workers.section(steps).verdicts}
    assert outcomes["T-F9-1"] == "does not hold"
    assert outcomes["T-F8-6"] == "not available here"
    only_lenet = {name: P100Steps(1.0, 0.0, 0.0, 0.01) for name in steps}
    gained = training_workers.Served(training_node.ModelledNode(only_lenet)).more_servers("resnet101", "slow", 4)
    assert 1 < gained < 1.1


@pytest.mark.parametrize(("other", "outcome"), [(1.005, "holds"), (1.02, "does not hold"), (0.98, "does not hold")])
def test_formats_differ_or_not(other: float, outcome: str) -> None:
    def measured(lmdb: float) -> TunedSweep:
        seconds = {"tfrecord": 1.0, "lmdb": lmdb}
        return TunedSweep(
            "format",
            tuple(TunedPoint(name, Interval(value, value, value, 1, "range"), 1.0) for name, value in seconds.items()),
        )

    images = training_formats.FILES * training_formats.PER_FILE
    possible = {"lenet5": 2.0 * images, "resnet50": 1.02 * images}
    made = training_formats.section({"lenet5": measured(other), "resnet50": measured(1.0)}, possible)
    assert checked("training_formats", made)["T-F10-1"] == outcome
    assert "reading is the limit of LeNet:" in next(row.why for row in made.verdicts if row.id == "T-F10-1")


def test_formats_are_compared_by_a_study_that_can_run() -> None:
    study = training_formats.sweep_of(MADE_UP["lenet5"]).study(1)
    assert [point.study.workload.dataset.format for point in sweep.points(study)] == list(training_formats.FORMATS)
    assert not any(tier.emulate for tier in study.system.tiers)  # LMDB is refused there
    assert {choose_loader(point.study) for point in sweep.points(study)} == {"threads"}  # formats, not loaders, differ
    assert study.workload.reader.evict is False  # the rows say: from memory


def test_gradients_of_the_far_pair_go_through_both_processors() -> None:
    assert training_links.way("GPU 3", "GPU 0") == ("GPU 3", "CPU 1", "CPU 0", "GPU 0")
    assert training_links.moved(10.0, 0.0, gpus=2) == {"GPU–CPU": 10.0, "GPU–GPU": 20.0}


def test_a_worker_that_needs_no_network_scales_and_one_that_fills_it_does_not() -> None:
    job = training_workers.Served(training_node.ModelledNode(MADE_UP))
    assert job.gain("lenet5", "slow", 32) == pytest.approx(32, rel=0.02)
    assert job.gain("resnet101", "fast", 32, network=1e8) < 4


def test_a_wrong_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["reproduce", "training", "--row", "T-F4-99"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
