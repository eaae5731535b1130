"""Predictions from layers against a real accelerator: peak memory, step times, efficiency; tables in validation/h200, made by measure_h200.py.

Peak memory: two numbers of the model, workspace of convolutions and what libraries take for good, are fitted on two networks and the third is
predicted, each in turn. Step times: the roofline with ceilings that were measured on the same device, a lower bound.
"""

import functools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tierscope.arch.device_file import DeviceFile
from tierscope.arch.device_parse import load_device
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.roofline import Device, layer_costs, roofline_seconds
from tierscope.arch.step_memory import Policy, step_memory
from tierscope.arch.step_time import NETWORK_DOUBT, StepTime, Surfaces, predict_step
from tierscope.arch.step_work import step_work
from validation.decoders import decoder_peaks
from validation.table import Row

WORKERS = 8  # of torch's DataLoader in measure_loaders.py
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
    document: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return document


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
    left = []
    for name in FITTED:
        others = [row for row in plain_steps() if row["network"] in FITTED and row["network"] != name]
        policy = fit(others)
        left.append((name, policy, [predicted(row, policy) for row in plain_steps() if row["network"] == name]))
    return left


def rows(short: bool) -> list[Row]:
    del short
    origin = table("steps.json")["origin"]
    table_rows = [
        Row("accelerator", "measured on", f"{origin['device']}, torch {origin['torch']}", note=origin["time"][:10])
    ]
    for name, policy, peaks in left_out():
        worst = max(peaks, key=lambda peak: abs(peak.error))
        table_rows.append(
            Row(
                "accelerator",
                f"peak memory of {name}, {len(peaks)} batches and precisions, fitted on the two others",
                f"{statistics.median(abs(peak.error) for peak in peaks):.1%} median, {abs(worst.error):.1%} worst",
                f"≤ {GOAL:.0%}",
                abs(worst.error) <= GOAL,
                f"workspace {policy.workspace:g}, libraries {policy.library_bytes >> 20} MiB; worst at batch {worst.batch}, {worst.precision}",
            )
        )
    return [
        *table_rows,
        *_other_memory(),
        *_decoders(),
        *_steps(),
        *_predicted_steps(),
        *_efficiency(),
        *_training(),
    ]


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


def _decoders() -> Iterable[Row]:
    peaks = decoder_peaks(table("decoder.json")["rows"])
    for peak in peaks:
        yield Row(
            "accelerator",
            f"peak memory of {peak.what}",
            f"{peak.measured / 2**20:.0f} MiB, predicted {peak.error:+.1%}",
            note=peak.moment,
        )
    worst = max(peaks, key=lambda peak: abs(peak.error))
    middle = statistics.median(abs(peak.error) for peak in peaks)
    yield Row(
        "accelerator",
        f"peak memory of transformers, worst of {len(peaks)}",
        f"{abs(worst.error):.1%} worst, {middle:.2%} median",
        f"≤ {GOAL:.0%}",
        abs(worst.error) <= GOAL,
        f"at {worst.what}; nothing is fitted to these rows, but the formulas were written with all of them in view",
    )


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


STEP_MEDIAN, STEP_WORST = 0.15, 0.35


def common_error(errors: Mapping[str, Sequence[float]]) -> float:
    """What networks are off by in common: the root mean square of their mean logarithms of predicted over measured."""
    return math.sqrt(statistics.fmean(statistics.fmean(logs) ** 2 for logs in errors.values()))


def without_layers_of(network: Network, batches: Iterable[int], device: DeviceFile) -> DeviceFile:
    """Drawn sizes that happen to be those of its layers are left out: it is predicted without its own measurements."""
    own = {
        _rounded(piece.kind, piece.sizes)
        for batch in batches
        for issue in step_work(network, batch, PRECISIONS["amp"], "none").issues
        for piece in issue.pieces
    }
    rows = {
        (kind, precision): tuple(row for row in drawn if _rounded(kind, row.sizes) not in own)
        for (kind, precision), drawn in device.rows.items()
    }
    return replace(device, rows=rows)


def _rounded(kind: str, sizes: Iterable[float]) -> tuple[str | float, ...]:
    """A mean side is a root, and not quite the whole number that it is."""
    return (kind, *(round(size, 6) for size in sizes))


