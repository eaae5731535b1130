"""What a network demands of a machine, for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.wording import Finding
from tierscope.arch.networks import shown
from tierscope.arch.requirements import MOST_BATCH, Requirements, Wish
from tierscope.arch.scaling import MEMORY, Scaled
from tierscope.report.parts import Column, Unit, finding_lines, fitting, table
from tierscope.units import about_bytes, about_flops, about_seconds, counted

_NAMES = {"memory": "its memory", "tensor": "its 16-bit matrix units", "fp32": "its 32-bit units"}
_WAYS = {"memory": "device memory", "host": "host", "network": "network"}


@dataclass(frozen=True, slots=True)
class RequirementsView:
    """One page. `layers`: every layer too."""

    found: Requirements
    findings: Sequence[Finding]
    layers: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found, wish = self.found, self.found.wish
        yield Text(
            f"{found.network.name} on {found.machine.name}: what it demands ({how(wish)}; modelled)", style="bold"
        )
        yield from map(Text, network_sentences(found))
        yield Text()
        if self.layers:
            yield table(fitting(layer_columns(found), options.max_width))
        yield Text(memory_title(found), style="bold")
        yield table(fitting(memory_columns(found), options.max_width))
        yield Text(f"{largest_sentence(found)}\n")
        yield from map(Text, movement_sentences(found))
        yield Text()
        yield Text(scaling_title(found), style="bold")
        yield table(fitting(scaling_columns(found), options.max_width))
        yield Text(storage_sentence(found), style="bold")
        yield from finding_lines(self.findings)


def how(wish: Wish) -> str:
    """What was asked, in brackets behind a title."""
    return f"{wish.precision.name}, {wish.optimizer}{', checkpointed' if wish.checkpointed else ''}"


def memory_title(found: Requirements) -> str:
    return f"Memory of an accelerator ({_size(found.machine.memory)})"


def scaling_title(found: Requirements) -> str:
    wish = found.wish
    return f"Scaling, batch {wish.batches[0]} on each accelerator, {'weak' if wish.weak else 'strong'}: seconds of an epoch"


def _times(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.4g}"


def _size(nbytes: float) -> str:
    return about_bytes(nbytes)


def network_sentences(found: Requirements) -> Iterator[str]:
    network, device = found.network, found.machine.device
    yield (
        f"{network.parameters:,} parameters; a sample is {shown(network.input_shape)}, {_size(found.sample_bytes)} in memory and "
        f"{_size(found.data.file_bytes)} on storage; {counted(found.data.samples, 'sample', grouped=True)}."
    )
    yield (
        f"For each sample: {about_flops(network.forward_flops)} forward, {about_flops(network.backward_flops)} backward "
        f"({found.flops / found.sample_bytes:,.0f} for each of its bytes); {_size(found.kept_bytes)} of activations kept ({found.wish.kept}); "
        f"{_size(found.hbm_modelled_bytes)} through device memory, {_size(found.hbm_limit_bytes)} at the least."
    )
    balance = device.peak(found.wish.precision) / device.memory_bandwidth
    rate = found.wish.batches[0] / found.step_seconds * found.machine.accelerators
    yield (
        f"Bound by {_NAMES[found.bound_by]}: {found.flops / found.hbm_modelled_bytes:,.0f} FLOP for each byte, the machine balances at {balance:,.0f}. "
        f"A node could train {rate:,.4g} samples/s (roofline). If only operations counted, all at peak, it would need {_size(found.node_sample_bandwidth_at_peak)}/s "
        f"of samples ({_size(found.node_file_bandwidth_at_peak)}/s of files)."
    )


def memory_columns(found: Requirements) -> list[Column]:
    def cells(name: str) -> list[Text]:
        return [Text(_size(getattr(needs.memory, name))) for needs in found.batches]

    room = found.machine.memory
    columns = [Column("batch", [Text(str(needs.batch)) for needs in found.batches])]
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
        Column("of it", [Text(f"{100 * needs.memory.peak / room:.0f} %") for needs in found.batches], drop=1)
    )
    columns.append(Column("fits", [Text("yes" if needs.fits else "no") for needs in found.batches]))
    if found.machine.l2 is not None:
        fits = [Text("yes" if needs.fits_l2 else "no") for needs in found.batches]
        columns.append(Column(f"L2 ({_size(found.machine.l2)})", fits, drop=1))
    return columns


def largest_sentence(found: Requirements) -> str:
    if not found.max_batch:
        return "Not even batch 1 fits."
    more = " or more" if found.max_batch >= MOST_BATCH else ""
    return f"The largest batch that fits: {found.max_batch:,}{more}."


def movement_sentences(found: Requirements) -> Iterator[str]:
    moved, machine = found.movement, found.machine
    near = "near tier" if machine.near is None else machine.near.name
    ways = {
        "through device memory": moved.memory,
        "samples from the host": moved.samples_dram,
        f"samples from {near}": moved.samples_nvme,
        f"samples from {machine.far.name}": moved.samples_pfs,
        "all-reduce": moved.allreduce,
    }
    times = ", ".join(f"{way} {about_seconds(value)}" for way, value in ways.items() if value is not None)
    nodes = found.wish.nodes[-1]
    yield (
        f"Moving bytes, for each sample of batch {found.wish.batches[0]} and with all accelerators of {counted(nodes, 'node')}: {times}."
    )
    costs = ", ".join(f"{_WAYS.get(way, way)} {_times(cost)}" for way, cost in found.byte_costs.items())
    yield f"Relative cost of a byte: {costs}."
    kinds = ", ".join(f"{kind} {about_seconds(value)}" for kind, value in found.allreduce_seconds.items() if value)
    if kinds:
        yield f"Gradients of a step: {kinds} (ring over all nodes; gather on one accelerator of a node)."


def scaling_columns(found: Requirements) -> list[Column]:
    points = found.scaling
    time = Unit("s", 1.0, 3 if max(point.first_seconds for point in points) < 100 else 1)

    def column(header: str, name: str, drop: int = 0) -> Column:
        return Column(header, [time.text(getattr(point, name)) for point in points], drop=drop)

    return [
        Column("nodes", [Text(f"{point.nodes:,}") for point in points]),
        Column("share", [Text(_size(point.share_bytes)) for point in points]),
        Column("fits", [Text(_fits(found, point)) for point in points]),
        Column("input rate", [Text(f"{_size(point.input_rate)}/s") for point in points], drop=6),
        column("compute", "compute_seconds"),
        column("ring", "exchange_seconds"),
        column("servers", "server_seconds", drop=4),
        column("staging", "staging_seconds", drop=3),
        column("first epoch", "first_seconds", drop=5),
        column("reads (stations)", "storage_seconds", drop=2),
        column("later epochs", "later_seconds"),
        Column("from", [Text(point.later_from) for point in points], right=False, drop=1),
        Column("waits for", [Text(point.waits_for) for point in points], right=False),
    ]


def _fits(found: Requirements, point: Scaled) -> str:
    if point.fits_memory:
        return MEMORY
    return found.machine.near.name if point.fits_near and found.machine.near else "–"


def layer_columns(found: Requirements) -> list[Column]:
    device, precision = found.machine.device, found.wish.precision
    costs = found.costs
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


def storage_sentence(found: Requirements) -> str:
    """The one answer: does storage matter?"""
    points = found.scaling
    waiting = [point for point in points if point.storage_matters]
    modelled = "" if points[-1].storage_seconds is None else " (reads as the tiers' stations need them)"
    if not waiting:
        waits = " and ".join(dict.fromkeys(point.waits_for for point in points))
        return (
            f"Does storage matter? Not after the first epoch, on up to {counted(points[-1].nodes, 'node')}: "
            f"epochs wait for {waits}{modelled}."
        )
    until = f"up to {waiting[-1].nodes:,}" if waiting[-1] is not points[-1] else "on"
    since = f"from {counted(waiting[0].nodes, 'node', grouped=True)} {until}"
    return f"Does storage matter? Yes, {since}: epochs wait for {' and '.join(dict.fromkeys(point.waits_for for point in waiting))}{modelled}."
