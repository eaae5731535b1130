"""Strong scaling (A-F8, A-F9): a fixed data set on more nodes of Cori GPU, staged to NVMe or read from Lustre, until a node's share fits its memory.

A V100's steps were not measured here: every answer is given for the roofline and for steps so many times longer as the slowest that were measured on another device.
What one node gets from Lustre was taken from CosmoFlow's gain by staging, so rows about that gain are fitted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tierscope.arch.machine import Machine
from tierscope.arch.requirements import Wish, requirements
from tierscope.arch.scaling import MEMORY_SHARE, Scaled
from tierscope.arch.step_seconds import SLOWEST, StepSeconds, given
from tierscope.papers.architecture_model import AMP, absent, beside, cori, data_of, judge, network_of, seconds
from tierscope.papers.architecture_printed import NAMES, PRINTED, TITLES, Rounded, by_network
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.measured_h200 import measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import Verdict, gain_agrees, points_agree, ratio_agrees
from tierscope.report.drawn.logs import seconds_word
from tierscope.units import counted

NODES = (1, 2, 4, 8)
SAMPLES = {"cosmoflow": 49_152, "deepcam": 9_800}  # DeepCAM's are not printed: A-C-16
ON_A_NODE = 16_384  # samples of CosmoFlow in A-F5
BATCHES = (1, 4, 16)
DEEPCAM_BATCH = 2
_ENDS = f"steps from the roofline to {SLOWEST:g} times that"
_LATER = "later epochs"
_ABOUT, _LITTLE = 0.03, 0.2  # of the time is hardly a difference, and a little one


@dataclass(frozen=True, slots=True)
class Curve:
    """Epochs by number of nodes: from NVMe where the share fits it, and from Lustre only; both from memory where it fits that."""

    staged: tuple[Scaled, ...]
    direct: tuple[Scaled, ...]

    def more(self, place: int) -> float:
        """How many times as long an epoch from Lustre takes."""
        return self.direct[place].later_seconds / self.staged[place].later_seconds


def make(short: bool) -> Section:
    del short  # nothing here takes long
    fast, slow = ({batch: curve("cosmoflow", batch, end) for batch in BATCHES} for end in (1.0, SLOWEST))
    deepcam = curve("deepcam", DEEPCAM_BATCH), curve("deepcam", DEEPCAM_BATCH, SLOWEST)
    figures = (_cosmoflow_figure(fast), _deepcam_figure((deepcam[0], table_curve(), deepcam[1])))
    left = max(100 * (of.more(NODES.index(4)) - 1) for of in (*fast.values(), *slow.values(), *deepcam))
    at_scale = judge(
        "A-I-3",
        f"on four nodes NVMe saves at most {left:.0f} % in later epochs",
        left < 100 * _LITTLE,
        "modelled",
        "static partitioning: every node keeps its share; as A-F8-2 and A-F9-2",
    )
    verdicts = (*_drawn(), *_cosmoflow(fast, slow), *_deepcam(*deepcam), _imagenet(), *_sizes(), at_scale)
    return Section(verdicts, figures)


def curve(name: str, batch: int, times: float = 1.0, step: StepSeconds | None = None) -> Curve:
    """`times`: as long as the roofline; `step`: instead of that."""

    def points(machine: Machine) -> tuple[Scaled, ...]:
        data = replace(data_of(name), samples=SAMPLES[name])
        wish = Wish(AMP, batches=(batch,), nodes=NODES)
        if step is not None:
            return requirements(network_of(name), machine, data, wish, step).scaling
        roofline = requirements(network_of(name), machine, data, wish).step_seconds
        return requirements(network_of(name), machine, data, wish, given(times * roofline)).scaling

    return Curve(points(cori()), points(replace(cori(), near=None)))


def table_curve() -> Curve:
    """DeepCAM with steps as long as the study's bytes and bandwidth imply."""
    return curve("deepcam", DEEPCAM_BATCH, step=given(DEEPCAM_BATCH * PRINTED["deepcam"].step_seconds))


# Drawings


def _lines(of: Curve, samples: int) -> tuple[Line, ...]:
    """Ideal ones first: the others are drawn over them."""
    lines, ideal = [], []
    for number, (words, points) in enumerate((("NVMe", of.staged), ("Lustre", of.direct))):
        times = [point.later_seconds / samples for point in points]
        lines.append(Line(words, tuple(times), LOOKS[number], number))
        evenly = tuple(times[0] * NODES[0] / nodes for nodes in NODES)
        ideal.append(Line(f"{words}, ideal", evenly, LOOKS[number], number + 3, True))
    return (*ideal, *lines)


def _panel(title: str, of: Curve, name: str) -> ChartPanel:
    return ChartPanel(title, "nodes", "nodes of 8 V100", "epoch ÷ samples", tuple(map(float, NODES)), _lines(of, SAMPLES[name]), word=seconds_word)  # fmt: skip


