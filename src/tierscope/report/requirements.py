"""What a network demands of a machine, for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.wording import Finding
from tierscope.arch.networks import shown
from tierscope.arch.requirements import MOST_BATCH, UNCLEAR, YES, Requirements, Wish
from tierscope.arch.scaling import MEMORY, Scaled
from tierscope.arch.step_seconds import MEASURED, PREDICTED
from tierscope.arch.to_json import PLACEMENT, SHUFFLE
from tierscope.report.findings import finding_lines
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.units import about_bytes, about_flops, about_seconds, counted

_NAMES = {"memory": "its memory", "tensor": "its 16-bit matrix units", "fp32": "its 32-bit units"}
_WAYS = {"memory": "device memory", "host": "host", "network": "network"}


@dataclass(frozen=True, slots=True)
class RequirementsView:
    """One page. `layers`: every layer too."""

    requirements: Requirements
    findings: Sequence[Finding]
    layers: bool = False
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        requirements, wish = self.requirements, self.requirements.wish
        yield Text(
            f"{requirements.network.name} on {requirements.machine.name}: requirements ({how(wish)}; modelled)",
            style="bold",
        )
        yield from map(Text, network_sentences(requirements))
        yield Text()
        if self.layers:
            yield table(fitting(layer_columns(requirements), options.max_width))
        yield Text(memory_title(requirements), style="bold")
        yield table(fitting(memory_columns(requirements), options.max_width))
        yield Text(f"{largest_sentence(requirements)}\n")
        yield from map(Text, movement_sentences(requirements))
        yield Text()
        yield Text(scaling_title(requirements), style="bold")
        yield table(fitting(scaling_columns(requirements), options.max_width))
        yield Text(step_sentence(requirements))
        yield Text(storage_sentence(requirements), style="bold")
        yield from finding_lines(self.findings, self.show_all)


def how(wish: Wish) -> str:
    """What was asked, in brackets behind a title."""
    return f"{wish.precision.name}, {wish.optimizer}{', checkpointed' if wish.checkpointed else ''}"


def memory_title(requirements: Requirements) -> str:
    return f"Memory of an accelerator ({_size(requirements.machine.memory)})"


def scaling_title(requirements: Requirements) -> str:
    wish = requirements.wish
    return f"Scaling, batch {wish.batches[0]} per accelerator, {'weak' if wish.weak else 'strong'}: seconds per epoch"


def _times(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.4g}"


def _size(nbytes: float) -> str:
    return about_bytes(nbytes)


def network_sentences(requirements: Requirements) -> Iterator[str]:
    network, device = requirements.network, requirements.machine.device
    yield (
        f"{network.parameters:,} parameters; a sample is {shown(network.input_shape)}, {_size(requirements.sample_bytes)} in memory and "
        f"{_size(requirements.data.file_bytes)} on storage; {counted(requirements.data.samples, 'sample', grouped=True)}."
    )
    yield (
        f"Per sample: {about_flops(network.forward_flops)} forward, {about_flops(network.backward_flops)} backward "
        f"({requirements.flops / requirements.sample_bytes:,.0f} per byte); {_size(requirements.kept_bytes)} of activations kept ({requirements.wish.kept}); "
        f"{_size(requirements.hbm_modelled_bytes)} through device memory, {_size(requirements.hbm_limit_bytes)} at least."
    )
    balance = device.peak(requirements.wish.precision) / device.memory_bandwidth
    rate = requirements.wish.batches[0] / requirements.step_seconds * requirements.machine.accelerators
    yield (
        f"Bound by {_NAMES[requirements.bound_by]}: {requirements.flops / requirements.hbm_modelled_bytes:,.0f} FLOP per byte; the machine balance is {balance:,.0f}. "
        f"A node could train {rate:,.4g} samples/s (roofline). At peak operations per second, it would need {_size(requirements.node_sample_bandwidth_at_peak)}/s "
        f"of samples ({_size(requirements.node_file_bandwidth_at_peak)}/s of files)."
    )


def memory_columns(requirements: Requirements) -> list[Column]:
    def cells(name: str) -> list[Text]:
        return [Text(_size(getattr(needs.memory, name))) for needs in requirements.batches]

    room = requirements.machine.memory
    columns = [Column("batch", [Text(str(needs.batch)) for needs in requirements.batches])]
    columns += [
        Column(name, cells(name), drop=turn)
        for name, turn in (
            ("parameters", 2),
            ("gradients", 3),
            ("optimizer", 4),
            ("input", 5),
            ("activations", 0),
            ("workspace", 1),
        )
    ]
    columns.append(Column("peak", cells("peak"), "bold"))
    columns.append(
        Column("of memory", [Text(f"{100 * needs.memory.peak / room:.0f} %") for needs in requirements.batches], drop=1)
    )
    columns.append(Column("fits", [Text("yes" if needs.fits else "no") for needs in requirements.batches]))
    if requirements.machine.l2 is not None:
        fits = [Text("yes" if needs.fits_l2 else "no") for needs in requirements.batches]
        columns.append(Column(f"L2 ({_size(requirements.machine.l2)})", fits, drop=1))
    return columns


def largest_sentence(requirements: Requirements) -> str:
    if not requirements.max_batch:
        return "Not even batch 1 fits."
    more = " or more" if requirements.max_batch >= MOST_BATCH else ""
    return f"Largest batch that fits: {requirements.max_batch:,}{more}."


def movement_sentences(requirements: Requirements) -> Iterator[str]:
    moved, machine = requirements.movement, requirements.machine
    near = "near tier" if machine.near is None else machine.near.name
    ways = {
        "through device memory": moved.memory,
        "samples from the host": moved.samples_dram,
        f"samples from {near}": moved.samples_nvme,
        f"samples from {machine.far.name}": moved.samples_pfs,
        "all-reduce": moved.allreduce,
    }
    times = ", ".join(f"{way} {about_seconds(value)}" for way, value in ways.items() if value is not None)
    nodes = requirements.wish.nodes[-1]
    yield (
        f"Data movement, per sample of batch {requirements.wish.batches[0]} and with all accelerators of {counted(nodes, 'node')}: {times}."
    )
    costs = ", ".join(f"{_WAYS.get(way, way)} {_times(cost)}" for way, cost in requirements.byte_costs.items())
    yield f"Relative cost of a byte: {costs}."
    kinds = ", ".join(
        f"{kind} {about_seconds(value)}" for kind, value in requirements.allreduce_seconds.items() if value
    )
    if kinds:
        yield f"Gradients of a step: {kinds} (ring over all nodes; gather on one accelerator of a node)."


def scaling_columns(requirements: Requirements) -> list[Column]:
    points = requirements.scaling
    time = Unit("s", 1.0, 3 if max(point.first_seconds for point in points) < 100 else 1)

    def column(header: str, name: str, drop: int = 0) -> Column:
        return Column(header, [time.text(getattr(point, name)) for point in points], drop=drop)

    return [
        Column("nodes", [Text(f"{point.nodes:,}") for point in points]),
        Column("share", [Text(_size(point.share_bytes)) for point in points]),
        Column("fits", [Text(_fits(requirements, point)) for point in points]),
        Column("input rate", [Text(f"{_size(point.input_rate)}/s") for point in points], drop=6),
        column("compute", "compute_seconds"),
        column("ring", "exchange_seconds"),
        column("parameter servers", "server_seconds", drop=4),
        column("staging", "staging_seconds", drop=3),
        column("first epoch", "first_seconds", drop=5),
        column("reads (stations)", "storage_seconds", drop=2),
        column("later epochs", "later_seconds"),
        Column("from", [Text(point.later_from) for point in points], right=False, drop=1),
        Column("waits for", [Text(point.waits_for) for point in points], right=False),
    ]


def _fits(requirements: Requirements, point: Scaled) -> str:
    if point.fits_memory:
        return MEMORY
    return requirements.machine.near.name if point.fits_near and requirements.machine.near else "–"


def layer_columns(requirements: Requirements) -> list[Column]:
    device, precision = requirements.machine.device, requirements.wish.precision
    costs = requirements.costs
    return [
        Column("layer", [Text(cost.name) for cost in costs], right=False),
        Column("kind", [Text(cost.kind) for cost in costs], right=False),
        Column("forward", [Text(about_flops(cost.forward_flops)) for cost in costs]),
        Column("backward", [Text(about_flops(cost.backward_flops)) for cost in costs], drop=1),
        Column("bytes", [Text(_size(cost.nbytes)) for cost in costs]),
        Column("at least", [Text(about_seconds(cost.seconds(device, precision))) for cost in costs]),
        Column(
            "limit",
            [Text("memory" if cost.memory_bound(device, precision) else "units") for cost in costs],
            right=False,
        ),
    ]


def storage_sentence(requirements: Requirements) -> str:
    """The one answer: does storage matter?"""
    points, verdicts = requirements.scaling, requirements.verdicts
    waiting = [point for point, verdict in zip(points, verdicts, strict=True) if verdict == YES]
    unclear = [point for point, verdict in zip(points, verdicts, strict=True) if verdict == UNCLEAR]
    modelled = "" if points[-1].storage_seconds is None else " (read times from the tiers' stations)"
    if not waiting and not unclear:
        waits = " and ".join(dict.fromkeys(point.waits_for for point in points))
        return (
            f"Does storage matter? Not after the first epoch, on up to {counted(points[-1].nodes, 'node')}: "
            f"epochs wait for {waits}{modelled}."
        )
    doubt = ""
    if unclear:
        step = requirements.step
        doubt = (
            f"nclear {_since(unclear, points)}: a step takes between {about_seconds(step.low)} and {about_seconds(step.high)} ({step.about}), "
            "and with the longer one compute hides the reads"
        )
    if not waiting:
        return f"Does storage matter? U{doubt}{modelled}."
    waits = " and ".join(dict.fromkeys(point.waits_for for point in waiting))
    step = requirements.step
    slow, fast = (
        max(
            point.later_seconds / max(point.compute_seconds * seconds / step.seconds, point.exchange_seconds or 0.0)
            for point in waiting
        )
        for seconds in (step.high, step.low)
    )
    times = f"up to {fast:.3g}" if slow == fast else f"{slow:.3g} to {fast:.3g}"
    waits += f", {times} × as long as everything else takes"
    more = f"; u{doubt}" if doubt else ""
    return f"Does storage matter? Yes, {_since(waiting, points)}: epochs wait for {waits}{more}{modelled}."


def _since(some: Sequence[Scaled], points: Sequence[Scaled]) -> str:
    until = f"up to {some[-1].nodes:,}" if some[-1] is not points[-1] else "on"
    return f"from {counted(some[0].nodes, 'node', grouped=True)} {until}"


def step_sentence(requirements: Requirements) -> str:
    """How long a step is taken to be, and which shuffle and placement are assumed."""
    step = requirements.step
    length = about_seconds(step.seconds)
    if step.low != step.high:
        length += f" ({about_seconds(step.low)} to {about_seconds(step.high)})"
    outside = f"; outside its measured sizes: {', '.join(step.outside)}" if step.outside else ""
    between = "nodes" if step.links_measured else "devices"
    apart = f" Exchange between {between} is modelled, not measured." if step.source in (PREDICTED, MEASURED) else ""
    return f"A step of batch {requirements.wish.batches[0]} takes {length}: {step.about}{outside}.{apart} Assumed: {SHUFFLE}; {PLACEMENT}."
