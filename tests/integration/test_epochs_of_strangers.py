"""Epochs of programs that mark none, found by re-reads: their true number with the reads in the right ones, or none."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.integration.programs import epochs_of_strangers
from tests.traces import as_traced
from tierscope.cli.main import _run
from tierscope.output.store import RunStore
from tierscope.trace.description import Rereads
from tierscope.trace.trace import RunKey

pytestmark = pytest.mark.native

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


def told(name: str, epochs: int, out: Path, capfd: pytest.CaptureFixture[str], *options: str) -> Told:
    program = [sys.executable, str(PROGRAM), name, str(epochs)]
    arguments = ["trace", "--tier", "gfs=gfs", "--out", str(out), "--json", "--epochs", "rereads", *options]
    assert _run([*arguments, "--", *program]) == 0, capfd.readouterr().err
    trace = RunStore(str(out)).load(RunKey(0, 1))
    rereads = as_traced(trace).records.rereads
    assert rereads is not None
    reads = trace.io.filter(pl.col("kind") == "read").group_by("epoch").agg(pl.col("ops").sum()).sort("epoch")
    assert reads["epoch"].to_list() == list(range(1, rereads.passes + 1))
    return Told(rereads, reads["ops"].to_list(), json.loads(capfd.readouterr().out)["findings"])


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


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("with_replacement", "uneven"),
        ("validation_of_the_same", "partial"),
        ("npy_mapped_once", "mapped"),
        ("small_headers_first", "uneven"),
        ("few_files", "few"),
        ("ended_early", "partial"),
        ("ranks_that_exchange", None),
    ],
)
def test_what_cannot_be_told_is_one_epoch_and_said(
    name: str, doubt: str | None, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = told(name, 2, tmp_path / "out", capfd)
    assert found.rereads.passes == 1
    assert found.rereads.doubt == doubt or (doubt is None and found.rereads.doubt)
    (about,) = (finding for finding in found.findings if finding["kind"] == "epochs_unsure")
    assert "mark_epoch" in about["suggestion"]
    assert "rereads" not in about["suggestion"]


def test_the_list_of_operations_has_the_same_epochs(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = told("npy_large", 2, tmp_path / "out", capfd, "--ops")
    ops = pl.read_parquet(tmp_path / "out" / "ops" / "0000-r1-node0.parquet")
    reads = ops.filter(pl.col("kind") == "read").group_by("epoch").len().sort("epoch")
    assert reads["len"].to_list() == found.reads
