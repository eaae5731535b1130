"""Commands that we suggest are pasted into a shell: a name in one is one word there, whatever its owner called it."""

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_commands import run
from tests.source_trees import nodes_of
from tierscope.cli.main import COMMANDS
from tierscope.errors import UserError, shell_word
from tierscope.imports.chrome_json import ChromeTrace
from tierscope.imports.untiered import command_text
from tierscope.spec.load import load

SOURCE = Path(__file__).parent.parent / "src" / "tierscope"
EVIL = "x$(touch PWN)`touch PWN`'; touch PWN; 'y"
_BEGINS = re.compile(rf"\b(tierscope (?:{'|'.join(COMMANDS)})|python3? -c|pip install|lfs \w+|sbatch|rm|--set) [^;']*$")
_QUOTES = ("shell_word", "shlex.quote", "shlex.join")
# In these a value is no name of anybody's.
_OURS = {
    *(("registry.py", "entry.extra"), ("report/png.py", "_EXTRA"), ("train/digits.py", "EXTRA")),
    *(("measure/preloaded.py", "LOADERS[name].extra"), ("analysis/traced_loader.py", "loader")),
    *(
        ("papers/reproduce.py", name)
        for name in ("self.study.name", "rows", "' --short' if self.is_short else ''", "owner", "row_id")
    ),
    ("predict/missing_rates.py", "tier.name"),  # checked by the study: letters, digits, - and _
    ("analysis/run_command.py", "''.join(settings)"),  # quoted one by one
    ("storage/striping.py", "first or 'no output'"),  # of a command's output, not in it
    ("report/findings.py", "'it' if len(findings) == 1 else 'them'"),
    *(("tuning/tuner.py", name) for name in ("axis.path", "_text(self._base, axis.path, settings[names[axis.path]])")),
}


def pasted(text: str, folder: Path) -> list[str]:
    """Its words, as a shell has them that ran nothing else meanwhile."""
    script = f"for word in {text}; do printf '%s\\n' \"$word\"; done"
    said = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert not (folder / "PWN").exists()
    return said.splitlines()


def test_a_word_is_one_word(tmp_path: Path) -> None:
    assert pasted(shell_word(EVIL), tmp_path) == [EVIL]


def test_what_converts_tensorflow_s_trace_takes_any_name(tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL}.xplane.pb"
    path.write_bytes(b"\n\x0e{")
    with pytest.raises(UserError) as error:
        list(ChromeTrace(str(path)).events())
    command = str(error.value).partition("then python -c ")[2]
    assert pasted(command, tmp_path)[1:] == [str(path)]
    code = shlex.split(command)[0]
    assert "touch" not in code
    ast.parse(code)


def test_a_missing_study_of_any_name_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load(f"{EVIL}.yaml", [], None, False)
    suggested = str(error.value).partition("presets demo > ")[2].rpartition("' creates")[0]
    assert pasted(suggested, tmp_path) == [f"{EVIL}.yaml"]


def test_logs_by_a_pattern(tmp_path: Path) -> None:
    logs = [str(tmp_path / f"{number}.{EVIL}") for number in range(100)]
    assert not pasted(command_text("tierscope analyze", logs).partition("analyze ")[2].replace("*", ""), tmp_path)[1:]


def test_a_system_that_was_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parent / "probe" / "benchmark_files" / "ior.txt"
    written = tmp_path / f"{EVIL}.yaml"
    assert run("probe", "--from", source, "-o", written) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("System: "))
    assert pasted(line.partition("--system ")[2], tmp_path) == [str(written)]


def test_every_name_in_a_suggested_command_is_quoted() -> None:
    bare = {
        (str(module.relative_to(SOURCE)), name)
        for module in SOURCE.rglob("*.py")
        for joined in nodes_of(module)
        if isinstance(joined, ast.JoinedStr)
        for name in bare_names(joined)
    }
    assert sorted(bare - _OURS) == [], "use shell_word"


def bare_names(joined: ast.JoinedStr) -> Iterator[str]:
    """What stands in a command of a text, and is not quoted for a shell."""
    before = ""
    for part in joined.values:
        if isinstance(part, ast.Constant):
            before += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            value = ast.unparse(part.value)
            if _BEGINS.search(before) and part.format_spec is None and not value.startswith(_QUOTES):
                yield value
            before += "x"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f\"run 'tierscope analyze {out}'\"", ["out"]),
        ("f\"run 'tierscope analyze {shell_word(out)}', or {out}\"", []),
        ('f"to use it: tierscope simulate STUDY --system {name}"', ["name"]),
        ('f"use tierscope; {name}"', []),
    ],
)
def test_a_bare_name_is_noticed(text: str, names: list[str]) -> None:
    (joined,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)]
    assert list(bare_names(joined)) == names
