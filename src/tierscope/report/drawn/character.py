"""How a run reads, drawn: sizes of reads, bytes of ranks, bandwidth beside compute over time, and the hidden share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.analysis.character_time import Timeline
from tierscope.analysis.characterise import Character
from tierscope.analysis.hidden import weighted
from tierscope.report.character import size_text, when_text
from tierscope.report.drawn.looks import box, stroke
from tierscope.report.drawn.view import Figure, brief
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    HEIGHT,
    WIDTH,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    Sample,
    Scale,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
    nice_ticks,
    text_width,
)
from tierscope.units import BYTE_UNITS, about_bytes, about_seconds, counted

NAMES = ("reads-sizes", "reads-ranks", "reads-time", "reads-hidden")
_MOST_BARS = 64  # more ranks are a curve
_MOST_EPOCHS = 24
_LOWER = 92.0  # the height of the panel below another
_APART = 40.0


def draw_character(source: ReportSource) -> list[Figure]:
    """Those that the data allow; none where nothing is known about the run's reads."""
    character = source.character
    if character is None:
        return []
    note = " · ".join(part for part in (brief(source.character_where, 80), *_labels(source)) if part)
    return [
        Figure(figure.name, figure.title, " ".join((figure.caption, *_sentences(source))), figure.svg, note=note)
        for figure in character_figures(character)
    ]


def character_figures(character: Character) -> list[Figure]:
    """The same without what a page says of its run."""
    drawn = (_sizes(character), _ranks(character), _time(character), _hidden(character))
    return [figure for figure in drawn if figure is not None]


def _labels(source: ReportSource) -> Iterator[str]:
    given = source.conditions
    if given.emulated:
        yield f"emulated tiers: {', '.join(given.emulated)}"
    if given.simulated:
        yield f"simulated ({', '.join(given.simulated)})"


def _sentences(source: ReportSource) -> Iterator[str]:
    for label in _labels(source):
        yield f"{label[0].upper()}{brief(label[1:], 80)}."


