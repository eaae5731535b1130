"""Files out of the page cache, and the truth about whether they are."""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_study import plan_of, small_study, tier_files
from tierscope.storage import cold

PAGE = os.sysconf("SC_PAGESIZE")
SIZE = 64 * PAGE


def write(path: Path, nbytes: int = SIZE) -> str:
    with path.open("wb") as out:
        out.write(os.urandom(nbytes))
        os.fsync(out.fileno())
    return str(path)


@pytest.fixture
def evictable(tmp_path: Path) -> Path:
    """A directory whose kernel and filesystem can tell and evict; otherwise the test is skipped."""
    probe = write(tmp_path / "probe")
    if cold.resident([probe])[1] is None:
        pytest.skip("this kernel has no cachestat (Linux 6.5)")
    if not evicted(probe, advise):
        pytest.skip("this filesystem does not evict pages (tmpfs?)")
    return tmp_path


def advise(paths: list[str]) -> None:
    """What `evict` should do, without it."""
    fd = os.open(paths[0], os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def evicted(path: str, how: Callable[[list[str]], None] = cold.evict) -> bool:
    for _ in range(50):  # pages that are being written back stay for a moment
        how([path])
        if cold.resident([path])[1] == 0:
            return True
        time.sleep(0.001)
    return False


def test_evicting_makes_files_cold(evictable: Path) -> None:
    paths = [write(evictable / str(number)) for number in range(4)]
    assert cold.resident(paths) == (4 * SIZE, 4 * SIZE)
    assert all(evicted(path) for path in paths[:3])
    assert cold.resident(paths) == (4 * SIZE, SIZE)


def test_part_of_a_file_may_be_resident(evictable: Path) -> None:
    path = write(evictable / "file")
    assert evicted(path)
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
    os.pread(fd, 1, 5 * PAGE)
    os.close(fd)
    checked, found = cold.resident([path])
    assert checked == SIZE
    assert found is not None
    assert PAGE <= found < SIZE


def test_no_more_than_a_file_s_bytes_count_as_resident(evictable: Path) -> None:
    assert cold.resident([write(evictable / "file", 100)]) == (100, 100)  # not a page


def test_vanished_files_are_left_to_their_reader(tmp_path: Path) -> None:
    there = write(tmp_path / "there")
    gone = str(tmp_path / "gone")
    cold.evict([gone, there])
    assert cold.resident([gone, there])[0] == SIZE


def test_a_kernel_that_cannot_tell_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_CACHESTAT", 1 << 20)  # no such system call
    assert cold.resident([write(tmp_path / "file")]) == (SIZE, None)


def test_only_so_many_files_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "MAX_CHECKED", 2)
    asked = iter([write(tmp_path / str(number)) for number in range(4)])
    assert cold.resident(asked)[0] == 2 * SIZE


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    path = write(tmp_path / "file")
    gc.collect()  # what earlier tests left is not ours
    before = len(os.listdir("/proc/self/fd"))
    cold.evict([path] * 10)
    cold.resident([path] * 10)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("per_file", [1, 3])
def test_a_rank_evicts_what_it_is_about_to_read_and_no_more(per_file: int) -> None:
    study = small_study("nodes=2", "ranks_per_node=2", "num_files_train=50", f"num_samples_per_file={per_file}")
    plan = plan_of(study)
    for rank in range(4):
        for tier, files in enumerate(tier_files(study, "/res", rank // 2)):
            coming = list(cold.coming_reads(plan, rank, 2, tier, files))
            read = [int(file) for block in plan.reads(rank, 2) for file in block.files[block.tiers == tier]]
            assert len(coming) <= len(read)
            assert set(coming) == {files.path(file) for file in read}
