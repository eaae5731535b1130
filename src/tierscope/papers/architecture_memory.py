"""Memory against batch size (A-F1): what the layers of the study's networks keep, beside what one H200 was measured to hold."""

from collections.abc import Sequence
from statistics import median

from tierscope.arch.kept_activations import RULES, kept_bytes, kept_elements
from tierscope.arch.layer import INPUT
from tierscope.arch.networks import build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Wish, max_batch
from tierscope.arch.step_memory import CUDNN, StepMemory, step_memory
from tierscope.papers.architecture_model import (
    AMP,
    absent,
    beside,
    cori,
    data_of,
    judge,
    kept,
    network_of,
    sample_bytes,
)
from tierscope.papers.architecture_printed import GIB, MIB, NAMES, PRINTED, TITLES, by_network
from tierscope.papers.charts import LOOKS, TOTAL, ChartPanel, Line, draw_chart
from tierscope.papers.measured_h200 import MeasuredH200, measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import RATIO_OFF, Verdict, ratio_agrees
from tierscope.report.drawn.logs import bytes_word

SCIENTIFIC = ("cosmoflow", "deepcam")
BATCHES = {"cosmoflow": (1, 2, 4, 8, 16, 32), "deepcam": (1, 2, 4, 8, 16), "resnet50": (1, 4, 16, 64, 128, 256, 512)}
_EQUAL = 1.25  # times as much is about equal
_FIRST = 0.1  # of the layers are the first few
_READINGS = {"cosmoflow": ("outputs", "fp32"), "deepcam": ("outputs", "amp"), "resnet50": ("fused", "amp")}
_DOUBLED = {"cosmoflow": (4, 256, 256, 256), "deepcam": (16, 1536, 2304)}


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(measured_h200())


def section(measured: MeasuredH200 | MissingMeasurement) -> Section:
    known = None if isinstance(measured, MissingMeasurement) else measured
    figure = _figure(known)
    verdicts = [
        beside("A-F1", "three panels, from the layers", "modelled", "points are not published; marks are peaks of one H200, TensorBoard's were those of a V100"),
        *_parts(),
        _kept(known),
        _exhausted(),
        _resnet(known),
        _caches(),
        _peaks(measured),
        _first_layers(),
        _deepcam_batches(known),
        *_conclusions(),
    ]  # fmt: skip
    return Section(tuple(verdicts), (figure,))


def _memory(name: str, batch: int) -> StepMemory:
    return step_memory(network_of(name), batch, AMP, "sgd", CUDNN, False, data_of(name).target_bytes)


def _model_bytes(name: str) -> int:
    """Of 16-bit parameters, as the study counts them."""
    return AMP.activation_bytes * network_of(name).parameters


def _input_bytes(name: str) -> int:
    return AMP.activation_bytes * network_of(name).input_elements


def _figure(measured: MeasuredH200 | None) -> PaperFigure:
    caption = (
        "Bytes of a step against batch size: 16-bit parameters, input and kept activations from the layers, and the peak that Tierscope predicts for 16-bit training (AMP) with its 32-bit weights, gradients and "
        "workspace; marks: peaks measured on one H200. Level lines: L2 and memory of a V100."
    )
    panels = [_panel(name, measured) for name in NAMES]
    drawing = draw_chart("architecture-f1", "Memory against batch size", caption, panels)
    return PaperFigure("A-F1", "f1-memory", drawing, "modelled", caption)


def _panel(name: str, measured: MeasuredH200 | None) -> ChartPanel:
    batches, machine = BATCHES[name], cori()
    steps = {} if measured is None else measured.steps(name)
    level = (machine.l2 or 0, machine.memory)

    def line(words: str, values: Sequence[float | None], look: str, shape: int, hollow: bool = False) -> Line:
        return Line(words, tuple(values), look, shape, hollow)

    return ChartPanel(
        TITLES[name],
        "batch",
        "batch size",
        "bytes",
        tuple(map(float, batches)),
        (
            line("model", [_model_bytes(name)] * len(batches), LOOKS[0], 0),
            line("input", [batch * _input_bytes(name) for batch in batches], LOOKS[1], 1),
            line("activations", [batch * kept(name) for batch in batches], LOOKS[2], 2),
            line("peak, predicted", [_memory(name, batch).peak for batch in batches], TOTAL, 3),
            line("peak, measured on an H200", [steps[batch].peak_bytes if batch in steps else None for batch in batches], LOOKS[3], 0, True),
            line("L2, 6 MiB", [level[0]] * len(batches), LOOKS[4], 4),
            line("HBM, 16 GiB", [level[1]] * len(batches), LOOKS[4], 5),
        ),
        word=bytes_word,
        base=2,
    )  # fmt: skip