def _predicted_steps() -> Iterable[Row]:
    """From the device file alone, without sizes that are those of the network's own layers. What a network may be off by in common is that of the others."""
    kept = [row for row in table("steps.json")["rows"] if not row["recompute"]]
    whole = load_device(str(FOLDER / "device.yaml"))
    devices = {
        name: without_layers_of(_network(name), {row["batch"] for row in kept if row["network"] == name}, whole)
        for name in {row["network"] for row in kept}
    }
    surfaces: dict[str, Surfaces] = {name: {} for name in devices}

    def predict(row: dict[str, Any], doubt: float) -> tuple[StepTime, float, bool]:
        network, precision = _network(row["network"]), PRECISIONS[row["precision"]]
        name = row["network"]
        step = predict_step(
            devices[name],
            network,
            row["batch"],
            precision,
            row["solver"],
            network_doubt=doubt,
            surfaces=surfaces[name],
        )
        measured = statistics.median(row["seconds"])
        return step, measured, step.interval[0] <= measured <= step.interval[1]

    logs: dict[str, list[float]] = {}
    narrow = inside = 0
    for row in kept:
        step, measured, within = predict(row, 0.0)
        logs.setdefault(row["network"], []).append(math.log(step.seconds / measured))
        narrow += within
    doubts = {name: common_error({other: logs[other] for other in logs if other != name}) for name in logs}
    errors: dict[str, float] = {}
    for row in kept:
        step, measured, within = predict(row, doubts[row["network"]])
        low, high = step.interval
        inside += within
        what = f"{row['network']}, batch {row['batch']}, {row['precision']}, {row['solver']}"
        errors[what] = step.seconds / measured - 1
        outside = f"; beyond the device file: {', '.join(step.outside)}" if step.outside else ""
        yield Row(
            "accelerator",
            f"step of {what}, predicted from the device file",
            f"{step.seconds * 1e3:.2f} ms ({low * 1e3:.2f}–{high * 1e3:.2f}), measured {measured * 1e3:.2f} ms",
            note=f"{errors[what]:+.1%}{outside}",
        )
    middle = statistics.median(abs(error) for error in errors.values())
    worst = max(errors, key=lambda what: abs(errors[what]))
    count = f"{len(kept)} networks, batches and precisions"
    yield Row(
        "accelerator",
        f"step times, median error, {count}",
        f"{middle:.1%}",
        f"≤ {STEP_MEDIAN:.0%}",
        middle <= STEP_MEDIAN,
    )
    yield Row(
        "accelerator",
        f"step times, worst error, {count}",
        f"{abs(errors[worst]):.2%}",
        f"≤ {STEP_WORST:.0%}",
        abs(errors[worst]) <= STEP_WORST,
        f"at {worst}",
        "perhaps because the library chooses among very different kernels for convolutions of few channels, which no smooth function of sizes follows: of drawn ones of 2 channels on sides of 128 and 132, the gradients of weights take 200 ms and 7 ms",
    )
    yield Row(
        "accelerator",
        "step times within their 95 % interval",
        f"{inside} of {len(kept)}",
        note=f"each network with what the others are off by in common ({', '.join(f'{name} {doubt:.3f}' for name, doubt in doubts.items())}, in logarithms); "
        f"without that {narrow} of {len(kept)}; of all {len(logs)} networks {common_error(logs):.3f}, and `require` has {NETWORK_DOUBT:g}",
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


FROM_MEMORY, FROM_DISK = 0.93, 0.95  # of what is possible
THREADS = 8  # of the studies in measure_h200.py


def _training() -> Iterable[Row]:
    for study in table("training.json")["studies"]:
        rates = {point["data"]: point for point in study["points"]}
        for point in study["points"]:
            low, high = point["interval"]
            yield Row(
                "accelerator",
                f"training {study['network']}, samples from {point['data']}",
                f"{point['samples_per_second']:.1f} samples/s ({low:.1f}–{high:.1f}, n = {point['n']})",
                note=f"device computed {point['utilisation']:.0%} of the time",
            )
        yield _harness(study)
        yield from _possible(study["network"], rates)


def _harness(study: dict[str, Any]) -> Row:
    """Storage that costs nothing: all samples lie in memory, beside samples that are made on the device."""
    cost = study["storage_matters"]["of"][0]["input"]
    low, high = cost["share_interval"]
    return Row(
        "accelerator",
        f"training {study['network']}: cost of the harness, with storage that costs nothing",
        f"{cost['share']:.1%} of an epoch ({low:.1%} to {high:.1%}, n = {cost['n']})",
        note="decoding and copying that compute does not hide",
    )


def _possible(network: str, points: dict[str, Any]) -> Iterable[Row]:
    """From memory beside samples that are made on the device; from disk beside the slower of that and of a plain reader in C on the same files.

    The interval is that of our own repetitions.
    """
    rates = {data: point["samples_per_second"] for data, point in points.items()}
    beside = next(row for row in table("beside.json")["rows"] if row["network"] == network)
    in_c = [rate / beside["sample_bytes"] for rate in table("disk.json")["bytes_per_second"][network]]
    possible = min(rates["synthetic"], statistics.median(in_c))
    torch = {
        data: [row["samples_per_second"] for row in beside["torch"] if row["data"] == data]
        for data in ("memory", "disk")
    }
    limits = {"memory": ("memory", rates["synthetic"], FROM_MEMORY), "disk": ("tiers", possible, FROM_DISK)}
    for data, (source, limit, goal) in limits.items():
        ours, (low, high) = rates[source], points[source]["interval"]
        yield Row(
            "accelerator",
            f"training {network} from {data}: share of what is possible",
            f"{ours / limit:.3f} ({low / limit:.3f}–{high / limit:.3f}) of {limit:.1f} samples/s",
            f"≥ {goal}",
            ours / limit >= goal,
            f"torch's DataLoader, {WORKERS} workers: {statistics.median(torch[data]):.1f} (n = {len(torch[data])})"
            + (f"; plain reader in C {min(in_c):.1f}–{max(in_c):.1f}, n = {len(in_c)}" if data == "disk" else ""),
            _first_batch(points["tiers"], statistics.median(in_c)) if data == "disk" else "",
        )


def _first_batch(point: dict[str, Any], samples_per_second: float) -> str:
    """What an epoch that starts with nothing read waits for at least, however fast the rest is."""
    epoch, stall = statistics.fmean(point["epoch_seconds"]), point["phases"]["stall"]
    return (
        f"an epoch starts with nothing read: {THREADS} threads begin {THREADS} samples at once, which are there after {THREADS / samples_per_second:.2f} s at the plain reader's rate; "
        f"its stall was {stall:.2f} of {epoch:.2f} s, and would be less of a longer epoch"
    )
