"""Figure 5: the distribution of times over processes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tierscope.predict.hull import Floats
from tierscope.report.drawn.looks import MARKS_FROM, box, stroke
from tierscope.report.drawn.view import (
    Figure,
    SecondsAxis,
    View,
    epochs_text,
    nothing_swept,
    processes_text,
    sentences,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import Canvas, Legend, LegendEntry, Scale, SweptAxis, draw_x_axis
from tierscope.units import about_seconds


def draw_processes(source: ReportSource, view: View) -> Figure:
    title = f"I/O time over all processes{view.where}"
    if view.key is None:
        return Figure("processes", title, sentences(source, view), None, nothing_swept(source))
    pooled = [_pooled(source, point.sweep) for point in view.points]
    quantiles = np.array([np.quantile(times, (0.0, 0.25, 0.5, 0.75, 1.0)) for times in pooled])
    longest = float(quantiles.max())
    if missing := too_little(longest):
        return Figure("processes", title, sentences(source, view), None, missing)
    sizes = sorted({len(times) for times in pooled})
    n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    caption = sentences(
        source,
        view,
        f"I/O time of {processes_text(source)} in {epochs_text(shown_epochs(source))}, all runs together (n = {n} at each point): "
        "the lightest area holds all of them, the darker one the middle half, the thick line is the median and the line with dots the slowest.",
    )
    canvas = Canvas("processes", title, caption)
    legend = Legend(list(_quantile_entries()))
    seconds = SecondsAxis(longest * 1.03)
    frame = seconds.frame(legend)
    scale = seconds.draw(canvas, frame, "I/O time")
    axis = view.axis(frame, to_scale=view.key == "cache_rate")
    draw_x_axis(canvas, frame, axis, view.axis_title)
    (_draw_bands if axis.joined else _draw_boxes)(canvas, axis, scale, quantiles)
    _draw_slowest(canvas, axis, scale, quantiles, view.texts())
    legend.draw(canvas)
    return Figure("processes", title, caption, canvas.to_text())


def _pooled(source: ReportSource, sweep: Mapping[str, Any]) -> Floats:
    point = next(point for point in source.processes.points if point.sweep == sweep)
    return np.concatenate([times.seconds.sum(axis=1) for times in point.epochs])


def _quantile_entries() -> Iterator[LegendEntry]:
    yield LegendEntry(_line_with_dot, "slowest")
    yield LegendEntry(stroke("median"), "median")
    yield LegendEntry(box("half"), "middle half")
    yield LegendEntry(box("band"), "all")


def _line_with_dot(canvas: Canvas, x: float, y: float) -> None:
    stroke("slowest")(canvas, x, y)
    canvas.circle(x, y, 3.4, "sample slowest mark")


def _draw_bands(canvas: Canvas, axis: SweptAxis, scale: Scale, quantiles: Floats) -> None:
    curves = [
        [(place, scale(float(value))) for place, value in zip(axis.places, column, strict=True)]
        for column in quantiles.T
    ]
    canvas.path([*curves[4], *reversed(curves[0])], "band", closed=True)
    canvas.path([*curves[3], *reversed(curves[1])], "half", closed=True)
    canvas.path(curves[2], "median")
    canvas.path(curves[4], "slowest")


def _draw_boxes(canvas: Canvas, axis: SweptAxis, scale: Scale, quantiles: Floats) -> None:
    """Where nothing lies between two values."""
    width = min(0.6 * axis.pitch, 60.0)
    for place, row in zip(axis.places, quantiles, strict=True):
        low, first, median, third, high = (scale(float(value)) for value in row)
        canvas.rect(place - width / 2, high, width, low - high, "band")
        canvas.rect(place - width / 2, third, width, first - third, "half")
        canvas.line((place - width / 2, median), (place + width / 2, median), "median")
        canvas.line((place - width / 2, high), (place + width / 2, high), "slowest")


def _draw_slowest(canvas: Canvas, axis: SweptAxis, scale: Scale, quantiles: Floats, where: Sequence[str]) -> None:
    for place, row, text in zip(axis.places, quantiles, where, strict=True):
        tip = f"{text}slowest {about_seconds(float(row[4]))}, median {about_seconds(float(row[2]))}"
        radius = 3.4 if axis.pitch >= MARKS_FROM else 1.2
        canvas.circle(place, scale(float(row[4])), radius, "slowest mark", tip)
