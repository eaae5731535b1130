"""The script that makes validation/h200: NumPy and torch alone, in parts, each row once. Here on the CPU, with small rows."""

import importlib
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tierscope.errors import UserError

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")
ROOT = Path(__file__).parents[2]
BARE = """
import sys
for name in ("polars", "msgspec", "click", "rich", "yaml", "scipy", "numba", "pyarrow", "crc32c"):
    sys.modules[name] = None  # as where nothing can be installed
sys.path[:0] = sys.argv[1:]
import validation.measure_h200 as script
print(len(script.step_wishes()), len(script.decoder_wishes()), len(script.kernel_wishes(True)))
"""


def test_it_needs_numpy_and_torch_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(ROOT), str(ROOT / "src")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["36", "32", "12"]  # the rows that are in validation/h200


def test_it_asks_for_exactly_the_rows_that_ship(script: Any) -> None:
    shipped = {name: json.loads((ROOT / "validation" / "h200" / name).read_text())["rows"] for name in ("steps.json", "decoder.json", "kernels.json")}  # fmt: skip
    for name, wishes in (
        ("steps.json", script.step_wishes()),
        ("decoder.json", script.decoder_wishes()),
        ("kernels.json", script.kernel_wishes(True)),
    ):
        assert len(wishes) == len(shipped[name])
        for wish in wishes:
            assert sum(all(row[key] == value for key, value in wish.items()) for row in shipped[name]) == 1, wish


def test_without_a_device_one_line_says_so(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    command = [sys.executable, str(ROOT / "validation" / "measure_h200.py"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("torch finds no CUDA device here; run it on a machine that has one")
    other = subprocess.run([*command, "step"], capture_output=True, text=True, check=False)
    assert "step: is no part; use device, steps, kernels" in other.stderr


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("validation.measure_h200")


def test_small_rows_are_measured_and_written(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.ceilings import Ceilings  # noqa: PLC0415
    from validation.resumable import Ledger  # noqa: PLC0415

    ceilings = Ceilings(*(1e12,) * len(fields(Ceilings)))
    wishes = [{"network": "lenet5", "batch": batch, "precision": "fp32", "solver": "sgd", "recompute": False} for batch in (4, 8)]  # fmt: skip
    for name, value in {
        "DEVICE": torch.device("cpu"),
        "STEPS": 2,
        "library_bytes": lambda: 0,
        "measure_ceilings": lambda _device: ceilings,
        "step_wishes": lambda: wishes,
    }.items():
        monkeypatch.setattr(script, name, value)
    origin = {"device": "cpu", "torch": torch.__version__, "cudnn": None}
    whole = Ledger(tmp_path, 60.0, origin, lambda _: None)
    script.measure(whole, ["steps"])
    rows = json.loads((tmp_path / "steps.json").read_text())["rows"]
    assert [row["batch"] for row in rows] == [4, 8]
    assert all(len(row["seconds"]) == 2 for row in rows)
    assert not whole.left
    assert whole.verdict == "complete"


STUDY = """
study: small
workload:
  dataset: {format: raw, num_files_train: 8, num_samples_per_file: 1, record_length_bytes: 4 KiB}
  reader: {batch_size: 4, read_threads: 1, prefetch_size: 2}
  train: {epochs: 2}
  model: {network: lenet5, device: cpu}
system: {nodes: 1, ranks_per_node: 1, tiers: {disk: {path: "{out}/tiers/disk"}}}
sweep: {workload.model.data: [tiers, synthetic]}
repetitions: 2
"""


def test_runs_that_are_handed_over_go_on_where_they_stopped(tmp_path: Path) -> None:
    from tierscope.measure.away import run_away  # noqa: PLC0415
    from tierscope.spec.load import parse_study  # noqa: PLC0415

    study, folder, data = parse_study(STUDY, "small.yaml"), tmp_path / "handed", str(tmp_path / "data")
    said: list[str] = []
    assert not run_away(study, str(folder), data, said.append, lambda: len(said) < 3)
    assert sorted(path.name for path in folder.glob("*.npz")) == ["0000-r1.npz", "0000-r2.npz", "0001-r1.npz"]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    assert run_away(study, str(folder), data, said.append)
    assert len(list(folder.glob("*.npz"))) == len(said) == 4
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())
    other = parse_study(STUDY.replace("batch_size: 4", "batch_size: 2"), "small.yaml")
    with pytest.raises(UserError, match="contains runs of another study; choose another directory"):
        run_away(other, str(folder), data, said.append)
