"""Real training in the terminal, on the page and drawn."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tests.analysis.test_training import asked, run, trained
from tests.report.sources import alone, source_of
from tests.report.test_page import HOSTILE, Parsed
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.training import Training, TrainingPoint, about_training
from tierscope.report.drawn.training import NAMES, draw_training
from tierscope.report.figures import figures, standalone
from tierscope.report.page import page
from tierscope.report.report_source import ReportSource
from tierscope.report.training import TrainingView, rows_of, sentences
from tierscope.report.verdict import verdict
from tierscope.trace.trace import Trace

pytestmark = pytest.mark.whole

ASKED = asked([20.0, 20.2], [15.0, 15.2], [12.0, 12.2])


def source(*traces: Trace, **changes: Any) -> ReportSource:
    training = trained(*(traces or ASKED))
    return source_of(alone(), training=training, findings=about_training(training), **changes)


def printed(view: object, width: int = 160) -> str:
    out = StringIO()
    Console(file=out, width=width).print(view)
    return out.getvalue()


def made(given: ReportSource) -> str:
    return page(given, [*figures(given), *draw_training(given)]).decode()


def test_the_table_has_throughput_intervals_and_shares() -> None:
    training = trained(*ASKED)
    said = printed(TrainingView("mine", [(None, training)], about_training(training), Conditions(emulated=("gfs",))))
    words = " ".join(said.split())
    assert "mine: training of lenet5 on cpu, fp32, sgd, torch 2 · emulated tiers: gfs" in words
    assert "tiers 9.950" in words
    assert "storage 24.9 % (" in words  # storage, by difference
    assert "by the host's clock" in words
    assert "all-reduce runs during backward" in words
    assert "checkpoint" in words
    assert "sync" not in said.splitlines()[2]  # which nobody did


def test_memory_is_shown_where_it_was_measured() -> None:
    log = {"peak_memory_bytes": 2**30, "predicted_memory_bytes": 2**30 * 102 // 100, "device": "NVIDIA H200"}
    training = trained(run([10.0], log=log))
    said = " ".join(printed(TrainingView("mine", [(None, training)], [], Conditions())).split())
    assert "1 GiB" in said
    assert "+2.0 %" in said
    assert "by the device's own events" in said


def test_what_was_measured_on_one_device_says_so() -> None:
    def words(point: TrainingPoint) -> str:
        return " ".join(sentences(Training("lenet5", (point,), ())))

    (point,) = trained(run([10.0])).points
    assert (point.ranks, point.exchange) == (2, "gloo")
    assert "with 2 ranks that share CPUs and exchange gradients over gloo: not how several devices would scale" in words(point)  # fmt: skip
    alone = replace(point, ranks=1)
    assert alone.exchange is None
    assert "Measured on one device: these times say nothing about exchange between several." in words(alone)
    (on_device,) = trained(run([10.0], log={"device": "NVIDIA H200"})).points
    assert on_device.exchange == "nccl"
    assert "Measured on 2 devices, which exchange gradients over NCCL." in words(on_device)


def test_of_several_parts_each_row_says_what_was_varied() -> None:
    first, second = trained(*ASKED), trained(run([10.0], sweep={"batch_size": 8}))
    names, rows = rows_of([("data", first), ("batch_size", second)])
    assert names == ["varied", "value"]
    assert [row.at for row in rows][2:] == [("data", "synthetic"), ("batch_size", "8")]


def test_it_fits_a_narrow_terminal() -> None:
    said = printed(TrainingView("mine", [(None, trained(*ASKED))], [], Conditions()), 80)
    assert "samples/s" in said
    assert max(map(len, said.splitlines())) <= 80


def test_figures_are_drawn_and_well_formed() -> None:
    drawn = draw_training(source())
    assert [figure.name for figure in drawn] == list(NAMES)
    for figure in drawn:
        assert ET.fromstring(standalone(figure)).tag.endswith("svg")
        assert "lenet5 on cpu" in figure.note
    assert draw_training(source_of(alone())) == []


def test_stacked_phases_are_as_high_as_the_epoch() -> None:
    (figure,) = draw_training(source(run([99.0, 10.0])))[1:]
    root = ET.fromstring(figure.svg or "")
    bars = [each for each in root.iter() if each.tag.endswith("rect") and each.get("class", "").startswith("bar edge")]
    heights = [float(each.get("height", 0)) for each in bars]
    assert len(bars) == 7
    assert abs(sum(heights) / heights[0] - 10.0) < 0.05  # of 1 s of stall


def test_the_page_says_first_whether_storage_matters_and_has_a_section_for_it() -> None:
    given = source()
    assert "storage matters" in verdict(given)[0].lower()
    text = made(given)
    Parsed(text)
    assert 'id="training"' in text
    assert text.count('id="figure-training-throughput"') == 1
    assert 'id="training"' not in made(source_of(alone()))


def test_no_strangers_text_is_markup() -> None:
    for text in HOSTILE:
        log = {"network": text, "device": text, "software": text}
        whole = made(source(run([10.0], sweep={"data": text}, log=log)))
        assert "<img src=x" not in whole
