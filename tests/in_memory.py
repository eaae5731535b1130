"""Folders of tests in memory, where there is room: thousands of small files take a tenth of the time there, and no disk is waited for.

For modules that ask what is in files, not what the device below does: those that evict pages, read past the page cache or sync keep the disk.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = "/dev/shm"
ENOUGH_BYTES = 1 << 30  # containers often have 64 MiB


def _has_room() -> bool:
    try:
        there = os.statvfs(MEMORY)
    except OSError:
        return False
    return os.access(MEMORY, os.W_OK | os.X_OK) and there.f_bavail * there.f_frsize >= ENOUGH_BYTES


@pytest.fixture(scope="module")
def tmp_path_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pytest.TempPathFactory]:
    """For modules that import it: `tmp_path` is in memory too. What failed stays there to be looked at."""
    if not _has_room():
        yield tmp_path_factory
        return
    base = tempfile.mkdtemp(prefix="tierscope-tests-", dir=MEMORY)
    failed = request.session.testsfailed
    in_memory = pytest.TempPathFactory(
        Path(base) / "base",
        tmp_path_factory._retention_count,
        tmp_path_factory._retention_policy,
        tmp_path_factory._trace,
        _ispytest=True,
    )
    yield in_memory
    if request.session.testsfailed == failed:
        shutil.rmtree(base, ignore_errors=True)
