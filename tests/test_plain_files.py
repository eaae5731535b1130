"""Files that are read: plain ones only, nothing is waited for, nothing is larger than what is wanted."""

import errno
import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tierscope.plain_files import FileState, open_plain, read_plain


def refused(path: Path | str, number: int, **options: bool | int) -> str:
    with pytest.raises(OSError) as caught:  # noqa: PT011  (its number is looked at)
        open_plain(str(path), **options)  # type: ignore[arg-type]
    assert caught.value.errno == number
    assert caught.value.filename == str(path)
    return str(caught.value.strerror)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        made.bind(path.name)


OTHERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.mkdir(), "a directory"),
    (os.mkfifo, "a pipe"),
    (make_socket, "a socket"),
    (lambda path: path.symlink_to("/dev/zero"), "a device"),
]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_like_others(name: str) -> None:
    assert refused(name, errno.EINVAL) == "is not a name that a file can have"


@pytest.mark.parametrize(("make", "kind"), OTHERS)
def test_what_is_no_plain_file_is_named_at_once(make: Callable[[Path], object], kind: str, tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert refused(tmp_path / "x", errno.EINVAL, follow=True) == f"is not a regular file but {kind}"


def test_a_link_is_followed_where_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    (tmp_path / "link").symlink_to("x")
    with open_plain(str(tmp_path / "link"), follow=True) as file:
        assert file.read() == b"text"
    assert "is a link" in refused(tmp_path / "link", errno.ELOOP)


def test_a_name_may_be_below_an_open_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_plain("x", 10, dir_fd=fd) == b"text"
    finally:
        os.close(fd)


def test_what_is_missing_keeps_its_error(tmp_path: Path) -> None:
    refused(tmp_path / "gone", errno.ENOENT)


def test_no_more_than_wanted_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_plain(str(tmp_path / "x"), 5) == b"12345"
    assert refused(tmp_path / "x", errno.EFBIG, most_bytes=4).startswith("is too large (5 B, and at most 4 B")


def test_a_file_that_seems_empty_is_bounded_all_the_same() -> None:
    """As files of /proc, or one that grows meanwhile."""
    with pytest.raises(OSError, match="is too large"):
        read_plain("/proc/self/status", 100)


def test_no_descriptor_is_left_when_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    gc.collect()  # what earlier tests left is not ours
    before = len(os.listdir("/proc/self/fd"))
    refused(tmp_path / "x", errno.EFBIG, most_bytes=4)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_change_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    with open_plain(str(path)) as file:
        before = FileState.of(file.fileno())
        assert FileState.of(file.fileno()) == before
        path.write_bytes(b"1234")
        assert FileState.of(file.fileno()) != before
