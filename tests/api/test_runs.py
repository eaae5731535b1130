"""Studies run from Python: they end as the command's do, can be interrupted and go on, and say nothing on standard output."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tierscope as ts
from tests.api.commands import as_json
from tests.small_study import NEEDS_LIBRARY
from tests.tiny import TINY
from tierscope.output.store import RunStore
from tierscope.watch import Silent

pytestmark = pytest.mark.whole


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


def test_a_run_leaves_what_the_command_leaves(study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = ts.run(study, tmp_path / "out", progress=False)
    assert capfd.readouterr() == ("", "")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"study.yaml", "runs", "report.html", "summary.json"}
    assert result.is_complete
    assert result.to_dict() == as_json("analyze", tmp_path / "out")
    again = ts.run(ts.Study.from_yaml(study), tmp_path / "out")
    assert again.points == result.points
    assert capfd.readouterr() == ("", "all 3 runs are finished\n")


def test_an_interrupt_keeps_finished_runs_and_the_same_call_goes_on(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    save = RunStore.save

    def save_once(self: RunStore, trace: object) -> None:
        if self.finished():
            raise KeyboardInterrupt
        save(self, trace)  # type: ignore[arg-type]

    monkeypatch.setattr(RunStore, "save", save_once)
    with pytest.raises(KeyboardInterrupt) as stopped:
        ts.run(study, out, progress=False)
    assert stopped.value.__notes__ == ["finished runs are kept; the same call continues"]
    with pytest.warns(ts.PartialResultWarning, match="1 of 3 runs"):
        half = ts.load(out)
    kept = next((out / "runs").iterdir()).stat()
    monkeypatch.undo()
    whole = ts.run(study, out, progress=False)
    assert whole.is_complete
    assert len(half.__class__.reload(half).points) == 3
    assert kept.st_mtime_ns in {path.stat().st_mtime_ns for path in (out / "runs").iterdir()}


@pytest.mark.faults
def test_a_real_ctrl_c_ends_the_call_and_not_the_program(tmp_path: Path) -> None:
    """With real ranks; they are gone, and the same program goes on with the same call."""
    study = tmp_path / "slow.yaml"
    emulated = TINY.replace(
        'gfs: {path: "{out}/tiers/gfs"}', 'gfs: {path: "{out}/tiers/gfs", emulate: true, metadata_ops: 30/s}'
    )
    study.write_text(emulated)
    program = (
        "import sys, tierscope as ts\n"
        "try: ts.run(sys.argv[1], sys.argv[2], progress=False)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print(ts.run(sys.argv[1], sys.argv[2], progress=False).is_complete)\n"
    )
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(study), str(out)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("runs/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert said == "interrupted\nTrue\n"
    assert process.returncode == 0


def test_progress_is_told_to_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.api.progress import shown  # noqa: PLC0415

    with shown(progress=False) as watch:
        assert isinstance(watch, Silent)
    with shown(progress=True) as watch:
        assert not isinstance(watch, Silent)


def test_studies_from_yaml_dict_and_settings_are_the_same(study: Path) -> None:
    import yaml  # noqa: PLC0415

    from_file = ts.Study.from_yaml(study, settings={"gfs.servers": 4, "sweep.cache_rate": [0, 0.5]})
    from_dict = ts.Study.from_dict(yaml.safe_load(TINY), settings=["gfs.servers=4", "sweep.cache_rate=[0, 0.5]"])
    assert from_file.to_yaml() == from_dict.to_yaml()
    assert (from_file.points, from_file.runs) == (2, 2)
    assert ts.Study.from_yaml("demo").scaled(0.1).notes


def test_a_study_is_explored_as_by_the_command() -> None:
    path = Path(__file__).parent.parent / "golden" / "study.yaml"
    vary, cost = {"gfs.metadata_ops": [1500, 3000, 6000], "gfs.servers": "1,4"}, {"gfs.servers": "1000/server"}
    found = ts.Study.from_yaml(path).explore("20ms", vary, cost=cost, method="bound", progress=False)
    options = (
        "--vary",
        "gfs.metadata_ops=1500,3000,6000",
        "--vary",
        "gfs.servers=1,4",
        "--cost",
        "gfs.servers=1000/server",
    )
    expected = as_json("explore", "--simulate", path, "--method", "bound", "--goal", "20ms", *options)
    assert found.to_dict() == expected
    assert found.table().height == 6
    assert set(found.table()["source"]) == {"simulated (bound)"}
    assert "simulated" in repr(found)
    assert found.is_met == (not found.options().is_empty())


TRACED = """
import sys
import tierscope as ts

def read(name, times):
    for _ in range(times):
        with open(name, "rb") as file:
            file.read()

read(sys.argv[1], 5)
with ts.tracing() as block:
    read(sys.argv[1], 7)
    assert "polars" not in sys.modules
read(sys.argv[1], 11)
result = block.result
(point,) = result.points
rows = {row["class"]: row["ops"] for row in result.classes().to_dicts()}
assert result.source == "traced"
opens = result._analysis.breakdown.kinds["open"][0]
assert 0 < point.io_seconds <= block.seconds, (point, block.seconds)
try:
    block.__enter__()
except ts.UserError as error:
    print(opens, error, file=sys.stderr)
"""


@NEEDS_LIBRARY
def test_a_block_of_a_traced_program_is_measured_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_bytes(bytes(5000))
    (tmp_path / "program.py").write_text(TRACED)
    command = [
        sys.executable,
        "-P",
        "-m",
        "tierscope.cli.main",
        "trace",
        "--tier",
        f"gfs={data}",
        "--out",
        str(tmp_path / "out"),
        "--",
    ]
    done = subprocess.run(
        [*command, sys.executable, str(tmp_path / "program.py"), str(data / "file")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("7 tracing: this block was used before")
    assert ts.load(tmp_path / "out").to_dict()["totals"]
    assert "23 opens" in done.stdout
