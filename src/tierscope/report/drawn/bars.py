"""Figures 2 and 3: where the time goes, as measured and as estimated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tierscope.analysis.breakdown import SweepPoint, sweep_text
from tierscope.analysis.cases import without_case
from tierscope.jsonable import point_key
from tierscope.report.drawn.looks import MARKS_FROM, box, class_marks, draw_whisker, stroke
from tierscope.report.drawn.panels import Panel
from tierscope.report.drawn.view import (
    SecondsAxis,
    View,
    brief,
    class_text,
    epochs_text,
    improvements_text,
    kind_text,
    processes_text,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    HEIGHT,
    WIDTH,
    Canvas,
    Frame,
    LegendEntry,
    Sample,
    Scale,
    SweptAxis,
    draw_x_axis,
    fit,
    label,
)
from tierscope.spec.goal import IO
from tierscope.units import about_seconds

_BELOW = 14.0  # between axis and labels: where the best point is marked


def _io_goal(source: ReportSource) -> float | None:
    """Seconds of I/O that are the goal; None: nobody gave one, or it is about something else than these bars."""
    goal = source.exploration.goal
    return goal.value if source.goal_given and goal.kind == IO else None


def _marks_best(source: ReportSource, view: View) -> bool:
    """Where points are ranked at all: not over different amounts of data."""
    return view.key is not None and len(source.breakdown.groups) == 1


@dataclass(frozen=True, slots=True)
class BreakdownPanel(Panel):
    """Stacked classes of the slowest process."""

    name: ClassVar[str] = "breakdown"

    @property
    def title(self) -> str:
        return "Where the I/O time of the slowest process goes"

    @property
    def _bars(self) -> "_Bars":
        return _Bars(self.source, self.view, self.view.points)

    @property
    def missing(self) -> str:
        return too_little(self._bars.longest)

    @property
    def top(self) -> float:
        return self._bars.top()

    @property
    def own(self) -> str:
        best = self.source.breakdown.best
        where = brief(sweep_text(without_case(best.sweep)), 80)
        return f"{where} with {about_seconds(best.io.median)}" if _marks_best(self.source, self.view) else ""

    @property
    def mark(self) -> str:
        view = self.view
        return f" · best {_short_value(view, self.source.breakdown.best)}" if _marks_best(self.source, view) else ""

    def what(self, whole: ReportSource) -> str:
        """What bars and whiskers are, without what a page changes while it is read."""
        return (
            f"I/O time of the slowest of {processes_text(whole)} by class ({self.source.breakdown.basis} seconds), "
            f"median over {epochs_text(shown_epochs(whole))} ({_spread_text(self.view.points)})."
        )

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        source, view, best = self.source, self.view, self.source.breakdown.best
        goal, marked = _io_goal(source), _marks_best(source, view)
        shown = goal is not None and goal <= self.top
        triangle = (
            f"The triangle marks the best: {brief(sweep_text(best.sweep), 80)} with {about_seconds(best.io.median)}."
        )
        return [
            self.what(whole),
            "" if not marked else "Triangles mark the best of each panel." if among else triangle,
            f"The dashed line is the goal, {about_seconds(goal)}." if goal is not None and (shown or among) else "",
            f"The goal, {about_seconds(goal)}, is above all values."
            if goal is not None and not shown and not among
            else "",
            _not_to_scale(view, self._bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        source, view, goal = self.source, self.view, _io_goal(self.source)
        entries = [*self._bars.entries(canvas, {})]
        if _marks_best(source, view):
            where = "" if among else f": {_short_value(view, source.breakdown.best)}"
            entries.append(LegendEntry(_triangle("best"), f"best{where}"))
        if goal is not None and goal <= self.top:
            entries.append(LegendEntry(stroke("goal"), f"goal: {about_seconds(goal)}"))
        return entries

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        source, view, bars, goal = self.source, self.view, self._bars, _io_goal(self.source)
        seconds = SecondsAxis(top)
        frame = seconds.frame(head, _BELOW, canvas.size)
        scale = seconds.draw(canvas, frame, "I/O time")
        bars.draw(canvas, frame, scale)
        if goal is not None and goal <= top:
            canvas.line((frame.left, scale(goal)), (frame.right, scale(goal)), "goal")
        axis = bars.axis(frame)
        draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
        if _marks_best(source, view):
            _mark_best(canvas, frame, axis, view, source.breakdown.best, "best", 5.0)


@dataclass(frozen=True, slots=True)
class EstimatePanel(Panel):
    """The same after improvements, with what was measured as outlines."""

    name: ClassVar[str] = "estimate"

    @property
    def _improved(self) -> str:
        return improvements_text(self.source.estimate.improvements) or "nothing improved"

    @property
    def title(self) -> str:
        return f"Estimate with {self._improved}"

    @property
    def _measured(self) -> "_Bars":
        return _Bars(self.source, self.view, self.view.points)

    @property
    def _after(self) -> list[SweepPoint]:
        return [point for part in self.source.parts for point in part.estimate.after.summary]

    @property
    def _bars(self) -> "_Bars":
        after = {point_key(point.sweep): point for point in self._after}
        return _Bars(self.source, self.view, tuple(after[point_key(point.sweep)] for point in self.view.points))

    @property
    def missing(self) -> str:
        if len(self._after) < len(self.source.breakdown.summary):
            return "too many groups of points with different amounts of data"
        return too_little(self._measured.longest, self._bars.longest)

    @property
    def top(self) -> float:
        return max(self._measured.top(), self._bars.longest)

    @property
    def _is_inside(self) -> bool:
        """Whether the best point then is drawn."""
        then = self.source.estimate.after.best
        return any(point.sweep == then.sweep for point in self.view.points)

    @property
    def own(self) -> str:
        now, then = self.source.breakdown.best, self.source.estimate.after.best
        where = brief(sweep_text(without_case(then.sweep)), 80)
        return f"{where} with {about_seconds(then.io.median)} instead of {about_seconds(now.io.median)}"

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        source, view = self.source, self.view
        now, then, came = source.breakdown.best, source.estimate.after.best, source.conditions.came
        best = (
            f"Best: {brief(sweep_text(then.sweep), 80)} with {about_seconds(then.io.median)} (filled triangle{'' if self._is_inside else ', not in this slice'}); "
            f"as {came}: {brief(sweep_text(now.sweep), 80)} with {about_seconds(now.io.median)} (hollow)."
            if _marks_best(source, view)
            else f"{about_seconds(then.io.median)} instead of {about_seconds(now.io.median)}."
        )
        return [
            f"I/O time of the slowest of {processes_text(whole)} by class with {self._improved}: an estimate by scaling the {came} times of "
            f"every process, not a measurement; median over {epochs_text(shown_epochs(whole))} ({_spread_text(self._bars.points)}). Outlines: as {came}.",
            f"Triangles: the best of the estimate (filled) and as {came} (hollow)." if among else best,
            _not_to_scale(view, self._bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        source, view, came = self.source, self.view, self.source.conditions.came
        entries = [*self._bars.entries(canvas, source.estimate.improvements), LegendEntry(box("outline"), came)]
        if _marks_best(source, view):
            now, then = (
                "" if among else f": {_short_value(view, point)}"
                for point in (source.breakdown.best, source.estimate.after.best)
            )
            entries.append(LegendEntry(_triangle("former"), f"best {came}{now}"))
            entries += [LegendEntry(_triangle("best"), f"best{then}")] if self._is_inside else []
        return entries

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        source, view, bars = self.source, self.view, self._bars
        seconds = SecondsAxis(top)
        frame = seconds.frame(head, _BELOW, canvas.size)
        scale = seconds.draw(canvas, frame, "estimated I/O time")
        self._measured.outline(canvas, frame, scale)
        bars.draw(canvas, frame, scale)
        axis = bars.axis(frame)
        draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
        if _marks_best(source, view):
            _mark_best(canvas, frame, axis, view, source.breakdown.best, "former", 7.0)
            _mark_best(canvas, frame, axis, view, source.estimate.after.best, "best", 4.0)


def _short_value(view: View, point: SweepPoint) -> str:
    return fit(label(view.key, view.value_of(point)), 150 if view.joint else 90) if view.key else ""


def _spread_text(points: Sequence[SweepPoint]) -> str:
    kinds = {(point.io.n, point.io.kind) for point in points}
    if len(kinds) == 1:
        n, kind = kinds.pop()
        shown = f"; whiskers: {kind_text(kind)}" if points[0].io.has_spread else ""
        return f"n = {n}{shown}"
    sizes = sorted({n for n, _ in kinds})
    return f"n = {sizes[0]} to {sizes[-1]}; whiskers: the range for fewer than six values, otherwise a 95 % interval"


def _not_to_scale(view: View, axis: SweptAxis) -> str:
    return f"Values of {view.axis_title} are not spaced to scale." if axis.joined and not axis.to_scale else ""


@dataclass(frozen=True, slots=True)
class _Bars:
    """Stacked classes at every point."""

    source: ReportSource
    view: View
    points: tuple[SweepPoint, ...]

    @property
    def longest(self) -> float:
        return max(point.io.high for point in self.points)

    def top(self) -> float:
        """Of the scale: a goal is shown unless it would squeeze the bars."""
        goal = _io_goal(self.source) or 0.0
        return 1.04 * max(self.longest, goal if goal <= 2 * self.longest else 0.0)

    def marks(self) -> list[tuple[str, int, bool]]:
        classes = self.source.processes.classes
        return [mark for mark in class_marks(self.source.breakdown.classes) if mark[0] in classes]

    def axis(self, frame: Frame) -> SweptAxis:
        return self.view.axis(frame)

    def width(self, axis: SweptAxis) -> float:
        return min(0.78 * axis.pitch, 72.0)

    def entries(self, canvas: Canvas, improved: Mapping[str, float]) -> Iterator[LegendEntry]:
        for name, hue, hatched in self.marks():
            more = f" {improved[name]:+g} %" if name in improved else ""
            css, fill = _bar_style(canvas, hue, hatched)
            yield LegendEntry(box(css, fill), f"{class_text(name)}{more}")

    def draw(self, canvas: Canvas, frame: Frame, scale: Scale) -> None:
        axis = self.axis(frame)
        width = self.width(axis)
        for place, point, text in zip(axis.places, self.points, self.view.texts(), strict=True):
            foot = 0.0
            for name, hue, hatched in self.marks():
                seconds = point.classes[name]
                if seconds > 0:
                    css, fill = _bar_style(canvas, hue, hatched)
                    top, bottom = scale(foot + seconds), scale(foot)
                    tip = f"{text}{brief(name, 60)} {about_seconds(seconds)} of {about_seconds(point.io.median)}"
                    canvas.rect(place - width / 2, top, width, bottom - top, css, tip, fill)
                    foot += seconds
            if point.io.has_spread and point.io.high > point.io.low:
                roomy = axis.pitch >= MARKS_FROM
                draw_whisker(canvas, place, scale, point.io, "" if roomy else "fine", 4.0 if roomy else 0.0)

    def outline(self, canvas: Canvas, frame: Frame, scale: Scale) -> None:
        axis = self.axis(frame)
        width = self.width(axis)
        for place, point, text in zip(axis.places, self.points, self.view.texts(), strict=True):
            top = scale(point.io.median)
            tip = f"{text}{self.source.conditions.came} {about_seconds(point.io.median)}"
            canvas.rect(place - width / 2, top, width, frame.bottom - top, "outline", tip)


def _bar_style(canvas: Canvas, hue: int, hatched: bool) -> tuple[str, str]:
    """CSS classes, and the id of the hatching if there is one."""
    return (f"bar edge{hue}", canvas.hatch(hue)) if hatched else (f"bar edge{hue} tier{hue}", "")


def _mark_best(
    canvas: Canvas, frame: Frame, axis: SweptAxis, view: View, best: SweepPoint, css: str, radius: float
) -> None:
    """Under the axis, where no bar is in the way."""
    for place, point in zip(axis.places, view.points, strict=True):
        if point.sweep == best.sweep:
            canvas.marker(2, (place, frame.bottom + 11), radius, css, f"best: {about_seconds(best.io.median)}")


def _triangle(css: str) -> Sample:
    return lambda canvas, x, y: canvas.marker(2, (x, y + 1), 6.0, f"sample {css}")
