"""Where a network and its layers stand under the roofs of an accelerator: its memory and units, and the ways that samples come on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tierscope.arch.requirements import Requirements
from tierscope.arch.roofline import LayerCost
from tierscope.arch.ways import DEVICE, Way, device_ways, sample_ways
from tierscope.report.drawn.logs import (
    LabelRoom,
    LogAxis,
    LogScale,
    count_word,
    draw_log_x,
    draw_log_y,
    near_line,
    short_word,
)
from tierscope.report.drawn.view import Figure, brief
from tierscope.report.svg import HEIGHT, WIDTH, Canvas, Frame, Legend, LegendEntry, Sample, fit, text_width
from tierscope.units import about_flops, about_seconds, counted

_NAME = 150.0  # the most room that a tier's name gets
_RADII = (6.0, 7.0, 5.8, 4.2)  # of marks: each is seen under the next
_LOOKS = ("later1", "later2", "later4")  # of ways that samples come on


@dataclass(frozen=True, slots=True)
class _Mark:
    """The network on one way: where it is, and looks of the way and of the mark."""

    way: Way
    text: str
    css: str
    shape: int
    filled: bool
    x: float  # operations for each byte
    y: float  # operations per second, at most


@dataclass(frozen=True, slots=True)
class _Dot:
    """A layer on the roof of memory and units."""

    cost: LayerCost
    x: float
    y: float


def draw_roofline(requirements: Requirements, name: str) -> Figure:
    title = "Roofline: what bounds a sample"
    marks, dots, ceilings = _marks(requirements), _dots(requirements), _ceilings(requirements)
    caption = " ".join(_sentences(requirements, marks, dots))
    canvas = Canvas(name, title, caption)
    legend = Legend([LegendEntry(_sample(mark), f"{mark.text}: {_rate(mark.way)}") for mark in marks])
    everything: list[_Mark | _Dot] = [*marks, *dots]
    across = LogAxis.over([drawn.x for drawn in everything], "operations per byte (FLOP/B)", count_word)
    upward = LogAxis.over([*(drawn.y for drawn in everything), *ceilings.values()], "attainable FLOP/s", short_word)
    frame = Frame(upward.room(), legend.height + 8, WIDTH - 24, HEIGHT - 58)
    up, along, room = draw_log_y(canvas, frame, upward), draw_log_x(canvas, frame, across), LabelRoom(frame)
    for mark in marks:
        ends = _slope(across, upward, mark.way.bandwidth, max(ceilings.values()))
        places = [(along(x), up(y)) for x, y in ends]
        canvas.path(places, f"curve {mark.css}")
        room.add(places)
    room.add_marks((along(drawn.x), up(drawn.y)) for drawn in everything)
    _draw_ceilings(canvas, frame, room, requirements, (along, up))
    for dot in dots:
        tip = f"{dot.cost.name}: {dot.x:,.3g} FLOP/B, {about_flops(dot.y)}/s at most"
        canvas.circle(along(dot.x), up(dot.y), 3, "unmet", tip)
    for mark in marks:
        tip = f"{mark.text}: {mark.x:,.4g} FLOP/B, {about_flops(mark.y)}/s, {_rate(mark.way)}"
        _draw_mark(canvas, mark, (along(mark.x), up(mark.y)), tip)
    legend.draw(canvas)
    return Figure(name, title, caption, canvas.to_text())


def _marks(requirements: Requirements) -> list[_Mark]:
    texts = {"modelled": f"{DEVICE}, modelled", "limit": f"{DEVICE}, minimum"}
    marks = [
        _mark(requirements, way, texts[kind], "any", 0, kind == "modelled")
        for kind, way in device_ways(requirements).items()
    ]
    ways = enumerate(zip(sample_ways(requirements), _LOOKS, strict=False), 1)
    return marks + [_mark(requirements, way, fit(way.name, _NAME), css, shape, True) for shape, (way, css) in ways]


def _mark(requirements: Requirements, way: Way, text: str, css: str, shape: int, filled: bool) -> _Mark:
    x, y = requirements.flops / way.bytes_per_sample, requirements.flops * way.samples_per_second
    return _Mark(way, text, css, shape, filled, x, y)


def _rate(way: Way) -> str:
    return (
        f"{way.samples_per_second:,.3g} samples/s"
        if way.samples_per_second < 1000
        else f"{way.samples_per_second:,.0f} samples/s"
    )


def _dots(requirements: Requirements) -> list[_Dot]:
    device, precision = requirements.machine.device, requirements.wish.precision
    dots = []
    for cost in requirements.costs:
        if cost.flops and cost.nbytes:
            x = cost.flops / cost.nbytes
            dots.append(_Dot(cost, x, min(device.peak(precision, cost.tensor_cores), x * device.memory_bandwidth)))
    return dots


def _ceilings(requirements: Requirements) -> dict[str, float]:
    device = requirements.machine.device
    ceilings = {f"32 bit: {about_flops(device.fp32)}/s": device.fp32}
    if device.tensor:
        unused = "" if requirements.wish.precision.copies_weights else ", not used"
        ceilings[f"16 bit: {about_flops(device.tensor)}/s{unused}"] = device.tensor
    return ceilings


def _slope(across: LogAxis, upward: LogAxis, bandwidth: float, top: float) -> list[tuple[float, float]]:
    """Ends of the line of a bandwidth, within the axes and under the highest ceiling."""
    first = max(across.low, upward.low / bandwidth)
    last = min(across.high, top / bandwidth)
    return [(first, first * bandwidth), (last, last * bandwidth)] if first < last else []


def _draw_ceilings(
    canvas: Canvas, frame: Frame, room: LabelRoom, requirements: Requirements, scales: tuple[LogScale, LogScale]
) -> None:
    along, up = scales
    used = requirements.machine.device.peak(requirements.wish.precision)
    ceilings = _ceilings(requirements)
    for ceiling in ceilings.values():
        start = max(along.low, min(along.high, ceiling / requirements.machine.device.memory_bandwidth))
        ends = [(along(start), up(ceiling)), (frame.right, up(ceiling))]
        canvas.path(ends, "curve any" if ceiling == used else "outline")
        room.add(ends)
    for text, ceiling in ceilings.items():
        room.put(canvas, text, near_line(frame, up(ceiling), text_width(text)))


def _draw_mark(canvas: Canvas, mark: _Mark, place: tuple[float, float], tip: str = "") -> None:
    canvas.marker(mark.shape, place, _RADII[mark.shape], f"mark {'io' if mark.filled else 'whole'} {mark.css}", tip)


def _sample(mark: _Mark) -> Sample:
    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.line((x - 14, y), (x + 14, y), f"sample curve {mark.css}")
        _draw_mark(canvas, mark, (x, y))

    return draw


def _sentences(requirements: Requirements, marks: Sequence[_Mark], dots: Sequence[_Dot]) -> Iterator[str]:
    nodes, machine = requirements.wish.nodes[-1], requirements.machine
    yield (
        f"Modelled with nominal peaks, so rates are upper bounds: samples per second of one accelerator if only that path or its units were the limit, with "
        f"{counted(machine.accelerators * nodes, 'accelerator')} on {counted(nodes, 'node')} at work. The host delivers samples, tiers deliver files. Level lines: peaks of 32-bit units and of matrix units for 16 bits."
    )
    yield f"Small circles: {counted(len(dots), 'layer')}; {len(requirements.costs) - len(dots)} without operations only move bytes and are not shown."
    device = requirements.wish.batches[0] / requirements.step_seconds
    seconds = requirements.data.samples / device / machine.accelerators / nodes
    yield (
        f"Layer by layer, an accelerator processes at most {device:,.4g} samples/s: an epoch of {counted(requirements.data.samples, 'sample', grouped=True)} takes at least "
        f"{about_seconds(seconds)} on all of them."
    )
    missing = _missing(requirements, marks)
    if missing:
        yield f"Not drawn, because the system does not state their speed: {', '.join(missing)}."


def _missing(requirements: Requirements, marks: Sequence[_Mark]) -> list[str]:
    machine, drawn = requirements.machine, {mark.way.name for mark in marks}
    near = "a near tier" if machine.near is None else machine.near.name
    return [brief(name, 40) for name in ("host", near, machine.far.name) if name not in drawn]
