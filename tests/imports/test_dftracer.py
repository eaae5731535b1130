"""Traces of DFTracer: sums that are known, whatever the order, shape or damage of their lines."""

import gzip
import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from tests.imports.dftracer_lines import (
    HOST,
    START,
    Line,
    as_version_2,
    began,
    call,
    complete,
    file_hash,
    metadata,
    named,
    text_of,
    write,
)
from tests.traces import dftracer_job
from tierscope.errors import UserError
from tierscope.imports import dftracer_files, dftracer_readers, dftracer_sums
from tierscope.imports.dftracer import DLIO_EPOCH, DFTracerOptions, import_traces
from tierscope.imports.dftracer_files import FileDamage, blocks
from tierscope.imports.gathered import GatheredLogs, to_trace
from tierscope.imports.paths import TierRules
from tierscope.trace.decode import decode_description, encode
from tierscope.trace.described_logs import KindSums, LogDoubts

SHARED = Path(__file__).parents[3] / "shared" / "data" / "dftracer"
NEAR, FAR = "/lfs/a.bin", "/gfs/data/b.bin"
RULES = TierRules({"lfs": ("/lfs",), "gfs": ("/gfs",)})
ANY = DFTracerOptions()


def of(folder: Path, *files: list[Line], options: DFTracerOptions = ANY, compact: bool = True) -> GatheredLogs:
    paths = [write(folder / f"t{place}.pfw", lines, compact) for place, lines in enumerate(files)]
    return import_traces(paths, RULES, options)


def cells(imported: GatheredLogs) -> dict[tuple[int, int, str, str], tuple[int, int, float]]:
    rows = imported.sums.rows(named=True)
    return {
        (row["epoch"], row["rank"], row["tier"], row["kind"]): (row["ops"], row["bytes"], round(row["busy_seconds"], 9))
        for row in rows
    }


def by_kind(imported: GatheredLogs) -> dict[str, tuple[int, int, float]]:
    summed = imported.sums.group_by("kind").agg(pl.col("ops", "bytes", "busy_seconds").sum())
    return {kind: (ops, size, round(seconds, 9)) for kind, ops, size, seconds in summed.iter_rows()}


def traces(name: str) -> list[str]:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"no {folder}: real traces are not part of the project")
    return sorted(str(path) for path in folder.iterdir())


# ---- real traces ----


def test_dlio_on_lustre_is_exact() -> None:
    paths = traces("v1_dlio_unet3d")
    imported = import_traces(paths, TierRules({"lustre3": ("/p/lustre3",)}), ANY)
    outside, kinds = imported.facts.outside_epochs, by_kind(imported)
    assert kinds["read"] == (7200, 117_265_568_800, 126.564016)
    assert kinds["open"] == (801, 0, round(0.445527 + 0.001625, 9))  # 800 open, one open64 of the checkpoint
    assert kinds["close"] == (801, 0, 0.544950)
    assert kinds["stat"][0] + kinds["open"][0] + outside.ops == 800 + 1 + 800 + 48 + 801 + 16
    assert kinds["write"] == (1, 11420, 0.000324)
    assert len(imported.ranks) == 8 * 5
    assert {(one.rank, one.epoch) for one in imported.ranks} == {(r, e) for r in range(8) for e in range(1, 6)}
    assert sum(one.seconds or 0 for one in imported.ranks) == pytest.approx(439.442298)
    assert sum(one.compute_seconds or 0 for one in imported.ranks) == pytest.approx(272.355584)
    assert {one.node for one in imported.ranks} == {0}
    facts = imported.facts
    assert (dftracer_job(facts).epoch_span, dftracer_job(facts).compute_spans) == (
        DLIO_EPOCH,
        ("TorchFramework.compute",),
    )
    assert (dftracer_job(facts).versions, dftracer_job(facts).formats, facts.process_count) == (("100008",), (1,), 8)
    assert dftracer_job(facts).other_calls == {"fork": 96, "mkdir": 16}
    assert facts.doubts == LogDoubts()
    assert dftracer_job(facts).nested_calls == 0


