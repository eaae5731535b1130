"""simulate, calibrate, validate, explore --simulate, estimate --with-model: exact words, keys and refusals."""

import json
import shutil
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.in_memory import tmp_path_factory
from tierscope.commands import calibrate, validate
from tierscope.jsonable import cache_rate_of
from tierscope.predict.case import Case
from tierscope.predict.choosing import fit
from tierscope.predict.fit import Fit, FitProblem
from tierscope.predict.rates import Serving
from tierscope.predict.solving import STARTS
from tierscope.spec import load
from tierscope.spec.known import load_system

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]
pytest.importorskip("numba")
pytest.importorskip("scipy")

SMALL = ["--set", "num_files_train=128", "--set", "sweep={}", "--set", "sweep.cache_rate=[0%, 50%, 100%]"]
TWO_EPOCHS = ["--set", "epochs=2"]  # one of them is counted


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def text(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(*arguments) == 0
    return capsys.readouterr().out


_fits: dict[Hashable, Fit] = {}


def remembered_fit(cases: Sequence[Case], servings: Sequence[Serving] | None = None, **_: Any) -> Fit:
    """From the first start; once for the same measured times: commands leave the same points out."""
    times = tuple((case.point, case.busy.tobytes()) for case in cases)
    key = (times, servings and tuple(servings))
    if key not in _fits:
        _fits[key] = fit(cases, STARTS[:1], servings)
    return _fits[key]


@pytest.fixture(autouse=True)
def _quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways to serve, all starts and more draws are for tests/predict/test_fit.py: they take long."""
    monkeypatch.setattr("tierscope.predict.choosing.OTHERS_TRIED", ())
    monkeypatch.setattr("tierscope.predict.calibrate.DRAWS", 3)
    for module in ("predict.calibrate", "commands.estimate", "commands.validate"):
        monkeypatch.setattr(f"tierscope.{module}.fit", remembered_fit)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """By events, with rates that calibration is to find."""
    out = str(tmp_path_factory.mktemp("simulated") / "out")
    settings = [*SMALL, *TWO_EPOCHS, "--set", "gfs.servers=1"]
    assert run("simulate", "demo", *settings, "--method", "events", "--out", out) == 0
    return out


@pytest.fixture(scope="module")
def found_of_simulated() -> dict[str, Any]:
    return {}


@pytest.fixture
def once(simulated: str, found_of_simulated: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fitted to `simulated` is fitted once by each command, and shown as often as it is asked for."""

    def remembering(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(outs: Sequence[str], watch: Any) -> Any:
            if tuple(outs) != (simulated,):
                return real(outs, watch)
            if name not in found_of_simulated:
                found_of_simulated[name] = real(outs, watch)
            return found_of_simulated[name]

        return call

    for module, name in ((calibrate, "calibrate_results"), (validate, "validate_results")):
        monkeypatch.setattr(module, name, remembering(name, getattr(module, name)))


def test_simulate_prints_a_breakdown_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "simulate", "demo", *SMALL, "--out", str(tmp_path / "out"))
    assert (found["kind"], found["simulated"], found["methods"]) == ("breakdown", True, ["events"])
    for point in found["points"]:
        assert point["io_seconds_low"] <= point["io_seconds"] <= point["io_seconds_high"]
    assert "simulated" in {finding["kind"] for finding in found["findings"]}


def test_simulate_takes_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(
        capsys, "simulate", "demo", *SMALL, "--system", "laptop", "--set", "nodes=1", "--out", str(tmp_path / "out")
    )
    assert found["points"]


@pytest.mark.usefixtures("once")
def test_calibrate_writes_a_system_that_simulate_takes(
    simulated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    found = printed(capsys, "calibrate", simulated, "-o", str(path))
    fitted = {each["key"]: each for each in found["parameters"]}
    assert fitted["tiers.gfs.metadata_ops"]["value"] == pytest.approx(400, rel=0.05)
    assert fitted["tiers.lfs.metadata_ops"]["kind"] == "at_least"
    assert fitted["tiers.lfs.metadata_ops"]["value"] is None
    known = load_system(str(path))
    assert known.draws
    assert known.system.tiers[1].metadata_ops == pytest.approx(400, rel=0.05)
    assert known.system.model_error == pytest.approx(found["model_error"], abs=1e-4)
    again = printed(capsys, "simulate", "demo", *SMALL, "--system", str(path), "--out", str(tmp_path / "again"))
    assert again["summary"][0]["io_seconds"] == pytest.approx(128 / 400, rel=0.1)
    assert run("calibrate", simulated, "-o", str(path)) == 2
    assert "already exists" in one_line(capsys)


@pytest.mark.usefixtures("once")
def test_calibrate_says_what_it_found_and_what_to_measure(simulated: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "calibrate", simulated)
    assert all(words in shown for words in ("gfs.metadata_ops", "at least", "another file size"))


@pytest.mark.usefixtures("once")
def test_validate_leaves_each_point_out(simulated: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "validate", simulated)
    assert found["kind"] == "validation"
    assert {point["point"] for point in found["points"]} == {"cache_rate 0%", "cache_rate 50%", "cache_rate 100%"}
    assert found["median_error"] <= found["largest_error"]
    assert "Median error" in text(capsys, "validate", simulated)


def test_estimate_with_the_model_prints_both(simulated: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "estimate", simulated, "--improve", "GFS-META=50", "--with-model")
    model = found["model"]
    assert model["shown"] in ("model", "scaling")
    first = model["points"][0]
    assert first["sweep"] == {"cache_rate": 0.0}
    assert first["model_seconds"] == pytest.approx(first["before_seconds"] / 1.5, rel=0.05)
    by_rate = {point["sweep"]["cache_rate"]: point for point in model["points"]}
    assert by_rate[1.0]["model_seconds"] == pytest.approx(by_rate[1.0]["before_seconds"])
    assert "By the station model" in text(capsys, "estimate", simulated, "--improve", "GFS-META=50", "--with-model")


def test_explore_simulates_other_systems(capsys: pytest.CaptureFixture[str]) -> None:
    vary = ["--vary", "gfs.metadata_ops=400,800,1600", "--vary", "gfs.servers=1,4"]
    found = printed(capsys, "explore", "--simulate", "demo", *SMALL, "--goal", "200ms", *vary, "--cost", "gfs.metadata_ops=1/%", "--cost", "gfs.servers=10/server")  # fmt: skip
    assert (found["kind"], found["simulated"], len(found["grid"])) == ("exploration", True, 6)
    assert all(entry["io_seconds"] <= 0.2 for entry in found["pareto"])
    costs = [entry["cost"] for entry in found["pareto"]]
    assert costs == sorted(costs)
    base = next(entry for entry in found["grid"] if entry["settings"] == {"metadata_ops": 400.0, "servers": 4})
    assert base["cost"] == 0


def test_a_study_is_read_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    read: list[str] = []
    reading = load._read

    def counted(name: str, wanted: str) -> tuple[str, str]:
        read.append(name)
        return reading(name, wanted)

    monkeypatch.setattr(load, "_read", counted)
    printed(capsys, "explore", "--simulate", "demo", *SMALL, "--goal", "1s", "--vary", "nodes=1,2")
    assert read == ["demo"]


def test_what_is_set_last_counts() -> None:
    settings = ["num_files_train=24", "num_files_train=48", "num_files_train=24"]
    assert load.load("demo", settings).study.workload.dataset.num_files_train == 24


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("simulate", "demoo"), "did you mean the preset demo?"),
        (("simulate", "demo", "--set", "gfs.metadata_ops=0/s"), "metadata_ops"),
        (("simulate", "demo", "--set", "gfs.metadata_ops=-3/s"), "metadata_ops"),
        (("simulate", "demo", "--system", "fugaco"), "did you mean fugaku?"),
        (("calibrate", "nowhere"), "nowhere"),
        (("explore", "--simulate", "demo", "--goal", "1s"), "nothing varies"),
        (
            ("explore", "--simulate", "demo", "--goal", "1s", "--vary", "gfs.servers"),
            "--vary gfs.servers: must be KEY=VALUES",
        ),
        (
            ("explore", "--simulate", "demo", "--goal", "1s", "--vary", "gfs.server=1,2"),
            "tierscope: --vary gfs.server=1,2: gfs.server: unknown key; did you mean",
        ),
        (
            ("explore", "--simulate", "demo", "--goal", "1s", "--vary", "cache_rate=0,2"),
            "tierscope: --vary cache_rate=0,2: sweep.placement.cache_rate = 2; must be within",
        ),
        (
            ("explore", "--simulate", "demo", "--goal", "1s", "--vary", "nodes=1,2", "--cost", "gfs.servers=1"),
            "does not vary",
        ),
        (("estimate", "nowhere", "--system", "laptop"), "nowhere"),
        (
            ("explore", "--simulate", "demo", "--goal", "1s", "--vary", "policy=pinned,lru", "--cost", "policy=5"),
            "is not a number",
        ),
    ],
)
def test_bad_input_gives_one_clear_line(
    arguments: tuple[str, ...],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert line in one_line(capsys)


def test_too_little_to_calibrate_on_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    printed(capsys, "simulate", "demo", "--set", "sweep={}", "--set", "epochs=1", "--out", out)
    assert run("calibrate", out, "--quiet") == 2
    assert "not enough to calibrate" in one_line(capsys)


def test_a_sweep_over_what_is_fitted_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    printed(
        capsys, "simulate", "demo", "--set", "sweep={}", "--set", "sweep.gfs.metadata_ops=[100/s, 800/s]", "--out", out
    )
    assert run("calibrate", out, "--quiet") == 2
    assert "changes system.tiers.gfs.metadata_ops, which is what is fitted" in one_line(capsys)


def test_one_cache_rate_tells_of_one_tier_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    only = ["--set", "sweep={}", "--set", "cache_rate=0%", "--set", "num_files_train=128", "--set", "epochs=4"]
    printed(capsys, "simulate", "demo", *only, "--method", "events", "--out", out)
    found = printed(capsys, "calibrate", out)
    assert {each["key"].split(".")[1] for each in found["parameters"]} == {"gfs"}
    assert {each["what"]: each["spread_percent"] for each in found["next"]}["cache rate 100%"] is None


def test_the_same_result_twice_is_refused(simulated: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", simulated, f"{simulated}/.", "--quiet") == 2
    assert "is the same result as" in one_line(capsys)


@pytest.mark.usefixtures("once")
def test_another_run_of_the_same_points_does_not_tell_what_was_left_out(
    simulated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = str(tmp_path / "again")
    shutil.copytree(simulated, again)
    one = printed(capsys, "validate", simulated, "--quiet")
    told: list[set[float]] = []  # the cache rates of every fit without a point

    class Watched(FitProblem):
        def __init__(self, cases: Sequence[Case], *others: Any, **options: Any) -> None:
            told.append({cache_rate_of(case.sweep) for case in cases})
            super().__init__(cases, *others, **options)

    monkeypatch.setattr("tierscope.predict.calibrate.FitProblem", Watched)
    two = printed(capsys, "validate", simulated, again, "--quiet")
    assert two["n"] == 2 * one["n"]
    assert two["largest_error"] == pytest.approx(one["largest_error"], abs=0.02)
    assert told == [{0.0, 0.5, 1.0}, {0.5, 1.0}, {0.0, 1.0}, {0.0, 0.5}]  # first the one with all points


def test_less_latency_costs_more(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        *SMALL,
        "--set",
        "gfs.latency=5ms",
        "--goal",
        "10s",
        "--vary",
        "gfs.latency=1ms,10ms",
        "--cost",
        "gfs.latency=5/%",
    ]
    found = printed(capsys, "explore", "--simulate", "demo", *arguments)
    costs = {entry["settings"]["latency"]: entry["cost"] for entry in found["grid"]}
    assert costs[0.001] > 0 > costs[0.01]


def test_text_keys_are_not_weighed_against_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "explore", "--simulate", "demo", *SMALL, "--goal", "10s", "--vary", "shuffle=local,global")
    assert {entry["settings"]["shuffle"] for entry in found["pareto"]} == {"local", "global"}


@pytest.mark.usefixtures("once")
def test_calibrate_says_what_to_measure_for_a_study(simulated: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Another size than the only one that was measured: one point settles all of them."""
    found = printed(capsys, "calibrate", simulated, "--for", "demo", "--quiet")
    assert found["complete"] is True
    assert found["settling"]["study"] == "demo"
    assert found["settling"]["asked"] == 11
    assert found["measured"]["cache_rates"] == [0.0, 0.5, 1.0]
    assert run("calibrate", simulated, "--for", "no-such-study", "--quiet") == 2
    assert "no-such-study" in one_line(capsys)


def test_an_interrupted_calibration_keeps_the_best_fit_so_far(
    simulated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(cases: Sequence[Case], _advance: object, so_far: Any) -> None:
        so_far.told(remembered_fit(cases))
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "calibrate", interrupted)
    system = tmp_path / "system.yaml"
    assert run("calibrate", simulated, "-o", system, "--quiet") == 3
    told = capsys.readouterr().err.splitlines()
    assert told == [f"tierscope: stopped; the best fit so far is in {system}; rerun with --force to finish the fit"]
    assert load_system(str(system)).system.tiers[-1].metadata_ops
