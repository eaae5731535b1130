"""`tierscope clean`: it shows, asks, and deletes what is ours; nothing else."""

import fcntl
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny import TINY
from tierscope.analysis import shuffling
from tierscope.cli.main import main
from tierscope.commands import kernels as kernels_report
from tierscope.commands import simulate, train
from tierscope.imports import logs as imports
from tierscope.output import folders, manifest, ours
from tierscope.probe import files as probe_files
from tierscope.recording import traced as trace
from tierscope.recording.darshan import Darshan
from tierscope.recording.dftracer import EPOCH_FILE, DFTracer
from tierscope.report import requirements_files as require_report
from tierscope.report.drawn import character, efficiency, requirements, training

pytestmark = pytest.mark.whole


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.yaml").write_text(TINY)
    assert call("run", str(folder / "study.yaml"), "--out", str(folder / "out"), "--ops", "--quiet", "--json") == 0
    return folder / "out"


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A finished study with its data inside."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def answering(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


class Meanwhile:
    """A standard input where somebody says yes, after something has happened."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._happens = happens

    def readline(self) -> str:
        self._happens()
        return "y\n"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_a_result_goes_with_the_data_inside_it(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    assert f"{out}  result, " in said
    assert f"{out}/tiers/gfs  tier, " in said
    assert "dataset, 26 files, " in said  # 24, the mark and their checksums
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
    assert "nothing was deleted; use --yes" in capsys.readouterr().err
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
    links = [out / "figures" / "link", dataset / "000000009.raw.part", out / "tiers" / "gfs" / "raw-link"]
    for link in links:
        link.symlink_to(outside / "runs")
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    for path in (*strangers, *links):
        shown = path.parent if path.parent.name == "photos" else path
        assert f"kept, not created by Tierscope: {str(shown)!r}" in said
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


def test_foreign_files_in_our_folders_are_kept_and_named(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = (
        *("runs/thesis.tex", "runs/thesis.2024.tmp", "runs/notes.parquet", "ops/0000-r1.parquet", "thesis.2024.tmp"),
        *(
            "figures/my-own.svg",
            "figures/time.pdf",
            "logs/notes.txt",
            "logs/0000-r1/notes.txt",
            "logs/a/b/mine.darshan",
        ),
        "tiers/gfs/thesis.2024.tmp",
    )
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    (out / "figures" / "mine").mkdir()
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    for name in (*names, "figures/mine"):
        shown = "logs/a" if name.startswith("logs/a/") else name
        assert f"kept, not created by Tierscope: {str(out / shown)!r}" in said
    assert files(out) == {*names, "tierscope.json", "lock", "tiers/gfs/tierscope.json", "tiers/gfs/lock"}
    assert (out / "figures" / "mine").is_dir()


OURS = (
    *("runs/0000-r1.parquet.77.tmp", "runs/12345-r10.parquet", "ops/0000-r1-node12.parquet", "ops/files.parquet"),
    *("summary.json", "tune.json", "training.json", "requirements.json", "efficiency.json", "shuffling.json"),
    *("report.html", "requirements.html", "report.html.1.tmp", "tierscope.json.1.tmp", "shuffling-resnet50.png"),
    *(f"figures/{name}.svg" for name in (*character.NAMES, *training.NAMES, *requirements.NAMES, efficiency.NAME)),
    *(f"logs/0000-r1/{name}" for name in (EPOCH_FILE, "trace-7.pfw.gz", "epoch-000001_me_id7_1-2-3-4.darshan")),
    *(f"logs/x{each.suffix.replace('*', '')}" for each in (Darshan, DFTracer)),
    *(".scratch/trace.json", ".scratch/profile-0000-r1/epoch-000001/2026/1/1/x.darshan", ".scratch/record/lock"),
)


def test_nothing_of_ours_is_left(out: Path) -> None:
    """Of a result whose mark does not list its files: it is of an older version."""
    manifest.write(str(out), "result", {})
    for name in OURS:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("ours")
    assert call("clean", str(out), "--yes") == 0
    assert not out.exists()


def test_only_files_that_the_mark_lists_are_ours(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that other commands give, but that none gave here."""
    mine = ("tune.json", "shuffling-mine.svg", "figures/roofline.svg")
    for name in mine:
        assert not (out / name).exists()
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    assert files(out) == {*mine, "tierscope.json", "lock"}
    said = capsys.readouterr().out
    assert all(f"kept, not created by Tierscope: {str(out / name)!r}" in said for name in mine)


