"""The Architecture study's equations, each written out once more and compared with what `require` computes, and its table of data sets (Table I)."""

import math
from collections.abc import Iterator

from tierscope.arch.efficiency import BINS, COUNTERS, Kernel, histogram
from tierscope.arch.step_memory import step_memory
from tierscope.arch.ways import device_ways
from tierscope.formats import FORMATS
from tierscope.papers.architecture_model import (
    AMP,
    beside,
    cori,
    data_of,
    judge,
    kept,
    moved,
    network_of,
    operations,
    required,
    sample_bytes,
    seconds,
)
from tierscope.papers.architecture_printed import NAMES, TITLES, Rounded, by_network
from tierscope.papers.section import PaperTable, Section
from tierscope.papers.verdict import Verdict

NODES, BATCH = 4, 2
_SAME = 0.01  # blocks of the allocator and labels beside a formula


def make(short: bool) -> Section:
    del short  # nothing here takes long
    rows = tuple(_table_lines())
    table = PaperTable(
        "A-T1", "data-sets", ("attribute", *TITLES.values()), rows, "input", "Table I as Tierscope has it"
    )
    printed = beside(
        "A-T1", f"{len(rows)} attributes of {len(NAMES)} data sets", "input", "each row is judged by itself"
    )
    return Section((*_equations(), *_data_sets(), printed), (), (table,))


# Equations


def _equations() -> list[Verdict]:
    return [_memory(), *_efficiency(), *_costs(), *_traffic(), *_balances(), _global_batch()]


def _memory() -> Verdict:
    """What a step holds more with every sample of a batch."""
    off = {}
    for name in NAMES:
        network = network_of(name)
        held = [step_memory(network, batch, AMP).activations for batch in (2, 4)]
        by_hand = AMP.activation_bytes * network.input_elements + kept(name)
        off[name] = (held[1] - held[0]) / 2 / by_hand - 1
    worst = max(map(abs, off.values()))
    return judge(
        "A-E-1",
        f"a sample more in the batch takes 2·(I + A) bytes more: off by {by_network({name: f'{abs(value):.1%}' for name, value in off.items()})}",
        worst <= _SAME,
        "modelled",
        "A as autograd keeps it, with indices of pools; the constant part is larger here than 2·P: 32-bit weights, their gradients and what libraries take",
    )


def _efficiency() -> list[Verdict]:
    uses = ((0.31, 0.02, 0.55), (0.0, 0.42, 0.17), (0.93, 0.0, 0.2), (0.05, 0.0, 0.01))
    kernels = [Kernel(f"k{number}", 1e-3 * (number + 1), *use) for number, use in enumerate(uses)]
    by_hand = [max(use) for use in uses]
    ours = histogram(kernels, COUNTERS)
    ideal = sum(kernel.seconds * share for kernel, share in zip(kernels, by_hand, strict=True))
    places = [number for number, spent in enumerate(ours.seconds) if spent]
    equal = [kernel.efficiency for kernel in kernels] == by_hand and len(ours.seconds) == BINS == 10
    equal &= places == sorted(int(10 * share) for share in by_hand)
    return [
        judge("A-E-2", f"{len(kernels)} made-up kernels in the bins by hand: {', '.join(f'{10 * place} %' for place in places)}", equal, "arithmetic", f"{BINS} bins"),
        judge("A-E-3", f"{1e3 * ours.ideal_seconds:.3f} ms of {1e3 * ours.total_seconds:.0f} ms, by hand {1e3 * ideal:.3f} ms", math.isclose(ours.ideal_seconds, ideal), "arithmetic", "the same kernels"),
    ]  # fmt: skip


