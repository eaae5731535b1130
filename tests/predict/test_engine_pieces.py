"""How the event engine is put together: small pieces, compiled to what they say, and compiled anew when any of them changes."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.predict.engine_cases import STORED
from tierscope.predict import engine
from tierscope.predict.engine import inputs

pytestmark = pytest.mark.whole

PIECES = sorted(Path(inputs.__file__).parent.glob("*.py"))
MOST_LINES = 60
MOST_LINES_OF_THE_LOOP = 80
PLAIN = (
    *("three threads", "sharing, striped, several reads", "fills, packed files, sharing", "fetched ahead, sharing"),
    *("checkpoints behind training, sharing", "checkpoints that are copied on"),
)


@pytest.mark.parametrize("path", PIECES, ids=lambda path: path.stem)
def test_functions_are_short(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            most = MOST_LINES_OF_THE_LOOP if path.stem == "loop" else MOST_LINES
            assert node.end_lineno - node.lineno < most, node.name


def test_the_package_lists_its_modules_and_they_import_only_those_above_them() -> None:
    listed = [line.split()[0] for line in (engine.__doc__ or "").splitlines() if line.startswith("    ")]
    assert sorted(listed) == [path.stem for path in PIECES if path.stem != "__init__"]
    for path in PIECES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(engine.__name__):
                imported = (node.module or "").removeprefix(f"{engine.__name__}.")
                assert listed.index(imported) < listed.index(path.stem), f"{path.stem} imports {imported}"


def test_a_change_to_any_piece_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba itself looks only at the file that the entry is in."""
    pytest.importorskip("numba", reason="the event engine needs numba")
    from tierscope.predict.engine import compiled, loop  # noqa: PLC0415

    kept = compiled.sources_digest()
    assert kept in [cell.cell_contents for cell in loop._run.py_func.__closure__]
    for path in PIECES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    assert compiled.sources_digest() == kept
    for path in PIECES:
        (tmp_path / path.name).write_text(path.read_text() + "\n")
        assert compiled.sources_digest() != kept
        (tmp_path / path.name).write_bytes(path.read_bytes())


def test_compiled_pieces_do_what_they_do_in_python() -> None:
    """So the engine can be debugged with NUMBA_DISABLE_JIT=1."""
    pytest.importorskip("numba", reason="the event engine needs numba")
    program = (
        "import json, sys; from tests.predict.engine_cases import cases, digest; found = cases(); "
        "print(json.dumps([digest(found[name].outcome()) for name in json.loads(sys.argv[1])]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(PLAIN)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    stored = json.loads(STORED.read_text())
    assert json.loads(done.stdout) == [stored[name]["digest"] for name in PLAIN]