@dataclass(frozen=True, slots=True)
class _Values:
    """A vertical axis from zero."""

    top: float
    title: str
    factor: float = 1.0

    @classmethod
    def of_bytes(cls, top: float, title: str, per: str = "") -> "_Values":
        unit = next((name for name in ("PiB", "TiB", "GiB", "MiB", "KiB") if top >= BYTE_UNITS[name]), "B")
        return cls(top, f"{title} ({unit}{per})", BYTE_UNITS[unit])

    def ticks(self, few: bool = False) -> list[tuple[float, str]]:
        ticks = [(tick * self.factor, f"{tick:.6g}") for tick in nice_ticks(self.top / self.factor)]
        return ticks[:: max(1, (len(ticks) - 1) // 2)] if few else ticks

    def room(self) -> float:
        return 42 + max(text_width(text) for _, text in self.ticks())

    def draw(self, canvas: Canvas, frame: Frame, few: bool = False) -> Scale:
        scale = Scale(0.0, self.top, frame.bottom, frame.top)
        draw_y_axis(canvas, frame, [(scale(value), text) for value, text in self.ticks(few)], self.title)
        return scale


def _bars(
    name: str, title: str, caption: str, values: _Values, of: Sequence[tuple[str, float, str]], axis_title: str
) -> Figure:
    """`of`: label, value and tip of each bar."""
    canvas = Canvas(name, title, caption)
    frame = Frame(values.room(), 16.0, WIDTH - 24, HEIGHT - 58)
    scale = values.draw(canvas, frame)
    axis = SweptAxis.of("", [label for label, _, _ in of], frame.left, frame.right)
    width = min(0.78 * axis.pitch, 72.0)
    for place, (_, value, tip) in zip(axis.places, of, strict=True):
        top = scale(value)
        canvas.rect(place - width / 2, top, width, frame.bottom - top, "bar tier0", tip)
    draw_x_axis(canvas, frame, axis, axis_title)
    return Figure(name, title, caption, canvas.to_text())


def _sizes(character: Character) -> Figure | None:
    total = sum(size.reads for size in character.sizes)
    if not total:
        return None
    bars = [
        (
            about_bytes(size.low),
            100 * size.reads / total,
            f"{size_text(size)}: {counted(size.reads, 'read', grouped=True)}, {100 * size.reads / total:.1f} %",
        )
        for size in character.sizes
    ]
    caption = f"How large {counted(total, 'read', grouped=True)} {'was' if total == 1 else 'were'}; each bar is a bin that starts at the size below it; empty bins are not drawn."
    values = _Values(max(share for _, share, _ in bars) * 1.03, "share of reads (%)")
    return _bars(NAMES[0], "Transfer sizes", caption, values, bars, "bytes per read, from")


def _ranks(character: Character) -> Figure | None:
    ranks, most = character.ranks, max((rank.read_bytes for rank in character.ranks), default=0)
    if len(ranks) < 2 or not most:
        return None
    name, title = NAMES[1], "Bytes read by each rank"
    values = _Values.of_bytes(most * 1.03, "read")
    caption = f"Bytes read by each of {counted(len(ranks), 'rank', grouped=True)} in all epochs."
    if len(ranks) <= _MOST_BARS:
        bars = [
            (str(rank.rank), float(rank.read_bytes), _rank_tip(rank.rank, rank.read_bytes, rank.bandwidth))
            for rank in ranks
        ]
        return _bars(name, title, caption, values, bars, "rank")
    caption += " Sorted by bytes."
    canvas = Canvas(name, title, caption)
    frame = Frame(values.room(), 16.0, WIDTH - 24, HEIGHT - 58)
    scale = values.draw(canvas, frame)
    ordered = np.sort([rank.read_bytes for rank in ranks])[np.linspace(0, len(ranks) - 1, 400).round().astype(int)]
    places = [(x, scale(float(y))) for x, y in zip(np.linspace(frame.left, frame.right, 400), ordered, strict=True)]
    canvas.path([(frame.left, frame.bottom), *places, (frame.right, frame.bottom)], "band", closed=True)
    canvas.path(places, "median")
    axis = SweptAxis.of("", ["fewest bytes", "most bytes"], frame.left, frame.right)
    draw_x_axis(canvas, frame, axis, counted(len(ranks), "rank", grouped=True))
    return Figure(name, title, caption, canvas.to_text())


def draw_rank_bandwidth(character: Character) -> Figure | None:
    """Bytes over the seconds that each rank read; None where nobody knows them, or there are too many ranks for bars."""
    known = [(rank, rank.bandwidth) for rank in character.ranks if rank.bandwidth is not None]
    if not 2 <= len(known) <= _MOST_BARS:
        return None
    bars = [(str(rank.rank), rate, _rank_tip(rank.rank, rank.read_bytes, rate)) for rank, rate in known]
    values = _Values.of_bytes(1.03 * max(rate for _, rate in known), "read", "/s")
    caption = f"Bytes over seconds of reading, of each of {counted(len(known), 'rank', grouped=True)} in all epochs."
    return _bars("reads-rates", "Bandwidth of each rank", caption, values, bars, "rank")


def _rank_tip(rank: int, moved: int, bandwidth: float | None) -> str:
    rate = "" if bandwidth is None else f" at {about_bytes(bandwidth)}/s"
    return f"rank {rank}: {about_bytes(moved)}{rate}"


def _time(character: Character) -> Figure | None:
    timeline = character.timeline
    if timeline is None or max(timeline.bytes_per_second) <= 0:
        return None
    title = "Bandwidth over time" + (", and what ranks did" if timeline.computing or timeline.stalled else "")
    lower = _lower(timeline)
    caption = (
        f"Bytes read by all ranks in every {about_seconds(timeline.bin_seconds)} ({when_text(timeline.basis)}); epochs one after another."
        + (" Below: how many of the ranks compute, and how many wait for data." if lower else "")
    )
    canvas = Canvas(NAMES[2], title, caption)
    legend = Legend([LegendEntry(sample, text) for sample, text, _, _ in lower])
    values = _Values.of_bytes(1.03 * max(timeline.bytes_per_second), "read", "/s")
    bottom = HEIGHT - 58
    upper = Frame(max(values.room(), 70.0), legend.height + 8, WIDTH - 24, bottom - (_LOWER + _APART if lower else 0))
    along = Scale(0.0, timeline.seconds, upper.left, upper.right)
    _area(canvas, upper, along, values.draw(canvas, upper), timeline.bytes_per_second, "half", timeline)
    canvas.line((upper.left, upper.bottom), (upper.right, upper.bottom), "axis")
    frame = upper
    if lower:
        frame = Frame(upper.left, bottom - _LOWER, upper.right, bottom)
        scale = _Values(1.03 * len(character.ranks), "ranks").draw(canvas, frame, few=True)
        for _, _, amounts, css in lower:
            _area(canvas, frame, along, scale, amounts, css, timeline)
    _draw_time_axis(canvas, frame, along, timeline)
    for start in list(timeline.epoch_starts.values())[1:_MOST_EPOCHS]:
        canvas.line((along(start), upper.top), (along(start), frame.bottom), "grid")
    legend.draw(canvas)
    return Figure(NAMES[2], title, caption, canvas.to_text())


def _lower(timeline: Timeline) -> list[tuple[Sample, str, tuple[float, ...], str]]:
    """Sample, text, values and looks of what is below: nothing where nobody computed, since then all wait."""
    lines: list[tuple[Sample, str, tuple[float, ...], str]] = []
    if timeline.computing and max(timeline.computing) > 0:
        lines.append((box("tier2 pale"), "computing", timeline.computing, "tier2 pale"))
        if timeline.stalled:
            lines.append((stroke("curve later1"), "waiting for data", timeline.stalled, "curve later1"))
    return lines


def _area(
    canvas: Canvas, frame: Frame, along: Scale, scale: Scale, amounts: Sequence[float], css: str, timeline: Timeline
) -> None:
    """A step for every bin; a curve is not closed."""
    width = timeline.bin_seconds
    places = [(along((place + side) * width), scale(amount)) for place, amount in enumerate(amounts) for side in (0, 1)]
    if css.startswith("curve"):
        canvas.path(places, css)
    else:
        canvas.path([(frame.left, frame.bottom), *places, (frame.right, frame.bottom)], css, closed=True)


def _draw_time_axis(canvas: Canvas, frame: Frame, along: Scale, timeline: Timeline) -> None:
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    factor, unit = (1.0, "s") if timeline.seconds >= 1 else (1e-3, "ms") if timeline.seconds >= 1e-3 else (1e-6, "µs")
    for tick in nice_ticks(timeline.seconds / factor):
        place = along(tick * factor)
        canvas.line((place, frame.bottom), (place, frame.bottom + 4), "axis")
        canvas.text(place, frame.bottom + 20, f"{tick:.6g}", "tick middle")
    canvas.text((frame.left + frame.right) / 2, HEIGHT - 9, f"time ({unit})", "middle")


def _hidden(character: Character) -> Figure | None:
    """Bars of every epoch: all ranks, and the slowest."""
    hidden = character.hidden
    if hidden.share is None or not hidden.slowest or not hidden.share:
        return None
    epochs = [rank.epoch for rank in hidden.slowest][:_MOST_EPOCHS]
    means = {epoch: weighted([rank for rank in hidden.by_rank if rank.epoch == epoch]) or 0.0 for epoch in epochs}
    slowest = {rank.epoch: rank for rank in hidden.slowest}
    title = "I/O hidden behind compute"
    caption = (
        f"Share of the I/O wall seconds during which training did not wait for data: {100 * hidden.share:.1f} % over all ranks."
        + (
            f" Of {len(hidden.slowest)} epochs, the first {len(epochs)} are drawn."
            if len(epochs) < len(hidden.slowest)
            else ""
        )
    )
    canvas = Canvas(NAMES[3], title, caption)
    legend = Legend([LegendEntry(box("bar tier0"), "all ranks"), LegendEntry(box("bar tier1"), "slowest rank")])
    values = _Values(103.0, "hidden (%)")
    frame = Frame(values.room(), legend.height + 8, WIDTH - 24, HEIGHT - 58)
    scale = values.draw(canvas, frame)
    axis = SweptAxis.of("", epochs, frame.left, frame.right)
    width = min(0.38 * axis.pitch, 40.0)
    for place, epoch in zip(axis.places, epochs, strict=True):
        rank = slowest[epoch]
        pairs = ((means[epoch], "all ranks"), (rank.share, f"slowest, rank {rank.rank}"))
        for side, (share, who) in enumerate(pairs):
            top = scale(100 * share)
            tip = f"epoch {epoch}, {who}: {100 * share:.1f} %"
            canvas.rect(place + (side - 1) * width, top, width, frame.bottom - top, f"bar tier{side}", tip)
    draw_x_axis(canvas, frame, axis, "epoch")
    legend.draw(canvas)
    return Figure(NAMES[3], title, caption, canvas.to_text())
