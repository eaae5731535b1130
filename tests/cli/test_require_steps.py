"""`tierscope require`: where the step comes from, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run

ASK = ("require", "cosmoflow", "--system", "cori-gpu", "--batch", "4", "--precision", "amp", "--nodes", "1")
H200 = str(Path(__file__).parents[2] / "validation" / "h200" / "device.yaml")


class Asker:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *more: str) -> Any:
        assert run(*ASK, *more, "--json") == 0
        return json.loads(self._capsys.readouterr().out)

    def refused(self, *more: str) -> str:
        return self.line(*ASK, *more)

    def line(self, *arguments: str) -> str:
        assert run(*arguments) == 2
        return one_line(self._capsys)


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(capsys)


def efficiency(folder: Path, **changed: object) -> str:
    document = {"model": "cosmoflow", "batch": 4, "precision": "amp", "device": "fake", "total_seconds": 0.5, **changed}
    (folder / "efficiency.json").write_text(json.dumps(document))
    return str(folder)


def test_a_given_step_is_used_and_named(asked: Asker, tmp_path: Path) -> None:
    document = asked("--step-seconds", "0.5")
    assert document["step"]["source"] == "given"
    assert document["scaling"][0]["compute_seconds"] == pytest.approx(262_144 / 8 / 4 * 0.5)
    assert "shuffled" in document["assumed"]["shuffle"]
    measured = asked("--measured", efficiency(tmp_path))
    assert measured["scaling"] == document["scaling"]


def test_a_measured_device_predicts_between_its_ends(asked: Asker) -> None:
    step = asked("--system", "h200-node", "--device-file", H200)["step"]
    assert step["source"] == "predicted"
    assert step["low"] < step["seconds"] < step["high"]
    assert 0.5 < step["seconds"] / 12.867e-3 < 2  # validation/h200/steps.json


def test_a_device_file_of_absurd_steps_is_refused(asked: Asker, tmp_path: Path) -> None:
    """Each of its numbers is one that a file may have."""
    text, absurd = Path(H200).read_text(), tmp_path / "device.yaml"
    text = re.sub(r"^(  \w+ amp \w+: \[.*, )[^,]+\]$", r"\g<1>25]", text, flags=re.MULTILINE)
    sizes = re.compile(r"^(      [^:\n]+: )([^:\n]+)$", re.MULTILINE)
    absurd.write_text(sizes.sub(lambda line: line[1] + " ".join("1e6" for _ in line[2].split()), text))
    said = asked.refused("--system", "h200-node", "--device-file", str(absurd))
    assert "device.yaml: a step would take up to " in said


def test_a_device_file_without_the_precision_is_refused(asked: Asker, tmp_path: Path) -> None:
    """Of a device that has no kernels for it."""
    text = Path(H200).read_text()
    one = tmp_path / "device.yaml"
    one.write_text(text.replace("  amp:\n", "  none:\n", 1))
    said = asked.refused("--system", "h200-node", "--device-file", str(one))
    assert "NVIDIA H200 was not measured in amp; use --precision fp32" in said


def test_what_does_not_go_together_is_refused(asked: Asker, tmp_path: Path) -> None:
    both = asked.refused("--step-seconds", "1", "--device-file", H200)
    assert "--device-file: cannot be combined with --step-seconds" in both
    assert "NVIDIA H200" in asked.refused("--device-file", H200)  # accelerators of cori-gpu are others
    assert "no such file" in asked.refused("--device-file", str(tmp_path / "none.yaml"))
    assert "neither training.json nor efficiency.json" in asked.refused("--measured", str(tmp_path))
    assert "efficiency.json: is damaged: input" in asked.refused("--measured", efficiency(tmp_path, input="abc"))
    assert "has --batch 8, but 4 is asked" in asked.refused("--measured", efficiency(tmp_path, batch=8))
    assert "has --precision fp32" in asked.refused("--measured", efficiency(tmp_path, precision="fp32"))
    assert "has model lenet5" in asked.refused("--measured", efficiency(tmp_path, model="lenet5"))


def test_a_device_file_is_no_system(asked: Asker) -> None:
    assert "measured accelerator, not a system" in asked.line("require", "cosmoflow", "--system", H200)


def test_an_accelerator_is_probed_without_tiers_and_into_a_file(asked: Asker) -> None:
    assert "--tier" in asked.line("probe", "--accelerator", "cuda", "--tier", "a=/tmp", "-o", "x.yaml")
    assert "-o is missing" in asked.line("probe", "--accelerator", "cuda")
    for option in ("--ranks", "--nodes", "--row", "--seconds"):
        said = asked.line("probe", "--accelerator", "cuda", "-o", "x.yaml", option, "4")
        assert f"{option}: cannot be combined with --accelerator" in said


@pytest.mark.parametrize("seconds", [-5.0, 0.0, 1e308])
def test_a_step_that_cannot_be_is_refused(seconds: float, asked: Asker, tmp_path: Path) -> None:
    assert "total_seconds" in asked.refused("--measured", efficiency(tmp_path, total_seconds=seconds))
    assert "nan: is not a number" in asked.refused("--step-seconds", "nan")


def test_a_step_on_a_cpu_says_nothing_about_an_accelerator(asked: Asker, tmp_path: Path) -> None:
    assert "was measured on a CPU" in asked.refused("--measured", efficiency(tmp_path, device="cpu"))


def trained(folder: Path, **changed: object) -> str:
    point = {"data": "memory", "samples_per_second": 8.0, "precision": "amp", "device": "fake", **changed}
    (folder / "training.json").write_text(json.dumps({"network": "cosmoflow", "points": [point]}))
    (folder / "study.yaml").write_text(
        "study: t\nworkload: {dataset: {format: npz, num_files_train: 8, record_length_bytes: 1 KiB}, reader: {batch_size: 4}}\n"
        "system: {nodes: 1, ranks_per_node: 1, tiers: {gfs: {path: /nowhere}}}\n"
    )
    return str(folder)


def test_steps_that_waited_for_storage_do_not_tell_whether_it_matters(asked: Asker, tmp_path: Path) -> None:
    """They would count the waiting as compute, and say that storage does not matter."""
    assert "no points with samples from memory" in asked.refused("--measured", trained(tmp_path, data="tiers"))
    assert asked("--measured", trained(tmp_path))["step"]["seconds"] == pytest.approx(0.5)
    for changed in ({"interval": [20, 30]}, {"samples_per_second": 0}):
        assert "training.json" in asked.refused("--measured", trained(tmp_path, **changed))


def test_few_uneven_repetitions_are_no_damage(asked: Asker, tmp_path: Path) -> None:
    """Student's interval of two repetitions reaches below zero where one is a fifth faster."""
    said = asked.refused("--measured", trained(tmp_path, interval=[-1.5, 17.5]))
    assert "interval of samples/s, -1.5 to 17.5, reaches below zero" in said
    assert said.endswith("with more --repetitions")
    document = json.loads((tmp_path / "training.json").read_text())
    waiting = {**document["points"][0], "data": "tiers"}
    document["points"] = [waiting, {**waiting, "data": "memory", "interval": [7.5, 8.5]}]
    (tmp_path / "training.json").write_text(json.dumps(document))
    assert asked("--measured", str(tmp_path))["step"]["high"] == pytest.approx(4 / 7.5), "the others do not matter"


