"""The ten-line scripts in `examples/`, run as they are; the notebooks there are stored without outputs. tests/integration runs those."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest

import tierscope as ts

pytestmark = pytest.mark.whole

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
SAYS = {
    "does_storage_matter.py": "storage is hidden",
    "load_result.py": "bottleneck GFS-META",
    "plan_purchase.py": "simulated (bound)",
    "read_logs.py": "GFS-READ",
    "run_study.py": "emulated tiers",
    "simulate_and_compare.py": "ResultPoint",
    "what_if.py": "estimate by scaling",
}
ELSEWHERE = {"calibrate_system.py", "traced_block.py"}


def test_every_script_is_run_and_short() -> None:
    assert set(SCRIPTS) == SAYS.keys() | ELSEWHERE
    for name in SCRIPTS:
        lines = [line for line in (EXAMPLES / name).read_text().splitlines() if line.strip()]
        assert len(lines) <= 11, name


@pytest.mark.parametrize("name", SAYS)
def test_a_script_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("notebooks"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(tmp_path / "examples" / name), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


def test_the_traced_block_says_how_to_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["traced_block.py", "/dev/null"])
    with pytest.raises(ts.UserError, match="start it with 'tierscope trace"):
        runpy.run_path(str(EXAMPLES / "traced_block.py"))


@pytest.mark.parametrize("path", sorted((EXAMPLES / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
