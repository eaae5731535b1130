"""The figures of the Hierarchy study, and the distribution over processes: drawings for papers and for the page.

Every value comes from the source as it is; nothing is computed here but quantiles and places. The x axis is the cache rate where it was
swept. Where several keys were swept, only the slice with the best point is drawn, and the title says which it is.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierscope.analysis.breakdown import EpochPoint, SweepPoint, counted_epochs, sweep_text
from tierscope.analysis.statistics import Interval
from tierscope.predict.explore import Exploration
from tierscope.predict.hull import Floats
from tierscope.report.source import Source
from tierscope.report.svg import (
    FONT,
    HEIGHT,
    SAMPLE,
    WIDTH,
    Axis,
    Canvas,
    Entry,
    Frame,
    Legend,
    Sample,
    Scale,
    clean,
    draw_x_axis,
    draw_y_axis,
    fit,
    label,
    nice_ticks,
    text_width,
)
from tierscope.units import SECOND_UNITS, about_seconds

HUES = 6
STEPS = 10  # of the sequential palette
_MOST_EPOCHS = 6  # lines that can still be told apart
_MOST_ON_A_SIDE = 61  # dots of a grid
_MARKS_FROM = 9.0  # pixels between points; nearer ones are drawn without marks
_NAME = 150.0  # the most room that a class's name gets
_BELOW = 14.0  # between axis and labels: where the best point is marked

# Okabe and Ito's colours, which colour-blind people can tell apart too.
LIGHT = {
    "--ink": "#1a1a1a",
    "--muted": "#767676",
    "--line": "#dcdcdc",
    "--paper": "#ffffff",
    "--tier0": "#0072b2",
    "--tier1": "#e69f00",
    "--tier2": "#009e73",
    "--tier3": "#cc79a7",
    "--tier4": "#56b4e9",
    "--tier5": "#d55e00",
    "--accent": "#c2185b",
}
_CIVIDIS = (
    *("#00224e", "#123570", "#3b496c", "#575d6d", "#707173"),
    *("#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
)
_EPOCH_HUES = (0, 5, 2, 3, 1)
_DASHES = ("none", "11 3", "11 3 2 3", "2 3", "7 2 2 2 2 2")


def _rules() -> Iterator[str]:
    plain = {
        "text": f"font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:{FONT:g}px;fill:var(--ink)",
        ".middle": "text-anchor:middle",
        ".end": "text-anchor:end",
        ".paper": "fill:var(--paper)",
        ".axis": "fill:none;stroke:var(--ink);stroke-width:1.2",
        ".grid": "fill:none;stroke:var(--line);stroke-width:1",
        ".pale": "fill-opacity:.2",
        ".outline": "fill:none;stroke:var(--muted);stroke-width:1.4",
        ".whisker": "fill:none;stroke:var(--ink);stroke-width:1.2",
        ".fine": "stroke-width:.7",
        ".goal": "fill:none;stroke:var(--accent);stroke-width:2;stroke-dasharray:8 5",
        ".best": "fill:var(--ink);stroke:var(--ink);stroke-width:1",
        ".former": "fill:none;stroke:var(--ink);stroke-width:1.3",
        ".curve": "fill:none;stroke-width:2;stroke-linejoin:round",
        ".whole": "stroke-width:1.2",
        ".mark": "stroke-width:1.6",
        ".mark.whole": "fill:var(--paper)",
        ".any": "stroke:var(--ink)",
        ".mark.io.any": "fill:var(--ink)",
        ".first": "stroke:var(--muted)",
        ".curve.first": "stroke-dasharray:5 4",
        ".mark.io.first": "fill:var(--muted)",
        ".band": "fill:var(--tier0);fill-opacity:.18",
        ".half": "fill:var(--tier0);fill-opacity:.38",
        ".median": "fill:none;stroke:var(--tier0);stroke-width:2.4",
        ".slowest": "fill:none;stroke:var(--ink);stroke-width:2",
        ".slowest.mark": "fill:var(--ink);stroke-width:1",
        ".dot": "stroke:var(--muted);stroke-width:.6",
        ".met": "fill:var(--tier0)",
        ".unmet": "fill:none;stroke:var(--muted);stroke-width:1",
        ".ring": "fill:none;stroke:var(--accent);stroke-width:2.2",
        ".note": "fill:var(--paper);fill-opacity:.9;stroke:var(--line)",
    }
    yield from (f"{name}{{{rule}}}" for name, rule in plain.items())
    for index, (dash, hue) in enumerate(zip(_DASHES, _EPOCH_HUES, strict=True)):
        yield f".later{index}{{stroke:var(--tier{hue})}}"
        yield f".mark.io.later{index}{{fill:var(--tier{hue})}}"
        yield f".curve.later{index}{{stroke-dasharray:{dash}}}"
    yield from (f".tier{hue}{{fill:var(--tier{hue})}}" for hue in range(HUES))
    yield from (f".edge{hue}{{stroke:var(--tier{hue});stroke-width:1}}" for hue in range(HUES))
    yield from (f".q{step}{{fill:{colour}}}" for step, colour in enumerate(_CIVIDIS))


FIGURE_CSS = "\n".join(f".ts-figure {rule}" for rule in _rules()) + "\n"


@dataclass(frozen=True, slots=True)
class Figure:
    """`svg` is an element to put into a page that has FIGURE_CSS; None where `missing` says why there is none."""

    name: str
    title: str
    caption: str
    svg: str | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class _View:
    """What is drawn against what. `key` is None where there is but one point; `others` are the keys that are held."""

    key: str | None
    points: tuple[SweepPoint, ...]
    others: dict[str, Any]

    @property
    def values(self) -> list[Any]:
        return [point.sweep[self.key] for point in self.points] if self.key else [""]

    @property
    def where(self) -> str:
        """For a title; empty where nothing is held."""
        return f" ({_brief(sweep_text(self.others), 60)})" if self.others else ""

    @property
    def axis_title(self) -> str:
        return self.key.replace("_", " ") if self.key else ""

    def axis(self, frame: Frame, to_scale: bool = False) -> Axis:
        return Axis.of(self.key or "", self.values, frame.left, frame.right, to_scale)

    def texts(self) -> list[str]:
        """What a tooltip says about the place."""
        return [f"{label(self.key, value)}: " if self.key else "" for value in self.values]


def figures(source: Source) -> list[Figure]:
    """All five; those that cannot be drawn say why."""
    view = _view(source)
    return [draw(source, view) for draw in (_time, _breakdown, _estimate, _goal, _processes)]


def standalone(figure: Figure) -> bytes:
    """A whole SVG file. Colours are written out, since not every program knows CSS variables."""
    if figure.svg is None:
        raise ValueError(f"figure {figure.name} was not drawn: {figure.missing}")
    css = re.sub(r"var\((--\w+)\)", lambda found: LIGHT[found[1]], FIGURE_CSS)
    opened = figure.svg.replace(" viewBox=", f' width="{WIDTH:g}" height="{HEIGHT:g}" viewBox=', 1)
    whole = f"{opened.removesuffix('</svg>')}<style>\n{css}</style></svg>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'.encode()


def class_marks(classes: tuple[str, ...]) -> list[tuple[str, int, bool]]:
    """Of each class: name, hue of its tier, and whether it is hatched, as META is."""
    tiers: list[str] = []
    marks = []
    for name in classes:
        tier, _, kind = name.rpartition("-")
        if tier not in tiers:
            tiers.append(tier)
        marks.append((name, tiers.index(tier) % HUES, kind == "META"))
    return marks


# What is drawn against what


def _view(source: Source) -> _View:
    """The first key, cache rate before all, of which the best point has neighbours that differ in nothing else."""
    breakdown = source.breakdown
    best = breakdown.best.sweep
    for key in sorted(breakdown.sweep_keys, key=lambda key: key != "cache_rate"):
        others = {name: value for name, value in best.items() if name != key}
        points = [point for point in breakdown.summary if all(point.sweep[name] == others[name] for name in others)]
        if len(points) > 1:
            return _View(key, tuple(points), _held(breakdown.summary, others))
    return _View(None, (breakdown.best,), _held(breakdown.summary, best))


def _held(points: Sequence[SweepPoint], others: Mapping[str, Any]) -> dict[str, Any]:
    """Those that have other values elsewhere."""
    return {name: value for name, value in others.items() if any(point.sweep[name] != value for point in points)}


def _nothing_swept(source: Source) -> str:
    if len(source.breakdown.summary) > 1:
        return "no two points differ in one swept key alone, so there is nothing to draw against"
    if source.study_yaml is not None and not source.conditions.traced:
        return "one cache rate only: there is nothing to draw against; sweep placement.cache_rate in the study"
    return "nothing was swept, so there is nothing to draw against"


def _too_little(*tops: float) -> str:
    """Why a drawing of these longest times would show nothing; empty: it would show something."""
    if not all(math.isfinite(top) for top in tops):
        return "the times are too long to be drawn"
    return "" if max(tops) > 0 else "no time was spent on I/O, so there is nothing to draw"


# Words


def _brief(text: str, characters: int) -> str:
    text = clean(text)
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"


def _class_text(name: str, room: float = _NAME) -> str:
    """Shortened in its tier: READ and META must stay."""
    tier, _, kind = name.rpartition("-")
    return f"{fit(tier, room - text_width(f'-{kind}'))}-{kind}"


def _sentences(source: Source, view: _View, *sentences: str) -> str:
    """A caption: what is shown, then what holds for all figures."""
    found = [sentence for sentence in sentences if sentence]
    if view.others:
        found.append(
            f"Several keys were swept; shown is only {_brief(sweep_text(view.others), 120)}, where the best point is."
        )
    if source.conditions.emulated:
        found.append(f"Emulated tiers: {', '.join(_brief(tier, 40) for tier in source.conditions.emulated)}.")
    return " ".join(found)


def _not_to_scale(view: _View, axis: Axis) -> str:
    return f"Values of {view.axis_title} are not spaced to scale." if axis.joined and not axis.to_scale else ""


def _spread_text(points: Sequence[SweepPoint]) -> str:
    kinds = {(point.io.n, point.io.kind) for point in points}
    if len(kinds) == 1:
        n, kind = kinds.pop()
        shown = f"; whiskers: {_kind_text(kind)}" if n > 1 else ""
        return f"n = {n}{shown}"
    sizes = sorted({n for n, _ in kinds})
    return f"n = {sizes[0]} to {sizes[-1]}; whiskers: the range of fewer than six values, else a 95 % interval"


def _kind_text(kind: str) -> str:
    return "their range" if kind == "range" else "95 % interval of the median"


def _processes_text(source: Source) -> str:
    ranks = sorted({point.ranks for point in source.breakdown.points})
    count = f"{ranks[0]:,}" if len(ranks) == 1 else f"{ranks[0]:,} to {ranks[-1]:,}"
    return f"{count} process{'' if count == '1' else 'es'}"


def _epochs_text(epochs: set[int]) -> str:
    ordered = sorted(epochs)
    if len(ordered) == 1:
        return f"epoch {ordered[0]}"
    if ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"epochs {ordered[0]}–{ordered[-1]}"
    return f"{len(ordered)} epochs"


def _counted(source: Source) -> set[int]:
    return counted_epochs(point.epoch for point in source.breakdown.points)


def _improvements_text(improvements: Mapping[str, float]) -> str:
    return ", ".join(f"{_brief(name, 48)} {percent:+g} %" for name, percent in improvements.items())


# The time axis


@dataclass(frozen=True, slots=True)
class _Seconds:
    """A vertical axis of times from zero, in the unit that suits the longest."""

    top: float

    @property
    def unit(self) -> str:
        return next((unit for unit in ("s", "ms", "µs") if self.top >= SECOND_UNITS[unit]), "ns")

    def ticks(self) -> list[tuple[float, str]]:
        factor = SECOND_UNITS[self.unit]
        return [(tick * factor, f"{tick:.6g}") for tick in nice_ticks(self.top / factor)]

    def frame(self, legend: Legend, below: float = 0.0) -> Frame:
        widest = max(text_width(text) for _, text in self.ticks())
        return Frame(42 + widest, legend.height + 8, WIDTH - 24, HEIGHT - 58 - below)

    def draw(self, canvas: Canvas, frame: Frame, title: str) -> Scale:
        scale = Scale(0.0, self.top, frame.bottom, frame.top)
        ticks = [(scale(seconds), text) for seconds, text in self.ticks()]
        draw_y_axis(canvas, frame, ticks, f"{title} ({self.unit})")
        return scale


# 1: time


def _time(source: Source, view: _View) -> Figure:
    whole = any(point.epoch_seconds is not None for point in source.breakdown.points)
    title = f"{'Epoch time and ' if whole else ''}I/O time of the slowest process{view.where}"
    if view.key is None:
        return Figure("time", title, _sentences(source, view), None, _nothing_swept(source))
    sweeps = [point.sweep for point in view.points]
    points = [point for point in source.breakdown.points if point.sweep in sweeps]
    longest = max(max(point.spread.high, point.epoch_seconds or 0.0) for point in points)
    if missing := _too_little(longest):
        return Figure("time", title, _sentences(source, view), None, missing)
    epochs = sorted({point.epoch for point in points})
    apart = {1} - _counted(source)
    lines = [
        _EpochLine(number, index, number in apart, _at(points, number, sweeps))
        for index, number in enumerate(_some(epochs))
    ]
    repeated = any(point.repetitions > 1 for point in points)
    caption = _sentences(
        source,
        view,
        f"I/O time (reads and metadata) of the slowest of {_processes_text(source)}, one line per epoch"
        + ("; epoch times are hollow." if whole else "; epoch times are not known."),
        "Epoch 1 is drawn apart (dashed), since it is special." if any(line.apart for line in lines) else "",
        f"Of {len(epochs)} epochs, {len(lines)} are drawn." if len(lines) < len(epochs) else "",
        _repetitions_text(points) if repeated else "n = 1 run for each point.",
    )
    canvas = Canvas("time", title, caption)
    legend = Legend([*(_quantities() if whole else ()), *(line.entry() for line in lines)])
    seconds = _Seconds(longest * 1.03)
    frame = seconds.frame(legend)
    scale = seconds.draw(canvas, frame, "time" if whole else "I/O time")
    axis = view.axis(frame, to_scale=view.key == "cache_rate")
    draw_x_axis(canvas, frame, axis, view.axis_title)
    for line in lines:
        line.draw(canvas, axis, scale, view.texts())
    legend.draw(canvas)
    return Figure("time", title, caption, canvas.to_text())


def _repetitions_text(points: Sequence[EpochPoint]) -> str:
    counts = sorted({point.repetitions for point in points})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    kinds = {point.spread.kind for point in points if point.repetitions > 1}
    what = _kind_text(kinds.pop()) if len(kinds) == 1 else "range or 95 % interval"
    return f"Medians of n = {n} repetitions; vertical bars: {what}."


def _some(epochs: Sequence[int]) -> list[int]:
    """The first, the last, and some between them."""
    if len(epochs) <= _MOST_EPOCHS:
        return list(epochs)
    return [epochs[round(index * (len(epochs) - 1) / (_MOST_EPOCHS - 1))] for index in range(_MOST_EPOCHS)]


def _at(points: Sequence[EpochPoint], epoch: int, sweeps: Sequence[dict[str, Any]]) -> list[EpochPoint | None]:
    of_epoch = [point for point in points if point.epoch == epoch]
    return [next((point for point in of_epoch if point.sweep == sweep), None) for sweep in sweeps]


@dataclass(frozen=True, slots=True)
class _EpochLine:
    """One epoch over the sweep; None where it was not run."""

    epoch: int
    index: int
    apart: bool
    points: list[EpochPoint | None]

    @property
    def css(self) -> str:
        return "first" if self.apart else f"later{max(0, self.index - 1) % len(_DASHES)}"

    def entry(self) -> Entry:
        def sample(canvas: Canvas, x: float, y: float) -> None:
            canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample curve io {self.css}")
            canvas.marker(self.index, (x, y), 4.2, f"sample mark io {self.css}")

        return Entry(sample, f"epoch {self.epoch}")

    def draw(self, canvas: Canvas, axis: Axis, scale: Scale, where: Sequence[str]) -> None:
        marked = axis.pitch >= _MARKS_FROM or not axis.joined
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
                    _draw_whisker(canvas, place, scale, point.spread, self.css)
                if marked:
                    what = "I/O" if css == "io" else "epoch time"
                    tip = f"{text}epoch {self.epoch}, {what} {about_seconds(seconds)}"
                    canvas.marker(self.index, (place, scale(seconds)), radius, f"mark {css} {self.css}", tip)


def _io_seconds(point: EpochPoint) -> float | None:
    return point.io_seconds


def _epoch_seconds(point: EpochPoint) -> float | None:
    return point.epoch_seconds


def _quantities() -> Iterator[Entry]:
    yield Entry(lambda canvas, x, y: canvas.marker(0, (x, y), 4.2, "sample mark io any"), "I/O")
    yield Entry(lambda canvas, x, y: canvas.marker(0, (x, y), 5.6, "sample mark whole any"), "whole epoch")


def _draw_whisker(canvas: Canvas, place: float, scale: Scale, spread: Interval, css: str, cap: float = 0.0) -> None:
    top, bottom = scale(spread.high), scale(spread.low)
    canvas.line((place, bottom), (place, top), f"whisker {css}")
    if cap:
        for end in (top, bottom):
            canvas.line((place - cap, end), (place + cap, end), f"whisker {css}")


# 2 and 3: bars


def _breakdown(source: Source, view: _View) -> Figure:
    title = f"Where the I/O time of the slowest process goes{view.where}"
    bars = _Bars(source, view, view.points)
    if missing := _too_little(bars.longest):
        return Figure("breakdown", title, _sentences(source, view), None, missing)
    top = bars.top()
    goal = source.exploration.goal_seconds
    shown = source.goal_given and goal <= top
    best = source.breakdown.best
    caption = _sentences(
        source,
        view,
        f"I/O time of the slowest of {_processes_text(source)} by class ({source.breakdown.basis} seconds), "
        f"median over {_epochs_text(_counted(source))} ({_spread_text(view.points)}).",
        f"The triangle marks the best: {_brief(sweep_text(best.sweep), 80)} with {about_seconds(best.io.median)}."
        if view.key
        else "",
        f"The dashed line is the goal, {about_seconds(goal)}." if shown else "",
        f"The goal, {about_seconds(goal)}, is above all of it." if source.goal_given and not shown else "",
        _not_to_scale(view, bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
    )
    canvas = Canvas("breakdown", title, caption)
    entries = [*bars.entries(canvas, {})]
    if view.key:
        entries.append(Entry(_triangle("best"), f"best: {_short_value(view, best)}"))
    if shown:
        entries.append(Entry(_stroke("goal"), f"goal: {about_seconds(goal)}"))
    legend = Legend(entries)
    seconds = _Seconds(top)
    frame = seconds.frame(legend, _BELOW)
    scale = seconds.draw(canvas, frame, "I/O time")
    bars.draw(canvas, frame, scale)
    if shown:
        canvas.line((frame.left, scale(goal)), (frame.right, scale(goal)), "goal")
    axis = bars.axis(frame)
    draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
    if view.key:
        _mark_best(canvas, frame, axis, view, best, "best", 5.0)
    legend.draw(canvas)
    return Figure("breakdown", title, caption, canvas.to_text())


def _estimate(source: Source, view: _View) -> Figure:
    estimate = source.estimate
    improved = _improvements_text(estimate.improvements) or "nothing improved"
    title = f"Estimate with {improved}{view.where}"
    after = {id(point): _same(estimate.after.summary, point) for point in view.points}
    bars = _Bars(source, view, tuple(after.values()))
    measured = _Bars(source, view, view.points)
    if missing := _too_little(measured.longest, bars.longest):
        return Figure("estimate", title, _sentences(source, view), None, missing)
    now, then = source.breakdown.best, estimate.after.best
    inside = any(point.sweep == then.sweep for point in view.points)
    caption = _sentences(
        source,
        view,
        f"I/O time of the slowest of {_processes_text(source)} by class if there were {improved}: an estimate by scaling the measured times of "
        f"every process, no measurement; median over {_epochs_text(_counted(source))} ({_spread_text(bars.points)}). Outlines: as measured.",
        f"Best: {_brief(sweep_text(then.sweep), 80)} with {about_seconds(then.io.median)} (filled triangle{'' if inside else ', not in this slice'}); "
        f"as measured: {_brief(sweep_text(now.sweep), 80)} with {about_seconds(now.io.median)} (hollow)."
        if view.key
        else f"{about_seconds(then.io.median)} instead of {about_seconds(now.io.median)}.",
        _not_to_scale(view, bars.axis(Frame(0, 0, WIDTH, HEIGHT))),
    )
    canvas = Canvas("estimate", title, caption)
    entries = [*bars.entries(canvas, estimate.improvements), Entry(_box("outline"), "measured")]
    if view.key:
        entries.append(Entry(_triangle("former"), f"best measured: {_short_value(view, now)}"))
        entries += [Entry(_triangle("best"), f"best: {_short_value(view, then)}")] if inside else []
    legend = Legend(entries)
    seconds = _Seconds(max(measured.top(), bars.longest))
    frame = seconds.frame(legend, _BELOW)
    scale = seconds.draw(canvas, frame, "estimated I/O time")
    measured.outline(canvas, frame, scale)
    bars.draw(canvas, frame, scale)
    axis = bars.axis(frame)
    draw_x_axis(canvas, frame, axis, view.axis_title, _BELOW if view.key else 0.0)
    if view.key:
        _mark_best(canvas, frame, axis, view, now, "former", 7.0)
        _mark_best(canvas, frame, axis, view, then, "best", 4.0)
    legend.draw(canvas)
    return Figure("estimate", title, caption, canvas.to_text())


def _same(points: Sequence[SweepPoint], wanted: SweepPoint) -> SweepPoint:
    return next(point for point in points if point.sweep == wanted.sweep)


def _short_value(view: _View, point: SweepPoint) -> str:
    return fit(label(view.key, point.sweep[view.key]), 90) if view.key else ""


@dataclass(frozen=True, slots=True)
class _Bars:
    """Stacked classes at every point; writes are no part of the I/O time."""

    source: Source
    view: _View
    points: tuple[SweepPoint, ...]

    @property
    def longest(self) -> float:
        return max(point.io.high for point in self.points)

    def top(self) -> float:
        """Of the scale: a goal is shown unless it would squeeze the bars."""
        goal = self.source.exploration.goal_seconds if self.source.goal_given else 0.0
        return 1.04 * max(self.longest, goal if goal <= 2 * self.longest else 0.0)

    def marks(self) -> list[tuple[str, int, bool]]:
        classes = self.source.processes.classes
        return [mark for mark in class_marks(self.source.breakdown.classes) if mark[0] in classes]

    def axis(self, frame: Frame) -> Axis:
        return self.view.axis(frame)

    def width(self, axis: Axis) -> float:
        return min(0.78 * axis.pitch, 72.0)

    def entries(self, canvas: Canvas, improved: Mapping[str, float]) -> Iterator[Entry]:
        for name, hue, hatched in self.marks():
            more = f" {improved[name]:+g} %" if name in improved else ""
            css, fill = _bar_style(canvas, hue, hatched)
            yield Entry(_box(css, fill), f"{_class_text(name)}{more}")

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
                    tip = f"{text}{_brief(name, 60)} {about_seconds(seconds)} of {about_seconds(point.io.median)}"
                    canvas.rect(place - width / 2, top, width, bottom - top, css, tip, fill)
                    foot += seconds
            if point.io.n > 1 and point.io.high > point.io.low:
                roomy = axis.pitch >= _MARKS_FROM
                _draw_whisker(canvas, place, scale, point.io, "" if roomy else "fine", 4.0 if roomy else 0.0)

    def outline(self, canvas: Canvas, frame: Frame, scale: Scale) -> None:
        axis = self.axis(frame)
        width = self.width(axis)
        for place, point, text in zip(axis.places, self.points, self.view.texts(), strict=True):
            top = scale(point.io.median)
            tip = f"{text}measured {about_seconds(point.io.median)}"
            canvas.rect(place - width / 2, top, width, frame.bottom - top, "outline", tip)


def _bar_style(canvas: Canvas, hue: int, hatched: bool) -> tuple[str, str]:
    """CSS classes, and the id of the hatching if there is one."""
    return (f"bar edge{hue}", canvas.hatch(hue)) if hatched else (f"bar edge{hue} tier{hue}", "")


def _mark_best(
    canvas: Canvas, frame: Frame, axis: Axis, view: _View, best: SweepPoint, css: str, radius: float
) -> None:
    """Under the axis, where no bar is in the way."""
    for place, point in zip(axis.places, view.points, strict=True):
        if point.sweep == best.sweep:
            canvas.marker(2, (place, frame.bottom + 11), radius, css, f"best: {about_seconds(best.io.median)}")


def _box(css: str, fill: str = "") -> Sample:
    return lambda canvas, x, y: canvas.rect(x - 10, y - 7, 20, 14, f"sample {css}", fill=fill)


def _triangle(css: str) -> Sample:
    return lambda canvas, x, y: canvas.marker(2, (x, y + 1), 6.0, f"sample {css}")


def _stroke(css: str) -> Sample:
    return lambda canvas, x, y: canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample {css}")


# 4: the goal


def _goal(source: Source, view: _View) -> Figure:
    exploration = source.exploration
    goal = about_seconds(exploration.goal_seconds)
    names = [_brief(name, 48) for name in exploration.vary]
    title = f"What meets a goal of {goal} of I/O per epoch"
    longest = max(point.io.high for point in source.breakdown.summary)
    if missing := _too_little(longest) or ("" if names else "no class is varied, so there is nothing to draw against"):
        return Figure("goal", title, _sentences(source, view), None, missing)
    grid = _Grid.of(exploration)
    rates = _Rates.of(exploration, grid)
    options = [option for option in exploration.options if grid.shows(option.improve)]
    caption = _sentences(
        source,
        _View(None, (), {}),
        f"Each dot is a combination of more throughput in {' and in '.join(names[:2])} with which the slowest process's I/O takes at most {goal}"
        + (", coloured by the smallest cache rate at which it does" if rates.known else "")
        + "; crosses: it does not, at any point of the sweep." * (len(exploration.sweeps) > 1)
        + "; crosses: it does not." * (len(exploration.sweeps) == 1),
        "" if source.goal_given else "No goal was given: this one is a suggestion.",
        f"Rings: combinations that no other beats in every respect ({len(options)})." if options else "",
        f"The goal is met without any improvement, at {_brief(sweep_text(exploration.sweeps[exploration.met_without]), 80)}."
        if exploration.met_without is not None
        else "",
        f"Also improved: {_improvements_text(exploration.fixed)}." if exploration.fixed else "",
        f"Not varied here: {_improvements_text(grid.held)}." if grid.held else "",
        "Of the values, only some are drawn." if grid.thinned else "",
        f"An estimate by scaling, no measurement; {_processes_text(source)}, median over {_epochs_text(_counted(source))}.",
    )
    canvas = Canvas("goal", title, caption)
    _draw_grid(canvas, grid, rates, options)
    return Figure("goal", title, caption, canvas.to_text())


@dataclass(frozen=True, slots=True)
class _Grid:
    """Two varied classes (or one), the improvements of each that are drawn, and the classes beyond two, which are held at their least."""

    names: tuple[str, ...]
    columns: tuple[float, ...]
    rows: tuple[float, ...]
    chosen: dict[tuple[float, float], int]  # (column, row) → point, −1: none
    seconds: dict[tuple[float, float], float]
    held: dict[str, float]
    thinned: bool

    @classmethod
    def of(cls, exploration: Exploration) -> "_Grid":
        names = tuple(exploration.vary)
        sizes = [len(values) for values in exploration.vary.values()]
        sides = [*exploration.vary.values(), (0.0,)][:2]
        picked = [_thin(len(values)) for values in sides]
        first = [0] * max(0, len(names) - 2)
        chosen, seconds = {}, {}
        for column in picked[0]:
            for row in picked[1]:
                place = [column, row, *first][: len(sizes)]
                index = int(np.ravel_multi_index(place, sizes))
                dot = sides[0][column], sides[1][row]
                chosen[dot], seconds[dot] = int(exploration.chosen[index]), float(exploration.io_seconds[index])
        columns, rows = (
            tuple(values[index] for index in kept) for values, kept in zip(sides, picked, strict=True)
        )  # fmt: skip
        held = {name: exploration.vary[name][0] for name in names[2:]}
        return cls(
            names, columns, rows, chosen, seconds, held, len(chosen) < math.prod(len(values) for values in sides)
        )

    def place(self, improve: Mapping[str, float]) -> tuple[float, float]:
        return improve[self.names[0]], improve[self.names[1]] if len(self.names) > 1 else 0.0

    def shows(self, improve: Mapping[str, float]) -> bool:
        return self.place(improve) in self.chosen and all(improve[name] == self.held[name] for name in self.held)


def _thin(count: int) -> range:
    return range(0, count, math.ceil(count / _MOST_ON_A_SIDE))


@dataclass(frozen=True, slots=True)
class _Rates:
    """The cache rates that meet the goal somewhere on the grid, in as many steps of colour as there are, or ten. None known: met or not."""

    steps: tuple[tuple[float, ...], ...]
    by_point: dict[int, float]

    @property
    def known(self) -> bool:
        return bool(self.by_point)

    @classmethod
    def of(cls, exploration: Exploration, grid: _Grid) -> "_Rates":
        if len({sweep.get("cache_rate") for sweep in exploration.sweeps}) < 2:
            return cls((), {})
        by_point = {index: float(sweep["cache_rate"]) for index, sweep in enumerate(exploration.sweeps)}
        used = sorted({by_point[point] for point in grid.chosen.values() if point >= 0})
        count = min(STEPS, len(used))
        steps: list[list[float]] = [[] for _ in range(count)]
        for index, rate in enumerate(used):
            steps[index * count // len(used)].append(rate)
        return cls(tuple(tuple(step) for step in steps), by_point)

    def css(self, point: int) -> str:
        if not self.known:
            return "met"
        return self.css_of(next(index for index, step in enumerate(self.steps) if self.by_point[point] in step))

    def css_of(self, step: int) -> str:
        """The palette's ends are always used, so that few steps differ much."""
        return f"q{round(step * (STEPS - 1) / max(1, len(self.steps) - 1))}"

    def text(self, step: int) -> str:
        low, high = (label("cache_rate", rate) for rate in (self.steps[step][0], self.steps[step][-1]))
        return low if low == high else f"{low.removesuffix('%')}–{high}"