@pytest.mark.parametrize("device", ["NVIDIA H200", "NVIDIA A100-SXM4-80GB", "fake"])
def test_a_step_of_another_accelerator_is_refused(device: str, asked: Asker, tmp_path: Path) -> None:
    """An H200's steps on nodes of V100 read as if storage were 26.9 × too slow. Earlier results have the name alone; of others nothing is known."""
    memory = 150 * 10**9 if device == "fake" else None
    made = {"device": device, "device_memory_bytes": memory}
    for out in (trained(tmp_path, **made), efficiency(tmp_path, **made)):
        said = asked.refused("--measured", out)
        assert f"is of '{device}' with" in said
        assert "but accelerators of cori-gpu have 16 GiB" in said
    same = asked("--measured", efficiency(tmp_path, device="Tesla V100-SXM2-16GB", input="4x128x128x128"))
    assert "does not say" not in same["step"]["about"]
    unknown = asked("--measured", efficiency(tmp_path))["step"]["about"]
    assert "does not say the shape of a sample, or whether that is an accelerator of cori-gpu" in unknown


def test_what_a_device_reached_tells_it_apart_too(asked: Asker, tmp_path: Path) -> None:
    """Of two accelerators with as much memory."""
    reached = {"memory_bandwidth": 2e12, "fp32": 2e13, "tf32": 2e14, "bf16": 6e14}
    alike = {"device": "fake", "device_memory_bytes": 16 * 2**30}
    said = asked.refused("--measured", efficiency(tmp_path, **alike, ceilings=reached))
    assert "whose memory was measured at" in said
    asked("--measured", efficiency(tmp_path, **alike, ceilings={**reached, "memory_bandwidth": 8e11, "bf16": 1e14}))


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({"optimizer": "adam"}, (), "has --optimizer adam, but sgd is asked"),
        ({"optimizer": "sgd"}, ("--optimizer", "adam"), "has --optimizer sgd, but adam is asked"),
        ({"recompute": True}, (), "activations were recomputed, but are to be kept; add --checkpointed"),
        ({}, ("--checkpointed",), "activations were kept, but are to be recomputed; remove --checkpointed"),
        ({}, ("--input", "4x64x64x64"), "has --input 4x128x128x128, but 4x64x64x64 is asked"),
        ({"batch_size": 2}, (), "has --batch 2, but 4 is asked"),
    ],
)
def test_a_step_of_something_else_is_refused(
    changed: dict[str, object], options: tuple[str, ...], said: str, asked: Asker, tmp_path: Path
) -> None:
    assert said in asked.refused("--measured", trained(tmp_path, **changed), *options)