def _costs() -> list[Verdict]:
    """Bytes over bandwidth on every way, and the ring's share of a batch."""
    machine, off, ring_off = cori(), [], []
    assert machine.host_bandwidth
    assert machine.near
    assert machine.network_bandwidth
    for name in NAMES:
        need, network = required(name, (BATCH,), (NODES,)), network_of(name)
        ring = NODES * machine.accelerators
        gradient = 4 * network.parameters
        exchanged = 2 * (ring - 1) / ring * gradient / (machine.network_bandwidth / machine.accelerators) / BATCH
        by_hand = {
            "memory": (need.hbm_limit_bytes + gradient / BATCH) / machine.device.memory_bandwidth,
            "samples_dram": sample_bytes(name) / machine.host_bandwidth,
            "samples_nvme": data_of(name).file_bytes * machine.accelerators / seconds(machine.near.per_node(NODES)),
        }
        off += [abs(getattr(need.movement, way) / value - 1) for way, value in by_hand.items()]
        ring_off.append(abs(seconds(need.movement.allreduce) / exchanged - 1))
    where = f"{NODES} nodes, local batch {BATCH}"
    return [
        judge("A-E-4", f"largest difference from bytes over bandwidth by hand {max(off):.1g}", max(off) < 1e-12, "arithmetic", f"HBM, PCIe and NVMe of three networks; {where}; storage delivers the bytes of a file, PCIe those of a sample"),
        judge("A-E-5", f"largest difference from 2·(n−1)/n · 4·P over the NIC by hand {max(ring_off):.1g}", max(ring_off) < 1e-12, "arithmetic", where),
    ]  # fmt: skip


def _traffic() -> list[Verdict]:
    limit = {name: required(name).hbm_limit_bytes / kept(name) for name in NAMES}
    reuse = {name: moved(name) / kept(name) for name in NAMES}
    ours = {name: 2 * required(name).hbm_modelled_bytes / required(name).hbm_limit_bytes for name in NAMES}
    supported = {name: device_ways(required(name))["modelled"] for name in NAMES}
    bandwidth = cori().device.memory_bandwidth
    off = max(
        abs(way.samples_per_second * operations(name) / (operations(name) / moved(name) * bandwidth) - 1)
        for name, way in supported.items()
    )
    rates = {name: f"{way.samples_per_second * operations(name) / 1e12:.1f}" for name, way in supported.items()}
    return [
        judge("A-E-6", f"limit ÷ kept: {by_network({name: f'{value:g}' for name, value in limit.items()})}", set(limit.values()) == {2.0}, "modelled"),
        judge("A-E-7", f"modelled traffic ÷ kept: {by_network({name: f'{value:.1f}' for name, value in ours.items()})}", all(math.isclose(ours[name], reuse[name]) for name in NAMES), "modelled", "the same ratio; what was measured: A-F2-5"),
        judge("A-E-8", f"TFLOP/s at 900 GB/s with modelled traffic: {by_network(rates)}", off < 1e-9, "modelled", "as long as it is below the peak"),
    ]  # fmt: skip


def _balances() -> list[Verdict]:
    machine, device = cori(), cori().device
    peak = device.peak(AMP)
    need = required("cosmoflow")
    by_hand = machine.accelerators * peak / (operations("cosmoflow") / sample_bytes("cosmoflow"))
    off = abs(need.node_sample_bandwidth_at_peak / by_hand - 1)
    lines = (peak / device.memory_bandwidth, peak / seconds(machine.host_bandwidth))
    return [
        judge("A-E-9", f"CosmoFlow, node of {machine.accelerators * peak / 1e15:g} PF: {need.node_sample_bandwidth_at_peak / 1e9:.1f} GB/s, by hand {by_hand / 1e9:.1f}", off < 1e-9, "modelled", "with the operations of our layers; with the measured ones: A-D-3"),
        judge("A-E-10", f"{lines[0]:.1f} FLOP per HBM byte, {lines[1]:,.1f} per PCIe byte; 32-bit units {device.fp32 / device.memory_bandwidth:.1f}", [int(line) for line in lines] == [138, 7812], "arithmetic", "A-S-2 prints 138 and 7,812"),
    ]  # fmt: skip


def _global_batch() -> Verdict:
    """Steps of an epoch, from its compute time, against samples over the global batch."""
    need = required("cosmoflow", (BATCH,), (NODES,))
    steps = need.scaling[0].compute_seconds / need.step_seconds
    ranks = NODES * cori().accelerators
    by_hand = data_of("cosmoflow").samples / (BATCH * ranks)
    return judge("A-E-11", f"{steps:,.0f} steps of {BATCH * ranks} samples, by hand {by_hand:,.0f}", math.isclose(steps, by_hand), "arithmetic", f"CosmoFlow, local batch {BATCH}, {ranks} ranks")  # fmt: skip


# Table I


