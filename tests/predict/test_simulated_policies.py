"""Policies in whole studies: swept in a simulation, shown with their hit rates, refused in a benchmark."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.tiny import tiny
from tests.traces import as_simulated
from tierscope.analysis.analysis import Analysis
from tierscope.analysis.to_json import breakdown_json
from tierscope.commands.analyze import analyze
from tierscope.commands.simulate import simulate_study
from tierscope.errors import UserError
from tierscope.measure.crews import Crews
from tierscope.measure.run import generate_data, run_study
from tierscope.output.store import RunStore
from tierscope.report.tables import BreakdownView
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

POLICIES = ["clairvoyant", "first-touch", "lru", "partition", "pinned"]


def study(*settings: str) -> Study:
    """Two nodes with 128 files; each has room for a quarter of them, which is half of its share."""
    shared = ["num_files_train=128", "nodes=2", "sweep={}", "shuffle=local", "cache_rate=25%", "epochs=3"]
    return load_study("demo", [*shared, *settings])


def analysed(study: Study, out: Path, method: str = "bound") -> Analysis:
    simulate_study(study, str(out), method, Silent())
    return analyze(str(out))


@pytest.mark.parametrize("method", ["bound", "events"])
def test_policies_can_be_swept(tmp_path: Path, method: str) -> None:
    wanted = study(f"sweep.placement.policy=[{', '.join(POLICIES)}]")
    analysis = analysed(wanted, tmp_path / "out", method)
    found = {
        (point["sweep"]["policy"], point["epoch"]): point["hit_rate"]
        for point in breakdown_json(analysis.breakdown, analysis.findings, analysis.conditions)["points"]
    }
    shares = {policy: [found[policy, epoch] for epoch in (1, 2, 3)] for policy in POLICIES}
    assert shares["partition"] == [0.5, 0.5, 0.5]
    assert shares["first-touch"] == [0.0, 0.5, 0.5]
    assert shares["lru"][0] == 0.0
    assert 0 < shares["lru"][1] < 0.5  # what comes round is mostly gone by then
    assert shares["clairvoyant"][0] == 0.0
    assert sum(shares["clairvoyant"]) >= sum(shares["first-touch"])
    assert shares["pinned"][0] == pytest.approx(0.25, abs=0.1)
    by_policy = {point.sweep["policy"]: point for point in analysis.breakdown.summary}
    assert by_policy["first-touch"].hit_rate == 0.5
    assert by_policy["first-touch"].staging_seconds is None
    assert by_policy["partition"].staging_seconds
    abouts = [as_simulated(trace) for trace in RunStore(str(tmp_path / "out")).load_all()]
    assert {about.policy: about.upper_bound for about in abouts} == {
        policy: policy == "clairvoyant" and method == "bound" for policy in POLICIES
    }


def shown(analysis: Analysis) -> str:
    target = io.StringIO()
    view = BreakdownView(analysis.name, analysis.breakdown, analysis.findings, analysis.conditions)
    Console(file=target, width=300, highlight=False).print(view)
    return target.getvalue()


def test_the_table_has_hit_rates_where_they_are_no_cache_rates(tmp_path: Path) -> None:
    with_others = shown(analysed(study("sweep.policy=[pinned, first-touch]"), tmp_path / "others"))
    (row,) = [line.split() for line in with_others.splitlines() if line.strip().startswith("first-touch")]
    assert "hit rate" in with_others
    assert row[:2] == ["first-touch", "50.0%"]
    assert "hit rate" not in shown(analysed(study(), tmp_path / "pinned"))


def test_a_sweep_of_cache_rates_says_when_staging_pays(tmp_path: Path) -> None:
    swept = study("shuffle=global", "sweep.cache_rate=[0%, 50%, 100%]")
    analysis = analysed(swept, tmp_path / "out")
    bare, half, whole = analysis.breakdown.summary
    assert (bare.staging_seconds, bare.break_even_epochs) == (0.0, 0)
    assert half.staging_seconds is not None
    assert whole.staging_seconds == pytest.approx(2 * half.staging_seconds, rel=0.05)
    assert bare.epoch_seconds
    assert half.epoch_seconds
    assert half.break_even_epochs
    assert half.break_even_epochs >= half.staging_seconds / (bare.epoch_seconds - half.epoch_seconds)
    (finding,) = [finding for finding in analysis.findings if finding.kind == "staging_pays"]
    assert finding.evidence["soonest_epochs"] == min(half.break_even_epochs, whole.break_even_epochs or 10**9)
    assert "epochs" in finding.text


@pytest.mark.parametrize("policy", ["lru", "partition", "clairvoyant"])
def test_a_benchmark_does_not_know_them_all(tmp_path: Path, policy: str) -> None:
    crews, line = Crews(), rf"placement.policy = {policy}; .* set one of them, or use 'tierscope simulate'"
    try:
        for start in (run_study, generate_data):
            with pytest.raises(UserError, match=line):
                start(tiny(f"policy={policy}", "shuffle=local"), str(tmp_path / "out"), crews, Silent())
    finally:
        crews.close()
    assert not (tmp_path / "out").exists()