def _draw_grid(canvas: Canvas, grid: _Grid, rates: _Rates, options: Sequence[Any]) -> None:
    any_met = any(point >= 0 for point in grid.chosen.values())
    legend = Legend(list(_grid_entries(rates.known, any_met, bool(options))))
    frame = Frame(88, legend.height + 8, WIDTH - (124 if rates.steps else 24), HEIGHT - 58)
    across = Axis.of("", grid.columns, frame.left, frame.right)
    up = Axis.of("", grid.rows, frame.bottom, frame.top)
    x_title, y_title = (f"{_class_text(name)} improvement (%)" for name in (*grid.names, "")[:2])
    draw_y_axis(canvas, frame, up.labels(FONT, upright=True), y_title if len(grid.names) > 1 else "")
    draw_x_axis(canvas, frame, across, x_title)
    radius = min(7.0, 0.37 * min(across.pitch, up.pitch))
    places = {
        (column, row): (x, y)
        for column, x in zip(grid.columns, across.places, strict=True)
        for row, y in zip(grid.rows, up.places, strict=True)
    }
    for dot, (x, y) in places.items():
        point = grid.chosen[dot]
        improved = _improvements_text(dict(zip(grid.names, dot, strict=False)))
        if point < 0:
            canvas.cross(
                x, y, min(2.6, radius / 2), "unmet", f"{improved}: {about_seconds(grid.seconds[dot])}, not met"
            )
        else:
            at = f" at {label('cache_rate', rates.by_point[point])} cached" if rates.known else ""
            tip = f"{improved}: {about_seconds(grid.seconds[dot])}{at}"
            canvas.circle(x, y, radius, f"dot {rates.css(point)}", tip)
    for option in options:
        canvas.circle(*places[grid.place(option.improve)], radius + 1.6, "ring")
    if not any_met:
        _draw_note(canvas, frame, "cannot be met by these")
    _draw_colours(canvas, frame, rates)
    legend.draw(canvas)


