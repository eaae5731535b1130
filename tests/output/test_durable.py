"""Either the old file or the new one, whatever happens in between."""

import gc
import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

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
    gc.collect()  # what earlier tests left is not ours
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


def swapping_at(monkeypatch: pytest.MonkeyPatch, folder: Path, victim: Path, call: str) -> None:
    """Whoever owns the folder puts links to the victim in the place of all temporary files, just after this call of the system."""
    really = getattr(os, call)

    def swap(*arguments: Any, **named: Any) -> Any:
        result = really(*arguments, **named)
        for path in folder.glob("*tmp*"):
            path.unlink()
            path.symlink_to(victim)
        return result

    monkeypatch.setattr(os, call, swap)


@pytest.mark.parametrize("call", ["open", "close", "fdopen", "fsync", "unlink"])
def test_a_link_in_the_place_of_the_temporary_file_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "out").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("only root's")
    with monkeypatch.context() as swapped:
        swapping_at(swapped, tmp_path / "out", victim, call)
        with suppress(OSError):
            durable.write_file(str(tmp_path / "out" / "study.yaml"), b"ours")
    assert victim.read_text() == "only root's"


def test_whoever_owns_the_folder_gains_nothing_by_being_quick(tmp_path: Path) -> None:
    out, victim, ended = tmp_path / "out", tmp_path / "victim", threading.Event()
    (out / "runs").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    victim.write_text("only root's")

    def swap() -> None:
        while not ended.is_set():
            for entry in os.scandir(out / "runs"):
                if "tmp" in entry.name:
                    with suppress(OSError):
                        os.unlink(entry.path)
                        os.symlink(victim, entry.path)
            with suppress(OSError):
                os.rename(out / "runs", out / "away")
                os.symlink(tmp_path / "elsewhere", out / "runs")
                os.unlink(out / "runs")
                os.rename(out / "away", out / "runs")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(200):
            with suppress(OSError):
                durable.write_file(str(out / "runs" / f"{number}"), b"ours", str(out), make=False)
    finally:
        ended.set()
        thread.join()
    assert victim.read_text() == "only root's"
    assert not os.listdir(tmp_path / "elsewhere")


@pytest.mark.parametrize("make", [False, True])
def test_a_folder_that_is_a_link_is_refused_from_the_root_on(tmp_path: Path, make: bool) -> None:
    (tmp_path / "there" / "sub").mkdir(parents=True)
    (tmp_path / "out").symlink_to(tmp_path / "there")
    (tmp_path / "there" / "runs").symlink_to(tmp_path)
    durable.write_file(str(tmp_path / "out" / "sub" / "file"), b"x", str(tmp_path / "out"), make)
    with pytest.raises(OSError, match="symbolic links") as caught:
        durable.write_file(str(tmp_path / "out" / "runs" / "file"), b"x", str(tmp_path / "out"), make)
    assert caught.value.filename == str(tmp_path / "out" / "runs")
    assert not (tmp_path / "file").exists()


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("x")
    with pytest.raises(NotADirectoryError) as caught:
        durable.write_file(str(tmp_path / "runs" / "file"), b"x", str(tmp_path))
    assert caught.value.filename == str(tmp_path / "runs")


class TestNamed:
    """Files that the user named."""

    def write(self, path: Path | str, content: bytes = b"new") -> None:
        with durable.writing_named(str(path)) as file:
            file.write(content)

    def test_what_a_link_leads_to_is_replaced_and_the_link_stays(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "table").write_text("old")
        os.link(tmp_path / "there" / "table", tmp_path / "other name")
        (tmp_path / "link").symlink_to("there/table")
        self.write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "table").read_bytes() == b"new"
        assert (tmp_path / "other name").read_text() == "old"

    def test_its_mode_stays(self, tmp_path: Path) -> None:
        (tmp_path / "table").write_text("old")
        (tmp_path / "table").chmod(0o600)
        self.write(tmp_path / "table")
        assert stat.S_IMODE((tmp_path / "table").stat().st_mode) == 0o600

    def test_a_failure_leaves_what_was_there(self, tmp_path: Path) -> None:
        (tmp_path / "table").write_text("old")
        with pytest.raises(ZeroDivisionError), durable.writing_named(str(tmp_path / "table")) as file:  # noqa: PT012
            file.write(b"new")
            raise ZeroDivisionError
        assert (tmp_path / "table").read_text() == "old"
        assert os.listdir(tmp_path) == ["table"]

    def test_pipes_and_devices_are_written_to(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.write(tmp_path / "pipe")
        assert os.read(reader, 10) == b"new"
        os.close(reader)
        self.write("/dev/null")
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    def test_standard_output_is_continued(self, tmp_path: Path) -> None:
        program = "import os; os.write(1, b'before '); from tierscope.output.durable import writing_named\nwith writing_named('/dev/stdout') as out: out.write(b'new')\nos.write(1, b' behind')"
        with (tmp_path / "said").open("wb") as said:
            subprocess.run([sys.executable, "-c", program], stdout=said, check=True)
        assert (tmp_path / "said").read_bytes() == b"before new behind"
