"""What a network demands of a machine, drawn: memory, roofline, cost of movement, scaling, and what the time of a sample is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tierscope.arch.movement import Movement
from tierscope.arch.requirements import MOST_BATCH, BatchNeeds, Requirements, curve, movements
from tierscope.arch.scaling import Scaled, fits_from
from tierscope.arch.ways import DEVICE, HOST, Spent, Way, device_ways, peak_rate, sample_ways, spent
from tierscope.report.drawn.logs import (
    LogAxis,
    LogScale,
    Room,
    around,
    bytes_word,
    count_word,
    draw_log_x,
    draw_log_y,
    near_line,
    seconds_word,
    short_word,
)
from tierscope.report.drawn.looks import box, stroke
from tierscope.report.drawn.view import Figure, Seconds, brief
from tierscope.report.parts import counted
from tierscope.report.svg import (
    HEIGHT,
    WIDTH,
    Axis,
    Canvas,
    Entry,
    Frame,
    Legend,
    Place,
    Sample,
    draw_x_axis,
    fit,
    text_width,
)
from tierscope.units import about_bytes, about_flops, about_seconds

NAMES = ("memory", "roofline", "movement", "scaling", "decomposition")
_MOST_BATCHES = 6  # more hues cannot be told apart
_NAME = 150.0  # the most room that a tier's name gets
_BOTTOM = HEIGHT - 58


def draw_requirements(found: Requirements) -> list[Figure]:
    """All five; those that cannot be drawn say why."""
    wish = found.wish
    how = f"{wish.precision.name}, {wish.optimizer}{', checkpointed' if wish.checkpointed else ''}"
    note = f"{brief(found.network.name, 40)} on {brief(found.machine.name, 30)} ({how}) · modelled"
    drawn = (
        _memory(found, how),
        _roofline(found),
        _movement(found),
        _scaling(found),
        _decomposition(found),
    )
    return [replace(figure, note=note) for figure in drawn]


@dataclass(frozen=True, slots=True)
class _Series:
    """One curve: where a value is unknown or nothing, it has a gap. `css`: its hue; `shape`: of its marks."""

    text: str
    css: str
    shape: int
    places: tuple[tuple[float, float | None], ...]

    def values(self) -> Iterator[float]:
        return (value for _, value in self.places if value)

    def stretches(self) -> Iterator[list[tuple[float, float]]]:
        for is_known, stretch in groupby(self.places, key=lambda place: bool(place[1])):
            if is_known:
                yield [(x, y) for x, y in stretch if y]


def _line_and_mark(css: str, shape: int, mark: str = "") -> Sample:
    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.line((x - 14, y), (x + 14, y), f"sample curve {css}")
        canvas.marker(shape, (x, y), 4, f"sample {mark or f'mark io {css}'}")

    return draw


# Memory


def _memory(found: Requirements, how: str) -> Figure:
    needs = curve(found)
    title = "Memory of an accelerator against batch size"
    caption = (
        f"Modelled, allocation by allocation ({how}): what is there all the time (parameters, gradients, optimizer state), the samples, activations kept for "
        f"the backward pass, and the peak at any moment of a step, which is no sum of them. {_largest_text(found)}"
    )
    canvas = Canvas(NAMES[0], title, caption)
    series = _memory_series(needs)
    legend = Legend([Entry(stroke(f"curve {one.css}"), one.text) for one in series])
    limits = _memory_limits(found)
    values = [value for one in series for value in one.values()]
    y = LogAxis.over([*values, *limits.values()], "memory", bytes_word, base=2)
    x = LogAxis(1 / 1.3, needs[-1].batch * 1.3, "batch of an accelerator (samples)", count_word, base=2)
    frame = Frame(y.room(), legend.height + 8, WIDTH - 24, _BOTTOM)
    up, along, room = draw_log_y(canvas, frame, y), draw_log_x(canvas, frame, x), Room(frame)
    for one in series:
        _draw_curve(canvas, room, one, along, up)
    for text, limit in limits.items():
        _draw_level(canvas, room, frame, up(limit), "goal")
    if found.max_batch:
        _draw_largest(canvas, room, frame, found, next(one for one in needs if one.batch == found.max_batch), (along, up))
    for text, limit in limits.items():
        room.put(canvas, text, near_line(frame, up(limit), text_width(text)))
    legend.draw(canvas)
    return Figure(NAMES[0], title, caption, canvas.to_text())


def _memory_series(needs: Sequence[BatchNeeds]) -> list[_Series]:
    def places(*names: str) -> tuple[tuple[float, float], ...]:
        return tuple((one.batch, sum(getattr(one.memory, name) for name in names)) for one in needs)

    return [
        _Series("predicted peak", "any", 0, places("peak")),
        _Series("kept activations", "later0", 1, places("activations")),
        _Series("parameters, gradients, optimizer", "later2", 2, places("parameters", "gradients", "optimizer")),
        _Series("samples", "later1", 3, places("input")),
    ]


def _memory_limits(found: Requirements) -> dict[str, float]:
    limits = {f"{DEVICE}: {about_bytes(found.machine.memory)}": float(found.machine.memory)}
    if found.machine.l2 is not None:
        limits[f"L2: {about_bytes(found.machine.l2)}"] = float(found.machine.l2)
    return limits


def _largest_text(found: Requirements) -> str:
    if not found.max_batch:
        return f"Not even one sample fits the {about_bytes(found.machine.memory)} of an accelerator."
    more = " or more" if found.max_batch >= MOST_BATCH else ""
    return f"The largest batch that fits is {found.max_batch:,}{more}."


def _draw_largest(
    canvas: Canvas, room: Room, frame: Frame, found: Requirements, needs: BatchNeeds, scales: tuple[LogScale, LogScale]
) -> None:
    place = scales[0](needs.batch), scales[1](needs.memory.peak)
    canvas.line(place, (place[0], frame.bottom), "outline")
    room.add([place, (place[0], frame.bottom)])
    tip = f"batch {needs.batch:,}: {about_bytes(needs.memory.peak)}, the largest that fits"
    canvas.marker(3, place, 6, "best", tip)
    text = f"largest that fits: {found.max_batch:,}{' or more' if found.max_batch >= MOST_BATCH else ''}"
    left = place[0] - text_width(text) - 8
    room.put(canvas, text, [(left, frame.bottom - down) for down in (6, 30, 54, 78, 102, 126, 150)])


def _draw_curve(
    canvas: Canvas, room: Room, series: _Series, along: LogScale, up: LogScale, with_marks: bool = False
) -> None:
    for stretch in series.stretches():
        places = [(along(x), up(y)) for x, y in stretch]
        if len(places) > 1:
            canvas.path(places, f"curve {series.css}")
        room.add(places)
        for (x, y), place in zip(stretch, places, strict=True):
            if with_marks or len(places) == 1:
                tip = f"{series.text}, {x:,.0f}: {about_seconds(y)}"
                canvas.marker(series.shape, place, 3.6, f"mark io {series.css}", tip)


def _draw_level(canvas: Canvas, room: Room, frame: Frame, y: float, css: str) -> None:
    canvas.line((frame.left, y), (frame.right, y), css)
    room.add([(frame.left, y), (frame.right, y)])


# Roofline


_WAY_LOOKS = ("later1", "later2", "later4")  # host, near tier, far tier


def _roofline(found: Requirements) -> Figure:
    title = "Roofline: what bounds a sample"
    ways, through = sample_ways(found), device_ways(found)
    caption = _roofline_caption(found, ways)
    canvas = Canvas(NAMES[1], title, caption)
    looks = dict(zip((HOST, "near", "far"), _WAY_LOOKS, strict=True))
    styles = {way.name: looks[_role(found, way)] for way in ways}
    legend = Legend([*_device_entries(through), *(_way_entry(way, styles[way.name]) for way in ways)])
    dots = [(cost.flops / cost.nbytes, cost) for cost in found.costs if cost.flops and cost.nbytes]
    marks = {
        **{name: _mark(found, way) for name, way in through.items()},
        **{way.name: _mark(found, way) for way in ways},
    }
    device = found.machine.device
    heights = [min(device.peak(found.wish.precision, cost.tensor_cores), x * device.memory_bandwidth) for x, cost in dots]
    ceilings = _ceilings(found)
    x = LogAxis.over([*(x for x, _ in dots), *(x for x, _ in marks.values())], "operations for each byte (FLOP/B)", count_word)
    y = LogAxis.over([*heights, *(y for _, y in marks.values()), *ceilings.values()], "attainable FLOP/s", short_word)
    frame = Frame(y.room(), legend.height + 8, WIDTH - 24, _BOTTOM)
    up, along, room = draw_log_y(canvas, frame, y), draw_log_x(canvas, frame, x), Room(frame)
    top = max(ceilings.values())
    slopes = [("any", device.memory_bandwidth), *((styles[way.name], way.bandwidth) for way in ways)]
    for css, bandwidth in slopes:
        ends = _slope(x, y, bandwidth, top)
        if ends:
            places = [(along(x), up(y)) for x, y in ends]
            canvas.path(places, f"curve {css}")
            room.add(places)
    for text, ceiling in ceilings.items():
        start = max(x.low, ceiling / device.memory_bandwidth)
        level = [(along(start), up(ceiling)), (frame.right, up(ceiling))]
        canvas.path(level, "curve any" if ceiling == device.peak(found.wish.precision) else "outline")
        room.add(level)
    for (across, cost), height in zip(dots, heights, strict=True):
        tip = f"{cost.name}: {across:,.3g} FLOP/B, {about_flops(height)}/s at most"
        canvas.circle(along(across), up(height), 3, "unmet", tip)
    _draw_way_marks(canvas, room, found, marks, styles, (along, up))
    for text, ceiling in ceilings.items():
        room.put(canvas, text, near_line(frame, up(ceiling), text_width(text)))
    legend.draw(canvas)
    return Figure(NAMES[1], title, caption, canvas.to_text())
