"""Directories that somebody else prepared: every trap is refused with one line, and nothing outside is read or written."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny import TINY, tiny
from tierscope.errors import ForeignDirectoryError, ResultError, SpecError, TierscopeError, UserError
from tierscope.output import manifest
from tierscope.output.durable import write_file
from tierscope.output.result import make_scratch, open_result, read_study
from tierscope.output.store import RunStore
from tierscope.report.folder import claim_folder, put_files, write_files
from tierscope.report.summary import wanted_before
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.load import load_study, parse_study

MARKS = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "endless number": '{"schema_version": ' + "1" * 5_000 + "}",
    "huge number": '{"schema_version": 1e999}',
    "not a number": '{"schema_version": NaN}',
    "negative text": '{"schema_version": "-1"}',
    "list": "[]",
    "newer": '{"schema_version": 99}',
    "binary": "\x00\xff",
    "empty": "",
    "huge": '{"schema_version": 1, "kind": "' + "x" * (1 << 20) + '"}',
}


@pytest.mark.parametrize("text", MARKS.values(), ids=MARKS)
def test_a_hostile_mark_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / manifest.NAME).write_text(text, encoding="latin-1")
    with pytest.raises(ResultError) as caught:
        manifest.claim(str(tmp_path), "result")
    assert str(caught.value).startswith(f"{tmp_path}/{manifest.NAME}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert os.listdir(tmp_path) == [manifest.NAME]


def test_a_kind_that_is_a_path_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / manifest.NAME).write_text('{"schema_version": 1, "kind": "../../etc"}')
    with pytest.raises(UserError, match=r"contains Tierscope's \.\./\.\./etc, not a tier"):
        manifest.claim(str(tmp_path), "tier")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_out(path: Path) -> None:
    target = path.parent.parent / "precious"
    target.write_text('{"schema_version": 1, "kind": "result"}')
    path.symlink_to(target)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("trap", [pipe, link_out, endless])
def test_a_mark_that_is_no_file_is_not_waited_for(trap: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    trap(folder / manifest.NAME)
    with pytest.raises(ResultError, match="is a link or not a regular file"):
        manifest.claim(str(folder), "result")


@pytest.mark.parametrize("trap", [pipe, link_out, endless])
def test_results_that_are_no_files_are_not_waited_for(trap: Callable[[Path], None], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with open_result(str(out), tiny()):
        pass
    (out / "runs").mkdir()
    trap(out / "runs" / "0000-r1.parquet")
    with pytest.raises(TierscopeError, match=r"0000-r1\.parquet: cannot be read"):
        list(RunStore(str(out)).load_all())
    (out / "study.yaml").unlink()
    trap(out / "study.yaml")
    with pytest.raises(ResultError, match="cannot be read"):
        read_study(str(out))


@pytest.mark.parametrize("trap", [pipe, link_out, endless])
def test_a_summary_that_is_no_file_is_not_waited_for(trap: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    trap(tmp_path / "out" / "summary.json")
    assert wanted_before(str(tmp_path / "out")) == MetricOptions()


@pytest.mark.parametrize("trap", [pipe, endless])
@pytest.mark.parametrize("name", ["study.yaml", "study"])
def test_a_study_that_is_no_file_is_not_waited_for(name: str, trap: Callable[[Path], None], tmp_path: Path) -> None:
    trap(tmp_path / name)
    with pytest.raises(UserError, match=rf"{name}: is not a regular file; name the YAML file of a study, or a preset$"):
        load_study(str(tmp_path / name))


def test_an_endless_study_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "study.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="larger than 1 MiB"):
        load_study(str(tmp_path / "study.yaml"))


@pytest.mark.parametrize("name", ["runs", "ops", "logs", "figures", ".scratch"])
def test_nothing_is_written_or_deleted_where_a_folder_of_a_result_leads(name: str, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    with open_result(str(out), tiny()):
        pass
    victim.mkdir()
    (victim / "report.2024.tmp").write_text("mine")
    (victim / "old.svg").write_text("mine")
    (out / name).symlink_to(victim)
    with pytest.raises(
        ForeignDirectoryError, match=rf"/out/{name}: is a symbolic link, .*; replace it with a directory"
    ):
        open_result(str(out), tiny()).__enter__()
    for write in (put_files, write_files):
        with pytest.raises(ForeignDirectoryError, match=rf"/out/{name}: is a symbolic link"):
            write(str(out), {"figures/new.svg": b""}, ["old"])
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"report.2024.tmp": "mine", "old.svg": "mine"}


def test_a_result_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "there")
    for folder in (str(tmp_path / "out"), claim_folder(str(tmp_path / "out"), "result")):
        (tmp_path / "there" / "study.yaml.1.tmp").touch()
        with open_result(folder, tiny()):
            assert not (tmp_path / "there" / "study.yaml.1.tmp").exists()


BOMB = "\n".join(
    [
        "a: &a [x, x, x, x, x, x, x, x]",
        *(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    ]
)
STUDIES = {
    "bomb": BOMB,
    "itself": "a: &a [*a]",
    "object": "study: !!python/object/apply:os.system ['id']",
    "deep": "[\n" * 5_000,
    "huge number": TINY.replace("seed: 7", "seed: " + "9" * 10_000),
    "up": TINY.replace("study: tiny", "study: ../../up"),
    "endless text": TINY.replace("seed: 7", "seed: 7 #" + "x" * (1 << 20)),
}


@pytest.mark.parametrize("text", STUDIES.values(), ids=STUDIES)
def test_a_hostile_study_in_a_result_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        parse_study(text, "study.yaml")
    assert "\n" not in str(caught.value)
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(TierscopeError):
        read_study(str(tmp_path))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """A link under the name that our temporary file will have."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target = tmp_path / "file.json"
    (tmp_path / f"file.json.{os.getpid()}.tmp").symlink_to(precious)
    write_file(str(target), b"ours")
    assert precious.read_text() == "mine"
    assert target.read_bytes() == b"ours"
    assert not target.is_symlink()


def test_scratch_is_nobody_elses(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = make_scratch(str(tmp_path), "ops")
    finally:
        os.umask(old)
    for folder in (made, os.path.dirname(made)):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