def _cosmoflow_figure(curves: dict[int, Curve]) -> PaperFigure:
    panels = [_panel(f"local batch {batch}", of, "cosmoflow") for batch, of in curves.items()]
    caption = f"CosmoFlow, {SAMPLES['cosmoflow']:,} samples: time of a later epoch over its samples against nodes, staged to NVMe or from Lustre. Compute is the roofline of a V100, all parts overlap; ideal: that of one node over the nodes."  # fmt: skip
    return PaperFigure("A-F8", "f8-scaling", draw_chart("architecture-f8", "CosmoFlow: strong scaling", caption, panels), "fitted", caption)  # fmt: skip


def _deepcam_figure(curves: tuple[Curve, Curve, Curve]) -> PaperFigure:
    titles = ("compute at the roofline", "compute as Table II implies", f"compute {SLOWEST:g} times the roofline")
    panels = [_panel(title, of, "deepcam") for title, of in zip(titles, curves, strict=True)]
    caption = f"DeepCAM, {SAMPLES['deepcam']:,} samples (not printed; A-C-16), local batch {DEEPCAM_BATCH}: time of a later epoch over its samples against nodes, staged to NVMe or from Lustre, for the shortest step that may be, one as long as Table II implies (A-X-3), and the longest."  # fmt: skip
    return PaperFigure("A-F9", "f9-scaling", draw_chart("architecture-f9", "DeepCAM: strong scaling", caption, panels), "predicted", caption)  # fmt: skip


def _drawn() -> list[Verdict]:
    why = "points are not published; epochs after the first, all parts overlap"
    return [
        beside("A-F8", f"{len(BATCHES)} local batches, {len(NODES)} numbers of nodes", "fitted", f"{why}; Lustre's rate for a node is from A-F8-1"),
        beside("A-F9", f"local batch {DEEPCAM_BATCH}, {len(NODES)} numbers of nodes", "predicted", f"{why}; {SAMPLES['deepcam']:,} samples (A-C-16)"),
    ]  # fmt: skip


# Statements


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2f}×" if high - low < 0.005 else f"{low:.2f}× to {high:.2f}×"


def _cosmoflow(fast: dict[int, Curve], slow: dict[int, Curve]) -> list[Verdict]:
    curves = [*fast.values(), *slow.values()]
    one_node = [of.more(0) for of in curves]
    four = [of.more(NODES.index(4)) for of in curves]
    table_step = curve("cosmoflow", 1, step=given(PRINTED["cosmoflow"].step_seconds)).more(0)
    gains = [of.direct[0].later_seconds / of.direct[NODES.index(4)].later_seconds for of in curves]
    spread = {nodes: [_spread(ends, place) for ends in (fast, slow)] for place, nodes in enumerate(NODES)}
    fitted = f"{_ENDS}; with steps as long as Table II implies (A-X-3) {table_step:.2f}×. Lustre gives a node 1.6 GB/s because of this very gain, as if compute took nothing: real steps hide part of the reads, so it gave less"
    return [
        judge("A-F5-3", f"{_span(one_node)} as fast from NVMe", all(ratio_agrees(value, 2.16) for value in (*one_node, table_step)), "fitted", fitted),
        judge("A-F8-1", f"Lustre takes {_span(one_node)} the time of NVMe", all(ratio_agrees(value, 2.0) for value in (*one_node, table_step)), "fitted", fitted),
        judge("A-F8-2", f"{max(100 * (value - 1) for value in four):.0f} % difference on four nodes", all(points_agree(100 * (value - 1), 15.0) for value in four), "modelled", "the share fits memory, so later epochs read nothing from either: the cause holds, the 15 % that were left are not in the model (perhaps the first epoch, or evictions)"),
        judge("A-F8-3", f"4 nodes are {min(gains):.1f} to {max(gains):.1f} times as fast as one on Lustre", min(gains) > 4, "fitted", f"{_ENDS}; {_LATER}; Lustre gives a node 1.6 GB/s because of A-F8-1"),
        absent("A-F8-4", f"needs a V100's step: local batches 1 to 16 take the same time on 1 and 2 nodes; on 4 and 8 all-reduce adds to small batches if steps are short, not if they are long; {_ENDS}", "; ".join(f"{counted(nodes, 'node')}: {_span(values)}" for nodes, values in spread.items()), "fitted"),
    ]  # fmt: skip


def _spread(curves: dict[int, Curve], place: int) -> float:
    """The slowest local batch over the fastest."""
    times = [of.direct[place].later_seconds for of in curves.values()]
    return max(times) / min(times)