def test_every_epoch_and_rank_of_dlio_reads_its_share() -> None:
    imported = import_traces(traces("v1_dlio_unet3d"), TierRules({"lustre3": ("/p/lustre3",)}), ANY)
    reads = imported.sums.filter(pl.col("kind") == "read")
    assert reads.select("epoch", "rank").rows() == [(epoch, rank) for epoch in range(1, 6) for rank in range(8)]
    assert set(reads["ops"]) == {180}


def test_forked_loader_workers_count_for_who_forked_them() -> None:
    imported = import_traces(traces("v2_dataloader"), RULES, ANY)
    assert by_kind(imported) == {
        "open": (1200, 0, 0.003673),
        "read": (1200, 1200 * 131_072, 0.045137),
        "close": (1201, 0, 0.003322),
    }
    assert [(one.rank, one.epoch, one.seconds, one.compute_seconds) for one in imported.ranks] == [(0, 1, None, None)]
    assert (dftracer_job(imported.facts).formats, imported.facts.process_count) == ((2,), 7)
    assert imported.command == "/job/x t_dl.py 0"


def test_an_import_becomes_a_trace() -> None:
    imported = import_traces(traces("v1_dlio_unet3d"), TierRules({"lustre3": ("/p/lustre3",)}), ANY)
    trace = to_trace(imported)
    assert trace.io["ops"].sum() == imported.sums["ops"].sum()
    assert trace.ranks["epoch_seconds"].sum() == pytest.approx(439.442298)
    assert decode_description(encode(trace.about), "") == trace.about


# ---- calls ----


@pytest.mark.parametrize(
    ("line", "kind", "size"),
    [
        (call("open64", FAR, 0, 5, flags=0), "open", 0),
        (call("openat", FAR, 0, 5, ret=3), "open", 0),
        (call("pread64", FAR, 0, 5, ret=4096, count=9999), "read", 4096),
        (call("read", FAR, 0, 5, ret=-1, count=9999), "read", 0),
        (call("read", FAR, 0, 5, ret="4096"), "read", 4096),
        (call("fread", FAR, 0, 5, size=8, count=100, ret=50, cat="STDIO"), "read", 400),
        (call("fgets", FAR, 0, 5, num=100, ret_len=12, cat="STDIO"), "read", 12),
        (call("fgetc", FAR, 0, 5, ret=65, cat="STDIO"), "read", 1),
        (call("fgetc", FAR, 0, 5, ret=-1, cat="STDIO"), "read", 0),
        (call("fwrite", FAR, 0, 5, size=4, count=2, ret=2, cat="STDIO"), "write", 8),
        (call("writev", FAR, 0, 5, ret=77), "write", 77),
        (call("__fxstat64", FAR, 0, 5), "stat", 0),
        (call("lseek64", FAR, 0, 5, ret=1 << 40), "seek", 0),
        (call("mmap64", FAR, 0, 5, length=8192, address=1 << 47), "mmap", 8192),
        (call("mmap", FAR, 0, 5, length=8192, address=2**64 - 1), "mmap", 0),
        (call("fdatasync", FAR, 0, 5), "sync", 0),
    ],
)
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_calls_are_the_kinds_that_we_know(
    tmp_path: Path, line: Line, kind: str, size: int, compact: bool, version: int
) -> None:
    lines = [*began(), *named(FAR), line]
    lines = lines if version == 1 else [as_version_2(one) for one in lines]
    assert cells(of(tmp_path, lines, compact=compact)) == {(1, 0, "gfs", kind): (1, size, 5e-6)}


def test_other_calls_are_only_counted(tmp_path: Path) -> None:
    lines = [*began(), *named(FAR), call("mkdir", FAR, 0, 5), call("unlink", FAR, 9, 5), call("mkdir", FAR, 20, 5)]
    imported = of(tmp_path, lines)
    assert cells(imported) == {}
    assert dftracer_job(imported.facts).other_calls == {"mkdir": 2, "unlink": 1}


