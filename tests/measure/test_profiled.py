"""Runs that a site's profiler measures: refused before anything is touched where they cannot work, and never mixed with others."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

from tests.kept_ranks import KeptProfiledCrew
from tests.measure.test_run import Diary
from tests.small_study import NEEDS_LIBRARY
from tests.tiny import tiny
from tests.traces import as_measured, rank_epoch
from tierscope.analysis.counting import Counting
from tierscope.commands.analyze import analyze
from tierscope.errors import ResultError, UserError
from tierscope.imports.paths import TierRules
from tierscope.measure import profiled
from tierscope.measure.crews import Crews
from tierscope.measure.profiled import Profiling
from tierscope.measure.run import run_study
from tierscope.output import manifest
from tierscope.output.store import RunStore
from tierscope.recording.darshan import Darshan
from tierscope.recording.dftracer import DFTracer, epoch_events
from tierscope.recording.profilers import Profiler, Ran
from tierscope.spec.study import Study
from tierscope.trace.columns import COLUMNS
from tierscope.trace.described_logs import LogDoubts, LogFacts
from tierscope.trace.description import Imported
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, Trace

pytestmark = pytest.mark.whole

PROFILERS = ("darshan", "dftracer")
MISSED_FROM = {"open": 3, "read": 3, "close": 2}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both, as far as anybody asks."""
    for each in (Darshan, DFTracer):
        monkeypatch.setattr(each, "library", lambda _self: "/lib.so")
    monkeypatch.setattr(Darshan, "can_restart_log", lambda _self: True)
    monkeypatch.setattr("tierscope.recording.darshan.library_path", lambda: "/util.so")


def run(study: Study, out: Path, profiler: str, ops: bool = False) -> Diary:
    diary, crews = Diary(), Crews()
    try:
        run_study(study, str(out), crews, diary, ops, profiler)
    finally:
        crews.close()
    return diary


@pytest.mark.parametrize("profiler", PROFILERS)
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "gfs.emulate=true",
            r"system\.tiers\.gfs\.emulate = true, but {} records only real calls, not emulated waits; set emulate: false",
        ),
        (
            "io_engine=uring",
            r"workload\.reader\.io_engine = uring, but {} does not record reads of the native loader; set io_engine: pread",
        ),
        (
            "odirect=true",
            r"workload\.reader\.odirect = true, but {} does not record reads of the native loader; set odirect: false",
        ),
        (
            "data_loader=native",
            r"workload\.reader\.data_loader = native, but {} does not record reads of the native loader; set data_loader: auto",
        ),
    ],
)
def test_what_no_profiler_sees_is_refused(tmp_path: Path, profiler: str, setting: str, said: str) -> None:
    rates = ("gfs.metadata_ops=1000", "gfs.bandwidth=1GB/s") if "emulate" in setting else ()
    with pytest.raises(UserError, match=said.format(profiler)):
        run(tiny(setting, *rates), tmp_path / "out", profiler)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("profiler", PROFILERS)
def test_a_list_of_operations_is_for_our_own_recorder(tmp_path: Path, profiler: str) -> None:
    with pytest.raises(UserError, match=f"--ops requires --profiler builtin; remove --ops, or --profiler {profiler}"):
        run(tiny(), tmp_path / "out", profiler, ops=True)
    assert not (tmp_path / "out").exists()


def test_ranks_of_a_launcher_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"under a launcher, set it in .*LD_PRELOAD .*then 'tierscope analyze LOGS'"):
        Profiling("darshan", str(tmp_path)).check([tiny()], False, "mpi")


def test_a_profiler_that_is_not_there_is_said_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_self: Profiler) -> str:
        raise UserError("DFTracer is not installed; pip install 'tierscope[dftracer]'")

    monkeypatch.setattr(DFTracer, "library", missing)
    with pytest.raises(UserError, match="DFTracer is not installed"):
        run(tiny(), tmp_path / "out", "dftracer")
    assert not (tmp_path / "out").exists()


def test_logs_that_nobody_here_can_read_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.recording.darshan.library_path", lambda: None)
    with pytest.raises(UserError, match=r"needs PyDarshan's library; pip install 'tierscope\[darshan\]'"):
        run(tiny(), tmp_path / "out", "darshan")


