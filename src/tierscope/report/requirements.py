"""What a network demands of a machine, for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.wording import Finding
from tierscope.arch.networks import shown
from tierscope.arch.requirements import MOST_BATCH, UNCLEAR, Requirements, Wish
from tierscope.arch.scaling import MEMORY, Scaled
from tierscope.arch.step_seconds import MEASURED, PREDICTED, ROOFLINE
from tierscope.arch.to_json import PLACEMENT, SHUFFLE
from tierscope.report.findings import finding_lines
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.report.storage_verdict import fit_sentence, span, storage_sentence
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
        doubt = fit_sentence(requirements)
        yield Text(doubt or storage_sentence(requirements), style="bold")
        if doubt is None:
            yield Text(f"{rate_sentence(requirements)} {step_sentence(requirements)}\n")
        yield from map(Text, network_sentences(requirements))
        yield Text()
        if self.layers:
            yield table(fitting(layer_columns(requirements), options.max_width))
        yield Text(memory_title(requirements), style="bold")
        yield table(fitting(memory_columns(requirements), options.max_width))
        yield Text(f"{largest_sentence(requirements)}\n")
        if doubt is None:
            yield from map(Text, movement_sentences(requirements))
            yield Text()
            yield Text(scaling_title(requirements), style="bold")
            yield table(fitting(scaling_columns(requirements), options.max_width))
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
    bound = f"Bound by {_NAMES[requirements.bound_by]}: {requirements.flops / requirements.hbm_modelled_bytes:,.0f} FLOP per byte; the machine balance is {balance:,.0f}."
    if requirements.step.source == ROOFLINE:
        bound += (
            f" At peak operations per second, a node would need {_size(requirements.node_sample_bandwidth_at_peak)}/s "
            f"of samples ({_size(requirements.node_file_bandwidth_at_peak)}/s of files)."
        )
    yield bound


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


def rate_sentence(requirements: Requirements) -> str:
    """What a node asks of storage while it waits for nothing."""
    step, samples = requirements.step, requirements.wish.batches[0] * requirements.machine.accelerators
    nbytes = requirements.data.file_bytes / requirements.wish.compression.ratio
    low, high = samples / step.high, samples / step.low
    trains = span(low, high, lambda rate: f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}")
    reads = span(low * nbytes, high * nbytes, lambda rate: f"{_size(rate)}/s")
    return f"Where it waits for nothing, a node trains {trains} samples/s and reads {reads} of files."


def step_sentence(requirements: Requirements) -> str:
    """How long a step is taken to be, and which shuffle and placement are assumed."""
    step = requirements.step
    length = about_seconds(step.seconds)
    interval = span(step.low, step.high, about_seconds)
    if step.source == ROOFLINE:
        length = interval
    elif interval != length:
        length += f" ({interval})"
    outside = f"; outside its measured sizes: {', '.join(step.outside)}" if step.outside else ""
    outside += f"; not measured there: layers of kind {', '.join(step.stand_ins)}" if step.stand_ins else ""
    between = "nodes" if step.links_measured else "devices"
    apart = f" Exchange between {between} is modelled, not measured." if step.source in (PREDICTED, MEASURED) else ""
    stations = any(point.first_storage_seconds is not None for point in requirements.scaling)
    reads = f"; reads take as long as {'the stations of the tiers need' if stations else 'plain bandwidths say, without opens and latencies'}"
    if requirements.machine.assumed_tiers:
        reads += f"; bandwidths of {' and '.join(requirements.machine.assumed_tiers)} are themselves assumed, as the system's file says"
        reads += ", and anywhere within their intervals the answer is the same" if _holds(requirements) else ""
    return f"A step of batch {requirements.wish.batches[0]:,} takes {length}: {step.about}{outside}.{apart} Assumed: {SHUFFLE}; {PLACEMENT}{reads}."


def _holds(requirements: Requirements) -> bool:
    """Whether storage's uncertain figures were varied, and every verdict is clear wherever they lie."""
    return requirements.storage is not None and UNCLEAR not in requirements.verdicts
