"""Exports for Perfetto's viewer: valid JSON whose slices are what was recorded."""

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.report.sources import swept
from tests.traces import TIERS, trace_of
from tierscope.analysis.times import from_traces
from tierscope.output.op_list import SCHEMA
from tierscope.report.perfetto import events_of_ops, events_of_sums, write_perfetto


def slices(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X"]


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_a_file_is_json_that_the_viewer_takes(tmp_path: Path, name: str) -> None:
    events = list(events_of_sums(swept()))
    write_perfetto(str(tmp_path / name), events, 'a "name"')
    content = (tmp_path / name).read_bytes()
    whole = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)
    assert whole["traceEvents"] == events
    assert whole["otherData"] == {"made_by": "tierscope", "name": 'a "name"'}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_events_are_json_too(tmp_path: Path) -> None:
    write_perfetto(str(tmp_path / "out.json"), [], "x")
    assert json.loads((tmp_path / "out.json").read_text())["traceEvents"] == []


def test_sums_are_all_there_and_do_not_overlap() -> None:
    times = swept()
    events = slices(list(events_of_sums(times)))
    assert sum(event["dur"] for event in events) / 1e6 == pytest.approx(times.table["seconds"].sum())
    assert all(event["args"]["sum"] for event in events)
    tracks = defaultdict(list)
    for event in events:
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        ordered = sorted(spans)
        assert all(end <= start + 1e-3 for (_, end), (start, _) in pairwise(ordered))


def test_compute_and_stall_have_tracks_of_their_own() -> None:
    trace = trace_of({(0, 1): {"GFS-READ": 2.0}}, compute_seconds=3.0, stall_seconds=1.0)
    found = {event["name"]: event for event in slices(list(events_of_sums(from_traces([trace], TIERS))))}
    assert {name: event["dur"] / 1e6 for name, event in found.items()} == {
        "GFS-READ": 2.0,
        "compute": 3.0,
        "stall": 1.0,
    }
    assert len({event["tid"] for event in found.values()}) == 3


def test_operations_are_where_they_were() -> None:
    rows = [(0, 1, 2, 3, "gfs", "read", 7, 0, 100, 5.0, 0.25), (None, 0, 1, 0, "lfs", "open", None, 0, 0, 4.0, 0.5)]
    listed = pl.LazyFrame(rows, SCHEMA, orient="row")
    first, second = slices(list(events_of_ops([listed])))
    assert (first["name"], first["cat"], first["pid"], first["tid"]) == ("read", "GFS-READ", 0, 1)
    assert (first["ts"], first["dur"]) == (5e6, 0.25e6)
    assert first["args"] == {"tier": "gfs", "epoch": 2, "step": 3, "file": 7, "offset": 0, "bytes": 100}
    assert (second["pid"], second["cat"]) == (-1, "LFS-META")