@pytest.mark.parametrize("names", [["thesis.tex", "runs/x.txt", ".*", "../x", 7], "all", {"a": 1}, None])
def test_a_forged_mark_gains_no_name(out: Path, names: object) -> None:
    manifest.write(str(out), "result", {"names": names})
    for name in ("thesis.tex", "runs/x.txt"):
        (out / name).write_text("mine")
    (out.parent / "x").write_text("mine")
    assert call("clean", str(out), "--yes") == 0
    assert {"thesis.tex", "runs/x.txt"} <= files(out)
    assert (out.parent / "x").exists()


LOGS = ("logs/a.darshan", "logs/notes.pfw", "logs/0000-r1/b.darshan")


@pytest.mark.parametrize("kind", [kind for kind in ours.RESULTS if kind not in ours.WITH_RUNS])
def test_kinds_without_runs_have_none(tmp_path: Path, kind: str) -> None:
    """Whatever lies in folders of these names is somebody else's."""
    out = tmp_path / "out"
    mine = {*LOGS, "runs/2024-r1.parquet", "ops/files.parquet", ".scratch/record/x"}
    for name in mine:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    manifest.write(str(out), kind, {})
    assert call("clean", str(out), "--yes") == 0
    assert mine <= files(out)


def test_only_logs_that_the_mark_lists_are_ours(out: Path) -> None:
    recorded = ("c.darshan", "0000-r1/d.darshan")
    manifest.record_logs(str(out), recorded)
    for name in (*LOGS, *(f"logs/{name}" for name in recorded)):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("a log")
    assert call("clean", str(out), "--yes") == 0
    assert files(out) == {*LOGS, "tierscope.json", "lock"}


def test_logs_under_two_names_go(out: Path) -> None:
    """A traced command's are linked from where it writes them."""
    manifest.record_logs(str(out), ["x.pfw"])
    (out / "logs").mkdir()
    (out / ".scratch" / "record").mkdir(parents=True)
    (out / ".scratch" / "record" / "x.pfw").write_text("ours")
    os.link(out / ".scratch" / "record" / "x.pfw", out / "logs" / "x.pfw")
    assert call("clean", str(out), "--yes") == 0
    assert not out.exists()


