"""Cases side by side: a panel for each in one figure, and each by itself on the page."""

import re
import xml.etree.ElementTree as ET
from functools import cache

import pytest

from tests.cased import RATES, cased_times
from tests.predict.clocked import clocked
from tests.report.sources import rows_at, source_of
from tests.report.test_page import Parsed, made
from tests.traces import times_of
from tierscope.report.figures import Figure, figures, standalone
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import WIDTH

pytestmark = pytest.mark.whole

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("time", "breakdown", "estimate", "goal", "processes")


def named(source: ReportSource, name: str) -> Figure:
    return next(figure for figure in figures(source) if figure.name == name)


@cache
def cased_figures() -> list[Figure]:
    return figures(source_of(cased_times()))


def cased_figure(name: str) -> Figure:
    return next(figure for figure in cased_figures() if figure.name == name)


def insets(figure: Figure) -> list[ET.Element]:
    assert figure.svg is not None, figure.missing
    return [each for each in ET.fromstring(figure.svg).iter(f"{SVG}g") if each.get("class") == "inset"]


def headings(figure: Figure) -> list[str]:
    return [
        text.text or ""
        for inset in insets(figure)
        for text in inset.iter(f"{SVG}text")
        if "heading" in text.get("class", "")
    ]


def places(figure: Figure) -> list[tuple[float, float]]:
    found = [re.findall(r"[\d.]+", inset.get("transform", "")) for inset in insets(figure)]
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize("name", NAMES)
def test_every_case_has_a_panel_in_one_figure_and_one_of_its_own(name: str) -> None:
    figure = cased_figure(name)
    assert [heading.partition(" · ")[0] for heading in headings(figure)] == ["zoo", "bee", "cat"]
    assert len(figure.panels) == 3
    assert figure.title.endswith(", in each case")
    assert all(ET.fromstring(panel).get("viewBox") == "0 0 430 340" for panel in figure.panels)
    assert figure.size.width == 3 * 430 > WIDTH
    assert ET.fromstring(standalone(figure)).get("width") == "1290"
    assert figure.key


def test_a_study_without_cases_is_drawn_as_ever() -> None:
    rows = [row for rate in (0.0, 0.5) for row in rows_at({"cache_rate": rate}, 4.0 - rate, 0.5)]
    for figure in figures(source_of(times_of(rows, ["cache_rate"]))):
        assert not figure.panels
        assert not insets(figure)


def test_four_are_two_by_two_and_five_three_and_two() -> None:
    def of(count: int) -> list[tuple[float, float]]:
        rows = [
            row
            for case in range(count)
            for rate in (0.0, 1.0)
            for row in rows_at({"case": f"c{case}", "cache_rate": rate}, 2.0 - rate, 1.0 + case)
        ]
        return places(named(source_of(times_of(rows, ["case", "cache_rate"])), "breakdown"))

    assert [x for x, _ in of(2)] == [0, 430]
    assert [x for x, _ in of(4)] == [0, 430, 0, 430]
    assert [x for x, _ in of(5)] == [0, 430, 860, 0, 430]
    assert len(of(14)) == 12


def test_bests_are_of_each_case_and_in_its_heading() -> None:
    figure = cased_figure("breakdown")
    assert headings(figure) == ["zoo · best 100%", "bee · best 0%", "cat · best 75%"]
    assert "zoo: cache_rate 100% with" in figure.caption
    marks = [[each for each in inset.iter() if each.get("class") == "best"] for inset in insets(figure)]
    assert [len(each) for each in marks] == [1, 1, 1]


@pytest.mark.parametrize(
    ("far", "words"), [(2.0, "All panels have the same scale."), (40.0, "Each panel has its own scale.")]
)
def test_one_scale_where_the_shortest_still_shows(far: float, words: str) -> None:
    rows = [
        row
        for case, factor in (("a", 1.0), ("b", far))
        for rate in (0.0, 1.0)
        for row in rows_at({"case": case, "cache_rate": rate}, factor * (2.0 - rate), factor)
    ]
    figure = named(source_of(times_of(rows, ["case", "cache_rate"])), "time")
    assert words in figure.caption


