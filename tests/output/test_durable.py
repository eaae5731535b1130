"""Either the old file or the new one, whatever happens in between."""

import os
from pathlib import Path

import pytest

from tierscope.output import durable


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"", b"x" * 100_000):
        durable.write_file(str(path), content)
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interruption_leaves_the_old_content_and_nothing_else(
    target: Path, monkeypatch: pytest.MonkeyPatch, call: str, failure: BaseException
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(failure)):
        durable.write_file(str(target), b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == ["file"]


def test_content_is_synced_before_the_rename_and_the_folder_after(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(fd: int) -> None:
        name = os.readlink(f"/proc/self/fd/{fd}")
        steps.append("folder" if os.path.isdir(name) else f"{os.path.getsize(name)} bytes")
        fsync(fd)

    def watched_replace(source: str, destination: str, **folders: int) -> None:
        steps.append("rename")
        replace(source, destination, **folders)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    durable.write_file(str(target), b"new content")
    assert steps == ["11 bytes", "rename", "folder"]


def test_a_bare_name_is_written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    durable.write_file("here", b"x")
    assert Path("here").read_bytes() == b"x"


def test_syncing_a_filesystem_needs_a_folder_that_is_there(tmp_path: Path) -> None:
    durable.sync_filesystem(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        durable.sync_filesystem(str(tmp_path / "gone"))


def test_descriptors_are_closed(target: Path) -> None:
    before = os.listdir("/proc/self/fd")
    durable.write_file(str(target), b"new")
    durable.sync_filesystem(str(target.parent))
    assert os.listdir("/proc/self/fd") == before


def test_the_boot_is_the_same_until_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert durable.boot_id() == durable.boot_id() != "unknown"

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert durable.boot_id() == "unknown"
