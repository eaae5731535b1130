"""What a network demands of a machine, drawn: memory, roofline, cost of movement, scaling, and what the time of a sample is made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.arch.requirements import Requirements, movements
from tierscope.arch.ways import Spent, spent
from tierscope.report.drawn.curves import draw_memory, draw_scaling
from tierscope.report.drawn.logs import LogAxis, draw_log_y, seconds_word
from tierscope.report.drawn.looks import box
from tierscope.report.drawn.roofline import draw_roofline
from tierscope.report.drawn.view import Figure, SecondsAxis, brief
from tierscope.report.requirements import how
from tierscope.report.svg import HEIGHT, WIDTH, Canvas, Frame, Legend, LegendEntry, SweptAxis, draw_x_axis
from tierscope.units import about_seconds, counted

NAMES = ("memory", "roofline", "movement", "scaling", "decomposition")
_MOST_BATCHES = 6  # more hues cannot be told apart
_ANY = "mark io first"  # looks of what does not depend on the batch
_BAR = 64.0  # the most that a bar is wide
_PARTS = {"compute": (0, False), "all-reduce": (2, False), "read": (1, False), "copy": (1, True)}  # hue, hatched


def draw_requirements(requirements: Requirements) -> list[Figure]:
    """All five; those that cannot be drawn say why."""
    asked = how(requirements.wish)
    note = f"{brief(requirements.network.name, 40)} on {brief(requirements.machine.name, 30)} ({asked}) · modelled"
    drawn = (
        draw_memory(requirements, NAMES[0], asked),
        draw_roofline(requirements, NAMES[1]),
        _movement(requirements, NAMES[2]),
        draw_scaling(requirements, NAMES[3]),
        _decomposition(requirements, NAMES[4]),
    )
    return [replace(figure, note=note) for figure in drawn]


# Movement


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of one way: seconds of a sample by batch, or for any. `byte`: relative to device memory. None: not known."""

    name: str
    byte: float | None
    seconds: Mapping[int | None, float | None]


def _movement(requirements: Requirements, name: str) -> Figure:
    title = "Cost of moving the bytes of a sample"
    costs, batches = _costs(requirements), _drawn_batches(requirements)
    caption = " ".join(_movement_sentences(requirements, costs, batches))
    canvas = Canvas(name, title, caption)
    looks: dict[int | None, str] = {batch: f"bar tier{hue}" for hue, batch in enumerate(batches)}
    looks[None] = _ANY
    legend = Legend(
        [LegendEntry(box(css), "any batch" if batch is None else f"batch {batch:,}") for batch, css in looks.items()]
    )
    known = [value for cost in costs for value in cost.seconds.values() if value]
    upward = LogAxis.over(known, "time of a sample", seconds_word, room=3.0)
    frame = Frame(upward.room(), legend.height + 8, WIDTH - 24, HEIGHT - 78)
    up = draw_log_y(canvas, frame, upward)
    axis = SweptAxis.of("", [cost.name for cost in costs], frame.left, frame.right)
    for place, cost in zip(axis.places, costs, strict=True):
        width = min(0.84 * axis.pitch / len(cost.seconds), _BAR)
        for number, (batch, seconds) in enumerate(cost.seconds.items()):
            left = place + (number - len(cost.seconds) / 2) * width
            top = up(seconds) if seconds else frame.bottom
            bar = Frame(left, top, left + width, frame.bottom)
            _draw_cost(canvas, bar, seconds, looks[batch], cost.name, len(cost.seconds) == 1)
        if cost.byte is not None:
            canvas.text(place, frame.bottom + 40, f"× {_times(cost.byte)}", "tick middle")
    draw_x_axis(canvas, frame, axis, "path, and relative cost per byte (device memory: × 1)")
    legend.draw(canvas)
    return Figure(name, title, caption, canvas.to_text())


def _draw_cost(canvas: Canvas, bar: Frame, seconds: float | None, css: str, way: str, is_alone: bool) -> None:
    """With its value above, if there is room for it."""
    text = "unknown" if seconds is None else about_seconds(seconds) if seconds else "none"
    if seconds:
        canvas.rect(bar.left, bar.top, bar.right - bar.left, bar.bottom - bar.top, css, f"{way}: {text}")
    if is_alone:
        canvas.text((bar.left + bar.right) / 2, bar.top - 5, text, "tick middle")


def _costs(requirements: Requirements) -> list[_Cost]:
    machine, moved = requirements.machine, movements(requirements)
    batches = _drawn_batches(requirements)
    near = None if machine.near is None else machine.near.name
    network = requirements.byte_costs.get("network") if requirements.wish.nodes[-1] > 1 else None

    def by_batch(name: str) -> dict[int | None, float | None]:
        values: dict[int | None, float | None] = {batch: getattr(moved[batch], name) for batch in batches}
        return values if any(values.values()) else {None: values[batches[0]]}

    def alike(name: str) -> dict[int | None, float | None]:
        return {None: getattr(requirements.movement, name)}

    return [
        _Cost("memory", 1.0, by_batch("memory")),
        _Cost("host", requirements.byte_costs.get("host"), alike("samples_dram")),
        *([] if near is None else [_Cost(near, requirements.byte_costs.get(near), alike("samples_nvme"))]),
        _Cost(machine.far.name, requirements.byte_costs.get(machine.far.name), alike("samples_pfs")),
        _Cost("all-reduce", network, by_batch("allreduce")),
    ]


