"""Files that are copied to the nearest tier as they are read: right, complete, recorded, and only when they were read well."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.accesses import Counting, Failing, Short, os_error
from tests.in_memory import tmp_path_factory
from tests.small_study import loader_of, plan_of, reading, small_study, source_of, stage, totals
from tierscope.dataset import content
from tierscope.dataset.copies import Copies
from tierscope.errors import DamagedDataError, OutOfSpaceError, StoppedError, TierscopeError, UserError
from tierscope.loaders import SampleSource
from tierscope.plan.file_format import make_format
from tierscope.plan.first_touch import FirstTouch
from tierscope.spec.study import Study
from tierscope.storage.access import Access, Directory
from tierscope.storage.files import DatasetFiles
from tierscope.storage.opening import open_storage
from tierscope.trace.recorder import LaneTable

__all__ = ["tmp_path_factory"]

RECORD = 1016  # a TFRecord of 1000 bytes
FILES = 24


def touched(*settings: str) -> Study:
    return small_study("policy=first-touch", *settings)


def filling_source(study: Study, out: str, access: Callable[[], Access] = Directory) -> SampleSource:
    source, (near, _) = source_of(study, out, access), study.system.tiers
    suffix, dataset = make_format(study).suffix, study.workload.dataset
    copies = DatasetFiles.of(near, out, 0, dataset, study.seed, suffix, copies=True)
    return replace(source, files=(copies, source.files[1]))


def prepared(study: Study, out: Path, access: Callable[[], Access] = Directory) -> tuple[SampleSource, FirstTouch]:
    stage(replace(study, placement=small_study("cache_rate=0").placement), str(out))
    source = filling_source(study, str(out), access)
    Copies(open_storage(study.system.tiers[0], str(out), 0), source.files[0]).begin()
    return source, FirstTouch(study, plan_of(study), make_format(study).file_bytes, 0)


def epoch(study: Study, source: SampleSource, plan: FirstTouch, number: int) -> list[LaneTable]:
    """Reads it, and holds every payload against what was generated."""
    loader = loader_of(study, source)
    length = study.workload.dataset.record_length_bytes
    with reading(loader, plan.reads(0, number)) as batches:
        for batch in batches:
            for sample, payload in zip(batch.samples, batch.payloads, strict=True):
                assert bytes(payload) == b"".join(bytes(piece) for piece in content.payload(study.seed, sample, length))
    return loader.finish()[0]


def held(source: SampleSource) -> list[str]:
    return sorted(name for name in os.listdir(source.files[0].folder) if not name.startswith("tierscope.json"))


@pytest.mark.parametrize("way", ["read_threads=0", "read_threads=1", "read_threads=3"])
@pytest.mark.parametrize("data", ["format=tfrecord", "format=raw", "format=npz", "transfer_size=512"])
def test_what_is_read_from_a_copy_is_what_was_there(tmp_path: Path, way: str, data: str) -> None:
    study = touched("cache_rate=50%", way, data)
    source, plan = prepared(study, tmp_path)
    size = source.format.file_bytes
    writes = 12 * -(-size // study.workload.reader.transfer_size)
    first, second = (epoch(study, source, plan, number) for number in (1, 2))
    assert totals(first, "ops", "open") == totals(first, "ops", "close") == [12, 24]
    assert totals(first, "nbytes", "read") == [0, 24 * size]
    assert totals(first, "nbytes", "write") == [12 * size, 0]
    assert totals(first, "ops", "write") == [writes, 0]
    assert min(totals(first, "busy_ns", "write")[0], totals(first, "wall_ns", "write")[0]) > 0
    assert totals(second, "ops", "open") == [12, 12]
    assert totals(second, "nbytes", "read") == [12 * size, 12 * size]
    assert totals(second, "ops", "write") == [0, 0]
    assert len(held(source)) == 12
    for name in held(source):
        near, far = (Path(files.folder, name) for files in source.files)
        assert near.read_bytes() == far.read_bytes()
        assert near.stat().st_mode & 0o777 == 0o644


def test_copies_are_written_under_another_name_and_closed(tmp_path: Path) -> None:
    access = Counting()
    study = touched("cache_rate=100%")
    source, plan = prepared(study, tmp_path, lambda: access)
    epoch(study, source, plan, 1)
    assert sorted(access.created) == [source.files[0].unfinished(file) for file in range(FILES)]
    assert access.writes == [(0, RECORD)] * FILES
    assert access.open_fds == set()
    assert held(source) == [f"{file:09d}.tfrecord" for file in range(FILES)]


def test_writes_may_be_short(tmp_path: Path) -> None:
    class ShortWrites(Counting):
        def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
            return super().pwrite(fd, data[:300], offset)

    access = ShortWrites()
    study = touched("cache_rate=100%")
    source, plan = prepared(study, tmp_path, lambda: access)
    tables = epoch(study, source, plan, 1)
    assert access.writes == [(0, 300), (300, 300), (600, 300), (900, 116)] * FILES
    assert totals(tables, "nbytes", "write") == [FILES * RECORD, 0]
    epoch(study, source, plan, 2)


def test_short_reads_are_completed_before_anything_is_copied(tmp_path: Path) -> None:
    study = touched("cache_rate=100%")
    source, plan = prepared(study, tmp_path, lambda: Short(100))
    epoch(study, source, plan, 1)
    epoch(study, source, plan, 2)


def test_a_damaged_file_is_not_copied(tmp_path: Path) -> None:
    study = touched("cache_rate=100%", "batch_size=1", "read_threads=0")
    source, plan = prepared(study, tmp_path)
    victim = int(next(plan.reads(0, 1)).files[2])
    Path(source.files[1].path(victim)).write_bytes(bytes(RECORD))
    with pytest.raises(DamagedDataError, match=rf"{source.files[1].path(victim)}: sample 0: wrong"):
        epoch(study, source, plan, 1)
    assert len(held(source)) == 2


@pytest.mark.parametrize("way", ["read_threads=0", "read_threads=2"])
@pytest.mark.parametrize(
    ("operation", "number", "kind", "words"),
    [
        ("create", errno.EACCES, UserError, "cannot be written: Permission denied; check the directory"),
        ("pwrite", errno.ENOSPC, OutOfSpaceError, "No space left on device while copying it here; free some space"),
        ("pwrite", errno.EDQUOT, OutOfSpaceError, "Disk quota exceeded while copying it here; free some space"),
        ("pwrite", errno.EIO, StoppedError, "cannot be written: Input/output error"),
    ],
)
def test_a_copy_that_fails_is_said_and_leaves_nothing(
    tmp_path: Path, way: str, operation: str, number: int, kind: type[TierscopeError], words: str
) -> None:
    access = Failing(operation, os_error(number), after=3)
    study = touched("cache_rate=100%", way)
    source, plan = prepared(study, tmp_path, lambda: access)
    with pytest.raises(kind, match=words) as caught:
        epoch(study, source, plan, 1)
    assert str(caught.value).startswith(source.files[0].folder)
    assert not [name for name in held(source) if not name.endswith(".tfrecord")]
    assert access.open_fds == set()
