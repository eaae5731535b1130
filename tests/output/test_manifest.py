"""Directories are marked as ours, and nothing is ever written into a foreign one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tierscope.errors import ForeignDirectoryError, ResultError, UserError
from tierscope.output import documents, manifest


def listing(directory: Path) -> dict[str, bytes | None]:
    """Everything below a directory, with its content."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def refused(directory: Path, kind: str = "tier") -> UserError:
    """The error for claiming the directory, which is one line that names it and changes nothing in it."""
    before = listing(directory.parent)
    with pytest.raises(UserError) as caught:
        manifest.claim(str(directory), kind)
    assert listing(directory.parent) == before
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(directory))
    return caught.value


def mark(directory: Path, content: Any) -> Path:
    directory.mkdir()
    (directory / manifest.NAME).write_text(content if isinstance(content, str) else json.dumps(content))
    return directory


def test_a_new_directory_is_made_and_marked(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    assert manifest.claim(str(directory), "tier") == {}
    assert json.loads((directory / "tierscope.json").read_text()) == {
        "schema_version": 1,
        "made_by": "tierscope",
        "kind": "tier",
    }
    assert list(listing(tmp_path)) == ["a", "a/b", "a/b/tierscope.json"]  # nothing temporary is left


def test_an_empty_directory_is_marked(tmp_path: Path) -> None:
    manifest.claim(str(tmp_path), "tier")
    assert manifest.read(str(tmp_path)) is not None


def test_our_own_directory_is_read_whatever_it_holds(tmp_path: Path) -> None:
    manifest.claim(str(tmp_path), "dataset")
    manifest.write(str(tmp_path), "dataset", {"complete": True})
    (tmp_path / "000000001.raw").write_bytes(b"data")
    found = manifest.claim(str(tmp_path), "dataset")
    assert found["complete"] is True
    assert (tmp_path / "000000001.raw").read_bytes() == b"data"


def test_what_a_killed_marking_left_is_no_foreign_file(tmp_path: Path) -> None:
    (tmp_path / "tierscope.json.123.tmp").write_text("{")
    assert manifest.claim(str(tmp_path), "tier") == {}


@pytest.mark.parametrize("name", ["thesis.tex", ".hidden", "folder/"])
def test_a_foreign_directory_is_refused(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "home"
    (directory / name).parent.mkdir(parents=True)
    if name.endswith("/"):
        (directory / name).mkdir()
    else:
        (directory / name).write_text("years of work")
    error = refused(directory)
    assert isinstance(error, ForeignDirectoryError)
    assert "not created by Tierscope" in str(error)
    assert name.rstrip("/") in str(error)
    assert str(directory / "tierscope") in str(error)  # what to do instead


def test_another_kind_of_ours_is_refused(tmp_path: Path) -> None:
    directory = mark(tmp_path / "ours", {"schema_version": 1, "kind": "result"})
    error = refused(directory, "tier")
    assert isinstance(error, ForeignDirectoryError)
    assert "result" in str(error)
    assert "tier" in str(error)


@pytest.mark.parametrize("content", ['{"schema_ver', "", "\0\1\2"])
def test_a_damaged_marker_is_refused(tmp_path: Path, content: str) -> None:
    error = refused(mark(tmp_path / "ours", content))
    assert isinstance(error, ResultError)
    assert "is damaged" in str(error)


def test_a_marker_that_is_not_text_is_refused(tmp_path: Path) -> None:
    directory = mark(tmp_path / "ours", "")
    (directory / manifest.NAME).write_bytes(b"\xff\xfe\xfd")
    assert "is damaged" in str(refused(directory))


@pytest.mark.parametrize("content", [{}, [], {"schema_version": "1"}, {"kind": "tier"}])
def test_somebody_else_s_tierscope_json_is_refused(tmp_path: Path, content: Any) -> None:
    assert "not a Tierscope marker" in str(refused(mark(tmp_path / "ours", content)))


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    error = refused(mark(tmp_path / "ours", {"schema_version": 2, "kind": "tier"}))
    assert isinstance(error, ResultError)
    assert "schema version 2 is newer" in str(error)
    assert "update" in str(error)


def test_a_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert "is a file" in str(refused(tmp_path / "file"))


def test_a_file_inside_the_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match="sub/dir: part of this path is a file"):
        manifest.claim(str(tmp_path / "file" / "sub" / "dir"), "tier")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir(mode=0o555)
    assert "permission denied" in str(refused(directory))


def test_no_permission_is_one_line_for_root_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, content: bytes) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(documents, "write_file", refuse)
    directory = tmp_path / "tier"
    directory.mkdir()
    assert "permission denied; change its mode" in str(refused(directory))


def test_a_filesystem_that_cannot_be_written_is_named() -> None:
    with pytest.raises(
        UserError, match=r"^/proc/tierscope: (cannot be used: .+|permission denied; .+) choose another directory$"
    ):
        manifest.claim("/proc/tierscope", "tier")


def test_a_link_to_nothing_is_refused_before_anything_takes_long(tmp_path: Path) -> None:
    """As `claim` refuses it."""
    (tmp_path / "out").symlink_to("nowhere")
    for refuse in (manifest.check, manifest.claim):
        with pytest.raises(UserError, match="is a file, not a directory; choose a directory"):
            refuse(str(tmp_path / "out"), "tender")
    manifest.check(str(tmp_path / "new"), "tender")
    assert not (tmp_path / "new").exists()


def test_a_file_that_the_mark_does_not_list_is_not_replaced(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    manifest.claim(out, "report")
    manifest.put(out, {"report.html": b"ours"})
    manifest.put(out, {"report.html": b"ours again"})
    (tmp_path / "out" / "summary.json").write_text("mine")
    with pytest.raises(ForeignDirectoryError, match=r"summary\.json: was not created by Tierscope; move it away"):
        manifest.put(out, {"report.html": b"new", "summary.json": b"ours"})
    assert (tmp_path / "out" / "summary.json").read_text() == "mine"
    assert (tmp_path / "out" / "report.html").read_text() == "ours again"


def test_a_log_that_the_mark_does_not_list_is_not_replaced(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    manifest.claim(out, "trace")
    manifest.record_logs(out, ["a.darshan"])
    assert manifest.recorded_logs(out) == ["a.darshan"]
    (tmp_path / "out" / "logs").mkdir()
    (tmp_path / "out" / "logs" / "b.darshan").write_text("mine")
    with pytest.raises(ForeignDirectoryError, match=r"logs/b\.darshan: was not created by Tierscope"):
        manifest.record_logs(out, ["b.darshan"])


def test_more_logs_than_a_mark_can_hold_are_not_listed(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    manifest.claim(out, "trace")
    manifest.record_logs(out, [f"{number:0100d}.darshan" for number in range(10_000)])
    assert manifest.recorded_logs(out) == []
