"""Cases have a best each, in the order of the study, and there is none over all of them."""

from tests.analysis.test_best import shown
from tests.traces import TIERS, times_of, trace_of
from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.analysis.to_json import breakdown_json
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import estimate

# Case zoo is the first of the study; bee reads as much and is faster everywhere.
SECONDS = {
    ("zoo", 0.0): 9.0,
    ("zoo", 0.5): 6.0,
    ("zoo", 1.0): 7.0,
    ("bee", 0.0): 1.0,
    ("bee", 0.5): 2.0,
    ("bee", 1.0): 3.0,
}


def cased() -> ClassTimes:
    return from_traces(
        [
            trace_of({(0, 1): {"GFS-READ": seconds}}, point=point, sweep={"case": case, "cache_rate": rate})
            for point, ((case, rate), seconds) in enumerate(SECONDS.items())
        ],
        TIERS,
        "busy",
    )


def bests(breakdown: Breakdown) -> list[tuple[str | None, object]]:
    return [(group.case, group.best.sweep["cache_rate"]) for group in breakdown.groups]


def test_each_case_has_its_best_in_the_order_of_the_study() -> None:
    found = break_down(cased())
    assert bests(found) == [("zoo", 0.5), ("bee", 0.0)]
    assert [point.sweep["case"] for point in found.summary] == ["zoo"] * 3 + ["bee"] * 3
    assert found.best is found.groups[0].best


def test_the_terminal_marks_and_names_the_best_of_each_case() -> None:
    text = shown(break_down(cased()))
    assert text.count("◀ best") == 2
    lines = [line.strip() for line in text.splitlines() if "Best:" in line]
    assert [line.partition(" with ")[0] for line in lines] == [
        "Case zoo: Best: cache_rate 50%",
        "Case bee: Best: cache_rate 0%",
    ]
    assert "Case zoo: Bottleneck: GFS-READ from 0% to 100%." in text


def test_json_has_cases_and_no_best_over_all() -> None:
    content = breakdown_json(break_down(cased()), [], Conditions())
    assert content["best"] is None
    assert "groups" not in content
    assert [(case["case"], case["best"]["io_seconds"], len(case["sweeps"])) for case in content["cases"]] == [
        ("zoo", 6.0, 3),
        ("bee", 1.0, 3),
    ]
    assert all(case["best"]["smallest_equal"]["sweep"]["case"] == case["case"] for case in content["cases"])


def test_an_estimate_stays_in_the_first_case() -> None:
    times = cased()
    found = estimate(times, break_down(times), {"GFS-READ": 100.0})
    assert found.before.best.sweep == found.after.best.sweep == {"case": "zoo", "cache_rate": 0.5}
    assert {point.sweep["case"] for point in Processes.of(times).comparable().points} == {"zoo"}


def test_cases_of_one_point_each_have_nothing_to_rank() -> None:
    rows = [{"case": case, "rank": 0, "class": "GFS-READ", "seconds": 1.0} for case in ("a", "b")]
    text = shown(break_down(times_of(rows, ["case"])))
    assert "best" not in text.lower()
    assert "alone" not in text
    assert [line for line in text.splitlines() if line.startswith("Case ")] == [
        "Case a: 1.000 s of I/O per epoch in busy seconds (n=1), 100 % of it GFS-READ.",
        "Case b: 1.000 s of I/O per epoch in busy seconds (n=1), 100 % of it GFS-READ.",
    ]


def test_a_case_may_have_several_amounts_of_data() -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": 1.0}}, point=point, sweep={"case": case, "files": files}, payload_bytes=files)
        for point, (case, files) in enumerate([("a", 10), ("a", 90), ("b", 10)])
    ]
    found = break_down(from_traces(traces, TIERS, "busy"))
    assert [(group.case, group.amount) for group in found.groups] == [("a", 90), ("a", 10), ("b", 10)]
