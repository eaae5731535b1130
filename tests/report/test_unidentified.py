"""What is not identified is printed with its bounds, wherever it stands."""

import re
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from tests.traces import TIERS, trace_of
from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.times import from_traces
from tierscope.report.headline import verdict
from tierscope.trace.description import Simulated
from tierscope.trace.trace import Trace


def simulated(rate: float, seconds: float, compute: float = 7.0, **about: Any) -> Trace:
    told = {"kind": "simulated", "method": "bound", "spread": {"1": [0.5, 4.0]}}
    times: dict[str, Any] = {"seconds": seconds + compute, "compute_seconds": compute, "stall_seconds": seconds}
    point = int(10 * rate)
    trace = trace_of({(0, 1): {"GFS-READ": seconds}}, point=point, sweep={"cache_rate": rate}, about=told, **times)
    assert isinstance(trace.about, Simulated)
    changes = {"epoch_spread": {1: (0.6, 3.0)}, "first_batch": {1: (0.1, 0.2)}, **about}
    return replace(trace, about=structs.replace(trace.about, **changes))


def of(*traces: Trace) -> Breakdown:
    return break_down(from_traces(traces, TIERS, "busy"))


@pytest.mark.parametrize("others", [[], [(0.2, 9.0)], [(0.2, 5.0)]], ids=["alone", "best", "flat"])
def test_no_sentence_has_a_plain_number(others: list[tuple[float, float]]) -> None:
    breakdown = of(simulated(0.5, 5.0), *(simulated(*other) for other in others))
    for line in verdict(breakdown):
        for number in re.finditer(r"(?<![\d.])(?:5|12)(?:\.000)? s|41\.7 %|200 ms", line.plain):
            assert line.plain[number.end() :].startswith((" with rates as simulated", " plus", " of the rank")), line


@pytest.mark.parametrize("compute", [0.0, 5.0])
def test_the_first_batch_is_printed_whether_or_not_there_is_compute(compute: float) -> None:
    said = "\n".join(line.plain for line in verdict(of(simulated(0.5, 5.0, compute))))
    assert "irst batch after 100 ms on average over ranks, 0.100–0.800 s (not identified within these bounds;" in said
    assert ("AU " in said) == bool(compute)