def _grid_entries(coloured: bool, any_met: bool, ringed: bool) -> Iterator[Entry]:
    if any_met and not coloured:
        yield Entry(lambda canvas, x, y: canvas.circle(x, y, 6, "sample dot met"), "met")
    yield Entry(lambda canvas, x, y: canvas.cross(x, y, 3, "sample unmet"), "not met")
    if ringed:
        yield Entry(lambda canvas, x, y: canvas.circle(x, y, 7, "sample ring"), "beaten by no other")


def _draw_note(canvas: Canvas, frame: Frame, text: str) -> None:
    x, y, width = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, text_width(text) + 24
    canvas.rect(x - width / 2, y - 18, width, 36, "note")
    canvas.text(x, y + 0.35 * FONT, text, "middle")


def _draw_colours(canvas: Canvas, frame: Frame, rates: _Rates) -> None:
    """A bar beside the grid, the smallest cache rate at the bottom."""
    if not rates.steps:
        return
    left = frame.right + 16
    for row, words in enumerate(("smallest", "cache rate")):
        canvas.text(left, frame.top + 10 + row * 18, words)
    room = frame.bottom - frame.top - 44
    height = min(24.0, room / len(rates.steps))
    for step in range(len(rates.steps)):
        y = frame.top + 44 + (len(rates.steps) - 1 - step) * height
        canvas.rect(left, y, 20, height, f"sample dot {rates.css_of(step)}")
        canvas.text(left + 26, y + height / 2 + 0.35 * FONT, rates.text(step))


