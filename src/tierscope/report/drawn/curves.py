"""Curves of requirements over powers: memory against batch size, epochs against nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tierscope.arch.requirements import MOST_BATCH, UNCLEAR, BatchNeeds, Requirements, curve
from tierscope.arch.scaling import Scaled, fits_from
from tierscope.arch.ways import DEVICE
from tierscope.report.drawn.logs import (
    LabelRoom,
    LogAxis,
    LogScale,
    bytes_word,
    count_word,
    draw_log_x,
    draw_log_y,
    near_line,
    seconds_word,
)
from tierscope.report.drawn.looks import stroke
from tierscope.report.drawn.view import Figure
from tierscope.report.svg import HEIGHT, WIDTH, Canvas, Frame, Legend, LegendEntry, Sample, text_width
from tierscope.units import about_bytes, about_seconds, counted

_BOTTOM = HEIGHT - 58
_EDGE = 1.25  # room beside the first and the last place of an axis, as a factor


@dataclass(frozen=True, slots=True)
class _Series:
    """Where a value is unknown or nothing, a curve has a gap."""

    text: str
    css: str
    shape: int
    places: tuple[tuple[float, float | None], ...]

    def values(self) -> list[float]:
        return [value for _, value in self.places if value]

    def stretches(self) -> Iterator[list[tuple[float, float]]]:
        for is_known, stretch in groupby(self.places, key=lambda place: bool(place[1])):
            if is_known:
                yield [(x, y) for x, y in stretch if y]


@dataclass(frozen=True, slots=True)
class _Drawing:
    canvas: Canvas
    frame: Frame
    along: LogScale
    up: LogScale
    room: LabelRoom

    @classmethod
    def begin(cls, canvas: Canvas, top: float, x: LogAxis, y: LogAxis) -> "_Drawing":
        frame = Frame(y.room(), top, WIDTH - 24, _BOTTOM)
        return cls(canvas, frame, draw_log_x(canvas, frame, x), draw_log_y(canvas, frame, y), LabelRoom(frame))

    def curve(self, series: _Series) -> None:
        for stretch in series.stretches():
            places = [(self.along(x), self.up(y)) for x, y in stretch]
            if len(places) > 1:
                self.canvas.path(places, f"curve {series.css}")
            self.room.add(places)

    def level(self, value: float, css: str) -> None:
        ends = [(self.frame.left, self.up(value)), (self.frame.right, self.up(value))]
        self.canvas.path(ends, css)
        self.room.add(ends)


# Memory


def draw_memory(requirements: Requirements, name: str, how: str) -> Figure:
    needs = curve(requirements)
    title = "Memory of an accelerator against batch size"
    caption = (
        f"Modelled, allocation by allocation ({how}): parameters with gradients and optimizer state, samples, activations kept for the backward pass, and the "
        f"peak at any moment of a step, which is not the sum of the others: it includes workspace and library memory. {_largest_text(requirements)}"
    )
    canvas = Canvas(name, title, caption)
    series, limits = _memory_series(needs), _memory_limits(requirements)
    legend = Legend([LegendEntry(stroke(f"curve {line.css}"), line.text) for line in series])
    known = [value for line in series for value in line.values()]
    drawing = _Drawing.begin(
        canvas,
        legend.height + 8,
        LogAxis(1 / _EDGE, needs[-1].batch * _EDGE, "batch per accelerator (samples)", count_word, base=2),
        LogAxis.over([*known, *limits.values()], "memory", bytes_word, base=2),
    )
    for line in series:
        drawing.curve(line)
    for limit in limits.values():
        drawing.level(limit, "goal")
    for needed in needs:
        if needed.batch == requirements.max_batch:
            _mark_largest(drawing, needed)
    for text, limit in limits.items():
        drawing.room.put(canvas, text, near_line(drawing.frame, drawing.up(limit), text_width(text)))
    legend.draw(canvas)
    return Figure(name, title, caption, canvas.to_text())


def _memory_series(needs: Sequence[BatchNeeds]) -> list[_Series]:
    def places(*names: str) -> tuple[tuple[float, float], ...]:
        return tuple(
            (batch_needs.batch, sum(getattr(batch_needs.memory, name) for name in names)) for batch_needs in needs
        )

    return [
        _Series("predicted peak", "any", 0, places("peak")),
        _Series("kept activations", "later0", 1, places("activations")),
        _Series("parameters, gradients, optimizer", "later2", 2, places("parameters", "gradients", "optimizer")),
        _Series("samples", "later1", 3, places("input")),
    ]


def _memory_limits(requirements: Requirements) -> dict[str, float]:
    limits = {f"{DEVICE}: {about_bytes(requirements.machine.memory)}": float(requirements.machine.memory)}
    if requirements.machine.l2 is not None:
        limits[f"L2: {about_bytes(requirements.machine.l2)}"] = float(requirements.machine.l2)
    return limits


def _largest_text(requirements: Requirements) -> str:
    if not requirements.max_batch:
        return f"Not even one sample fits in the {about_bytes(requirements.machine.memory)} of an accelerator."
    more = " or more" if requirements.max_batch >= MOST_BATCH else ""
    return f"The largest batch that fits is {requirements.max_batch:,}{more}."


def _mark_largest(drawing: _Drawing, needs: BatchNeeds) -> None:
    canvas, frame = drawing.canvas, drawing.frame
    place = drawing.along(needs.batch), drawing.up(needs.memory.peak)
    canvas.line(place, (place[0], frame.bottom), "outline")
    drawing.room.add([place, (place[0], frame.bottom)])
    tip = f"batch {needs.batch:,}: {about_bytes(needs.memory.peak)}, the largest that fits"
    canvas.marker(3, place, 6, "best", tip)
    text = f"largest that fits: {needs.batch:,}{' or more' if needs.batch >= MOST_BATCH else ''}"
    left = place[0] - text_width(text) - 8
    drawing.room.put(canvas, text, [(left, frame.bottom - down) for down in range(6, 180, 12)])


# Scaling


def _if_steps(requirements: Requirements) -> str:
    """Behind a verdict that longer steps, or other storage within what is known of it, would change."""
    steps = ", if steps are as short as drawn here" if UNCLEAR in requirements.described_verdicts else ""
    storage = ", going by the system's file" if any(requirements.turns) else ""
    return storage + steps


def draw_scaling(requirements: Requirements, name: str) -> Figure:
    title = "Epochs against nodes"
    points, wish = requirements.scaling, requirements.wish
    if len(points) < 2:
        reason = "only one node count, so there is nothing to plot; use --nodes, e.g. 1..64"
        return Figure(name, title, "", None, reason)
    caption = " ".join(_scaling_sentences(requirements))
    canvas = Canvas(name, title, caption)
    series = [line for line in _scaling_series(points) if line.values()]
    waiting = list(_stretches([point.storage_matters for point in points]))
    legend = Legend(
        [
            *(LegendEntry(_sample(line), line.text) for line in series),
            *(
                [LegendEntry(lambda canvas, x, y: canvas.rect(x - 10, y - 7, 20, 14, "sample band"), "storage matters")]
                if waiting
                else []
            ),
        ]
    )
    drawing = _Drawing.begin(
        canvas,
        legend.height + 8,
        LogAxis(points[0].nodes / _EDGE, points[-1].nodes * _EDGE, _nodes_title(wish.weak), count_word, base=2),
        LogAxis.over([value for line in series for value in line.values()], "time of an epoch", seconds_word),
    )
    for first, last in waiting:
        _shade(drawing, points, first, last)
    for line in series:
        drawing.curve(line)
    for line in series:
        _mark(drawing, line)
    fits = fits_from(points)
    if fits is not None:
        _mark_fits(drawing, fits)
    legend.draw(canvas)
    return Figure(name, title, caption, canvas.to_text())


def _nodes_title(weak: bool) -> str:
    return f"nodes ({'weak' if weak else 'strong'} scaling)"


def _scaling_series(points: Sequence[Scaled]) -> list[_Series]:
    def places(name: str) -> tuple[tuple[float, float | None], ...]:
        return tuple((point.nodes, getattr(point, name)) for point in points)

    return [
        _Series("later epochs", "any", 0, places("later_seconds")),
        _Series("first epoch", "first", 1, places("first_seconds")),
        _Series("compute", "later1", 2, places("compute_seconds")),
        _Series("exchange", "later2", 3, places("exchange_seconds")),
        _Series("reads of later epochs (stations)", "later3", 4, places("storage_seconds")),
    ]


def _sample(series: _Series) -> Sample:
    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.line((x - 14, y), (x + 14, y), f"sample curve {series.css}")
        _draw_mark(canvas, series, (x, y))

    return draw


def _mark(drawing: _Drawing, series: _Series) -> None:
    for stretch in series.stretches():
        for nodes, seconds in stretch:
            tip = f"{counted(int(nodes), 'node')}, {series.text}: {about_seconds(seconds)}"
            place = drawing.along(nodes), drawing.up(seconds)
            _draw_mark(drawing.canvas, series, place, tip)
            drawing.room.add_marks([place])


def _draw_mark(canvas: Canvas, series: _Series, place: tuple[float, float], tip: str = "") -> None:
    """Later epochs are as long as something else: their marks go around those of others."""
    if series.css == "any":
        canvas.marker(series.shape, place, 7, "former", tip)
    else:
        canvas.marker(series.shape, place, 3.4, f"mark io {series.css}", tip)


def _stretches(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last places of what is so, one after another."""
    for is_so, stretch in groupby(enumerate(flags), key=lambda place_and_flag: place_and_flag[1]):
        if is_so:
            numbers = [number for number, _ in stretch]
            yield numbers[0], numbers[-1]


