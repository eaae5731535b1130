"""The parts of a drawing: scales are true, labels fit, and no text can become markup."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.report.svg import (
    Canvas,
    Legend,
    LegendEntry,
    Scale,
    SweptAxis,
    clean,
    fit,
    label,
    nice_ticks,
    short,
    text_width,
)


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (12.4, [0, 2, 4, 6, 8, 10, 12]), (7.0, [0, 1, 2, 3, 4, 5, 6, 7])],
)
def test_ticks_are_round(top: float, ticks: list[float]) -> None:
    assert nice_ticks(top) == pytest.approx(ticks)


@given(st.floats(1e-12, 1e300))
def test_ticks_of_any_size(top: float) -> None:
    ticks = nice_ticks(top)
    assert 3 <= len(ticks) <= 8
    assert ticks[0] == 0
    assert top / 2 < ticks[-1] <= top * 1.000001


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (-0.001, "0"), (1.256, "1.26"), (100.0, "100"), (-3.5, "-3.5")]
)
def test_coordinates_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_scale_is_linear_and_may_run_upwards() -> None:
    scale = Scale(0.0, 4.0, 300.0, 100.0)
    assert [scale(value) for value in (0.0, 1.0, 4.0)] == [300.0, 250.0, 100.0]


@given(st.text(), st.floats(30, 300))
def test_text_is_cut_to_fit(text: str, width: float) -> None:
    cut = fit(text, width)
    assert text_width(cut) <= width
    assert cut == clean(text) or cut.endswith("…")


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_from_the_drawing(text: str) -> None:
    canvas = Canvas("x", text, text)
    canvas.text(1, 2, text)
    canvas.rect(0, 0, 1, 1, "bar", tip=text or "-")
    root = ET.fromstring(canvas.to_text().encode())
    assert [child.tag.rpartition("}")[2] for child in root] == ["title", "desc", "rect", "text", "rect"]
    assert root.get("aria-label") == clean(text)
    assert (root[3].text or "") == clean(text)


def test_what_xml_forbids_is_replaced() -> None:
    assert clean("a\0b\x1bc\ud800d\ufffee") == "a\ufffdb\ufffdc\ufffdd\ufffde"
    assert clean("one\ntwo\tthree") == "one two three"


def test_text_cannot_turn_what_follows_it() -> None:
    assert "\u202e" not in clean("abc\u202edef")


def test_hatchings_are_defined_once_under_the_name_of_the_drawing() -> None:
    canvas = Canvas("time", "", "")
    assert [canvas.hatch(tier) for tier in (1, 0, 1)] == ["time-hatch-1", "time-hatch-0", "time-hatch-1"]
    assert canvas.to_text().count("<pattern") == 2


def test_numbers_keep_their_distances() -> None:
    axis = SweptAxis.of("cache_rate", [0.0, 0.5, 0.75], 0.0, 400.0)
    assert axis.places == pytest.approx((50.0, 250.0, 350.0))
    assert axis.pitch == pytest.approx(100.0)
    assert axis.joined
    assert axis.to_scale


def test_numbers_that_crowd_get_equal_room_unless_told_otherwise() -> None:
    powers = [1, 2, 4, 8, 16, 32, 64]
    assert SweptAxis.of("readers", powers, 0.0, 700.0).places == tuple(range(50, 700, 100))
    assert not SweptAxis.of("readers", powers, 0.0, 700.0).to_scale
    assert SweptAxis.of("readers", powers, 0.0, 700.0, to_scale=True).pitch < 12


@pytest.mark.parametrize("values", [["a", "b"], [True, False], [None, 1.0]])
def test_what_is_no_number_is_not_joined(values: list[object]) -> None:
    axis = SweptAxis.of("key", values, 0.0, 100.0)
    assert axis.places == (25.0, 75.0)
    assert not axis.joined


@pytest.mark.parametrize("count", [1, 2, 11, 21, 101, 1001])
def test_labels_do_not_touch(count: int) -> None:
    values = [index / max(1, count - 1) for index in range(count)]
    labels = SweptAxis.of("cache_rate", values, 0.0, 550.0).labels(16.0)
    assert labels[0][1] == "0%"
    assert count < 3 or len(labels) >= 3
    for (before, first), (after, second) in pairwise(labels):
        assert after - before >= (text_width(first) + text_width(second)) / 2


def test_labels_of_uneven_values_do_not_touch_upwards_either() -> None:
    values = [0.0, 0.01, 0.02, 0.5, 1.0]
    labels = SweptAxis.of("", values, 300.0, 0.0, to_scale=True).labels(16.0, upright=True)
    assert [text for _, text in labels] == ["0", "0.5", "1"]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("cache_rate", 0.65, "65%"),
        ("cache_rate", 1 / 3, "33.3%"),
        ("x", 0.123456789, "0.1235"),
        ("x", "long" * 9, "long" * 9),
    ],
)
def test_labels_are_as_people_write_values(key: str, value: object, text: str) -> None:
    assert label(key, value) == text


def test_a_legend_breaks_into_rows_that_fit() -> None:
    canvas = Canvas("x", "", "")
    legend = Legend([LegendEntry(lambda *_: None, f"name number {number}") for number in range(8)])
    legend.draw(canvas)
    texts = [element for element in ET.fromstring(canvas.to_text()) if element.tag.endswith("text")]
    assert len({element.get("y") for element in texts}) > 1
    assert max(float(element.get("y", "")) for element in texts) < legend.height
    assert all(float(element.get("x", "")) + text_width(element.text or "") <= 640 for element in texts)
