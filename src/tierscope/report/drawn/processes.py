"""Figure 5: the distribution of times over processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tierscope.jsonable import point_key
from tierscope.predict.hull import Floats
from tierscope.predict.processes import PointTimes
from tierscope.report.drawn.looks import MARKS_FROM, box, stroke
from tierscope.report.drawn.panels import Panel
from tierscope.report.drawn.view import (
    SecondsAxis,
    epochs_text,
    nothing_swept,
    processes_text,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import Canvas, LegendEntry, Scale, SweptAxis, draw_x_axis
from tierscope.units import about_seconds


@dataclass(frozen=True, slots=True)
class ProcessesPanel(Panel):
    """Quantiles of I/O times, and the slowest."""

    name: ClassVar[str] = "processes"

    @property
    def title(self) -> str:
        return "I/O time over all processes"

    @property
    def missing(self) -> str:
        return nothing_swept(self.source) if self.view.key is None else too_little(float(self._quantiles().max()))

    def _pools(self) -> list[Floats]:
        times = {point_key(point.sweep): point for point in self.source.processes.points}
        return [_pooled(times[point_key(point.sweep)]) for point in self.view.points]

    def _quantiles(self) -> Floats:
        return np.array([np.quantile(times, (0.0, 0.25, 0.5, 0.75, 1.0)) for times in self._pools()])

    @property
    def top(self) -> float:
        return float(self._quantiles().max()) * 1.03

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        del among
        sizes = sorted({len(times) for times in self._pools()})
        n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        return [
            f"I/O time of {processes_text(whole)} in {epochs_text(shown_epochs(whole))}, all runs together (n = {n} at each point): "
            "the lightest area holds all of them, the darker one the middle half, the thick line is the median and the line with dots the slowest.",
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        del canvas, among
        return list(_quantile_entries())

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        seconds, view, quantiles = SecondsAxis(top), self.view, self._quantiles()
        frame = seconds.frame(head, size=canvas.size)
        scale = seconds.draw(canvas, frame, "I/O time")
        axis = view.axis(frame, to_scale=view.key == "cache_rate")
        draw_x_axis(canvas, frame, axis, view.axis_title)
        (_draw_bands if axis.joined else _draw_boxes)(canvas, axis, scale, quantiles)
        _draw_slowest(canvas, axis, scale, quantiles, view.texts())


def _pooled(point: PointTimes) -> Floats:
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
