"""`tierscope launch`: what it writes, and what it refuses before a job waits in a queue for it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tierscope.cli.launch import command
from tierscope.cli.main import main
from tierscope.errors import UserError
from tierscope.output.result import locked

STUDY = """
study: small
workload:
  dataset: {num_files_train: 64, record_length_bytes: 1 KiB}
system:
  nodes: 2
  tiers:
    lfs: {path: "LFS", visible_to: node}
    gfs: {path: "/scratch/me", visible_to: global}
placement: {cache_rate: 50%}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("LFS", "$SLURM_TMPDIR/lfs"))
    return path


def launch(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False, standalone_mode=False)
    return done.output


def refused(*arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(command, list(arguments), catch_exceptions=False, standalone_mode=False)
    return str(caught.value)


def test_a_script_with_absolute_paths(study: Path) -> None:
    said = launch(
        str(study), "--with", "slurm", "--nodes", "4", "--ranks-per-node", "2", "--time", "30min", "--set", "seed=7"
    )
    text = Path("small.slurm.sh").read_text()
    assert "small.slurm.sh: 4 nodes x 2 ranks" in said
    assert "To submit it: sbatch small.slurm.sh" in said
    assert "#SBATCH --nodes=4" in text
    assert "#SBATCH --time=0:30:00" in text
    wanted = f"tierscope run {study} --out {study.parent}/results/small --quiet --set seed=7 --set system.nodes=4 --set system.ranks_per_node=2 &"
    assert wanted in text


def test_a_script_is_not_written_over(study: Path) -> None:
    launch(str(study), "--with", "slurm")
    assert (
        refused(str(study), "--with", "slurm")
        == "small.slurm.sh: already exists; remove it, or choose another --script"
    )


def test_another_schedulers_variable(study: Path) -> None:
    said = refused(str(study), "--with", "pjm")
    assert "system.tiers.lfs.path = $SLURM_TMPDIR/lfs; $SLURM_TMPDIR is set by slurm, not by pjm" in said


def test_emulation_does_not_span_hosts(study: Path) -> None:
    said = refused(str(study), "--with", "slurm", "--set", "gfs.emulate=true", "--set", "gfs.bandwidth=1 MB/s")
    assert said.startswith("system.tiers.gfs.emulate = true works only on a single host")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--time", "5s"], "--time = 5 s is too short to run and resubmit; use at least 120 s"),
        (["--time", "soon"], "--time = soon is not a number"),
        (
            ["--queue", "a b; rm"],
            "--queue = 'a b; rm' cannot be used in a script; use letters, digits and . @ : = / + -",
        ),
        (["--option", "--x\nrm"], "'--x' has more than one line; use one option per line"),
    ],
)
def test_bad_wishes_get_one_line(study: Path, arguments: list[str], line: str) -> None:
    assert refused(str(study), "--with", "slurm", *arguments) == line


def test_a_number_that_is_not_a_nodes_own(study: Path) -> None:
    study.write_text(STUDY.replace("LFS", "/scratch/$SLURM_NODEID"))
    assert (
        refused(str(study), "--with", "slurm", "--mpi", "mpirun")
        == "system.tiers.lfs.path = /scratch/$SLURM_NODEID; under mpirun $SLURM_NODEID is not set per node: use $SLURMD_NODENAME"
    )
    launch(str(study), "--with", "slurm")


def test_mpi_is_for_slurm(study: Path) -> None:
    study.write_text(STUDY.replace("LFS", "/tmp/lfs"))
    assert (
        refused(str(study), "--with", "pbs", "--mpi", "pmix")
        == "--mpi = pmix works only with Slurm; remove it, or change --with pbs"
    )