@NEEDS_LIBRARY
def test_another_loader_than_the_study_would_have_is_said(tmp_path: Path) -> None:
    profiling = Profiling("dftracer", str(tmp_path))
    assert profiling.check([tiny()], False, "local") == [
        "dftracer does not record reads of the native loader: threads instead"
    ]
    assert profiling.check([tiny("read_threads=0")], False, "local")[0].endswith("inline instead")
    assert profiling.check([tiny("data_loader=threads")], False, "local") == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [(["epochs=2", "evict=false"], r"train\.epochs = 2"), (["epochs=1"], r"reader\.evict = true")],
)
def test_a_darshan_that_cannot_begin_anew_cannot_tell_epochs_apart(
    settings: Sequence[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Darshan, "can_restart_log", lambda _self: False)
    with pytest.raises(UserError, match=rf"workload\.{told}, but /lib\.so cannot start a new log"):
        Darshan().check_study([tiny(*settings)])
    assert len(Darshan().check_study([tiny("epochs=1", "evict=false")])) == 1


def test_a_darshan_that_cannot_be_loaded_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "libdarshan.so").write_bytes(b"no library")
    monkeypatch.setenv("DARSHAN_LIB", str(tmp_path / "libdarshan.so"))
    with pytest.raises(UserError, match=r"libdarshan\.so: cannot be loaded \(.*\); set DARSHAN_LIB to another"):
        Darshan().can_restart_log()


def test_every_tier_is_where_it_is_written_and_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    lfs, gfs = profiled.tier_prefixes(tiny(), str(tmp_path / "link"))
    assert lfs.prefixes == tuple(
        str(tmp_path / kind / "tiers" / "lfs" / str(node)) for node in (0, 1) for kind in ("link", "real")
    )
    assert gfs.prefixes == tuple(str(tmp_path / kind / "tiers" / "gfs") for kind in ("link", "real"))


def test_an_epoch_spans_all_operations_that_begin_in_it() -> None:
    """DFTracer rounds down to microseconds."""
    lines = list(epoch_events("abc", [Ran(3, 77, [(1, 5_999, 9_001), (2, 20_000, 30_000)])]))
    assert [(line["name"], line["args"].get("value")) for line in lines[:2]] == [("CM", "US"), ("PR", "3")]
    spans = [(line["ts"], line["dur"], line["args"]["epoch"]) for line in lines if line["name"] == "tierscope.epoch"]
    assert spans == [(5, 5, 1), (20, 10, 2)]
    assert {(line["pid"], line["args"]["hhash"]) for line in lines} == {(77, "abc")}


class Fake(DFTracer):
    """Preloads nothing, and has seen what a test says."""

    sees: ClassVar = MISSED_FROM
    wrote = ("trace-1.pfw",)

    def prepare(self, folder: str, _wanted: object) -> dict[str, str]:
        for name in self.wrote:
            Path(folder, name).write_text("{}")
        return {}

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        assert [one.rank for one in ran] == [0, 1]
        assert all(os.path.isfile(path) for path in logs)
        assert list(rules.given) == ["lfs", "gfs"]
        rows = [
            (epoch, rank, "gfs", kind, 0.5, ops, 12 * 1024 if kind == "read" else 0)
            for epoch in (1, 2)
            for rank in (0, 1)
            for kind, ops in self.sees.items()
        ]
        names = ("epoch", "rank", "tier", "kind", "busy_seconds", "ops", "bytes")
        found = pl.DataFrame(rows, names, orient="row").with_columns(record=pl.lit("io"), lane=pl.lit(0))
        empty = pl.DataFrame(schema=COLUMNS)
        typed = found.select(pl.col(name).cast(empty.schema[name]) for name in found.columns)
        facts = LogFacts(source="dftracer", doubts=LogDoubts(broken_lines=4))
        about = Imported(command="", tiers=(), facts=facts)
        return Trace(RunKey(0, 1), about, pl.concat([empty, typed], how="diagonal"))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setattr("tierscope.recording.dftracer.DFTracer", Fake)
    monkeypatch.setattr(Crews, "apart", lambda _self, study, variables: KeptProfiledCrew(study.system.ranks, variables))
    monkeypatch.setattr(Fake, "library", lambda _self: "/lib.so")
    return Fake


ONE = ("sweep={}", "cache_rate=0%")


def test_a_run_has_the_profilers_operations_and_our_epochs(tmp_path: Path, fake: type[Fake]) -> None:
    out = tmp_path / "out"
    run(tiny(*ONE), out, "dftracer")
    (trace,) = RunStore(str(out)).load_all()
    assert as_measured(trace).profiler == "dftracer"
    assert set(trace.about.provides) == {"epochs", "busy", "steps", "cold"}
    assert trace.about.own_cost is None
    assert trace.io["wall_seconds"].null_count() == len(trace.io) == 2 * 2 * len(fake.sees)
    assert trace.io.filter(pl.col("rank") == 1)["node"].unique().to_list() == [1]
    assert trace.ranks["samples"].to_list() == [12] * 4
    assert trace.ranks["epoch_seconds"].min() > 0  # type: ignore[operator]
    assert not trace.cold.is_empty()
    assert os.listdir(out / "logs") == ["0000-r1"]
    assert not (out / ".scratch").exists()


