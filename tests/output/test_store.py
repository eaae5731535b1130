"""Traces on disk: whole or absent, and nothing in a file is trusted."""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.full_disk import full_disk
from tests.traces import trace_of, traced
from tierscope.errors import OutOfSpaceError, ResultError, StoppedError
from tierscope.output.durable import TEMPORARY
from tierscope.output.store import RunStore, read_parquet, write_parquet
from tierscope.trace.columns import COLUMNS, LATER_COLUMNS
from tierscope.trace.decode import encode
from tierscope.trace.description import Traced
from tierscope.trace.rank_trace import Residency
from tierscope.trace.trace import SCHEMA_VERSION, RunKey, Trace

KEY = RunKey(3, 1)
CLASSES = {(rank, epoch): {"GFS-READ": 0.5, "LFS-META": 0.25} for rank in range(3) for epoch in (1, 2)}


def trace() -> Trace:
    residency = (Residency("gfs", 10, None),)
    return trace_of(CLASSES, point=3, sweep={"cache_rate": 0.5}, about={"kind": "measured"}, residency=residency)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """With one finished run."""
    store = RunStore(str(tmp_path))
    store.save(trace())
    return store


def refusal(store: RunStore) -> str:
    """The one line with which the run is refused."""
    with pytest.raises(ResultError) as caught:
        store.load(KEY)
    message = str(caught.value)
    assert message.startswith(f"{store.path(KEY)}: ")
    assert "\n" not in message
    assert caught.value.__suppress_context__ or not caught.value.__context__  # nobody sees Polars' own words
    return message


def rewrite(store: RunStore, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    about, table = read_parquet(store.path(KEY))
    write_parquet(store.path(KEY), change(table), about)


def test_a_saved_run_is_loaded_as_it_was(store: RunStore) -> None:
    loaded, original = store.load(KEY), trace()
    assert loaded.key == original.key
    assert loaded.about == original.about
    assert_frame_equal(loaded.table, original.table)
    assert store.finished() == {KEY}


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path / "out[1]* {x}"))
    store.save(trace())
    assert_frame_equal(store.load(KEY).table, trace().table)


def test_all_runs_come_in_order(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    keys = [RunKey(point, repetition) for point in (0, 2, 10, 12345) for repetition in (1, 2, 10)]
    shuffled = random.Random(1).sample(keys, len(keys))
    for key in shuffled:
        store.save(trace_of({(0, 1): {}}, point=key.point, repetition=key.repetition))
    assert [found.key for found in store.load_all()] == keys


def test_without_a_folder_nothing_is_finished(tmp_path: Path) -> None:
    assert RunStore(str(tmp_path)).finished() == set()
    assert list(RunStore(str(tmp_path)).load_all()) == []


def test_only_whole_files_count(store: RunStore) -> None:
    whole = Path(store.path(KEY))
    for name in ("0004-r1.parquet.77.tmp", "0004-r1.parquet~", "x0004-r1.parquet", "4-r1.parquet", "notes.txt"):
        (whole.parent / name).write_bytes(whole.read_bytes()[:100])
    assert store.finished() == {KEY}
    assert [found.key for found in store.load_all()] == [KEY]


def test_nothing_is_visible_before_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, calls = RunStore(str(tmp_path)), []
    fsync = os.fsync

    def watched(fd: int) -> None:
        calls.append((os.readlink(f"/proc/self/fd/{fd}"), bool(store.finished())))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    store.save(trace())
    (temporary, _), (folder, _) = calls
    assert [seen for _, seen in calls] == [False, True]
    assert re.fullmatch(TEMPORARY, os.path.basename(temporary))
    assert os.path.basename(folder) == "runs"


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("room", [0, 200])
def test_a_full_disk_can_be_resumed_and_keeps_what_was(store: RunStore, lazy: bool, room: int) -> None:
    path, table = store.path(KEY), trace().table
    before = Path(path).read_bytes()
    with full_disk(room), pytest.raises(OutOfSpaceError) as caught:
        write_parquet(path, table.lazy() if lazy else table, {})
    assert str(caught.value).startswith(f"{path}: cannot be written: ")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert Path(path).read_bytes() == before
    assert os.listdir(store.folder) == [os.path.basename(path)]


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match=r"gone/x\.parquet: cannot be written: No such file.*check the directory"):
        write_parquet(str(tmp_path / "gone" / "x.parquet"), trace().table, {})


@pytest.mark.parametrize("part", range(30))
def test_a_truncated_file_is_refused(store: RunStore, part: int, capfd: pytest.CaptureFixture[str]) -> None:
    path = Path(store.path(KEY))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * part // 30])
    assert "is not a readable Tierscope result" in refusal(store)
    assert "only this run is repeated" in refusal(store)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("framed", [False, True])