def _drawn_batches(requirements: Requirements) -> list[int]:
    """At most so many, evenly chosen, with the first and the last."""
    asked = list(dict.fromkeys(requirements.wish.batches))
    if len(asked) <= _MOST_BATCHES:
        return asked
    return [asked[round(step * (len(asked) - 1) / (_MOST_BATCHES - 1))] for step in range(_MOST_BATCHES)]


def _times(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"


def _movement_sentences(requirements: Requirements, costs: Sequence[_Cost], batches: Sequence[int]) -> Iterator[str]:
    nodes, machine = requirements.wish.nodes[-1], requirements.machine
    yield (
        f"Modelled, lower bounds: bytes × time of a byte, for one sample on one accelerator while {'all accelerators of ' if nodes * machine.accelerators > 1 else ''}{counted(nodes, 'node')} {'work' if nodes * machine.accelerators > 1 else 'works'}. Activations and weights "
        "through device memory, samples from the host, files from the tiers, gradients once a batch (ring)."
    )
    yield f"Below each: what a byte costs relative to device memory, with all of the system's {counted(machine.nodes, 'node')} at work."
    if len(batches) < len(set(requirements.wish.batches)):
        yield f"Of {len(set(requirements.wish.batches))} batches, {len(batches)} are drawn."
    unknown = [brief(cost.name, 40) for cost in costs if None in cost.seconds.values()]
    if unknown:
        yield f"Unknown, because the system does not state their speed: {', '.join(unknown)}."
    if machine.near is None:
        yield "Nodes have no local tier."


# Decomposition


def _decomposition(requirements: Requirements, name: str) -> Figure:
    title = "Time per sample by part"
    bars = spent(requirements)
    if not bars:
        return Figure(name, title, "", None, "the system states neither the speed of main memory nor of its tiers")
    caption = " ".join(_decomposition_sentences(requirements, bars))
    canvas = Canvas(name, title, caption)
    parts = [part for part in _PARTS if any(part in bar.parts for bar in bars)]
    styles = {part: _style(canvas, *_PARTS[part]) for part in parts}
    legend = Legend(
        [
            *(LegendEntry(box(*styles[part]), part) for part in parts),
            LegendEntry(lambda canvas, x, y: canvas.line((x - 14, y), (x + 14, y), "sample goal"), "perfect overlap"),
        ]
    )
    seconds = SecondsAxis(1.06 * max(bar.together for bar in bars))
    frame = seconds.frame(legend.height + 8)
    scale = seconds.draw(canvas, frame, "sample on an accelerator")
    axis = SweptAxis.of("", [bar.place for bar in bars], frame.left, frame.right)
    width = min(0.34 * axis.pitch, 80.0)
    for place, bar in zip(axis.places, bars, strict=True):
        foot = 0.0
        for part in parts:
            taken = bar.parts.get(part, 0.0)
            if taken:
                css, fill = styles[part]
                top = scale(foot + taken)
                canvas.rect(
                    place - width / 2,
                    top,
                    width,
                    scale(foot) - top,
                    css,
                    f"{bar.place}: {part} {about_seconds(taken)}",
                    fill,
                )
                foot += taken
        level = scale(bar.overlapped)
        canvas.line((place - width / 2 - 8, level), (place + width / 2 + 8, level), "goal")
        canvas.text(place + width / 2 + 12, level + 5, about_seconds(bar.overlapped))
    draw_x_axis(canvas, frame, axis, "source of samples")
    legend.draw(canvas)
    return Figure(name, title, caption, canvas.to_text())


def _style(canvas: Canvas, hue: int, hatched: bool) -> tuple[str, str]:
    return (f"bar edge{hue}", canvas.hatch(hue)) if hatched else (f"bar edge{hue} tier{hue}", "")


def _decomposition_sentences(requirements: Requirements, bars: Sequence[Spent]) -> Iterator[str]:
    nodes = requirements.wish.nodes[-1]
    yield (
        f"Modelled, lower bounds, for a sample of batch {requirements.wish.batches[0]:,} with all accelerators of {counted(nodes, 'node')} at work: compute (roofline, layer by layer), "
        "all-reduce, and the host's part, which is reading the file and copying the sample; preprocessing is not counted."
    )
    yield "Stacked: sequential. Dashed: fully overlapped, i.e. the longest part."
    if requirements.movement.allreduce is None:
        yield "All-reduce is not included: the system does not state its network bandwidth."
    if requirements.movement.samples_dram is None:
        yield "Copying and samples from main memory are not included: the system does not state the host's bandwidth."
    storages = [storage for storage in (requirements.machine.near, requirements.machine.far) if storage is not None]
    drawn = {bar.place for bar in bars}
    for storage in storages:
        if storage.name not in drawn:
            yield f"{brief(storage.name, 40)} is not included: the system does not state its speed."
    if requirements.machine.near is None:
        yield "Nodes have no local tier."