def _files(name: str) -> int:
    data = data_of(name)
    return -(-data.samples // data.samples_per_file)


def _shape(name: str) -> str:
    channels, *sides = network_of(name).input_shape
    return f"{' × '.join(f'{side:,}' for side in sides)}, {channels} channels"


def _table_lines() -> Iterator[tuple[str, ...]]:
    """Attributes as Tierscope's registry of networks and the layers have them."""
    last = {name: network_of(name).layers[-1].out_shape for name in NAMES}
    of = {name: data_of(name) for name in NAMES}
    yield ("input", *(_shape(name) for name in NAMES))
    yield ("output of the network", *(" × ".join(f"{side:,}" for side in last[name]) for name in NAMES))
    yield ("bytes of a label", *(f"{of[name].target_bytes:,}" for name in NAMES))
    yield ("training samples", *(f"{of[name].samples:,}" for name in NAMES))
    yield ("training files", *(f"{_files(name):,}" for name in NAMES))
    yield ("file, MB", *(f"{of[name].file_bytes * of[name].samples_per_file / 1e6:.3g}" for name in NAMES))
    yield ("data set, TB", *(f"{_set_bytes(name) / 1e12:.3g}" for name in NAMES))


def _set_bytes(name: str) -> float:
    return data_of(name).samples * data_of(name).file_bytes


def _data_sets() -> list[Verdict]:
    sizes = {name: f"{_set_bytes(name) / 1e12:.2f} TB" for name in NAMES}
    printed = dict(zip(NAMES, ("5.1", "8.8", "0.150"), strict=True))
    fits = all(
        Rounded.of(text).low <= _set_bytes(name) / 1e12 <= Rounded.of(text).high for name, text in printed.items()
    )
    shapes = [network_of(name).input_shape for name in NAMES]
    targets = [data_of(name).target_bytes for name in NAMES]
    of_labels = [4 * 4, 768 * 1152 * 8, 8]
    samples, files = [data_of(name).samples for name in NAMES], [_files(name) for name in NAMES]
    file_megabytes = [data_of(name).file_bytes * data_of(name).samples_per_file / 1e6 for name in NAMES]
    formats = [name for name in ("hdf5", "tfrecord", "jpeg") if name in FORMATS]
    tasks = network_of("cosmoflow").layers[-1].out_shape, network_of("deepcam").layers[-1].out_shape
    return [
        judge("A-T1-1", f"networks end in {tasks[0][0]} values, {tasks[1][0]} classes of each of {tasks[1][1]:,} × {tasks[1][2]:,} points, 1,000 classes", tasks == ((4,), (3, 768, 1152)) and network_of("resnet50").layers[-1].out_shape == (1000,), "input", "built from the published layers"),
        Verdict("A-T1-2", "a name, nothing to compute; samples are made up, with the sizes of the published ones", "listed"),
        judge("A-T1-3", by_network(sizes), fits, "input", "files × bytes of a file; the printed sizes do not follow from the printed files (A-C-2, A-C-3)"),
        judge("A-T1-4", by_network({name: _shape(name) for name in NAMES}), shapes == [(4, 128, 128, 128), (16, 768, 1152), (3, 469, 387)], "input", "equal for the first two; ResNet-50 takes a crop of the image (A-C-5)"),
        judge("A-T1-5", by_network({name: f"{size:,} B" for name, size in zip(NAMES, targets, strict=True)}), targets == of_labels, "input", "4 floats of 32 bits; an integer of 64 bits for each point; one such integer"),
        judge("A-T1-6", by_network({name: f"{count:,}" for name, count in zip(NAMES, samples, strict=True)}), samples[:2] == [262_144, 121_266] and round(samples[2] / 1e6, 1) == 1.3, "input"),
        judge("A-T1-7", by_network({name: f"{count:,}" for name, count in zip(NAMES, files, strict=True)}), files == [262_144, 121_266, 1_024], "input"),
        judge("A-T1-8", f"formats {', '.join(formats)} are read and written", len(formats) == 3, "input", "`workload.dataset.format`"),
        judge("A-T1-9", by_network({name: f"{size:.0f} MB" for name, size in zip(NAMES, file_megabytes, strict=True)}), [round(size) for size in file_megabytes] == [17, 61, 45], "input", "ResNet-50: 150 GB in 1,024 files; with the printed 45 MB they would be 46 GB (A-C-4)"),
    ]  # fmt: skip
