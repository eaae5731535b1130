"""A call gives what the command prints: the same JSON, the same text."""

from pathlib import Path

import pytest

import tierscope as ts
from tests.api.commands import LOGS, MEASURED, RESULTS, SIMULATED, TRACED, as_json, printed
from tierscope.api.given import Percents

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("name", ["measured", "simulated", "traced", "imported_dftracer", "first_touch", "trained"])
def test_load_is_analyze(name: str) -> None:
    path = RESULTS / name
    result = ts.load(path)
    assert result.to_dict() == as_json("analyze", path)
    assert [line.rstrip() for line in str(result).splitlines()] == [
        line.rstrip() for line in printed("analyze", path, "--all").rstrip("\n").splitlines()
    ]


def test_what_counts_is_chosen_as_by_options() -> None:
    result = ts.load(MEASURED, basis="busy", epoch=1, classes=["read", "meta"])
    assert result.to_dict() == as_json("analyze", MEASURED, "--basis", "busy", "--epoch", "1", "--classes", "read,meta")
    assert result.basis == "busy"


def test_points_and_frames_are_the_same_numbers() -> None:
    result = ts.load(MEASURED)
    summary = result.to_dict()["summary"]
    assert [point.io_seconds for point in result.points] == [each["io_seconds"] for each in summary]
    frame = result.breakdown()
    assert frame["io_seconds"].to_list() == [each["io_seconds"] for each in summary]
    assert frame["cache_rate"].to_list() == [0.0, 0.5, 1.0]
    for point in result.points:
        assert sum(point.classes.values()) == pytest.approx(point.io_seconds)
    assert result.best is not None
    assert result.best.values == result.to_dict()["best"]["sweep"]
    classes = result.classes()
    assert classes.height == 3 * 2 * 3 * 4 * 4  # points × repetitions × epochs × ranks × classes
    assert set(classes["class"]) == set(result.class_names)


def test_pandas_gets_the_same_table() -> None:
    pandas = pytest.importorskip("pandas")
    result = ts.load(MEASURED)
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["seconds"].tolist() == result.classes()["seconds"].to_list()
    assert result.to_pandas("breakdown")["io_seconds"].tolist() == result.breakdown()["io_seconds"].to_list()
    pytest.importorskip("pyarrow")
    assert result.classes().to_pandas()["seconds"].tolist() == frame["seconds"].tolist()


def test_estimate_is_estimate() -> None:
    result = ts.load(MEASURED)
    expected = as_json("estimate", MEASURED, "--improve", "GFS-META=50", "--improve", "LFS-READ=120")
    by_keyword = result.estimate(GFS_META=50, lfs_read="120%")
    assert by_keyword.to_dict() == result.estimate({"GFS-META": 50, "LFS-READ": 120}).to_dict() == expected
    assert by_keyword.change_percent == expected["change_percent"]
    assert by_keyword.improvements == {"GFS-META": 50, "LFS-READ": 120}
    assert result.estimate().to_dict() == as_json("estimate", MEASURED)
    assert str(by_keyword).splitlines()[0].endswith("emulated tiers: gfs, lfs")
    assert by_keyword.sensitivity().height == 4


def test_explore_is_explore() -> None:
    vary: dict[str, Percents] = {"GFS-META": range(0, 201, 50), "LFS_READ": "0:200:50"}
    cost = {"GFS-META": "3/%", "LFS-READ": "1/%", "lfs.capacity": "0.1/GiB"}
    found = ts.load(MEASURED).explore("30ms", vary, cost=cost)
    options = [f"--cost={what}={price}" for what, price in cost.items()]
    expected = as_json(
        "explore", MEASURED, "--goal", "30ms", "--vary", "GFS-META=0:200:50", "--vary", "LFS-READ=0:200:50", *options
    )
    assert found.to_dict() == expected
    assert [option.cost for option in found.options] == [each["cost"] for each in expected["pareto"]]
    assert found.is_met
    assert found.table()["cost"].to_list() == [option.cost for option in found.options]
    nothing = ts.load(MEASURED).explore("1us", {"GFS-META": [0, 50]})
    assert not nothing.is_met
    assert nothing.options == ()
    assert nothing.table().is_empty()


