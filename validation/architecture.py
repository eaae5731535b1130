"""The Architecture study's table, from layers alone: kept activations, HBM limits, operations, ratios, the cost of a byte, staging.

The study (Ibrahim et al., PMBS 2021) does not say what exactly it counts as kept. Every rule that the code offers is printed in both
precisions; the goal is for the one rule and precision that the figure follows, found by looking. That is a reading of the figure, not a prediction.
What the study measured with hardware counters (operations, HBM bytes) is printed beside the model, without a goal.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tierscope.arch.kept_activations import RULES, kept_bytes
from tierscope.arch.layer import INPUT, JOINS
from tierscope.arch.machine import Machine, machine_of
from tierscope.arch.movement import byte_costs
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Wish, requirements
from tierscope.arch.roofline import layer_costs
from tierscope.arch.scaling import fits_from
from tierscope.arch.step_seconds import given
from tierscope.spec.known import load_system
from validation.table import Row

TABLE = Path(__file__).resolve().parents[2] / "shared" / "data" / "arch_layers.csv"
GOAL = 0.1
GIB = 2**30
ACCELERATORS = 8  # of a node
SAMPLES = 49_152  # of CosmoFlow in the study's strong scaling
DEEPCAM_SAMPLES = 9_800  # a fifth of that, as its figure suggests
_TILE = 8  # channels that 16-bit matrix units take at once


@dataclass(frozen=True, slots=True)
class Published:
    """Of one sample, in GiB and 2^30 operations; `rule` and `precision`: what the kept activations turn out to follow."""

    kept: float
    limit: float
    moved: float
    sustained: float  # bytes per second of HBM, while it trained
    operations: float
    per_byte: float
    rule: str
    precision: str


STUDY = {
    "cosmoflow": Published(0.72, 1.44, 6.4, 127e9, 247, 15_400, "outputs", "fp32"),
    "deepcam": Published(2.9, 5.8, 52, 270e9, 2_887, 107_000, "outputs", "amp"),
    "resnet50": Published(0.042, 0.084, 0.56, 145e9, 31, 221_000, "fused", "amp"),
}
BYTE_COSTS = {"memory": 1, "host": 56, "network": 72, "lfs": 2_250}


def rows(short: bool) -> list[Row]:  # noqa: ARG001  (it is short)
    machine = machine_of("cori-gpu", load_system("cori-gpu").system)
    table_rows = [_tables()]
    for name, study in STUDY.items():
        table_rows += _network_rows(name, build_network(name), study)
    return [*table_rows, *_machine_rows(machine), *_scaling_rows(machine)]


def _row(what: str, value: str, goal: str = "", met: bool | None = None, note: str = "", known: str = "") -> Row:
    return Row("architecture", what, value, goal, met, note, known)


def _tables() -> Row:
    what = "layers as in the published tables: shapes, parameters, operations"
    if not TABLE.is_file():
        return _row(what, "skipped", note="no layer tables beside the project (../shared/data)")
    with TABLE.open(encoding="utf-8", newline="") as text:
        lines = list(csv.DictReader(text))
    equal = sum(_as_tabled(build_network(name), [line for line in lines if line["model"] == name]) for name in NETWORKS)
    return _row(what, f"{equal} of {len(lines)} layers, {len(NETWORKS)} networks", "all", equal == len(lines))


def _as_tabled(network: Network, lines: list[dict[str, str]]) -> int:
    """How many of its layers are as the table has them."""
    keys = ("in_shape", "out_shape", "params", "fwd_flops_per_sample", "bwd_flops_per_sample")
    layers = [layer for layer in network.layers if layer.kind not in JOINS]
    ours = [
        (
            "x".join(map(str, layer.in_shape)),
            "x".join(map(str, layer.out_shape)),
            *map(str, (layer.parameters, layer.forward_flops, layer.backward_flops)),
        )
        for layer in layers
    ]
    return sum(our_line == tuple(line[key] for key in keys) for our_line, line in zip(ours, lines, strict=False))


def _network_rows(name: str, network: Network, study: Published) -> Iterator[Row]:
    kept = kept_gib(network, study.rule, study.precision)
    others = ", ".join(
        f"{rule} {kept_gib(network, rule, 'fp32'):.3g}/{kept_gib(network, rule, 'amp'):.3g}" for rule in RULES
    )
    bits = 8 * PRECISIONS[study.precision].activation_bytes
    rule = f"rule {study.rule}, {bits}-bit; all rules, 32/16-bit: {others} GiB"
    yield _off(f"{name}: kept activations", kept, study.kept, "GiB", rule)
    yield _off(
        f"{name}: HBM limit, written once and read once", 2 * kept, study.limit, "GiB", f"rule {study.rule}, {bits}-bit"
    )
    moved = {
        key: sum(cost.nbytes for cost in layer_costs(network, precision)) / GIB for key, precision in PRECISIONS.items()
    }
    yield _row(
        f"{name}: HBM bytes, every layer reads and writes",
        f"{moved['fp32']:.3g} GiB (32-bit), {moved['amp']:.3g} GiB (16-bit); measured {study.moved:g} GiB",
        note="the model lets no layer read anything twice but normalisations, and casts nothing",
    )
    operations = (network.forward_flops + network.backward_flops) / GIB
    yield _row(
        f"{name}: operations",
        f"{operations:,.4g} GiF; measured {study.operations:,} GiF: {100 * (operations / study.operations - 1):+.0f} %",
        note=f"with the sample's channels padded to a multiple of {_TILE}: {padded(network) / GIB:,.4g} GiF",
    )
    sample = network.input_elements * NETWORKS[name].data.element_bytes
    ours = f"the model's own operations: {operations * GIB / sample:,.0f}"
    yield _off(
        f"{name}: measured operations for each byte of our sample",
        study.operations * GIB / sample,
        study.per_byte,
        "FLOP",
        ours,
    )


def kept_gib(network: Network, rule: str, precision: str) -> float:
    return kept_bytes(network, PRECISIONS[precision].activation_bytes, rule) / GIB


def padded(network: Network) -> float:
    """Operations, where layers that read the sample compute on whole tiles of channels."""
    more = -(-network.input_shape[0] // _TILE) * _TILE / network.input_shape[0]
    return sum(
        (layer.forward_flops + layer.backward_flops) * (more if layer.inputs == (INPUT,) else 1)
        for layer in network.layers
    )


def _off(what: str, ours: float, theirs: float, unit: str, note: str) -> Row:
    off = ours / theirs - 1
    value = f"{_short(ours)} {unit}, study {_short(theirs)}: {100 * off:+.1f} %"
    return _row(what, value, f"≤ {GOAL:.0%}", abs(off) <= GOAL, note)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _machine_rows(machine: Machine) -> Iterator[Row]:
    costs = byte_costs(machine)
    value = ", ".join(f"{way} {costs[way]:,.0f}" for way in BYTE_COSTS)
    met = all(round(costs[way]) == cost for way, cost in BYTE_COSTS.items())
    yield _row("relative cost of a byte, Cori GPU", value, ", ".join(f"{cost:,}" for cost in BYTE_COSTS.values()), met)
    peak = machine.device.peak(PRECISIONS["amp"])
    balances = [peak / machine.device.memory_bandwidth, peak / (machine.host_bandwidth or 1)]
    met = [int(balance) for balance in balances] == [138, 7812]
    yield _row("machine balance, V100: HBM, PCIe", f"{balances[0]:,.1f}, {balances[1]:,.1f} FLOP/B", "138, 7,812", met)


def _scaling_rows(machine: Machine) -> Iterator[Row]:
    """Staging is judged with steps as long as the study's: at the peak it says nothing of real ones."""
    gain, at_peak, fits = _staged("cosmoflow", machine, SAMPLES, 4)
    yield _row(
        f"cosmoflow, {SAMPLES:,} samples: staging gains on one node",
        f"{gain:.2f}×, study 2–2.16×",
        "1.8–2.2×",
        1.8 <= gain <= 2.2,
        f"steps as long as were measured, batch 4; with compute at its peak {at_peak:.2f}×",
        known="the far tier's rate for a node was taken from this very gain as if compute took nothing: real steps hide part of the reads, so it gave less. "
        f"Where everything overlaps, that gain needs {_rates('cosmoflow', 2.16, 2)} GB/s",
    )
    yield _row("cosmoflow: the share fits main memory from", f"{fits or 'no'} nodes", "4 nodes", fits == 4)
    gain, at_peak, _ = _staged("deepcam", machine, DEEPCAM_SAMPLES, 2)
    yield _row(
        "deepcam: staging gains on one node",
        f"{gain:.2f}×, study 1.15×",
        f"≤ {GOAL:.0%}",
        abs(gain / 1.15 - 1) <= GOAL,
        f"steps as long as were measured, batch 2, {DEEPCAM_SAMPLES:,} samples (the study does not say how many); with compute at its peak {at_peak:.2f}×",
        known="the far tier's rate for a node comes from CosmoFlow's gain, and may be higher for larger files. "
        f"Where everything overlaps, this gain needs {_rates('deepcam', 1.15)} GB/s",
    )


def needed_rate(name: str, gain: float) -> float:
    """Bytes per second that a node of 8 reads from the far tier, if staging makes it so many times as fast, compute takes the study's time and hides all of the near tier's reads."""
    study = STUDY[name]
    sample_seconds = study.moved * GIB / study.sustained
    return ACCELERATORS * NETWORKS[name].data.file_bytes / sample_seconds / gain


def _rates(name: str, *gains: float) -> str:
    return " to ".join(f"{needed_rate(name, gain) / 1e9:.2f}" for gain in gains)


def _staged(name: str, machine: Machine, samples: int, batch: int) -> tuple[float, float, int | None]:
    """What the near tier gains on one node, with steps as long as the study's (HBM bytes over the bandwidth that it sustained) and at the peak; nodes whose memory holds the data."""
    study = STUDY[name]
    wish = Wish(PRECISIONS["amp"], batches=(batch,), nodes=(1, 2, 4))
    data = replace(NETWORKS[name].data, samples=samples)
    step = given(batch * study.moved * GIB / study.sustained)
    points, at_peak = (requirements(build_network(name), machine, data, wish, how).scaling for how in (step, None))
    return points[0].staging_gain or 0.0, at_peak[0].staging_gain or 0.0, fits_from(points)