def _parts() -> list[Verdict]:
    held = {(name, batch): _memory(name, batch) for name in NAMES for batch in (2, 4, 8)}
    constant = all(len({held[name, batch].parameters for batch in (2, 4, 8)}) == 1 for name in NAMES)
    bends = {}
    for name in NAMES:
        first, second, third = (held[name, batch].activations + held[name, batch].input for batch in (2, 4, 8))
        bends[name] = (third - second) / (2 * (second - first)) - 1
    linear = max(map(abs, bends.values())) < 0.01
    largest = all(
        batch * kept(name) > max(_model_bytes(name), batch * _input_bytes(name))
        for name in SCIENTIFIC
        for batch in BATCHES[name]
    )
    ours = {name: f"{kept(name) / _model_bytes(name):.0f} and {kept(name) / _input_bytes(name):.0f}" for name in SCIENTIFIC}  # fmt: skip
    inputs = {name: _model_bytes(name) / sample_bytes(name) for name in NAMES}
    return [
        judge("A-F1-1", f"parameters the same at batches 2, 4, 8; input and activations off a straight line by at most {max(map(abs, bends.values())):.2%}", constant and linear, "modelled", "allocation by allocation, three networks"),
        judge("A-F1-2", f"activations ÷ model and ÷ input at batch 1: {by_network(ours)}", largest, "modelled", "16-bit; larger batches only raise the first"),
        judge("A-F1-10", f"16-bit model ÷ sample in memory: {by_network({name: f'{value:.3g}' for name, value in inputs.items()})}", max(inputs, key=lambda name: inputs[name]) == "resnet50" and inputs["resnet50"] > 10, "modelled"),
    ]  # fmt: skip


def _kept(measured: MeasuredH200 | None) -> Verdict:
    """By one rule for all: what autograd keeps in 16 bits. Which rules would give the printed figures is said, not used."""
    ours = {name: kept(name) / GIB for name in NAMES}
    agrees = {name: ratio_agrees(ours[name], float(PRINTED[name].kept)) for name in NAMES}
    texts = {name: f"{value:.3f}" for name, value in ours.items()}
    if measured is not None:
        for name in NAMES:
            texts[name] += f" (an H200: {_measured_kept(measured, name) / GIB:.3f})"
    readings = {name: f"{reading_gib(name):.3f} ({rule}, {'32' if bits == 'fp32' else '16'}-bit)" for name, (rule, bits) in _READINGS.items()}  # fmt: skip
    return judge(
        "A-F1-3",
        f"GiB: {by_network(texts)}",
        all(agrees.values()),
        "modelled",
        f"what autograd keeps in 16 bits, the rule that an H200 confirms. Rules chosen after the figures, another for each network, would give {by_network(readings)}; rules offered: {', '.join(RULES)}",
        "" if measured is None else measured.steps_file.origin.day,
    )


def reading_gib(name: str) -> float:
    """Kept activations by the rule and precision that the printed figure turns out to follow: a reading, not a prediction."""
    rule, precision = _READINGS[name]
    return kept_bytes(network_of(name), PRECISIONS[precision].activation_bytes, rule) / GIB


def _measured_kept(measured: MeasuredH200, name: str) -> float:
    """More for every sample, without the 16-bit copy of the sample itself."""
    steps = measured.steps(name)
    first, last = min(steps), max(steps)
    return (steps[last].kept_bytes - steps[first].kept_bytes) / (last - first) - _input_bytes(name)


def _exhausted() -> Verdict:
    largest = {name: max_batch(network_of(name), cori(), data_of(name), Wish(AMP)) for name in NAMES}
    return judge(
        "A-F1-4",
        f"largest batch in 16 GiB: {by_network({name: str(batch) for name, batch in largest.items()})}",
        max(largest[name] for name in SCIENTIFIC) < largest["resnet50"],
        "modelled",
        "16-bit with workspace as torch takes it; two numbers of its libraries are fitted to an H200",
    )


def _resnet(measured: MeasuredH200 | None) -> Verdict:
    model, activations = _model_bytes("resnet50"), kept("resnet50")
    ratio = max(model, activations) / min(model, activations)
    growth = (_memory("resnet50", 128).peak - _memory("resnet50", 16).peak) / 112
    follows = growth / (activations + _input_bytes("resnet50"))
    ours = f"batch 1: model {model / 1e6:.1f} MB, activations {activations / 1e6:.1f} MB; from batch 16 to 128 the peak grows {follows:.2f} times as fast as they"
    made = ""
    if measured is not None:
        steps, made = measured.steps("resnet50"), measured.steps_file.origin.day
        seen = (steps[128].peak_bytes - steps[16].peak_bytes) / 112 / (activations + _input_bytes("resnet50"))
        ours += f", on an H200 {seen:.2f} times"
    return judge("A-F1-5", ours, ratio <= _EQUAL and abs(follows - 1) <= RATIO_OFF, "modelled", f"about equal: within a factor of {_EQUAL}", made)  # fmt: skip


