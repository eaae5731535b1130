"""What shuffling buys, drawn: accuracy against epochs by batch and by how files were written, and beside it the I/O of an epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

from tierscope.analysis.shuffling import KIND, Shuffle, ShuffleRow, Shuffling, network_text
from tierscope.report.drawn.looks import box
from tierscope.report.drawn.view import Figure, SecondsAxis, brief
from tierscope.report.svg import FONT, HEIGHT, WIDTH, Canvas, Frame, Legend, LegendEntry, Scale, fit, text_width
from tierscope.units import about_bytes, about_seconds, counted

_MOST_BATCHES = 3  # more do not fit beside one another
_HUES = (0, 5, 2, 3, 1)  # one for each shuffle; as the dashes of `looks` go
_GAP = 20.0  # between panels
_IO_WIDTH = 118.0
_TICKS = (0.0, 0.5, 1.0)


def draw_shuffling(shuffling: Shuffling) -> list[Figure]:
    """A figure for each network."""
    return [_figure(shuffling, network) for network in dict.fromkeys(row.network for row in shuffling.rows)]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What the panels of a figure share."""

    canvas: Canvas
    shuffles: tuple[Shuffle, ...]
    epochs: int

    def index(self, row: ShuffleRow) -> int:
        return self.shuffles.index(row.shuffle)


def _figure(shuffling: Shuffling, network: str) -> Figure:
    rows = [row for row in shuffling.rows if row.network == network]
    batches, layouts = list(dict.fromkeys(row.batch for row in rows)), list(dict.fromkeys(row.layout for row in rows))
    left_out = (
        "" if len(batches) <= _MOST_BATCHES else f" Of {len(batches)} batches, the first {_MOST_BATCHES} are drawn."
    )
    batches = batches[:_MOST_BATCHES]
    rows = [row for row in rows if row.batch in batches]
    name, title = f"{KIND}-{network}", "Shuffling: accuracy and I/O"
    caption = (
        f"Accuracy on held-out digits after each epoch: median and range over {counted(shuffling.seeds, 'seed')}, {counted(shuffling.ranks, 'emulated rank')}, {network_text(network)}. "
        f"Next to it: I/O of the slowest process per epoch in the same order, simulated on {shuffling.system} with samples of {about_bytes(shuffling.sample_bytes)}.{left_out}"
    )
    canvas = Canvas(name, title, caption)
    shuffles = tuple(dict.fromkeys(row.shuffle for row in rows))
    drawn = _Drawn(canvas, shuffles, shuffling.epochs)
    legend = Legend([LegendEntry(box(f"tier{_HUES[place]}"), shuffle.text) for place, shuffle in enumerate(shuffles)])
    legend.draw(canvas)
    seconds = SecondsAxis(1.06 * max(1e-9, *(row.io.median for row in rows)))
    io = Frame(WIDTH - 14 - _IO_WIDTH, legend.height + 30, WIDTH - 14, HEIGHT - 52)
    ticks_width = max(text_width(text) for _, text in seconds.ticks())
    panels = Frame(44 + text_width("100"), io.top, io.left - ticks_width - 34, io.bottom)
    _draw_panels(drawn, rows, panels, batches, layouts)
    _draw_io(drawn, rows, io, batches, seconds)
    note = f"{network_text(network)} · {counted(shuffling.ranks, 'rank')}, {counted(shuffling.seeds, 'seed')} · I/O simulated on {shuffling.system}"
    return Figure(name, title, caption, canvas.to_text(), note=brief(note, 96))