# 5: processes


def _processes(source: Source, view: _View) -> Figure:
    title = f"I/O time over all processes{view.where}"
    if view.key is None:
        return Figure("processes", title, _sentences(source, view), None, _nothing_swept(source))
    pooled = [_pooled(source, point.sweep) for point in view.points]
    quantiles = np.array([np.quantile(times, (0.0, 0.25, 0.5, 0.75, 1.0)) for times in pooled])
    longest = float(quantiles.max())
    if missing := _too_little(longest):
        return Figure("processes", title, _sentences(source, view), None, missing)
    sizes = sorted({len(times) for times in pooled})
    n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    caption = _sentences(
        source,
        view,
        f"I/O time of {_processes_text(source)} in {_epochs_text(_counted(source))}, all runs together (n = {n} at each point): "
        "the lightest area holds all of them, the darker one the middle half, the thick line is the median and the line with dots the slowest.",
    )
    canvas = Canvas("processes", title, caption)
    legend = Legend(list(_quantile_entries()))
    seconds = _Seconds(longest * 1.03)
    frame = seconds.frame(legend)
    scale = seconds.draw(canvas, frame, "I/O time")
    axis = view.axis(frame, to_scale=view.key == "cache_rate")
    draw_x_axis(canvas, frame, axis, view.axis_title)
    (_draw_bands if axis.joined else _draw_boxes)(canvas, axis, scale, quantiles)
    _draw_slowest(canvas, axis, scale, quantiles, view.texts())
    legend.draw(canvas)
    return Figure("processes", title, caption, canvas.to_text())


