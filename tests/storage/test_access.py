"""The plainest ways to files."""

import os
from pathlib import Path

from tierscope.storage.access import READ_FLAGS, Directory, Nothing


def test_a_directory_is_the_system_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    access = Directory()
    fd = access.open(str(tmp_path / "file"), READ_FLAGS)
    buffer = bytearray(4)
    assert access.preadv(fd, [memoryview(buffer)], 3) == 4
    assert bytes(buffer) == b"3456"
    access.close(fd)
    assert access.stat(str(tmp_path / "file")).st_size == 10
    assert (access.open, access.preadv, access.close) == (os.open, os.preadv, os.close)  # no frame in between
    assert (access.pwrite, access.sync) == (os.pwrite, os.fsync)


def test_nothing_answers_as_if_all_was_read_without_a_file() -> None:
    access = Nothing()
    fd = access.open("/no/such/file", READ_FLAGS)
    buffer = bytearray(b"left as it was")
    assert access.preadv(fd, [memoryview(buffer)], 0) == len(buffer)
    access.close(fd)
    assert buffer == b"left as it was"
