"""A new launcher or format is its own file and an entry of its registry: nothing else knows the names of those that ship."""

import sys
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from click.testing import CliRunner

from tests.small_study import small_study
from tierscope.bench.group import Alone
from tierscope.bench.loading import make_loader, null_source
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask, run_rank
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask, perform
from tierscope.cli.main import cli
from tierscope.formats import FORMATS, FormatEntry
from tierscope.formats.raw import Raw
from tierscope.launch import LAUNCHERS, LauncherEntry
from tierscope.launch.base import Job
from tierscope.loaders import LOADERS, LoaderEntry
from tierscope.loaders.choose import choose_loader
from tierscope.loaders.inline import InlineLoader
from tierscope.registry import Registry
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.recorder import Recording


class ToyLauncher:
    variables: ClassVar = ("TOY_TMPDIR",)
    queues: ClassVar = True
    signals: ClassVar = False
    restarts: ClassVar = "${TIERSCOPE_RESTARTS:-0}"
    stopped: ClassVar = '[ -n "$told" ]'

    def directives(self, job: Job) -> list[str]:
        return [f"#TOY nodes={job.nodes}"]

    def start(self, job: Job) -> list[str]:
        return ["toyrun", str(job.ranks)]

    def again(self, job: Job) -> list[str]:
        return ["toysub", job.script]

    def submit(self, script: str) -> list[str]:
        return ["toysub", script]


class ToyFormat(Raw):
    suffix = ".toy"


def register(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any, Any], entry: Any) -> None:
    monkeypatch.setitem(cast(MutableMapping[str, Any], registry.entries), "toy", entry)


def test_a_new_launcher_is_offered_and_writes_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = LauncherEntry("tests.test_extension_points:ToyLauncher", "a toy for tests", title="Toy")
    register(monkeypatch, LAUNCHERS, entry)
    monkeypatch.delitem(sys.modules, "tierscope.cli.launch", raising=False)
    monkeypatch.chdir(tmp_path)
    study = tmp_path / "study.yaml"
    study.write_text(
        "study: small\nworkload: {dataset: {num_files_train: 8, record_length_bytes: 1 KiB}}\n"
        "system: {nodes: 2, tiers: {lfs: {path: $TOY_TMPDIR/x, visible_to: node}, gfs: {path: /scratch/me}}}\n"
    )
    try:
        assert "mpirun|toy" in CliRunner().invoke(cli, ["launch", "--help"]).output
        done = CliRunner().invoke(cli, ["launch", str(study), "--with", "toy"], catch_exceptions=False)
        other = CliRunner().invoke(cli, ["launch", str(study), "--with", "slurm"])
    finally:
        sys.modules.pop("tierscope.cli.launch", None)
    assert "To submit it: toysub small.toy.sh" in done.output
    text = (tmp_path / "small.toy.sh").read_text()
    assert "#TOY nodes=2" in text
    assert "toyrun 2 tierscope run" in text
    assert "$TOY_TMPDIR is set by toy, not by slurm" in str(other.exception)


class ToyLoader(InlineLoader):
    pass


def test_a_new_loader_is_the_one_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = LoaderEntry("tests.test_extension_points:ToyLoader", "a toy for tests")
    register(monkeypatch, LOADERS, entry)
    study = small_study()
    reader = replace(study.workload.reader, data_loader="toy")
    study = replace(study, workload=replace(study.workload, reader=reader))
    assert [choose_loader(study), choose_loader(study, seen=True)] == ["toy", "toy"]
    run = ResolvedRun.of(study)
    assert run.loader == "toy"
    assert type(make_loader(run, null_source(run), Recording(2))).__name__ == "ToyLoader"


def toy_study(*settings: str) -> Study:
    return small_study("format=toy", *settings)


def test_a_new_format_is_generated_staged_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, FORMATS, FormatEntry("tests.test_extension_points:ToyFormat", "a toy for tests"))
    study = toy_study()
    for task in (ClaimTask(study, str(tmp_path)), SurveyTask(study, str(tmp_path)), StageTask(study, str(tmp_path))):
        perform(task, Alone())
    assert len(list((tmp_path / "gfs").rglob("*.toy"))) == 24
    trace = run_rank(RunTask(study, "threads", str(tmp_path), None, "none", None), Alone())
    assert [epoch.samples for epoch in trace.epochs] == [24, 24]


def test_what_a_new_format_can_do_decides_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = FormatEntry("tests.test_extension_points:ToyFormat", "a toy for tests", reading="library", mapped=True)
    register(monkeypatch, FORMATS, toy)
    for settings, line in (
        (["data_loader=native"], "workload.dataset.format = toy, which the native loader does not support"),
        (["gfs.emulate=true", "gfs.latency=1ms"], "TOY maps its files, and page faults cannot be delayed"),
        (["data_loader=tensorflow"], "reads TFRecord files"),
    ):
        with pytest.raises(Exception, match=line):
            toy_study(*settings)
    with pytest.raises(Exception, match=r"must be one of raw, .*, synthetic, toy"):
        parse_study("study: x\nworkload: {dataset: {format: tox}}", "x.yaml")
