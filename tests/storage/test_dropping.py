"""Names and inodes out of this host's caches: only where it is allowed, and one line where it is not. Nothing is dropped here for real."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tierscope.errors import UserError
from tierscope.storage import dropping


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the kernel's."""
    path = tmp_path / "drop_caches"
    path.write_text("")
    monkeypatch.setattr(dropping, "_DROP", str(path))
    monkeypatch.setattr(dropping, "_block_device", lambda _path: None)
    monkeypatch.setattr(dropping, "sync_filesystem", lambda _path: None)
    return path


def test_names_and_inodes_are_dropped_not_pages(switch: Path, tmp_path: Path) -> None:
    dropping.drop_metadata([str(tmp_path)])
    assert switch.read_text() == "2\n"


def test_without_a_real_tier_nothing_is(switch: Path) -> None:
    dropping.drop_metadata([])
    assert switch.read_text() == ""


def test_whoever_may_not_is_told_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropping, "_DROP", str(tmp_path / "none"))
    for attempt in (dropping.check_metadata, dropping.drop_metadata):
        with pytest.raises(
            UserError, match=r"^workload\.reader\.evict = metadata .* needs root .*; run as root, or set evict: true"
        ):
            attempt([str(tmp_path)])


def test_a_kernel_that_refuses_is_no_cold_run(switch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_fd: int, _data: bytes) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "write", refused)
    with pytest.raises(UserError, match=r"writing to .*drop_caches failed: Read-only file system; run as root"):
        dropping.drop_metadata([str(tmp_path)])


class TestLustre:
    @pytest.fixture(autouse=True)
    def _on_lustre(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dropping, "filesystem_of", lambda _path: "lustre")

    def test_locks_are_released_first(self, switch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[tuple[str, ...]] = []

        def run(words: tuple[str, ...], **_: object) -> None:
            assert switch.read_text() == ""
            calls.append(words)

        monkeypatch.setattr(shutil, "which", lambda name: f"/sbin/{name}")
        monkeypatch.setattr(subprocess, "run", run)
        dropping.drop_metadata([str(tmp_path), str(tmp_path)])
        assert calls == [("lctl", "set_param", "-n", "ldlm.namespaces.*.lru_size=clear")]
        assert switch.read_text() == "2\n"

    def test_without_the_tool_it_is_refused(
        self, switch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "which", lambda _name: None)
        with pytest.raises(UserError, match=r"on Lustre, .* lctl, .* is not installed; install it, or set evict: true"):
            dropping.drop_metadata([str(tmp_path)])
        assert switch.read_text() == ""

    def test_a_tool_that_fails_is_no_cold_run(
        self, switch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(*_: object, **__: object) -> None:
            raise subprocess.CalledProcessError(1, "lctl")

        monkeypatch.setattr(shutil, "which", lambda name: f"/sbin/{name}")
        monkeypatch.setattr(subprocess, "run", failing)
        with pytest.raises(UserError, match=r"'lctl set_param .*' failed; run as root"):
            dropping.drop_metadata([str(tmp_path)])
        assert switch.read_text() == ""
