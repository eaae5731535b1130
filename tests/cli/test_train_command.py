"""`tierscope train` as a user types it, where torch is not needed: mistakes are one line, and what will be trained is as asked."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.tiny import TINY

NO_TORCH = pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@NO_TORCH
def test_without_torch_one_line_says_how_to_install_it(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", study, "--model", "lenet", "--out", study.parent / "out", "--quiet") == 2
    assert "which is not installed; pip install 'tierscope[torch]'" in one_line(capsys)
    assert not (study.parent / "out").exists()


@NO_TORCH
def test_a_note_does_not_go_before_a_refusal(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(TINY.replace("epochs:", "computation_time: 1 ms, epochs:"))
    assert "computation_time" in study.read_text()
    assert run("train", study, "--model", "deepcam", "--out", study.parent / "out") == 2
    assert "which is not installed" in one_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "has no network; add --model cosmoflow or"),
        (("--model", "vgg"), "--model"),
        (("--model", "lenet", "--batch", "0"), "--batch 0"),
        (("--model", "lenet", "--batch", "many"), "--batch many"),
        (("--model", "lenet", "--batch", "8,8"), "has a value twice"),
        (("--model", "lenet", "--data", "disk"), "--data disk"),
        (("--model", "lenet", "--data", "tiers", "--storage-matters"), "exclude each other; remove one"),
        (("--model", "lenet", "--vary", "read_thread=1,2"), "did you mean"),
        (("--model", "lenet", "--vary", "batch_size=1,2", "--batch", "4,8"), "remove one"),
        (("--model", "lenet", "--vary", "computation_time=1,2"), "train computes for real"),
        (("--model", "lenet", "--vary", "epochs=1,2"), "use --set"),
        (("--model", "lenet", "--set", "computation_time=1"), "trains for real; remove one of them"),
        (("--model", "lenet", "--set", "preprocess=busy"), "preprocess = busy has no effect on training"),
        (("--model", "lenet", "--loader", "torch"), "--loader torch"),
        (
            ("--model", "lenet", "--loader", "pytorch,dali"),
            "data_loader = dali; must be one of auto, native, threads, pytorch, tensorflow",
        ),
        (("--model", "lenet", "--loader", "pytorch", "--vary", "data_loader=native,threads"), "remove one"),
        (("--model", "lenet", "--loader", "tensorflow", "--set", "format=hdf5"), "or another data_loader"),
        (("--model", "lenet", "--loader", "pytorch", "--set", "odirect=true"), "set data_loader: auto"),
        (("--model", "lenet", "--set", "pin_memory=true"), "works only with data_loader: pytorch"),
        (
            ("--model", "lenet", "--loader", "pytorch", "--set", "pin_memory=true", "--device", "cpu"),
            "pin_memory = true, but workload.model.device = cpu has nothing to pin for",
        ),
        (("--model", "lenet", "--set", "format=png"), "must be decoded for training"),
        (("--model", "lenet", "--input", "big"), "input = big"),
        (("--model", "lenet", "--repetitions", "0"), "--repetitions"),
        (("--model", "lenet", "--take", "x"), "cannot be combined with a study or --hand-over"),
    ],
)
def test_mistakes_are_one_line(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    assert run("train", study, "--out", study.parent / "out", *arguments) == 2
    assert line in one_line(capsys)


def test_a_study_or_what_was_handed_over_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--model", "lenet") == 2
    assert "no study; name a YAML file or a preset" in one_line(capsys)
    assert run("train", "--take", tmp_path, "--out", tmp_path / "out") == 2
    assert "it is not from --hand-over" in one_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--take", "x", "--batch", "8"), "--batch"),
        (("--take", "x", "--set", "epochs=3"), "--set"),
        (("study.yaml", "--model", "lenet", "--hand-over", "x", "--out", "y"), "--out"),
        (("study.yaml", "--model", "lenet", "--hand-over", "x", "--json"), "--json"),
    ],
)
def test_what_would_be_ignored_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], option: str
) -> None:
    assert run("train", *arguments) == 2
    chosen = "--take" if "--take" in arguments else "--hand-over"
    assert one_line(capsys).endswith(f"{chosen} cannot be combined with {option}; remove one of them")


def test_a_folder_without_runs_makes_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.yaml").write_text(TINY)
    assert run("train", "--take", tmp_path, "--out", tmp_path / "out") == 2
    assert one_line(capsys).endswith(
        f"{tmp_path}: holds no finished run of --hand-over; name its directory, or repeat --hand-over"
    )
    assert not (tmp_path / "out").exists()


def test_results_of_several_keys_are_given_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tierscope.json").write_text(json.dumps({"schema_version": 1, "kind": "training"}))
    for name in ("batch_size", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.yaml").write_text(TINY)
    assert run("analyze", tmp_path) == 2
    assert one_line(capsys).endswith("name one of them: batch_size, data")


def test_help_needs_neither_torch_nor_a_table_library() -> None:
    program = "import sys, tierscope.cli.train; print({'torch', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
