"""Workers and parameter servers of the Training study (T-F8, T-F9, T-F13, throughput): modelled as a closed queue at the servers' network; checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierscope.arch.movement import ring_seconds
from tierscope.arch.precision import PARAMETER_BYTES
from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.training_basics import GAINS, improvement
from tierscope.papers.training_model import (  # fmt: skip
    ABOUT,
    BATCH,
    ENDS,
    TITLES,
    P100Steps,
    gradient_bytes,
    named,
    network_of,
    p100_steps,
    span,
    summitdev,
)
from tierscope.papers.training_node import ModelledNode
from tierscope.papers.verdict import Verdict, points_agree

ROWS = (
    *("T-F8", "T-F9", "T-F13", "T-F13-1", "T-D-3", "T-D-4"),
    *(f"T-F8-{number}" for number in range(1, 7)),
    *(f"T-F9-{number}" for number in range(1, 4)),
)
WORKERS, SERVERS = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16)
_LOWER = {"lenet5": None, "resnet50": 94.0, "resnet101": 93.0}
_SAME, _SLIGHT = 1.02, 1.10  # no gain, a slight one
_WHERE = f"modelled: workers of 4 GPUs, batch {BATCH}, gradients to the servers and weights back at the network's nominal rate, mean-value analysis of the queue there; {ABOUT}; no checkpoints, no cost of gRPC"


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(p100_steps())


def section(steps: Mapping[str, P100Steps] | MissingMeasurement) -> Section:
    if isinstance(steps, MissingMeasurement):
        return Section(tuple(absent(row, steps.reason) for row in ROWS))
    job = Served(ModelledNode(steps))
    return Section(
        (*_workers(job), *_checkpoints(), *_servers(job), *_batches(job)), (_figure(job), _server_figure(job))
    )


@dataclass(frozen=True, slots=True)
class Served:
    node: ModelledNode

    def rate(self, name: str, end: str, workers: int, servers: int = 1, network: float | None = None, batch: int = BATCH) -> float:  # fmt: skip
        """Images per second. Mean-value analysis: a worker that comes finds the others' queue; servers hold equal parts and serve them at once."""
        link = network or summitdev().network_bandwidth
        assert link
        served = gradient_bytes(name) / link / servers  # both ways at once: the network is full duplex
        alone = self.node.seconds(name, end, batch=batch)
        queued, steps = 0.0, 0.0
        for count in range(1, workers + 1):
            waits = served * (1 + queued)
            steps = count / (alone + waits)
            queued = steps * waits
        return steps * batch

    def gain(self, name: str, end: str, workers: int, servers: int = 1, network: float | None = None) -> float:
        return self.rate(name, end, workers, servers, network) / self.rate(name, end, 1, 1, network)

    def more_servers(self, name: str, end: str, servers: int, network: float | None = None, before: int = 1) -> float:
        return self.rate(name, end, 16, servers, network) / self.rate(name, end, 16, before, network)

    def ring(self, name: str, end: str, workers: int) -> float:
        """Times one worker, in step, gradients by a ring over the nodes."""
        exchanged = ring_seconds(gradient_bytes(name), summitdev(), workers) if workers > 1 else 0.0
        assert exchanged is not None
        alone = self.node.seconds(name, end)
        inside = self.node.steps[name].seconds(BATCH / 4, end) if workers > 1 else alone
        return workers * alone / (inside + exchanged)