def test_of_several_batches_the_one_that_is_asked_is_taken(asked: Asker, tmp_path: Path) -> None:
    out = trained(tmp_path, batch_size=8, samples_per_second=9.0)
    document = json.loads((tmp_path / "training.json").read_text())
    document["points"].append({**document["points"][0], "batch_size": 4, "samples_per_second": 8.0})
    (tmp_path / "training.json").write_text(json.dumps(document))
    assert asked("--measured", out)["step"]["seconds"] == pytest.approx(0.5)


def test_steps_of_kernels_are_sgd_with_activations_kept(asked: Asker, tmp_path: Path) -> None:
    """So they were before files said it."""
    assert "--optimizer sgd" in asked.refused("--measured", efficiency(tmp_path), "--optimizer", "adam")
    assert "--checkpointed" in asked.refused("--measured", efficiency(tmp_path), "--checkpointed")
    assert "--input 4x64x64x64" in asked.refused("--measured", efficiency(tmp_path, input="4x64x64x64"))


def test_kernels_do_not_tell_how_long_the_host_takes(asked: Asker, tmp_path: Path) -> None:
    """Of a small batch it takes longer than they do: a step may be as long as all its launches."""
    step = asked("--measured", efficiency(tmp_path))["step"]
    assert step["low"] == step["high"] == 0.5
    step = asked("--measured", efficiency(tmp_path, total_seconds=1e-3))["step"]
    assert step["low"] == step["seconds"] == 1e-3
    assert step["high"] == pytest.approx(24 * 3e-4)
    assert step["about"].endswith("which do not tell how long the host takes to launch them")


def test_a_folder_that_is_no_result_of_one_training_is_called_what_it_is(asked: Asker) -> None:
    tables = Path(H200).parent
    said = asked.refused("--measured", str(tables))
    assert "lists several trainings (cosmoflow, deepcam, resnet50)" in said
    assert f"'tierscope train --take {tables / 'cosmoflow'} --out OUT'" in said
    assert "damaged" not in said
    assert "run 'tierscope train --take" in asked.refused("--measured", str(tables / "cosmoflow"))


def test_a_result_over_several_keys_names_its_parts(asked: Asker, tmp_path: Path) -> None:
    (tmp_path / "batch_size").mkdir()
    trained(tmp_path / "batch_size")
    (tmp_path / "training.json").write_text((tmp_path / "batch_size" / "training.json").read_text())
    assert f"e.g. {tmp_path / 'batch_size'}" in asked.refused("--measured", str(tmp_path))


def test_all_reduce_of_a_device_file_replaces_the_links_of_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a system with as many devices; the sentence says what is still modelled."""
    system = tmp_path / "two.yaml"
    shipped = Path(__file__).parents[2] / "src" / "tierscope" / "spec" / "systems" / "h200-node.yaml"
    text = shipped.read_text().partition("\nfigures:")[0]
    system.write_text(text.replace("    count: 1\n", "    count: 2\n    peer_bandwidth: 100 GB/s\n") + "\n")
    measured = tmp_path / "device.yaml"
    shared = 'all_reduce:\n  devices: 2\n  backend: "nccl"\n  seconds: |\n    4096: 1e-05\n    268435456: 0.5\n'
    measured.write_text(Path(H200).read_text().replace("smooth:  #", f"{shared}smooth:  #"))
    ask = ("require", "cosmoflow", "--system", str(system), "--device-file")
    rings = []
    for path in (H200, str(measured)):
        assert run(*ask, path, "--json") == 0
        rings.append(json.loads(capsys.readouterr().out)["allreduce_seconds"]["ring"])
    assert rings[1] > 10 * rings[0] > 0
    assert run(*ask, str(measured)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "all-reduce in a node as measured alone over 2 devices" in said
    assert "Exchange between nodes is modelled, not measured." in said


def test_a_step_may_have_a_unit(asked: Asker) -> None:
    assert asked("--step-seconds", "500ms") == asked("--step-seconds", "0.5")
    assert "write it like 1.5 ms" in asked.refused("--step-seconds", "20parsec")


def test_tiers_whose_bandwidths_are_assumed_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They may decide the answer, which does not vary them."""
    assert run(*ASK) == 0
    assert "; bandwidths of gfs are themselves assumed, as the system's file says." in " ".join(
        capsys.readouterr().out.split()
    )
    shipped = Path(__file__).parents[2] / "src" / "tierscope" / "spec" / "systems" / "cori-gpu.yaml"
    own = tmp_path / "own.yaml"
    own.write_text(shipped.read_text().partition("\nfigures:")[0] + "\n")
    assert run(*ASK, "--system", str(own)) == 0
    assert "themselves assumed" not in capsys.readouterr().out
