"""Commands as a user types them: output, exit codes, one clear line for every mistake."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import TINY
from tierscope.cli.main import COMMANDS, _run

pytestmark = pytest.mark.whole


def run(*arguments: object) -> int:
    return _run([str(argument) for argument in arguments])


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said on stderr: exactly one line, no traceback."""
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("tierscope: ")
    return lines[0]


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished small study."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(TINY)
    assert run("run", folder / "tiny.yaml", "--out", folder / "out", "--quiet") == 0
    return folder / "out"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help") == 0
    assert "Usage: tierscope" in capsys.readouterr().out


def test_a_mistyped_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyse", "x") == 2
    assert "did you mean analyze?" in one_line(capsys)


def test_a_mistyped_option_is_the_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "demo", "--outt", "x") == 2
    assert "--outt" in one_line(capsys)


@pytest.mark.parametrize(
    ("profiler", "said"),
    [
        ("dftracer", "DFTracer is not installed; pip install"),
        ("darshan", "DARSHAN_LIB = /nowhere; no such file"),
    ],
)
def test_a_profiler_that_is_missing_is_said_before_data_is_made(
    tiny_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    profiler: str,
    said: str,
) -> None:
    monkeypatch.setenv("DARSHAN_LIB", "/nowhere")
    monkeypatch.setattr("tierscope.recording.dftracer.importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("tierscope.recording.darshan.library_path", lambda: "/util.so")
    assert run("run", tiny_file, "--profiler", profiler, "--out", tmp_path / "out") == 2
    assert said in one_line(capsys)
    assert not (tmp_path / "out").exists()


def test_run_prints_a_table_and_analyze_the_same_numbers(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", finished) == 0
    table = capsys.readouterr().out
    assert "cache rate" in table
    assert "Best: cache_rate" in table
    assert run("analyze", finished, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["schema_version"], result["kind"], result["basis"]) == (1, "breakdown", "wall")
    assert [point["sweep"]["cache_rate"] for point in result["points"]] == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    assert all(set(point["classes"]) == {"GFS-READ", "GFS-META", "LFS-READ", "LFS-META"} for point in result["points"])
    assert {finding["kind"] for finding in result["findings"]} >= {"warm_metadata"}


def test_csv_out_and_in_give_the_same_breakdown(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("analyze", finished, "--csv", tmp_path / "times.csv", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert run("analyze", tmp_path / "times.csv", "--json") == 0
    second = json.loads(capsys.readouterr().out)
    for mine, theirs in zip(first["points"], second["points"], strict=True):
        assert {key: mine[key] for key in ("sweep", "epoch", "ranks", "slowest_rank", "bottleneck")} == {
            key: theirs[key] for key in ("sweep", "epoch", "ranks", "slowest_rank", "bottleneck")
        }
        assert mine["io_seconds"] == pytest.approx(theirs["io_seconds"], rel=1e-9)


def test_wall_seconds_are_labelled(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", finished, "--basis", "wall", "--json") == 0
    assert {point["basis"] for point in json.loads(capsys.readouterr().out)["points"]} == {"wall"}


def test_nothing_to_analyze(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", tmp_path / "nowhere") == 2
    assert "no such file or directory" in one_line(capsys)
    assert run("analyze", tmp_path) == 2
    assert "is empty" in one_line(capsys)


def test_a_damaged_result_is_named(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(finished, tmp_path / "out")
    victim = tmp_path / "out" / "runs" / "0001-r1.parquet"
    victim.write_bytes(victim.read_bytes()[:-100])
    assert run("analyze", tmp_path / "out") == 2
    assert str(victim) in one_line(capsys)


def test_a_changed_study_is_refused_with_the_difference(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", finished / "study.yaml", "--out", finished, "--quiet", "--set", "batch_size=2") == 2
    assert "workload.reader.batch_size: 4 → 2" in one_line(capsys)


def test_a_finished_study_is_not_repeated(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "runs").iterdir()}
    assert run("run", finished / "study.yaml", "--out", finished) == 0
    assert "all 3 runs are finished" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (finished / "runs").iterdir()} == before


def test_a_foreign_directory_is_left_alone(tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    assert run("run", tiny_file, "--out", precious, "--quiet") == 2
    assert "was not created by Tierscope" in one_line(capsys)
    assert [path.name for path in precious.iterdir()] == ["thesis.tex"]


def test_a_foreign_tier_directory_is_left_alone(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "lustre"
    precious.mkdir()
    (precious / "data.h5").write_text("years of work")
    code = run("run", tiny_file, "--out", tmp_path / "out", "--quiet", "--set", f"gfs.path={precious}")
    assert code == 2
    assert f"{precious}: is not empty" in one_line(capsys)
    assert [path.name for path in precious.iterdir()] == ["data.h5"]


def test_more_than_the_near_tier_holds_is_refused_before_staging(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("run", tiny_file, "--out", tmp_path / "out", "--quiet", "--set", "lfs.capacity=20 KiB")
    assert code == 2
    assert "needs 24 KiB on lfs for each node, which holds 20 KiB" in one_line(capsys)
    assert not (tmp_path / "out" / "tiers").exists()


def test_nodes_of_one_machine_may_not_share_a_node_tier(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("run", tiny_file, "--out", tmp_path / "out", "--quiet", "--set", f"lfs.path={tmp_path}/lfs")
    assert code == 2
    assert "put {node} into the path" in one_line(capsys)


def test_generate_only_stages(tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", tiny_file, "--out", tmp_path / "out", "--quiet") == 0
    assert "72 KiB written" in capsys.readouterr().out
    assert len(list((tmp_path / "out" / "tiers").rglob("*.raw"))) == 24 * 3
    assert not (tmp_path / "out" / "runs").exists()
    assert run("generate", tiny_file, "--out", tmp_path / "out", "--quiet") == 0
    assert "0 B written" in capsys.readouterr().out


def listed_presets(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str]]:
    """Names of studies and of systems, as they are listed."""
    assert run("presets") == 0
    studies, systems = capsys.readouterr().out.split("\n\n")
    assert studies.startswith("Studies, ")
    assert systems.startswith("Systems, ")
    found = [[line.split()[0] for line in part.splitlines()[1:]] for part in (studies, systems)]
    return found[0], found[1]


def test_presets_print_and_run_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = listed_presets(capsys)
    assert {"demo", "fugaku-small-60ost", "fugaku-small-1ost", "fugaku-large-60ost", "fugaku-hierarchy"} <= set(names)
    assert {"mini-small-many-osts", "mini-small-one-ost", "mini-large-many-osts", "mini-hierarchy"} <= set(names)
    for name in names:
        assert run("presets", name) == 0
        text = capsys.readouterr().out
        for key in ("num_subfolders_train", "shuffle_nodes", "gateway_shared_by", "repetitions"):
            assert key in text
        assert "{" not in text.replace("{out}", "").replace("{node}", "").replace("sweep: {}", "")  # block style
        (tmp_path / f"{name}.yaml").write_text(text)
        assert (
            run("generate", tmp_path / f"{name}.yaml", "--set", "num_samples_per_file=0") == 2
        )  # loaded, then refused
        assert "num_samples_per_file = 0" in one_line(capsys)


def test_systems_print_as_files_that_studies_may_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, names = listed_presets(capsys)
    assert names == ["cori-gpu", "fugaku", "h200-node", "laptop", "polaris", "summitdev", "theta"]
    for name in names:
        assert run("presets", name) == 0
        (tmp_path / f"my-{name}.yaml").write_text(capsys.readouterr().out)
        (tmp_path / "study.yaml").write_text(
            f"study: x\nworkload: {{dataset: {{num_files_train: 0, record_length_bytes: 1}}}}\nsystem: my-{name}.yaml\n"
        )
        assert run("generate", tmp_path / "study.yaml") == 2  # the system is found; the study is refused
        assert "num_files_train = 0" in one_line(capsys)


@pytest.mark.parametrize(("name", "meant"), [("dmeo", "demo"), ("fugku", "fugaku"), ("polari", "polaris")])
def test_an_unknown_preset_gets_a_suggestion(name: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("presets", name) == 2
    assert f"did you mean {meant}?" in one_line(capsys)


def test_a_system_is_no_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", "fugaku") == 2
    assert "fugaku: is a system, not a study; use it in a study as 'system: fugaku'" in one_line(capsys)


def test_doctor_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", tmp_path, "--json") == 0
    checks = {check["name"].split(" in ")[0]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert {
        "MPI",
        "Lustre",
        "page cache",
        "free space",
        "Darshan",
        "clock",
        "emulated tiers",
        "native recorder",
    } <= set(checks)
    assert all(check["status"] in ("ok", "note") or check["advice"] for check in checks.values())
    assert list(tmp_path.iterdir()) == []


def test_ops_are_kept_on_request(tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import polars as pl  # noqa: PLC0415

    settings = ["--set", "sweep={}", "--set", "cache_rate=50%"]
    assert run("run", tiny_file, "--out", tmp_path / "out", "--quiet", "--ops", *settings) == 0
    capsys.readouterr()
    files = sorted((tmp_path / "out" / "ops").iterdir())
    assert [path.name for path in files] == ["0000-r1-node0.parquet", "0000-r1-node1.parquet"]
    ops = pl.concat([pl.read_parquet(path) for path in files])
    assert ops.height == 24 * 2 * 3  # samples × epochs × (open, read, close)
    assert ops.filter(pl.col("kind") == "read")["bytes"].sum() == 24 * 2 * 1024
    reads = ops.filter((pl.col("kind") == "read") & (pl.col("epoch") == 1))
    assert sorted(reads["file"]) == list(range(24))
    assert reads.filter(pl.col("tier") == "lfs").height == 12


def test_a_refused_study_does_not_stand_in_the_way_of_its_correction(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", tiny_file, "--out", tmp_path / "out", "--quiet", "--set", "lfs.capacity=1 KiB") == 2
    one_line(capsys)
    assert run("run", tiny_file, "--out", tmp_path / "out", "--quiet") == 0


def test_a_file_that_is_no_table_is_not_overwritten(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "study.yaml"
    precious.write_text("years of work")
    assert run("analyze", finished, "--csv", precious) == 2
    assert "is not a table of times" in one_line(capsys)
    assert precious.read_text() == "years of work"
    assert run("analyze", finished, "--csv", tmp_path / "times.csv") == 0
    assert run("analyze", finished, "--csv", tmp_path / "times.csv") == 0


def test_placeholders_need_no_quotes_in_a_setting(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--set", "gfs.path={out}/elsewhere", "--set", "goal=null", "--set", "study='named'"]
    assert run("generate", tiny_file, "--out", tmp_path / "out", "--quiet", *settings) == 0
    assert (tmp_path / "out" / "elsewhere" / "tierscope.json").exists()


@pytest.mark.parametrize("path", ["{out}/tiers/gfs/../gfs", "{out}/tiers/gfs/inside", "{out}/link"])
def test_one_directory_is_not_measured_as_two_tiers(
    tiny_file: Path, tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "tiers" / "gfs").mkdir(parents=True)
    (tmp_path / "out" / "tierscope.json").write_text(json.dumps({"schema_version": 1, "kind": "result"}))
    (tmp_path / "out" / "link").symlink_to(tmp_path / "out" / "tiers" / "gfs")
    settings = ["--set", f"lfs.path={path}", "--set", "nodes=1", "--set", "lfs.visible_to=global"]
    assert run("run", tiny_file, "--out", tmp_path / "out", "--quiet", *settings) == 2
    assert "use separate directories" in one_line(capsys)


@pytest.mark.faults
@pytest.mark.parametrize("target", ["/dev/full", "| head -c 1"])
def test_output_that_cannot_be_written_is_no_traceback(finished: Path, target: str) -> None:
    pipe = target if target.startswith("|") else f"> {target}"
    command = f"{sys.executable} -m tierscope.cli.main analyze {finished} {pipe}; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout.split()[-1].endswith("3" if "full" in target else "0")


def test_a_terminal_without_our_signs_gets_others(finished: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "tierscope.cli.main", "analyze", str(finished)]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    assert b"cache rate" in done.stdout


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "Usage: tierscope" in capsys.readouterr().out


def test_help_lists_every_command_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    section, listed = "", {}
    for line in capsys.readouterr().out.splitlines():
        section = line.partition(" ")[0].rstrip(":").lower() if line[:1].strip() else section
        if line.startswith("  ") and line[2:3].strip() and (name := line.split()[0]) in COMMANDS:
            assert name not in listed
            listed[name] = section
    assert listed == {name: entry.group for name, entry in COMMANDS.items()}


def test_help_says_which_commands_are_research_tools(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    said = " ".join(capsys.readouterr().out.split())
    for entry in COMMANDS.values():
        assert (f"{entry.help} (research tool)" in said) == entry.research


INTERRUPTED = """
import os, signal, sys
from tierscope.cli import main

def stopped(arguments):
    try:
        exec("os.kill(os.getpid(), signal.{number}); signal.pause()")
    except KeyboardInterrupt:
        return 3

main._run = stopped
{before}
main.main([])
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_in_the_middle_of_an_import_is_exit_code_3(number: str, tmp_path: Path) -> None:
    """Imports exec() text. Python's own interrupt, once it has passed through that, ends `python -m` by a signal later."""
    own = "import tierscope.signals\ntierscope.signals.Interrupted = lambda _: KeyboardInterrupt()"
    for before, code in (("", 3), (own, -signal.SIGINT)):
        (tmp_path / "interrupted.py").write_text(INTERRUPTED.format(number=number, before=before))
        command = [sys.executable, "-m", "interrupted"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, cwd=tmp_path)
        assert done.returncode == code, done.stderr


@pytest.mark.parametrize("output", ["--json", "--all"])
def test_reading_logs_pulls_in_no_simulation(output: str) -> None:
    """That took a tenth of the time that a log takes."""
    program = (
        "import sys; from tierscope.cli.main import main\n"
        "try:\n    main()\n"
        "finally:\n    print(sorted(name for name in sys.modules if name.startswith('tierscope.predict.')), file=sys.stderr)"
    )
    logs = map(str, sorted((Path(__file__).parents[2] / "examples").glob("*.pfw")))
    words = ["analyze", *logs, "--tier", "all=/", "--force", output]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "[]")