def test_files_of_the_program_and_on_no_tier_are_kept_apart(tmp_path: Path) -> None:
    paths = ("/usr/lib/libc.so.6", "/scratch/x/1.bin", "/scratch/y/2.bin")
    lines = [*named(*paths), *(call("read", path, 10 * place, 2, ret=100) for place, path in enumerate(paths))]
    lines += [call("read", None, 100, 3, ret=7), call("read", "/never/named", 110, 3, ret=7)]
    facts = of(tmp_path, lines).facts
    program = facts.program
    assert (program.ops, program.bytes, program.seconds, program.files) == (1, 100, 2e-6, 1)
    assert program.read == KindSums(seconds=2e-6, ops=1, bytes=100)
    unknown = facts.unknown
    assert (unknown.ops, unknown.bytes, unknown.tier) == (4, 214, "other")
    assert unknown.suggestion == "/scratch/x,/scratch/y"
    assert [(one.path, one.bytes) for one in unknown.prefixes] == [
        *(("/scratch/x", 100), ("/scratch/y", 100), ("(no path)", 14))
    ]
    assert facts.doubts.no_names == 2


def test_relative_names_are_below_the_folder_that_the_job_ran_in(tmp_path: Path) -> None:
    lines = [*began(), *named("/gfs", "data/b.bin"), call("read", "data/b.bin", 5, 1, ret=1)]
    lines[1]["args"]["cwd"] = file_hash("/gfs")
    assert cells(of(tmp_path, lines)) == {(1, 0, "gfs", "read"): (1, 1, 1e-6)}


def test_traces_without_metadata_say_neither_file_nor_size(tmp_path: Path) -> None:
    """DFTRACER_INC_METADATA is off unless one sets it."""
    line = call("read", FAR, 0, 5)
    del line["args"]
    for compact in (True, False):
        facts = of(tmp_path, [line], compact=compact).facts
        assert (facts.doubts.no_names, dftracer_job(facts).no_sizes, facts.unknown.ops) == (1, 1, 1)


def test_early_versions_name_the_file_itself(tmp_path: Path) -> None:
    line = call("read", None, 0, 5, fname=FAR, ret="10")
    assert cells(of(tmp_path, [line])) == {(1, 0, "gfs", "read"): (1, 10, 5e-6)}


# ---- calls within calls ----

OUTER = call("fread", FAR, 100, 50, size=1, ret=64, cat="STDIO")
INNER = [call("read", FAR, 100, 10, ret=4096), call("read", FAR, 120, 30, ret=4096)]


@pytest.mark.parametrize("lines", [[*INNER, OUTER], [OUTER, *INNER], [INNER[0], OUTER, INNER[1]]])
def test_a_call_within_a_call_counts_once(tmp_path: Path, lines: list[Line]) -> None:
    imported = of(tmp_path, [*named(FAR), *lines])
    assert cells(imported) == {(1, 0, "gfs", "read"): (1, 64, 50e-6)}
    assert dftracer_job(imported.facts).nested_calls == 2


def test_calls_of_threads_that_are_not_told_apart_all_count(tmp_path: Path) -> None:
    lines = [{**line, "tid": 0} for line in (*INNER, OUTER)]
    assert cells(of(tmp_path, [*named(FAR), *lines])) == {(1, 0, "gfs", "read"): (3, 8256, 90e-6)}


def test_calls_of_different_threads_all_count(tmp_path: Path) -> None:
    lines = [{**line, "tid": tid} for tid, line in enumerate((*INNER, OUTER), start=5)]
    assert cells(of(tmp_path, [*named(FAR), *lines])) == {(1, 0, "gfs", "read"): (3, 8256, 90e-6)}


def test_calls_that_touch_are_not_within_one_another(tmp_path: Path) -> None:
    """The clock has whole microseconds, and many calls take less."""
    lines = [call("close", FAR, 10, 0), call("open", FAR, 10, 5), call("close", FAR, 15, 0), call("stat", FAR, 15, 0)]
    imported = of(tmp_path, [*named(FAR), *lines])
    assert imported.sums["ops"].sum() == 4
    assert dftracer_job(imported.facts).nested_calls == 0


# ---- epochs, ranks, units ----


def epoch(ts: int, dur: int, pid: int = 1, name: str = DLIO_EPOCH, **args: Any) -> Line:
    return complete(name, ts, dur, pid, **args)


