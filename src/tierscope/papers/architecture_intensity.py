"""Operations and bytes of a sample (Table II, A-F2): modelled from the layers, beside what the study counted on a V100, and arithmetic on what it printed.

Bytes and operations were not counted on the H200: its file has each kernel's efficiency only. Where a row needs counts, it says so.
"""

from collections.abc import Mapping

from tierscope.arch.layer import INPUT
from tierscope.arch.roofline import layer_costs
from tierscope.papers.architecture_model import (
    AMP,
    MODELLED,
    absent,
    beside,
    cori,
    data_of,
    judge,
    kept,
    moved,
    network_of,
    operations,
    sample_bytes,
)
from tierscope.papers.architecture_printed import GIB, MIB, NAMES, PRINTED, TIB, TITLES, Rounded, by_network
from tierscope.papers.charts import LOOKS
from tierscope.papers.drawn_balance import BalancePoint, draw_balance
from tierscope.papers.measured_h200 import MeasuredH200, measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import Verdict, ratio_agrees

_THOUSAND = 1000.0  # between the printed GiF and MiB (A-C-6)
_NOT_COUNTED = "not counted on the H200: its file has kernels' efficiencies only"
_TILE = 8  # channels that 16-bit matrix units take at once


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(measured_h200())


def section(measured: MeasuredH200 | MissingMeasurement) -> Section:
    known = None if isinstance(measured, MissingMeasurement) else measured
    verdicts = (*_table_rows(known), *_recomputed(), *_derived(), *_figure_rows(known), *_conclusions(known))
    return Section(verdicts, (_figure(),), (_table(known),))


def _texts(values: Mapping[str, float], form: str) -> str:
    return by_network({name: format(value, ",.0f" if value >= 1000 else form) for name, value in values.items()})


def _gif(name: str) -> float:
    return operations(name) / GIB