def test_the_bars_of_a_panel_are_its_cases_seconds() -> None:
    source = source_of(cased_times())
    figure = named(source, "breakdown")
    for inset, part in zip(insets(figure), source.parts, strict=True):
        tips = [each.text or "" for each in inset.iter(f"{SVG}title")]
        totals = {float(found[1]) for tip in tips if (found := re.search(r" of ([\d.]+) s$", tip))}
        medians = {float(f"{point.io.median:.3g}") for point in part.breakdown.summary}
        assert totals == medians


def test_points_that_read_different_amounts_are_panels_without_cases() -> None:
    def rank(files: int, rate: float) -> list[list[dict[str, float]]]:
        return [[{"GFS-READ": files * (2 - rate), "epoch": 9.0, "stall": 1.0, "payload": files * 1000.0}]]

    points = [({"files": files, "cache_rate": rate}, rank(files, rate)) for files in (10, 500) for rate in (0.0, 1.0)]
    figure = named(source_of(clocked(points, ("files", "cache_rate"))), "breakdown")
    assert [heading.partition(" · ")[0] for heading in headings(figure)] == ["files 500", "files 10"]
    assert figure.title.endswith("in each group of points")


def test_points_that_all_stand_alone_share_a_panel_without_a_best() -> None:
    points = [
        ({"files": files}, [[{"GFS-READ": files / 10, "epoch": 99.0, "stall": 1.0, "payload": files * 1000.0}]])
        for files in (10, 50, 100)
    ]
    source = source_of(clocked(points, ("files",)))
    for name in ("time", "breakdown", "estimate", "processes"):
        figure = named(source, name)
        assert not insets(figure)
        assert "best" not in figure.caption.lower().replace("best-row", "") or name == "estimate"
    assert "triangle marks" not in named(source, "breakdown").caption


def test_keys_that_change_together_are_one_axis() -> None:
    """Said before: no two points differ in one swept key alone, so there is nothing to draw against."""
    rows = [
        row
        for files, size in ((64, 512), (128, 256), (256, 128))
        for row in rows_at({"files": files, "size": size}, files / 64, 0.5)
    ]
    source = source_of(times_of(rows, ["files", "size"]))
    for name in ("time", "breakdown", "processes"):
        figure = named(source, name)
        texts = [each.text for each in ET.fromstring(figure.svg or "").iter(f"{SVG}text")]
        assert {"64 × 512", "128 × 256", "256 × 128", "files × size"} <= set(texts)


def test_cases_without_a_sweep_are_bars_beside_each_other() -> None:
    rows = [row for case in ("a", "b") for row in rows_at({"case": case}, 2.0, 1.0)]
    figure = named(source_of(times_of(rows, ["case"])), "breakdown")
    texts = [each.text for each in ET.fromstring(figure.svg or "").iter(f"{SVG}text")]
    assert {"a", "b", "case"} <= set(texts)
    assert not insets(figure)


def test_ids_are_unique_on_a_page_with_panels() -> None:
    text = made(source_of(cased_times()))
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    assert used - {"live-hatch-${tier}"} <= set(ids)  # that one is our script's


def test_the_page_has_a_chooser_and_a_table_of_money_for_each() -> None:
    source = source_of(cased_times())
    text = made(source)
    section = text[text.index('<section id="sensitivity"') : text.index('<section id="figures"')]
    assert section.count('data-part="') == 3
    options = re.search(r'<select id="case">(.*?)</select>', text, re.DOTALL)
    assert options is not None
    assert re.findall(r">(\w+)</option>", options[1]) == ["zoo", "bee", "cat"]
    assert len(re.findall('<div class="panels">', text)) == 5  # two of them only where there is no script
    verdict = Parsed(text[text.index('<section id="verdict"') : text.index('<section id="what-if"')]).text
    for name in ("zoo", "bee", "cat"):
        assert f"Case {name}: " in verdict
    assert verdict.count("Faster ") == verdict.count("The best cache rate is ") == 3


def test_a_panel_is_as_wide_as_its_sweep() -> None:
    figure = cased_figure("time")
    assert len(RATES) == 5
    circles = [each for each in insets(figure)[0].iter(f"{SVG}circle") if "mark" in each.get("class", "")]
    assert len(circles) == len(RATES)
