"""The hardware-efficiency histogram, drawn: how much of a step is spent at which efficiency, and what a perfect implementation would take."""

from tierscope.arch.efficiency import BINS, Histogram
from tierscope.report.drawn.view import Figure, SecondsAxis, brief
from tierscope.report.svg import HEIGHT, WIDTH, Canvas, Frame, Scale, text_width
from tierscope.units import about_seconds, counted

NAME = "efficiency"
_ROW = 26.0  # of the two bars above the histogram
_HEAD = 2 * _ROW + 30


def draw_efficiency(histogram: Histogram, where: str) -> Figure:
    """`where`: network, batch, precision and device."""
    title = "Time by hardware efficiency"
    total, ideal = histogram.total_seconds, histogram.ideal_seconds
    if not total:
        return Figure(NAME, title, "", None, "no kernel took any time")
    times = f"{histogram.potential:.1f} times as fast" if ideal else "infinitely faster"
    by_bin = ", in each bin on the left" if histogram.ideal_by_bin else ""
    by_name = " Below: kernels by name." if histogram.unique_by_bin else ""
    caption = (
        f"{brief(where, 120)}, one step: time of {counted(histogram.kernels, 'kernel')} by efficiency, the highest of tensor-core, other-core and memory utilisation, by "
        f"{histogram.source}. Above: the total, and the same work at full efficiency{by_bin}: a perfect implementation would be {times}.{by_name}"
    )
    canvas = Canvas(NAME, title, caption)
    seconds = SecondsAxis(1.12 * max(histogram.seconds))
    ticks = max(text_width(text) for _, text in seconds.ticks())
    frame = Frame(42 + ticks, _HEAD, WIDTH - 24, HEIGHT - 58)
    _draw_head(canvas, frame, total, ideal)
    scale = seconds.draw(canvas, frame, "time of a step")
    along = Scale(0.0, BINS, frame.left, frame.right)
    for number in range(BINS):
        _draw_bin(canvas, histogram, number, along, scale)
    _draw_edges(canvas, frame, along)
    return Figure(NAME, title, caption, canvas.to_text(), note=brief(where, 96))


def _draw_bin(canvas: Canvas, histogram: Histogram, number: int, along: Scale, scale: Scale) -> None:
    """What was measured; before it what the same work would take at full efficiency, where that is known."""
    taken, width = histogram.seconds[number], 0.84 * (along(1) - along(0))
    if not taken:
        return
    place, share = along(number + 0.5), f"{100 * taken / histogram.total_seconds:.0f} %"
    where, floor = f"{10 * number}–{10 * number + 10} % efficient", scale(0.0)
    canvas.rect(place - width / 2, scale(taken), width, floor - scale(taken), "bar tier0", f"{where}: {about_seconds(taken)}, {share}")  # fmt: skip
    canvas.text(place, scale(taken) - 5, share, "tick middle")
    if histogram.ideal_by_bin:
        ideal = histogram.ideal_by_bin[number]
        canvas.rect(place - width / 2, scale(ideal), width / 2, floor - scale(ideal), "bar tier2", f"{where}: {about_seconds(ideal)} at full efficiency")  # fmt: skip
    if histogram.unique_by_bin:
        canvas.text(place, floor + 34, str(histogram.unique_by_bin[number]), "tick middle")


def _draw_edges(canvas: Canvas, frame: Frame, along: Scale) -> None:
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    for edge in range(BINS + 1):
        canvas.line((along(edge), frame.bottom), (along(edge), frame.bottom + 4), "axis")
        canvas.text(along(edge), frame.bottom + 20, f"{100 * edge // BINS}", "tick middle")
    canvas.text((frame.left + frame.right) / 2, HEIGHT - 9, "efficiency (% of hardware peak)", "middle")


def _draw_head(canvas: Canvas, frame: Frame, total: float, ideal: float) -> None:
    """Both on one scale, with their values behind them."""
    start = 8 + max(text_width("measured"), text_width("ideal")) + 8
    texts = [about_seconds(total), f"{about_seconds(ideal)}"]
    room = frame.right - start - max(map(text_width, texts)) - 10
    for row, (name, value, css) in enumerate((("measured", total, "bar tier0"), ("ideal", ideal, "bar tier2"))):
        y, width = 10 + row * _ROW, room * value / total
        canvas.text(start - 8, y + 15, name, "end")
        canvas.rect(start, y, width, _ROW - 6, css, f"{name}: {about_seconds(value)}")
        canvas.text(start + width + 8, y + 15, texts[row])
