"""Predictions from layers against what was measured on a real accelerator."""

import json
import statistics
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.small_pictures import small_pictures  # noqa: F401  (a fixture)
from tierscope.arch.device_parse import load_device
from tierscope.arch.machine import machine_of
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.roofline import layer_costs, roofline_seconds
from tierscope.arch.step_memory import CUDNN, step_memory
from tierscope.arch.step_seconds import SLOWEST, from_roofline, launch_seconds
from tierscope.arch.step_work import step_work
from tierscope.cli import train
from tierscope.spec.known import load_system
from validation import accelerator
from validation.decoders import decoder_peaks
from validation.table import as_markdown
from validation.training_rates import training_table

pytestmark = pytest.mark.whole


def test_peak_memory_of_a_network_follows_from_two_others() -> None:
    for name, policy, peaks in accelerator.left_out():
        assert len(peaks) == 6, "three batches in two precisions"
        worst = max(abs(peak.error) for peak in peaks)
        assert worst <= accelerator.GOAL, (name, policy, worst)


def test_peak_memory_of_transformers_is_within_its_goal() -> None:
    peaks = decoder_peaks(accelerator.table("decoder.json")["rows"])
    assert len(peaks) == 32
    assert max(abs(peak.error) for peak in peaks) <= accelerator.GOAL
    assert len({peak.moment for peak in peaks}) >= 4, "no one moment is the peak of all"


def test_the_policy_that_ships_is_the_fitted_one() -> None:
    rows = [row for row in accelerator.plain_steps() if row["network"] in accelerator.FITTED]
    assert accelerator.fit(rows) == CUDNN


@pytest.mark.parametrize(
    "row", accelerator.table("steps.json")["rows"], ids=lambda row: f"{row['network']}-{row['batch']}"
)
def test_no_measured_peak_is_far_from_the_prediction(row: dict[str, object]) -> None:
    """Also of networks, optimizers and recomputation that nothing was fitted on."""
    assert abs(accelerator.predicted(row, CUDNN).error) <= accelerator.GOAL


def test_what_libraries_take_is_added_to_the_peak() -> None:
    """As the model has it for every row."""
    for row in accelerator.table("steps.json")["rows"]:
        network, precision = build_network(row["network"]), PRECISIONS[row["precision"]]
        target_bytes = NETWORKS[row["network"]].data.target_bytes
        memory = step_memory(network, row["batch"], precision, row["solver"], CUDNN, row["recompute"], target_bytes)
        assert accelerator.predicted(row, CUDNN).predicted == memory.peak


def test_kept_activations_are_those_of_the_allocator() -> None:
    for row in accelerator.plain_steps():
        if row["network"] not in accelerator.FITTED:
            continue
        network, precision = build_network(row["network"]), PRECISIONS[row["precision"]]
        memory = step_memory(network, row["batch"], precision, policy=CUDNN)
        assert memory.activations == pytest.approx(row["kept_bytes"], rel=0.05)


def test_the_roofline_is_a_lower_bound() -> None:
    for row in accelerator.plain_steps():
        precision = PRECISIONS[row["precision"]]
        costs = layer_costs(build_network(row["network"]), precision)
        bound = row["batch"] * roofline_seconds(costs, accelerator.measured_device(), precision)
        assert statistics.median(row["seconds"]) > bound


def test_two_ways_to_the_efficiency_agree_on_the_time() -> None:
    """By counted operations and by the hardware's counters: the same step, within what two runs of a profiler differ."""
    times: dict[tuple[str, str], list[float]] = {}
    for row in accelerator.table("kernels.json")["rows"]:
        times.setdefault((row["network"], row["precision"]), []).append(row["total_seconds"])
    assert len(times) == 6
    for found in times.values():
        assert len(found) == 2
        assert max(found) / min(found) < 1.25


