"""`tierscope require` as a user types it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.nightly import every_value_in_ci
from tierscope.arch.networks import NETWORKS

pytestmark = pytest.mark.whole

PROMISED = {
    "schema_version",
    "kind",
    "model",
    "system",
    "parameters",
    "sample_bytes",
    "flops_per_sample",
    "activation_bytes_per_sample",
    "hbm_bytes_per_sample",
    "bound_by",
    "movement_seconds_per_sample",
    "batches",
    "max_batch",
    "node_sample_bandwidth_at_peak",
}
SYSTEMS = ("cori-gpu", "summitdev", "theta", "fugaku", "h200-node")


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run("require", *arguments, "--json") == 0
    out = capsys.readouterr()
    assert not out.err
    document: dict[str, Any] = json.loads(out.out)
    return document


def test_json_has_what_was_promised(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(
        capsys, "cosmoflow", "--system", "cori-gpu", "--batch", "1,2,4,8", "--precision", "amp", "--nodes", "1..64"
    )
    assert found.keys() >= PROMISED
    assert (found["schema_version"], found["kind"]) == (1, "requirements")
    assert (found["model"], found["system"]) == ("cosmoflow", "cori-gpu")
    assert found["parameters"] == 8_907_556
    assert found["sample_bytes"] == 16 * 2**20
    assert found["flops_per_sample"] == {"forward": 68_862_099_968, "backward": 123_228_685_312}
    assert found["hbm_bytes_per_sample"].keys() == {"limit", "modelled"}
    assert found["movement_seconds_per_sample"].keys() >= {"memory", "samples_dram", "samples_nvme", "allreduce"}
    assert [each["batch"] for each in found["batches"]] == [1, 2, 4, 8]
    assert found["batches"][0].keys() >= {"batch", "memory_bytes", "fits"}
    parts = {"parameters", "gradients", "optimizer", "input", "activations", "peak"}
    assert found["batches"][0]["memory_bytes"].keys() >= parts
    assert [point["nodes"] for point in found["scaling"]] == [1, 2, 4, 8, 16, 32, 64]
    assert all(point["storage_seconds"] is not None for point in found["scaling"])
    kinds = {finding["kind"] for finding in found["findings"]}
    assert all(point.keys() >= {"storage_slow", "storage_fast", "storage_rests_on"} for point in found["scaling"])
    assert kinds >= {"storage_uncertain", "fits_memory", "device_bound", "beyond_system"}
    assert "layers" not in found


@pytest.mark.parametrize(("model", "system"), every_value_in_ci(list(NETWORKS), list(SYSTEMS)))
def test_every_network_on_every_system(model: str, system: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, model, "--system", system)
    assert [each["batch"] for each in found["batches"]] == [1]  # unless told
    assert found["precision"] == "fp32"
    assert found["max_batch"] >= 1
    assert found["batches"][0]["fits"]


@pytest.mark.parametrize(
    "options",
    [
        ("--checkpointed", "--optimizer", "adam"),
        ("--kept", "fused"),
        ("--compression", "4:2GB/s", "--weak", "--servers", "4"),
        ("--input", "3x320x320", "--samples", "1000", "--sample-file-bytes", "1MB"),
    ],
)
def test_options_change_something(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    plain = asked(capsys, "resnet50", "--system", "cori-gpu", "--batch", "8")
    assert asked(capsys, "resnet50", "--system", "cori-gpu", "--batch", "8", *options) != plain


def test_a_page_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("require", "deepcam", "--system", "cori-gpu", "--batch", "1,64", "--layers") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "deepcam on cori-gpu: requirements (fp32, sgd; modelled)" in said
    assert "56,454,720 parameters" in said
    assert "Bound by its 32-bit units" in said
    assert "Relative cost of a byte: device memory 1, host 56.25, network 72, lfs 2,250, gfs 4,500." in said
    assert "Does storage matter?" in said
    assert "the largest that fits is" in said


def test_a_narrow_terminal_keeps_what_matters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("require", "resnet50", "--system", "summitdev") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "waits for" in out


def test_layers_are_listed_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "lenet", "--system", "h200-node", "--layers")
    assert found["model"] == "lenet5"
    assert sum(layer["forward_flops"] for layer in found["layers"]) == found["flops_per_sample"]["forward"]


def test_a_batch_that_does_not_fit_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "deepcam", "--system", "cori-gpu", "--batch", "1,4096")
    assert [each["fits"] for each in found["batches"]] == [True, False]
    (finding,) = [finding for finding in found["findings"] if finding["kind"] == "batch_too_large"]
    assert finding["evidence"]["largest"] == found["max_batch"]


def test_when_nothing_fits_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    accelerator = "{count: 1, memory: 1 MB, memory_bandwidth: 1 TB/s, fp32: 1 TFLOP/s}"
    tiers = "{gfs: {path: /tmp/x, bandwidth: 1 GB/s}}"
    path.write_text(f"system: small\nhardware: {{accelerator: {accelerator}}}\ntiers: {tiers}\n")
    found = asked(capsys, "resnet50", "--system", str(path))
    assert found["max_batch"] == 0
    assert found["findings"][0]["kind"] == "nothing_fits"
    assert run("require", "resnet50", "--system", path) == 0
    assert "Not even batch 1 fits." in capsys.readouterr().out


def test_the_same_question_has_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    first = asked(capsys, "alexnet", "--system", "theta")
    assert asked(capsys, "alexnet", "--system", "theta") == first


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("resnet5", "--system", "cori-gpu"), "resnet5: no such network; did you mean resnet50?"),
        (("resnet50",), "--system is missing; use one of cori-gpu"),
        (("resnet50", "--system", "cori"), "--system cori: no such system; did you mean cori-gpu?"),
        (("resnet50", "--system", "none.yaml"), "--system none.yaml: no such file"),
        (("resnet50", "--system", "laptop"), "hardware.accelerator.count"),
        (("resnet50", "--system", "theta", "--batch", "0"), "--batch 0: 0 is not a whole number"),
        (("resnet50", "--system", "theta", "--nodes", "4..x"), "--nodes 4..x: x is not a whole number"),
        (("resnet50", "--system", "theta", "--input", "3,224"), "--input 3,224: must be whole numbers joined by x"),
        (("resnet50", "--system", "theta", "--input", "1x28x28"), "resnet50 takes 3 channels"),
        (("resnet50", "--system", "theta", "--input", "3"), "--input 3: resnet50 takes 3 channels and 2 sides"),
        (("resnet50", "--system", "theta", "--compression", "fast"), "--compression fast: the ratio must be a number"),
        (("resnet50", "--system", "theta", "--precision", "fp8"), "--precision"),
        (("resnet50", "--system", "theta", "--servers", "0"), "--servers"),
        (("resnet50", "--system", "theta", "--sample-file-bytes", "x"), "--sample-file-bytes x:"),
        (("mine:build", "--system", "theta"), "mine:build: the shape of a sample is unknown; add --input"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("require", *arguments) == 2
    assert line in one_line(capsys)


def test_unknown_keys_of_hardware_get_a_suggestion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("system: mine\nhardware: {accelerator: {fp23: 1 TFLOP/s}}\ntiers: {gfs: {path: /tmp/x}}\n")
    assert run("require", "lenet5", "--system", path) == 2
    assert "mine.yaml:2: hardware.accelerator.fp23: unknown key; did you mean fp32?" in one_line(capsys)


@pytest.mark.parametrize("output", ["--json", "--layers"])
def test_an_answer_pulls_in_neither_torch_nor_tables(output: str) -> None:
    """A shipped network is answered in under a second: this is what makes it so."""
    program = (
        "import sys; from tierscope.cli.main import _run; "
        f"_run(['require', 'deepcam', '--system', 'fugaku', {output!r}]); "
        "print(*(name.partition('.')[0] for name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & {"torch", "polars", "scipy", "tensorflow", "pyarrow"}


ASKED = ("lenet5", "--system", "cori-gpu", "--batch", "1,8")
FIGURES = {"memory", "roofline", "movement", "scaling", "decomposition"}


def test_out_holds_page_json_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    document = asked(capsys, *ASKED, "--layers")
    assert run("require", *ASKED, "--layers", "--out", out) == 0
    said = capsys.readouterr().out
    assert "lenet5 on cori-gpu: requirements" in said
    assert "requirements.html" in said.partition("Page: ")[2]
    assert json.loads((out / "requirements.json").read_text()) == document
    assert (out / "requirements.html").read_bytes().startswith(b"<!doctype html>")
    assert {path.stem for path in (out / "figures").glob("*.svg")} == FIGURES


def test_json_stays_pure_beside_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = asked(capsys, *ASKED, "--out", str(tmp_path / "out"))
    assert (tmp_path / "out" / "requirements.json").read_text() == json.dumps(document, indent=1) + "\n"


def test_out_can_be_written_again_and_old_figures_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("require", *ASKED, "--out", out) == 0
    (out / "figures" / "mine.svg").write_text("mine")
    assert run("require", *ASKED, "--nodes", "2", "--out", out) == 0
    assert {path.stem for path in (out / "figures").glob("*.svg")} == FIGURES - {"scaling"} | {"mine"}
    assert "Not drawn: scaling; see the page for the reasons" in capsys.readouterr().out
    assert [point["nodes"] for point in json.loads((out / "requirements.json").read_text())["scaling"]] == [2]


def test_out_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert run("require", *ASKED, "--out", tmp_path) == 2
    assert "was not created by Tierscope" in one_line(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_out_of_another_command_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tierscope.json").write_text('{"schema_version": 1, "kind": "report"}')
    assert run("require", *ASKED, "--out", tmp_path) == 2
    assert "contains Tierscope's report" in one_line(capsys)


@pytest.mark.parametrize("what", ["", "figures is a file"])
def test_out_that_cannot_be_used_gets_one_line(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out" if what else ""
    if what:
        assert run("require", *ASKED, "--nodes", "2", "--out", out) == 0
        for path in (tmp_path / "out" / "figures").iterdir():
            path.unlink()
        (tmp_path / "out" / "figures").rmdir()
        (tmp_path / "out" / "figures").write_text("mine")
        capsys.readouterr()
    assert run("require", *ASKED, "--out", out) == 2
    assert ("figures: is not a directory" if what else "--out is empty") in one_line(capsys)
