"""Files out of the page cache, and the truth about whether they are."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tierscope.storage import cold

PAGE = os.sysconf("SC_PAGESIZE")
SIZE = 64 * PAGE


def write(path: Path, nbytes: int = SIZE) -> str:
    with path.open("wb") as out:
        out.write(os.urandom(nbytes))
        os.fsync(out.fileno())
    return str(path)


@contextmanager
def opened(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def evictable(tmp_path: Path) -> Path:
    """A directory whose kernel and filesystem can tell and evict; otherwise the test is skipped."""
    with opened(write(tmp_path / "probe")) as fd:
        if cold.resident(fd, SIZE) is None:
            pytest.skip("this kernel has no cachestat (Linux 6.5)")
        if not evicted(fd, advise):
            pytest.skip("this filesystem does not evict pages (tmpfs?)")
    return tmp_path


def advise(fd: int) -> None:
    """What `evict` should do, without it."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def evicted(fd: int, how: Callable[[int], None] = cold.evict) -> bool:
    for _ in range(50):  # pages that are being written back stay for a moment
        how(fd)
        if cold.resident(fd, SIZE) == 0:
            return True
        time.sleep(0.001)
    return False


def test_evicting_makes_a_file_cold_and_no_other(evictable: Path) -> None:
    with opened(write(evictable / "one")) as fd, opened(write(evictable / "other")) as other:
        assert cold.resident(fd, SIZE) == cold.resident(other, SIZE) == SIZE
        assert evicted(fd)
        assert cold.resident(other, SIZE) == SIZE


def test_part_of_a_file_may_be_resident(evictable: Path) -> None:
    with opened(write(evictable / "file")) as fd:
        assert evicted(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(fd, 1, 5 * PAGE)
        there = cold.resident(fd, SIZE)
    assert there is not None
    assert PAGE <= there < SIZE


def test_no_more_than_a_file_s_bytes_count_as_resident(evictable: Path) -> None:
    with opened(write(evictable / "file", 100)) as fd:
        assert cold.resident(fd, 100) == 100  # not a page


def test_a_kernel_that_cannot_tell_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_CACHESTAT", 1 << 20)  # no such system call
    with opened(write(tmp_path / "file")) as fd:
        assert cold.resident(fd, SIZE) is None


def test_what_cannot_be_evicted_is_no_error() -> None:
    reading, writing = os.pipe()
    cold.evict(reading)
    os.close(reading)
    os.close(writing)


def test_a_file_that_a_library_opened_is_known_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path / "file")
    (tmp_path / "link").symlink_to(path)
    assert cold.own_descriptors(path) == []
    with opened(path) as fd:
        assert cold.own_descriptors(path) == cold.own_descriptors(str(tmp_path / "link")) == [fd]
