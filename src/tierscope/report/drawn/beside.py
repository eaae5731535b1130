"""Figure 6, where another result is laid beside: both times over the sweep."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tierscope.analysis.beside import Beside
from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import SIMULATED, Interval, settled
from tierscope.report.beside import error_text, full_names, headings, title_of
from tierscope.report.drawn.looks import MARKS_FROM, box, draw_whisker
from tierscope.report.drawn.view import Figure, SecondsAxis, View, brief, kind_text, sentences, too_little
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import SAMPLE, WIDTH, Canvas, Legend, LegendEntry, Scale, SweptAxis, draw_x_axis, fit
from tierscope.units import about_seconds

_NAME = "beside"
_HUES = (0, 5)  # of `later0` and `later1`


def draw_beside(source: ReportSource, beside: Beside) -> Figure:
    """In the slice with the first's best common point; what is simulated has a band, what is measured whiskers."""
    common, view = _common(source, beside)
    short, full = headings(beside), full_names(beside)
    title = f"{title_of(beside)}{view.where}"
    note = " · ".join(
        part for part in (sweep_text(view.others) if view.others else "", f"{full[0]} beside {full[1]}") if part
    )
    if view.key is None:
        one = len(beside.points) == 1
        why = "there is but one common point" if one else "no two common points differ in one swept key alone"
        return Figure(_NAME, title, sentences(common, view), None, f"{why}, so there is nothing to draw against", note)
    seconds = {id(point.first): point.second for point in beside.points}
    lines = [
        _Line(0, full[0], tuple(point.io for point in view.points)),
        _Line(1, full[1], tuple(seconds[id(point)].io for point in view.points)),
    ]
    longest = max(one.high for line in lines for one in line.values)
    if missing := too_little(longest):
        return Figure(_NAME, title, sentences(common, view), None, missing, note)
    caption = sentences(
        common,
        view,
        f"Circles: {brief(full[0], 80)}; hollow squares: {brief(full[1], 80)}.",
        *(line.spread_text(name) for line, name in zip(lines, short, strict=True)),
    )
    canvas = Canvas(_NAME, title, caption)
    legend = Legend([entry for line in lines for entry in line.entries()])
    axis_of_seconds = SecondsAxis(longest * 1.03)
    frame = axis_of_seconds.frame(legend)
    scale = axis_of_seconds.draw(canvas, frame, "I/O time")
    axis = view.axis(frame, to_scale=view.key == "cache_rate")
    draw_x_axis(canvas, frame, axis, view.axis_title)
    for line in lines:
        line.draw_band(canvas, axis, scale)
    errors = {id(point.first): error_text(point.error_percent) for point in beside.points}
    tips = [f", error {errors[id(point)]}" for point in view.points]
    for line, more in zip(reversed(lines), (tips, [""] * len(tips)), strict=True):
        line.draw(canvas, axis, scale, view.texts(), more)
    legend.draw(canvas)
    return Figure(_NAME, title, caption, canvas.to_text(), note=note)


def _common(source: ReportSource, beside: Beside) -> tuple[ReportSource, View]:
    """The first as if it had only the common points; labels are those of both, so it has none of its own."""
    points = tuple(point.first for point in beside.points)
    best = min(points, key=lambda point: settled(point.io.median))
    breakdown = replace(source.breakdown, summary=points, best=best)
    common = replace(source, breakdown=breakdown, conditions=Conditions())
    return common, View.of(common)


@dataclass(frozen=True, slots=True)
class _Line:
    """One of the two results over the sweep."""

    index: int
    text: str
    values: tuple[Interval, ...]

    @property
    def css(self) -> str:
        return f"later{self.index}"

    @property
    def radius(self) -> float:
        """The second's marks are around the first's, where both are at the same place."""
        return 6.2 if self.index else 3.8

    @property
    def filling(self) -> str:
        return "whole" if self.index else "io"

    @property
    def band(self) -> str:
        return f"tier{_HUES[self.index]} pale"

    @property
    def simulated(self) -> bool:
        return all(one.kind == SIMULATED for one in self.values)

    def spread_text(self, name: str) -> str:
        """What its vertical extent means."""
        counts = sorted({one.n for one in self.values})
        n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        if self.simulated:
            return f"Area ({name}): {kind_text(SIMULATED)}."
        kinds = {one.kind for one in self.values if one.n > 1}
        if not kinds:
            return f"n = 1 of each point ({name})."
        what = kind_text(kinds.pop()).removeprefix("their ") if len(kinds) == 1 else "range or interval"
        return f"Vertical bars ({name}): {what} (n = {n})."

    def entries(self) -> Iterator[LegendEntry]:
        def sample(canvas: Canvas, x: float, y: float) -> None:
            canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample curve io {self.css}")
            canvas.marker(self.index, (x, y), self.radius, f"sample mark {self.filling} {self.css}")

        yield LegendEntry(sample, fit(self.text, WIDTH - 2 * SAMPLE - 40))
        if self.simulated:
            yield LegendEntry(box(self.band), "its 90 % interval")

    def draw_band(self, canvas: Canvas, axis: SweptAxis, scale: Scale) -> None:
        if not self.simulated:
            return
        if axis.joined:
            highs, lows = ([one.high for one in self.values], [one.low for one in self.values])
            there = [*zip(axis.places, highs, strict=True)]
            back = [*zip(axis.places, lows, strict=True)]
            canvas.path([(x, scale(y)) for x, y in [*there, *reversed(back)]], self.band, closed=True)
            return
        width = min(0.5 * axis.pitch, 50.0)
        for place, one in zip(axis.places, self.values, strict=True):
            top = scale(one.high)
            canvas.rect(place - width / 2, top, width, scale(one.low) - top, self.band)

    def draw(self, canvas: Canvas, axis: SweptAxis, scale: Scale, where: Sequence[str], more: Iterable[str]) -> None:
        places = [(x, scale(one.median)) for x, one in zip(axis.places, self.values, strict=True)]
        if axis.joined:
            canvas.path(places, f"curve io {self.css}")
        marked = axis.pitch >= MARKS_FROM or not axis.joined
        for place, one, text, end in zip(places, self.values, where, more, strict=True):
            if one.n > 1 and one.kind != SIMULATED:
                draw_whisker(canvas, place[0], scale, one, self.css, 3.0)
            if marked:
                tip = f"{text}{self.text} {about_seconds(one.median)}{end}"
                canvas.marker(self.index, place, self.radius, f"mark {self.filling} {self.css}", tip)
