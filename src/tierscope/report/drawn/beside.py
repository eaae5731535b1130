"""Figure 6, where other results are laid beside: the times of all of them over the sweep."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tierscope.analysis.beside import Beside, ComparedResult
from tierscope.analysis.breakdown import Breakdown, SweepPoint, sweep_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import SIMULATED, Interval, settled
from tierscope.jsonable import point_key
from tierscope.report.beside import error_text, full_names, headings, names_of, what_of
from tierscope.report.drawn.looks import MARKS_FROM, box, draw_whisker
from tierscope.report.drawn.panels import Panel, drawn_parts, figure_of_panels
from tierscope.report.drawn.view import Figure, SecondsAxis, View, brief, kind_text, too_little
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import SAMPLE, WIDTH, Canvas, LegendEntry, Scale, SweptAxis, draw_x_axis, fit
from tierscope.units import about_seconds, counted

_HUES = (0, 5, 2, 3, 1)  # of `later0` and the others
_MOST_LINES = 5  # that can still be told apart


def draw_beside(source: ReportSource) -> Figure:
    """Of the points that all have and that can be compared; what is simulated has a band, what is measured whiskers."""
    besides = source.besides[: _MOST_LINES - 1]
    common = _common(source, besides)
    full = full_names(_sides(besides))
    if common is None:
        title = _title(besides)
        return Figure(
            "beside",
            title,
            "",
            None,
            f"not comparable: {_apart(besides)}" if _apart(besides) else "they have no common point",
        )
    figure = figure_of_panels(BesidePanel, common)
    parts = drawn_parts(common)
    others = View.of(parts[0]).others if len(parts) == 1 else {}
    note = " · ".join(part for part in (sweep_text(others) if others else "", " versus ".join(full)) if part)
    left = len(source.besides) - len(besides)
    more = f" {counted(left, 'further result')} not drawn: more lines would be indistinguishable." if left else ""
    return replace(figure, note=note, caption=f"{figure.caption}{more}")


def _title(besides: Sequence[Beside]) -> str:
    names = headings(besides[0]) if len(besides) == 1 else names_of(_sides(besides))
    return f"I/O time of the slowest process, {' versus '.join(names)}"


def _sides(besides: Sequence[Beside]) -> list[ComparedResult]:
    return [besides[0].first, *(beside.second for beside in besides)]


def _key(point: SweepPoint) -> Any:
    return point_key(point.sweep)


def _apart(besides: Sequence[Beside]) -> str:
    return next((point.apart for beside in besides for point in beside.points if point.apart), "")


def _common(source: ReportSource, besides: Sequence[Beside]) -> ReportSource | None:
    """The first as if it had only the common points; labels are those of all, so it has none of its own. None: there are none."""
    shared = set.intersection(*({_key(point.first) for point in beside.compared} for beside in besides))
    if not shared:
        return None
    parts = [
        replace(part, breakdown=common)
        for part in source.parts
        if (common := _only(part.breakdown, shared)) is not None
    ]
    breakdown = _only(source.breakdown, shared)
    assert breakdown is not None
    return replace(
        source, breakdown=breakdown, parts=tuple(parts or source.parts), conditions=Conditions(), besides=tuple(besides)
    )


def _only(breakdown: Breakdown, shared: set[Any]) -> Breakdown | None:
    groups = []
    for group in breakdown.groups:
        points = tuple(point for point in group.points if _key(point) in shared)
        if points:
            groups.append(replace(group, points=points, best=min(points, key=lambda point: settled(point.io.median))))
    if not groups:
        return None
    summary = tuple(point for point in breakdown.summary if _key(point) in shared)
    best = min(summary, key=lambda point: settled(point.io.median)) if len(groups) == 1 else groups[0].best
    return replace(breakdown, summary=summary, best=best, groups=tuple(groups))


@dataclass(frozen=True, slots=True)
class BesidePanel(Panel):
    """A line for each result."""

    name: ClassVar[str] = "beside"

    @property
    def title(self) -> str:
        return _title(self.source.besides)

    @property
    def missing(self) -> str:
        if self.view.key is None:
            return "only one common point, so there is nothing to plot"
        return too_little(self._longest)

    @property
    def _longest(self) -> float:
        return max(value.high for line in self._lines() for value in line.values)

    @property
    def top(self) -> float:
        return self._longest * 1.03

    def _lines(self) -> "list[_Line]":
        besides = self.source.besides
        full = full_names(_sides(besides))
        lines = [_Line(0, full[0], tuple(point.io for point in self.view.points))]
        for index, beside in enumerate(besides, start=1):
            seconds = {_key(point.first): point.second for point in beside.points}
            lines.append(_Line(index, full[index], tuple(seconds[_key(point)].io for point in self.view.points)))
        return lines

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        del whole, among
        lines, besides = self._lines(), self.source.besides
        short = headings(besides[0]) if len(besides) == 1 else names_of(_sides(besides))
        apart = sum(bool(point.apart) for beside in besides for point in beside.points)
        shapes = (
            "Circles",
            "hollow squares",
            "hollow triangles",
            "hollow diamonds",
            "hollow downward triangles",
        )
        return [
            f"{'; '.join(f'{shape}: {brief(line.text, 80)}' for shape, line in zip(shapes, lines, strict=False))}.",
            *(line.spread_text(name) for line, name in zip(lines, short, strict=True)),
            "Points that are not comparable are not drawn." if apart else "",
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        del canvas, among
        several = len(self.source.besides) > 1
        return [entry for line in self._lines() for entry in line.entries(several)]

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        seconds, view, lines = SecondsAxis(top), self.view, self._lines()
        frame = seconds.frame(head, size=canvas.size)
        scale = seconds.draw(canvas, frame, "I/O time")
        axis = view.axis(frame, to_scale=view.key == "cache_rate")
        draw_x_axis(canvas, frame, axis, view.axis_title)
        for line in lines:
            line.draw_band(canvas, axis, scale)
        for line in reversed(lines):
            line.draw(canvas, axis, scale, view.texts(), self._tips(line.index))

    def _tips(self, index: int) -> list[str]:
        if not index:
            return [""] * len(self.view.points)
        beside = self.source.besides[index - 1]
        errors = {_key(point.first): error_text(point.error_percent) for point in beside.points}
        return [f", {what_of(beside)} {errors[_key(point)]}" for point in self.view.points]


@dataclass(frozen=True, slots=True)
class _Line:
    """One of the results over the sweep."""

    index: int
    text: str
    values: tuple[Interval, ...]

    @property
    def css(self) -> str:
        return f"later{self.index}"

    @property
    def radius(self) -> float:
        """The others' marks are around the first's, where they are at the same place."""
        return 6.2 if self.index else 3.8

    @property
    def filling(self) -> str:
        return "whole" if self.index else "io"

    @property
    def band(self) -> str:
        return f"tier{_HUES[self.index]} pale"

    @property
    def simulated(self) -> bool:
        return all(value.kind == SIMULATED for value in self.values)

    def spread_text(self, name: str) -> str:
        """What its vertical extent means."""
        counts = sorted({value.n for value in self.values})
        n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        if self.simulated:
            return f"Area ({name}): {kind_text(SIMULATED)}."
        kinds = {value.kind for value in self.values if value.n > 1}
        if not kinds:
            return f"n = 1 of each point ({name})."
        what = kind_text(kinds.pop()).removeprefix("their ") if len(kinds) == 1 else "range or interval"
        return f"Vertical bars ({name}): {what} (n = {n})."

    def entries(self, several: bool) -> Iterator[LegendEntry]:
        def sample(canvas: Canvas, x: float, y: float) -> None:
            canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample curve io {self.css}")
            canvas.marker(self.index, (x, y), self.radius, f"sample mark {self.filling} {self.css}")

        yield LegendEntry(sample, fit(self.text, WIDTH - 2 * SAMPLE - 40))
        if self.simulated:
            whose = f"90 % interval of {brief(self.text, 40)}" if several else "its 90 % interval"
            yield LegendEntry(box(self.band), whose)

    def draw_band(self, canvas: Canvas, axis: SweptAxis, scale: Scale) -> None:
        if not self.simulated:
            return
        if axis.joined:
            highs, lows = ([value.high for value in self.values], [value.low for value in self.values])
            there = [*zip(axis.places, highs, strict=True)]
            back = [*zip(axis.places, lows, strict=True)]
            canvas.path([(x, scale(y)) for x, y in [*there, *reversed(back)]], self.band, closed=True)
            return
        width = min(0.5 * axis.pitch, 50.0)
        for place, value in zip(axis.places, self.values, strict=True):
            top = scale(value.high)
            canvas.rect(place - width / 2, top, width, scale(value.low) - top, self.band)

    def draw(self, canvas: Canvas, axis: SweptAxis, scale: Scale, where: Sequence[str], more: Iterable[str]) -> None:
        places = [(x, scale(value.median)) for x, value in zip(axis.places, self.values, strict=True)]
        if axis.joined:
            canvas.path(places, f"curve io {self.css}")
        marked = axis.pitch >= MARKS_FROM or not axis.joined
        for place, value, text, end in zip(places, self.values, where, more, strict=True):
            if value.n > 1 and value.kind != SIMULATED:
                draw_whisker(canvas, place[0], scale, value, self.css, 3.0)
            if marked:
                tip = f"{text}{self.text} {about_seconds(value.median)}{end}"
                canvas.marker(self.index, place, self.radius, f"mark {self.filling} {self.css}", tip)
