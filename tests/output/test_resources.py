"""What is missing is named, and never called damage: following "move it away" would cost data."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pytest

from tests.cli.test_commands import one_line
from tierscope.cli.main import main
from tierscope.errors import ResultError, StoppedError, TierscopeError
from tierscope.native import state
from tierscope.output import tables, typed_documents
from tierscope.output.store import RunStore
from tierscope.output.typed_documents import read_typed
from tierscope.recording.collect import collect
from tierscope.thread_limits import room_for_tables
from tierscope.trace.trace import RunKey
from tierscope.tuning.kept import KEPT

RESULTS = Path(__file__).parent.parent / "golden" / "results"
KEY = RunKey(0, 1)


def ended(*arguments: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


@pytest.mark.parametrize("threads", ["0", "99999999999", "000"])
def test_threads_that_polars_cannot_start(
    threads: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", threads)
    assert ended("analyze", str(RESULTS / "measured")) == 2
    said = one_line(capsys)
    assert f"POLARS_MAX_THREADS = {threads} in the environment; must be within 1" in said
    assert ended("--help") == 0
    with pytest.raises(TierscopeError, match="POLARS_MAX_THREADS"):
        RunStore(str(RESULTS / "measured")).load(KEY)


@pytest.mark.parametrize("room_bytes", [500_000 << 10, 900_000 << 10])
def test_too_little_address_space_is_told(room_bytes: int) -> None:
    """Polars ends the process where it gets no memory, with lines of its own."""
    command = [sys.executable, "-m", "tierscope.cli.main", "analyze", str(RESULTS / "measured")]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (room_bytes, room_bytes))

    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, timeout=60, check=False)
    assert ended.returncode == 3
    assert ended.stderr.count("\n") == 1
    assert "tables cannot be read: not enough memory; raise the limit on address space (ulimit -v, now" in ended.stderr


@pytest.mark.parametrize(("threads", "gib"), [("1", 1.2), ("2", 1.3), ("8", 1.6), ("128", 2.6)])
def test_room_for_tables(threads: str, gib: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", threads)
    assert room_for_tables() == pytest.approx(gib * (1 << 30), rel=0.08)


def test_polars_that_can_do_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is damaged only where Polars can do the same to a good one."""

    def panic(*_: Any, **__: Any) -> NoReturn:
        raise pl.exceptions.ComputeError("OS can't spawn worker thread: (os error 11)")

    monkeypatch.setattr(pl, "read_parquet_metadata", panic)
    with pytest.raises(StoppedError, match=r"r1\.parquet: cannot be read: OS can't spawn .*the file is not damaged"):
        RunStore(str(RESULTS / "measured")).load(KEY)
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(StoppedError, match="tables cannot be read: Polars reports"):
        RunStore(str(RESULTS / "measured")).load(KEY)


@pytest.mark.parametrize(
    ("number", "kind", "fix"),
    [
        (errno.EMFILE, StoppedError, "ulimit -n"),
        (errno.ENFILE, StoppedError, "close other programs"),
        (errno.ENOMEM, StoppedError, "more memory"),
        (errno.EACCES, ResultError, "change its mode or restore it"),
        (errno.EIO, StoppedError, "when the storage is back"),
        (errno.ESTALE, StoppedError, "when the storage is back"),
        (errno.ELOOP, ResultError, "it is a link or not a regular file"),
    ],
)
def test_what_the_system_refuses_is_not_damage(
    monkeypatch: pytest.MonkeyPatch, number: int, kind: type[TierscopeError], fix: str
) -> None:
    def refuse(path: str) -> NoReturn:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(tables, "open_plain", refuse)
    monkeypatch.setattr(typed_documents, "open_plain", refuse)
    for look in (lambda: RunStore(str(RESULTS / "measured")).load(KEY), lambda: read_typed("tune.json", KEPT)):
        with pytest.raises(kind) as caught:
            look()
        assert fix in str(caught.value)
        assert "damaged;" not in str(caught.value)
        assert "move it away" not in str(caught.value)


def test_a_folder_named_like_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Polars takes `~` for the home directory; a user who writes it so that it gets here means the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    shutil.copytree(RESULTS / "measured", tmp_path / "~")
    assert ended("characterise", "~", "--json") == 0
    assert ended("analyze", "~", "--export", "perfetto", "~/trace.json", "--export", "parquet", "~/times.parquet") == 0
    assert (tmp_path / "~" / "times.parquet").exists()
    assert capsys.readouterr().err == ""
    store = RunStore("~")
    store.save(store.load(KEY))
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_no_table_is_still_damaged(tmp_path: Path) -> None:
    out = shutil.copytree(RESULTS / "measured", tmp_path / "out")
    path = Path(RunStore(str(out)).path(KEY))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultError, match="checksum mismatch"):
        RunStore(str(out)).load(KEY)


def test_records_that_cannot_be_opened_now_are_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged ones are counted, and removed with the rest."""
    (tmp_path / "1.state").write_bytes(b"x" * 8192)

    def refuse(path: str) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(state, "open_plain", refuse)
    with pytest.raises(StoppedError, match="Too many open files; all records are kept"):
        collect(str(tmp_path), ["gfs"], lambda _: False)