def _pooled(source: Source, sweep: Mapping[str, Any]) -> Floats:
    point = next(point for point in source.processes.points if point.sweep == sweep)
    return np.concatenate([times.seconds.sum(axis=1) for times in point.epochs])


def _quantile_entries() -> Iterator[Entry]:
    yield Entry(_line_with_dot, "slowest")
    yield Entry(_stroke("median"), "median")
    yield Entry(_box("half"), "middle half")
    yield Entry(_box("band"), "all")


def _line_with_dot(canvas: Canvas, x: float, y: float) -> None:
    _stroke("slowest")(canvas, x, y)
    canvas.circle(x, y, 3.4, "sample slowest mark")


def _draw_bands(canvas: Canvas, axis: Axis, scale: Scale, quantiles: Floats) -> None:
    curves = [
        [(place, scale(float(value))) for place, value in zip(axis.places, column, strict=True)]
        for column in quantiles.T
    ]
    canvas.path([*curves[4], *reversed(curves[0])], "band", closed=True)
    canvas.path([*curves[3], *reversed(curves[1])], "half", closed=True)
    canvas.path(curves[2], "median")
    canvas.path(curves[4], "slowest")


def _draw_boxes(canvas: Canvas, axis: Axis, scale: Scale, quantiles: Floats) -> None:
    """Where nothing lies between two values."""
    width = min(0.6 * axis.pitch, 60.0)
    for place, row in zip(axis.places, quantiles, strict=True):
        low, first, median, third, high = (scale(float(value)) for value in row)
        canvas.rect(place - width / 2, high, width, low - high, "band")
        canvas.rect(place - width / 2, third, width, first - third, "half")
        canvas.line((place - width / 2, median), (place + width / 2, median), "median")
        canvas.line((place - width / 2, high), (place + width / 2, high), "slowest")


def _draw_slowest(canvas: Canvas, axis: Axis, scale: Scale, quantiles: Floats, where: Sequence[str]) -> None:
    for place, row, text in zip(axis.places, quantiles, where, strict=True):
        tip = f"{text}slowest {about_seconds(float(row[4]))}, median {about_seconds(float(row[2]))}"
        radius = 3.4 if axis.pitch >= _MARKS_FROM else 1.2
        canvas.circle(place, scale(float(row[4])), radius, "slowest mark", tip)
