"""Traces of commands: OUT is never overwritten, records are never lost, and analysing again says the same."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.in_memory import tmp_path_factory
from tests.recorded_programs import any_library, recording
from tests.states import Op, epoch_chunk, lane_chunk, list_chunk, names_bytes, rows, write_state
from tests.traces import as_traced
from tierscope.analysis.counting import Counting
from tierscope.analysis.to_json import breakdown_json
from tierscope.commands.analyze import analyze
from tierscope.errors import OutOfSpaceError, ResultError, UserError
from tierscope.native import library
from tierscope.native.state import LIST_ROWS
from tierscope.output import manifest
from tierscope.output.result import locked
from tierscope.output.store import RunStore
from tierscope.recording import builtin
from tierscope.recording.recorders import RECORDERS, RecordingRequest
from tierscope.recording.traced import EndedCommand, finish, is_trace, is_unfinished, run_traced
from tierscope.spec.traced import read_tiers
from tierscope.trace.description import DescribedTier, OwnCost
from tierscope.trace.trace import RunKey
from tierscope.watch import Silent

__all__ = ["tmp_path_factory"]


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tier, records of two ranks, and a recorder that records nothing itself."""
    monkeypatch.setattr(builtin, "_library", any_library)
    monkeypatch.setattr(builtin, "_own_cost", lambda: OwnCost(recorder_seconds_per_op=1e-7))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gfs").mkdir()
    for rank in range(2):
        operations = [Op("open", 0, 0.25), Op("read", 1000, 0.5 + rank)]
        chunks = [lane_chunk(operations, tiers=1, epoch=epoch) for epoch in (1, 2)]
        marks = [epoch_chunk(epoch, epoch, epoch + 3, {"compute": 1.0}) for epoch in (1, 2)]
        write_state(tmp_path / "ready", f"r{rank}", *chunks, *marks, tiers=1, variables={"PMI_RANK": rank})
    return tmp_path


def wanted(*command: str, **changes: Any) -> RecordingRequest:
    return RecordingRequest(**{"command": command, "tiers": read_tiers(["gfs=gfs"]), **changes})


def traced(here: Path, then: str = "true", out: str | None = "out", **changes: Any) -> EndedCommand:
    return run_traced(wanted(*recording(here / "ready", then), **changes), "builtin", out, Silent())


@pytest.mark.parametrize("name", list(RECORDERS))
def test_every_recorder_loads_and_has_what_it_takes(name: str) -> None:
    recorder = RECORDERS.load(name)
    assert all(callable(getattr(recorder, method)) for method in ("check", "prepare", "running", "collect"))


def test_the_trace_has_everything_the_processes_recorded(here: Path) -> None:
    done = traced(here, "exit 4")
    assert done == EndedCommand(str(here / "out"), 4)
    finish(done.out)
    trace = RunStore(done.out).load(RunKey(0, 1))
    assert trace.io["ops"].sum() == 2 * 2 * 2
    assert trace.io["bytes"].sum() == 2 * 2 * 1000
    assert trace.ranks.select("rank", "epoch", "epoch_seconds", "compute_seconds").rows() == [
        (rank, epoch, 3.0, 1.0) for rank in range(2) for epoch in (1, 2)
    ]
    about = as_traced(trace)
    assert (about.exit_code, about.records.process_count, about.sweep) == (4, 2, {})
    assert about.tiers == (DescribedTier(name="gfs", prefixes=(str(here / "gfs"),)),)
    assert about.command[:2] == ("sh", "-c")
    assert about.provenance is not None
    assert about.provenance.filesystems.keys() == {"gfs"}
    assert about.own_cost == OwnCost(recorder_seconds_per_op=1e-7)


def test_nothing_but_the_result_stays(here: Path) -> None:
    out = Path(traced(here).out)
    assert is_unfinished(str(out))
    finish(str(out))
    assert sorted(path.name for path in out.iterdir()) == ["lock", "runs", "tierscope.json"]
    (out / ".scratch" / "record").mkdir(parents=True)  # killed after the trace, before its end
    finish(str(out))
    assert not (out / ".scratch").exists()
    assert is_trace(str(out))