def test_logs_are_analyzed_as_by_the_command(tmp_path: Path) -> None:
    result = ts.analyze_logs(LOGS, {"lfs": "/lfs", "gfs": Path("/gfs")}, tmp_path / "kept")
    assert result.to_dict() == as_json("analyze", *LOGS, "--tier", "lfs=/lfs", "--tier", "gfs=/gfs")
    assert result.source == "imported"
    assert ts.load(tmp_path / "kept").points == result.points
    assert result.reload().points == result.points
    unkept = ts.analyze_logs(LOGS, ["lfs=/lfs", "gfs=/gfs"])
    assert unkept.path is None
    assert unkept.report(tmp_path / "page").is_file()
    for call in (unkept.report, unkept.reload, lambda: ts.calibrate(unkept)):
        with pytest.raises(ts.UserError, match="not kept"):
            call()


def test_requirements_are_those_of_the_command() -> None:
    found = ts.require("cosmoflow", system="cori-gpu", batch=[1, 2, 4], precision="amp", nodes="1..8")
    options = ("--batch", "1,2,4", "--precision", "amp", "--nodes", "1..8")
    expected = as_json("require", "cosmoflow", "--system", "cori-gpu", *options)
    assert found.to_dict() == expected
    assert found.max_batch == expected["max_batch"]
    assert found.scaling()["nodes"].to_list() == [1, 2, 4, 8]
    assert "modelled" in repr(found)


def test_a_report_is_written_and_shown_in_a_frame(tmp_path: Path) -> None:
    result = ts.load(SIMULATED)
    page = result.report(tmp_path / "page", goal="io=20ms", improve={"GFS-META": 50}, beside=[ts.load(MEASURED)])
    assert page == tmp_path / "page" / "report.html"
    assert b"simulated" in page.read_bytes()
    frame = result.page_html(height=500)
    assert frame.startswith("<iframe srcdoc=")
    assert "height:500px" in frame
    assert "<script" not in frame  # all of the page is inside an attribute
    with pytest.raises(ts.UserError, match=r"not a notebook; report\(\) writes"):
        result.show()


def test_display_has_table_figure_and_labels() -> None:
    shown = ts.load(MEASURED)._repr_html_()
    assert shown.count("<tr>") == 4
    assert "data:image/svg+xml;base64," in shown
    assert "emulated tiers: gfs, lfs" in shown
    for other in (ts.load(TRACED), ts.load(SIMULATED).estimate(GFS_META=50), ts.require("lenet5", "cori-gpu")):
        assert other._repr_html_()


def test_strangers_text_is_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "<img src=x>.csv"
    path.write_text("rank,epoch,class,seconds,<b>key\n0,1,<i>T-READ,1.5,<u>1\n0,1,<i>T-META,0.5,<u>1\n")
    shown = ts.load(path)._repr_html_()
    assert "<img src=x>" not in shown
    assert not any(f"<{tag}>" in shown.replace("<b>" + "&lt;img", "") for tag in ("i>T", "u>1"))
    assert "&lt;i&gt;T-READ" in shown


@pytest.mark.nightly  # a fit takes seconds
def test_calibrated_systems_go_back_into_simulate(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    study = ts.Study.from_yaml(Path(MEASURED) / "study.yaml", settings={"workload.train.computation_time": "0"})
    made = ts.simulate(study, out=tmp_path / "made", method="bound", progress=False)
    fitted = ts.calibrate([made], progress=False)
    assert fitted.rates().height == len(fitted.to_dict()["parameters"])
    path = fitted.save(tmp_path / "fitted.yaml")
    with pytest.raises(ts.UserError, match="already exists"):
        fitted.save(path)
    by_object = ts.simulate(study, system=fitted, out=tmp_path / "object", method="bound", progress=False)
    by_file = ts.simulate(study, system=path, out=tmp_path / "file", method="bound", progress=False)
    assert by_object.points == by_file.points
    assert by_object.source == "simulated"
