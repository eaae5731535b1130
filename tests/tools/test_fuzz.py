"""The fuzzer finds what it looks for, damages alike for the same number, and knows every command."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tierscope.cli.main import COMMANDS
from tools.fuzz import children
from tools.fuzz.cases import HEALTHY, TARGETS, Case, _kept_by, lookalikes, made_by, runnable
from tools.fuzz.mutate import FORMS, _lines, damage
from tools.fuzz.seeds import CSV, TINY
from tools.fuzz.verdict import Ended, judge, snapshot

REFUSED = b"tierscope: study.yaml: is damaged; write it anew\n"
TRACEBACK = b"""Traceback (most recent call last):
  File "/x/tierscope/cli/main.py", line 3, in _run
  File "/x/tierscope/trace/trace.py", line 12, in gather
ValueError: no
"""


def judged(code: int = 0, out: bytes = b"", err: bytes = b"", stopped: str = "", arguments: str = "analyze x") -> str:
    return judge(arguments.split(), ("*",), {}, {}, Ended(code, out, err, 1.0, 0.5, stopped))


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        (judged(), ""),
        (judged(2, err=REFUSED), ""),
        (judged(3, err=b"a note\n" + REFUSED), ""),
        (judged(0, b'{"a": 1}', arguments="analyze x --json"), ""),
        (judged(1, err=TRACEBACK), "traceback: tierscope/trace/trace.py:12 gather: ValueError"),
        (judged(1, err=REFUSED), "exit code 1"),
        (judged(1, arguments="analyze x --goal 10ms"), ""),
        (judged(-11), "exit code -11"),
        (judged(127, err=REFUSED, arguments="trace -- nothing"), ""),
        (judged(stopped="hangs"), "hangs"),
        (judged(2), "0 lines of error"),
        (judged(2, err=REFUSED * 2), "2 lines of error"),
        (judged(2, err=b"a note\n" + REFUSED), "more than one line of error"),
        (judged(0, b"gfs \x1b[2J"), r"raw '\x1b' on stdout"),
        (judged(2, err="tierscope: \u202ex\n".encode()), r"raw '\u202e' on stderr"),
        (judged(0, b'{"a": NaN}', arguments="analyze x --json"), "no valid JSON"),
    ],
)
def test_mistakes_have_names(mistake: str, found: str) -> None:
    assert mistake == found


def test_files_of_others_are_watched(tmp_path: Path) -> None:
    for name in ("runs/0001-r2.parquet", "tiers/notes.md", "summary.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before, fine = snapshot(tmp_path), Ended(0, b"", b"", 1.0, 0.5)
    (tmp_path / "summary.json").write_text("anew")
    (tmp_path / "report.html").touch()
    keeps = ("*/runs/*", "runs/*", "*/notes.md")
    assert judge(["run"], keeps, before, snapshot(tmp_path), fine) == ""
    (tmp_path / "runs/0001-r2.parquet").write_text("anew")
    assert judge(["run"], keeps, before, snapshot(tmp_path), fine) == "changed N.parquet"
    (tmp_path / "tiers/notes.md").unlink()
    (tmp_path / "runs/0001-r2.parquet").write_text("runs/0001-r2.parquet")
    assert judge(["run"], keeps, before, snapshot(tmp_path), fine) == "deleted notes.md"


@pytest.mark.parametrize(
    ("form", "content"), [("yaml", TINY), ("csv", CSV), ("json", json.dumps({"a": [1, {"b": "2 KiB"}], "c": None}))]
)
def test_the_same_dice_do_the_same_damage(
    form: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = 0
    for number in range(30):
        found = []
        for copy in "ab":
            folder = tmp_path / f"{number}{copy}"
            folder.mkdir()
            monkeypatch.chdir(folder)
            (folder / "file").write_text(content)
            before = snapshot(folder)
            found.append((damage(folder / "file", form, random.Random(number)), snapshot(folder)))
            changed += found[-1][1] != before
        assert found[0] == found[1]
    assert changed > 50


def test_every_command_and_form_is_fuzzed() -> None:
    assert set(HEALTHY) == set(COMMANDS)
    assert {line.split()[0] for target in TARGETS for line in target.commands} <= set(COMMANDS)
    assert {target.form for target in TARGETS} == set(FORMS)


def test_what_resembles_ours_may_not_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "reproduced").mkdir()
    (tmp_path / "reproduced" / "tierscope.json").touch()
    case = Case(1, "reproduction", "json", ["clean", "reproduced", "--yes"])
    paths = lookalikes(case.kind, tmp_path)
    assert len(paths) == 5
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
        before = snapshot(tmp_path)
        path.unlink()
        lost = judge(case.arguments, _kept_by(case), before, snapshot(tmp_path), Ended(0, b"", b"", 1.0, 0.5))
        assert lost.startswith("deleted ")


def test_lines_become_long_and_tables_wide() -> None:
    """What takes the square of a text in time, or far more than a file in memory."""
    texts = [_lines(CSV.encode(), random.Random(number)) for number in range(100)]
    assert any(sign * 4000 in text for text in texts for sign in (b" ", b"\t", b"\n", b"\r"))
    assert any(text.count(b"1,1\n") >= 50_000 and b",c899" in text for text in texts)


def test_files_must_be_made_where_the_command_was_told_to(tmp_path: Path) -> None:
    before, fine = snapshot(tmp_path), Ended(0, b"", b"", 1.0, 0.5)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.yaml").touch()
    case = Case(1, "study", "yaml", ["simulate", "study.yaml", "--out", "out"])
    makes = made_by(case)
    assert judge(case.arguments, ("*",), before, snapshot(tmp_path), fine, makes) == ""
    (tmp_path / "stray.tmp").touch()
    assert judge(case.arguments, ("*",), before, snapshot(tmp_path), fine, makes) == "created stray.tmp"
    named = made_by(
        Case(1, "run", "json", ["analyze", "measured", "--export", "parquet", "a/new.parquet", "--csv", "[x].csv"])
    )
    assert {"a/new.parquet", "a", "[[]x].csv"} <= set(named)
    assert "measured" not in named


@pytest.mark.faults
@pytest.mark.parametrize(
    ("program", "stopped"),
    [("import time; time.sleep(60)", "hangs"), ("while True: pass", "hangs"), ("x = bytearray(1 << 28); input()", "more than 1 GiB")],
)  # fmt: skip
def test_hangs_are_found_by_cpu_and_by_sleep(program: str, stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MOST_BYTES", 1 << 27)
    monkeypatch.setattr(children, "CPU_SECONDS", 0.3)
    monkeypatch.setattr(children, "ASLEEP_SECONDS", 0.4)
    monkeypatch.setattr(children, "_LOOK_SECONDS", 0.0)
    assert ended(program) == stopped


@pytest.mark.faults
def test_a_slow_machine_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works, sleeps a little, works on: neither too much CPU nor too long a sleep, however long it takes."""
    monkeypatch.setattr(children, "ASLEEP_SECONDS", 0.5)
    monkeypatch.setattr(children, "_LOOK_SECONDS", 0.0)
    assert ended("import time\nfor _ in range(10): time.sleep(0.1); sum(range(400_000))") == ""


def ended(program: str) -> str:
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True) as process:
        now = time.monotonic()
        child = children._Running(1, Path(), now, looked=now, awake=now)
        while process.poll() is None:
            children._watch({process.pid: child})
            time.sleep(0.02)
    return child.stopped


@pytest.mark.parametrize(
    ("damaged", "run"),
    [
        (b"num_files_train: 1000000", b"num_files_train: 1000"),
        (b"epochs: 99999999", b"epochs: 9999"),
        (b"num_files_train: 1000000000", b"num_files_train: 1000000000"),
        (b"seed: 7\nepochs: 0.00000001", b"seed: 7\nepochs: 0.00000001"),
        (TINY.encode(), TINY.encode()),
    ],
)
def test_a_study_that_is_run_asks_for_little_or_for_too_much(damaged: bytes, run: bytes) -> None:
    assert runnable(damaged) == run