def _draw_panels(drawn: _Drawn, rows: Sequence[ShuffleRow], room: Frame, batches: Sequence[int], layouts: Sequence[str]) -> None:  # fmt: skip
    canvas = drawn.canvas
    width = (room.right - room.left - _GAP * (len(batches) - 1)) / len(batches)
    height = (room.bottom - room.top - _GAP * (len(layouts) - 1)) / len(layouts)
    for across, batch in enumerate(batches):
        left = room.left + across * (width + _GAP)
        canvas.text(left + width / 2, room.top - 9, fit(f"batch {batch}", width), "middle")
        for down, layout in enumerate(layouts):
            top = room.top + down * (height + _GAP)
            frame = Frame(left, top, left + width, top + height)
            shown = [row for row in rows if (row.batch, row.layout) == (batch, layout)]
            _draw_curves(drawn, shown, frame, with_ticks=across == 0)
            canvas.text(frame.right - 5, frame.bottom - 8, fit(f"{layout} files", width - 10), "end")
        last = f"{drawn.epochs}"
        canvas.text(left, room.bottom + 19, "1" if drawn.epochs > 1 else "")
        canvas.text(left + width, room.bottom + 19, last, "end")
    canvas.text((room.left + room.right) / 2, HEIGHT - 9, "epoch", "middle")
    title = fit("accuracy (%)", room.bottom - room.top)
    canvas.text(20, (room.top + room.bottom) / 2, title, "middle", turned=True)


def _draw_curves(drawn: _Drawn, rows: Sequence[ShuffleRow], frame: Frame, with_ticks: bool) -> None:
    canvas, scale = drawn.canvas, Scale(0.0, 1.0, frame.bottom, frame.top)
    for tick in _TICKS:
        canvas.line((frame.left, scale(tick)), (frame.right, scale(tick)), "grid")
        if with_ticks:
            canvas.text(frame.left - 7, scale(tick) + 0.35 * FONT, f"{100 * tick:.0f}", "tick end")
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    across = Scale(1.0, max(2.0, drawn.epochs), frame.left, frame.right)
    for row in rows:
        hue, places = _HUES[drawn.index(row)], [across(epoch) for epoch in range(1, drawn.epochs + 1)]
        band = [*zip(places, row.highs, strict=True), *reversed(list(zip(places, row.lows, strict=True)))]
        canvas.path([(x, scale(value)) for x, value in band], f"tier{hue} pale", closed=True)
    for row in rows:
        places = [across(epoch) for epoch in range(1, drawn.epochs + 1)]
        tip = f"{row.shuffle.text}, batch {row.batch}, {row.layout} files: {100 * row.last:.1f} % ({100 * row.lows[-1]:.1f}–{100 * row.highs[-1]:.1f})"
        points = [(x, scale(value)) for x, value in zip(places, row.medians, strict=True)]
        if len(points) == 1:
            canvas.marker(0, points[0], 4.0, f"mark io later{drawn.index(row)}", tip)
        else:
            canvas.path(points, f"curve later{drawn.index(row)}", tip)


def _draw_io(
    drawn: _Drawn, rows: Sequence[ShuffleRow], frame: Frame, batches: Sequence[int], seconds: SecondsAxis
) -> None:
    canvas, scale = drawn.canvas, Scale(0.0, seconds.top, frame.bottom, frame.top)
    for value, text in seconds.ticks():
        canvas.line((frame.left, scale(value)), (frame.right, scale(value)), "grid")
        canvas.text(frame.left - 7, scale(value) + 0.35 * FONT, text, "tick end")
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    canvas.text(frame.right, frame.top - 9, f"I/O of an epoch ({seconds.unit})", "end")
    pitch = (frame.right - frame.left) / len(batches)
    width = 0.84 * pitch / len(drawn.shuffles)
    for place, batch in enumerate(batches):
        left = frame.left + place * pitch + 0.08 * pitch
        for row in {row.shuffle: row for row in rows if row.batch == batch}.values():
            x, top = left + drawn.index(row) * width, scale(row.io.median)
            tip = f"{row.shuffle.text}, batch {batch}: {about_seconds(row.io.median)} of I/O, simulated; needs {about_bytes(row.io.needed_bytes)} of a node's near tier"
            canvas.rect(x, top, 0.9 * width, frame.bottom - top, f"bar tier{_HUES[drawn.index(row)]}", tip)
        canvas.text(frame.left + (place + 0.5) * pitch, frame.bottom + 19, fit(f"{batch}", pitch), "tick middle")
    canvas.text((frame.left + frame.right) / 2, HEIGHT - 9, "batch", "middle")
