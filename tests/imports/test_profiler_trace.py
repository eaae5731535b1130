"""Traces of torch's and TensorFlow's profilers: what computes, marks, clocks; and every damaged or hostile one is one clear line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.errors import UserError
from tierscope.imports import chrome_json, dftracer_files
from tierscope.imports.profiler_trace import read_profile

BASE = 1_790_857_026_000_000_000


def span(
    name: str, ts: float, dur: float, cat: str | None = "cpu_op", pid: object = 1, tid: object = 1
) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **({"cat": cat} if cat else {})}


def written(path: Path, events: list[Any], **header: Any) -> str:
    text = json.dumps({**header, "traceEvents": events, "traceName": "x"})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


TORCH = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 100, "user_annotation"),
    span("aten::stack", 50, 20),  # of the loader
    span("aten::addmm", 100, 40),
    span("aten::mm", 110, 20),  # within the other
    span("tierscope.mark a1", 200, 3, "user_annotation"),
    span("PyTorch Profiler (0)", -5, 400, "Trace", "Spans", "PyTorch Profiler"),
    {"ph": "i", "name": "Record Window End", "ts": 395, "pid": "", "tid": ""},
    {},
]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_operators_of_torch_outside_its_loader(name: str, tmp_path: Path) -> None:
    profile = read_profile(written(tmp_path / name, TORCH, baseTimeNanoseconds=BASE), None)
    assert (profile.compute.starts.tolist(), profile.compute.ends.tolist()) == ([100_000], [140_000])
    assert profile.basis == "operators on the CPU outside the loader"
    assert profile.marks == {"a1": (200_000, 203_000)}
    assert profile.window == (-5_000, 395_000)
    assert profile.epoch_ns == BASE


def test_the_first_of_name_phase_and_kernels_counts(tmp_path: Path) -> None:
    kernel, phase = span("gemm", 300, 10, "kernel", 0, 7), span("tierscope.phase compute", 500, 5, "user_annotation")
    copied = span("tierscope.phase compute", 700, 5, "gpu_user_annotation", 0, 7)
    path = written(tmp_path / "t.json", [*TORCH, kernel])
    assert read_profile(path, None).compute.total_ns == 10_000
    path = written(tmp_path / "t.json", [*TORCH, kernel, phase, copied])
    assert read_profile(path, None).compute.starts.tolist() == [500_000]
    assert read_profile(path, "aten::mm").compute.total_ns == 20_000
    with pytest.raises(UserError, match=r"t\.json: no span is named 'forwards' \(--compute-span\); "):
        read_profile(path, "forwards")


def test_tensorflow_has_devices_and_no_calendar(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:GPU:0 NVIDIA"}},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 9, "args": {"name": "Steps"}},
        {"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}},
        span("train 1", 0, 1000, None, 3, 9),
        span("MatMul", 10, 30, None, 3, 14),
        span("IteratorGetNext", 0, 900, None, 701, 2),
        {},
    ]
    profile = read_profile(written(tmp_path / "trace.json.gz", events, displayTimeUnit="ns", metadata={}), None)
    assert (profile.compute.total_ns, profile.epoch_ns) == (30_000, None)
    host_only = written(tmp_path / "host.json", events[2:3] + events[5:])
    with pytest.raises(
        UserError, match="which of its spans are compute is unknown; name them with --compute-span NAME"
    ):
        read_profile(host_only, None)


def test_what_tensorflow_writes_by_itself_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"\n\x0e{")
    with pytest.raises(
        UserError, match=r"host\.xplane\.pb: is TensorFlow's own format.*pip install xprof, then python"
    ):
        read_profile(str(path), None)


def test_older_torch_has_the_calendar_in_every_event_and_a_bare_list_will_do(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([span("aten::mm", 1.7e15, 5)]))
    assert read_profile(str(tmp_path / "t.json"), None).epoch_ns == 0
    assert read_profile(written(tmp_path / "r.json", TORCH, distributedInfo={"rank": 5}), None).rank == 5


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no traceEvents"),
        (b"{}", "has no traceEvents"),
        (b'{"traceEvents": 5}', "has no traceEvents"),
        (b"[1]", "an event that is not an object"),
        (b"[]", "has no spans"),
        (b'{"traceEvents": [{"ph": "X"', "is cut short|is not JSON"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]', "is cut short"),
        (b'{"traceEvents": []} trailing', "goes on behind its end"),
        (b'{"traceEvents": [{} {}]}', "is not JSON"),
        (b'{"traceEvents": [{},]}', "is not JSON"),
        (b'[{"ph": "X", "name": "a", "ts": NaN, "dur": 1}]', "a number that cannot be: NaN"),
        (b'[{"ph": "X", "name": "a", "ts": Infinity, "dur": 1}]', "a number that cannot be: Infinity"),
        (b'[{"ph": "X", "name": "a", "ts": 1e999, "dur": 1}]', "event 1: ts = 'inf' cannot be"),
        (b'[{"ph": "X", "name": "a", "ts": ' + b"9" * 5000 + b', "dur": 1}]', "a number that cannot be"),
        (b'[{"ph": "X", "name": "a", "ts": 1, "dur": -1}]', "event 1: dur = '-1' cannot be"),
        (b'[{"ph": "X", "name": "a", "ts": true, "dur": 1}]', "event 1: ts = 'True' cannot be"),
        (b'[{"ph": "X", "name": "a", "ts": "1", "dur": 1}]', "event 1: ts = '1' cannot be"),
        (b'[{"ph": "X", "name": 7, "ts": 1, "dur": 1}]', "event 1: name = '7' cannot be"),
        (b'[{"ph": "X", "name": "a", "dur": 1}]', "event 1: ts = 'None' cannot be"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (
            b'{"baseTimeNanoseconds": -4, "traceEvents": [{"ph":"X","name":"aten","cat":"cpu_op","ts":1,"dur":1}]}',
            "baseTimeNanoseconds = '-4' cannot be",
        ),
        (
            b'[{"ph":"X","name":"tierscope.mark a","ts":1,"dur":1},{"ph":"X","name":"tierscope.mark a","ts":2,"dur":1}]',
            "two marks tierscope.mark a",
        ),
        (b'[{"ph": "X", "name": "a", "ts": 9.2e15, "dur": 3e13}]', r"event 1: ts = '9200000000000000.0' cannot be"),
        (b'[{"ph":"X","name":"tierscope.mark ' + b"a" * 300 + b'","ts":1,"dur":1}]', "with a name of 300 characters"),
        (b'{"traceEvents": [{}], "traceEvents": [{}]}', "traceEvents is given twice"),
        (
            b'{"baseTimeNanoseconds": 1, "baseTimeNanoseconds": 2, "traceEvents": []}',
            "baseTimeNanoseconds is given twice",
        ),
        (b"\xff\xfe\x00", "has no traceEvents"),
    ],
)
def test_what_is_no_trace_is_one_clear_line(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=why) as raised:
        read_profile(str(path), None)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_keys_that_nobody_asks_for_are_not_kept(tmp_path: Path) -> None:
    """There may be any number of them, each of megabytes."""
    trace = chrome_json.ChromeTrace(
        written(tmp_path / "t.json", TORCH, a="x", distributedInfo={"rank": 1}), ("distributedInfo",)
    )
    assert len(list(trace.events())) == len(TORCH)
    assert trace.header == {"distributedInfo": {"rank": 1}}


def test_a_long_value_and_a_small_archive_of_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_json, "MOST_EVENT_CHARS", 1 << 12)
    monkeypatch.setattr(dftracer_files, "BLOCK_BYTES", 1 << 10)
    long = written(tmp_path / "t.json", [{"name": "x" * (1 << 14)}])
    with pytest.raises(UserError, match="has a value of more than"):
        read_profile(long, None)
    monkeypatch.setattr(chrome_json, "MOST_BYTES", 1 << 12)
    with pytest.raises(UserError, match="is larger than"):
        read_profile(written(tmp_path / "t.json", TORCH[:5] * 40), None)


@given(st.integers(1, 200))
def test_pieces_of_any_size_read_the_same(size: int) -> None:
    """Where the file is cut into pieces changes nothing, in the middle of numbers, names and signs of several bytes."""
    text = json.dumps(
        {"a": [1, 2.5], "traceEvents": [span("größe", 1234.5, 6), span("b", 12, 3)], "z": 17}, ensure_ascii=False
    ).encode()
    parts = [text[place : place + size] for place in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_json, "pieces", lambda _path, _damage: iter(parts))
        trace = chrome_json.ChromeTrace("t.json", ("a", "z"))
        assert [event["name"] for event in trace.events()] == ["größe", "b"]
        assert trace.header == {"a": [1, 2.5], "z": 17}