def _deepcam(fast: Curve, slow: Curve) -> list[Verdict]:
    one_node, four = ([of.more(place) for of in (fast, slow)] for place in (0, NODES.index(4)))
    table_step = table_curve().more(0)
    assumed = f"{SAMPLES['deepcam']:,} samples (A-C-16)"
    return [
        judge("A-F9-1", f"Lustre takes {_span(one_node)} the time of NVMe; with steps as long as Table II implies {table_step:.2f}×", gain_agrees(table_step, 1.15), "predicted", f"{_ENDS}; {assumed}. Lustre's rate for a node comes from CosmoFlow's gain and may be higher for DeepCAM's larger files"),
        judge("A-F9-2", f"{max(100 * (value - 1) for value in four):.0f} % difference", max(four) - 1 < _ABOUT, "predicted", f"{assumed}: a node's share fits memory"),
        judge("A-F7-6", f"out of memory (one node) Lustre takes {_span([*one_node, table_step])} the time, in memory (four nodes) {_span(four)}", table_step > max(four) and min(one_node) >= max(four), "predicted", f"{_ENDS}, and as long as Table II implies; {assumed}"),
    ]  # fmt: skip


def _imagenet() -> Verdict:
    name, wish = "resnet50", Wish(AMP, batches=(64,), nodes=(1,))
    staged, direct = (requirements(network_of(name), machine, data_of(name), wish).scaling[0] for machine in (cori(), replace(cori(), near=None)))  # fmt: skip
    ours = f"{staged.share_bytes / 1e9:.0f} GB fit {MEMORY_SHARE:.0%} of a node's memory; {_LATER} take as long with NVMe as without"
    measured, made = measured_h200(), ""
    if not isinstance(measured, MissingMeasurement):
        study, made = measured.training(name), measured.training_file.origin.day
        ours += f". One H200: {study.of('tiers').text} samples/s from disk, {study.of('memory').text} from memory"
    holds = bool(staged.fits_memory) and math.isclose(staged.later_seconds, direct.later_seconds)
    return judge("A-F9-4", ours, holds, "modelled", "one node of Cori GPU", made)


def _sizes() -> list[Verdict]:
    """How much lies where: arithmetic on files and capacities."""
    machine = cori()
    assert machine.node_memory
    assert machine.near
    memory, near = float(machine.node_memory), seconds(machine.near.capacity)
    usable = MEMORY_SHARE * memory / 1e9
    file_gb = data_of("cosmoflow").file_bytes / 1e9
    shares = [SAMPLES["cosmoflow"] * file_gb / nodes for nodes in (1, 2, 4)]
    cached = ON_A_NODE * file_gb
    sets = {name: data_of(name).samples * data_of(name).file_bytes for name in NAMES}
    nodes = {name: math.ceil(size / memory) for name, size in sets.items()}
    drives = {name: sets[name] / near for name in NAMES[:2]}
    held = [near / data_of(name).file_bytes for name in NAMES[:2]]
    fits = [Rounded(share, share).meets(text) for share, text in zip([*shares, cached], ("836", "418", "209", "279"), strict=True)]  # fmt: skip
    order = shares[0] * 1e9 < near and shares[0] * 1e9 > memory and shares[2] * 1e9 < memory
    dozen = all(6 <= nodes[name] <= 24 for name in NAMES[:2])
    return [
        judge("A-F5-4", f"{cached:.0f} GB; files may fill {usable:.0f} GB of a node's {memory / 1e9:.0f}", cached > usable, "modelled", f"Tierscope lets files fill {MEMORY_SHARE:.0%} of memory; with the study's statements it is 54 to 73 % (A-X-5, A-C-21)"),
        judge("A-F9-3", f"{held[0]:,.0f} files of {TITLES['cosmoflow']} fit, {held[1]:,.0f} of {TITLES['deepcam']}: {held[0] / held[1]:.1f} times", ratio_agrees(held[0] / held[1], 5.0), "arithmetic", "930 GB over the bytes of a file; how many DeepCAM samples lay there is not printed (A-C-16)"),
        judge("A-X-5", f"{', '.join(f'{share:.0f}' for share in shares)} GB on 1, 2, 4 nodes; {cached:.0f} GB of {ON_A_NODE:,} samples", all(fits) and order, "arithmetic", "our arithmetic on its figures"),
        judge("A-D-2", f"nodes whose memory holds the data: {by_network({name: str(count) for name, count in nodes.items()})}; with NVMe {by_network({name: str(math.ceil(size / near)) for name, size in sets.items()})}", nodes["resnet50"] == 1 and min(nodes[name] for name in NAMES[:2]) > 1 and dozen, "arithmetic", "384 GB and 930 GB a node; roughly a dozen: 6 to 24 (A-C-17)"),
        judge("A-D-5", f"{by_network({name: f'{count:.1f}' for name, count in drives.items()})} times the NVMe of a node", all(ratio_agrees(count, 10.0) for count in drives.values()), "arithmetic", "files × bytes of a file over 930 GB; the printed sizes of the data sets would give 5.5 and 9.5 (A-C-17)"),
    ]  # fmt: skip