def test_submitting_without_a_scheduler(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    said = refused(str(study), "--with", "slurm", "--submit")
    assert said == "sbatch is not in PATH; submit the script on a host that has it: sbatch small.slurm.sh"


def program_on_path(name: str, body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


def test_without_a_scheduler_it_is_run_here_for_as_long_as_it_takes(
    study: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it says is seen at once, and its exit code is ours."""
    program_on_path("mpirun", "echo runs; exit 2", tmp_path, monkeypatch)
    command = [sys.executable, "-m", "tierscope.cli.main", "launch", str(study), "--with", "mpirun", "--submit"]
    command += ["--set", "lfs.path=/local"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "runs\n", "")


def test_a_missing_launcher_is_one_line(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["launch", str(study)])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "tierscope: Missing option '--with'. Choose from: slurm, pjm, pbs, mpirun (see --help)\n"
    )


def test_what_the_scheduler_answers_is_said(study: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = program_on_path("sbatch", "echo Submitted batch job 9", tmp_path, monkeypatch)
    assert launch(str(study), "--with", "slurm", "--submit") == "Submitted batch job 9\n"
    program.write_text("#!/bin/sh\necho 'sbatch: error: no such partition' >&2\nexit 1\n")
    said = refused(str(study), "--with", "slurm", "--submit", "--script", "other.sh")
    assert said == "sbatch refused the script: sbatch: error: no such partition"


RESULTS = Path(__file__).parent.parent / "golden" / "results"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A result of ours, whose study it holds."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(RESULTS / "measured", tmp_path / "out"))


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_of_the_same_study_are_gone_on_with(measured: Path) -> None:
    before = content_of(measured)
    launch(str(measured / "study.yaml"), "--with", "mpirun", "--out", str(measured))
    assert Path("demo.mpirun.sh").exists()
    assert content_of(measured) == before


def test_a_directory_in_use_is_waited_for_in_the_queue(measured: Path) -> None:
    with locked(str(measured)):
        launch(str(measured / "study.yaml"), "--with", "mpirun", "--out", str(measured))


def test_results_of_another_study_are_refused_before_a_script_is_written(measured: Path) -> None:
    study, before = str(measured / "study.yaml"), content_of(measured)
    said = refused(study, "--with", "mpirun", "--out", str(measured), "--set", "seed=8")
    assert said == (
        f"{measured}: contains results of a different study (seed: 42 → 8); use --out {measured}-2, or undo the change"
    )
    assert not list(Path().glob("*.sh"))
    assert content_of(measured) == before


def test_what_run_would_refuse_is_refused_in_the_same_words(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, other = str(measured / "study.yaml"), str(RESULTS / "simulated")
    foreign = measured.parent / "mine"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("precious")
    for out in (str(measured), other, str(foreign), str(foreign / "thesis.tex" / "x")):
        said = refused(study, "--with", "mpirun", "--out", out, "--set", "seed=8")
        with pytest.raises(SystemExit) as ended:
            main(["run", study, "--out", out, "--set", "seed=8", "--quiet"])
        assert ended.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"tierscope: {said}"
    assert refused(study, "--with", "mpirun", "--out", other) == (
        f"{other}: contains Tierscope's simulation, not a result; choose a separate directory"
    )
    assert refused(study, "--with", "mpirun", "--out", str(foreign)) == (
        f"{foreign}: is not empty and was not created by Tierscope (it contains thesis.tex); "
        f"choose a new or empty directory, e.g. {foreign}/tierscope"
    )


def test_a_directory_that_is_not_there_yet_is_not_made(study: Path) -> None:
    launch(str(study), "--with", "slurm", "--out", "new")
    assert not Path("new").exists()


def test_one_node_is_not_nodes(study: Path) -> None:
    assert "small.slurm.sh: 1 node x 1 rank; results: " in launch(str(study), "--with", "slurm", "--nodes", "1")


def test_the_layout_of_a_job_is_that_of_all_cases(study: Path) -> None:
    study.write_text(study.read_text() + "cases: {a: {nodes: 4}, b: {nodes: 4, seed: 1}}\n")
    assert "4 nodes x 1 rank" in launch(str(study), "--with", "slurm")
    study.write_text(study.read_text().replace("b: {nodes: 4", "b: {nodes: 3"))
    assert "--set case=a" in refused(str(study), "--with", "slurm", "--script", "other.sh")
    assert "4 nodes" in launch(str(study), "--with", "slurm", "--script", "other.sh", "--set", "case=a")