def _workers(job: Served) -> list[Verdict]:
    gains = {name: {end: improvement(job.gain(name, end, 32)) for end in ENDS} for name in GAINS}
    verdicts = [beside("T-F8", "(a) drawn; (b): T-F8-7", "modelled", f"only its ends are published; {_WHERE}")]
    for number, name in enumerate(GAINS, start=1):
        two = {end: improvement(job.gain(name, end, 2)) for end in ENDS}
        lower = _LOWER[name]
        agree = all(points_agree(value, GAINS[name]) for value in gains[name].values())
        agree &= lower is None or all(points_agree(value, lower) for value in two.values())
        first = f"+{span(two, '.0f', ' %')} with 2 workers, " if lower else ""
        off = [value / GAINS[name] for value in gains[name].values()]
        verdicts.append(judge(f"T-F8-{number}", f"{first}+{span(gains[name], ',.0f', ' %')} with 32", agree, "modelled", f"{_WHERE}. {min(off):.1f} to {max(off):.1f} times the published gain: what limited the study's workers is not in the model"))  # fmt: skip
    leads = all(gains["lenet5"][end] > max(gains[name][end] for name in ("resnet50", "resnet101")) for end in ENDS)
    verdicts.append(judge("T-F8-4", named({name: f"+{span(of, ',.0f', ' %')}" for name, of in gains.items()}), leads, "modelled", f"{_WHERE}; here because its gradients are small, not because of checkpoints"))  # fmt: skip
    return verdicts


def _checkpoints() -> list[Verdict]:
    """Weights and momentum, written by one node to Lustre."""
    rate = summitdev().far.per_node(1)
    assert rate
    sizes = {name: 2 * PARAMETER_BYTES * network_of(name).parameters for name in ("lenet5", "resnet101")}
    spent = {name: nbytes / rate for name, nbytes in sizes.items()}
    many = {nodes: sizes["resnet101"] / min(rate, summitdev().far.per_node(nodes) or rate) for nodes in (1, 32)}
    return [
        beside("T-F8-5", f"bytes over Lustre's rate: LeNet {1e3 * spent['lenet5']:.2f} ms, ResNet-101 {spent['resnet101']:.2f} s", "modelled", f"weights and momentum, {sizes['lenet5'] / 1e6:.2g} and {sizes['resnet101'] / 1e6:,.0f} MB by one node: hundreds of times less than published, so the bytes are not what took that long"),
        absent("T-F8-6", "the model has one node write the same bytes, however many train, so that the row would hold by assumption; how the study's nodes wrote is not published", f"ResNet-101: {many[1]:.3f} s with 1 node, {many[32]:.3f} s with 32", "modelled"),
    ]  # fmt: skip


def _servers(job: Served) -> list[Verdict]:
    first = {name: {end: improvement(job.more_servers(name, end, 4)) for end in ENDS} for name in GAINS}
    beyond = {name: {end: improvement(job.more_servers(name, end, 16, before=4)) for end in ENDS} for name in GAINS}
    no_use = all(value < 1 for value in first["lenet5"].values())
    slight = all(0 < first[name][end] < 100 * (_SLIGHT - 1) and beyond[name][end] < 100 * (_SAME - 1) for name in ("resnet50", "resnet101") for end in ENDS)  # fmt: skip
    networks = {"100": 12.5e9, "66.4": 8.3e9, "10": 1.25e9}
    slow = {speed: {end: improvement(job.more_servers("resnet50", end, 16, rate)) for end in ENDS} for speed, rate in networks.items()}  # fmt: skip
    speeds = [f"{speed} Gb/s +{span(of, '.0f', ' %')}" for speed, of in slow.items()]
    rising = all(slow["100"][end] < slow["66.4"][end] < slow["10"][end] for end in ENDS)
    added = {end: improvement(job.rate("resnet50", end, 32) / job.rate("resnet50", end, 16)) for end in ENDS}
    better = all(added[end] > improvement(job.more_servers("resnet50", end, 16)) for end in ENDS)
    text = named({name: f"1 → 4 +{span(first[name], '.1f', ' %')}, 4 → 16 +{span(beyond[name], '.1f', ' %')}" for name in GAINS})  # fmt: skip
    both = f"ResNet-50, from 16 workers and 1 server: 16 more workers +{span(added, '.0f', ' %')}, 15 more servers +{span(slow['100'], '.0f', ' %')}"
    filled = "with fast steps 16 workers fill the network of one server, so that servers bring more than workers there"
    return [
        beside("T-F9", "(a) drawn; (b): T-F9-4", "modelled", f"values are not published; {_WHERE}"),
        judge("T-F9-1", text, no_use and slight, "modelled", f"with fast steps 16 workers fill the network of one server, so that more servers gain more than slightly; {_WHERE}; none: less than 2 % (LeNet: 1 %), slight: less than 10 %"),
        judge("T-F9-2", both, better, "modelled", f"{filled}; {_WHERE}"),
        judge("T-F9-3", f"ResNet-50, 1 → 16 servers: {', '.join(speeds)}", rising, "modelled", _WHERE),
        judge("T-D-3", both, better, "modelled", f"{filled}; {_WHERE}"),
    ]  # fmt: skip


