"""A figure as panels side by side: one for each case of a study, or for each amount of data that its points read.

A single one fills the figure. Several are drawn twice: into one drawing, for papers, and each by itself, so that a page can wrap them. Times have one scale
where the panel with the shortest still fills a quarter of it; else each panel has its own, as in the Hierarchy study's second figure.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tierscope.report.drawn.view import Figure, View, brief, sentences
from tierscope.report.report_source import ReportPart, ReportSource
from tierscope.report.svg import ROW, SAMPLE, Canvas, Legend, LegendEntry, Size, fit
from tierscope.units import counted

PANEL = Size(430.0, 340.0)
MOST_PANELS = 12
_HEAD = 36.0  # of a panel: where its name stands
_Y_AXIS = 40.0  # that the middle of the data is to the right of the panel's, twice
_ONE_SCALE = 4.0  # the longest of all is at most so many times that of any panel
_COLUMNS = {1: 1, 2: 2, 4: 2}  # by the number of panels; else three


@dataclass(frozen=True, slots=True)
class Panel(ABC):
    """What one part of a result draws in a figure."""

    source: ReportSource  # of the part alone
    view: View
    peers: tuple[ReportSource, ...]  # of all panels of the figure, this one too

    name: ClassVar[str]
    has_times: ClassVar[bool] = True  # upwards, so that panels may have one scale

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def missing(self) -> str:
        """Why it cannot be drawn; empty: it can."""

    @property
    def top(self) -> float:
        """Seconds at the top of its scale."""
        return 1.0

    @abstractmethod
    def captions(self, whole: ReportSource, among: bool) -> list[str]:
        """Sentences below the figure; `among`: those that hold for all panels of it. `whole`: all parts of the result."""

    @property
    def own(self) -> str:
        """What only this panel shows, in words that follow its name; empty: nothing."""
        return ""

    @property
    def mark(self) -> str:
        """Behind the panel's name; empty: nothing."""
        return ""

    @abstractmethod
    def entries(self, canvas: Canvas, among: bool) -> list[LegendEntry]:
        """Of the legend; `among`: other panels, which share it."""

    @abstractmethod
    def draw(self, canvas: Canvas, head: float, top: float) -> None:
        """Below `head`, with a scale of times up to `top`."""


def drawn_parts(source: ReportSource) -> list[ReportSource]:
    """A source for each panel: parts of several points, or all points together where every one stands alone."""
    if len(source.breakdown.groups) < 2:
        return [source]
    swept = [part for part in source.parts if len(part.breakdown.summary) > 1]
    return [source.of_part(part) for part in swept[:MOST_PANELS]] or [source]


def figure_of_panels(kind: type[Panel], source: ReportSource) -> Figure:
    parts = drawn_parts(source)
    panels = [kind(part, View.of(part), tuple(parts)) for part in parts]
    return _alone(panels[0], source) if len(panels) == 1 else _several(panels, source)


def _alone(panel: Panel, source: ReportSource) -> Figure:
    view = panel.view
    title = f"{panel.title}{view.where}"
    if panel.missing:
        return Figure(panel.name, title, sentences(source, view), None, panel.missing)
    caption = sentences(source, view, *panel.captions(panel.source, False), _left_out([panel], source))
    canvas = Canvas(panel.name, title, caption)
    legend = Legend(panel.entries(canvas, False))
    panel.draw(canvas, legend.height + 8, panel.top)
    legend.draw(canvas)
    return Figure(panel.name, title, caption, canvas.to_text())


def _several(panels: Sequence[Panel], source: ReportSource) -> Figure:
    first = panels[0]
    drawable = [panel for panel in panels if not panel.missing]
    title = (
        f"{first.title}, in each {'case' if first.source.breakdown.groups[0].case is not None else 'group of points'}"
    )
    if not drawable:
        return Figure(first.name, title, sentences(source, first.view), None, first.missing)
    tops = _tops(drawable)
    caption = _caption(drawable, panels, source, tops)
    drawing = _Drawing(drawable, tops)
    return Figure(
        first.name,
        title,
        caption,
        drawing.whole(title, caption),
        panels=tuple(drawing.panel_texts(title)),
        key=tuple(drawing.key()),
        size=drawing.size,
    )


def part_of(panel: Panel) -> ReportPart:
    return panel.source.parts[0]