def test_analysing_gives_the_breakdown(here: Path) -> None:
    found = analyze(traced(here).out)
    assert found.breakdown.classes == ("GFS-READ", "GFS-META")
    assert found.breakdown.best.classes == {"GFS-READ": 1.5, "GFS-META": 0.25}
    assert found.breakdown.best.epoch_seconds == 3.0
    assert [point.slowest_rank for point in found.breakdown.points] == [1, 1]
    assert [finding.kind for finding in found.findings] == []
    assert found.name.startswith("sh -c 'cp")


def test_analysing_again_says_the_same_also_by_the_wall(here: Path) -> None:
    out = traced(here, "exit 1").out

    def as_json(basis: str) -> str:
        found = analyze(out, Counting(basis))
        return json.dumps(breakdown_json(found.breakdown, found.findings, found.conditions))

    first = as_json("busy")
    assert as_json("busy") == first
    assert json.loads(as_json("wall"))["basis"] == "wall"
    assert [finding["kind"] for finding in json.loads(first)["findings"]] == ["failed_command"]


def test_a_kill_between_the_commands_end_and_the_trace_loses_nothing(here: Path) -> None:
    out = traced(here).out
    description = Path(out) / ".scratch" / "trace.json"
    description.write_text(description.read_text().replace('"exit_code": 0', '"exit_code": null'))  # killed before that
    assert analyze(out).breakdown.best.io.median == 1.75
    assert as_traced(RunStore(out).load(RunKey(0, 1))).exit_code is None


def test_a_full_disk_keeps_the_records(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = traced(here).out

    def full(*_: object) -> None:
        raise OutOfSpaceError("x.parquet: cannot be written: full; free some space and rerun the same command")

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "save", full)
        with pytest.raises(OutOfSpaceError) as caught:
            finish(out)
    assert str(caught.value) == (
        f"x.parquet: cannot be written: full; the records are kept: fix this, then run 'tierscope analyze {out}'"
    )
    assert analyze(out).breakdown.best.io.median == 1.75