def test_random_bytes_are_refused(store: RunStore, framed: bool) -> None:
    generator = random.Random(1)
    for _ in range(50):
        noise = generator.randbytes(generator.randrange(400))
        length = generator.randrange(len(noise) + 9).to_bytes(4, "little")
        Path(store.path(KEY)).write_bytes(b"PAR1" + noise + length + b"PAR1" if framed else noise)
        assert "is not a readable Tierscope result" in refusal(store)


def test_a_run_that_vanished_is_named(store: RunStore) -> None:
    os.unlink(store.path(KEY))
    refusal(store)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_is_needed_with_its_type(store: RunStore, column: str) -> None:
    rewrite(store, lambda table: table.with_columns(pl.lit("text").cast(pl.Categorical).alias(column)))
    assert f"column {column} is missing or not" in refusal(store)
    rewrite(store, lambda table: table.drop(column))
    if column in LATER_COLUMNS:  # runs that were made before they were have nothing to say about them
        assert [trace.table[column].to_list() for trace in store.load_all()] == [[0.0] * len(trace().table)]
    else:
        assert f"column {column} is missing or not" in refusal(store)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e-9])
@pytest.mark.parametrize("column", [name for name in COLUMNS if name.endswith("_seconds")])
def test_impossible_seconds_are_refused(store: RunStore, column: str, bad: float) -> None:
    values = [0.0] * (len(trace().table) - 1) + [bad]
    nested = COLUMNS[column] != pl.Float64
    series = pl.Series(column, [[0.0, value] for value in values] if nested else values)
    rewrite(store, lambda table: table.with_columns(series))
    assert f"{column} has a negative or non-finite value" in refusal(store)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.clear(), "has no times of ranks"),
        (lambda table: table.filter(pl.col("record") != "rank"), "has no times of ranks"),
        (lambda table: table.with_columns(point=pl.lit(4, pl.Int32)), "contains another run than its name says"),
        (lambda table: table.with_columns(repetition=pl.lit(2, pl.Int32)), "contains another run than its name says"),
        (lambda table: table.with_columns(kind=pl.lit("ioctl")), "has an unknown kind of operation"),
    ],
)
def test_impossible_tables_are_refused(
    store: RunStore, change: Callable[[pl.DataFrame], pl.DataFrame], reason: str
) -> None:
    rewrite(store, change)
    assert reason in refusal(store)


@pytest.mark.parametrize(
    "about",
    [
        None,
        "null",
        "{",
        "[1]",
        "{}",
        '{"schema_version": "1"}',
        pytest.param("[" * 100_000, id="nested"),
    ],
)
def test_a_file_without_our_description_is_refused(store: RunStore, about: str | None) -> None:
    metadata: dict[str, str] | None = None if about is None else {"tierscope": about}
    trace().table.write_parquet(store.path(KEY), metadata=metadata)
    assert "is not a readable Tierscope result" in refusal(store)


def test_a_newer_schema_asks_for_an_update(store: RunStore) -> None:
    newer: dict[str, Any] = {**encode(trace().about), "schema_version": SCHEMA_VERSION + 1}
    write_parquet(store.path(KEY), trace().table, newer)
    message = refusal(store)
    assert f"schema version {SCHEMA_VERSION + 1} is newer than this Tierscope supports ({SCHEMA_VERSION})" in message
    assert "update Tierscope" in message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"overhead": {"recorder_seconds_per_op": -1}}, "recorder_seconds_per_op"),
        ({"tiers": [{"name": "gfs", "prefixes": "/gfs"}]}, "prefixes"),
        ({"command": "python"}, "command"),
        ({"command": [1]}, "command"),
        ({"exit_code": "3"}, "exit_code"),
        ({"span_seconds": "long"}, "span_seconds"),
        ({"damaged_files": [3]}, "damaged_files"),
        ({"mapped": {"gfs": {"ops": 1}}}, "bytes"),
        ({"mapped": []}, "mapped"),
        ({"process_count": "2"}, "process_count"),
        ({"processes": 2}, "processes"),
        ({"processes": [{"rank": 0}]}, "lanes"),
        ({"processes": [{"rank": "0", "lanes": 1}]}, "rank"),
        ({"running": 7}, "running"),
    ],
)
def test_a_traced_commands_description_must_be_one(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    """As version 1 wrote it, whose keys are those of `change`."""
    store = RunStore(str(tmp_path))
    store.save(trace_of(CLASSES, point=3, about=traced()))
    assert isinstance(store.load(KEY).about, Traced)
    whole = {"schema_version": 1, "sweep": {}, **traced(**change)}
    write_parquet(store.path(KEY), trace_of(CLASSES, point=3).table, whole)
    assert re.search(rf"its description is damaged: \S*{field}\S* .*; move it away and rerun the study", refusal(store))