def test_a_training_that_was_handed_over_opens_in_the_page(tmp_path: Path) -> None:
    """Runs of a machine without Polars, made a result here; and the table that ships is what it says."""
    out = str(tmp_path / "out")
    done = CliRunner().invoke(train.command, ["--take", str(accelerator.FOLDER / "cosmoflow"), "--out", out, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    shipped = next(study for study in accelerator.table("training.json")["studies"] if study["network"] == "cosmoflow")
    for point, known in zip(found["points"], shipped["points"], strict=True):
        assert point["data"] == known["data"]
        assert point["samples_per_second"] == pytest.approx(known["samples_per_second"])
        assert abs(point["predicted_memory_bytes"] / point["peak_memory_bytes"] - 1) < accelerator.GOAL
    page = (tmp_path / "out" / "report.html").read_text()
    assert "cosmoflow" in page
    assert "NVIDIA H200" in page


def test_what_require_says_of_this_device_is_a_lower_bound_too() -> None:
    """With the peaks of the datasheet."""
    machine = machine_of("h200-node", load_system("h200-node").system)
    for row in accelerator.plain_steps():
        precision = PRECISIONS[row["precision"]]
        bound = row["batch"] * roofline_seconds(
            layer_costs(build_network(row["network"]), precision), machine.device, precision
        )
        assert statistics.median(row["seconds"]) > bound


def test_no_measured_step_is_longer_than_require_thinks_possible() -> None:
    """Without a device file. Of small networks and batches it is the host that takes longest, many times the roofline."""
    machine = machine_of("h200-node", load_system("h200-node").system)
    beyond: set[str] = set()
    for row in accelerator.table("steps.json")["rows"]:
        network, precision = build_network(row["network"]), PRECISIONS[row["precision"]]
        bound = row["batch"] * roofline_seconds(layer_costs(network, precision), machine.device, precision)
        step, measured = from_roofline(bound, len(network.layers)), statistics.median(row["seconds"])
        assert step.low < measured < step.high, row
        beyond |= {row["network"]} if measured > SLOWEST * bound else set()
    assert beyond == {"lenet5"}, "the roofline alone would be too short"


def test_no_host_takes_longer_for_few_layers_than_require_thinks_possible() -> None:
    """Loss, zeroing and update come to every step: of two layers they are most of it."""
    for host in load_device(str(accelerator.FOLDER / "device.yaml")).host.values():
        step, linear, relu = (sum(host[kind]) for kind in ("step", "linear", "relu"))
        for layers in range(1, 40):
            dense = (layers + 1) // 2
            assert step + dense * linear + (layers - dense) * relu < launch_seconds(layers)


def test_a_network_is_predicted_without_its_own_layers() -> None:
    """CosmoFlow's first layer, at batch 4, had been drawn by chance: its predictions were better for it."""
    whole, network = load_device(str(accelerator.FOLDER / "device.yaml")), build_network("cosmoflow")
    first = (4, 4, 32, 128, 3, 1, 1)
    assert first in {row.sizes for row in whole.rows["conv3d", "fp32"]}
    without = accelerator.without_layers_of(network, (1, 4, 8), whole)
    own = {
        (piece.kind, tuple(round(size, 6) for size in piece.sizes))
        for batch in (1, 4, 8)
        for issue in step_work(network, batch, PRECISIONS["fp32"], "none").issues
        for piece in issue.pieces
    }
    left = {(kind, row.sizes) for (kind, _), rows in without.rows.items() for row in rows}
    assert left
    assert not left & own
    assert sum(map(len, whole.rows.values())) - sum(map(len, without.rows.values())) <= 2 * len(own)


def test_documents_show_the_tables_as_they_are_printed() -> None:
    """docs/training.md has its table; every row of docs/validation.md about the accelerator is one that is printed, with its goal and whether it is met."""
    docs = Path(__file__).parents[2] / "docs"
    assert training_table() in (docs / "training.md").read_text()
    printed = set(as_markdown(accelerator.rows(False)).splitlines())
    shown = [line for line in (docs / "validation.md").read_text().splitlines() if line.startswith("| accelerator |")]
    assert len(shown) > 80
    assert [line for line in shown if line not in printed] == []
    for goal in ("≥ 0.93", "≥ 0.95", "≤ 15%", "≤ 5%"):
        judged = [line for line in shown if f"| {goal} |" in line]
        assert judged
        assert all("| yes |" in line or "| **no** |" in line for line in judged), "met or missed"
