"""Figure 4: which improvements meet a goal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierscope.analysis.breakdown import sweep_text
from tierscope.jsonable import cache_rate_of
from tierscope.predict.explore import Exploration
from tierscope.report.drawn.looks import STEPS
from tierscope.report.drawn.view import (
    Figure,
    View,
    brief,
    class_text,
    epochs_text,
    improvements_text,
    processes_text,
    sentences,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    FONT,
    HEIGHT,
    WIDTH,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
    label,
    text_width,
)
from tierscope.spec.goal import AU, IO, Goal
from tierscope.units import about_seconds

_MOST_ON_A_SIDE = 61  # dots of a grid


def draw_goal(source: ReportSource, view: View) -> Figure:
    exploration = source.exploration
    goal = exploration.goal
    names = [brief(name, 48) for name in exploration.vary]
    title = f"What meets a goal of {goal.text}"
    longest = max(point.io.high for point in source.breakdown.summary)
    if missing := too_little(longest) or ("" if names else "no class is varied, so there is nothing to draw against"):
        return Figure("goal", title, sentences(source, view), None, missing)
    grid = _Grid.of(exploration)
    rates = _Rates.of(exploration, grid)
    options = [option for option in exploration.options if grid.shows(option.improve)]
    caption = sentences(
        source,
        View(None, (), {}),
        f"Each dot is a combination of more throughput in {' and in '.join(names[:2])} {_with_which(goal)}"
        + (", coloured by the smallest cache rate at which it does" if rates.known else "")
        + "; crosses: it does not, at any point of the sweep." * (len(exploration.sweeps) > 1)
        + "; crosses: it does not." * (len(exploration.sweeps) == 1),
        "" if source.goal_given else "No goal was given: this one is a suggestion.",
        f"Rings: combinations that no other beats in every respect ({len(options)})." if options else "",
        f"The goal is met without any improvement, at {brief(sweep_text(exploration.sweeps[exploration.met_without]), 80)}."
        if exploration.met_without is not None
        else "",
        f"Also improved: {improvements_text(exploration.fixed)}." if exploration.fixed else "",
        f"Not varied here: {improvements_text(grid.held)}." if grid.held else "",
        "Of the values, only some are drawn." if grid.thinned else "",
        f"An estimate by scaling, no measurement; {processes_text(source)}, median over {epochs_text(shown_epochs(source))}.",
    )
    canvas = Canvas("goal", title, caption)
    _draw_grid(canvas, grid, rates, options)
    return Figure("goal", title, caption, canvas.to_text())


def _with_which(goal: Goal) -> str:
    if goal.kind == AU:
        return f"with which accelerators are used at least {goal.shown(goal.value)}"
    what = "the slowest process's I/O takes" if goal.kind == IO else "an epoch takes"
    return f"with which {what} at most {about_seconds(goal.value)}"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Two varied classes (or one), the improvements of each that are drawn, and the classes beyond two, which are held at their least."""

    names: tuple[str, ...]
    columns: tuple[float, ...]
    rows: tuple[float, ...]
    chosen: dict[tuple[float, float], int]  # (column, row) → point, −1: none
    values: dict[tuple[float, float], str]  # what the goal is about, as text
    held: dict[str, float]
    thinned: bool

    @classmethod
    def of(cls, exploration: Exploration) -> "_Grid":
        names = tuple(exploration.vary)
        sizes = [len(values) for values in exploration.vary.values()]
        sides = [*exploration.vary.values(), (0.0,)][:2]
        picked = [_thin(len(values)) for values in sides]
        first = [0] * max(0, len(names) - 2)
        chosen, values = {}, {}
        for column in picked[0]:
            for row in picked[1]:
                place = [column, row, *first][: len(sizes)]
                index = int(np.ravel_multi_index(place, sizes))
                dot = sides[0][column], sides[1][row]
                chosen[dot] = int(exploration.chosen[index])
                values[dot] = exploration.goal.shown(float(exploration.values[index]))
        columns, rows = (
            tuple(values[index] for index in kept) for values, kept in zip(sides, picked, strict=True)
        )  # fmt: skip
        held = {name: exploration.vary[name][0] for name in names[2:]}
        return cls(names, columns, rows, chosen, values, held, len(chosen) < math.prod(len(values) for values in sides))

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
        by_point = {index: cache_rate_of(sweep) for index, sweep in enumerate(exploration.sweeps)}
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
    across = SweptAxis.of("", grid.columns, frame.left, frame.right)
    up = SweptAxis.of("", grid.rows, frame.bottom, frame.top)
    x_title, y_title = (f"{class_text(name)} improvement (%)" for name in (*grid.names, "")[:2])
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
        improved = improvements_text(dict(zip(grid.names, dot, strict=False)))
        if point < 0:
            canvas.cross(x, y, min(2.6, radius / 2), "unmet", f"{improved}: {grid.values[dot]}, not met")
        else:
            at = f" at {label('cache_rate', rates.by_point[point])} cached" if rates.known else ""
            tip = f"{improved}: {grid.values[dot]}{at}"
            canvas.circle(x, y, radius, f"dot {rates.css(point)}", tip)
    for option in options:
        canvas.circle(*places[grid.place(option.improve)], radius + 1.6, "ring")
    if not any_met:
        _draw_note(canvas, frame, "cannot be met by these")
    _draw_colours(canvas, frame, rates)
    legend.draw(canvas)


def _grid_entries(coloured: bool, any_met: bool, ringed: bool) -> Iterator[LegendEntry]:
    if any_met and not coloured:
        yield LegendEntry(lambda canvas, x, y: canvas.circle(x, y, 6, "sample dot met"), "met")
    yield LegendEntry(lambda canvas, x, y: canvas.cross(x, y, 3, "sample unmet"), "not met")
    if ringed:
        yield LegendEntry(lambda canvas, x, y: canvas.circle(x, y, 7, "sample ring"), "beaten by no other")


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
