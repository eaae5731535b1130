"""What shuffling buys, in the terminal and drawn."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from tests.analysis.test_shuffling_findings import BAD, CHUNKED, COSTS, GLOBAL, GOOD, LOCAL, made, row
from tests.report.test_figures import assert_inside
from tests.report.test_training_report import printed
from tierscope.analysis.shuffling import Shuffling
from tierscope.report.drawn.shuffling import draw_shuffling
from tierscope.report.figures import standalone
from tierscope.report.shuffling import ShufflingView
from tierscope.report.svg import FONT, text_width


def several(*batches: int) -> Shuffling:
    rows = [row(shuffle, last, 0.25 * batch, batch=batch) for batch in batches for shuffle, last in ((GLOBAL, GOOD), (CHUNKED, GOOD), (LOCAL, BAD))]  # fmt: skip
    return made(*(replace(each, layout=layout) for layout in ("sorted", "random") for each in rows))


def test_the_table_has_accuracy_beside_io_and_says_that_it_is_simulated() -> None:
    words = " ".join(printed(ShufflingView(made(*COSTS)), 180).split())
    assert "Shuffling: digits, 8 emulated ranks, 2 epochs, 3 seeds; I/O simulated on fugaku" in words
    assert "sorted 4 global 96.0 95.0–97.0 2 epochs 2.000 4.000 4 KiB 100 %" in words
    assert "sorted 4 local 60.0 50.0–70.0 never 1.000 – 1 KiB 100 %" in words
    assert "local shuffle costs accuracy" in words


def test_a_narrow_terminal_keeps_what_matters() -> None:
    said = printed(ShufflingView(made(*COSTS)), 80)
    assert "accuracy %" in said
    assert "I/O s/epoch" in said
    assert max(len(line) for line in said.splitlines()) <= 80


@pytest.mark.parametrize("batches", [(4,), (4, 16), (2, 4, 1_000_000)])
def test_the_figure_has_a_curve_for_each_and_no_text_on_another(batches: tuple[int, ...]) -> None:
    (figure,) = draw_shuffling(several(*batches))
    assert figure.svg is not None
    root = ET.fromstring(figure.svg)
    curves = [each for each in root.iter() if "curve" in each.get("class", "").split()]
    bars = [each for each in root.iter() if "bar" in each.get("class", "").split()]
    assert (len(curves), len(bars)) == (3 * 2 * len(batches), 3 * len(batches))
    assert_inside(root)
    _assert_apart(root)
    assert "simulated" in figure.note
    assert ET.fromstring(standalone(figure)) is not None


def test_a_figure_for_each_network_and_only_the_first_batches() -> None:
    both = made(*COSTS, *(replace(each, network="plain") for each in COSTS))
    assert [figure.name for figure in draw_shuffling(both)] == ["shuffling-ghost", "shuffling-plain"]
    (figure,) = draw_shuffling(several(2, 4, 8, 16))
    assert "Of 4 batches, the first 3 are drawn." in figure.caption


def test_one_epoch_is_a_mark() -> None:
    one = [replace(each, accuracy=tuple(seed[-1:] for seed in each.accuracy)) for each in COSTS]
    (figure,) = draw_shuffling(replace(made(*one), epochs=1))
    assert figure.svg is not None
    assert "curve" not in {name for each in ET.fromstring(figure.svg).iter() for name in each.get("class", "").split()}
    assert figure.svg.count("<circle") == 3


def _assert_apart(root: ET.Element) -> None:
    """By the same estimate of widths that places them, which is on the safe side."""
    boxes: list[tuple[str, float, float, float]] = []
    for element in root.iter():
        if not element.tag.endswith("text") or element.get("transform") or not element.text:
            continue
        width, css = text_width(element.text), element.get("class", "").split()
        shift = width / 2 if "middle" in css else width if "end" in css else 0.0
        left, foot = float(element.get("x", "")) - shift, float(element.get("y", ""))
        for text, other, other_right, other_foot in boxes:
            overlap = abs(foot - other_foot) < 0.8 * FONT and left < other_right and other < left + width
            assert not overlap, (element.text, text)
        boxes.append((element.text, left, left + width, foot))
