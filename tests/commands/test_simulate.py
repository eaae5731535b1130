"""Simulated studies: the outputs of a run, labelled, resumable, apart from measured ones."""

import os
from pathlib import Path

import polars as pl
import pytest

from tests.traces import nothing_simulated
from tierscope.commands.analyze import analyze
from tierscope.commands.simulate import simulate_study
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.output.store import RunStore
from tierscope.plan.reading import reading_of
from tierscope.plan.stations import stations_of
from tierscope.predict.simulation import Simulation, busiest, check_rates
from tierscope.predict.to_trace import to_trace
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from tierscope.trace.trace import RunKey
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

METHODS = [
    "bound",
    pytest.param("events", marks=pytest.mark.skipif("not __import__('importlib').util.find_spec('numba')")),
]


def small(*settings: str) -> Study:
    return load_study("demo", ["num_files_train=128", "sweep={}", "sweep.cache_rate=[0%, 50%, 100%]", *settings])


@pytest.mark.parametrize("method", METHODS)
def test_a_simulation_is_analysed_like_a_run(tmp_path: Path, method: str) -> None:
    out = str(tmp_path / "out")
    simulate_study(small(), out, method, Silent())
    analysis = analyze(out)
    assert analysis.conditions.simulated == (method,)
    assert [point.sweep["cache_rate"] for point in analysis.breakdown.summary] == [0.0, 0.5, 1.0]
    nothing_cached, _, all_cached = analysis.breakdown.summary
    # 128 opens at 400/s; two devices with 64 files each at 300/s.
    assert nothing_cached.io.median == pytest.approx(128 / 400, rel=0.05)
    assert nothing_cached.bottleneck == "GFS-META"
    assert all_cached.io.median == pytest.approx(64 / 300, rel=0.05)
    assert all_cached.bottleneck == "LFS-READ"
    assert {point.io.kind for point in analysis.breakdown.summary} == {"90% simulated"}
    assert all(point.io.low <= point.io.median <= point.io.high for point in analysis.breakdown.summary)


def test_finished_points_are_not_repeated(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    simulate_study(small(), out, "bound", Silent())
    paths = sorted(Path(RunStore(out).folder).iterdir())
    before = [path.stat().st_mtime_ns for path in paths]
    paths[1].unlink()
    simulate_study(small(), out, "bound", Silent())
    after = [path.stat().st_mtime_ns for path in paths]
    assert (before[0], before[2]) == (after[0], after[2])
    assert paths[1].exists()


def test_methods_and_measurements_do_not_mix(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    simulate_study(small(), out, "bound", Silent())
    with pytest.raises(UserError, match="was simulated with --method bound"):
        simulate_study(small(), out, "events", Silent())
    from tierscope.output.result import open_result  # noqa: PLC0415

    with pytest.raises(ForeignDirectoryError, match="simulation, not a result"), open_result(out, small()):
        pass


def test_a_tier_without_rates_is_refused_where_it_is_read_from() -> None:
    nothing = ("lfs.read_ops=null", "lfs.bandwidth=null", "lfs.emulate=false", "sweep={}")
    with pytest.raises(UserError, match=r"system\.tiers\.lfs: it has no read rate; set bandwidth"):
        check_rates(load_study("demo", [*nothing, "cache_rate=50%"]))
    check_rates(load_study("demo", [*nothing, "cache_rate=0%"]))


def test_two_simulations_are_the_same(tmp_path: Path) -> None:
    tables: list[pl.DataFrame] = []
    for name in ("one", "two"):
        out = os.path.join(tmp_path, name)
        simulate_study(small("gfs.service_variation=0.5"), out, "bound", Silent())
        tables.append(RunStore(out).load(RunKey(1, 1)).table)
    assert tables[0].equals(tables[1])


def test_large_samples_are_read_in_pieces() -> None:
    reading = reading_of(small("record_length_bytes=1MiB", "transfer_size=256KiB"))
    assert sum(nbytes for _, nbytes in reading.pieces) == reading.sample_bytes
    assert max(nbytes for _, nbytes in reading.pieces) == 256 * 1024
    offsets = [offset for offset, _ in reading.pieces]
    assert offsets == sorted(offsets)


def test_the_busiest_station_comes_first() -> None:
    study = load_study("demo", ["sweep={}", "cache_rate=0%"])
    simulation = Simulation.of(study)
    found = busiest(stations_of(study.system, study.seed), simulation.epoch(2, "bound"))
    assert found[0].station == "gfs metadata server 0"
    assert found[0].seconds == pytest.approx(512 / 400)
    assert found[0].ops == 512


def test_a_trace_needs_epochs_of_one_shape() -> None:
    study = load_study("demo", ["sweep={}", "cache_rate=50%"])
    outcome = Simulation.of(study).epoch(2, "bound")
    trace = to_trace(RunKey(0, 1), nothing_simulated(), ["lfs", "gfs"], 4, [outcome])
    reads = trace.io.filter(pl.col("kind") == "read")
    assert reads["ops"].sum() == 512
    assert set(trace.ranks["node"].to_list()) == {0, 1, 2, 3}
