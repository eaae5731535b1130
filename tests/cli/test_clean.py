"""`tierscope clean`: it shows, asks, and deletes what is ours; nothing else."""

import fcntl
import io
import os
from pathlib import Path

import pytest

from tests.tiny import TINY
from tierscope.cli.main import main
from tierscope.data import manifest


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A finished study with its data inside."""
    (tmp_path / "study.yaml").write_text(TINY)
    assert call("run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out"), "--quiet", "--json") == 0
    return tmp_path / "out"


def answering(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_a_result_goes_with_the_data_inside_it(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    assert f"{out}  result, " in said
    assert f"{out}/tiers/gfs  tier, " in said
    assert "dataset, 25 files, " in said  # 24 and the mark
    assert "deleted: " in said
    assert not out.exists()


def test_it_asks_and_takes_no_for_an_answer(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(out)
    for answer in ("n\n", "\n", "what?\n"):
        answering(answer, monkeypatch)
        assert call("clean", str(out)) == 0
        assert "nothing was deleted" in capsys.readouterr().out
    assert files(out) == before
    answering("", monkeypatch)
    assert call("clean", str(out)) == 2
    assert "nothing was deleted; --yes" in capsys.readouterr().err
    assert files(out) == before
    answering("y\n", monkeypatch)
    assert call("clean", str(out)) == 0
    assert not out.exists()


def test_data_goes_and_results_stay(out: Path) -> None:
    assert call("clean", str(out), "--data", "--yes") == 0
    assert not list(out.rglob("*.raw"))
    assert len(list((out / "runs").glob("*.parquet"))) == 3
    assert call("analyze", str(out), "--json") == 0
    assert call("run", str(out / "study.yaml"), "--out", str(out), "--quiet", "--json") == 0


def test_a_tier_goes_alone(out: Path) -> None:
    assert call("clean", str(out / "tiers" / "gfs"), "--yes") == 0
    assert not (out / "tiers" / "gfs").exists()
    assert list((out / "tiers" / "lfs").rglob("*.raw"))


def test_what_is_not_ours_is_kept_and_named(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "outside"
    (outside / "runs").mkdir(parents=True)
    (outside / "runs" / "000000001.raw").write_text("mine")
    dataset = next((out / "tiers" / "gfs").glob("raw-*"))
    strangers = {
        out / "notes.txt": "mine",
        out / "tiers" / "mine.raw": "mine",
        dataset / "paper.pdf": "mine",
        out / "tiers" / "gfs" / "photos" / "000000001.raw": "mine",
    }
    for path, text in strangers.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    links = [out / "figures" / "link", dataset / "000000099.raw", out / "tiers" / "gfs" / "raw-link"]
    for link in links:
        link.symlink_to(outside / "runs")
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    for path in (*strangers, *links):
        shown = path.parent if path.parent.name == "photos" else path
        assert f"kept, not ours: {str(shown)!r}" in said
    assert {path: path.read_text() for path in strangers} == strangers
    assert all(link.is_symlink() for link in links)
    assert (outside / "runs" / "000000001.raw").read_text() == "mine"
    assert not list(out.rglob("*.parquet"))
    for marked in (out, out / "tiers" / "gfs", dataset):
        assert manifest.read(str(marked)), "a directory that holds something keeps its mark"


@pytest.mark.parametrize("what", ["foreign", "link", "link/", "file", "missing"])
def test_all_else_is_refused(what: str, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "000000001.raw").write_text("mine")
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "file").write_text("mine")
    before = files(tmp_path)
    capsys.readouterr()
    assert call("clean", f"{tmp_path}/{what}", "--yes") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path) in line
    assert files(tmp_path) == before


@pytest.mark.parametrize("place", [".", "tiers/gfs"])
def test_what_is_in_use_is_refused(place: str, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(out)
    with (out / place / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for target in (out, next((out / "tiers" / "gfs").glob("raw-*")) if place != "." else out):
            capsys.readouterr()
            assert call("clean", str(target), "--yes") == 2
            assert "is in use by another command" in capsys.readouterr().err
    assert files(out) == before


def test_a_hostile_study_leads_nowhere(out: Path, tmp_path: Path) -> None:
    """Its tiers are said to be in a directory that is not ours, or reached through a link."""
    foreign = tmp_path / "foreign"
    name = next((out / "tiers" / "gfs").glob("raw-*")).name
    (foreign / name).mkdir(parents=True)
    (foreign / name / "000000001.raw").write_text("mine")
    study = out / "study.yaml"
    study.write_text(study.read_text().replace("{out}/tiers/gfs", str(foreign)))
    assert call("clean", str(out), "--data", "--yes") == 2
    (foreign / name).rename(tmp_path / "elsewhere")
    (foreign / name).symlink_to(tmp_path / "elsewhere")
    assert call("clean", str(out), "--data", "--yes") == 2
    assert (tmp_path / "elsewhere" / "000000001.raw").read_text() == "mine"


def test_a_directory_without_permission_is_told(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may do anything")
    (out / "runs").chmod(0o500)
    try:
        assert call("clean", str(out), "--yes") == 2
    finally:
        (out / "runs").chmod(0o700)
    assert "cannot be deleted: Permission denied" in capsys.readouterr().err
