"""What somebody in a hurry could take for something else: refused, or said where it cannot be missed."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tierscope as ts
from tests.api.commands import LOGS, MEASURED, SIMULATED, TRACED

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("fraction", [0.5, -0.2, np.float64(0.5)])
def test_a_fraction_is_no_percentage(fraction: float) -> None:
    with pytest.raises(ts.UserError, match=r"improvements are in percent.*write \S+ for") as error:
        ts.load(MEASURED).estimate(GFS_META=fraction)
    assert f"'{fraction}%'" in str(error.value)
    assert "\n" not in str(error.value)


def test_half_a_percent_can_be_meant() -> None:
    assert ts.load(MEASURED).estimate(GFS_META="0.5%").improvements == {"GFS-META": 0.5}
    assert ts.load(MEASURED).estimate(GFS_META=0, LFS_READ=-50).improvements == {"GFS-META": 0, "LFS-READ": -50}


@pytest.mark.parametrize("values", [[0, 0.5, 1], [0.1, 0.2], np.linspace(0, 0.9, 4)])
def test_a_grid_of_fractions_is_no_grid_of_percentages(values: "list[float]") -> None:
    with pytest.raises(ts.UserError, match="improvements are in percent"):
        ts.load(MEASURED).explore("30ms", {"GFS-META": values})


@pytest.mark.parametrize("value", [True, None, [50]])
def test_what_is_no_number_is_no_percentage(value: object) -> None:
    with pytest.raises(ts.UserError, match="must be a percentage"):
        ts.load(MEASURED).estimate({"GFS-META": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("goal", [4, 0.9])
def test_a_goal_without_a_unit_is_refused(goal: float) -> None:
    with pytest.raises(ts.UserError, match="must be text with its unit"):
        ts.load(MEASURED).estimate(goal=goal)  # type: ignore[arg-type]
    with pytest.raises(ts.UserError, match="must be text with its unit"):
        ts.load(MEASURED).explore(goal)  # type: ignore[arg-type]


def test_a_class_given_both_ways_is_refused() -> None:
    with pytest.raises(ts.UserError, match="GFS-META is given twice"):
        ts.load(MEASURED).estimate({"GFS-META": 50}, GFS_META=20)


def test_a_keyword_that_could_be_two_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("rank,epoch,class,seconds\n0,1,A_B-READ,1\n0,1,A-B-READ,2\n")
    with pytest.raises(ts.UserError, match="could be"):
        ts.load(path).estimate(A_B_READ=50)
    assert ts.load(path).estimate({"A_B-READ": 50}).improvements == {"A_B-READ": 50}


def test_a_tier_with_an_underscore_has_a_keyword(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("rank,epoch,class,seconds\n0,1,MY_GFS-META,1\n0,1,MY_GFS-READ,2\n")
    assert ts.load(path).estimate(MY_GFS_META=50).improvements == {"MY_GFS-META": 50}


def test_half_a_study_warns_and_says_so_everywhere(tmp_path: Path) -> None:
    half = shutil.copytree(MEASURED, tmp_path / "half")
    (half / "runs" / "0002-r1.parquet").unlink()
    (half / "runs" / "0002-r2.parquet").unlink()
    with pytest.warns(ts.PartialResultWarning, match="only 4 of 6 runs have finished"):
        result = ts.load(half)
    assert not result.is_complete
    assert len(result.points) == 2
    for shown in (repr(result), result._repr_html_(), str(result)):
        assert "4 of 6 runs" in shown
    assert ts.load(MEASURED).is_complete


def test_a_result_that_changed_since_warns_wherever_it_is_read(tmp_path: Path) -> None:
    out = shutil.copytree(MEASURED, tmp_path / "out")
    moved = tmp_path / "0002-r2.parquet"
    (out / "runs" / moved.name).rename(moved)
    with pytest.warns(ts.PartialResultWarning):
        result = ts.load(out)
    before = result.classes().height
    moved.rename(out / "runs" / moved.name)
    pytest.importorskip("pandas")
    calls = (result.to_pandas, result.classes, result.breakdown, result.estimate, result.to_dict, lambda: result.points)
    for call in calls:
        with pytest.warns(ts.StaleResultWarning, match="has changed since it was loaded"):
            call()
    fresh = result.reload()
    assert fresh.is_complete
    assert fresh.classes().height > before


def test_a_simulation_is_never_taken_for_a_measurement() -> None:
    simulated, measured = ts.load(SIMULATED), ts.load(MEASURED)
    assert (simulated.source, measured.source, ts.load(TRACED).source) == ("simulated", "measured", "traced")
    for frame in (simulated.breakdown(), simulated.classes()):
        assert set(frame["source"]) == {"simulated"}
    assert "simulated" in repr(simulated)
    assert "simulated" in simulated._repr_html_()
    estimate = measured.estimate(GFS_META=50)
    assert set(estimate.breakdown()["source"]) == {"estimated from measured"}
    assert "estimated from simulated" in repr(simulated.estimate(GFS_META=50))
    assert ts.analyze_logs(LOGS, {"lfs": "/lfs", "gfs": "/gfs"}).source == "imported"


def test_emulated_tiers_are_named_where_a_result_is_shown() -> None:
    result = ts.load(MEASURED)
    assert result.emulated == ("gfs", "lfs")
    assert "emulated tiers: gfs, lfs" in repr(result)


def test_a_swept_column_never_stands_in_for_one_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("rank,epoch,class,seconds,n,source\n0,1,T-READ,1,7,mine\n0,1,T-READ,2,8,yours\n")
    frame = ts.load(path).breakdown()
    assert frame["n"].to_list() == [1, 1]
    assert frame["swept n"].to_list() == [7, 8]
    assert set(ts.load(path).classes()["source"]) == {"csv"}


def test_there_is_no_best_over_cases_that_are_not_ranked(tmp_path: Path) -> None:
    """Another amount of data is another question: the shorter time is no better."""
    path = tmp_path / "times.csv"
    rows = [f"0,1,T-READ,{size / 10},1,{size},{size}" for size in (10, 20)]
    path.write_text("\n".join(["rank,epoch,class,seconds,ops,bytes,record", *rows]) + "\n")
    result = ts.load(path)
    assert result.best is None
    assert len({point.group for point in result.points}) == 2
    assert result.estimate(T_READ=50).change_percent is None


def test_what_does_not_fit_is_not_best(tmp_path: Path) -> None:
    study = ts.Study.from_dict(
        {
            "study": "full",
            "workload": {"dataset": {"format": "raw", "num_files_train": 64, "record_length_bytes": "1 MiB"}},
            "system": {
                "tiers": {
                    "lfs": {
                        "path": "{out}/lfs",
                        "visible_to": "node",
                        "capacity": "16 MiB",
                        "bandwidth": "4 GB/s",
                        "metadata_ops": "1000000/s",
                    },
                    "gfs": {"path": "{out}/gfs", "bandwidth": "1 GB/s", "metadata_ops": "1000/s"},
                }
            },
            "sweep": {"placement.cache_rate": [0, 0.25, 1]},
        }
    )
    result = ts.simulate(study, out=tmp_path / "out", method="bound", progress=False)
    assert [point.fits for point in result.points] == [True, True, False]
    assert result.best is not None
    assert result.best.values["cache_rate"] != 1


DEEP: "list[object]" = []
for _ in range(5000):
    DEEP = [DEEP]
LOOP: "dict[str, object]" = {}
LOOP["a"] = LOOP
CONTENT = {"study": "x", "system": {"tiers": {"gfs": {"path": "{out}/gfs", "bandwidth": "1 GB/s"}}}}


@pytest.mark.parametrize(
    "value", [5, 1.5, True, b"x", object(), LOOP, DEEP, "a\0b", "\ud800", 10**400, np.array([1, 2])]
)
def test_whatever_is_given_the_error_is_ours_and_short(value: Any) -> None:
    """Wrong types, endless and deep ones, and names that no file can have."""
    study = ts.Study.from_yaml("demo")
    calls: dict[str, Callable[[], object]] = {
        "path": lambda: ts.Study.from_yaml(value),
        "settings": lambda: ts.Study.from_yaml("demo", settings=value),
        "setting": lambda: ts.Study.from_yaml("demo", settings={"gfs.servers": [[value]]}),
        "content": lambda: ts.Study.from_dict({**CONTENT, "system": value}),
        "vary": lambda: study.explore("1s", value, progress=False),
        "cost": lambda: study.explore("1s", {"gfs.servers": [1]}, cost=value, progress=False),
        "method": lambda: study.explore("1s", {"gfs.servers": [1]}, method=value, progress=False),
        "model": lambda: ts.require(value, "h200-node"),
        "precision": lambda: ts.require("lenet5", "h200-node", precision=value),
        "device_file": lambda: ts.require("lenet5", "h200-node", device_file=value),
        "results": lambda: ts.calibrate(value, progress=False),
        "paths": lambda: ts.analyze_logs(value),
        "percents": lambda: ts.load(MEASURED).explore("30ms", value),
        "percent": lambda: ts.load(MEASURED).estimate({"GFS-META": [value]}),  # type: ignore[dict-item]
    }
    for name, call in calls.items():
        with pytest.raises(ts.UserError) as error:
            call()
        assert "\n" not in str(error.value), name
        assert len(str(error.value)) < 1000, name


def test_what_never_ends_is_not_gone_through() -> None:
    study = ts.Study.from_yaml("demo")
    calls: dict[str, Callable[[], object]] = {
        "keys": lambda: study.explore("1s", {"gfs.servers": itertools.count(1)}, progress=False),
        "percents": lambda: ts.load(MEASURED).explore("30ms", {"GFS-META": itertools.repeat(50)}),
        "settings": lambda: ts.Study.from_yaml("demo", settings=itertools.repeat("cache_rate=0")),  # type: ignore[arg-type]
        "results": lambda: ts.calibrate(itertools.repeat(MEASURED), progress=False),
        "content": lambda: ts.Study.from_dict({**CONTENT, "sweep": {"cache_rate": range(10**12)}}),
    }
    for name, call in calls.items():
        with pytest.raises(ts.UserError, match=r"has more than [12]0,000 values; give fewer") as error:
            call()
        assert len(str(error.value)) < 1000, name


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 0, True, "1", 10**400])
def test_a_step_that_cannot_be_is_refused(seconds: Any) -> None:
    with pytest.raises(ts.UserError, match=r"step_seconds = .*: must be seconds, within 1e-09 – 1e\+06"):
        ts.require("lenet5", "h200-node", step_seconds=seconds)


def test_a_price_limit_may_be_a_number_and_arrays_are_lists() -> None:
    """What a caller of Python would write."""
    study = ts.Study.from_yaml("demo", settings={"sweep.cache_rate": [0]})
    vary = {"gfs.servers": np.array([1, 2])}
    prices = {"gfs.servers": "5/server"}
    frames = [study.explore("1s", vary, cost=prices, max_price=limit, progress=False).table() for limit in ("20", 20)]
    assert frames[0].equals(frames[1])
