"""No text of strangers is obeyed by a terminal: it reaches standard output and standard error in one way, escaped."""

import io
import json
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.traces import trace_of, traced
from tierscope.cli import terminal
from tierscope.cli.common import print_rich
from tierscope.cli.main import main
from tierscope.cli.progress import PlainProgress, watching
from tierscope.errors import StoppedError, UserError, escaped
from tierscope.output import manifest
from tierscope.output.store import RunStore

HOSTILE = "a\x1b]0;pwn\x07\u202eb\u2066c\x9bd\u200fe\u3164f\udcffg"
SHOWN = r"a\x1b]0;pwn\x07\u202eb\u2066c\x9bd\u200fe\u3164f\udcffg"
KIND_NAMES = "é 日本 Ω µ → · – … ×"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def harmless(text: str) -> bool:
    return all(sign.isprintable() or sign in "\n\t" for sign in text)


def test_names_of_any_script_stay() -> None:
    assert escaped(KIND_NAMES) == KIND_NAMES
    assert escaped(HOSTILE) == SHOWN


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", HOSTILE],
        ["analyze", f"--{HOSTILE}"],
        [HOSTILE],
        ["run", HOSTILE],
        ["run", "demo", "--set", f"{HOSTILE}=1"],
        ["run", "demo", "--set", f"seed={HOSTILE}"],
        ["simulate", "demo", "--method", HOSTILE],
        ["estimate", "demo", "--basis", HOSTILE],
        ["launch", "demo", "--with", HOSTILE],
        ["clean", HOSTILE],
        ["trace", "--tier", f"gfs={HOSTILE}", "--", "true"],
        ["trace", "--tier", "gfs=.", "--", HOSTILE],
        ["train", "--take", HOSTILE, "--out", HOSTILE],
    ],
)
def test_arguments_are_escaped(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, said = run(capsys, *arguments)
    assert code in (2, 127)
    assert harmless(out + said)
    assert "pwn" in said


def test_a_command_line_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a traced command: in tables, and as valid JSON."""
    name = HOSTILE.replace("\udcff", "")
    manifest.write(str(tmp_path), "trace", {})
    RunStore(str(tmp_path)).save(trace_of({(0, 1): {"GFS-READ": 1.0}}, about=traced(command=["python", f"{name}.py"])))
    code, out, said = run(capsys, "analyze", str(tmp_path))
    assert (code, said) == (0, "")
    assert harmless(out)
    assert r"\x1b" in out
    code, out, _ = run(capsys, "analyze", str(tmp_path), "--json")
    assert code == 0
    assert harmless(out)
    json.loads(out)


def test_yaml_keys_and_values_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "s.yaml"
    for text in ('"a\\e\\u202e": 1', 'study: "a\\e\\u202e"', 'study: a\nseed: "\\e[2J"'):
        study.write_text(text)
        code, out, said = run(capsys, "run", str(study))
        assert code == 2
        assert harmless(out + said)


def test_colours_pass_and_text_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal.EscapedStream(shown))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    from rich.text import Text  # noqa: PLC0415

    print_rich(Text(HOSTILE, "red"))
    assert SHOWN.replace(r"\x07", "") in shown.getvalue()  # Rich drops bells by itself
    assert shown.getvalue().startswith("\x1b[31m")


def test_progress_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.escaped_streams():
        PlainProgress().note(HOSTILE)
        sys.stderr.writelines([f"{HOSTILE}\n"])
    assert capsys.readouterr().err == f"{SHOWN}\n{SHOWN}\n"


def test_a_folder_that_is_no_utf8_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Path(__file__).parent.parent / "golden" / "results" / "measured"
    out = shutil.copytree(results, tmp_path / "o\udcff\x1b")
    code, shown, said = run(capsys, "analyze", str(out))
    assert (code, shown) == (2, "")
    assert harmless(said)


def noting(before: list[str], begun: list[str] | None, error: Exception | None = None) -> None:
    """A command with these notes before its work begins and, where it does, these; then it fails or is done."""
    with watching(quiet=False) as watch:
        for text in before:
            watch.note(text)
        if begun is not None:
            watch.phase("measuring", 1, "samples")
            for text in begun:
                watch.note(text)
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("begun", "error", "said"),
    [
        (None, UserError("torch is not installed"), ""),
        (None, StoppedError("the disk is full"), "one\n"),
        (None, None, "one\n"),
        (["two"], UserError("a file is damaged"), "one\ntwo\n"),
        (["two"], None, "one\ntwo\n"),
    ],
)
def test_a_refusal_stands_alone(
    begun: list[str] | None, error: Exception | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with nullcontext() if error is None else pytest.raises(type(error)):
        noting(["one"], begun, error)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("command", [("simulate",), ("analyze",), ("presets",), ("reproduce",), ()])
def test_a_name_of_any_length_is_quoted_shortly(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capsys, *command, "k" * 100_000)
    assert code == 2
    assert len(said) < 2000
    assert "kkk…kkk" in said


def test_a_path_is_quoted_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/".join(["k" * 200] * 20)
    assert path in run(capsys, "analyze", path)[2]
