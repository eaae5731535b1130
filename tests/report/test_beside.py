"""Two results side by side: the right points, the right errors, and labels that nobody can misread."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from rich.console import Console

from tests.cased import cased_times
from tests.report.sources import source_of
from tests.report.test_page import HOSTILE, OTHER, Parsed, made
from tests.tiny import tiny
from tests.traces import CLASSES, TIERS, times_of, trace_of
from tierscope.analysis.analysis import Analysis
from tierscope.analysis.beside import Beside, ComparedResult, lay_beside
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.commands.report import besides_of, differing_keys
from tierscope.errors import UserError
from tierscope.report.beside import BesideView, error_text, headings, summary_sentences
from tierscope.report.figures import Figure, figures, standalone
from tierscope.report.headline import verdict
from tierscope.report.report_source import ReportSource

MEASURED = ComparedResult("demo", "out", "measured", "measured")
SIMULATED = ComparedResult("demo", "sim", "simulated", "simulated (bound)")
Seconds = Mapping[Any, float | tuple[str, float]]


def times(seconds: Seconds, key: str = "cache_rate", extra: float = 0.0) -> ClassTimes:
    """Of one process; two repetitions where `extra` is given."""
    rows = []
    for value, what in seconds.items():
        name, time = what if isinstance(what, tuple) else ("GFS-READ", what)
        for repetition in (1, 2) if extra else (1,):
            row = {"rank": 0, "class": name, key: value, "repetition": repetition}
            rows.append({**row, "seconds": time + extra * (repetition - 1)})
    return times_of(rows, [key])


def simulated(seconds: Mapping[Any, float], spread: tuple[float, float] = (0.9, 1.1)) -> ClassTimes:
    traces = [
        trace_of(
            {(0, 1): {"GFS-READ": time}},
            point=number,
            sweep={"cache_rate": rate},
            about={"kind": "simulated", "method": "bound", "spread": {"1": spread}},
        )
        for number, (rate, time) in enumerate(seconds.items())
    ]
    return from_traces(traces, TIERS)


def laid(
    first: ClassTimes, second: ClassTimes, sides: tuple[ComparedResult, ComparedResult] = (MEASURED, SIMULATED)
) -> Beside:
    return lay_beside(break_down(first), break_down(second), sides)


def shown(beside: Beside, width: int = 200) -> str:
    target = io.StringIO()
    Console(file=target, width=width, highlight=False).print(BesideView(beside))
    return target.getvalue()


def with_beside(
    first: ClassTimes, second: ClassTimes, sides: tuple[ComparedResult, ComparedResult] = (MEASURED, SIMULATED)
) -> ReportSource:
    return source_of(first, besides=(laid(first, second, sides),))


def drawn(source: ReportSource) -> Figure:
    (figure,) = (figure for figure in figures(source) if figure.name == "beside")
    return figure


def having(figure: Figure, *css: str) -> list[ET.Element]:
    """Elements with all of these classes that are no part of a legend."""
    assert figure.svg is not None, figure.missing
    found = [(each, each.get("class", "").split()) for each in ET.fromstring(figure.svg).iter()]
    return [each for each, names in found if set(css) <= set(names) and "sample" not in names]


# Matching


def test_points_are_matched_by_value_in_whichever_order_they_come() -> None:
    beside = laid(times({0.0: 4.0, 0.5: 2.0, 1.0: 1.0}), times({1.0: 3.0, 0.25: 9.0, 0.0: 5.0}))
    pairs = [(point.sweep["cache_rate"], point.first.io.median, point.second.io.median) for point in beside.points]
    assert pairs == [(0.0, 4.0, 5.0), (1.0, 1.0, 3.0)]
    assert beside.left_out == (1, 1)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (4, 4.0, True),
        (4, "4", True),
        (0.3, 0.1 + 0.2, True),
        (0.3, 0.3001, False),
        ("lru", "lru", True),
        ("lru", "LRU", False),
        (True, "true", True),
        (True, 1, False),
        (None, "none", True),
    ],
)
def test_what_means_the_same_is_the_same(ours: Any, theirs: Any, same: bool) -> None:
    first, second = times({ours: 1.0}, "key"), times({theirs: 2.0}, "key")
    if same:
        assert len(laid(first, second).points) == 1
    else:
        with pytest.raises(UserError, match="no point"):
            laid(first, second)


def test_keys_may_be_in_another_order() -> None:
    def both(a: str, b: str, seconds: float) -> ClassTimes:
        rows = [
            {"rank": 0, "class": "GFS-READ", "seconds": seconds * (x + 2 * y), "x": x, "y": y}
            for x in (1, 2)
            for y in (1, 3)
        ]
        return times_of(rows, [a, b])

    beside = laid(both("x", "y", 1.0), both("y", "x", 2.0))
    assert [point.error_percent for point in beside.points] == pytest.approx([100.0] * 4)
    assert (beside.sweep_keys, beside.left_out) == (("x", "y"), (0, 0))


def test_other_keys_and_no_common_point_are_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"--beside sim: sweeps x, but out sweeps cache_rate; .*same sweep keys"):
        laid(times({0.0: 1.0}), times({0.0: 1.0}, "x"))
    with pytest.raises(UserError, match=r"sweeps nothing, but out sweeps cache_rate"):
        laid(times({0.0: 1.0}), times_of([{"rank": 0, "class": "GFS-READ", "seconds": 1.0}]))
    with pytest.raises(UserError, match=r"no point of its sweep has the same values of cache_rate as one of out"):
        laid(times({0.0: 1.0}), times({0.5: 1.0}))


# Errors, bottlenecks, coverage


def test_errors_are_of_the_second_against_the_first() -> None:
    beside = laid(times({0.0: 4.0, 0.25: 2.0, 0.5: 1.0, 1.0: 10.0}), times({0.0: 5.0, 0.25: 1.0, 0.5: 1.0, 1.0: 11.0}))
    assert [point.error_percent for point in beside.points] == pytest.approx([25.0, -50.0, 0.0, 10.0])
    assert beside.median_error == pytest.approx(17.5)
    assert beside.worst is not None
    assert beside.worst.sweep == {"cache_rate": 0.25}


def test_there_is_no_error_against_no_time() -> None:
    beside = laid(times({0.0: 0.0, 0.5: 0.0, 1.0: 2.0}), times({0.0: 1.0, 0.5: 0.0, 1.0: 3.0}))
    assert [point.error_percent for point in beside.points] == [None, 0.0, pytest.approx(50.0)]
    assert "(n=2 points)" in summary_sentences(beside)[0]
    nothing = laid(times({0.0: 0.0}), times({0.0: 1.0}))
    assert summary_sentences(nothing)[0].startswith("No error: the first has no I/O;")


def test_the_same_bottleneck_is_the_same_class() -> None:
    first = times({0.0: ("GFS-META", 4.0), 0.5: ("GFS-META", 2.0), 1.0: 0.0})
    second = times({0.0: ("GFS-META", 4.0), 0.5: ("LFS-READ", 2.0), 1.0: 0.0})
    beside = laid(first, second)
    assert [point.same_bottleneck for point in beside.points] == [True, False, True]
    assert "the same bottleneck at 2 of 3" in summary_sentences(beside)[0]
    assert "GFS-META ≠ LFS-READ" in shown(beside)


@pytest.mark.parametrize(
    ("measured", "covered"), [(1.0, True), (0.9, True), (1.1, True), (0.899, False), (1.101, False)]
)
def test_covered_is_what_lies_within_the_simulated_interval(measured: float, covered: bool) -> None:
    beside = laid(times({0.0: measured}), simulated({0.0: 1.0}))
    assert [point.covered for point in beside.points] == [covered]
    assert beside.coverage == (int(covered), 1)


def test_nothing_is_covered_by_what_was_not_simulated() -> None:
    beside = laid(times({0.0: 1.0}), times({0.0: 0.5}, extra=1.0))
    assert beside.coverage == (0, 0)
    assert "within" not in shown(beside)
    assert "within" not in made(source_of(times({0.0: 1.0}), besides=(beside,)))


# Words


@pytest.mark.parametrize(
    ("given", "csv", "word", "label"),
    [
        (Conditions(), False, "measured", "measured"),
        (Conditions(), True, "CSV", "from a CSV"),
        (Conditions(simulated=("bound",)), False, "simulated", "simulated (bound)"),
        (Conditions(emulated=("gfs", "lfs")), False, "emulated", "measured, emulated tiers: gfs, lfs"),
        (Conditions(profilers=("darshan",)), False, "measured", "measured with darshan"),
    ],
)
def test_a_label_says_where_times_come_from(given: Conditions, csv: bool, word: str, label: str) -> None:
    side = ComparedResult.of("x", "out", given, csv)
    assert (side.word, side.label) == (word, label)


def test_the_table_of_the_terminal() -> None:
    lines = [
        line.rstrip() for line in shown(laid(times({0.0: 4.0, 0.5: 2.0}), simulated({0.0: 5.0, 0.5: 2.1}))).splitlines()
    ]
    assert lines[:3] == [
        "I/O time of the slowest process, measured versus simulated",
        "measured: demo in out",
        "simulated: demo in sim, simulated (bound)",
    ]
    header = next(line for line in lines if "cache rate" in line)
    assert re.split(r" {2,}", header.strip()) == [
        *("cache rate", "measured s", "simulated s", "90% simulated, n=1", "error", "within 90 %", "bottleneck")
    ]
    assert "0% 4.000 5.000 4.500–5.500 +25.0 % no GFS-READ" in [" ".join(line.split()) for line in lines]
    assert lines[-1] == (
        "Median error 15.0 %, largest +25.0 % at cache_rate 0% (n=2 points); the same bottleneck at 2 of 2; "
        "measured time within the 90 % interval of the simulated one at 1 of 2."
    )


def test_a_narrow_terminal_keeps_the_error() -> None:
    text = shown(laid(times({0.0: 4.0}, extra=1.0), simulated({0.0: 4.95})), width=50)
    assert "+10.0 %" in text
    assert "bottleneck  " not in text
    assert "GFS-READ" not in text


def test_what_is_left_out_is_counted_in_words() -> None:
    beside = laid(times({0.0: 4.0, 0.1: 1.0, 0.2: 1.0}), times({0.0: 4.0, 0.3: 1.0}))
    expected = "Not compared: 2 points only of the measured sweep and 1 point only of the simulated sweep."
    assert summary_sentences(beside)[1] == expected
    assert len(summary_sentences(laid(times({0.0: 4.0}), times({0.0: 4.0})))) == 1


@pytest.mark.parametrize(
    ("percent", "text"),
    [(None, "–"), (1.26, "+1.3 %"), (-1.26, "−1.3 %"), (-0.01, "0.0 %"), (0.0, "0.0 %"), (123456.7, "+123,457 %")],
)
def test_errors_have_a_sign(percent: float | None, text: str) -> None:
    assert error_text(percent) == text


def test_two_of_the_same_kind_can_be_told_apart() -> None:
    events = ComparedResult("demo", "sim2", "simulated", "simulated (events)")
    assert "simulated (bound) s" in shown(laid(times({0.0: 4.0}), times({0.0: 4.0}), (SIMULATED, events)))
    same = shown(laid(times({0.0: 4.0}), times({0.0: 4.0}), (MEASURED, MEASURED)))
    assert "first s" in same
    assert "second s" in same
    assert "first: demo in out, measured" in same


def test_all_keys_in_which_studies_differ_are_named_with_their_values() -> None:
    assert differing_keys(tiny(), tiny("study=other", "goal=4 s", "repetitions=3")) == []
    other = tiny(
        "workload.dataset.num_files_train=32",
        "seed=8",
        "nodes=1",
        "system.tiers.gfs.bandwidth=1 GB/s",
        "read_threads=4",
    )
    found = differing_keys(tiny(), other)
    assert [each.partition(":")[0] for each in found] == [
        "seed",
        "system.nodes",
        "system.tiers.gfs.bandwidth",
        "workload.dataset.num_files_train",
        "workload.reader.read_threads",
    ]
    assert found[0] == "seed: 7 → 8"
    both = break_down(times({0.0: 1.0}))
    beside = lay_beside(both, both, (MEASURED, SIMULATED), found)
    assert all(key in summary_sentences(beside)[-1] for key in found)


# Differences


OTHER_RUN = ComparedResult("demo", "runs/again", "measured", "measured")


def several(seconds: Mapping[float, Sequence[float]], ranks: int = 1, nbytes: int = 100) -> ClassTimes:
    """So many repetitions of each point."""
    rows = [
        {
            "rank": rank,
            "class": "GFS-READ",
            "cache_rate": rate,
            "repetition": number,
            "seconds": each,
            "ops": 1,
            "bytes": nbytes,
        }
        for rate, values in seconds.items()
        for number, each in enumerate(values, start=1)
        for rank in range(ranks)
    ]
    return times_of(rows, ["cache_rate"])


def measured(first: ClassTimes, second: ClassTimes) -> Beside:
    return laid(first, second, (MEASURED, OTHER_RUN))


def test_one_is_faster_only_where_intervals_are_apart() -> None:
    first = several({0.0: [4.0, 4.1, 4.2], 0.5: [2.0, 2.1, 2.4], 1.0: [1.0, 1.0, 1.1]})
    second = several({0.0: [3.0, 3.1, 3.2], 0.5: [1.9, 2.0, 2.1], 1.0: [2.0, 2.0, 2.1]})
    beside = measured(first, second)
    assert [point.is_told for point in beside.points] == [True, False, True]
    assert summary_sentences(beside)[0] == (
        "I/O of again takes less time than that of out at 1 of 3 points (−24.4 %, n = 3 and 3); "
        "I/O of again takes more time than that of out at 1 of 3 points (+100.0 %, n = 3 and 3); "
        "which takes less I/O time is unclear at the other 1: their intervals overlap (n = 3 and 3); the same bottleneck at 3 of 3."
    )
    text = shown(beside)
    assert "difference" in text
    assert "error" not in text
    assert "unclear" in text


def test_a_single_value_tells_nothing() -> None:
    beside = measured(times({0.0: 4.0}), times({0.0: 1.0}))
    assert summary_sentences(beside)[0].startswith(
        "Which takes less I/O time is unclear: a single value has no interval (n = 1 and 1)"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"nbytes": 50}, "they read 300 B and 150 B per epoch"), ({"ranks": 1}, "they have 3 ranks and 1")],
)
def test_other_data_or_other_ranks_are_not_compared(changes: dict[str, int], reason: str) -> None:
    slow = {0.0: [4.0, 4.1], 1.0: [3.0, 3.1]}
    fast = {0.0: [2.0, 2.1], 1.0: [1.0, 1.1]}
    nbytes = 300 if "ranks" in changes else 100
    first = several(slow, 3, nbytes // 3 if "ranks" in changes else 100)
    second = several(fast, **{"ranks": 3, "nbytes": nbytes, **changes})
    beside = measured(first, second)
    assert summary_sentences(beside)[0] == f"Not comparable: {reason}, so which is faster is unknown."
    assert beside.errors == []
    assert "not comparable" in shown(beside)
    figure = drawn(source_of(first, besides=(beside,)))
    assert figure.svg is None
    assert reason in figure.missing
    assert "Not comparable" in Parsed(made(source_of(first, besides=(beside,)))).text


def test_any_number_of_results() -> None:
    first = several({0.0: [4.0, 4.1], 1.0: [3.0, 3.1]})
    second, third = several({0.0: [2.0, 2.1], 1.0: [1.0, 1.1]}), simulated({0.0: 4.0, 1.0: 3.0})
    analyses = [
        Analysis("demo", each, break_down(each), [], conditions, None)
        for each, conditions in (
            (first, Conditions()),
            (second, Conditions()),
            (third, Conditions(simulated=("bound",))),
        )
    ]
    besides = besides_of(analyses[0], analyses[1:], ("a/one", "b/two", "c/three"))
    assert [headings(beside) for beside in besides] == [("one", "two"), ("one", "three")]
    assert [beside.is_prediction for beside in besides] == [False, True]
    source = source_of(first, besides=tuple(besides))
    figure = drawn(source)
    assert {css for css in ("later0", "later1", "later2") if having(figure, "curve", css)} == {
        "later0",
        "later1",
        "later2",
    }
    text = made(source)
    section = Parsed(text[text.index('<section id="beside"') : text.index('<section id="numbers"')])
    assert "Comparison with other results" in section.text
    assert "one versus two" in section.text
    assert "one versus three" in section.text
    assert text.count('id="figure-beside"') == 1


def test_cases_beside_are_panels() -> None:
    one = cased_times()
    figure = drawn(source_of(one, besides=(laid(one, one),)))
    assert len(figure.panels) == 3


# The page


def test_the_page_has_the_section_only_when_asked() -> None:
    first, second = times({0.0: 4.0, 0.5: 2.0}), simulated({0.0: 5.0, 0.5: 2.1})
    assert 'id="beside"' not in made(source_of(first))
    text = made(with_beside(first, second))
    section = text[text.index('<section id="beside"') : text.index('<section id="numbers"')]
    parsed = Parsed(section)
    assert "Measured versus simulated" in parsed.text
    assert 'id="figure-beside"' in section
    assert text.count('id="figure-beside"') == 1
    ((_, region),) = parsed.having(role="region")
    assert (region["tabindex"], region["class"]) == ("0", "scroll")
    assert (region["aria-label"] or "").startswith(
        "I/O time of the slowest process in both; error: simulated ÷ measured − 1"
    )
    assert all(given["scope"] in ("col", "row") for tag, given in parsed.elements if tag == "th")
    assert "hidden" not in section
    rows = [Parsed(row).text for row in re.findall(r"<tr>.*?</tr>", section, re.DOTALL)]
    assert rows[1] == "0%4.0004.000–4.00015.0004.500–5.5001 (90% simulated)+25.0 %noGFS-READGFS-READ"
    assert rows[2].endswith("+5.0 %yesGFS-READGFS-READ")


def test_no_name_becomes_markup() -> None:
    key, value, name = "<b>key", "<svg onload=alert(2)>", f"{OTHER[:20]}-READ"
    rows = [{"rank": 0, "class": name, "seconds": 1.0 + number, key: each} for number, each in enumerate((value, "x"))]
    first = times_of(rows, [key], [name, name.replace("READ", "META")])
    sides = (ComparedResult(HOSTILE, OTHER, HOSTILE, HOSTILE), ComparedResult(OTHER, HOSTILE, OTHER, OTHER))
    source = source_of(first, besides=(laid(first, first, sides),))
    text = made(source)
    parsed = Parsed(text)
    assert not {"img", "b"} & {tag for tag, _ in parsed.elements}
    assert not [attribute for _, given in parsed.elements for attribute in given if attribute.startswith("on")]
    assert text.count("</script>") == 5
    assert "\u202e" not in parsed.text
    assert HOSTILE in parsed.text
    assert "onerror" not in {
        attribute for each in ET.fromstring(drawn(source).svg or "").iter() for attribute in each.attrib
    }
    assert "[/red]" in shown(laid(first, first, (ComparedResult("[red]x[/red]", ":boom:", "a", "[/red]"), SIMULATED)))


# The figure


def test_six_figures_only_with_another_result() -> None:
    first = times({0.0: 4.0, 0.5: 2.0})
    assert len(figures(source_of(first))) == 5
    assert [figure.name for figure in figures(with_beside(first, first))][5:] == ["beside"]


def test_both_curves_band_and_whiskers_are_where_the_numbers_are() -> None:
    first, second = times({0.0: 4.0, 0.5: 2.0, 1.0: 3.0}, extra=1.0), simulated({0.0: 5.0, 0.5: 2.0, 1.0: 3.0})
    figure = drawn(with_beside(first, second))
    root = ET.fromstring(figure.svg or "")
    ticks = {
        float(each.text or ""): float(each.get("y", "")) for each in root.iter() if each.get("class") == "tick end"
    }
    scale = (ticks[0.0] - ticks[max(ticks)]) / max(ticks)
    (axis,) = (float(each.get("d", "").rpartition(",")[2]) for each in having(figure, "axis")[:1])

    def heights(element: ET.Element) -> list[float]:
        return [(axis - float(y)) / scale for _, y in re.findall(r"([\d.]+),([\d.]+)", element.get("d", ""))]

    (measured,), (modelled,) = having(figure, "curve", "later0"), having(figure, "curve", "later1")
    assert heights(measured) == pytest.approx([4.5, 2.5, 3.5], abs=0.01)
    assert heights(modelled) == pytest.approx([5.0, 2.0, 3.0], abs=0.01)
    (band,) = having(figure, "tier5", "pale")
    assert heights(band) == pytest.approx([5.5, 2.2, 3.3, 2.7, 1.8, 4.5], abs=0.01)
    whiskers = [heights(each) for each in having(figure, "whisker", "later0")]
    assert whiskers[0] == pytest.approx([4.0, 5.0], abs=0.01)
    assert not having(figure, "whisker", "later1")
    tips = [each[0].text for each in having(figure, "mark", "later1")]
    assert tips[0] == "0%: simulated (bound) 5 s, error +11.1 %"


def test_the_legend_and_the_lone_file_say_which_is_which() -> None:
    emulated = ComparedResult.of("demo", "out", Conditions(emulated=("gfs",)), from_csv=False)
    source = with_beside(times({0.0: 4.0, 0.5: 2.0}), simulated({0.0: 5.0, 0.5: 2.1}), (emulated, SIMULATED))
    figure = drawn(source)
    texts = [each.text for each in ET.fromstring(figure.svg or "").iter() if each.tag.endswith("text")]
    assert texts[-3:] == ["measured, emulated tiers: gfs", "simulated (bound)", "its 90 % interval"]
    assert "measured, emulated tiers: gfs versus simulated (bound)" in standalone(figure).decode()
    assert "not measured" not in figure.caption


def test_values_that_are_no_numbers_are_not_joined() -> None:
    first = times({"lru": 4.0, "pinned": 2.0}, "policy")
    traces = [
        trace_of(
            {(0, 1): {"GFS-READ": 3.0}},
            point=number,
            sweep={"policy": name},
            about={"kind": "simulated", "method": "bound", "spread": {"1": (0.5, 2.0)}},
        )
        for number, name in enumerate(("lru", "pinned"))
    ]
    figure = drawn(with_beside(first, from_traces(traces, TIERS)))
    assert not having(figure, "curve")
    assert len(having(figure, "tier5", "pale")) == len(having(figure, "mark", "later0")) == 2


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({0.0: 4.0, 0.5: 1.0}, {0.0: 4.0}, "only one common point"),
        ({0.0: 0.0, 0.5: 0.0}, {0.0: 0.0, 0.5: 0.0}, "no time was spent on I/O"),
    ],
)
def test_what_cannot_be_drawn_says_why(first: Seconds, second: Seconds, why: str) -> None:
    figure = drawn(with_beside(times(first), times(second)))
    assert figure.svg is None
    assert why in figure.missing


def test_the_slice_of_the_best_common_point_is_drawn() -> None:
    def grid(seconds: Mapping[tuple[int, int], float]) -> ClassTimes:
        rows = [{"rank": 0, "class": CLASSES[0], "seconds": time, "x": x, "y": y} for (x, y), time in seconds.items()]
        return times_of(rows, ["x", "y"])

    first = grid({(1, 1): 5.0, (2, 1): 4.0, (1, 2): 3.0, (2, 2): 2.0, (3, 3): 1.0})
    second = grid({(1, 1): 5.0, (2, 1): 4.0, (1, 2): 3.0, (2, 2): 2.0})
    figure = drawn(with_beside(first, second))
    assert figure.title.endswith("measured versus simulated (y 2)")
    assert figure.note.startswith("y 2 · ")
    assert len(having(figure, "mark", "later0")) == 2


# A page of nothing but simulated times


def test_a_simulated_page_does_not_call_itself_measured() -> None:
    source = source_of(simulated({0.0: 5.0, 0.5: 2.1}), conditions=Conditions(simulated=("bound",)))
    parsed = Parsed(made(source))
    found = [text for text in re.findall(r"[^.;\n]*measured[^.;\n]*", parsed.text) if "not measured" not in text]
    assert not found
    assert "Results (simulated)" in parsed.text
    assert "whiskers: 90 % of the simulations" in parsed.text
    assert "Results (measured)" in Parsed(made(source_of(times({0.0: 5.0, 0.5: 2.1})))).text


def test_a_simulation_is_not_told_to_measure_more_often() -> None:
    measured = [str(line) for line in verdict(break_down(times({0.0: 5.0, 0.5: 2.0})))]
    assert any("too few" in line for line in measured)
    lines = [str(line) for line in verdict(break_down(simulated({0.0: 5.0, 0.5: 2.0})))]
    assert not any("too few" in line for line in lines)
    assert lines[0] == "Best: cache_rate 50% with 2.000 s of I/O per epoch (1.800–2.200, 90% simulated, n=1)."


def test_an_interval_that_nobody_can_use_is_bounds_and_not_an_answer() -> None:
    wide = simulated({0.0: 5.0, 0.5: 2.0}, (0.4, 8.0))
    lines = [str(line) for line in verdict(break_down(wide))]
    assert not any("indistinguishable" in line for line in lines)  # both are off by the same rates
    line = lines[0]
    bounds = "not identified within these bounds, 90% simulated; 2.000 s with rates as simulated"
    assert line == f"Best: cache_rate 50% with 0.800–16.000 s of I/O per epoch ({bounds})."
    page = Parsed(made(source_of(wide, conditions=Conditions(simulated=("bound",))))).text
    assert "800 ms to 16 s of I/O per epoch (not identified within these bounds" in page


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        (0.0, "The epoch takes that I/O time."),
        (1.9e-6, "The epoch takes that I/O time."),
        (-1.9e-6, "The epoch takes that I/O time."),
        (2.5e-6, "The epoch takes that I/O time plus 2.5 µs."),
        (-2.5e-6, "The sum exceeds the epoch because several threads or processes read concurrently."),
    ],
)
def test_less_than_rounding_is_not_said(rest: float, line: str) -> None:
    trace = trace_of({(0, 1): {"GFS-READ": 2.0}}, seconds=2.0 + rest)
    assert [str(text) for text in verdict(break_down(from_traces([trace], TIERS)))][-1] == line
