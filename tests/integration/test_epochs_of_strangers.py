"""Epochs of programs that mark none, found by re-reads: their true number with the reads in the right ones, or none."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests import native_programs
from tests.integration.programs import epochs_of_strangers
from tests.traces import as_traced
from tierscope.cli.main import _run
from tierscope.native.rereads import PAGE
from tierscope.native.state import OPTION_REREADS
from tierscope.output.store import RunStore
from tierscope.recording.collect import collect
from tierscope.trace.description import Rereads
from tierscope.trace.trace import RunKey

PROGRAM = Path(epochs_of_strangers.__file__).resolve()
BORDER_READS = 16  # that may be on the other side of one


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("strangers")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        epochs_of_strangers.make()
        yield folder


@dataclass
class Told:
    rereads: Rereads
    reads: list[int]  # in each epoch
    findings: list[dict[str, Any]]


def told(
    name: str, epochs: int, out: Path, capfd: pytest.CaptureFixture[str], *options: str, more: tuple[str, ...] = ()
) -> Told:
    program = [sys.executable, str(PROGRAM), name, str(epochs), *more]
    arguments = ["trace", "--tier", "gfs=gfs", "--out", str(out), "--json", "--epochs", "rereads", *options]
    assert _run([*arguments, "--", *program]) == 0, capfd.readouterr().err
    trace = RunStore(str(out)).load(RunKey(0, 1))
    rereads = as_traced(trace).records.rereads
    assert rereads is not None
    reads = trace.io.filter(pl.col("kind") == "read").group_by("epoch").agg(pl.col("ops").sum()).sort("epoch")
    assert reads["epoch"].to_list() == list(range(1, rereads.passes + 1))
    return Told(rereads, reads["ops"].to_list(), json.loads(capfd.readouterr().out)["findings"])


@pytest.mark.native
@pytest.mark.parametrize(
    ("name", "epochs", "extra"),
    [
        ("npy", 1, 0),
        ("npy", 2, 0),
        ("npy", 5, 0),
        ("npy_large", 2, 0),
        ("npy_mapped", 2, 0),
        ("npy_threads", 3, 0),
        ("hdf5_opened_for_each_sample", 2, 0),
        ("hdf5_opened_once_per_epoch", 2, 0),
        ("hdf5_kept_open", 3, 30),  # what describes the tables is read in the first only
        ("tfrecord", 2, 0),
        ("tfrecord", 1, 0),
        ("new_workers", 3, 0),
        ("persistent_workers", 3, 0),
        ("validation_apart", 2, 0),
        ("each_file_twice", 2, 0),
        ("headers_first", 2, 30),
        ("checkpoints", 3, 0),
    ],
)
def test_the_true_number(
    name: str, epochs: int, extra: int, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`extra`: reads that only the first epoch has."""
    found = told(name, epochs, tmp_path / "out", capfd)
    assert (found.rereads.passes, found.rereads.doubt) == (epochs, None)
    first, *later = found.reads
    assert all(abs(count - later[0]) <= BORDER_READS for count in later)
    assert not later or abs(first - extra - later[0]) <= 2 * BORDER_READS
    (about,) = (finding for finding in found.findings if finding["kind"] in ("rereads_found", "one_pass"))
    assert "--epochs" not in about["suggestion"]


@pytest.mark.native
@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("with_replacement", "uneven or partial"),
        ("validation_of_the_same", "uneven or partial"),
        ("npy_mapped_once", "mapped"),
        ("small_headers_first", "uneven"),
        ("few_files", "few"),
        ("ended_early", "partial"),
        ("ranks_that_exchange", "uneven"),
    ],
)
def test_what_cannot_be_told_is_one_epoch_and_said(
    name: str, doubt: str, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = told(name, 2, tmp_path / "out", capfd)
    assert found.rereads.passes == 1
    assert found.rereads.doubt in doubt.split(" or ")
    (about,) = (finding for finding in found.findings if finding["kind"] == "epochs_unsure")
    assert "mark_epoch" in about["suggestion"]
    assert "rereads" not in about["suggestion"]


@pytest.mark.native
def test_the_list_of_operations_has_the_same_epochs(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = told("npy_large", 2, tmp_path / "out", capfd, "--ops")
    ops = pl.read_parquet(tmp_path / "out" / "ops" / "0000-r1-node0.parquet")
    reads = ops.filter(pl.col("kind") == "read").group_by("epoch").len().sort("epoch")
    assert reads["len"].to_list() == found.reads


READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(2):
    for unit in range(50): os.pread(fd, 8, 8 * unit)
"""


@pytest.mark.native
def test_a_lock_that_nobody_gives_back_holds_nobody_up_for_long(tmp_path: Path) -> None:
    """As a process leaves it that is killed while it holds it."""
    tier, record = tmp_path / "tier", tmp_path / "record"
    tier.mkdir()
    (tier / "data").write_bytes(bytes(400))
    native_programs.write_config(record, {"gfs": tier}, OPTION_REREADS)
    command = [sys.executable, "-S", "-c", READER, str(tier / "data")]

    def told_by(reads: int) -> Rereads | None:
        assert native_programs.run(command, native_programs.environment(record)).code == 0
        found = collect(str(record), ["gfs"], lambda head: False, by_rereads=True)
        assert found.table.filter(pl.col("kind") == "read")["ops"].sum() == reads
        return found.records.rereads

    assert told_by(100) == Rereads(passes=2, doubt=None, late_reads=0)
    (path,) = record.glob("rank-*")
    page = np.fromfile(path, PAGE)
    page["rereads"]["locked"] = 1
    with open(path, "r+b") as file:
        file.write(page.tobytes())
    start = time.monotonic()
    assert told_by(200) == Rereads(passes=1, doubt="interrupted", late_reads=0)
    assert time.monotonic() - start < 10


@pytest.mark.torch
@pytest.mark.parametrize("persistent", ["0", "1"])
def test_workers_of_torch(persistent: str, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")
    found = told("torch_loader", 3, tmp_path / "out", capfd, more=(persistent,))
    assert found.rereads == Rereads(passes=3, doubt=None, late_reads=found.rereads.late_reads)
    assert all(abs(count - found.reads[1]) <= BORDER_READS for count in found.reads)
