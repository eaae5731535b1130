"""The API as its users have it: notebooks in a real kernel, a traced script, a type checker on somebody else's file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tierscope as ts

pytestmark = pytest.mark.notebooks
ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"


def executed(name: str, folder: Path) -> Any:
    nbformat, nbclient = (pytest.importorskip(each, reason="make test-notebooks installs it") for each in ("nbformat", "nbclient"))  # fmt: skip
    shutil.copytree(EXAMPLES, folder / "examples")
    notebook = nbformat.read(EXAMPLES / "notebooks" / f"{name}.ipynb", as_version=4)
    where = {"metadata": {"path": str(folder / "examples" / "notebooks")}}
    return nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()


def shown(notebook: Any, kind: str) -> list[str]:
    """What cells displayed, of one kind of content."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def test_a_study_end_to_end(tmp_path: Path) -> None:
    notebook = executed("study", tmp_path)
    html = shown(notebook, "text/html")
    assert any("data:image/svg+xml;base64," in each and "emulated tiers: gfs, lfs" in each for each in html)
    assert any("<iframe srcdoc=" in each for each in html)
    streams = [o for cell in notebook.cells for o in cell.get("outputs", []) if o["output_type"] == "stream"]
    assert not [o["text"] for o in streams if o["name"] == "stderr"]


def test_logs_to_a_decision(tmp_path: Path) -> None:
    assert any("estimated from imported" in each for each in shown(executed("logs", tmp_path), "text/plain"))


def test_planning(tmp_path: Path) -> None:
    assert any("simulated (bound)" in each for each in shown(executed("planning", tmp_path), "text/html"))


def test_the_traced_script(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(bytes(1000))
    trace = [sys.executable, "-P", "-m", "tierscope.cli.main", "trace", "--tier", f"data={tmp_path / 'data'}"]
    command = [sys.executable, str(EXAMPLES / "traced_block.py"), str(tmp_path / "data" / "file")]
    done = subprocess.run(
        [*trace, "--out", str(tmp_path / "out"), "--", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("100 opens") == 2  # of the block, and of the whole command


@pytest.mark.nightly
def test_calibrating(tmp_path: Path) -> None:
    ts.simulate(EXAMPLES / "small.yaml", out=tmp_path / "made", method="bound", progress=False)
    places = [EXAMPLES / "calibrate_system.py", tmp_path / "made", tmp_path / "fitted.yaml"]
    script = [sys.executable, *map(str, places)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert "tiers.gfs.metadata_ops" in done.stdout
    assert (tmp_path / "fitted.yaml").read_text().startswith("system: small")


CONSUMER = """
import tierscope as ts

result = ts.load("out", basis="wall")
reveal_type(result)
reveal_type(result.points)
reveal_type(result.best)
reveal_type(result.breakdown())
reveal_type(result.estimate(GFS_META=50).change_percent)
reveal_type(result.explore("io=4s", vary={"GFS-META": range(0, 201, 10)}).options)
reveal_type(ts.run(ts.Study.from_yaml("demo")))
reveal_type(ts.simulate("demo", system=ts.calibrate([result, "other"])))
reveal_type(ts.require("resnet50", system="cori-gpu").storage_matters)
reveal_type(ts.analyze_logs(["a.darshan"], tiers={"gfs": "/lustre"}).findings[0].text)
with ts.tracing() as block:
    pass
reveal_type(block.result)
ts.load(3)
ts.lod("out")
result.estimate(GFS_META=[50])
"""
REVEALED = (
    *("Result", "tuple[ResultPoint, ...]", "ResultPoint | None", "DataFrame", "float | None", "tuple[MetOption, ...]"),
    *("Result", "Result", "bool", "str", "Result"),
)


@pytest.mark.nightly
def test_a_strangers_file_is_type_checked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "consumer.py"]
    source = {**os.environ, "MYPYPATH": str(Path(ts.__file__).parent.parent), "COLUMNS": "500"}
    done = subprocess.run(command, cwd=tmp_path, env=source, capture_output=True, text=True, check=False)
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert tuple(re.sub(r"[a-z_]+\.(?=[a-zA-Z])|builtins\.", "", each) for each in revealed) == REVEALED, done.stdout
    errors = re.findall(r"consumer\.py:\d+: error: .*\[([a-z-]+)\]", done.stdout)
    assert errors == ["arg-type", "attr-defined", "arg-type"], done.stdout