def test_what_appears_before_the_answer_is_kept_and_not_counted(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = next((out / "tiers" / "gfs").glob("raw-*"))

    def happens() -> None:
        (out / "runs" / "0009-r1.parquet").write_text("new")
        (dataset / "000000009.raw.part").write_text("new")
        (out / "logs").mkdir()
        (out / "logs" / "new.darshan").write_text("new")
        (out / "notes.txt").write_text("mine")

    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", Meanwhile(happens))
    assert call("clean", str(out)) == 0
    said = capsys.readouterr().out
    for folder in (out / "runs", dataset, out / "logs"):
        assert f"kept, changed in the meantime: {str(folder)!r}" in said
    assert f"kept, not created by Tierscope: {str(out / 'notes.txt')!r}" in said
    for path in (out / "runs" / "0009-r1.parquet", dataset / "000000009.raw.part", out / "logs" / "new.darshan"):
        assert path.read_text() == "new"
    assert len(list((out / "runs").iterdir())) == 4
    assert not (out / "study.yaml").exists()
    assert not list((out / "tiers" / "lfs").rglob("*.raw"))
    asked, deleted = (int(said.split(f"{word} ")[1].split()[0]) for word in ("delete", "deleted:"))
    assert 0 < deleted < asked - 24


def test_what_is_replaced_before_the_answer_is_kept(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def happens() -> None:
        (out / "report.html").unlink()
        (out / "report.html").write_text("mine")

    monkeypatch.setattr("sys.stdin", Meanwhile(happens))
    assert call("clean", str(out)) == 0
    assert (out / "report.html").read_text() == "mine"
    assert manifest.read(str(out))


def test_a_folder_on_another_mount_is_kept_and_named(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mounted = {os.stat(folder).st_ino for folder in (out / "runs", out / "tiers" / "gfs")}
    monkeypatch.setattr(folders, "mount_of", lambda fd: str(os.fstat(fd).st_ino in mounted))
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    for folder in (out / "runs", out / "tiers" / "gfs"):
        assert f"kept, not created by Tierscope: {str(folder)!r}" in said
    assert len(list((out / "runs").glob("*.parquet"))) == 3
    assert list((out / "tiers" / "gfs").rglob("*.raw"))
    assert not list((out / "tiers" / "lfs").rglob("*.raw"))


MOUNTING = """
set -e
for place in runs logs/mnt tiers/gfs; do mount --bind "$VICTIM" "$OUT/$place"; done
mount --bind "$VICTIM/0000-r1.parquet" "$OUT/report.html"
exec "$@"
"""


def test_what_is_mounted_inside_is_not_deleted(out: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mounting needs root and a namespace of its own")
    victim = tmp_path / "victim"
    victim.mkdir()
    (out / "logs" / "mnt").mkdir(parents=True)
    for name in ("0000-r1.parquet", "x.darshan", "study.yaml", "thesis.tex"):
        (victim / name).write_text("mine")
    manifest.write(str(victim), "result", {})
    before = files(victim)
    command = [sys.executable, "-m", "tierscope.cli.main", "clean", str(out), "--yes"]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTING, "sh", *command],
        env={**os.environ, "VICTIM": str(victim), "OUT": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert files(victim) == before
    for place in ("runs", "logs/mnt", "tiers/gfs", "report.html"):
        assert f"kept, not created by Tierscope: {str(out / place)!r}" in done.stdout


def test_what_lies_too_deep_is_kept_and_named(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = "/".join("d" * 100)
    for folder in (out / deep, out / ".scratch" / "record" / deep):
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine")
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    assert f"kept, not created by Tierscope: {str(out / deep[: 2 * 65 - 1])!r}" in said
    assert f"kept, not created by Tierscope: {str(out / '.scratch' / 'record' / deep[: 2 * 63 - 1])!r}" in said
    assert files(out) == {"tierscope.json", "lock", f"{deep}/mine", f".scratch/record/{deep}/mine"}


HOSTILE = "\x1b]0;pwn\x07x\n/home/me  result"


@pytest.mark.parametrize("kind", [HOSTILE, "other", "", None, 7, ["result"], {"a": 1}, "x" * 100_000])
@pytest.mark.parametrize("place", [".", "tiers/gfs"])
def test_unknown_kinds_are_refused(kind: object, place: str, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / place / manifest.NAME).write_text(json.dumps({"schema_version": 1, "kind": kind}))
    before = files(out)
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert ("which this Tierscope does not support" if isinstance(kind, str) else "kind must be str") in line
    assert line.isprintable()
    assert len(line) < 500
    assert files(out) == before


def test_every_kind_that_we_give_is_known() -> None:
    kinds = {
        each.KIND for each in (imports, kernels_report, probe_files, require_report, shuffling, simulate, trace, train)
    }
    assert kinds <= ours.KINDS


def test_no_name_is_obeyed_by_the_terminal(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = out / "a\x1b]0;pwn\x07\nb\udcff"
    evil.mkdir()
    manifest.write(str(evil), "report", {})
    (evil / "mi\x1bne").write_text("mine")
    capsys.readouterr()
    assert call("clean", str(out), "--yes") == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.split("\n"))
    assert "a\\x1b]0;pwn\\x07\\nb\\udcff  report, 0 files" in said
    assert (evil / "mi\x1bne").exists()


def test_as_many_files_are_deleted_as_were_asked_about(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that stays because of a stranger's file keeps its mark and its lock."""
    inner = next(path.parent for path in out.rglob(manifest.NAME) if path.parent != out)
    (inner / "notes.txt").write_text("mine")
    capsys.readouterr()
    answering("y\n", monkeypatch)
    assert call("clean", str(out)) == 0
    said = capsys.readouterr().out
    asked, deleted = said.split("delete ")[1].split("?")[0], said.split("deleted: ")[1].strip()
    assert asked == deleted
    assert (inner / manifest.NAME).exists()