def _shade(drawing: _Drawing, points: Sequence[Scaled], first: int, last: int) -> None:
    """From halfway to the neighbours."""
    frame, places = drawing.frame, [drawing.along(point.nodes) for point in points]
    left = frame.left if first == 0 else (places[first - 1] + places[first]) / 2
    right = frame.right if last == len(points) - 1 else (places[last] + places[last + 1]) / 2
    least, most = points[first].nodes, points[last].nodes
    nodes = f"{least:,} to {most:,} nodes" if least < most else counted(most, "node", grouped=True)
    drawing.canvas.rect(left, frame.top, right - left, frame.bottom - frame.top, "band", f"storage matters: {nodes}")


def _mark_fits(drawing: _Drawing, nodes: int) -> None:
    frame, x = drawing.frame, drawing.along(nodes)
    drawing.canvas.line((x, frame.top), (x, frame.bottom), "goal")
    drawing.room.add([(x, frame.top), (x, frame.bottom)])
    text = f"share fits in memory: {counted(nodes, 'node')} or more"
    width = text_width(text)
    lefts = (x + 6, x - width - 6)
    heights = [frame.top + 20 + step for step in range(0, int(frame.bottom - frame.top) - 20, 12)]
    drawing.room.put(drawing.canvas, text, [(left, y) for y in (heights[0], *reversed(heights)) for left in lefts])


