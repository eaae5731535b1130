"""Figures 2 and 3: where the time goes, as measured and as estimated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierscope.analysis.breakdown import SweepPoint, sweep_text
from tierscope.report.drawn.looks import MARKS_FROM, box, class_marks, draw_whisker, stroke
from tierscope.report.drawn.view import (
    Figure,
    SecondsAxis,
    View,
    brief,
    class_text,
    epochs_text,
    improvements_text,
    kind_text,
    processes_text,
    sentences,
    shown_epochs,
    too_little,
)
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


def draw_breakdown(source: ReportSource, view: View) -> Figure:
    title = f"Where the I/O time of the slowest process goes{view.where}"
    bars = _Bars(source, view, view.points)
    if missing := too_little(bars.longest):
        return Figure("breakdown", title, sentences(source, view), None, missing)
    top = bars.top()
    goal = _io_goal(source)
    shown = goal is not None and goal <= top
    best = source.breakdown.best
    caption = sentences(
        source,
        view,
        f"I/O time of the slowest of {processes_text(source)} by class ({source.breakdown.basis} seconds), "
        f"median over {epochs_text(shown_epochs(source))} ({_spread_text(view.points)}).",
        f"The triangle marks the best: {brief(sweep_text(best.sweep), 80)} with {about_seconds(best.io.median)}."
        if _marks_best(source, view)
        else "",
        f"The dashed line is the goal, {about_seconds(goal)}." if goal is not None and shown else "",
        f"The goal, {about_seconds(goal)}, is above all of it." if goal is not None and not shown else "",
        _not_to_scale(view, bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
    )
    canvas = Canvas("breakdown", title, caption)
    entries = [*bars.entries(canvas, {})]
    if _marks_best(source, view):
        entries.append(LegendEntry(_triangle("best"), f"best: {_short_value(view, best)}"))
    if goal is not None and shown:
        entries.append(LegendEntry(stroke("goal"), f"goal: {about_seconds(goal)}"))
    legend = Legend(entries)
    seconds = SecondsAxis(top)
    frame = seconds.frame(legend, _BELOW)
    scale = seconds.draw(canvas, frame, "I/O time")
    bars.draw(canvas, frame, scale)
    if goal is not None and shown:
        canvas.line((frame.left, scale(goal)), (frame.right, scale(goal)), "goal")
    axis = bars.axis(frame)
    draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
    if _marks_best(source, view):
        _mark_best(canvas, frame, axis, view, best, "best", 5.0)
    legend.draw(canvas)
    return Figure("breakdown", title, caption, canvas.to_text())


def draw_estimate(source: ReportSource, view: View) -> Figure:
    estimate = source.estimate
    improved = improvements_text(estimate.improvements) or "nothing improved"
    title = f"Estimate with {improved}{view.where}"
    after = {id(point): _same(estimate.after.summary, point) for point in view.points}
    bars = _Bars(source, view, tuple(after.values()))
    measured = _Bars(source, view, view.points)
    if missing := too_little(measured.longest, bars.longest):
        return Figure("estimate", title, sentences(source, view), None, missing)
    now, then, came = source.breakdown.best, estimate.after.best, source.conditions.came
    inside = any(point.sweep == then.sweep for point in view.points)
    caption = sentences(
        source,
        view,
        f"I/O time of the slowest of {processes_text(source)} by class if there were {improved}: an estimate by scaling the {came} times of "
        f"every process, no measurement; median over {epochs_text(shown_epochs(source))} ({_spread_text(bars.points)}). Outlines: as {came}.",
        f"Best: {brief(sweep_text(then.sweep), 80)} with {about_seconds(then.io.median)} (filled triangle{'' if inside else ', not in this slice'}); "
        f"as {came}: {brief(sweep_text(now.sweep), 80)} with {about_seconds(now.io.median)} (hollow)."
        if _marks_best(source, view)
        else f"{about_seconds(then.io.median)} instead of {about_seconds(now.io.median)}.",
        _not_to_scale(view, bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
    )
    canvas = Canvas("estimate", title, caption)
    entries = [*bars.entries(canvas, estimate.improvements), LegendEntry(box("outline"), came)]
    if _marks_best(source, view):
        entries.append(LegendEntry(_triangle("former"), f"best {came}: {_short_value(view, now)}"))
        entries += [LegendEntry(_triangle("best"), f"best: {_short_value(view, then)}")] if inside else []
    legend = Legend(entries)
    seconds = SecondsAxis(max(measured.top(), bars.longest))
    frame = seconds.frame(legend, _BELOW)
    scale = seconds.draw(canvas, frame, "estimated I/O time")
    measured.outline(canvas, frame, scale)
    bars.draw(canvas, frame, scale)
    axis = bars.axis(frame)
    draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
    if _marks_best(source, view):
        _mark_best(canvas, frame, axis, view, now, "former", 7.0)
        _mark_best(canvas, frame, axis, view, then, "best", 4.0)
    legend.draw(canvas)
    return Figure("estimate", title, caption, canvas.to_text())


def _same(points: Sequence[SweepPoint], wanted: SweepPoint) -> SweepPoint:
    return next(point for point in points if point.sweep == wanted.sweep)


def _short_value(view: View, point: SweepPoint) -> str:
    return fit(label(view.key, point.sweep[view.key]), 90) if view.key else ""


def _spread_text(points: Sequence[SweepPoint]) -> str:
    kinds = {(point.io.n, point.io.kind) for point in points}
    if len(kinds) == 1:
        n, kind = kinds.pop()
        shown = f"; whiskers: {kind_text(kind)}" if points[0].io.has_spread else ""
        return f"n = {n}{shown}"
    sizes = sorted({n for n, _ in kinds})
    return f"n = {sizes[0]} to {sizes[-1]}; whiskers: the range of fewer than six values, else a 95 % interval"


def _not_to_scale(view: View, axis: SweptAxis) -> str:
    return f"Values of {view.axis_title} are not spaced to scale." if axis.joined and not axis.to_scale else ""


@dataclass(frozen=True, slots=True)
class _Bars:
    """Stacked classes at every point; writes are no part of the I/O time."""

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