def test_operations_belong_to_the_epoch_that_they_began_in(tmp_path: Path) -> None:
    reads = [call("read", FAR, ts, 10, ret=1) for ts in (50, 100, 195, 250, 300, 399, 400)]
    spans = [complete("x.compute", 110, 30), complete("x.compute", 310, 5), complete("compute", 250, 5)]
    lines = [*began(), *named(FAR), *reads, *spans, epoch(300, 100), epoch(100, 100)]
    imported = of(tmp_path, lines)
    assert cells(imported) == {(1, 0, "gfs", "read"): (2, 2, 20e-6), (2, 0, "gfs", "read"): (2, 2, 20e-6)}
    told = [(one.epoch, one.seconds, one.compute_seconds) for one in imported.ranks]
    assert told == [(1, 100e-6, 30e-6), (2, 100e-6, 5e-6)]
    assert imported.facts.outside_epochs.read == KindSums(ops=3, bytes=3, seconds=30e-6)


def test_epochs_have_the_numbers_that_they_say(tmp_path: Path) -> None:
    """A rank whose first span was lost still has its second as the second."""
    first = [*began(1), *named(FAR), epoch(0, 10, 1, epoch="1"), epoch(10, 10, 1, epoch="2")]
    second = [*began(2, 1), epoch(10, 10, 2, epoch="2")]
    assert [(one.rank, one.epoch) for one in of(tmp_path, first, second).ranks] == [(0, 1), (0, 2), (1, 2)]


def test_a_workers_operations_belong_to_its_ranks_epochs(tmp_path: Path) -> None:
    main = [*began(1), *named(FAR), epoch(100, 100)]
    worker = [*began(2, 50, parent=1), call("read", FAR, 150, 5, 2, ret=1), call("read", FAR, 250, 5, 2, ret=1)]
    stranger = [*began(3, 10), call("read", FAR, 150, 5, 3, ret=1)]
    imported = of(tmp_path, worker, stranger, main)
    assert cells(imported) == {(1, 0, "gfs", "read"): (1, 1, 5e-6)}
    assert imported.facts.outside_epochs.ops == 2
    assert [(one.rank, one.epoch) for one in imported.ranks] == [(0, 1)]


def test_a_process_may_be_spread_over_files(tmp_path: Path) -> None:
    """As tools do that cut traces into equal parts."""
    parts = [named(FAR), [call("read", FAR, 150, 5, ret=1)], [epoch(100, 100)], began()]
    assert cells(of(tmp_path, *parts)) == {(1, 0, "gfs", "read"): (1, 1, 5e-6)}


def test_ranks_of_a_traced_launcher_stay_apart(tmp_path: Path) -> None:
    launcher = began(9, 0)
    ranks = [[*began(pid, pid, parent=9), epoch(100, 10, pid)] for pid in (1, 2)]
    assert [one.rank for one in of(tmp_path, launcher, *ranks).ranks] == [0, 1]


def test_processes_that_nobody_claims_are_ranks_in_the_order_of_their_start(tmp_path: Path) -> None:
    files = [[*began(pid, 100 - pid), *named(FAR), call("read", FAR, 200, 5, pid, ret=pid)] for pid in (1, 2, 3)]
    assert cells(of(tmp_path, *files)) == {
        (1, rank, "gfs", "read"): (1, size, 5e-6) for rank, size in ((0, 3), (1, 2), (2, 1))
    }


def test_ranks_are_those_of_the_files_names(tmp_path: Path) -> None:
    paths = []
    for rank, pid in ((0, 30), (1, 20), (2, 10)):
        lines = [*began(pid), *named(FAR), call("read", FAR, 5, 5, pid, ret=pid)]
        paths.append(write(tmp_path / f"trace-{rank}-of-3.pfw", lines))
    assert {key[1]: value[1] for key, value in cells(import_traces(paths, RULES, ANY)).items()} == {0: 30, 1: 20, 2: 10}


def test_ranks_are_those_that_mpi_said(tmp_path: Path) -> None:
    files = [[*began(pid, pid), metadata("PR", "rank", str(3 - pid), pid)] for pid in (1, 2, 3)]
    assert [one.rank for one in of(tmp_path, *files).ranks] == [0, 1, 2]
    assert [one.rank for one in dftracer_job(of(tmp_path, *files).facts).processes] == [2, 1, 0]


def test_what_a_process_says_without_its_host_is_still_its_own(tmp_path: Path) -> None:
    files = [[metadata("PR", "rank", str(3 - pid), pid), *began(pid, pid)] for pid in (1, 2, 3)]
    for lines in files:
        del lines[0]["args"]["hhash"], lines[2]["args"]["hhash"]
    assert [one.rank for one in dftracer_job(of(tmp_path, *files).facts).processes] == [2, 1, 0]