def padded_gif(name: str) -> float:
    """Operations in 2^30, where layers that read the sample compute on whole tiles of channels."""
    network = network_of(name)
    more = -(-network.input_shape[0] // _TILE) * _TILE / network.input_shape[0]
    whole = (layer.forward_flops + layer.backward_flops for layer in network.layers)
    tiled = (more if layer.inputs == (INPUT,) else 1.0 for layer in network.layers)
    return sum(flops * times for flops, times in zip(whole, tiled, strict=True)) / GIB


def _sustained(measured: MeasuredH200, name: str) -> tuple[int, float]:
    """Batch, and bytes per second: modelled bytes over the median step of the largest batch that was measured."""
    steps = measured.steps(name)
    batch = max(steps)
    return batch, moved(name) / steps[batch].per_sample


# Table II


def _table_rows(measured: MeasuredH200 | None) -> list[Verdict]:
    sets = {name: data_of(name).samples * data_of(name).file_bytes / TIB for name in NAMES}
    fits = all(
        Rounded.of(text).low <= sets[name] <= Rounded.of(text).high
        for name, text in zip(NAMES, ("5.1", "8.8", "0.150"), strict=True)
    )
    samples = {name: sample_bytes(name) / MIB for name in NAMES}
    same = all(Rounded(size, size).meets(PRINTED[name].sample) for name, size in samples.items())
    limits = {name: 2 * kept(name) / GIB for name in NAMES}
    agrees = all(ratio_agrees(limits[name], float(PRINTED[name].limit)) for name in NAMES)
    off = {name: 100 * (_gif(name) / float(PRINTED[name].operations) - 1) for name in NAMES}
    padded = {name: padded_gif(name) for name in NAMES}
    modelled = {name: moved(name) / GIB for name in NAMES}
    return [
        beside("A-T2", f"modelled, measured and published for {len(NAMES)} networks", "modelled", f"a table below; {_NOT_COUNTED}"),
        judge("A-T2-1", f"TiB: {_texts(sets, '.3g')}", fits, "input", "files × bytes of a file; the printed sizes do not follow from the printed files (A-C-2, A-C-3, A-C-4)"),
        judge("A-T2-2", f"MiB: {_texts(samples, '.3g')}", same, "modelled", "elements of the network's input × 2 bytes (CosmoFlow, DeepCAM) or 1 byte (ResNet-50, A-C-5)"),
        beside("A-T2-3", f"GiF: {_texts({name: _gif(name) for name in NAMES}, ',.4g')}, off by {by_network({name: f'{value:+.0f} %' for name, value in off.items()})}", "modelled", f"2 for each multiply-add of convolutions and linear layers; with the sample's channels padded to {_TILE}: {_texts(padded, ',.4g')}; {_NOT_COUNTED}"),
        judge("A-T2-4", f"GiB: {_texts(limits, '.3g')}", agrees, "modelled", "twice what autograd keeps in 16 bits; which rules would give the printed figures: A-F1-3"),
        beside("A-T2-5", f"GiB: {_texts(modelled, '.3g')}", "modelled", f"every layer reads its input and writes its output once, normalisations read twice; {_NOT_COUNTED}"),
        _sustained_row("A-T2-9", measured),
    ]  # fmt: skip


def _sustained_row(row_id: str, measured: MeasuredH200 | None) -> Verdict:
    if measured is None:
        return absent(row_id, "needs validation/h200, which is part of a clone")
    rates = {name: _sustained(measured, name) for name in NAMES}
    ours = by_network({name: f"{rate / 1e9:,.0f} GB/s (batch {batch})" for name, (batch, rate) in rates.items()})
    why = f"modelled bytes over measured steps of one H200 (4,163 GB/s measured ceiling), so a lower bound; {_NOT_COUNTED}"
    return beside(row_id, ours, "measured", why, measured.steps_file.origin.day)


def _recomputed() -> list[Verdict]:
    """Ratios of the table from its own numbers, to the printed digits."""
    rows = (
        ("A-T2-6", "sample", "per_sample_byte", _THOUSAND, sample_bytes, "GiF over MiB with a factor of 1,000 (A-C-6)"),
        ("A-T2-7", "limit", "per_limit_byte", 1.0, lambda name: 2 * kept(name), ""),
        ("A-T2-8", "moved", "per_moved_byte", 1.0, moved, "ResNet-50 with 0.56 GiB (A-C-1)"),
    )
    verdicts = []
    for row_id, below, printed, factor, ours_below, why in rows:
        quotients = {name: PRINTED[name].rounded("operations") / PRINTED[name].rounded(below) * factor for name in NAMES}  # fmt: skip
        holds = all(quotients[name].meets(getattr(PRINTED[name], printed)) for name in NAMES)
        plain = {name: float(PRINTED[name].operations) * factor / float(getattr(PRINTED[name], below)) for name in NAMES}  # fmt: skip
        ours = {name: operations(name) / ours_below(name) for name in NAMES}
        said = f"{_texts(plain, ',.4g')} from the printed numbers; from our layers {_texts(ours, ',.4g')}"
        verdicts.append(judge(row_id, said, holds, "arithmetic", f"within the rounding of the printed numbers{f'; {why}' if why else ''}"))  # fmt: skip
    return verdicts


def _derived() -> list[Verdict]:
    peak = cori().device.memory_bandwidth
    shares = {name: PRINTED[name].rounded("sustained") * 1e11 / peak for name in NAMES}
    rates = {name: PRINTED[name].rounded("per_moved_byte") * PRINTED[name].rounded("sustained") * 1e-3 for name in NAMES}  # fmt: skip
    times = {name: PRINTED[name].step_seconds * 1e3 for name in NAMES}

    def printed(values: Mapping[str, Rounded], *texts: str) -> bool:
        return all(values[name].meets(text) for name, text in zip(NAMES, texts, strict=True))

    held = {name: Rounded(value, value) for name, value in times.items()}
    return [
        judge("A-X-1", f"%: {_texts({name: share.middle for name, share in shares.items()}, '.1f')}", printed(shares, "14", "30", "16"), "arithmetic", "our arithmetic on its figures"),
        judge("A-X-2", f"TFLOP/s: {_texts({name: rate.middle for name, rate in rates.items()}, '.1f')}", printed(rates, "4.9", "15.0", "8.0"), "arithmetic", "our arithmetic on its figures"),
        judge("A-X-3", f"ms: {_texts(times, '.1f')}", printed(held, "54", "207", "4.1"), "arithmetic", "our arithmetic on its figures"),
    ]  # fmt: skip


def _table(measured: MeasuredH200 | None) -> PaperTable:
    """Modelled, measured and published in one: a line for each quantity and network."""
    lines: list[tuple[str | float | int, ...]] = []
    for name in NAMES:
        printed = PRINTED[name]
        intensity = operations(name) / moved(name)
        rate = "not measured" if measured is None else f"{_sustained(measured, name)[1] / 1e9:,.0f} (modelled bytes)"
        for what, ours, counted, theirs in (
            ("operations, GiF", f"{_gif(name):,.4g}", "not counted", printed.operations),
            ("HBM bytes, limit, GiB", f"{2 * kept(name) / GIB:.3g}", "–", printed.limit),
            ("HBM bytes, GiB", f"{moved(name) / GIB:.3g}", "not counted", printed.moved),
            ("FLOP per HBM byte", f"{intensity:.3g}", "not counted", printed.per_moved_byte),
            ("reuse: HBM bytes ÷ kept", f"{moved(name) / kept(name):.1f}", "not counted", f"{float(printed.moved) / float(printed.kept):.1f}"),
            ("sustained HBM bandwidth, GB/s", "–", rate, printed.sustained),
        ):  # fmt: skip
            lines.append((TITLES[name], what, ours, counted, theirs))
    columns = ("network", "per sample", "modelled", "measured on one H200", "published, V100")
    return PaperTable("A-T2", "characteristics", columns, tuple(lines), "modelled", "characteristics of a sample, modelled, measured and published")  # fmt: skip


# Figure 2


def _figure() -> PaperFigure:
    points = []
    for number, name in enumerate(NAMES):
        costs, css = layer_costs(network_of(name), AMP), LOOKS[number]
        forward = sum(cost.forward_bytes for cost in costs), sum(cost.forward_flops for cost in costs)
        backward = sum(cost.backward_bytes for cost in costs), sum(cost.backward_flops for cost in costs)
        printed = float(PRINTED[name].moved) * GIB, float(PRINTED[name].operations) * GIB
        points += [
            BalancePoint(TITLES[name], "forward", *forward, css, 2, True),
            BalancePoint(TITLES[name], "backward", *backward, css, 4, True),
            BalancePoint(TITLES[name], "both", moved(name), operations(name), css, 0, True),
            BalancePoint(TITLES[name], "counted on a V100", *printed, css, 0, False),
        ]
    device = cori().device
    balances = {
        "tensor-core balance": device.peak(AMP) / device.memory_bandwidth,
        "32-bit balance": device.fp32 / device.memory_bandwidth,
    }
    caption = (
        "Operations and HBM bytes of a sample, 16-bit: modelled forward, backward and together (hollow), and what the study counted on a V100 (filled; 2^30 operations and bytes as it prints them). "
        f"Lines: balance of a V100, {balances['tensor-core balance']:.0f} and {balances['32-bit balance']:.1f} operations for each byte."
    )
    drawing = draw_balance("architecture-f2", "Operations and HBM bytes of a sample", caption, points, balances)
    return PaperFigure("A-F2", "f2-balance", drawing, "modelled", caption)


def _figure_rows(measured: MeasuredH200 | None) -> list[Verdict]:
    device = cori().device
    low, high = device.fp32 / device.memory_bandwidth, device.peak(AMP) / device.memory_bandwidth
    ours = {name: operations(name) / moved(name) for name in NAMES}
    reuse = {name: PRINTED[name].rounded("moved") / PRINTED[name].rounded("kept") for name in NAMES}
    factors = {name: (float(PRINTED[name].operations) / _gif(name), float(PRINTED[name].moved) * GIB / moved(name)) for name in NAMES}  # fmt: skip
    scientific = {name: factors[name] for name in NAMES[:2]}
    limit = {name: float(PRINTED[name].moved) / float(PRINTED[name].limit) for name in NAMES}
    over = "published, counted on a V100, over our model"
    return [
        beside("A-F2", "three networks, forward, backward and both", "modelled", f"the model's points are not published; {_NOT_COUNTED}"),
        judge("A-F2-1", f"FLOP/B: {_texts(ours, '.1f')}; balances {low:.1f} and {high:.1f}", all(low < value < high for value in ours.values()), "modelled", MODELLED),
        judge("A-F2-2", f"{over}: {by_network({name: f'operations {flops:.2f}×, bytes {nbytes:.2f}×' for name, (flops, nbytes) in scientific.items()})}", all(ratio_agrees(value, 2.0) for pair in scientific.values() for value in pair), "modelled", f"the study's model, whose points are not published, would have half of what it counted: ours has more operations and fewer bytes; {_NOT_COUNTED}"),
        judge("A-F2-3", f"{over}: {factors['resnet50'][1]:.2f}× the bytes", ratio_agrees(factors["resnet50"][1], 10.0), "modelled", f"our model lets every layer read and write HBM; {_NOT_COUNTED}"),
        _accuracy(measured),
        judge("A-F2-5", f"{_texts({name: value.middle for name, value in reuse.items()}, '.1f')} times; modelled {_texts({name: moved(name) / kept(name) for name in NAMES}, '.1f')}", all(reuse[name].meets(text) for name, text in zip(NAMES, ("8.8", "18", "13"), strict=True)), "arithmetic", "moved over kept, as printed, within their rounding (A-C-7)"),
        judge("A-F2-6", f"counted bytes are {_texts(limit, '.1f')} times those of write-once, read-once", 9 <= round(max(limit.values()), 1) <= 10, "arithmetic", "nearly ten for DeepCAM only (A-C-9); relative to kept bytes: A-F2-5"),
    ]  # fmt: skip


def _accuracy(measured: MeasuredH200 | None) -> Verdict:
    if measured is None:
        return absent("A-F2-4", _NOT_COUNTED)
    per_sample = {name: ", ".join(f"{step.per_sample * 1e3:.3g}" for _, step in sorted(measured.steps(name).items())) for name in NAMES}  # fmt: skip
    batches = {name: ", ".join(str(batch) for batch in sorted(measured.steps(name))) for name in NAMES}
    ours = "; ".join(f"{TITLES[name]}, batches {batches[name]}: {per_sample[name]} ms per sample" for name in NAMES)
    return absent("A-F2-4", f"{_NOT_COUNTED}; steps come nearer to their bound with the batch, but that is time", ours, "measured", measured.steps_file.origin.day)  # fmt: skip


# Conclusions


def _conclusions(measured: MeasuredH200 | None) -> list[Verdict]:
    bandwidth = cori().device.memory_bandwidth / 1e12
    ideal = {name: PRINTED[name].rounded("per_limit_byte") * bandwidth for name in NAMES}
    real = {name: PRINTED[name].rounded("per_moved_byte") * bandwidth for name in NAMES}
    more = {name: PRINTED[name].rounded("moved") / PRINTED[name].rounded("limit") for name in NAMES}
    ends = ideal["cosmoflow"].meets("154") and ideal["deepcam"].meets("448")
    ends &= real["cosmoflow"].meets("35") and real["deepcam"].meets("50")
    return [
        judge("A-D-7", f"TFLOP/s: limit {_texts({name: value.middle for name, value in ideal.items()}, '.0f')}; counted {_texts({name: value.middle for name, value in real.items()}, '.1f')}", ends, "arithmetic", "A-E-8 on the printed intensities; modelled traffic: A-E-8"),
        judge("A-D-8", f"{_texts({name: value.middle for name, value in more.items()}, '.1f')} times; modelled {_texts({name: moved(name) / 2 / kept(name) for name in NAMES}, '.1f')}", more["cosmoflow"].meets("4.4") and more["deepcam"].meets("9.0"), "arithmetic", "counted over limit, as printed (A-C-9)"),
        _sustained_row("A-D-9", measured),
    ]  # fmt: skip