def _caches() -> Verdict:
    room = cori().l2
    assert room is not None
    wholes = {name: _model_bytes(name) / MIB for name in NAMES}
    largest = {name: max(AMP.activation_bytes * layer.parameters for layer in network_of(name).layers) for name in NAMES}  # fmt: skip
    return judge(
        "A-F1-6",
        f"L2 of {room / MIB:.0f} MiB; models {by_network({name: f'{size:.0f} MiB' for name, size in wholes.items()})}; their largest layers {by_network({name: f'{size / MIB:.1f} MiB' for name, size in largest.items()})}",
        min(wholes.values()) * MIB > room and max(largest.values()) <= room,
        "modelled",
        "16-bit parameters. No model fits; the largest layers of CosmoFlow (its first linear one) and DeepCAM (atrous convolutions) do not fit either. The L2 size is NVIDIA's, the study does not print it",
    )


def _peaks(measured: MeasuredH200 | MissingMeasurement) -> Verdict:
    if isinstance(measured, MissingMeasurement):
        return absent("A-F1-7", measured.reason)
    errors, plain = {}, {}
    for name in NAMES:
        for batch, step in measured.steps(name).items():
            errors[name, batch] = _memory(name, batch).peak / step.peak_bytes - 1
            plain[name, batch] = (_model_bytes(name) + batch * (_input_bytes(name) + kept(name))) / step.peak_bytes - 1
    worst = max(errors, key=lambda where: abs(errors[where]))
    return judge(
        "A-F1-7",
        f"predicted peaks off by {median(map(abs, errors.values())):.1%} (median), {abs(errors[worst]):.1%} at worst ({TITLES[worst[0]]}, batch {worst[1]}), n = {len(errors)}; the study's formula A-E-1 is {-min(plain.values()):.0%} to {-max(plain.values()):.0%} below",
        max(map(abs, errors.values())) <= RATIO_OFF,
        "measured",
        "torch's allocator on one H200, 16-bit; two numbers of the libraries were fitted on this device (validation.md has each network predicted from the two others)",
        measured.steps_file.origin.day,
    )


def _first_layers() -> Verdict:
    shares = {}
    for name in SCIENTIFIC:
        elements = {place: size for place, size in kept_elements(network_of(name)).items() if place != INPUT}
        few = max(1, round(_FIRST * len(network_of(name).layers)))
        shares[name] = sum(size for place, size in elements.items() if place < few) / sum(elements.values())
    return judge(
        "A-F1-8",
        f"kept by the first tenth of the layers: {by_network({name: f'{share:.0%}' for name, share in shares.items()})}",
        min(shares.values()) > 0.5,
        "modelled",
        "more than half counts as dominating. DeepCAM's decoder works on large images too, and its encoder is deep",
    )


def _deepcam_batches(measured: MeasuredH200 | None) -> Verdict:
    most = max_batch(network_of("deepcam"), cori(), data_of("deepcam"), Wish(AMP))
    power = 1 << (most.bit_length() - 1)
    ours = f"fits 16 GiB up to batch {most}, the largest power of two is {power}"
    why = "the upper limit holds for powers of two; our network normalises no single value, so batch 1 trains"
    if measured is None:
        return judge("A-F1-9", ours, False, "modelled", why)
    step = measured.steps("deepcam")[1]
    ours += f"; a step of batch 1 on an H200: {step.median * 1e3:.1f} ms, n = {len(step.seconds)}"
    return judge("A-F1-9", ours, False, "measured", why, measured.steps_file.origin.day)


def _conclusions() -> list[Verdict]:
    grown = {}
    for name, shape in _DOUBLED.items():
        grown[name] = kept_bytes(build_network(name, shape), AMP.activation_bytes) / kept(name)
    printed = {name: PRINTED[name].rounded("kept") * GIB for name in NAMES}
    on_chip = printed["resnet50"].middle / 1e6, printed["cosmoflow"].middle / 1e9, printed["deepcam"].middle / 1e9
    own = {name: f"{kept(name) / 1e6:.0f} MB" for name in NAMES}
    return [
        judge("A-D-1", f"kept activations × {by_network({name: f'{value:.2f}' for name, value in grown.items()})}", [round(value) for value in grown.values()] == [8, 4], "modelled", "all layers built again for the doubled edge"),
        judge("A-D-6", f"{on_chip[0]:.0f} MB; {on_chip[1]:.2f} and {on_chip[2]:.1f} GB from the printed activations; from our layers {by_network(own)}", [float(f"{size:.1g}") for size in on_chip] == [50.0, 0.8, 3.0], "arithmetic", "to one digit, activations alone (A-C-18); 0.8 is printed as 1 (A-C-8)"),
    ]  # fmt: skip
