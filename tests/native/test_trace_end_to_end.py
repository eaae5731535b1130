"""Real commands under the real library: what they did to a tier's files is what the trace says."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.small_study import small_study, stage
from tests.traces import as_traced
from tierscope.cli.main import _run
from tierscope.native import library
from tierscope.output.store import RunStore
from tierscope.trace.trace import RunKey, Trace


def _can_trace() -> bool:
    found = library.path()
    return found is not None and os.path.exists(found) and hasattr(ctypes.CDLL(found), "ts_mark_epoch")


pytestmark = pytest.mark.skipif(not _can_trace(), reason="the C library was not built")

FILE_BYTES = 300_000


@dataclass
class Done:
    code: int
    result: dict[str, Any]
    trace: Trace
    err: str
    out: Path

    def sums(self, kind: str) -> tuple[int, int]:
        """Operations and bytes of a kind."""
        rows = self.trace.io.filter(pl.col("kind") == kind)
        return int(rows["ops"].sum()), int(rows["bytes"].sum())

    @property
    def findings(self) -> set[str]:
        return {finding["kind"] for finding in self.result["findings"]}


Tracing = Callable[..., Done]


@pytest.fixture
def gfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tier with three files."""
    folder = tmp_path / "gfs"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.bin").write_bytes(b"x" * FILE_BYTES)
    monkeypatch.chdir(tmp_path)
    for name in ("LD_PRELOAD", "TIERSCOPE_RECORD"):
        monkeypatch.delenv(name, raising=False)
    return folder


def arguments(*options: object, command: list[str]) -> list[str]:
    return ["trace", "--tier", "gfs=gfs", "--out", "out", "--json", *map(str, options), "--", *command]


def start(*options: object, command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tierscope.cli.main", *arguments(*options, command=command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def ended(process: "subprocess.Popen[str]") -> Done:
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, json.loads(out), RunStore("out").load(RunKey(0, 1)), err, Path("out"))


@pytest.fixture
def tracing(gfs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tracing:
    """By this process, which starts faster than another; the command is one of its own, and `start` has a whole program."""

    def traced(*command: str, options: tuple[str, ...] = (), **environment: str) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = _run(arguments(*options, command=list(command)))
        said = capfd.readouterr()
        return Done(code, json.loads(said.out), RunStore("out").load(RunKey(0, 1)), said.err, Path("out"))

    return traced


def python(program: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program)]


def test_cat_reads_every_byte_once(tracing: Tracing) -> None:
    done = tracing("cat", "gfs/0.bin", "gfs/1.bin")
    assert done.code == 0
    assert done.sums("open")[0] == 2
    assert done.sums("close")[0] == 2
    assert done.sums("read")[1] == 2 * FILE_BYTES
    assert done.result["best"]["io_seconds"] > 0
    assert done.findings == {"no_marks"}
    assert as_traced(done.trace).records.processes[0].command == "cat gfs/0.bin gfs/1.bin"
    assert as_traced(done.trace).records.still_running == 0
    own = done.result["overhead"]
    assert own["recorder_seconds_per_op"] < 1e-5
    assert max(own["foreign_open_seconds"], own["relative_stat_seconds"]) < 1e-4


def test_files_beside_the_tier_do_not_count(tracing: Tracing, tmp_path: Path) -> None:
    (tmp_path / "gfs2").mkdir()
    (tmp_path / "gfs2" / "x").write_bytes(b"x" * 1000)
    done = tracing("cat", "gfs2/x")
    assert done.findings == {"nothing_recorded"}
    assert done.trace.io.is_empty()


