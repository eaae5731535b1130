"""The fuzzer finds what it looks for, damages alike for the same number, and knows every command."""

import json
import random
from pathlib import Path

import pytest

from tierscope.cli.main import COMMANDS
from tools.fuzz.cases import HEALTHY, TARGETS
from tools.fuzz.mutate import FORMS, damage
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
