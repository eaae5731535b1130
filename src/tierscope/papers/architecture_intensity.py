"""Operations and bytes of a sample (Table II, A-F2): modelled from the layers and counted on an H200, beside what the study counted on a V100, and arithmetic on what it printed."""

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
_NOT_COUNTED = "counts of an H200 are in validation/h200, which is part of a clone"
_TILE = 8  # channels that 16-bit matrix units take at once


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(measured_h200())


def section(measured: MeasuredH200 | MissingMeasurement) -> Section:
    known = None if isinstance(measured, MissingMeasurement) else measured
    verdicts = (*_table_rows(known), *_recomputed(), *_derived(), *_figure_rows(known), *_conclusions(known))
    return Section(verdicts, (_figure(known),), (_table(known),))


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


def _counted_gif(measured: MeasuredH200) -> dict[str, float]:
    return {name: measured.counted(name).flops_per_sample / GIB for name in NAMES}


def _counted_gib(measured: MeasuredH200) -> dict[str, float]:
    return {name: measured.counted(name).bytes_per_sample / GIB for name in NAMES}


def _counted_where(measured: MeasuredH200) -> str:
    batches = by_network({name: str(measured.counted(name).batch) for name in NAMES})
    return f"hardware counters of one step on one H200, 16-bit (AMP), batches {batches}"


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
        beside("A-T2", f"modelled, counted and published for {len(NAMES)} networks", "modelled", "a table below"),
        judge("A-T2-1", f"TiB: {_texts(sets, '.3g')}", fits, "input", "files × bytes of a file; the printed sizes do not follow from the printed files (A-C-2, A-C-3, A-C-4)"),
        judge("A-T2-2", f"MiB: {_texts(samples, '.3g')}", same, "modelled", "elements of the network's input × 2 bytes (CosmoFlow, DeepCAM) or 1 byte (ResNet-50, A-C-5)"),
        _operations_row(measured, f"modelled, 2 for each multiply-add of convolutions and linear layers: {_texts({name: _gif(name) for name in NAMES}, ',.4g')}, off by {by_network({name: f'{value:+.0f} %' for name, value in off.items()})}; with the sample's channels padded to {_TILE}: {_texts(padded, ',.4g')}"),
        judge("A-T2-4", f"GiB: {_texts(limits, '.3g')}", agrees, "modelled", "twice what autograd keeps in 16 bits; which rules would give the printed figures: A-F1-3"),
        _bytes_row(measured, f"modelled, every layer reads its input and writes its output once, normalisations read twice: {_texts(modelled, '.3g')}"),
        _sustained_row("A-T2-9", measured),
    ]  # fmt: skip


def _operations_row(measured: MeasuredH200 | None, modelled: str) -> Verdict:
    if measured is None:
        return beside("A-T2-3", f"GiF: {modelled}", "modelled", _NOT_COUNTED)
    ours, where = _texts(_counted_gif(measured), ",.4g"), _counted_where(measured)
    return beside("A-T2-3", f"GiF: {ours}", "measured", f"{where}; {modelled}", measured.counters_file.origin.day)


def _bytes_row(measured: MeasuredH200 | None, modelled: str) -> Verdict:
    if measured is None:
        return beside("A-T2-5", f"GiB: {modelled}", "modelled", _NOT_COUNTED)
    ours, where = _texts(_counted_gib(measured), ".3g"), _counted_where(measured)
    why = f"{where}, whose 50 MB of L2 serve more than a V100's 6; {modelled}"
    return beside("A-T2-5", f"GiB: {ours}", "measured", why, measured.counters_file.origin.day)


def _sustained_row(row_id: str, measured: MeasuredH200 | None) -> Verdict:
    if measured is None:
        return absent(row_id, "needs validation/h200, which is part of a clone")
    rates = {name: measured.counted(name).dram_bytes / measured.counted(name).seconds for name in NAMES}
    ours = by_network({name: f"{rate / 1e9:,.0f} GB/s" for name, rate in rates.items()})
    why = f"{_counted_where(measured)}: bytes over the time of kernels; 4,163 GB/s was the measured ceiling"
    return beside(row_id, ours, "measured", why, measured.counters_file.origin.day)


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
    """Modelled, counted and published in one: a line for each quantity and network."""
    lines: list[tuple[str | float | int, ...]] = []
    for name in NAMES:
        printed, counted = PRINTED[name], _counted_texts(measured, name)
        for what, ours, theirs in (
            ("operations, GiF", f"{_gif(name):,.4g}", printed.operations),
            ("HBM bytes, limit, GiB", f"{2 * kept(name) / GIB:.3g}", printed.limit),
            ("HBM bytes, GiB", f"{moved(name) / GIB:.3g}", printed.moved),
            ("FLOP per HBM byte", f"{operations(name) / moved(name):.3g}", printed.per_moved_byte),
            ("reuse: HBM bytes ÷ kept", f"{moved(name) / kept(name):.1f}", f"{float(printed.moved) / float(printed.kept):.1f}"),
            ("sustained HBM bandwidth, GB/s", "–", printed.sustained),
        ):  # fmt: skip
            lines.append((TITLES[name], what, ours, counted.get(what, "–"), theirs))
    columns = ("network", "per sample", "modelled", "counted on one H200", "published, V100")
    return PaperTable("A-T2", "characteristics", columns, tuple(lines), "modelled", "characteristics of a sample, modelled, counted and published")  # fmt: skip


