"""Predictions from layers against a real accelerator: peak memory, step times, efficiency; tables in validation/h200, made by measure_h200.py.

Peak memory: two numbers of the model, workspace of convolutions and what libraries take for good, are fitted on two networks and the third is
predicted, each in turn. Step times: the roofline with ceilings that were measured on the same device, a lower bound.
"""

import functools
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.roofline import Device, layer_costs, roofline_seconds
from tierscope.arch.step_memory import Policy, step_memory
from validation.table import Row

FOLDER = Path(__file__).parent / "h200"
FITTED = ("cosmoflow", "deepcam", "resnet50")
GOAL = 0.05
_WORKSPACES = tuple(step / 20 for step in range(41))
_LIBRARIES = tuple(step << 20 for step in range(0, 129, 4))


@dataclass(frozen=True, slots=True)
class Peak:
    """One measured configuration; `error`: of the prediction, relative."""

    network: str
    batch: int
    precision: str
    measured: int
    predicted: int

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


@functools.cache
def table(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


@functools.cache
def _network(name: str) -> Network:
    return build_network(name)


def plain_steps() -> list[dict[str, Any]]:
    """Steps with plain SGD that keep their activations."""
    return [row for row in table("steps.json")["rows"] if row["solver"] == "sgd" and not row["recompute"]]


def predicted(row: dict[str, Any], policy: Policy) -> Peak:
    network, batch, precision = row["network"], row["batch"], row["precision"]
    without = _peak_bytes(network, batch, precision, row["solver"], replace(policy, library_bytes=0), row["recompute"])
    peak = without + policy.library_bytes  # there from the first to the last
    return Peak(network, batch, precision, row["peak_bytes"], peak)


@functools.cache
def _peak_bytes(name: str, batch: int, precision: str, solver: str, policy: Policy, recompute: bool) -> int:
    """Several fits ask for the same ones."""
    target_bytes = NETWORKS[name].data.target_bytes
    return step_memory(_network(name), batch, PRECISIONS[precision], solver, policy, recompute, target_bytes).peak


def fit(rows: Sequence[dict[str, Any]]) -> Policy:
    """The policy with the smallest sum of squared relative errors."""

    def loss(policy: Policy) -> float:
        return sum(predicted(row, policy).error ** 2 for row in rows)

    workspace = min(_WORKSPACES, key=lambda share: loss(Policy(share, 64 << 20)))
    return min((Policy(workspace, nbytes) for nbytes in _LIBRARIES), key=loss)


def left_out() -> list[tuple[str, Policy, list[Peak]]]:
    """Each of the three networks, predicted with what was fitted on the two others."""
    found = []
    for name in FITTED:
        others = [row for row in plain_steps() if row["network"] in FITTED and row["network"] != name]
        policy = fit(others)
        found.append((name, policy, [predicted(row, policy) for row in plain_steps() if row["network"] == name]))
    return found


def rows(short: bool) -> list[Row]:
    del short
    origin = table("steps.json")["origin"]
    found = [
        Row("accelerator", "measured on", f"{origin['device']}, torch {origin['torch']}", note=origin["time"][:10])
    ]
    for name, policy, peaks in left_out():
        worst = max(peaks, key=lambda peak: abs(peak.error))
        found.append(
            Row(
                "accelerator",
                f"peak memory of {name}, {len(peaks)} batches and precisions, fitted on the two others",
                f"{statistics.median(abs(peak.error) for peak in peaks):.1%} median, {abs(worst.error):.1%} worst",
                f"≤ {GOAL:.0%}",
                abs(worst.error) <= GOAL,
                f"workspace {policy.workspace:g}, libraries {policy.library_bytes >> 20} MiB; worst at batch {worst.batch}, {worst.precision}",
            )
        )
    return [*found, *_other_memory(), *_steps(), *_efficiency(), *_training()]


def _other_memory() -> Iterable[Row]:
    """Configurations that nothing was fitted on, with the policy of all three."""
    policy = fit([row for row in plain_steps() if row["network"] in FITTED])
    yield Row(
        "accelerator", "policy fitted on all three", f"workspace {policy.workspace:g}, {policy.library_bytes >> 20} MiB"
    )
    for row in table("steps.json")["rows"]:
        if row in plain_steps() and row["network"] in FITTED:
            continue
        peak = predicted(row, policy)
        with_ = f"{row['solver']}{', activations recomputed' if row['recompute'] else ''}"
        what = f"peak memory of {peak.network}, batch {peak.batch}, {peak.precision}, {with_}"
        yield Row("accelerator", what, f"{peak.measured / 2**20:.0f} MiB, predicted {peak.error:+.1%}")


def measured_device() -> Device:
    """Ceilings as measured. 32-bit convolutions run as TF32, as torch has it by default."""
    ceilings = table("ceilings.json")["ceilings"]
    return Device(ceilings["fp32"], ceilings["memory_bandwidth"], ceilings["bf16"], ceilings["tf32"])


def _steps() -> Iterable[Row]:
    for row in plain_steps():
        network, precision = _network(row["network"]), PRECISIONS[row["precision"]]
        bound = row["batch"] * roofline_seconds(layer_costs(network, precision), measured_device(), precision)
        measured = statistics.median(row["seconds"])
        yield Row(
            "accelerator",
            f"step of {row['network']}, batch {row['batch']}, {row['precision']}",
            f"{measured * 1e3:.2f} ms, roofline {bound * 1e3:.2f} ms",
            note=f"{measured / bound:.1f} × the bound; n = {len(row['seconds'])}",
        )


def _efficiency() -> Iterable[Row]:
    for row in table("kernels.json")["rows"]:
        idle = sum(row["bins_seconds"][:5]) / row["total_seconds"]
        yield Row(
            "accelerator",
            f"efficiency of {row['network']}, batch {row['batch']}, {row['precision']}, by {row['source']}",
            f"{row['ideal_seconds'] / row['total_seconds']:.0%}, potential {row['potential']:.1f} ×",
            note=f"{idle:.0%} of {row['total_seconds'] * 1e3:.1f} ms below half efficiency; {row['kernels']} kernels",
        )


def _training() -> Iterable[Row]:
    path = FOLDER / "training.json"
    if not path.exists():
        return
    for study in table("training.json")["studies"]:
        for point in study["points"]:
            low, high = point["interval"]
            yield Row(
                "accelerator",
                f"training {study['network']}, samples from {point['data']}",
                f"{point['samples_per_second']:.1f} samples/s ({low:.1f}–{high:.1f}, n = {point['n']})",
                note=f"device computed {point['utilisation']:.0%} of the time",
            )
