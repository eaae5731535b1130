"""The figures: lengths are seconds, marks are where the numbers are, and what cannot be drawn says why."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.report import sources
from tests.traces import CLASSES, TIERS, times_of, trace_of
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.report.figures import FIGURE_CSS, LIGHT, Figure, class_marks, figures, standalone
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import HEIGHT, WIDTH, text_width

pytestmark = pytest.mark.whole

NAMES = ["time", "breakdown", "estimate", "goal", "processes"]
GRID = (0.0, 50.0, 100.0, 150.0)
HOSTILE = ("<img src=x onerror=alert(1)>", "\U0001f600 & \u0639\u0631\u0628\u064a \u202e]]>")


def source_of(times: ClassTimes, goal: float | None = None, improve: str = "LFS-READ", **changes: Any) -> ReportSource:
    return sources.source_of(times, goal, {improve: 50.0}, **changes)


def seconds_of(rate: float, class_: str, rank: int) -> float:
    """GFS before LFS; the higher the rank, the slower."""
    share = 1 - rate if class_.startswith("GFS") else rate
    return share * {"READ": 2.0, "META": 3.0}[class_.rpartition("-")[2]] * (1 + rank / 10)


def swept(
    rates: Sequence[float] = (0.0, 0.5, 1.0), epochs: Sequence[int] = (1, 2, 3), repetitions: Sequence[int] = (1,)
) -> ClassTimes:
    rows = [
        {
            "rank": rank,
            "epoch": epoch,
            "class": class_,
            "seconds": seconds_of(rate, class_, rank) * (1 + epoch / 100 + repetition / 1000),
            "cache_rate": rate,
            "repetition": repetition,
        }
        for rate in rates
        for epoch in epochs
        for repetition in repetitions
        for rank in range(4)
        for class_ in CLASSES
    ]
    return times_of(rows, ["cache_rate"])


def named(source: ReportSource, name: str) -> Figure:
    return next(figure for figure in figures(source) if figure.name == name)


def drawn(figure: Figure) -> ET.Element:
    assert figure.svg is not None, figure.missing
    return ET.fromstring(figure.svg)


def having(root: ET.Element, *css: str) -> list[ET.Element]:
    """Elements with all of these classes that are no part of a legend."""
    found = [(element, element.get("class", "").split()) for element in root.iter()]
    return [element for element, names in found if set(css) <= set(names) and "sample" not in names]


def tip(element: ET.Element) -> str:
    return next((child.text or "" for child in element if child.tag.endswith("title")), "")


def numbers(element: ET.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", element.get("d", ""))]


def pixels_per_second(root: ET.Element) -> float:
    """Read off the axis, as a reader would; where it is in seconds."""
    ticks = [element for element in root.iter() if element.get("class") == "tick end"]
    places = {float(element.text or ""): float(element.get("y", "")) for element in ticks}
    return (places[0.0] - places[max(places)]) / max(places)


def test_all_five_in_order() -> None:
    found = figures(source_of(swept()))
    assert [figure.name for figure in found] == NAMES
    assert all(figure.svg and not figure.missing and figure.caption for figure in found)
    assert all("\n" not in figure.title for figure in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_says_what_it_is_and_is_styled_by_classes_alone(name: str) -> None:
    figure = named(source_of(swept(), goal=2.0), name)
    root = drawn(figure)
    assert (root.get("role"), root.get("aria-label")) == ("img", figure.title)
    assert [child.text for child in root][:2] == [figure.title, figure.caption]
    attributes = {key for element in root.iter() for key in element.attrib}
    assert not attributes & {"style", "stroke", "onclick", "onload"}
    assert "#" not in re.sub(r"url\(#[\w-]+\)", "", figure.svg or "")
    used = {css for element in root.iter() for css in element.get("class", "").split()}
    assert {css for css in used if re.search(r"\d$", css)} <= set(re.findall(r"\.(\w+\d)\b", FIGURE_CSS))


def test_ids_are_unique_on_a_page_with_all_figures() -> None:
    page = "".join(figure.svg or "" for figure in figures(source_of(swept())))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) == 4
    assert set(re.findall(r"url\(#([^)]*)\)", page)) == set(ids)


def test_same_data_same_bytes() -> None:
    first, second = ([standalone(figure) for figure in figures(source_of(swept()))] for _ in range(2))
    assert first == second


def test_a_standalone_file_needs_nothing_else() -> None:
    file = standalone(named(source_of(swept()), "breakdown"))
    assert file.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<svg ')
    assert b"var(" not in file
    assert LIGHT["--tier0"].encode() in file
    root = ET.fromstring(file)
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("640", "400", "0 0 640 400")


def test_what_was_not_drawn_cannot_be_a_file() -> None:
    with pytest.raises(ValueError, match="nothing was swept"):
        standalone(Figure("time", "", "", None, "nothing was swept"))


def test_every_variable_has_a_light_value() -> None:
    assert set(re.findall(r"var\((--\w+)\)", FIGURE_CSS)) == set(LIGHT)


def test_hues_are_by_tier_and_meta_is_hatched() -> None:
    assert class_marks((*CLASSES, "GFS-WRITE")) == [
        ("GFS-READ", 0, False),
        ("GFS-META", 0, True),
        ("LFS-READ", 1, False),
        ("LFS-META", 1, True),
        ("GFS-WRITE", 0, False),
    ]


def test_time_has_a_line_for_every_epoch_and_the_first_is_apart() -> None:
    root = drawn(named(source_of(swept()), "time"))
    lines = having(root, "curve", "io")
    assert len(lines) == 3
    assert [element.get("class", "").split()[-1] for element in lines] == ["first", "later0", "later1"]
    scale = pixels_per_second(root)
    bottom = max(y for element in having(root, "axis") for _, y in numbers(element)[:1])
    # At 0 the slowest is rank 3 with GFS alone: 5 s × 1.3.
    for element, epoch in zip(lines, (1, 2, 3), strict=True):
        assert (bottom - numbers(element)[0][1]) / scale == pytest.approx(6.5 * (1.001 + epoch / 100), rel=0.01)
    assert not having(root, "whole")
    assert "unknown" in named(source_of(swept()), "time").caption


def test_epochs_differ_in_shape() -> None:
    root = drawn(named(source_of(swept()), "time"))
    outlines = {
        css: {(element.tag, len(numbers(element))) for element in having(root, "mark", "io", css)}
        for css in ("first", "later0", "later1")
    }
    assert all(len(shapes) == 1 for shapes in outlines.values())
    assert len({next(iter(shapes)) for shapes in outlines.values()}) == 3


def test_epoch_times_are_drawn_where_they_are_known() -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": 1.0}, (0, 2): {"GFS-READ": 2.0}}, point=point, sweep={"cache_rate": float(point)}, seconds=3.0)
        for point in range(2)
    ]  # fmt: skip
    figure = named(source_of(from_traces(traces, TIERS)), "time")
    assert figure.title.startswith("Epoch time and")
    assert [tip(element) for element in having(drawn(figure), "mark", "whole", "later0")] == [
        "0%: epoch 2, epoch time 3 s",
        "100%: epoch 2, epoch time 3 s",
    ]


def test_intervals_are_drawn_over_repetitions_only() -> None:
    assert not having(drawn(named(source_of(swept()), "time")), "whisker")
    figure = named(source_of(swept(repetitions=(1, 2))), "time")
    assert len(having(drawn(figure), "whisker")) == 9
    assert "n = 2 repetitions" in figure.caption


def test_of_many_epochs_some_are_drawn_and_the_caption_says_so() -> None:
    figure = named(source_of(swept(epochs=range(1, 21))), "time")
    assert len(having(drawn(figure), "curve", "io")) == 6
    assert "Of 20 epochs, 6 are drawn." in figure.caption


def test_one_epoch_alone_is_not_apart() -> None:
    assert not having(drawn(named(source_of(swept(epochs=(1,))), "time")), "first")


def stacks(root: ET.Element) -> dict[float, float]:
    """Place of a bar → its height in all."""
    found: dict[float, float] = {}
    for element in having(root, "bar"):
        x = float(element.get("x", ""))
        found[x] = found.get(x, 0.0) + float(element.get("height", ""))
    return found


@pytest.mark.parametrize("name", ["breakdown", "estimate"])
def test_heights_are_seconds(name: str) -> None:
    source = source_of(swept((0.0, 0.3, 0.5, 0.9)))
    root = drawn(named(source, name))
    shown = source.breakdown if name == "breakdown" else source.estimate.after
    heights = [height / pixels_per_second(root) for _, height in sorted(stacks(root).items())]
    assert heights == pytest.approx([point.io.median for point in shown.summary], rel=2e-3)


def test_each_class_has_its_share_of_the_bar() -> None:
    source = source_of(swept())
    root = drawn(named(source, "breakdown"))
    scale = pixels_per_second(root)
    middle = source.breakdown.summary[1]
    bars = [element for element in having(root, "bar") if tip(element).startswith("50%")]
    found = {tip(element).split()[1]: float(element.get("height", "")) / scale for element in bars}
    assert found == pytest.approx(middle.classes, rel=5e-3)
    hatched = {tip(element).split()[1] for element in bars if element.get("fill")}
    assert hatched == {"GFS-META", "LFS-META"}


def test_bars_of_a_stack_stand_on_each_other() -> None:
    root = drawn(named(source_of(swept()), "breakdown"))
    bars = [element for element in having(root, "bar") if tip(element).startswith("50%")]
    for below, above in pairwise(bars):
        foot = float(above.get("y", "")) + float(above.get("height", ""))
        assert foot == pytest.approx(float(below.get("y", "")), abs=0.02)


def test_writes_are_a_part_of_the_stack() -> None:
    rows = [
        {"rank": 0, "class": name, "seconds": 1.0, "cache_rate": rate}
        for rate in (0.0, 1.0)
        for name in (*CLASSES, "GFS-WRITE")
    ]
    figure = named(source_of(times_of(rows, ["cache_rate"], (*CLASSES, "GFS-WRITE"))), "breakdown")
    assert "GFS-WRITE" in (figure.svg or "")
    assert len(having(drawn(figure), "bar")) == 10


def test_the_best_point_is_marked_under_its_bar() -> None:
    source = source_of(swept((0.0, 0.25, 0.5, 1.0)))
    root = drawn(named(source, "breakdown"))
    (mark,) = having(root, "best")
    best = source.breakdown.best.sweep["cache_rate"]
    bar = next(element for element in having(root, "bar") if tip(element).startswith(f"{best:.0%}:"))
    centre = float(bar.get("x", "")) + float(bar.get("width", "")) / 2
    assert numbers(mark)[0][0] == pytest.approx(centre, abs=0.02)
    assert f"cache_rate {best:.0%}" in named(source, "breakdown").caption


@pytest.mark.parametrize(
    ("goal", "lines", "words"), [(2.0, 1, "dashed line"), (None, 0, "n = 2"), (90.0, 0, "above all")]
)
def test_the_goal_is_a_line_if_it_was_given(goal: float | None, lines: int, words: str) -> None:
    figure = named(source_of(swept(), goal=goal), "breakdown")
    assert len(having(drawn(figure), "goal")) == lines
    assert words in figure.caption


def test_the_goal_is_at_its_height() -> None:
    root = drawn(named(source_of(swept(), goal=2.0), "breakdown"))
    (line,) = having(root, "goal")
    bottom = max(y for element in having(root, "axis") for _, y in numbers(element)[:1])
    assert (bottom - numbers(line)[0][1]) / pixels_per_second(root) == pytest.approx(2.0, rel=0.01)


def test_an_estimate_shows_what_was_measured_on_the_same_scale() -> None:
    source = source_of(swept())
    root = drawn(named(source, "estimate"))
    scale = pixels_per_second(root)
    outlines = [float(element.get("height", "")) / scale for element in having(root, "outline")]
    assert outlines == pytest.approx([point.io.median for point in source.breakdown.summary], rel=2e-3)
    assert len(having(root, "former")) == len(having(root, "best")) == 1
    assert "LFS-READ +50 %" in named(source, "estimate").title
    assert "not a measurement" in named(source, "estimate").caption


def test_the_grid_has_a_mark_for_every_combination_and_rings_for_the_options() -> None:
    source = source_of(swept(), goal=5.3)
    root = drawn(named(source, "goal"))
    met = int((source.exploration.chosen >= 0).sum())
    assert 0 < met < len(sources.GRID) ** 2
    assert len(having(root, "dot")) == met
    assert len(having(root, "unmet")) == len(sources.GRID) ** 2 - met
    rings = {(element.get("cx"), element.get("cy")) for element in having(root, "ring")}
    assert len(rings) == len(source.exploration.options) > 0
    assert rings <= {(element.get("cx"), element.get("cy")) for element in having(root, "dot")}


def test_dots_have_the_colour_of_their_cache_rate() -> None:
    source = source_of(swept(), goal=5.3)
    exploration = source.exploration
    root = drawn(named(source, "goal"))
    first, second = exploration.vary
    rates = {
        f"{first} {improve[first]:+g} %, {second} {improve[second]:+g} %": exploration.sweeps[point]["cache_rate"]
        for index, point in enumerate(exploration.chosen)
        if point >= 0 and (improve := exploration.combination(index))
    }
    colours: dict[float, set[str]] = {}
    for element in having(root, "dot"):
        improved, _, rest = tip(element).partition(": ")
        assert rest.endswith(f"at {rates[improved]:.0%} cached")
        colours.setdefault(rates[improved], set()).add(element.get("class", ""))
    assert len(colours) > 1
    assert all(len(used) == 1 for used in colours.values())
    assert len(set.union(*colours.values())) == len(colours)
    legend = [element for element in root.iter() if set(element.get("class", "").split()) >= {"sample", "dot"}]
    assert {element.get("class", "").removeprefix("sample ") for element in legend} == set.union(*colours.values())


def test_more_cache_rates_than_colours_share_them() -> None:
    source = source_of(swept([index / 30 for index in range(31)]), goal=5.3)
    used = {element.get("class", "").split()[-1] for element in having(drawn(named(source, "goal")), "dot")}
    assert {"q0", "q9"} <= used <= {f"q{step}" for step in range(10)}


def test_a_goal_out_of_reach_is_drawn_as_such() -> None:
    root = drawn(named(source_of(swept(), goal=1e-3), "goal"))
    assert "not met by any of these" in [element.text for element in root.iter()]
    assert not having(root, "dot")


def test_a_suggested_goal_is_called_so() -> None:
    assert "suggestion" in named(source_of(swept()), "goal").caption
    assert "suggestion" not in named(source_of(swept(), goal=2.0), "goal").caption


def test_processes_shows_quantiles_of_all_of_them() -> None:
    root = drawn(named(source_of(swept(epochs=(1, 2))), "processes"))
    scale = pixels_per_second(root)
    bottom = max(y for element in having(root, "axis") for _, y in numbers(element)[:1])
    (median,), (slowest,) = having(root, "median"), [e for e in having(root, "slowest") if e.tag.endswith("path")]
    # At 0: 5 s × (1, 1.1, 1.2, 1.3) × 1.021 in epoch 2.
    assert (bottom - numbers(median)[0][1]) / scale == pytest.approx(5 * 1.15 * 1.021, rel=0.01)
    assert (bottom - numbers(slowest)[0][1]) / scale == pytest.approx(5 * 1.3 * 1.021, rel=0.01)
    band = [y for x, y in numbers(having(root, "band")[0]) if x == numbers(median)[0][0]]
    assert (bottom - max(band)) / scale == pytest.approx(5 * 1.021, rel=0.01)
    assert "n = 4 at each point" in named(source_of(swept(epochs=(1, 2))), "processes").caption


def test_text_values_are_not_joined_by_lines() -> None:
    rows = [
        {"rank": rank, "class": name, "seconds": 1.0 + rank, "disk": disk}
        for rank in range(2)
        for name in CLASSES
        for disk in ("nfs", "lustre")
    ]
    source = source_of(times_of(rows, ["disk"]))
    assert not having(drawn(named(source, "time")), "curve")
    assert len(having(drawn(named(source, "processes")), "band")) == 2
    assert "met" in {css for e in having(drawn(named(source, "goal")), "dot") for css in e.get("class", "").split()}


def test_of_several_keys_the_slice_with_the_best_point_is_drawn() -> None:
    rows = [
        {"rank": 0, "class": name, "seconds": 1.0 + rate + readers, "cache_rate": rate, "readers": readers}
        for name in CLASSES
        for readers in (1, 2)
        for rate in (0.0, 0.5, 1.0)
    ]
    source = source_of(times_of(rows, ["readers", "cache_rate"]))
    for name in ("time", "breakdown", "estimate", "processes"):
        figure = named(source, name)
        assert figure.title.endswith("(readers 1)")
        assert "this shows only readers 1" in figure.caption
    assert len(stacks(drawn(named(source, "breakdown")))) == 3


@pytest.mark.parametrize(
    ("study", "words"),
    [("name: x", "only one cache rate, so there is nothing to plot; sweep placement.cache_rate in the study"),
     (None, "nothing was swept, so there is nothing to plot")],
)  # fmt: skip
def test_one_point_alone(study: str | None, words: str) -> None:
    rows = [{"rank": 0, "class": name, "seconds": 1.0} for name in CLASSES]
    found = {figure.name: figure for figure in figures(source_of(times_of(rows), study_yaml=study))}
    assert found["time"].missing == found["processes"].missing == words
    assert found["time"].svg is None
    assert len(stacks(drawn(found["breakdown"]))) == len(stacks(drawn(found["estimate"]))) == 1
    assert not having(drawn(found["breakdown"]), "best")
    assert {e.get("class", "").split()[-1] for e in having(drawn(found["goal"]), "dot")} == {"met"}


def test_no_io_at_all() -> None:
    rows = [{"rank": 0, "class": name, "seconds": 0.0, "cache_rate": rate} for name in CLASSES for rate in (0.0, 1.0)]
    for figure in figures(source_of(times_of(rows, ["cache_rate"]))):
        assert figure.svg is None
        assert "no time was spent on I/O" in figure.missing


def test_emulated_tiers_are_named_in_every_caption() -> None:
    source = replace(source_of(swept()), conditions=Conditions(emulated=("gfs",)))
    assert all("Emulated tiers: gfs." in figure.caption for figure in figures(source))


def test_hostile_names_stay_text_and_stay_inside() -> None:
    classes = [f"{tier}-{kind}" for tier in HOSTILE for kind in ("READ", "META")]
    rows = [
        {"rank": 0, "class": name, "seconds": 1.0 + rate, "</svg><script>": rate}
        for name in classes
        for rate in (0.0, 1.0)
    ]
    source = source_of(times_of(rows, ["</svg><script>"], classes), improve=classes[0])
    for figure in figures(source):
        root = drawn(figure)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "defs", "pattern", "rect", "path", "circle", "text"}
        assert not re.search(r"<(img|script)", figure.svg or "")
        assert_inside(root)
    assert any(
        "<img src=x onerror=alert(1)>-READ" in tip(bar) for bar in having(drawn(named(source, "breakdown")), "bar")
    )


def assert_inside(root: ET.Element) -> None:
    for element in (element for element in root.iter() if element.tag.endswith("text")):
        x, y, width = float(element.get("x", "")), float(element.get("y", "")), text_width(element.text or "")
        if element.get("transform"):
            assert width / 2 - 1 <= y <= HEIGHT - width / 2 + 1
        else:
            css = element.get("class", "").split()
            left = x - width if "end" in css else x - width / 2 if "middle" in css else x
            assert left >= -1
            assert left + width <= WIDTH + 1


@pytest.mark.parametrize("count", [2, 11, 21, 101])
def test_labels_stay_inside_for_any_number_of_values(count: int) -> None:
    for figure in figures(source_of(swept([index / (count - 1) for index in range(count)]), goal=5.3)):
        assert_inside(drawn(figure))


def test_of_very_many_points_some_are_drawn_and_the_best_is_among_them() -> None:
    rows = [
        {"rank": 0, "class": "GFS-READ", "seconds": 1.0 if index == 1001 else 2.0 + index / 1e4, "x": index}
        for index in range(2000)
    ]
    source = source_of(times_of(rows, ["x"], ["GFS-READ"]), improve="GFS-READ")
    figure = named(source, "breakdown")
    bars = [
        element
        for element in drawn(figure).iter()
        if element.tag.endswith("rect") and "tier0" in (element.get("class") or "")
    ]
    assert 300 < len(bars) < 450
    assert "Only one point in 5 and the best are drawn." in figure.caption
    assert "best: 1001" in figure.svg  # type: ignore[operator]
