"""Where numbers come from: all that is known, whatever shape it has."""

from typing import Any

import pytest

from tests.report.sources import source_of, swept
from tests.traces import TIERS, trace_of
from tierscope.analysis.times import from_traces
from tierscope.report.origins import provenance


def test_provenance_says_what_is_known_and_nothing_else() -> None:
    assert provenance(source_of(swept())) == []
    made = {"host": "n1", "packages": {"numpy": "2"}, "python": "3.11", "filesystems": {"gfs": "lustre"}, "time": "t1"}
    about = {"provenance": made, "ranks": 2, "nodes": 1, "kind": "measured"}
    trace = trace_of({(0, 1): {"GFS-READ": 2.0}}, about=about)
    source = source_of(from_traces([trace], TIERS), study_yaml="study: x\nseed: 42\n")
    facts = dict(provenance(source))
    assert facts["Hosts"] == "n1"
    assert facts["Versions"] == "numpy 2, Python 3.11"
    assert facts["Filesystems"] == "gfs: lustre"
    assert (facts["Sizes"], facts["Seed"], facts["Measured"]) == ("2 ranks, 1 node", "42", "t1")


@pytest.mark.parametrize("made", [None, "text", {"packages": 3, "filesystems": [], "memory_bytes": "much"}, {}])
def test_provenance_of_another_shape_does_no_harm(made: Any) -> None:
    trace = trace_of({(0, 1): {"GFS-READ": 2.0}}, about={"provenance": made})
    assert isinstance(provenance(source_of(from_traces([trace], TIERS))), list)
