"""Places that no command can use: one line that names them, exit code 2, and nothing is changed; and files that the user names."""

import json
import os
from pathlib import Path

import pytest

from tests.full_disk import full_disk
from tests.tiny import TINY
from tests.traces import trace_of
from tierscope.cli.main import main
from tierscope.output import manifest
from tierscope.output.store import RunStore

KINDS = {"run": "result", "simulate": "simulation", "trace": "trace", "tune": "tune", "launch": "result"}
NO_TEXT = os.fsdecode(b"out-\xff")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rates = TINY.replace("capacity: 1 MiB", "capacity: 1 MiB, bandwidth: 1 GB/s").replace(
        '"{out}/tiers/gfs"', '"{out}/tiers/gfs", bandwidth: 1 GB/s, metadata_ops: 1000/s'
    )
    (tmp_path / "study.yaml").write_text(rates)
    return tmp_path


def arguments(command: str, out: str) -> list[str]:
    return {
        "run": ["study.yaml", "--out", out, "--quiet"],
        "simulate": ["study.yaml", "--out", out],
        "trace": ["--out", out, "--tier", "data=/tmp", "--", "true"],
        "tune": ["study.yaml", "--set", "sweep={}", "--vary", "batch_size=4,8", "--out", out],
        "launch": ["study.yaml", "--with", "slurm", "--time", "10min", "--out", out],
        "analyze": [out],
        "report": [out],
        "clean": [out, "--yes"],
    }[command]


def refused(command: str, out: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said about it."""
    with pytest.raises(SystemExit) as ended:
        main([command, *arguments(command, out)])
    said = capsys.readouterr()
    assert ended.value.code == 2, said
    (line,) = said.err.splitlines()
    assert line.startswith("tierscope: ")
    assert line.isprintable()
    return line


@pytest.mark.parametrize("command", [*KINDS, "analyze", "report", "clean"])
def test_a_name_that_is_no_text(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command in ("analyze", "report"):
        RunStore("whole").save(trace_of({(0, 1): {"GFS-READ": 1.0}}))
        manifest.write("whole", "import", {})
        os.rename("whole", NO_TEXT)
    before = sorted(os.listdir(here))
    assert "out-\\udcff" in refused(command, NO_TEXT, capsys)
    assert sorted(os.listdir(here)) == before


@pytest.mark.parametrize("name", ["runs", "ops", ".scratch", "figures", "logs"])
@pytest.mark.parametrize("command", KINDS)
def test_a_file_in_the_place_of_a_folder(
    command: str, name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "out").mkdir()
    manifest.write("out", KINDS[command], {})
    (here / "out" / name).write_text("mine")
    line = refused(command, "out", capsys)
    assert f"/out/{name}: is not a directory; replace it with a directory, or choose another --out" in line
    assert (here / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_runs_that_are_no_folder_cannot_be_read(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "out").mkdir()
    manifest.write("out", "import", {})
    (here / "out" / "runs").write_text("mine")
    line = refused(command, "out", capsys)
    assert "tierscope: out/runs" in line
    assert "Not a directory" in line


@pytest.mark.parametrize("name", ["ops", ".scratch", "figures"])
def test_a_report_is_not_written_beside_it(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunStore("out").save(trace_of({(0, 1): {"GFS-READ": 1.0}}, about={"kind": "imported"}))
    manifest.write("out", "import", {})
    (here / "out" / name).write_text("mine")
    assert f"out/{name}: is not a directory" in refused("report", "out", capsys)


@pytest.mark.parametrize("command", [*KINDS, "analyze", "report", "clean"])
def test_a_current_folder_that_is_gone(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "gone").mkdir()
    os.chdir(here / "gone")
    (here / "gone").rmdir()
    assert "cannot use the current directory: No such file or directory; change to another one" in refused(
        command, "out", capsys
    )


class TestFilesThatTheUserNames:
    @pytest.fixture
    def result(self, here: Path) -> str:
        times = {(rank, epoch): {"GFS-READ": 1.0 + rank} for rank in range(10) for epoch in range(1, 6)}
        RunStore("out").save(trace_of(times, about={"kind": "imported"}))
        manifest.write("out", "import", {})
        return str(here / "out")

    def analyze(self, *more: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["analyze", "out", *more])
        return ended.value.code  # type: ignore[return-value]

    def test_a_full_disk_leaves_the_table_that_was_there(
        self, result: str, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.analyze("--csv", "times.csv") == 0
        before = (here / "times.csv").read_bytes()
        assert len(before) > 2000
        capsys.readouterr()
        with full_disk(1000):
            assert self.analyze("--csv", "times.csv") == 2
        assert "times.csv: cannot be written: " in capsys.readouterr().err
        assert (here / "times.csv").read_bytes() == before
        assert sorted(os.listdir(here)) == ["out", "study.yaml", "times.csv"]

    @pytest.mark.parametrize(("form", "name"), [("parquet", "x.parquet"), ("perfetto", "x.json"), ("perfetto", "x.gz")])
    def test_an_export_is_whole_or_not_there(
        self, result: str, here: Path, capsys: pytest.CaptureFixture[str], form: str, name: str
    ) -> None:
        with full_disk(100):
            assert self.analyze("--export", form, name) == 2
        assert f"{name}: cannot be written: " in capsys.readouterr().err
        assert sorted(os.listdir(here)) == ["out", "study.yaml"]
        assert self.analyze("--export", form, name) == 0
        assert (here / name).stat().st_size > 100

    def test_a_pipe_gets_the_table(self, result: str, here: Path) -> None:
        os.mkfifo(here / "pipe")
        reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert self.analyze("--csv", "pipe") == 0
            assert os.read(reader, 24) == b"rank,epoch,class,seconds"
        finally:
            os.close(reader)

    def test_a_link_stays_and_what_it_leads_to_is_replaced(self, result: str, here: Path) -> None:
        assert self.analyze("--csv", "times.csv") == 0
        (here / "link.csv").symlink_to("times.csv")
        old = (here / "times.csv").stat().st_ino
        assert self.analyze("--csv", "link.csv") == 0
        assert (here / "link.csv").is_symlink()
        assert (here / "times.csv").stat().st_ino != old


def test_the_mark_of_a_result_lists_the_files_that_it_was_given(here: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments("simulate", "out")])
    assert ended.value.code in (0, None)
    names = json.loads((here / "out" / manifest.NAME).read_text())["names"]
    there = {str(path.relative_to(here / "out")) for path in (here / "out").rglob("*") if path.is_file()}
    assert {name for name in there if not name.startswith("runs/")} == {*names, manifest.NAME, "lock"}
    assert "study.yaml" in names