def test_the_same_pid_on_two_nodes_is_two_processes(tmp_path: Path) -> None:
    files = [[*began(7, place, host=host), *named(FAR)] for place, host in enumerate((101, 202))]
    for place, host in enumerate((101, 202)):
        files[place].append(call("read", FAR, 5, 5, 7, ret=host, host=host))
    imported = of(tmp_path, *files)
    assert {key[1]: value[1] for key, value in cells(imported).items()} == {0: 101, 1: 202}
    assert [one.node for one in imported.ranks] == [0, 1]
    assert dftracer_job(imported.facts).hosts == ("node101", "node202")


@pytest.mark.parametrize(("unit", "scale"), [("NS", 1e-9), ("US", 1e-6), ("MS", 1e-3), ("SEC", 1.0)])
def test_times_are_in_the_unit_that_the_trace_says(tmp_path: Path, unit: str, scale: float) -> None:
    lines = [*named(FAR), call("read", FAR, 0, 5, ret=1), metadata("CM", "time_metric", unit)]
    lines[1]["ts"] = 1_700_000_000
    assert cells(of(tmp_path, lines)) == {(1, 0, "gfs", "read"): (1, 1, round(5 * scale, 9))}


def test_files_in_different_units_share_epochs(tmp_path: Path) -> None:
    main = [*began(1), *named(FAR), epoch(100, 100)]
    worker = [*began(2, parent=1), metadata("CM", "time_metric", "NS", 2)]
    worker += [call("read", FAR, 0, 5000, 2, ret=1), call("read", FAR, 0, 5000, 2, ret=1)]
    worker[1]["ts"] *= 1000
    worker[3]["ts"], worker[4]["ts"] = (START + 100) * 1000, (START + 100) * 1000 - 1
    imported = of(tmp_path, main, worker)
    assert cells(imported) == {(1, 0, "gfs", "read"): (1, 1, 5e-6)}
    assert (imported.facts.outside_epochs.ops, dftracer_job(imported.facts).time_unit) == (1, "NS/US")
    assert dftracer_job(imported.facts).start_seconds == START / 1e6


def test_an_epoch_in_a_finer_unit_than_its_workers_operations(tmp_path: Path) -> None:
    main = [*began(1), metadata("CM", "time_metric", "NS"), *named(FAR), epoch(0, 100_000)]
    main[1]["ts"], main[4]["ts"] = START * 1000, (START + 100) * 1000 + 1  # begins a nanosecond after
    worker = [*began(2, parent=1), call("read", FAR, 100, 5, 2, ret=1), call("read", FAR, 200, 5, 2, ret=2)]
    assert cells(of(tmp_path, main, worker)) == {(1, 0, "gfs", "read"): (1, 2, 5e-6)}


def test_spans_that_are_not_there_are_an_error_that_names_near_ones(tmp_path: Path) -> None:
    lines = [*began(), complete("Trainer.epoch", 0, 5), complete("Trainer.step", 0, 5)]
    with pytest.raises(UserError, match=r"'Trainer\.epock'.*did you mean Trainer\.epoch"):
        of(tmp_path, lines, options=DFTracerOptions(epoch_span="Trainer.epock"))
    with pytest.raises(UserError, match=r"'Trainer\.steps'.*did you mean Trainer\.step"):
        of(tmp_path, lines, options=DFTracerOptions(compute_span="Trainer.steps"))
    chosen = of(tmp_path, lines, options=DFTracerOptions("Trainer.epoch", "Trainer.step"))
    assert [(one.seconds, one.compute_seconds) for one in chosen.ranks] == [(5e-6, 5e-6)]


# ---- any order, any shape ----

names = st.sampled_from(["open", "pread", "close", "__xstat64", "write", "lseek", "fread", "fsync", "mkdir"])
files = st.sampled_from([NEAR, FAR, "/usr/bin/python", "/elsewhere/c", None])


