"""Figure 1: the time of every epoch over the sweep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tierscope.analysis.breakdown import EpochPoint
from tierscope.jsonable import SweepValues, point_key
from tierscope.report.drawn.looks import DASHES, MARKS_FROM, draw_whisker
from tierscope.report.drawn.panels import Panel
from tierscope.report.drawn.view import (
    SecondsAxis,
    kind_text,
    nothing_swept,
    processes_text,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import SAMPLE, Canvas, LegendEntry, Scale, SweptAxis, draw_x_axis
from tierscope.units import about_seconds

_MOST_EPOCHS = 6  # lines that can still be told apart


@dataclass(frozen=True, slots=True)
class TimePanel(Panel):
    """Epoch and I/O times, a line for each epoch."""

    name: ClassVar[str] = "time"

    @property
    def title(self) -> str:
        return f"{'Epoch time and ' if _is_whole(self.source) else ''}I/O time of the slowest process"

    @property
    def missing(self) -> str:
        return nothing_swept(self.source) if self.view.key is None else too_little(self._longest)

    @property
    def _longest(self) -> float:
        """Of what is drawn: intervals are, over repetitions."""
        highs = (point.spread.high if point.repetitions > 1 else point.io_seconds for point in self._points)
        return max((*highs, *(point.epoch_seconds or 0.0 for point in self._points)))

    @property
    def top(self) -> float:
        return self._longest * 1.03

    @property
    def _points(self) -> list[EpochPoint]:
        drawn = {point_key(point.sweep) for point in self.view.points}
        return [point for point in self.source.breakdown.points if point_key(point.sweep) in drawn]

    def _lines(self) -> "list[_EpochLine]":
        sweeps, points = [point.sweep for point in self.view.points], self._points
        apart = {1} - shown_epochs(self.source)
        return [
            _EpochLine(number, index, number in apart, _at(points, number, sweeps))
            for index, number in enumerate(_some(sorted({point.epoch for point in points})))
        ]

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        del among
        points, lines = self._points, self._lines()
        epochs = {point.epoch for point in points}
        repeated = any(point.repetitions > 1 for point in points)
        return [
            f"I/O time of the slowest of {processes_text(whole)}, one line per epoch"
            + ("; epoch times are hollow." if _is_whole(self.source) else "; epoch times are unknown."),
            "Epoch 1 is dashed: it is not counted, because it may include warm-up."
            if any(line.apart for line in lines)
            else "",
            f"Of {len(epochs)} epochs, {len(lines)} are drawn." if len(lines) < len(epochs) else "",
            _repetitions_text(points) if repeated else "n = 1 run for each point.",
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        del canvas, among
        return [*(_quantities() if _is_whole(self.source) else ()), *(line.entry() for line in self._lines())]

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        seconds, view = SecondsAxis(top), self.view
        frame = seconds.frame(head, size=canvas.size)
        scale = seconds.draw(canvas, frame, "time" if _is_whole(self.source) else "I/O time")
        axis = view.axis(frame, to_scale=view.key == "cache_rate")
        draw_x_axis(canvas, frame, axis, view.axis_title)
        for line in self._lines():
            line.draw(canvas, axis, scale, view.texts())


def _is_whole(source: ReportSource) -> bool:
    """Whether epoch times are known."""
    return any(point.epoch_seconds is not None for point in source.breakdown.points)


def _repetitions_text(points: Sequence[EpochPoint]) -> str:
    counts = sorted({point.repetitions for point in points})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    kinds = {point.spread.kind for point in points if point.repetitions > 1}
    what = kind_text(kinds.pop()) if len(kinds) == 1 else "range or 95 % interval"
    return f"Medians of n = {n} repetitions; vertical bars: {what}."


def _some(epochs: Sequence[int]) -> list[int]:
    """The first, the last, and some between them."""
    if len(epochs) <= _MOST_EPOCHS:
        return list(epochs)
    return [epochs[round(index * (len(epochs) - 1) / (_MOST_EPOCHS - 1))] for index in range(_MOST_EPOCHS)]


def _at(points: Sequence[EpochPoint], epoch: int, sweeps: Sequence[SweepValues]) -> list[EpochPoint | None]:
    of_epoch = {point_key(point.sweep): point for point in points if point.epoch == epoch}
    return [of_epoch.get(point_key(sweep)) for sweep in sweeps]


@dataclass(frozen=True, slots=True)
class _EpochLine:
    """One epoch over the sweep; None where it was not run."""

    epoch: int
    index: int
    apart: bool
    points: list[EpochPoint | None]

    @property
    def css(self) -> str:
        return "first" if self.apart else f"later{max(0, self.index - 1) % len(DASHES)}"

    def entry(self) -> LegendEntry:
        def sample(canvas: Canvas, x: float, y: float) -> None:
            canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample curve io {self.css}")
            canvas.marker(self.index, (x, y), 4.2, f"sample mark io {self.css}")

        return LegendEntry(sample, f"epoch {self.epoch}")

    def draw(self, canvas: Canvas, axis: SweptAxis, scale: Scale, where: Sequence[str]) -> None:
        marked = axis.pitch >= MARKS_FROM or not axis.joined
        for css, radius, of in (("whole", 5.6, _epoch_seconds), ("io", 3.8, _io_seconds)):
            known = [
                (place, point, seconds, text)
                for place, point, text in zip(axis.places, self.points, where, strict=True)
                if point is not None and (seconds := of(point)) is not None
            ]
            if axis.joined and len(known) > 1:
                canvas.path([(place, scale(seconds)) for place, _, seconds, _ in known], f"curve {css} {self.css}")
            for place, point, seconds, text in known:
                if css == "io" and point.repetitions > 1:
                    draw_whisker(canvas, place, scale, point.spread, self.css)
                if marked:
                    what = "I/O" if css == "io" else "epoch time"
                    tip = f"{text}epoch {self.epoch}, {what} {about_seconds(seconds)}"
                    canvas.marker(self.index, (place, scale(seconds)), radius, f"mark {css} {self.css}", tip)


def _io_seconds(point: EpochPoint) -> float | None:
    return point.io_seconds


def _epoch_seconds(point: EpochPoint) -> float | None:
    return point.epoch_seconds


def _quantities() -> Iterator[LegendEntry]:
    yield LegendEntry(lambda canvas, x, y: canvas.marker(0, (x, y), 4.2, "sample mark io any"), "I/O")
    yield LegendEntry(lambda canvas, x, y: canvas.marker(0, (x, y), 5.6, "sample mark whole any"), "whole epoch")
