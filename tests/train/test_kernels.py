"""The efficiency of a step: what is said where it cannot be measured, and what is written where it was."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tierscope.arch.efficiency import COUNTED, Kernel, histogram
from tierscope.commands.kernels import claim_efficiency, write_efficiency
from tierscope.errors import UserError
from tierscope.train.kernels import Efficiency, measure_efficiency, to_json


def test_an_unknown_network_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean resnet50"):
        measure_efficiency("resnet5", 1, "fp32", "cpu")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_line_that_installs_it() -> None:
    with pytest.raises(UserError, match=r"torch, which is not installed; pip install 'tierscope\[torch\]'"):
        measure_efficiency("lenet5", 1, "fp32", "cpu")


def test_out_holds_json_and_figure(tmp_path: Path) -> None:
    kernels = (Kernel("convolution", 0.25, 0.5, 0.0, 0.125),)
    found = Efficiency("lenet5", 4, "fp32", "a device", histogram(kernels, COUNTED), kernels, {"fp32": 1e12})
    for _ in range(2):
        folder = claim_efficiency(str(tmp_path / "out"))
        written = write_efficiency(found, folder)
    assert written[0].endswith("efficiency.json")
    assert json.loads(Path(written[0]).read_text()) == to_json(found)
    assert "lenet5, batch 4, fp32, on a device" in Path(written[1]).read_text()


def test_what_is_written_tells_a_step_from_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`require --measured` compares it with what is asked, and with the system's accelerator."""
    kernels = (Kernel("convolution", 0.25, 0.5, 0.0, 0.125),)
    done = Efficiency("lenet5", 4, "fp32", "a device", histogram(kernels, COUNTED), kernels, None, "1x28x28", 16 << 30)
    folder = claim_efficiency(str(tmp_path / "out"))
    write_efficiency(done, folder)
    asked = ("require", "lenet5", "--batch", "4", "--measured", folder, "--json", "--system")
    assert run(*asked, "cori-gpu") == 0
    about = json.loads(capsys.readouterr().out)["step"]["about"]
    assert "does not say" not in about
    assert run(*asked, "h200-node") == 2
    assert "is of 'a device' with 16 GiB, but accelerators of h200-node have 140 GiB" in one_line(capsys)
    assert run(*asked, "cori-gpu", "--input", "1x32x32") == 2
    assert "has --input 1x28x28" in one_line(capsys)


def test_out_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a step is run, so without torch too."""
    (tmp_path / "thesis.tex").write_text("mine")
    assert run("kernels", "lenet5", "--device", "cpu", "--out", tmp_path) == 2
    assert "is not empty and was not created by Tierscope" in one_line(capsys)