@st.composite
def jobs(draw: st.DrawFn) -> list[Line]:
    """Calls one after another in every thread, in any order in the file; with epochs, or without."""
    lines: list[Line] = [*began(1), *named(NEAR, FAR, "/usr/bin/python", "/elsewhere/c")]
    for tid in draw(st.lists(st.integers(0, 3), unique=True, max_size=3)):
        at = 0
        for _ in range(draw(st.integers(0, 6))):
            at += draw(st.integers(0, 20))
            dur = draw(st.integers(0, 20))
            ret = draw(st.integers(-1, 1000))
            lines.append(call(draw(names), draw(files), at, dur, tid=tid, ret=ret, size=draw(st.integers(0, 3))))
            at += dur
    for start in draw(st.lists(st.sampled_from([0, 20, 40]), unique=True)):
        lines.append(epoch(start, draw(st.integers(0, 20))))
    if draw(st.booleans()):
        lines = [as_version_2(line) for line in lines]
    return draw(st.permutations(lines))


def total(imported: GatheredLogs) -> tuple[int, int, float]:
    facts = imported.facts
    parts = (facts.program, facts.streams, facts.outside_epochs)
    ops = int(imported.sums["ops"].sum()) + sum(part.ops for part in parts)
    size = int(imported.sums["bytes"].sum()) + sum(part.bytes for part in parts)
    return ops, size, round(float(imported.sums["busy_seconds"].sum()) + sum(part.seconds for part in parts), 9)


@given(jobs())
def test_nothing_is_lost_or_counted_twice(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]) -> None:
    calls = [line for line in lines if line["cat"] == "POSIX" and line["name"] != "mkdir"]
    size = 0
    for line in calls:
        if line["name"] in ("pread", "write", "fread"):
            size += max(0, line["args"]["ret"]) * (line["args"]["size"] if line["name"] == "fread" else 1)
    folder = tmp_path_factory.mktemp("job")
    compact, spaced = (of(folder, lines, compact=compact) for compact in (True, False))
    assert total(compact) == (len(calls), size, round(sum(line["dur"] for line in calls) * 1e-6, 9))
    assert compact.sums.equals(spaced.sums)
    assert (compact.ranks, compact.facts) == (spaced.ranks, spaced.facts)


@given(jobs(), st.randoms(use_true_random=False))
def test_lines_may_be_in_any_order_and_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Line], source: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("job")
    whole = of(folder, lines)
    cut = source.randrange(len(lines))
    source.shuffle(lines)
    parts = of(folder, *(part for part in (lines[:cut], lines[cut:]) if part))
    assert parts.sums.equals(whole.sums)
    assert [one.epoch for one in parts.ranks] == [one.epoch for one in whole.ranks]


# ---- damage ----

GOOD = [*began(), *named(FAR), *(call("read", FAR, 10 * place, 5, ret=100) for place in range(20)), epoch(0, 500)]


@given(st.data())
def test_whatever_is_damaged_is_said_and_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = GOOD if data.draw(st.booleans()) else [as_version_2(line) for line in GOOD]
    content = bytearray(text_of(lines))
    zipped = data.draw(st.booleans())
    if zipped:
        content = bytearray(gzip.compress(bytes(content)))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content) - 1))
        end = place + data.draw(st.integers(0, 8))
        content[place:end] = data.draw(st.binary(max_size=8))
    path = tmp_path_factory.mktemp("damaged") / "t.pfw"
    path.write_bytes(content)
    said = ""
    try:
        imported = import_traces([str(path)], RULES, ANY)
        json.dumps(to_builtins(imported.facts)).encode()
        to_trace(imported)
    except UserError as error:
        said = str(error)
    assert not said or str(path) in said


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b'{"name":"read","cat":"POSIX"',
        b'{"name":"read"}',
        b"17",
        b"null",
        b"[" * 100_000,
        b"\xff\xfe\x00",
        text_of([{**GOOD[5], "dur": -5}]).strip(),
        text_of([{**GOOD[5], "dur": 2**64 - 1}]).strip(),
        text_of([{**GOOD[5], "dur": 1.5}]).strip(),
        text_of([{**GOOD[5], "ts": 10**18}]).strip(),
        text_of([{**GOOD[5], "ts": "soon"}]).strip(),
        text_of([{**GOOD[5], "pid": 2**64}]).strip(),
        text_of([{**GOOD[5], "pid": None}]).strip(),
        text_of([{**GOOD[5], "name": 5}]).strip(),
        text_of([{**GOOD[5], "args": []}]).strip(),
        text_of([call("read", FAR, 5, 5, ret=10**19)]).strip(),
        text_of([call("fread", FAR, 5, 5, ret=2**40, size=2**40)]).strip(),
        b"x" * (3 << 20),
        b'{"name":"read","pid":' + b"9" * 5000 + b"}",
    ],
)
@pytest.mark.parametrize("place", [0, 5, len(GOOD)])
def test_a_broken_line_is_counted_and_left_out(tmp_path: Path, line: bytes, place: int) -> None:
    path = tmp_path / "t.pfw"
    path.write_bytes(text_of(GOOD[:place]) + line + b"\n" + text_of(GOOD[place:]))
    imported = import_traces([str(path)], RULES, ANY)
    assert cells(imported) == {(1, 0, "gfs", "read"): (20, 2000, 100e-6)}
    assert (imported.facts.doubts.broken_lines, imported.facts.doubts.broken_last_lines) == (1, 0)


