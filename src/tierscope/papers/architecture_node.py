"""Time of a sample on a node by part (A-F5, A-F6, A-F7): modelled for Cori GPU, and what one H200 measures of it.

A V100's steps were not measured here. Compute is the roofline in the drawings; where a statement is about real steps, an H200's are given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.arch.device_parse import load_device
from tierscope.arch.step_seconds import SLOWEST
from tierscope.arch.step_time import StepTime, Surfaces, predict_step
from tierscope.arch.ways import Spent, spent
from tierscope.papers.architecture_model import AMP, absent, beside, judge, network_of, required
from tierscope.papers.architecture_printed import NAMES, TITLES, by_network
from tierscope.papers.charts import LOOKS, TOTAL, ChartPanel, Line, draw_chart
from tierscope.papers.measured_h200 import MeasuredH200, measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import Verdict, points_agree, ratio_agrees
from tierscope.report.drawn.logs import seconds_word

FIGURES = {"cosmoflow": "A-F5", "resnet50": "A-F6", "deepcam": "A-F7"}
BATCHES = {"cosmoflow": (1, 2, 4, 8, 16), "resnet50": (1, 2, 4, 16, 64, 128, 256), "deepcam": (2, 4)}
PREDICTED = {"cosmoflow": (1, 2, 4), "resnet50": (1, 2, 128, 256)}
_PLACES = {"main memory": "samples in memory", "lfs": "samples on NVMe", "gfs": "samples on Lustre"}
_HOST, _SEEN = "host: read and copy", "step, measured on an H200"
_MEASURED_ROWS = ("A-F5-1", "A-F5-2", "A-F6-1", "A-F6-2", "A-F7-1", "A-F7-2", "A-F7-4", "A-D-10")


@dataclass(frozen=True, slots=True)
class H200Steps:
    """What an H200 was measured on, and what its device file predicts between: seconds of steps by network and batch."""

    measured: MeasuredH200
    predicted: Mapping[tuple[str, int], StepTime]
    probed: str  # the day of the device file

    @property
    def made(self) -> str:
        return self.measured.steps_file.origin.day

    @property
    def trained(self) -> str:
        return self.measured.training_file.origin.day

    def per_sample(self, name: str, batch: int) -> float:
        return self.predicted[name, batch].seconds / batch


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(measured_h200())


def section(measured: MeasuredH200 | MissingMeasurement) -> Section:
    steps = None if isinstance(measured, MissingMeasurement) else h200_steps(measured)
    figures = tuple(_figure(name, None if steps is None else steps.measured) for name in FIGURES)
    if steps is None:
        assert isinstance(measured, MissingMeasurement)
        from_h200 = [absent(row, measured.reason) for row in _MEASURED_ROWS]
    else:
        from_h200 = [*_cosmoflow(steps), *_resnet(steps), *_deepcam(steps), _batching(steps)]
    return Section((*_drawn(), *from_h200, _exchange(), *_without()), figures)


def h200_steps(measured: MeasuredH200) -> H200Steps:
    device, surfaces = load_device(str(measured.folder / "device.yaml")), Surfaces()
    return H200Steps(
        measured,
        {(name, batch): predict_step(device, network_of(name), batch, AMP, surfaces=surfaces) for name, batches in PREDICTED.items() for batch in batches},
        device.origin.time[:10],
    )  # fmt: skip


# Drawings


def _drawn() -> list[Verdict]:
    why = "bars are not published; compute is the roofline of a V100, a lower bound; preprocessing is not modelled"
    return [beside(row, f"{TITLES[name]}: compute, all-reduce and host against the batch, one node of Cori GPU", "modelled", why) for name, row in FIGURES.items()]  # fmt: skip


def _figure(name: str, measured: MeasuredH200 | None) -> PaperFigure:
    batches = BATCHES[name]
    bars = {batch: {bar.place: bar for bar in spent(required(name, (batch,)))} for batch in batches}
    places = list(_PLACES)[:1] if name == "resnet50" else list(_PLACES)  # ResNet-50's data fit main memory
    panels = [_panel(_PLACES[place], [bars[batch][place] for batch in batches], batches) for place in places]
    if measured is not None:
        seen = measured.steps(name)
        line = Line(
            _SEEN, tuple(seen[batch].per_sample if batch in seen else None for batch in batches), TOTAL, 3, True
        )
        panels[0] = replace(panels[0], lines=(*panels[0].lines, line))
    caption = (
        f"{TITLES[name]}: seconds of a sample on one of a node's eight V100, modelled: compute (roofline), all-reduce (ring over NVLink), and the host's part, reading the file and copying the sample. "
        "Diamonds: steps measured on one H200 with input that costs nothing."
    )
    row = FIGURES[name]
    drawing = draw_chart(f"architecture-{row[2:].lower()}", f"{TITLES[name]}: time of a sample", caption, panels)
    return PaperFigure(row, f"{row[2:].lower()}-node", drawing, "modelled", caption)


def _panel(title: str, bars: Sequence[Spent], batches: Sequence[int]) -> ChartPanel:
    parts: dict[str, list[float | None]] = {
        "compute": [bar.compute for bar in bars],
        "all-reduce": [bar.exchange for bar in bars],
        _HOST: [(bar.read or 0.0) + (bar.copy or 0.0) for bar in bars],
    }
    lines = tuple(Line(part, tuple(values), LOOKS[number], number) for number, (part, values) in enumerate(parts.items()))  # fmt: skip
    return ChartPanel(title, "batch", "local batch size", "time of a sample", tuple(map(float, batches)), lines, word=seconds_word)  # fmt: skip


# Statements


def _cosmoflow(steps: H200Steps) -> list[Verdict]:
    seen = steps.measured.steps("cosmoflow")
    first, second = (steps.per_sample("cosmoflow", batch) for batch in (1, 2))
    ours = f"a step alone: batch 1 → 4 {1 - seen[4].per_sample / seen[1].per_sample:.0%} less time per sample, 4 → 8 {1 - seen[8].per_sample / seen[4].per_sample:.0%} (measured); 1 → 2 {1 - second / first:.0%} (predicted from the device file)"
    study = steps.measured.training("cosmoflow")
    return [
        beside("A-F5-1", ours, "measured", "one H200 without input; the published time is mostly the host's", steps.made),
        beside("A-F5-2", f"the device computes {study.of('tiers').utilisation:.0%} of the time from disk, {study.of('memory').utilisation:.0%} from memory", "measured", "one H200 with its own disk and no preprocessing; the study's eight GPUs share a node's NVMe and CPUs", steps.trained),
    ]  # fmt: skip


def _resnet(steps: H200Steps) -> list[Verdict]:
    first, second, third, last = (steps.per_sample("resnet50", batch) for batch in PREDICTED["resnet50"])
    low, high = (bound / last for bound in steps.predicted["resnet50", 1].interval)
    seen = steps.measured.steps("resnet50")
    measured = f"measured from batch 16 to 128: {seen[16].per_sample / seen[128].per_sample:.1f}×"
    why = "a step alone on one H200, predicted from its device file; without all-reduce and host"
    return [
        judge("A-F6-1", f"{first / last:.0f}× ({low:.0f}–{high:.0f}) from batch 1 to 256; {measured}", ratio_agrees(first / last, 50.0), "predicted", why, steps.probed),
        judge("A-F6-2", f"{first / second:.2f}× from batch 1 to 2; {100 * (third / last - 1):+.0f} % from 128 to 256", ratio_agrees(first / second, 2.0) and points_agree(100 * (third / last - 1), 20.0), "predicted", f"{why}. An H200 is as fast per sample at 128 as at 256", steps.probed),
    ]  # fmt: skip


def _deepcam(steps: H200Steps) -> list[Verdict]:
    study, seen = steps.measured.training("deepcam"), steps.measured.steps("deepcam")
    tiers, memory = study.of("tiers"), study.of("memory")
    slower = 100 * (memory.samples_per_second / tiers.samples_per_second - 1)
    return [
        judge("A-F7-1", f"the device computes {tiers.utilisation:.0%} of the time from disk, {memory.utilisation:.0%} from memory", tiers.utilisation > 0.5, "measured", "one H200, batch 2", steps.trained),
        judge("A-F7-2", f"{slower:.1f} % slower from disk: {tiers.text} and {memory.text} samples/s", points_agree(slower, 20.0), "measured", "one H200 with its own disk, batch 2; the same direction, and the published figure is the most that was seen", steps.trained),
        beside("A-F7-4", f"batch 2 → 4: {seen[2].per_sample / seen[4].per_sample:.2f}× for a step alone", "measured", "one H200 without input, not from Lustre", steps.made),
    ]  # fmt: skip


def _batching(steps: H200Steps) -> Verdict:
    """How many times faster a sample is after a doubling of the batch, on average over what was measured."""
    gains = {}
    for name in NAMES:
        seen = steps.measured.steps(name)
        first, last = min(seen), max(seen)
        gains[name] = (seen[first].per_sample / seen[last].per_sample) ** (1 / math.log2(last / first))
    ranked = sorted(gains, key=lambda name: gains[name])
    spans = {name: f"{gains[name]:.2f}× (batches {min(steps.measured.steps(name))}–{max(steps.measured.steps(name))})" for name in NAMES}  # fmt: skip
    return judge("A-D-10", f"gain of a doubling: {by_network(spans)}", tuple(ranked) == NAMES, "measured", "steps alone on one H200; feeding is not in it. That ResNet-50 waits for communication: A-F6-3", steps.made)  # fmt: skip


def _exchange() -> Verdict:
    """At the roofline, and at the slowest that steps were seen to be."""
    ends = {}
    for batch in (1, 256):
        bar = spent(required("resnet50", (batch,)))[0]
        ends[batch] = (bar.exchange or 0.0, bar.compute)
    shortest, longest = (
        ends[1][0] > factor * ends[1][1] and ends[256][0] < factor * ends[256][1] for factor in (1.0, SLOWEST)
    )
    ours = "; ".join(f"batch {batch}: all-reduce {1e3 * exchange:.3g} ms, compute {1e3 * compute:.3g} to {1e3 * SLOWEST * compute:.3g} ms" for batch, (exchange, compute) in ends.items())  # fmt: skip
    why = f"one node of Cori GPU, ring over NVLink; compute: the roofline to {SLOWEST:g} times that; what a host takes to launch kernels is not in it"
    if shortest != longest:
        return absent(
            "A-F6-3",
            f"needs a V100's step: it holds for the shortest or the longest that may be, not for both; {why}",
            ours,
            "modelled",
        )
    return judge("A-F6-3", ours, shortest, "modelled", why)


def _without() -> list[Verdict]:
    no_work = "Tierscope's samples are made up and need no preprocessing, so its share was not measured"
    return [
        absent("A-F5-5", no_work),
        absent("A-F6-4", no_work),
        absent("A-F7-3", "training with batch 4 was not measured on the H200; at batch 2: A-F7-2"),
    ]