def _scaling_sentences(requirements: Requirements) -> Iterator[str]:
    points, wish = requirements.scaling, requirements.wish
    yield f"Modelled, lower bounds: an epoch of {counted(requirements.data.samples, 'sample', grouped=True)} takes the longest of compute, gradient exchange (ring) and input, perfectly overlapped"
    yield f"(batch {wish.batches[0]:,} on each accelerator, {requirements.machine.accelerators} in a node)."
    if any(point.storage_seconds is not None for point in points):
        yield "Read times come from the tiers' stations; data in main memory needs no reads."
    else:
        yield "Read times come from plain bandwidths: the system's tiers have no model."
    waiting = [point.nodes for point in points if point.storage_matters]
    yield (
        f"Storage matters on {', '.join(f'{nodes:,}' for nodes in waiting)} nodes{_if_steps(requirements)}."
        if waiting
        else f"Storage does not matter after the first epoch{_if_steps(requirements) if any(requirements.turns) else ''}."
    )
    fits = fits_from(points)
    if fits is not None:
        yield f"A node's share of the files fits in main memory with {counted(fits, 'node')} or more."
    elif points[-1].fits_memory is None:
        yield "Whether it fits in main memory is unknown: the system does not state its memory."
    else:
        yield "A node's share of the files never fits in main memory."
    if any(point.exchange_seconds is None for point in points):
        yield "Exchange is not drawn: the system does not state its network bandwidth."
