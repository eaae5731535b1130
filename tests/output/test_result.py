"""The directory of a study's results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import tiny
from tests.traces import trace_of
from tierscope.errors import ForeignDirectoryError, ResultError, SpecError, UserError
from tierscope.output.result import open_result, read_study
from tierscope.output.store import RunStore
from tierscope.spec.dump import identity
from tierscope.spec.goal import Goal
from tierscope.spec.sweep import points
from tierscope.trace.trace import RunKey


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
    with (
        open_result(out, tiny()),
        pytest.raises(UserError, match="in use by another run") as caught,
    ):
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


def finish_a_run(out: str) -> None:
    save_first(out, identity(next(points(tiny())).study))


def save_first(out: str, made_by: str, **sweep: float) -> None:
    """The run of the study's first point, as made by this study."""
    swept = {**next(points(tiny())).sweep, **sweep}
    RunStore(out).save(trace_of({(0, 1): {"GFS-READ": 1.0}}, sweep=swept, about={"study": made_by}))


def test_a_run_of_another_study_is_refused(out: str) -> None:
    """Copied in, or left when study.yaml was removed: it must not be taken for one of this study's."""
    save_first(out, "something else")
    claimed = Path(out, "tierscope.json")
    claimed.write_text(json.dumps({"schema_version": 1, "kind": "result"}))
    with pytest.raises(ResultError, match=r"0000-r1\.parquet: belongs to a different study"):
        claim(out)


def test_a_run_beyond_the_sweep_is_refused(out: str) -> None:
    claim(out)
    finish_a_run(out)
    os.rename(RunStore(out).path(RunKey(0, 1)), RunStore(out).path(RunKey(77, 1)))
    with pytest.raises(ResultError, match=r"0077-r1\.parquet: is not a run of this study"):
        claim(out)


def test_the_goal_may_change_afterwards(out: str) -> None:
    claim(out)
    finish_a_run(out)
    claim(out, "goal=3 s")
    assert read_study(out).goal == Goal("io", 3.0)


def test_a_study_that_says_the_same_is_not_written_anew(out: str) -> None:
    """Finished runs were made with that text: today's defaults were not in it, and the user's remarks stay."""
    claim(out)
    finish_a_run(out)
    path = Path(out, "study.yaml")
    text = "# mine\n" + path.read_text().replace("    verify: sample\n", "")
    path.write_text(text)
    claim(out)
    assert path.read_text() == text
    claim(out, "goal=3 s")
    assert "verify: sample" in path.read_text()


def test_a_study_without_results_may_be_corrected(out: str) -> None:
    """A refused study must not stand in the way of its correction."""
    claim(out)
    claim(out, "seed=8")
    assert read_study(out).seed == 8


def test_a_changed_study_is_refused_with_the_difference(out: str) -> None:
    claim(out)
    finish_a_run(out)
    before = Path(out, "study.yaml").read_bytes()
    with pytest.raises(UserError, match="contains results of a different study") as caught:
        claim(out, "seed=8", "workload.reader.batch_size=16")
    message = str(caught.value)
    assert "seed: 7 → 8" in message
    assert "workload.reader.batch_size: 4 → 16" in message
    assert "\n" not in message
    assert message.endswith(f"use --out {out}-2, or undo the change")
    Path(f"{out}-2").mkdir()
    with pytest.raises(UserError, match=f"use --out {out}-3, or"):
        claim(f"{out}{os.sep}", "seed=8")
    assert Path(out, "study.yaml").read_bytes() == before
    claim(out)  # and the lock is free again


def test_another_sweep_is_a_difference_too(out: str) -> None:
    claim(out)
    finish_a_run(out)
    with pytest.raises(UserError, match=r"sweep\.placement\.cache_rate: \[0%, 50%, 100%\] → \[0%, 100%\]"):
        claim(out, "sweep.cache_rate=[0%, 100%]")


def test_many_differences_are_counted(out: str) -> None:
    claim(out)
    finish_a_run(out)
    changes = ["seed=8", "batch_size=2", "read_threads=2", "prefetch_size=1", "epochs=1", "nodes=3", "repetitions=2"]
    with pytest.raises(UserError, match=r"; and 2 more\)"):
        claim(out, *changes)


def test_a_directory_without_a_study_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ResultError) as caught:
        read_study(str(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}: has no study.yaml; name the --out of")
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


def test_a_study_that_lacks_a_key_of_today_is_the_same_with_its_default(out: str) -> None:
    """Written before the key was there: then its default was what happened."""
    text = identity(next(points(tiny())).study)
    line = "    odirect: false\n"
    assert line in text
    save_first(out, text.replace(line, ""))
    Path(out, "tierscope.json").write_text(json.dumps({"schema_version": 1, "kind": "result"}))
    claim(out)


def test_a_study_with_another_value_is_another_one(out: str) -> None:
    save_first(out, identity(next(points(tiny())).study).replace("odirect: false", "odirect: true"))
    Path(out, "tierscope.json").write_text(json.dumps({"schema_version": 1, "kind": "result"}))
    with pytest.raises(ResultError, match=r"0000-r1\.parquet: belongs to a different study"):
        claim(out)


def test_a_run_with_other_swept_values_is_another_one(out: str) -> None:
    save_first(out, identity(next(points(tiny())).study), cache_rate=0.125)
    Path(out, "tierscope.json").write_text(json.dumps({"schema_version": 1, "kind": "result"}))
    with pytest.raises(ResultError, match=r"0000-r1\.parquet: belongs to a different study"):
        claim(out)