def test_what_the_profiler_did_not_see_and_what_its_logs_lack_are_findings(tmp_path: Path, fake: type[Fake]) -> None:
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    found = {finding.kind: finding.evidence for finding in analyze(str(tmp_path / "out")).findings}
    assert found["missed_by_profiler"] == {"profilers": ["dftracer"], "ops": 4, "bytes": 0, "untried": []}
    assert found["broken_lines"] == {"lines": 4}


def test_a_profiler_that_saw_nothing_of_an_epoch_is_refused(
    tmp_path: Path, fake: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "sees", {"open": 3})
    with pytest.raises(UserError, match="dftracer recorded no reads of rank 0 in epoch 1"):
        run(tiny(*ONE), tmp_path / "out", "dftracer")
    assert not RunStore(str(tmp_path / "out")).finished()


def test_without_a_log_there_is_no_run(tmp_path: Path, fake: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "wrote", ())
    with pytest.raises(UserError, match="dftracer wrote no log"):
        run(tiny(*ONE), tmp_path / "out", "dftracer")


def test_what_a_killed_run_left_of_its_logs_goes(tmp_path: Path, fake: type[Fake]) -> None:
    left, mine = (tmp_path / "out" / "logs" / "0000-r1" / name for name in ("left.pfw", "mine.pfw"))
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    manifest.record_logs(str(tmp_path / "out"), ["0000-r1/left.pfw"])
    left.write_text("")
    mine.write_text("somebody else's")
    finished = tmp_path / "out" / "runs" / "0000-r1.parquet"
    run(tiny(*ONE), tmp_path / "out", "dftracer")  # nothing is left to do
    assert left.exists()
    finished.unlink()
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    assert finished.exists()
    assert not left.exists()
    assert mine.exists()


def test_what_is_not_a_log_stays_beside_them(tmp_path: Path, fake: type[Fake]) -> None:
    notes = tmp_path / "out" / "logs" / "0000-r1" / "notes.txt"
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    notes.write_text("mine")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    assert notes.read_text() == "mine"


def test_logs_do_not_go_where_a_link_leads(tmp_path: Path, fake: type[Fake]) -> None:
    victim, logs = tmp_path / "victim", tmp_path / "out" / "logs"
    victim.mkdir()
    (victim / "mine.pfw").write_text("mine")
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    (tmp_path / "out" / "runs" / "0000-r1.parquet").unlink()
    shutil.rmtree(logs / "0000-r1")
    (logs / "0000-r1").symlink_to(victim)
    with pytest.raises(UserError, match="/logs/0000-r1: is a link or not a directory"):
        run(tiny(*ONE), tmp_path / "out", "dftracer")
    assert os.listdir(victim) == ["mine.pfw"]


@pytest.mark.parametrize(("first", "then"), [("builtin", "dftracer"), ("dftracer", "builtin")])
def test_times_of_two_profilers_do_not_mix(tmp_path: Path, fake: type[Fake], first: str, then: str) -> None:
    run(tiny(*ONE), tmp_path / "out", first)
    with pytest.raises(ResultError, match=f"measured with {first}, not with {then}; .* or use --profiler {first}$"):
        run(tiny(*ONE), tmp_path / "out", then)


def test_a_directory_with_runs_of_two_profilers_is_not_shown(tmp_path: Path, fake: type[Fake]) -> None:
    study = tiny("cache_rate=0%", "sweep={}", "repetitions=2")
    for name in ("builtin", "dftracer"):
        run(study, tmp_path / name, name)
    os.replace(tmp_path / "dftracer/runs/0000-r2.parquet", tmp_path / "builtin/runs/0000-r2.parquet")
    with pytest.raises(ResultError, match="measured with dftracer, not with builtin"):
        analyze(str(tmp_path / "builtin"))


def test_wall_seconds_are_not_to_be_had(tmp_path: Path, fake: type[Fake]) -> None:
    run(tiny(*ONE), tmp_path / "out", "dftracer")
    assert analyze(str(tmp_path / "out")).conditions.profilers == ("dftracer",)
    with pytest.raises(UserError, match="dftracer recorded only busy seconds; remove --basis"):
        analyze(str(tmp_path / "out"), Counting("wall"))


def test_reads_that_were_not_seen_are_counted(tmp_path: Path) -> None:
    ranks = [RankTrace(0, 0, (rank_epoch(1, payload_bytes=1000), rank_epoch(2, payload_bytes=1000)))]
    rows = [(0, 1, "gfs", "read", 1, 900), (0, 2, "gfs", "read", 1, 4096)]
    io = pl.DataFrame(rows, ["rank", "epoch", "tier", "kind", "ops", "bytes"], orient="row")
    assert Profiling("dftracer", str(tmp_path))._missed_bytes(io, ranks) == 100
