"""Reads that all ranks make together, with one rank's part in a file that is opened alone."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest

from tests.small_study import (
    loader_of,
    plan_of,
    planned_samples,
    reading,
    small_study,
    source_of,
    stage,
    tier_files,
    totals,
)
from tierscope.dataset import content
from tierscope.errors import DamagedDataError, TierscopeError, VanishedDataError
from tierscope.formats.hdf5 import Hdf5, _Handle
from tierscope.loaders import Batch, Loader
from tierscope.loaders.base import SampleSource
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.trace.recorder import OpSink

RANKS = 3
SETTINGS = (
    "format=raw",
    "file_access=collective",
    "num_files_train=1",
    "num_samples_per_file=31",
    "read_threads=0",
    f"ranks_per_node={RANKS}",
    "batch_size=4",
    "cache_rate=0",
)


class Alone:
    """A communicator of one rank: each call is over at once. `calls`: what it was asked for."""

    communicator = "ranks"

    def __init__(self, spoil: Callable[[], None] | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._spoil, self._fd, self.size = spoil or (lambda: None), -1, 0

    def open(self, path: str, /) -> "Alone":
        self._fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._fd).st_size
        self.calls.append(("open", path))
        return self

    def read(self, offset: int, into: memoryview, /) -> int:
        self._spoil()
        self.calls.append(("read", offset, into.nbytes))
        return os.preadv(self._fd, [into], offset) if into.nbytes else 0

    def close(self) -> None:
        os.close(self._fd)
        self.calls.append(("close",))

    @property
    def reads(self) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == "read"]


def collective(*settings: str) -> Study:
    return small_study(*SETTINGS, *settings)


def source(study: Study, out: str, ranks: Alone) -> SampleSource:
    return replace(source_of(study, out), together=(ranks, ranks))


def payloads(loader: Loader, study: Study, rank: int = 0) -> list[bytes]:
    found: list[bytes] = []
    for batch in loader.batches(plan_of(study).reads(rank, 1)):
        found += [bytes(payload) for payload in batch.payloads]
    return found


@pytest.mark.parametrize("rank", range(RANKS))
@pytest.mark.parametrize(("transfer", "calls"), [(512, 2), (1000, 1), (4096, 1)])
def test_one_open_and_as_many_calls_for_each_sample(tmp_path: Path, rank: int, transfer: int, calls: int) -> None:
    study, ranks = collective(f"transfer_size={transfer}"), Alone()
    stage(study, str(tmp_path))
    sink = OpSink(str(tmp_path / "ops"))
    loader = loader_of(study, source(study, str(tmp_path), ranks), sink=sink)
    planned = planned_samples(plan_of(study), rank)
    assert payloads(loader, study, rank) == [b"".join(content.payload(study.seed, one, 1000)) for one in planned]
    tables, _ = loader.finish()
    sink.close()
    path = tier_files(study, str(tmp_path))[1].path(0)
    assert (ranks.calls[0], ranks.calls[-1]) == (("open", path), ("close",))
    assert len(ranks.reads) == len(ranks.calls) - 2 == calls * len(planned) == calls * 10
    assert {kind: totals(tables, "ops", kind) for kind in ("open", "read", "close")} == {
        "open": [0, 1],
        "read": [0, len(ranks.reads)],
        "close": [0, 1],
    }
    assert totals(tables, "nbytes", "read") == [0, sum(nbytes for _, _, nbytes in ranks.reads)] == [0, 10_000]


def test_ranks_with_smaller_samples_go_along_with_reads_of_nothing(tmp_path: Path) -> None:
    """Every rank makes as many calls, whatever sizes its samples have."""
    study = collective("record_length_bytes_stdev=300", "transfer_size=512")
    stage(study, str(tmp_path))
    counts, read = set(), 0
    for rank in range(RANKS):
        ranks = Alone()
        loader = loader_of(study, source(study, str(tmp_path), ranks))
        found = payloads(loader, study, rank)
        tables, _ = loader.finish()
        assert [content.sample_number(memoryview(one)) for one in found] == planned_samples(plan_of(study), rank)
        read = sum(len(one) for one in found)
        assert totals(tables, "nbytes", "read") == [0, read] == [0, sum(nbytes for _, _, nbytes in ranks.reads)]
        assert totals(tables, "ops", "read") == [0, len(ranks.reads)]
        counts.add(len(ranks.reads))
    most = make_format(study).slot_bytes
    assert counts == {10 * -(-most // 512)}


def failed(loader: Loader, study: Study) -> TierscopeError:
    with pytest.raises(TierscopeError) as caught:
        payloads(loader, study)
    return caught.value


def test_a_rank_that_fails_does_not_close_what_others_have_open(tmp_path: Path) -> None:
    study = collective()
    stage(study, str(tmp_path))

    def spoil() -> None:
        raise OSError("MPI_ERR_IO: input/output error")

    ranks = Alone(spoil)
    error = failed(loader_of(study, source(study, str(tmp_path), ranks)), study)
    assert "cannot be read: MPI_ERR_IO: input/output error" in str(error)
    assert ("close",) not in ranks.calls


def test_nor_one_that_leaves_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    study, ranks = collective(), Alone()
    stage(study, str(tmp_path))
    loader = loader_of(study, source(study, str(tmp_path), ranks))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        first: Batch = next(batches)
    assert len(first.samples) == 4
    assert ("close",) not in ranks.calls


def test_a_short_file_is_seen_before_its_end_is_read(tmp_path: Path) -> None:
    study, ranks = collective("shuffle=off"), Alone()
    stage(study, str(tmp_path))
    path = tier_files(study, str(tmp_path))[1].path(0)
    os.truncate(path, 9_500)
    error = failed(loader_of(study, source(study, str(tmp_path), ranks)), study)
    assert isinstance(error, VanishedDataError)
    assert str(error) == (
        f"{path}: sample 9: truncated: 500 of 1000 bytes at offset 9000; rerun the same command: files of the wrong size are written again"
    )
    assert all(offset + nbytes <= 9_500 for _, offset, nbytes in ranks.reads)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    study, ranks = collective(), Alone()
    stage(study, str(tmp_path))
    os.remove(tier_files(study, str(tmp_path))[1].path(0))
    error = failed(loader_of(study, source(study, str(tmp_path), ranks)), study)
    assert "000000000.raw: has disappeared; rerun the same command to write missing files again" in str(error)


class Hdf5Alone(Hdf5):
    """As with a communicator of one rank, for an h5py that knows none."""

    def open_together(self, path: str, communicator: Any) -> _Handle:
        assert communicator == "ranks"
        return _Handle(h5py.File(path, "r"), self.shape.samples_per_file)


def test_a_library_s_call_is_one_read(tmp_path: Path) -> None:
    study, ranks = collective("format=hdf5"), Alone()
    stage(study, str(tmp_path))
    form = Hdf5Alone(make_format(study).shape)
    loader = loader_of(study, replace(source(study, str(tmp_path), ranks), format=form))
    planned = planned_samples(plan_of(study))
    assert payloads(loader, study) == [b"".join(content.payload(study.seed, one, 1000)) for one in planned]
    tables, _ = loader.finish()
    assert [totals(tables, "ops", kind)[1] for kind in ("open", "read", "close")] == [1, 10, 1]
    assert totals(tables, "nbytes", "read") == [0, 10_000]


def test_a_library_s_file_of_something_else_is_damaged(tmp_path: Path) -> None:
    study = collective("format=hdf5")
    stage(study, str(tmp_path))
    with h5py.File(tier_files(study, str(tmp_path))[1].path(0), "w") as file:
        file["y"] = 1
    form = Hdf5Alone(make_format(study).shape)
    error = failed(loader_of(study, replace(source(study, str(tmp_path), Alone()), format=form)), study)
    assert isinstance(error, DamagedDataError)
