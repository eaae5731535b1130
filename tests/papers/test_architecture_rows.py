"""Rows of the Architecture study: every judged row has a verdict, printed numbers know their rounding, and a verdict can fail."""

import json
import shutil
from pathlib import Path

import pytest

from tierscope.cli.main import _run
from tierscope.errors import ResultError
from tierscope.papers import (
    architecture_basics,
    architecture_intensity,
    architecture_kernels,
    architecture_memory,
    architecture_movement,
    architecture_node,
    architecture_open,
    architecture_printed,
    architecture_scaling,
    architecture_waits,
)
from tierscope.papers.architecture_model import moved, operations
from tierscope.papers.architecture_printed import NAMES, PRINTED, TITLES, PrintedNetwork, Rounded
from tierscope.papers.drawn_balance import BalancePoint, draw_balance
from tierscope.papers.measured_h200 import FOLDER, MeasuredH200, measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.reproduce import check_section
from tierscope.papers.rows import rows_of
from tierscope.papers.section import PaperSection
from tierscope.papers.sections import FOLLOWS, STUDIES
from tierscope.papers.verdict import Outcome
from tierscope.units import about_seconds

pytestmark = pytest.mark.whole

STUDY = STUDIES["architecture"]
CHEAP = {
    module.__name__.rpartition(".")[2]: module.make
    for module in (
        architecture_basics,
        architecture_intensity,
        architecture_kernels,
        architecture_memory,
        architecture_movement,
        architecture_open,
        architecture_scaling,
        architecture_waits,
    )
}
MISSING = MissingMeasurement("no file here")


def outcomes(section: PaperSection) -> dict[str, Outcome]:
    return {verdict.id: verdict.outcome for verdict in section.verdicts}


@pytest.mark.parametrize("name", CHEAP)
def test_sections_give_exactly_their_rows(name: str) -> None:
    made = CHEAP[name](True)
    entry = next(entry for entry in STUDY.sections if entry.module == name)
    check_section("architecture", entry, made.verdicts)
    assert all(verdict.ours for verdict in made.verdicts)
    for verdict in made.verdicts:
        said = verdict.why or verdict.outcome in ("holds", "listed", "beside")
        assert said, f"{verdict.id}: no reason"
    assert all(figure.id in rows_of("architecture") and "<svg" in figure.svg for figure in made.figures)


def test_a_node_without_measurements_gives_exactly_its_rows() -> None:
    made = architecture_node.section(MISSING)
    entry = next(entry for entry in STUDY.sections if entry.module == "architecture_node")
    check_section("architecture", entry, made.verdicts)
    assert outcomes(made)["A-F7-1"] == "not available here"
    assert outcomes(made)["A-F6-3"] == "not available here", "the longest step that may be is longer than all-reduce"


def test_every_module_of_the_study_is_tested() -> None:
    assert {entry.module for entry in STUDY.sections} == {*CHEAP, "architecture_node"}
    assert {row for row in FOLLOWS if row.startswith("A-")} == {"A-I-1", "A-I-4"}


@pytest.mark.parametrize(
    ("text", "low", "high"), [("1.44", 1.435, 1.445), ("15.4e3", 15_350, 15_450), ("31", 30.5, 31.5)]
)
def test_printed_numbers_are_intervals(text: str, low: float, high: float) -> None:
    number = Rounded.of(text)
    assert (number.low, number.high) == pytest.approx((low, high))
    assert number.meets(text)
    assert number.middle == pytest.approx(float(text))


def test_a_ratio_of_printed_numbers_is_as_wide_as_they_are() -> None:
    ratio = Rounded.of("247") / Rounded.of("1.44")
    assert ratio.meets("171")
    assert ratio.meets("172")
    assert not ratio.meets("169")
    assert (Rounded.of("2.0") * 10.0).meets("20")


def test_the_petaflop_node_needs_65_and_9_gigabytes_per_second() -> None:
    fed = next(verdict for verdict in architecture_movement.make(True).verdicts if verdict.id == "A-D-3")
    assert fed.outcome == "holds"
    assert "CosmoFlow 64.9; DeepCAM 9.3" in fed.ours
    assert "CosmoFlow 87.3; DeepCAM 14.4" in fed.ours  # of our layers
    assert fed.source == "arithmetic"


def test_other_printed_numbers_fail_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    other = PrintedNetwork("300", "0.72", "1.44", "6.4", "127", "16", "15.4e3", "171", "38.6")
    monkeypatch.setitem(PRINTED, "cosmoflow", other)
    changed = outcomes(architecture_intensity.section(MISSING))
    assert [changed[row] for row in ("A-T2-6", "A-T2-7", "A-T2-8")] == ["does not hold"] * 3
    assert changed["A-F2-5"] == "holds"
    assert changed["A-T2-9"] == "not available here"


def test_nothing_is_measured_where_there_is_no_file() -> None:
    for section in (architecture_memory.section, architecture_kernels.section, architecture_intensity.section):
        made = section(MISSING)
        assert all(verdict.source != "measured" and not verdict.made for verdict in made.verdicts)
    assert isinstance(measured_h200(Path("/nowhere")), MissingMeasurement)


def test_measured_rows_carry_their_day() -> None:
    for section in (architecture_memory.section, architecture_kernels.section):
        measured = measured_h200()
        assert isinstance(measured, MeasuredH200)
        dated = [verdict for verdict in section(measured).verdicts if verdict.source == "measured"]
        assert dated
        assert all(verdict.made.startswith("20") for verdict in dated)


def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "h200"
    folder.mkdir()
    for name in ("steps.json", "kernels.json", "training.json", "counters.json"):
        shutil.copyfile(FOLDER / name, folder / name)
    return folder