def test_the_environment_puts_our_library_first(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "/lib/other.so"
    monkeypatch.setenv("LD_PRELOAD", f"{other} {any_library()}")
    environment = builtin.Builtin().prepare(str(here), wanted("true"))
    assert environment == {"LD_PRELOAD": f"{any_library()}:{other}", "TIERSCOPE_RECORD": str(here)}


def test_the_command_finds_what_it_is_to_record(here: Path) -> None:
    script = 'ls "$TIERSCOPE_RECORD" > seen; echo "$TIERSCOPE_RECORD" >> seen'
    run_traced(wanted("sh", "-c", script), "builtin", "out", Silent())
    assert (here / "seen").read_text().split() == ["board", "config", "lost", "seen", str(here / "out/.scratch/record")]


def refusal(here: Path, **changes: Any) -> str:
    before = sorted(here.rglob("*"))
    with pytest.raises(UserError) as caught:
        traced(here, "touch ran", **changes)
    assert not (here / "ran").exists()
    assert set(before) <= set(here.rglob("*"))
    return str(caught.value)


def test_results_are_never_overwritten(here: Path) -> None:
    out = traced(here).out
    assert refusal(here) == (
        f"{out}: contains records that were not collected yet (run 'tierscope analyze'); choose another --out"
    )
    finish(out)
    assert refusal(here) == f"{out}: contains a finished trace (see 'tierscope analyze'); choose another --out"


def test_a_directory_in_use_is_refused(here: Path) -> None:
    manifest.claim(str(here / "out"), "trace")
    with locked(str(here / "out")):
        assert refusal(here) == f"{here / 'out'}: in use by another run; wait for it to finish or choose another --out"


def test_other_directories_are_refused(here: Path) -> None:
    assert refusal(here, out="") == "--out is empty; name a directory, or remove --out"
    assert refusal(here, out="ready").startswith(f"{here / 'ready'}: is not empty and was not created by Tierscope")
    manifest.claim(str(here / "study"), "result")
    assert refusal(here, out="study") == (
        f"{here / 'study'}: contains Tierscope's result, not a trace; choose a separate directory"
    )


def test_without_an_out_each_trace_gets_its_own(here: Path) -> None:
    outs = [Path(traced(here, out=None).out).relative_to(here) for _ in range(3)]
    assert [str(out) for out in outs] == ["results/trace-sh", "results/trace-sh-2", "results/trace-sh-3"]


def test_names_of_commands_are_made_safe(here: Path) -> None:
    odd = here / "a b:ü"
    odd.write_text("#!/bin/sh\n")
    odd.chmod(0o755)
    assert run_traced(wanted(str(odd)), "builtin", None, Silent()).out == str(here / "results/trace-a_b__")


def test_a_missing_library_says_what_to_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(library, "path", lambda: None)
    with pytest.raises(UserError) as caught:
        builtin.Builtin().check("/bin/sh", RecordingRequest(command=("sh",), tiers=read_tiers([f"gfs={here / 'gfs'}"])))
    assert str(caught.value) == (
        "the recorder's C library was not built; install a C compiler and reinstall tierscope (see 'tierscope doctor')"
    )


def test_a_library_that_cannot_be_named_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    odd = here / "a b.so"
    odd.touch()
    monkeypatch.setattr(library, "path", lambda: str(odd))
    with pytest.raises(UserError, match="LD_PRELOAD does not support paths with a space or colon"):
        builtin._library()


def test_a_program_that_cannot_be_seen_is_noted_and_not_emulated(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "why_unseen", lambda path: f"{os.path.basename(path)} is statically linked")
    heard = Heard()
    assert run_traced(wanted("true"), "builtin", "out", heard).exit_code == 0
    assert heard.lines == [
        "true is statically linked: the recorder cannot be preloaded, so its own operations are not recorded"
    ]
    emulated = read_tiers(["gfs=gfs"], ["gfs.bandwidth=1MB/s"])
    assert refusal(here, tiers=emulated, out="other") == (
        "sh is statically linked: the recorder cannot be preloaded, so nothing can be emulated for it"
    )
    assert not (here / "other").exists()


def test_too_many_tiers_are_refused_before_anything_is_made(here: Path) -> None:
    for number in range(9):
        (here / f"t{number}").mkdir()
    many = read_tiers([f"t{number}=t{number}" for number in range(9)])
    assert refusal(here, tiers=many) == "9 tiers are too many; at most 8"
    servers = read_tiers(["gfs=gfs"], ["gfs.bandwidth=1MB/s", "gfs.servers=5000"])
    assert refusal(here, tiers=servers) == "5000 emulated servers are too many; at most 4096"
    assert not (here / "out").exists()


def test_emulated_tiers_are_labelled(here: Path) -> None:
    settings = ["gfs.metadata_ops=100/s", "gfs.servers=2", "gfs.bandwidth=1MB/s", "gfs.gateway_bandwidth=2MB/s"]
    found = analyze(traced(here, tiers=read_tiers(["gfs=gfs"], settings)).out)
    assert found.conditions.emulated == ("gfs",)
    assert found.findings[0].kind == "emulated"


def test_operations_are_listed_with_their_files(here: Path) -> None:
    first = rows(
        {"epoch": 1, "lane": 0, "kind": 0, "file": 5, "start_ns": 1},
        {"epoch": 1, "lane": 0, "kind": 1, "file": 5, "bytes": 7, "start_ns": 2},
        {"epoch": 1, "lane": 0, "kind": 3, "file": 0, "start_ns": 3},
    )
    waiting = rows({"epoch": 1, "lane": 3, "kind": 2, "file": 6, "start_ns": 2 * 10**9, "busy_ns": 10**9})
    wild = rows({"tier": 9}, {"kind": -1})
    lanes = (lane_chunk([Op("read")], tiers=1, number=number) for number in (0, 3))
    write_state(here / "ready", "r1", *lanes, list_chunk(waiting), tiers=1, variables={"PMI_RANK": 1})
    (here / "ready" / "r1.ops").write_bytes(first + wild + b"cut off")
    (here / "ready" / "r1.names").write_bytes(names_bytes({5: "/gfs/a", 6: "/gfs/b"}) * 2)
    out = Path(traced(here, ops=True).out)
    finish(str(out))
    assert sorted(path.name for path in (out / "ops").iterdir()) == ["0000-r1-node0.parquet", "files.parquet"]
    ops = pl.read_parquet(out / "ops" / "0000-r1-node0.parquet")
    assert ops.select("rank", "lane", "kind", "file", "bytes", "seconds").rows() == [
        (1, 0, "open", 5, 0, 0.0),
        (1, 0, "read", 5, 7, 0.0),
        (1, 0, "stat", None, 0, 0.0),
        (1, 1, "close", 6, 0, 1.0),
    ]
    files = pl.read_parquet(out / "ops" / "files.parquet").sort("file")
    assert files.rows() == [(5, "/gfs/a"), (6, "/gfs/b")]


def test_a_block_that_was_being_written_counts_once_and_holes_do_not(here: Path) -> None:
    blocks = [
        rows(*({"epoch": 1, "kind": 1, "bytes": block, "start_ns": 1} for _ in range(LIST_ROWS))) for block in range(3)
    ]
    hole = bytes(len(blocks[0]))
    lane = lane_chunk([Op("read")], tiers=1)
    write_state(here / "ready", "r1", lane, list_chunk(blocks[1], block=1), tiers=1)
    (here / "ready" / "r1.ops").write_bytes(blocks[0] + blocks[1][:90].ljust(len(hole), b"\0") + hole + blocks[2])
    out = Path(traced(here, ops=True).out)
    finish(str(out))
    counted = pl.read_parquet(out / "ops" / "0000-r1-node0.parquet")["bytes"].value_counts().sort("bytes").rows()
    assert counted == [(block, LIST_ROWS) for block in range(3)]


def test_nothing_recorded_says_why_that_may_be(here: Path) -> None:
    out = run_traced(wanted("true"), "builtin", None, Silent()).out
    found = analyze(out)
    assert [finding.kind for finding in found.findings] == ["nothing_recorded"]
    assert "statically linked" in found.findings[0].suggestion
    assert found.breakdown.best.io.median == 0
    assert found.conditions.traced


def test_processes_that_could_not_record_are_the_reason_for_nothing(here: Path) -> None:
    script = r'printf "\002\0\0\0\0\0\0\0\011\0\0\0\0\0\0\0" > "$TIERSCOPE_RECORD/lost"'
    (finding,) = analyze(run_traced(wanted("sh", "-c", script), "builtin", "out", Silent()).out).findings
    assert (finding.kind, finding.evidence) == ("unrecorded", {"processes": 2, "ops": 9})


def test_lists_that_are_no_files_are_left_out_and_named(here: Path) -> None:
    script = 'mkfifo "$TIERSCOPE_RECORD/r0.ops" "$TIERSCOPE_RECORD/r0.names"'
    out = traced(here, script, ops=True).out
    finish(out)
    assert as_traced(RunStore(out).load(RunKey(0, 1))).records.damaged_files == (
        "r0.names: is not a regular file",
        "r0.ops: is not a regular file",
    )
    assert pl.read_parquet(Path(out) / "ops" / "0000-r1-node0.parquet").is_empty()


def test_lists_of_nothing_are_empty(here: Path) -> None:
    out = Path(run_traced(wanted("true", ops=True), "builtin", "out", Silent()).out)
    finish(str(out))
    assert pl.read_parquet(out / "ops" / "0000-r1-node0.parquet").is_empty()
    assert pl.read_parquet(out / "ops" / "files.parquet").is_empty()


def test_a_damaged_file_costs_one_process_and_is_named(here: Path) -> None:
    path = here / "ready" / "r0.state"
    path.write_bytes(path.read_bytes()[:1000])
    found = analyze(traced(here).out)
    assert [(finding.kind, finding.evidence) for finding in found.findings] == [
        ("damaged", {"files": 1, "names": ["r0.state: is truncated"]})
    ]
    assert found.breakdown.points[0].ranks == 1


def test_an_unfinished_directory_without_records_is_named(here: Path) -> None:
    manifest.claim(str(here / "out"), "trace")
    with pytest.raises(UserError, match="out: contains no records; trace the command again"):
        analyze(str(here / "out"))
    (here / "out" / ".scratch" / "record").mkdir(parents=True)
    with pytest.raises(ResultError, match="out: the command was never started"):
        analyze(str(here / "out"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tiers": [{"name": 1}], "recorder": "builtin"}', "[" * 100_000, '{"tiers": []}']
)
def test_a_damaged_description_is_named(here: Path, text: str) -> None:
    out = traced(here).out
    (Path(out) / ".scratch" / "trace.json").write_text(text)
    with pytest.raises(ResultError, match=r"trace\.json: "):
        analyze(out)


def test_a_description_that_is_no_file_is_not_waited_for(here: Path) -> None:
    out = traced(here).out
    (Path(out) / ".scratch" / "trace.json").unlink()
    os.mkfifo(Path(out) / ".scratch" / "trace.json")
    with pytest.raises(ResultError, match=r"trace\.json: cannot be read"):
        analyze(out)


def test_processes_that_still_run_are_counted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "still_recorded", lambda pid, folder: pid == 100)
    monkeypatch.setattr(builtin, "boot_id", lambda: "boot")
    monkeypatch.setattr("socket.gethostname", lambda: "node")
    out = traced(here).out
    (finding,) = analyze(out).findings
    assert (finding.kind, finding.evidence["pids"]) == ("running", [100])  # both states have it
    assert is_unfinished(out)
    finish(out)  # as the end of `trace` does
    (finding,) = analyze(out).findings
    assert (finding.kind, finding.evidence) == ("still_running", {"processes": 2})


def test_a_process_that_idles_without_having_read_still_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no state, and what it reads later is in nobody's count: the coverage cannot be told."""
    out = traced(here).out
    monkeypatch.setattr(builtin, "processes_recording", lambda folder: [5])
    finish(out)
    result = analyze(out)
    assert [finding.evidence for finding in result.findings if finding.kind == "still_running"] == [{"processes": 1}]
    assert (
        result.conditions.coverage is None or result.conditions.coverage.unknown_processes == 3
    )  # two states are of another boot


def test_a_look_at_what_still_runs_writes_no_lists(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "processes_recording", lambda folder: [5])
    out = Path(traced(here, ops=True).out)
    assert analyze(str(out)).breakdown.best.io.median == 1.75
    assert not (out / "ops").exists()
    assert not (out / "runs").exists()
    monkeypatch.undo()
    monkeypatch.setattr(builtin, "_own_cost", lambda: OwnCost(recorder_seconds_per_op=1e-7))
    assert analyze(str(out)).breakdown.best.io.median == 1.75
    assert (out / "ops" / "files.parquet").exists()


@pytest.mark.parametrize("shares", [0, 1])
def test_analysing_by_the_wall_says_where_processes_are_added_up(shares: int, here: Path) -> None:
    """Where they have no clock in common, as with a library of an older version."""
    operations = [Op("read", 1000, 0.5)]
    for rank in range(2):
        variables = {"PMI_RANK": rank}
        chunk = lane_chunk(operations, tiers=1)
        write_state(here / "ready", f"w{rank}", chunk, tiers=1, variables=variables, shares_clock=shares)
    out = traced(here).out
    assert [finding.kind for finding in analyze(out, Counting("busy")).findings] == []
    expected: list[dict[str, object]] = [] if shares else [{"processes": 2}]
    assert [finding.evidence for finding in analyze(out).findings] == expected
