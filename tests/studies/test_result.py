"""The directory of a study's results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import tiny
from tierscope.errors import ForeignDirectoryError, ResultError, SpecError, UserError
from tierscope.studies.result import open_result, read_study


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "out")


def claim(out: str, *settings: str) -> None:
    with open_result(out, tiny(*settings)):
        pass


def test_the_resolved_study_is_kept(out: str) -> None:
    with open_result(out, tiny()):
        assert read_study(out) == tiny()
    claim(out)
    assert read_study(out) == tiny()


def test_a_second_opener_is_kept_out_until_the_first_is_done(out: str) -> None:
    with open_result(out, tiny()), pytest.raises(UserError, match="another run is using it") as caught:
        claim(out)
    assert str(caught.value).startswith(f"{out}: ")
    claim(out)


def test_a_failed_run_lets_the_next_one_in(out: str) -> None:
    with pytest.raises(ZeroDivisionError), open_result(out, tiny()):
        raise ZeroDivisionError
    claim(out)


def test_a_process_that_outlives_the_run_does_not_keep_the_lock(out: str) -> None:
    with open_result(out, tiny()):
        command = [sys.executable, "-S", "-c", "print('ready', flush=True); input()"]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, close_fds=False)
        assert child.stdout is not None
        child.stdout.readline()
    try:
        claim(out)
        assert child.poll() is None
    finally:
        child.communicate(b"\n")


def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ForeignDirectoryError, match=r"thesis\.tex"):
        claim(str(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_changed_study_is_refused_with_the_difference(out: str) -> None:
    claim(out)
    before = Path(out, "study.yaml").read_bytes()
    with pytest.raises(UserError, match="holds results of a different study") as caught:
        claim(out, "seed=8", "workload.reader.batch_size=16")
    message = str(caught.value)
    assert "seed: 7 → 8" in message
    assert "workload.reader.batch_size: 4 → 16" in message
    assert "\n" not in message
    assert Path(out, "study.yaml").read_bytes() == before
    claim(out)  # and the lock is free again


def test_another_sweep_is_a_difference_too(out: str) -> None:
    claim(out)
    with pytest.raises(UserError, match=r"sweep\.placement\.cache_rate: \[0%, 50%, 100%\] → \[0%, 100%\]"):
        claim(out, "sweep.cache_rate=[0%, 100%]")


def test_many_differences_are_counted(out: str) -> None:
    claim(out)
    changes = ["seed=8", "batch_size=2", "read_threads=2", "prefetch_size=1", "epochs=1", "nodes=3", "repetitions=2"]
    with pytest.raises(UserError, match=r"; and 2 more\)"):
        claim(out, *changes)


def test_a_directory_without_a_study_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ResultError) as caught:
        read_study(str(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}: has no study.yaml; give the --out of")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"\xff\xfe\x00", ResultError), (b"", SpecError), (b"study: [", SpecError), (b"- 1", SpecError)],
)
def test_a_damaged_study_is_named(out: str, content: bytes, error: type[UserError]) -> None:
    claim(out)
    Path(out, "study.yaml").write_bytes(content)
    with pytest.raises(error, match=r"study\.yaml") as caught:
        read_study(out)
    assert "\n" not in str(caught.value)


def test_a_directory_in_place_of_the_study_is_named(out: str) -> None:
    os.makedirs(os.path.join(out, "study.yaml"))
    with pytest.raises(ResultError, match=r"study\.yaml: cannot be read"):
        read_study(out)