def _tops(panels: Sequence[Panel]) -> list[float]:
    tops = [panel.top for panel in panels]
    return [max(tops)] * len(tops) if max(tops) <= _ONE_SCALE * min(tops) else tops


def _caption(drawable: Sequence[Panel], panels: Sequence[Panel], source: ReportSource, tops: Sequence[float]) -> str:
    first = drawable[0]
    own = [f"{brief(part_of(panel).name, 48)}: {panel.own}" for panel in drawable if panel.own]
    same = "All panels have the same scale." if len(set(tops)) == 1 else "Each panel has its own scale."
    slices = [panel.view.others for panel in drawable if panel.view.others]
    undrawn = [f"{brief(part_of(panel).name, 48)}: {panel.missing}." for panel in panels if panel.missing]
    return sentences(
        source,
        View(None, (), {}, max(panel.view.stride for panel in drawable)),
        *first.captions(source, True),
        f"{'; '.join(own)}." if own else "",
        same if first.has_times else "",
        "Several keys were swept; each panel shows only the slice with its best point." if slices else "",
        *undrawn,
        _left_out(panels, source),
    )


def _left_out(panels: Sequence[Panel], source: ReportSource) -> str:
    """What has no panel; where nothing has one of its own, all points are in the only one."""
    groups = len(source.breakdown.groups)
    if groups < 2 or len(panels[0].source.breakdown.groups) > 1:
        return ""
    return f"Not drawn: {counted(groups - len(panels), 'other group')} of points." if groups > len(panels) else ""


@dataclass(frozen=True, slots=True)
class _Drawing:
    panels: Sequence[Panel]
    tops: Sequence[float]

    @property
    def columns(self) -> int:
        return _COLUMNS.get(len(self.panels), 3)

    @property
    def width(self) -> float:
        return self.columns * PANEL.width

    @property
    def size(self) -> Size:
        rows = math.ceil(len(self.panels) / self.columns)
        return Size(self.width, self._legend(Canvas("size", "", "")).height + 4 + rows * PANEL.height)

    def whole(self, title: str, caption: str) -> str:
        canvas = Canvas(self.panels[0].name, title, caption, self.size)
        legend = self._legend(canvas)
        for number, (panel, top) in enumerate(zip(self.panels, self.tops, strict=True)):
            row, column = divmod(number, self.columns)
            place = column * PANEL.width, legend.height + 4 + row * PANEL.height
            _draw_panel(panel, canvas.inset(place, PANEL), top)
        legend.draw(canvas)
        return canvas.to_text()

    def panel_texts(self, title: str) -> Iterator[str]:
        for number, (panel, top) in enumerate(zip(self.panels, self.tops, strict=True), start=1):
            canvas = Canvas(f"{panel.name}-{number}", f"{title}: {part_of(panel).name}", "", PANEL)
            _draw_panel(panel, canvas, top)
            yield canvas.to_text()

    def key(self) -> Iterator[tuple[str, str]]:
        """Samples of the legend as drawings of their own, for a list that a page can wrap."""
        canvas = Canvas(f"{self.panels[0].name}-key", "", "")
        for number, entry in enumerate(self._entries(canvas)):
            sample = Canvas(f"{self.panels[0].name}-key-{number}", "", "", Size(SAMPLE + 4, ROW))
            same = list(self._entries(sample))[number]
            same.sample(sample, SAMPLE / 2 + 2, ROW / 2)
            yield sample.to_text(), entry.text

    def _legend(self, canvas: Canvas) -> Legend:
        return Legend(list(self._entries(canvas)), self.width)

    def _entries(self, canvas: Canvas) -> Iterator[LegendEntry]:
        """Of all panels, each once."""
        entries: dict[str, LegendEntry] = {}
        for panel in self.panels:
            for entry in panel.entries(canvas, True):
                entries.setdefault(entry.text, entry)
        return iter(entries.values())


def _draw_panel(panel: Panel, canvas: Canvas, top: float) -> None:
    name = fit(f"{part_of(panel).name}{panel.mark}", canvas.size.width - 2 * _Y_AXIS)
    canvas.text((canvas.size.width + _Y_AXIS) / 2, 20, name, "heading middle")
    panel.draw(canvas, _HEAD, top)
