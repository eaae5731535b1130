"""One node of Summitdev (T-F4, T-F5, T-F6, T-F11, T-F12): GPUs with a fixed global batch, storage, batch sizes. Modelled; preprocessing is not in it.

Every answer is given for both ends of what a P100's steps may take (`training_model`), and holds only where it holds at both.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from tierscope.arch.movement import gather_seconds
from tierscope.arch.step_memory import step_memory
from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.training_basics import improvement, variability
from tierscope.papers.training_model import (  # fmt: skip
    ABOUT,
    BATCH,
    ENDS,
    FP32,
    GPUS,
    IMAGES,
    NAMES,
    TITLES,
    P100Steps,
    gradient_bytes,
    input_bytes,
    named,
    network_of,
    p100_steps,
    span,
    summitdev,
)
from tierscope.papers.verdict import Verdict, points_agree, ratio_agrees

ROWS = (
    *("T-F4", "T-F5", "T-F6", "T-F11", "T-F12", "T-D-1", "T-D-2", "T-D-5"),
    *(f"T-F4-{number}" for number in (1, 2, 3, 4, 5, 6, 9, 10)),
    *(f"T-F5-{number}" for number in range(1, 5)),
    *(f"T-F6-{number}" for number in range(1, 5)),
    *(f"T-F11-{number}" for number in range(1, 4)),
    *(f"T-F12-{number}" for number in range(1, 4)),
)
BATCHES = (128, 256, 512, 1024, 2048, 4096, 8192)
DRAWS, RUNS = 2000, 5
_RATES = {"Lustre": (2.0e9, 5.2e9), "NVMe": (7.0e9, 7.3e9)}  # of a node, T-F4-7: inputs
_WHERE = f"modelled, one node, global batch {BATCH}; {ABOUT}; the CPUs' preprocessing is not in it"
_LITTLE, _MUCH = 1.1, 1.3  # no gain, a large gain
_BATCHED = NAMES[:3]


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(p100_steps())


def section(steps: Mapping[str, P100Steps] | MissingMeasurement) -> Section:
    if isinstance(steps, MissingMeasurement):
        return Section(tuple(absent(row, steps.reason) for row in ROWS))
    node = ModelledNode(steps)
    return Section((*_order(node), *_storage(node), *_utilisation(node), *_gpus(node), *_batches(node)), (_gpu_figure(node), _batch_figure(node)), (_table(node),))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelledNode:
    steps: Mapping[str, P100Steps]

    def seconds(self, name: str, end: str, gpus: int = GPUS, batch: int = BATCH) -> float:
        """Of one step: a part of the batch on each GPU, then gradients gathered on GPU 0."""
        exchanged = gather_seconds(gradient_bytes(name), replace(summitdev(), accelerators=gpus))
        assert exchanged is not None
        return self.steps[name].seconds(batch / gpus, end) + exchanged

    def gain(self, name: str, end: str, gpus: int, before: int = 1) -> float:
        return self.seconds(name, end, before) / self.seconds(name, end, gpus)

    def fed(self, name: str, end: str, rate: float, overlap: bool, batch: int = BATCH) -> float:
        """A step with its reads, hidden or after one another."""
        computed, read = self.seconds(name, end, batch=batch), batch * IMAGES.file_bytes / rate
        return max(computed, read) if overlap else computed + read

    def storage_gain(self, name: str, end: str, overlap: bool) -> float:
        far, near = (sum(rates) / 2 for rates in _RATES.values())
        return improvement(self.fed(name, end, far, overlap) / self.fed(name, end, near, overlap))

    def varies(self, name: str, end: str, place: str, overlap: bool) -> float:
        """The median over draws of so many runs, each at a rate of its own."""
        dice = random.Random(7)
        low, high = _RATES[place]
        return median(variability(tuple(self.fed(name, end, dice.uniform(low, high), overlap) for _ in range(RUNS))) for _ in range(DRAWS))  # fmt: skip

    def copied(self, name: str, end: str, batch: int) -> float:
        """Share of a step on copies: samples to GPUs and weights, over the link to the host."""
        link = summitdev().host_bandwidth
        assert link
        copies = (batch / GPUS * input_bytes(name) + 2 * gradient_bytes(name)) / link
        return copies / (copies + self.seconds(name, end, batch=batch))


def _order(node: ModelledNode) -> list[Verdict]:
    rates = {end: {name: BATCH / node.seconds(name, end) for name in NAMES} for end in ENDS}
    order = all(max(of, key=lambda name: of[name]) == "lenet5" and min(of, key=lambda name: of[name]) == "resnet101" for of in rates.values())  # fmt: skip
    lost = {end: -improvement(of["resnet101"] / of["resnet50"]) for end, of in rates.items()}
    texts = {name: f"{span({end: rates[end][name] for end in ENDS}, ',.0f')}" for name in NAMES}
    return [
        beside("T-F4", f"images/s of a node: {named(texts)}", "modelled", f"values are not published; {_WHERE}"),
        judge("T-F4-1", f"images/s: {named(texts)}", order, "modelled", _WHERE),
        judge("T-F4-2", f"{span(lost, '.0f', ' %')} slower", all(points_agree(value, 7.0) for value in lost.values()), "modelled", f"{_WHERE}; something other than the GPU limits both on the study's machine (T-C-11)"),
    ]  # fmt: skip


def _storage(node: ModelledNode) -> list[Verdict]:
    gains = {name: [node.storage_gain(name, end, overlap) for end in ENDS for overlap in (True, False)] for name in NAMES}  # fmt: skip
    texts = {name: f"+{min(of):.1f} to +{max(of):.1f} %" for name, of in gains.items()}
    why = f"{_WHERE}; from all reads hidden to none; rates of storage are inputs (T-F4-7)"
    same = all(points_agree(value, 0.0) if value else True for name in NAMES[2:] for value in gains[name] if abs(value) > 3)  # fmt: skip
    light = [max(gains[name]) for name in NAMES]
    falls = light[0] > light[1] > light[2] > light[3]
    seen = {place: [node.varies(name, end, place, overlap) for name in NAMES for end in ENDS for overlap in (True, False)] for place in _RATES}  # fmt: skip
    most = {place: max(of) for place, of in seen.items()}
    spread = {place: f"{min(of):.1f}–{max(of):.1f} %" for place, of in seen.items()}
    agree = points_agree(most["NVMe"], 3.1) and points_agree(most["Lustre"], 9.0)
    heavy = {place: max(node.varies(name, end, place, False) for name in NAMES[2:] for end in ENDS) for place in _RATES}
    host = "LeNet's step is so short that it would wait for storage; on the study's machine something else took longer (2.3 % GPU utilisation)"

    def inside(name: str, published: float) -> bool:
        return min(gains[name]) <= published <= max(gains[name])

    return [
        judge("T-F4-3", texts["lenet5"], inside("lenet5", 4.63), "modelled", f"{why}; {host}"),
        judge("T-F4-4", texts["alexnet"], inside("alexnet", 1.75), "modelled", f"{why}; holds where the published gain lies between"),
        judge("T-F4-5", named({name: texts[name] for name in NAMES[2:]}), same and max(light[2:]) <= 3, "modelled", f"{why}; nearly identical: within 3 %"),
        judge("T-F4-6", f"at most: {named({name: f'+{value:.1f} %' for name, value in zip(NAMES, light, strict=True)})}", falls, "modelled", why),
        judge("T-F4-9", f"NVMe {spread['NVMe']}, Lustre {spread['Lustre']}; ResNets alone at most {heavy['NVMe']:.2f} and {heavy['Lustre']:.1f} %", agree, "modelled", f"{why}; {RUNS} runs, each at a rate drawn evenly from the published range, median of {DRAWS:,} draws. Lustre varies more at every network; LeNet's and AlexNet's part is too large, as T-F4-3"),
        absent("T-F4-10", "other users of the shared storage are not modelled; `background` of a tier is a constant share"),
        judge("T-D-5", f"gain at most {named({name: f'{value:.1f} %' for name, value in zip(NAMES, light, strict=True)})}", max(light) < 10, "modelled", f"{why}; true of the ResNets, not of LeNet"),
    ]  # fmt: skip


def _utilisation(node: ModelledNode) -> list[Verdict]:
    far = sum(_RATES["Lustre"]) / 2
    uses = {name: {end: 100 * node.steps[name].device(BATCH / GPUS, end) / node.fed(name, end, far, True) for end in ENDS} for name in NAMES}  # fmt: skip
    texts = {name: span(of, ".0f", " %") for name, of in uses.items()}
    rises = all(uses[NAMES[number]][end] < uses[NAMES[number + 1]][end] for number in range(3) for end in ENDS)
    return [
        beside("T-F5", named(texts), "modelled", f"two values are published; {_WHERE}; reads from Lustre hidden"),
        judge("T-F5-1", texts["lenet5"], all(points_agree(value, 2.3) for value in uses["lenet5"].values()), "modelled", f"LeNet's kernels are so short that between the two ends lies whether they take nothing of a step or half of it; {_WHERE}"),
        judge("T-F5-2", texts["resnet101"], all(points_agree(value, 69.9) for value in uses["resnet101"].values()), "modelled", f"a host that keeps up uses the GPU fully: what held the study's back is not in the model; {_WHERE}"),
        judge("T-F5-3", named(texts), rises, "modelled", _WHERE),
        judge("T-F5-4", f"the GPU's part of a step: {named(texts)}", all(uses["lenet5"][end] < 50 < uses["resnet101"][end] for end in ENDS), "modelled", _WHERE),
        judge("T-D-2", named(texts), all(value < 90 for of in uses.values() for value in of.values()), "modelled", f"the ResNets' steps leave the GPU little to wait for where the host only gives out work; {_WHERE}; fully: 90 % and more"),
    ]  # fmt: skip


def _gpus(node: ModelledNode) -> list[Verdict]:
    gains = {name: {end: [node.gain(name, end, gpus) for gpus in (1, 2, 3, 4)] for end in ENDS} for name in NAMES}
    texts = {name: " and ".join(f"{', '.join(f'{gain:.2f}' for gain in of[end])}× ({end})" for end in ENDS) for name, of in gains.items()}  # fmt: skip
    slower = all(gain < 1 for end in ENDS for gain in gains["lenet5"][end][1:])
    stops = all(gains[name][end][1] >= _MUCH and max(gains[name][end][2:]) <= _LITTLE * gains[name][end][1] for name in ("alexnet", "resnet50") for end in ENDS)  # fmt: skip
    four = {end: gains["resnet101"][end][3] for end in ENDS}
    best = all(max(NAMES, key=lambda name: gains[name][end][3]) == "resnet101" for end in ENDS)
    returns = all(gains[name][end][3] / gains[name][end][1] < gains[name][end][1] for name in NAMES[1:] for end in ENDS)
    return [
        beside("T-F6", "throughput against GPUs, drawn", "modelled", f"values are not published; {_WHERE}"),
        judge("T-F6-1", texts["lenet5"], slower, "modelled", f"at the slow end a GPU's part of the batch saves more than the gather of so few gradients takes, and what the framework spends on dealing out a batch is not in the model; {_WHERE}; 1 to 4 GPUs"),
        judge("T-F6-2", named({name: texts[name] for name in ("alexnet", "resnet50")}), stops, "modelled", f"{_WHERE}; 1 to 4 GPUs; large: {_MUCH}×, none beyond: less than a tenth more. The gather alone does not stop ResNet-50"),
        judge("T-F6-3", f"{span(four, '.2f', '×')}", all(ratio_agrees(value, 3.26) for value in four.values()), "modelled", _WHERE),
        judge("T-F6-4", f"four GPUs: {named({name: span({end: gains[name][end][3] for end in ENDS}, '.2f', '×') for name in NAMES})}", best, "modelled", f"at the slow end the part of a step that does not shrink with the batch is larger in ResNet-101 than in ResNet-50, which the gather of its gradients does not outweigh; {_WHERE}"),
        judge("T-D-1", named({name: texts[name] for name in NAMES[1:]}), returns, "modelled", f"{_WHERE}; the second doubling gains less than the first"),
    ]  # fmt: skip


def fits(name: str, batch: int) -> bool:
    """A GPU's part of the batch in its memory."""
    return step_memory(network_of(name), batch // GPUS, FP32).peak <= summitdev().memory


def _batches(node: ModelledNode) -> list[Verdict]:
    rates = {name: {end: [batch / node.seconds(name, end, batch=batch) for batch in BATCHES] for end in ENDS} for name in _BATCHED}  # fmt: skip
    more = {name: {end: improvement(of[end][1] / of[end][0]) for end in ENDS} for name, of in rates.items()}
    slower = all(of[end][-1] < of[end][0] for of in rates.values() for end in ENDS)
    most = max(batch for batch in BATCHES if fits("resnet50", batch))
    shares = {name: {end: 100 * node.copied(name, end, BATCH) for end in ENDS} for name in _BATCHED}
    top = max(100 * node.copied(name, end, batch) for name in _BATCHED for end in ENDS for batch in BATCHES)
    lower = all(max(shares[name][end] for name in ("lenet5", "resnet50")) < shares["alexnet"][end] for end in ENDS)
    texts = {name: span(of, ".1f", " %") for name, of in shares.items()}
    where = f"{_WHERE}; copies not hidden: samples to the GPUs, gradients and weights, at the measured NVLink rate"
    return [
        beside("T-F11", "throughput against batch, drawn", "modelled", f"values are not published; {ABOUT}"),
        beside("T-F12", f"copies: {named(texts)} of a step", "modelled", where),
        judge("T-F11-1", named({name: f"+{span(of, '.0f', ' %')}" for name, of in more.items()}), all(points_agree(value, 2.7) for of in more.values() for value in of.values()), "modelled", f"{_WHERE}; the gather is paid half as often, and small batches leave a GPU's host waiting"),
        judge("T-F11-2", named({name: f"batch 8,192 {span({end: of[end][-1] / of[end][0] for end in ENDS}, '.1f', '×')} the rate of 128" for name, of in rates.items()}), slower, "modelled", f"{_WHERE}; nothing in the model makes large batches slower; memory is not looked at"),
        judge("T-F11-3", f"ResNet-50 fits up to {most} on a node, {most // GPUS} on each GPU", most == 512, "modelled", f"32 bits, memory of a step as predicted from the layers, {summitdev().memory / 2**30:g} GiB; four GPUs share the batch"),
        judge("T-F12-1", f"at most {top:.1f} %", points_agree(top, 18.06), "modelled", f"AlexNet at the fast end: its 61 million weights go both ways in every step, which is shorter there than the study's; {where}"),
        judge("T-F12-2", named(texts), lower, "modelled", f"{where}; batch {BATCH}"),
        judge("T-F12-3", f"without any copies: at most {improvement(1 / (1 - max(shares['resnet50'].values()) / 100)):.1f} % for ResNet-50, {improvement(1 / (1 - max(shares['alexnet'].values()) / 100)):.1f} % for AlexNet", top < 20, "modelled", f"AlexNet at the fast end copies for more than a fifth of a step, weights above all, and a larger batch saves these (little: less than 20 %); {where}"),
    ]  # fmt: skip


def _gpu_figure(node: ModelledNode) -> PaperFigure:
    caption = f"Throughput against GPUs of a node, relative to one GPU, global batch {BATCH} in all; left: steps at a P100's roofline, right: at the efficiency of an H200. Gradients gathered on GPU 0."
    panels = [
        ChartPanel(f"{end} steps", "gpus", "GPUs", "times one GPU", (1.0, 2.0, 3.0, 4.0), tuple(Line(TITLES[name], tuple(node.gain(name, end, gpus) for gpus in (1, 2, 3, 4)), LOOKS[number], number) for number, name in enumerate(NAMES)))
        for end in ENDS
    ]  # fmt: skip
    return PaperFigure("T-F6", "f6-gpus", draw_chart("training-f6", "Throughput against GPUs", caption, panels), "modelled", caption)  # fmt: skip


def _batch_figure(node: ModelledNode) -> PaperFigure:
    caption = "Throughput of a node against the batch, relative to 128; ResNet-50 as far as it fits a P100's memory. Left: steps at a P100's roofline, right: at the efficiency of an H200."
    panels = []
    for end in ENDS:
        lines = []
        for number, name in enumerate(_BATCHED):
            first = BATCH / node.seconds(name, end)
            values = tuple(batch / node.seconds(name, end, batch=batch) / first if fits(name, batch) else None for batch in BATCHES)  # fmt: skip
            lines.append(Line(TITLES[name], values, LOOKS[number], number))
        panels.append(ChartPanel(f"{end} steps", "batch", "batch of a node", "times batch 128", tuple(map(float, BATCHES)), tuple(lines), word=lambda value: f"{value:g}", base=2))  # fmt: skip
    return PaperFigure("T-F11", "f11-batch", draw_chart("training-f11", "Throughput against batch", caption, panels), "modelled", caption)  # fmt: skip


def _table(node: ModelledNode) -> PaperTable:
    lines = tuple(
        (TITLES[name], end, 1e3 * node.steps[name].seconds(BATCH / GPUS, end), 1e3 * node.seconds(name, end), node.storage_gain(name, end, True), node.storage_gain(name, end, False))
        for name in NAMES for end in ENDS
    )  # fmt: skip
    columns = ("network", "steps", "a GPU's step, ms", "with the gather, ms", "NVMe over Lustre, reads hidden, %", "reads not hidden, %")  # fmt: skip
    return PaperTable("T-F4", "node", columns, lines, "modelled", f"a node's step, global batch {BATCH}, and what NVMe gains over Lustre; {ABOUT}")  # fmt: skip