def test_the_last_line_of_a_killed_job_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw"
    path.write_bytes(text_of(GOOD[:-1])[:-30])
    facts = import_traces([str(path)], RULES, ANY).facts
    assert (facts.doubts.broken_lines, facts.doubts.broken_last_lines, dftracer_job(facts).unended_processes) == (
        0,
        1,
        1,
    )


def test_what_was_compressed_before_a_cut_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    calls = [call("read", f"/gfs/{place * 7919 % 1000}", 10 * place, 5, ret=100) for place in range(5000)]
    content = gzip.compress(text_of(calls))
    path.write_bytes(content[: len(content) // 2])
    imported = import_traces([str(path)], RULES, ANY)
    assert 1000 < imported.facts.doubts.no_names < 4000
    assert imported.facts.doubts.cut_files == ("t.pfw.gz",)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_holes_is_not_read_to_its_end(packed: bool, tmp_path: Path) -> None:
    """A terabyte of zeros takes no room and hours to read: as one line, or behind a compressed trace."""
    path = tmp_path / "x.pfw.gz"
    path.write_bytes(gzip.compress(text_of(GOOD)) if packed else b"")
    os.truncate(path, 1 << 40)
    damage = FileDamage()
    if packed:
        assert b"".join(blocks(str(path), damage)) == text_of(GOOD)
        assert damage.cut
    else:
        with pytest.raises(UserError, match="has a line of more than 256 MiB, so it is not a DFTracer trace"):
            list(blocks(str(path), damage))


def test_compressed_members_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    whole = text_of(GOOD)
    path.write_bytes(b"".join(gzip.compress(whole[at : at + 777]) for at in range(0, len(whole), 777)) + bytes(100))
    imported = import_traces([str(path)], RULES, ANY)
    assert cells(imported) == {(1, 0, "gfs", "read"): (20, 2000, 100e-6)}
    assert imported.facts.doubts.cut_files == ()


def test_what_expands_to_anything_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(gzip.compress(text_of(GOOD) + bytes(64 << 20) + b"\n" + text_of(GOOD), compresslevel=1))
    tracemalloc.start()
    imported = import_traces([str(path)], RULES, ANY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert imported.facts.doubts.broken_lines == 1
    assert imported.sums["ops"].sum() == 40
    assert peak < 16 << 20


def test_what_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dftracer_files, "MOST_INFLATED_BYTES", 1 << 20)
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(gzip.compress(text_of(GOOD) * 40_000, compresslevel=9))
    with pytest.raises(UserError, match=r"t\.pfw\.gz: unpacks to more than 100 times its size, so it is not a trace; "):
        import_traces([str(path)], RULES, ANY)


def test_a_trace_of_more_threads_than_any_program_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dftracer_sums, "MOST_THREADS", 10)
    for compact in (True, False):
        lines = [call("read", FAR, 10 * tid, 5, tid=tid, ret=100) for tid in range(1, 12)]
        with pytest.raises(UserError, match=r"t\.pfw: contains more than 10 threads"):
            import_traces([write(tmp_path / "t.pfw", [*began(), *lines], compact)], RULES, ANY)


def test_a_trace_that_grows_is_read_up_to_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that writes faster than we read would be followed for ever."""
    path = tmp_path / "t.pfw"
    path.write_bytes(text_of(GOOD))
    monkeypatch.setattr(dftracer_files, "BLOCK_BYTES", 64)
    given = 0
    for block in dftracer_files.blocks(str(path), dftracer_files.FileDamage()):
        given += len(block)
        with path.open("ab") as more:
            more.write(text_of(GOOD))
    assert given == len(text_of(GOOD))


@pytest.mark.parametrize("content", [bytes(range(256)) * 50, b"\x1f\x8b" + bytes(100), b"PK\x03\x04", b"a,b\n1,2\n"])
def test_what_is_no_trace_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.pfw"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"no\.pfw: contains no events; name traces"):
        import_traces([write(tmp_path / "yes.pfw", GOOD), str(path)], RULES, ANY)


def test_paths_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    for path, said in [
        (str(tmp_path), r"is a directory; name.*\*\.pfw"),
        (str(tmp_path / "gone"), "No such file"),
        ("/dev/null", "is not a regular file but a device"),
        ("a\0b", "is not a name that a file can have"),
    ]:
        with pytest.raises(UserError, match=said):
            import_traces([path], RULES, ANY)
    with pytest.raises(UserError, match="no traces"):
        import_traces([], RULES, ANY)


def test_empty_traces_are_counted_unless_all_are(tmp_path: Path) -> None:
    (tmp_path / "empty.pfw").write_bytes(b"")
    (tmp_path / "bracket.pfw").write_bytes(b"[\n")
    empty = [str(tmp_path / "empty.pfw"), str(tmp_path / "bracket.pfw")]
    assert dftracer_job(import_traces([*empty, write(tmp_path / "t.pfw", GOOD)], RULES, ANY).facts).empty_files == 2
    with pytest.raises(UserError, match="no events"):
        import_traces(empty, RULES, ANY)


def test_an_unknown_unit_and_a_span_that_is_no_epoch_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"'FORTNIGHT'.*DFTRACER_TIME_METRIC=US"):
        of(tmp_path, [*GOOD, metadata("CM", "time_metric", "FORTNIGHT")])
    monkeypatch.setattr("tierscope.imports.dftracer_outline.MOST_SPANS", 3)
    with pytest.raises(UserError, match="more than 3 spans called 'step'"):
        of(tmp_path, [epoch(place, 1, name="step") for place in range(4)], options=DFTracerOptions("step"))


# ---- size ----


def test_memory_does_not_grow_with_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.imports.dftracer_files.BLOCK_BYTES", 1 << 16)
    paths = [f"/gfs/{place}" for place in range(50)]
    peaks = []
    for count in (2_000, 20_000):
        calls = (call("read", paths[at % 50], 10 * at, 5, tid=at % 3 + 1, ret=9) for at in range(count))
        path = write(tmp_path / f"{count}.pfw", [*began(), *named(*paths), *calls])
        tracemalloc.start()
        imported = import_traces([path], RULES, ANY)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert imported.sums["ops"].sum() == count
    assert peaks[1] < 1.1 * peaks[0]


def test_files_are_read_by_several_processes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [[*began(pid), *named(FAR), call("read", FAR, 5, 5, pid, ret=pid), epoch(0, 100, pid)] for pid in (1, 2, 3)]
    alone = of(tmp_path, *files)
    monkeypatch.setattr(dftracer_readers, "LARGE_BYTES", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    together = of(tmp_path, *files)
    assert together.sums.equals(alone.sums)
    assert (together.ranks, together.facts) == (alone.ranks, alone.facts)
    (tmp_path / "t1.pfw").write_bytes(b"garbage")
    with pytest.raises(UserError, match=r"t1\.pfw: contains no events"):
        import_traces([str(tmp_path / f"t{place}.pfw") for place in range(3)], RULES, ANY)


def test_a_trace_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pfw", GOOD)
    (tmp_path / "link.pfw").symlink_to(path)
    imported = import_traces([path, path, str(tmp_path / "link.pfw")], RULES, ANY)
    assert imported.sums["ops"].sum() == 20


def test_hosts_that_events_do_not_name_are_the_files(tmp_path: Path) -> None:
    lines = [call("read", FAR, 5, 5, ret=1), *named(FAR), *began()]
    del lines[0]["args"]["hhash"]
    imported = of(tmp_path, lines)
    assert imported.facts.process_count == 1
    assert dftracer_job(imported.facts).hosts == (f"node{HOST % 1000}",)
