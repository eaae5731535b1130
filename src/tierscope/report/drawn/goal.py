"""Figure 4: which improvements meet a goal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.cases import without_case
from tierscope.jsonable import cache_rate_of
from tierscope.predict.explore import Exploration, Option
from tierscope.report.drawn.looks import STEPS
from tierscope.report.drawn.panels import Panel
from tierscope.report.drawn.view import (
    brief,
    class_text,
    epochs_text,
    improvements_text,
    processes_text,
    shown_epochs,
    too_little,
)
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    FONT,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    Sample,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
    label,
    text_width,
)
from tierscope.spec.goal import AU, IO, Goal
from tierscope.units import about_seconds

_MOST_ON_A_SIDE = 61  # dots of a grid


@dataclass(frozen=True, slots=True)
class GoalPanel(Panel):
    """Dots where a pair of improvements meets the goal."""

    name: ClassVar[str] = "goal"
    has_times: ClassVar[bool] = False

    @property
    def _exploration(self) -> Exploration:
        return self.source.exploration

    @property
    def title(self) -> str:
        goals = {peer.exploration.goal for peer in self.peers}
        return f"What meets a goal of {self._exploration.goal.text}" if len(goals) == 1 else "What meets a goal"

    @property
    def missing(self) -> str:
        longest = max(point.io.high for point in self.source.breakdown.summary)
        none = "" if self._exploration.vary else "no class is varied, so there is nothing to plot"
        return too_little(longest) or none

    @property
    def _rates(self) -> "_Rates":
        return _Rates.of(self._exploration, [peer.exploration for peer in self.peers])

    @property
    def mark(self) -> str:
        goal = self._exploration.goal
        return "" if self.source.goal_given else f" · goal {goal.short}"

    @property
    def own(self) -> str:
        met = self._exploration.met_without
        if met is None:
            return ""
        return f"met without any improvement, at {brief(sweep_text(without_case(self._exploration.sweeps[met])), 80)}"

    def _options(self, grid: "_Grid") -> list[Option]:
        return [option for option in self._exploration.options if grid.shows(option.improve)]

    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        exploration, grid, rates = self._exploration, _Grid.of(self._exploration), self._rates
        names = [brief(name, 48) for name in exploration.vary]
        options = self._options(grid)
        what = "two classes" if among else " and in ".join(names[:2])
        given = self.source.goal_given
        return [
            f"Each dot is a combination of more throughput in {what} {_with_which(exploration.goal, among and not given)}"
            + (", coloured by the smallest sufficient cache rate" if rates.known else "")
            + "; crosses: not met at any point of the sweep." * (len(exploration.sweeps) > 1)
            + "; crosses: not met." * (len(exploration.sweeps) == 1),
            "" if given else f"No goal was given: {'these are suggestions' if among else 'this one is a suggestion'}.",
            f"Rings: Pareto-optimal combinations{'' if among else f' ({len(options)})'}." if options else "",
            f"The goal is met without any improvement, at {brief(sweep_text(exploration.sweeps[exploration.met_without]), 80)}."
            if exploration.met_without is not None and not among
            else "",
            f"Also improved: {improvements_text(exploration.fixed)}." if exploration.fixed else "",
            f"Not varied here: {improvements_text(grid.held)}." if grid.held else "",
            "Only some of the values are drawn." if grid.thinned else "",
            f"An estimate by scaling, not a measurement; {processes_text(whole)}, median over {epochs_text(shown_epochs(whole))}.",
        ]

    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        del canvas
        grid, rates = _Grid.of(self._exploration), self._rates
        any_met = any(point >= 0 for point in grid.chosen.values())
        entries = list(_grid_entries(rates.known, any_met, bool(self._options(grid))))
        return [*(_rate_entries(rates) if among else ()), *entries]

    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        del top
        grid = _Grid.of(self._exploration)
        _draw_grid(
            canvas, head, grid, self._rates, self._options(grid), self._exploration.goal, has_bar=len(self.peers) == 1
        )


def draw_exploration(name: str, title: str, caption: str, exploration: Exploration) -> str:
    """A grid by itself, where there is no result that it belongs to."""
    grid, rates = _Grid.of(exploration), _Rates.of(exploration, [exploration])
    options = [option for option in exploration.options if grid.shows(option.improve)]
    canvas = Canvas(name, title, caption)
    any_met = any(point >= 0 for point in grid.chosen.values())
    legend = Legend(list(_grid_entries(rates.known, any_met, bool(options))))
    _draw_grid(canvas, legend.height + 8, grid, rates, options, exploration.goal, has_bar=True)
    legend.draw(canvas)
    return canvas.to_text()


def _with_which(goal: Goal, is_own: bool) -> str:
    """`is_own`: each panel has another one."""
    if is_own:
        return "that meets the goal behind the panel's name"
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
    values: dict[tuple[float, float], float]  # what the goal is about
    held: dict[str, float]
    thinned: bool

    @classmethod
    def of(cls, exploration: Exploration) -> "_Grid":
        names = tuple(exploration.vary)
        sizes = [len(values) for values in exploration.vary.values()]
        sides = [*exploration.vary.values(), (0.0,)][:2]
        picked = [_thin(len(values)) for values in sides]
        first = [0] * max(0, len(names) - 2)
        dots = [(column, row) for column in picked[0] for row in picked[1]]
        places = zip(*([*dot, *first][: len(sizes)] for dot in dots), strict=True)
        drawn = np.ravel_multi_index(tuple(np.array(place) for place in places), sizes)
        at = [(sides[0][column], sides[1][row]) for column, row in dots]
        chosen = dict(zip(at, exploration.chosen[drawn].tolist(), strict=True))
        values = dict(zip(at, exploration.values[drawn].tolist(), strict=True))
        columns, rows = (
            tuple(side[index] for index in kept) for side, kept in zip(sides, picked, strict=True)
        )  # fmt: skip
        held = {name: exploration.vary[name][0] for name in names[2:]}
        return cls(names, columns, rows, chosen, values, held, len(chosen) < math.prod(len(side) for side in sides))

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
    def of(cls, exploration: Exploration, among: Sequence[Exploration]) -> "_Rates":
        """`among`: all whose colours must be the same."""
        if len({sweep.get("cache_rate") for explored in among for sweep in explored.sweeps}) < 2:
            return cls((), {})
        by_point = {index: cache_rate_of(sweep) for index, sweep in enumerate(exploration.sweeps)}
        drawn = (
            (explored, point)
            for explored in among
            if explored.vary
            for point in _Grid.of(explored).chosen.values()
            if point >= 0
        )
        used = sorted({cache_rate_of(explored.sweeps[point]) for explored, point in drawn})
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


def _draw_grid(
    canvas: Canvas, head: float, grid: _Grid, rates: _Rates, options: Sequence[Option], goal: Goal, has_bar: bool
) -> None:
    any_met = any(point >= 0 for point in grid.chosen.values())
    size = canvas.size
    frame = Frame(88, head, size.width - (124 if rates.steps and has_bar else 24), size.height - 58)
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
        point, shown = grid.chosen[dot], goal.shown(grid.values[dot])
        improved = improvements_text(dict(zip(grid.names, dot, strict=False)))
        if point < 0:
            canvas.cross(x, y, min(2.6, radius / 2), "unmet", f"{improved}: {shown}, not met")
        else:
            at = f" at {label('cache_rate', rates.by_point[point])} cached" if rates.known else ""
            tip = f"{improved}: {shown}{at}"
            canvas.circle(x, y, radius, f"dot {rates.css(point)}", tip)
    for option in options:
        canvas.circle(*places[grid.place(option.improve)], radius + 1.6, "ring")
    if not any_met:
        _draw_note(canvas, frame, "not met by any of these")
    if has_bar:
        _draw_colours(canvas, frame, rates)


def _rate_entries(rates: _Rates) -> Iterator[LegendEntry]:
    """Colours in a legend, where panels share it."""
    for step in range(len(rates.steps)):
        yield LegendEntry(_dot(rates.css_of(step)), f"{rates.text(step)} cached")


def _dot(css: str) -> Sample:
    return lambda canvas, x, y: canvas.circle(x, y, 6, f"sample dot {css}")


def _grid_entries(coloured: bool, any_met: bool, ringed: bool) -> Iterator[LegendEntry]:
    if any_met and not coloured:
        yield LegendEntry(lambda canvas, x, y: canvas.circle(x, y, 6, "sample dot met"), "met")
    yield LegendEntry(lambda canvas, x, y: canvas.cross(x, y, 3, "sample unmet"), "not met")
    if ringed:
        yield LegendEntry(lambda canvas, x, y: canvas.circle(x, y, 7, "sample ring"), "Pareto-optimal")


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