def _batches(job: Served) -> list[Verdict]:
    more = {name: {end: improvement(job.rate(name, end, 16, batch=512) / job.rate(name, end, 16)) for end in ENDS} for name in GAINS}  # fmt: skip
    flat = all(value <= 5 for of in more.values() for value in of.values())
    text = named({name: f"+{span(of, '.0f', ' %')}" for name, of in more.items()})
    why = (
        f"{_WHERE}; batch 128 → 512 of a worker; does not raise: at most 5 %. A step's fixed costs are paid less often"
    )
    return [
        beside("T-F13", "throughput: T-F13-1; accuracy: T-F13-2", "modelled", "nothing of it is published"),
        judge("T-F13-1", text, flat, "modelled", why),
        judge("T-D-4", f"16 workers: {text}", flat, "modelled", why),
    ]  # fmt: skip


def _lines(values: Mapping[str, Sequence[float]], hollow: bool = False, word: str = "") -> list[Line]:
    return [Line(f"{TITLES[name]}{word}", tuple(of), LOOKS[number], number, hollow) for number, (name, of) in enumerate(values.items())]  # fmt: skip


def _figure(job: Served) -> PaperFigure:
    caption = "Throughput against workers with one parameter server, relative to one worker. Left: steps at a P100's roofline, right: at the efficiency of an H200; hollow: a ring instead of the server (ResNet-101). Published at 32 workers: LeNet 13.11, ResNet-50 11.94, ResNet-101 11.12."
    panels = []
    for end in ENDS:
        lines = _lines({name: [job.gain(name, end, workers) for workers in WORKERS] for name in GAINS})
        lines.append(Line("ResNet-101, ring", tuple(job.ring("resnet101", end, workers) for workers in WORKERS), LOOKS[3], 3, True))  # fmt: skip
        published = [Line(f"{TITLES[name]}, published", (*(None,) * (len(WORKERS) - 1), gain / 100 + 1), LOOKS[number], number, True) for number, (name, gain) in enumerate(GAINS.items())]  # fmt: skip
        panels.append(ChartPanel(f"{end} steps", "workers", "workers", "times one worker", tuple(map(float, WORKERS)), (*lines, *published)))  # fmt: skip
    return PaperFigure("T-F8", "f8-workers", draw_chart("training-f8", "Throughput against workers", caption, panels), "modelled", caption)  # fmt: skip


def _server_figure(job: Served) -> PaperFigure:
    caption = "Throughput of 16 workers against parameter servers, relative to one server. Left: steps at a P100's roofline, right: at the efficiency of an H200."
    panels = [
        ChartPanel(f"{end} steps", "servers", "parameter servers", "times one server", tuple(map(float, SERVERS)), tuple(_lines({name: [job.more_servers(name, end, servers) for servers in SERVERS] for name in GAINS})))
        for end in ENDS
    ]  # fmt: skip
    return PaperFigure("T-F9", "f9-servers", draw_chart("training-f9", "Throughput against servers", caption, panels), "modelled", caption)  # fmt: skip