def test_a_damaged_measurement_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    document = json.loads((folder / "kernels.json").read_text())
    document["rows"][0]["bins_seconds"] = [1.0]
    (folder / "kernels.json").write_text(json.dumps(document))
    with pytest.raises(ResultError, match=r"kernels.json: is damaged: rows\[0\].bins_seconds") as caught:
        measured_h200(folder)
    assert "\n" not in str(caught.value)


def test_a_measurement_without_a_network_is_missing(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    document = json.loads((folder / "steps.json").read_text())
    document["rows"] = [row for row in document["rows"] if row["network"] != "deepcam"]
    (folder / "steps.json").write_text(json.dumps(document))
    missing = measured_h200(folder)
    assert isinstance(missing, MissingMeasurement)
    assert missing.reason == "validation/h200 lacks steps, counters or training of deepcam"


def test_efficiencies_are_judged_by_the_time_in_their_bins(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    document = json.loads((folder / "counters.json").read_text())
    for row in document["rows"]:
        row["bins"] = [{"seconds": 0.0, "ideal_seconds": 0.0}] * 9 + [{"seconds": 0.01, "ideal_seconds": 0.0095}]
    (folder / "counters.json").write_text(json.dumps(document))
    judged = outcomes(architecture_kernels.section(measured_h200(folder)))
    assert judged["A-F3-1"] == judged["A-F3-4"] == "holds"
    assert judged["A-F3-2"] == judged["A-F3-3"] == "does not hold"


def test_what_was_counted_over_the_model_decides(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    document = json.loads((folder / "counters.json").read_text())
    for row in document["rows"]:
        row["fp32_flops"], row["fp16_flops"], row["tensor_flops"] = (
            0.0,
            0.0,
            {"bf16": 2.0 * row["batch"] * operations(row["network"])},
        )
        row["dram_bytes"] = (10.0 if row["network"] == "resnet50" else 2.0) * row["batch"] * moved(row["network"])
    (folder / "counters.json").write_text(json.dumps(document))
    judged = outcomes(architecture_intensity.section(measured_h200(folder)))
    assert judged["A-F2-2"] == judged["A-F2-3"] == "holds"
    shipped = outcomes(architecture_intensity.section(measured_h200()))
    assert shipped["A-F2-2"] == shipped["A-F2-3"] == "does not hold"


def test_counts_of_the_h200_are_drawn_beside_the_model_and_by_bin() -> None:
    """Figures 2 and 3: filled points of both devices, and in every bin what it would take at full efficiency."""
    measured = measured_h200()
    assert isinstance(measured, MeasuredH200)
    (balance,) = architecture_intensity.section(measured).figures
    for network in NAMES:
        step = measured.counted(network)
        said = f"{TITLES[network]}, counted on one H200: {step.flops_per_sample / step.bytes_per_sample:,.3g} FLOP/B"
        assert said in balance.svg
    assert "one H200" in balance.caption
    (without,) = architecture_intensity.section(MISSING).figures
    assert "H200" not in without.svg
    for figure, network in zip(architecture_kernels.section(measured).figures, NAMES, strict=True):
        bins = measured.counted(network).bins
        assert figure.svg.count("at full efficiency") == 1 + sum(row.seconds > 0 for row in bins)
        for number, row in enumerate(bins):
            if row.seconds:
                assert (
                    f"{10 * number}–{10 * number + 10} % efficient: {about_seconds(row.ideal_seconds)} at full"
                    in figure.svg
                )


def test_the_counters_count_a_product_of_known_size() -> None:
    """What is shipped was counted by counters that count a matrix product to the last operation."""
    for product in json.loads((FOLDER / "counters.json").read_text())["products"]:
        assert sum(product["counted"]["tensor_flops"].values()) == product["flops"]


def test_staging_gains_nothing_where_the_share_fits_memory() -> None:
    curve = architecture_scaling.curve("cosmoflow", 4)
    assert curve.more(0) == pytest.approx(2.0)
    assert curve.more(architecture_scaling.NODES.index(4)) == pytest.approx(1.0)


def test_a_balance_is_drawn_with_all_its_points() -> None:
    points = [
        BalancePoint(name, "both", 2.0**30 * number, 1e11, "later0", number, True)
        for number, name in enumerate("ab", 1)
    ]
    drawing = draw_balance("t", "title", "Caption.", points, {"a line": 100.0})
    assert "a, both: 93.1 FLOP/B" in drawing
    assert drawing.count("FLOP/B") == 2
    assert ">a line</text>" in drawing


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("A-F1-33", "did you mean A-F1-3"),
        ("H-X-4", "use 'tierscope reproduce hierarchy --row H-X-4'"),
        ("A-F10", "Architecture study has no such row"),
    ],
)
def test_a_wrong_row_is_one_line(row: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["reproduce", "architecture", "--row", row]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_a_row_is_printed_with_its_source(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert _run(["reproduce", "architecture", "--row", "a-f4-1", "--quiet"]) == 0
    assert "HBM 1, PCIe 56.25, InfiniBand 72, NVMe 2,250 (arithmetic)" in capsys.readouterr().out


def test_printed_networks_are_those_of_the_table() -> None:
    rows = rows_of("architecture")
    for number, name in enumerate(architecture_printed.NAMES):
        printed = PRINTED[name]
        for row, text in (("A-T2-3", printed.operations), ("A-T2-4", printed.limit), ("A-T2-9", printed.sustained)):
            shown = rows[row].published.split("; ")[number].replace(",", "")
            assert text in shown, f"{row}: {text}"
