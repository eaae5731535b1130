"""Lines over a swept value, in panels side by side: what most published figures are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tierscope.report.drawn.logs import LogAxis, LogScale, draw_log_y
from tierscope.report.drawn.looks import MARKS_FROM
from tierscope.report.svg import (
    FONT,
    SAMPLE,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    Sample,
    Scale,
    Size,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
    label,
    nice_ticks,
    text_width,
)

PANEL = Size(430.0, 330.0)
LOOKS = ("later0", "later1", "later2", "later3", "later4")  # of lines that are to be distinguished
TOTAL = "any"
_HEAD = 34.0
_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Line:
    """`look`: one of LOOKS, or TOTAL. `shape`: of its marks. `is_hollow`: as whole epochs are drawn. None: not known there."""

    name: str
    values: tuple[float | None, ...]
    look: str
    shape: int
    is_hollow: bool = False


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """`key`: of the swept values, by which they are written (cache_rate: as percent). `mark_at`: a value with a vertical line, and its words."""

    title: str
    key: str
    x_title: str
    y_title: str
    places: tuple[float, ...]
    lines: tuple[Line, ...]
    mark_at: tuple[float, str] | None = None
    level: float | None = None  # a goal, as a dashed line
    word: Callable[[float], str] | None = None  # of a tick on an axis of powers; None: the axis is linear, from zero
    base: int = 10  # of these powers
    ticks: tuple[str, ...] = ()  # words of the places, which are then evenly apart; none: as the key is written
    right_title: str = ""  # of a second axis, from zero, for `right_lines`
    right_lines: tuple[Line, ...] = ()


def draw_chart(name: str, title: str, caption: str, panels: Sequence[ChartPanel]) -> str:
    """Each panel has its own scale, from zero or of powers; the legend is that of all."""
    columns = min(_COLUMNS, len(panels))
    width = columns * PANEL.width
    legend = Legend(_entries(panels), width)
    rows = -(-len(panels) // columns)
    canvas = Canvas(name, title, caption, Size(width, legend.height + 4 + rows * PANEL.height))
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        _draw(canvas.inset((column * PANEL.width, legend.height + 4 + row * PANEL.height), PANEL), panel)
    legend.draw(canvas)
    return canvas.to_text()


def _entries(panels: Sequence[ChartPanel]) -> list[LegendEntry]:
    lines = {line.name: line for panel in panels for line in (*panel.lines, *panel.right_lines)}
    return [LegendEntry(_sample(line), line.name) for line in lines.values()]


def _css(line: Line) -> str:
    return f"{'whole' if line.is_hollow else 'io'} {line.look}"


def _sample(line: Line) -> Sample:
    def draw(canvas: Canvas, x: float, y: float) -> None:
        canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample curve {_css(line)}")
        canvas.marker(line.shape, (x, y), 4.2, f"sample mark {_css(line)}")

    return draw


def _draw(canvas: Canvas, panel: ChartPanel) -> None:
    frame, scale = _draw_upward(canvas, panel)
    canvas.text((frame.left + frame.right) / 2, 20, panel.title, "heading middle")
    to_scale = panel.key == "cache_rate"
    axis = SweptAxis.of(
        "" if panel.ticks else panel.key, panel.ticks or panel.places, frame.left, frame.right, to_scale
    )
    draw_x_axis(canvas, frame, axis, panel.x_title)
    if panel.level is not None:
        canvas.line((frame.left, scale(panel.level)), (frame.right, scale(panel.level)), "goal")
    if panel.mark_at is not None:
        value, words = panel.mark_at
        x = axis.places[panel.places.index(value)]
        canvas.line((x, frame.top), (x, frame.bottom), "outline")
        on_left = x + text_width(words) > frame.right
        canvas.text(x + (-6 if on_left else 6), frame.top + 14, words, "halo end" if on_left else "halo")
    for line in panel.lines:
        _draw_line(canvas, panel, line, axis, scale)
    if panel.right_lines:
        beside = _draw_right(canvas, frame, panel)
        for line in panel.right_lines:
            _draw_line(canvas, panel, line, axis, beside)


def _right_ticks(panel: ChartPanel) -> tuple[float, list[tuple[float, str]]]:
    top = 1.05 * max([*(value for line in panel.right_lines for value in line.values if value is not None), 1e-12])
    return top, [(tick, f"{tick:.6g}") for tick in nice_ticks(top)]


def _draw_right(canvas: Canvas, frame: Frame, panel: ChartPanel) -> Scale:
    """Without lines across: those are the other axis's."""
    top, ticks = _right_ticks(panel)
    scale = Scale(0.0, top, frame.bottom, frame.top)
    canvas.line((frame.right, frame.top), (frame.right, frame.bottom), "axis")
    for tick, text in ticks:
        canvas.text(frame.right + 7, scale(tick) + 0.35 * FONT, text, "tick")
    canvas.text(canvas.size.width - 8, (frame.top + frame.bottom) / 2, panel.right_title, "middle", turned=True)
    return scale


def _draw_upward(canvas: Canvas, panel: ChartPanel) -> tuple[Frame, Scale | LogScale]:
    known = [value for line in panel.lines for value in line.values if value is not None]
    right, bottom = canvas.size.width - 24, canvas.size.height - 58
    if panel.right_lines:
        right -= 10 + max(text_width(text) for _, text in _right_ticks(panel)[1])
    if panel.word is not None:
        axis = LogAxis.over(known, panel.y_title, panel.word, panel.base)
        frame = Frame(axis.room(), _HEAD, right, bottom)
        return frame, draw_log_y(canvas, frame, axis)
    top = 1.05 * max([*known, panel.level or 0.0, 1e-12])
    ticks = [(tick, f"{tick:.6g}") for tick in nice_ticks(top)]
    frame = Frame(42 + max(text_width(text) for _, text in ticks), _HEAD, right, bottom)
    scale = Scale(0.0, top, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(scale(tick), text) for tick, text in ticks], panel.y_title)
    return frame, scale


def _draw_line(canvas: Canvas, panel: ChartPanel, line: Line, axis: SweptAxis, scale: Scale | LogScale) -> None:
    spots = [
        (place, scale(value), at, value)
        for place, at, value in zip(axis.places, panel.places, line.values, strict=True)
        if value is not None
    ]
    if len(spots) > 1:
        canvas.path([(x, y) for x, y, _, _ in spots], f"curve {_css(line)}")
    if axis.pitch >= MARKS_FROM:
        for x, y, at, value in spots:
            shown = panel.word(value) if panel.word else f"{value:.3g}"
            tip = f"{label(panel.key, at)}, {line.name}: {shown}"
            canvas.marker(line.shape, (x, y), 5.0 if line.is_hollow else 3.4, f"mark {_css(line)}", tip)