def test_dd_writes_what_it_reads(tracing: Tracing) -> None:
    done = tracing("dd", "if=gfs/0.bin", "of=gfs/copy", "bs=1000", "status=none")
    assert done.sums("read") == (FILE_BYTES // 1000 + 1, FILE_BYTES)
    assert done.sums("write") == (FILE_BYTES // 1000, FILE_BYTES)
    assert "GFS-WRITE" in done.result["best"]["classes"]


def test_links_and_relative_paths_lead_to_the_tier(tracing: Tracing, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gfs")
    done = tracing("sh", "-c", "cat link/0.bin && cd gfs && cat ../gfs/./1.bin > /dev/null")
    assert done.sums("read")[1] == 2 * FILE_BYTES


def test_several_processes_add_up(tracing: Tracing) -> None:
    done = tracing("sh", "-c", "for i in 0 1 2; do cat gfs/$i.bin & done; wait; exit 5")
    assert done.code == 5
    assert done.sums("read")[1] == 3 * FILE_BYTES
    assert as_traced(done.trace).records.process_count == 3
    assert sorted(done.trace.io["lane"].unique()) == [0, 1, 2]
    assert "failed_command" in done.findings


def test_ranks_are_those_of_the_launcher(tracing: Tracing) -> None:
    script = """
        cat gfs/2.bin > /dev/null
        for rank in 0 1; do RANK=$rank WORLD_SIZE=2 sh -c 'cat gfs/$RANK.bin; cat gfs/$RANK.bin' & done
        wait
    """
    done = tracing("sh", "-c", script)
    reads = done.trace.io.filter(pl.col("kind") == "read").group_by("rank").agg(pl.col("bytes").sum()).sort("rank")
    assert reads.rows() == [(None, FILE_BYTES), (0, 2 * FILE_BYTES), (1, 2 * FILE_BYTES)]
    assert done.result["points"][0]["ranks"] == 2
    assert "outside" in done.findings


def test_epochs_and_phases_are_marked(tracing: Tracing) -> None:
    program = """
        import time, tierscope
        for epoch in (1, 2, 3):
            tierscope.mark_epoch(epoch)
            for number in range(epoch):
                open(f"gfs/{number}.bin", "rb").read()
            with tierscope.phase("compute"):
                time.sleep(0.1)
    """
    done = tracing(*python(program))
    reads = done.trace.io.filter(pl.col("kind") == "read").group_by("epoch").agg(pl.col("bytes").sum()).sort("epoch")
    assert reads.rows() == [(epoch, epoch * FILE_BYTES) for epoch in (1, 2, 3)]
    ranks = done.trace.ranks.sort("epoch")
    assert all(0.1 <= seconds < 0.5 for seconds in ranks["compute_seconds"])
    assert all(0.1 <= seconds < 1 for seconds in ranks["epoch_seconds"][:2])
    assert done.findings == set()
    assert all(0.1 <= point["compute_seconds"] < 0.5 for point in done.result["points"])
    assert [point["bytes"]["GFS-READ"] for point in done.result["points"]] == [n * FILE_BYTES for n in (1, 2, 3)]
    assert done.result["best"]["first_epoch_io_seconds"] > 0


def test_loader_workers_belong_to_their_ranks_epoch(tracing: Tracing) -> None:
    program = """
        import os, tierscope
        for epoch in (1, 2):
            tierscope.mark_epoch(epoch)
            for number in range(3):
                if os.fork() == 0:
                    open(f"gfs/{number}.bin", "rb").read()
                    os._exit(0)
            for _ in range(3):
                os.wait()
    """
    done = tracing(*python(program), OMPI_COMM_WORLD_RANK="7")
    reads = done.trace.io.filter(pl.col("kind") == "read").group_by("epoch", "rank").agg(pl.col("bytes").sum())
    assert sorted(reads.rows()) == [(1, 7, 3 * FILE_BYTES), (2, 7, 3 * FILE_BYTES)]
    assert as_traced(done.trace).records.process_count == 7


def test_threads_have_lanes_of_their_own(tracing: Tracing) -> None:
    program = """
        import threading
        together = threading.Barrier(3)
        def read(number):
            with open(f"gfs/{number}.bin", "rb", buffering=0) as file:
                together.wait()
                while file.read(1000): pass
                together.wait()
        threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    done = tracing(*python(program))
    assert done.sums("read") == (3 * (FILE_BYTES // 1000 + 1), 3 * FILE_BYTES)
    assert done.trace.io["lane"].n_unique() == 3
    assert (
        done.trace.io["wall_seconds"].sum() <= (as_traced(done.trace).records.span_seconds or 0) * 1.01
    )  # no instant counts twice
    assert done.trace.io.filter(
        pl.col("wall_seconds") > pl.col("busy_seconds")
    ).is_empty()  # a share is not more than the whole


def test_epochs_can_be_found_by_rereads(tracing: Tracing, gfs: Path) -> None:
    for number in range(100):
        (gfs / f"{number:03d}.raw").write_bytes(b"x" * 10)
    program = """
        for epoch in range(3):
            for number in range(100):
                open(f"gfs/{number:03d}.raw", "rb", buffering=0).read()
    """
    done = tracing(*python(program), options=("--epochs", "rereads"))
    reads = done.trace.io.filter(pl.col("kind") == "read").group_by("epoch").agg(pl.col("bytes").sum()).sort("epoch")
    assert reads.rows() == [(epoch, 1000) for epoch in (1, 2, 3)]
    assert "no_marks" not in done.findings


def test_maps_are_counted_and_said(tracing: Tracing) -> None:
    program = """
        import mmap
        with open("gfs/0.bin", "rb") as file:
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:]
    """
    done = tracing(*python(program))
    assert done.sums("mmap") == (1, FILE_BYTES)
    (finding,) = (finding for finding in done.result["findings"] if finding["kind"] == "mapped")
    assert finding["evidence"] == {"tier": "gfs", "ops": 1, "bytes": FILE_BYTES}


def test_what_the_kernel_counted_stands_beside_what_was_seen(tracing: Tracing) -> None:
    done = tracing("cat", "gfs/0.bin", "gfs/1.bin", "gfs/2.bin")
    found = done.result["coverage"]
    assert 3 * FILE_BYTES <= found["seen_read_bytes"] <= found["kernel_read_bytes"]
    assert found["share"] > 0.95
    assert found["share"] == pytest.approx(found["seen_read_bytes"] / found["kernel_read_bytes"])
    assert as_traced(done.trace).coverage is not None
    assert not done.findings & {"low_coverage", "coverage_unknown"}


def test_a_process_that_was_not_preloaded_is_said(gfs: Path, tracing: Tracing) -> None:
    """Nothing else would tell: the table looks as if the second had not run."""
    (gfs / "large.bin").write_bytes(bytes(2 << 20))
    done = tracing("sh", "-c", "cat gfs/0.bin; env -u LD_PRELOAD cat gfs/large.bin > /dev/null")
    assert done.sums("read")[1] == FILE_BYTES
    (finding, *_) = (finding for finding in done.result["findings"] if finding["kind"] == "low_coverage")
    assert finding["evidence"]["cause"] == "process"
    assert done.result["coverage"]["share"] == pytest.approx(FILE_BYTES / (FILE_BYTES + (2 << 20)), abs=0.05)


def test_the_list_of_operations_has_every_one_of_them(tracing: Tracing) -> None:
    done = tracing("sh", "-c", "dd if=gfs/0.bin of=/dev/null bs=100 status=none; cat gfs/1.bin", options=("--ops",))
    ops = pl.read_parquet(done.out / "ops" / "0000-r1-node0.parquet")
    kinds = {kind: done.sums(kind)[0] for kind in done.trace.io["kind"].unique()}
    assert dict(ops.group_by("kind").len().rows()) == kinds
    assert kinds["read"] > 3000  # more than wait in memory
    files = pl.read_parquet(done.out / "ops" / "files.parquet")
    assert ops.drop_nulls("file").join(files, on="file", how="anti").is_empty()
    named = ops.join(files, on="file", how="left")
    reads = named.filter(pl.col("kind") == "read").group_by("path").agg(pl.col("bytes").sum()).sort("path")
    assert reads.rows() == [(str(Path("gfs").resolve() / f"{number}.bin"), FILE_BYTES) for number in (0, 1)]
    assert ops["seconds"].sum() == pytest.approx(done.trace.io["busy_seconds"].sum())
    first = named.filter((pl.col("kind") == "read") & pl.col("path").str.ends_with("0.bin")).sort("start_seconds")
    assert first["offset"].to_list()[:3] == [0, 100, 200]


def test_an_emulated_tier_is_as_slow_as_configured(tracing: Tracing) -> None:
    done = tracing("cat", "gfs/0.bin", options=("--emulate", "gfs.bandwidth=1MB/s"))
    assert done.result["best"]["classes"]["GFS-READ"] == pytest.approx(FILE_BYTES / 1e6, rel=0.2)
    assert done.result["emulated_tiers"] == ["gfs"]
    assert "emulated" in done.findings


def test_processes_share_an_emulated_server(tracing: Tracing) -> None:
    start = time.monotonic()
    script = "cat gfs/0.bin & cat gfs/1.bin & cat gfs/2.bin & wait"
    done = tracing("sh", "-c", script, options=("--emulate", "gfs.bandwidth=1MB/s"))
    assert time.monotonic() - start > 3 * FILE_BYTES / 1e6
    assert done.sums("read")[1] == 3 * FILE_BYTES


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_keeps_its_records(tracing: Tracing, number: signal.Signals) -> None:
    program = f"""
        import os, signal
        for n in range(3): open(f"gfs/{{n}}.bin", "rb").read()
        os.kill(os.getpid(), {int(number)})
    """
    done = tracing(*python(program))
    assert done.code == 128 + number
    assert done.sums("read")[1] == 3 * FILE_BYTES


@pytest.mark.faults
def test_a_killed_tierscope_keeps_the_records_too(gfs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ours = start(command=["sh", "-c", "cat gfs/0.bin > /dev/null; echo $$ > pid.new; mv pid.new pid; exec sleep 60"])
    while not Path("pid").exists():
        time.sleep(0.02)
    ours.kill()
    os.kill(int(Path("pid").read_text()), signal.SIGKILL)  # the command outlives it
    ours.communicate()
    assert _run(["analyze", "out", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["best"]["classes"]["GFS-READ"] > 0


@pytest.mark.faults
def test_what_still_runs_is_counted(gfs: Path) -> None:
    """A child that the command does not wait for; its output goes elsewhere, so that nobody waits for that either."""
    child = """
        import os, time
        open("gfs/0.bin", "rb").read()
        open("pid", "w").write(str(os.getpid()))
        time.sleep(60)
    """
    Path("child.py").write_text(textwrap.dedent(child))
    script = f"{sys.executable} child.py > /dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.05; done"
    try:
        done = ended(start(command=["sh", "-c", script]))
    finally:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)
    assert done.code == 0
    assert done.sums("read")[1] == FILE_BYTES
    assert as_traced(done.trace).records.still_running == 1
    assert "still_running" in done.findings


def test_the_program_may_have_its_own_preloaded_library(tracing: Tracing, tmp_path: Path) -> None:
    done = tracing("sh", "-c", "cat gfs/0.bin > /dev/null; echo $LD_PRELOAD", LD_PRELOAD="libc.so.6")
    first, other = done.err.strip().split(":")
    assert first.endswith(".so")
    assert other == "libc.so.6"
    assert done.sums("read")[1] == FILE_BYTES


@pytest.mark.faults
def test_an_operation_that_never_ended_is_named(tracing: Tracing) -> None:
    command = ["timeout", "-s", "KILL", "0.5", "cat", "gfs/0.bin"]
    done = tracing(*command, options=("--emulate", "gfs.latency=60s"))
    (found,) = (finding for finding in done.result["findings"] if finding["kind"] == "under_way")
    assert found["evidence"]["ops"] == 1
    assert 0.25 < found["evidence"]["seconds"] < 60


def test_the_native_loaders_own_reads_are_seen(tracing: Tracing, tmp_path: Path) -> None:
    """They are made by threads of C, in the same library that records."""
    settings = ("read_threads=2", "cache_rate=0")
    stage(small_study(*settings), str(tmp_path / "staged"))
    shutil.copytree(tmp_path / "staged" / "gfs", tmp_path / "gfs", dirs_exist_ok=True)
    program = f"""
        import json, sys
        sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
        from tests.small_study import loader_of, plan_of, small_study, source_of, totals
        study = small_study(*{settings!r})
        loader = loader_of(study, source_of(study, "."), "native")
        assert sum(len(batch.samples) for batch in loader.batches(plan_of(study).reads(0, 1))) > 0
        tables, _ = loader.finish()
        json.dump([sum(totals(tables, what, "read")) for what in ("ops", "nbytes")], open("own", "w"))
    """
    done = tracing(*python(program))
    assert done.code == 0, done.err
    ops, nbytes = json.loads(Path("own").read_text())
    assert done.sums("read") == (ops, nbytes)
    assert nbytes > 0