def _counted_texts(measured: MeasuredH200 | None, name: str) -> dict[str, str]:
    if measured is None:
        return {}
    step = measured.counted(name)
    return {
        "operations, GiF": f"{step.flops_per_sample / GIB:,.4g}",
        "HBM bytes, GiB": f"{step.bytes_per_sample / GIB:.3g}",
        "FLOP per HBM byte": f"{step.flops_per_sample / step.bytes_per_sample:.3g}",
        "reuse: HBM bytes ÷ kept": f"{step.bytes_per_sample / kept(name):.1f}",
        "sustained HBM bandwidth, GB/s": f"{step.dram_bytes / step.seconds / 1e9:,.0f}",
    }


# Figure 2


def _figure(measured: MeasuredH200 | None) -> PaperFigure:
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
        if measured is not None:
            step = measured.counted(name)
            points.append(BalancePoint(TITLES[name], "counted on one H200", step.bytes_per_sample, step.flops_per_sample, css, 3, False))  # fmt: skip
    device = cori().device
    balances = {
        "tensor-core balance": device.peak(AMP) / device.memory_bandwidth,
        "32-bit balance": device.fp32 / device.memory_bandwidth,
    }
    caption = (
        "Operations and HBM bytes of a sample, 16-bit: modelled forward, backward and together (hollow), and what the study counted on a V100 (filled; 2^30 operations and bytes as it prints them)"
        f"{_on_the_h200(measured)}. Lines: balance of a V100, {balances['tensor-core balance']:.0f} and {balances['32-bit balance']:.1f} operations for each byte."
    )
    drawing = draw_balance("architecture-f2", "Operations and HBM bytes of a sample", caption, points, balances)
    return PaperFigure("A-F2", "f2-balance", drawing, "modelled", caption)


def _on_the_h200(measured: MeasuredH200 | None) -> str:
    return "" if measured is None else f"; filled diamonds: {_counted_where(measured)}, whose larger L2 saves bytes"


def _figure_rows(measured: MeasuredH200 | None) -> list[Verdict]:
    device = cori().device
    low, high = device.fp32 / device.memory_bandwidth, device.peak(AMP) / device.memory_bandwidth
    ours = {name: operations(name) / moved(name) for name in NAMES}
    reuse = {name: PRINTED[name].rounded("moved") / PRINTED[name].rounded("kept") for name in NAMES}
    limit = {name: float(PRINTED[name].moved) / float(PRINTED[name].limit) for name in NAMES}
    return [
        beside("A-F2", "three networks, forward, backward and both", "modelled", "the study's own points are not published"),
        judge("A-F2-1", f"FLOP/B: {_texts(ours, '.1f')}; balances {low:.1f} and {high:.1f}", all(low < value < high for value in ours.values()), "modelled", MODELLED),
        *_over_the_model(measured),
        _accuracy(measured),
        judge("A-F2-5", f"{_texts({name: value.middle for name, value in reuse.items()}, '.1f')} times; modelled {_texts({name: moved(name) / kept(name) for name in NAMES}, '.1f')}", all(reuse[name].meets(text) for name, text in zip(NAMES, ("8.8", "18", "13"), strict=True)), "arithmetic", "moved over kept, as printed, within their rounding (A-C-7)"),
        judge("A-F2-6", f"counted bytes are {_texts(limit, '.1f')} times those of write-once, read-once", 9 <= round(max(limit.values()), 1) <= 10, "arithmetic", "nearly ten for DeepCAM only (A-C-9); relative to kept bytes: A-F2-5"),
    ]  # fmt: skip


def _over_the_model(measured: MeasuredH200 | None) -> list[Verdict]:
    """What was counted on the H200 over what our model says of the same layers."""
    if measured is None:
        return [absent(row_id, _NOT_COUNTED) for row_id in ("A-F2-2", "A-F2-3")]
    made, where = measured.counters_file.origin.day, _counted_where(measured)
    flops = {name: value / _gif(name) for name, value in _counted_gif(measured).items()}
    nbytes = {name: value * GIB / moved(name) for name, value in _counted_gib(measured).items()}
    scientific = NAMES[:2]
    said = by_network({name: f"operations {flops[name]:.2f}×, bytes {nbytes[name]:.2f}×" for name in scientific})
    doubled = all(ratio_agrees(values[name], 2.0) for values in (flops, nbytes) for name in scientific)
    return [
        judge("A-F2-2", f"counted over modelled: {said}", doubled, "measured", f"{where}; the study's model is not published, so ours may count more or less than it", made),
        judge("A-F2-3", f"counted over modelled: {nbytes['resnet50']:.2f}× the bytes", ratio_agrees(nbytes["resnet50"], 10.0), "measured", f"{where}; our model lets every layer read and write HBM", made),
    ]  # fmt: skip


def _accuracy(measured: MeasuredH200 | None) -> Verdict:
    if measured is None:
        return absent("A-F2-4", _NOT_COUNTED)
    per_sample = {name: ", ".join(f"{step.per_sample * 1e3:.3g}" for _, step in sorted(measured.steps(name).items())) for name in NAMES}  # fmt: skip
    batches = {name: ", ".join(str(batch) for batch in sorted(measured.steps(name))) for name in NAMES}
    ours = "; ".join(f"{TITLES[name]}, batches {batches[name]}: {per_sample[name]} ms per sample" for name in NAMES)
    return absent("A-F2-4", "only one batch of each network was counted on the H200; steps come nearer to their bound with the batch, but that is time", ours, "measured", measured.steps_file.origin.day)  # fmt: skip


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
